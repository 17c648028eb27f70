# One conversation: its turns with what was said, their checkpoints, what was taken back.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/project
talk=$scratch/agent
mkdir -p "$root" "$talk" && cd "$root" || exit 1
echo one >a
run on; expect_rc 0
session=7c3e9a52-0b1d-4f6e-9d2a-5e8b1c4f7a60
event() {
  printf '%s' "{\"session_id\":\"$session\",\"cwd\":\"$root\",\"transcript_path\":\"$talk/$session.jsonl\",\"hook_event_name\":\"$1\"${2:+,$2}}" |
    "$BELAY_BIN" hook claude || fail "hook: exit $?"
}
long=$(printf 'word %.0s' {1..60})
say() {
  printf '{"type":"user","uuid":"u-%s","sessionId":"%s","promptId":"%s","message":{"role":"user","content":"%s"}}\n' "$1" "$session" "$1" "$2"
  printf '{"type":"assistant","uuid":"a-%s","parentUuid":"u-%s","sessionId":"%s","message":{"role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "$1" "$1" "$session" "$3"
}
event UserPromptSubmit '"prompt_id":"p1","prompt":"first wish"'
echo 1 >>a
event Stop
event UserPromptSubmit "\"prompt_id\":\"p2\",\"prompt\":\"second \\u001b[31mwish $long\""
echo 2 >>a
event Stop
{ say p1 "first wish" "it is done"; say p2 "second \\u001b[31mwish $long" "\\u001b]0;title\\u0007 $long"; } >"$talk/$session.jsonl"

run show $session; expect_rc 0
expect_in_out "session $session"; expect_in_out "claude"
expect_in_out "first wish"; expect_in_out "it is done"
LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f]' "$scratch/out" && fail "control characters on a terminal"
[ "$(wc -L <"$scratch/out")" -le 80 ] || fail "wider than 80 columns: $out"
run show --session $session --json; expect_rc 0
expect_py "d['session']['id'] == '$session' and d['session']['state'] == 'open' and d['session']['turns'] == 2"
expect_py "[t['turn'] for t in d['turns']] == [1, 2] and d['turns'][0]['prompt'] == 'first wish'"
expect_py "[m['text'] for m in d['turns'][0]['messages']] == ['it is done']"
expect_py "all(t['taken_back_by'] is None and t['checkpoints'] for t in d['turns'])"
expect_py "d['transcript'] == {'path': '$talk/$session.jsonl', 'bytes': $(stat -c %s "$talk/$session.jsonl"), 'copy': False}"

# A rollback marks, an undo takes the mark away.
run rollback turn:2 --yes --exact; expect_rc 0
run show $session --json
expect_py "d['turns'][0]['files_taken_back_by'] is None and d['turns'][1]['files_taken_back_by'] is not None and d['turns'][1]['taken_back_by'] is None"
expect_py "d['turns'][1]['checkpoints'][0]['taken_back_by'] is None"
run show $session; expect_in_out "taken back"
run undo; expect_rc 0
run show $session --json; expect_py "d['turns'][1]['files_taken_back_by'] is None"

# A checkpoint of that name comes first; the flag means the session.
run checkpoint -m $session; expect_rc 0
run show $session --json; expect_py "d['name'] == '$session'"
run show --session $session --json; expect_py "d['session']['id'] == '$session'"
run show; expect_rc 2
run show nobody; expect_rc 1
run show --session nobody; expect_rc 1; expect_in_err "no session nobody"

# The end of it is told behind the hook's reply.
mkfifo "$scratch/told"
"$BELAY_BIN" events --follow >"$scratch/told" & follower=$!
exec 8<"$scratch/told"
event SessionEnd
while read -r line <&8; do [[ $line == *session.ended* ]] && break; done
exec 8<&-; kill "$follower"; wait "$follower" 2>/dev/null
run sessions --json; expect_py "[s['state'] for s in d['sessions']] == ['ended']"
run sessions --all; expect_rc 0; expect_in_out "ended"; expect_in_out "2 turns"; expect_in_out project
[ "$(wc -L <"$scratch/out")" -le 80 ] || fail "wider than 80 columns: $out"
finish
