# Conversations: copies of transcripts are kept behind the hook's reply, printed, listed
# and erased; forks have their ancestor's turns.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
talk=$scratch/agent
mkdir -p "$root" "$talk" && cd "$root" || exit 1
echo one >a
run on; expect_rc 0
session=one
event() {
  printf '%s' "{\"session_id\":\"$session\",\"cwd\":\"$root\",\"transcript_path\":\"$talk/$session.jsonl\",\"hook_event_name\":\"$1\"${2:+,$2}}" |
    "$BELAY_BIN" hook claude >"$scratch/out" 2>"$scratch/err" || fail "hook: exit $?"
  [ -s "$scratch/out" ] && fail "the hook said something"
}
# told EVENT KIND [MORE]: tells EVENT and waits until a record of that kind of this session is there.
mkfifo "$scratch/told"
told() {
  local last follower
  last=$("$BELAY_BIN" events | python3 -c 'import json, sys; print([json.loads(line)["id"] for line in sys.stdin][-1])')
  "$BELAY_BIN" events --follow --since "$last" >"$scratch/told" & follower=$!
  exec 8<"$scratch/told"
  event "$1" "${3-}"
  while read -r line <&8; do [[ $line == *"$2"* && $line == *"\"$session\""* ]] && break; done
  exec 8<&-; kill "$follower"; wait "$follower" 2>/dev/null
}
prompt() { event UserPromptSubmit "\"prompt_id\":\"$1\",\"prompt\":\"$2\""; }
said() { printf '{"type":"user","uuid":"u-%s","sessionId":"%s","promptId":"%s","message":{"role":"user","content":"%s"}}\n' "$1" "$session" "$1" "$2"; }

prompt p1 "first wish"
said p1 "first wish" >"$talk/one.jsonl"
echo 1 >>a
told Stop transcript.kept
prompt p2 "second wish"
said p2 "second wish" >>"$talk/one.jsonl"
echo 2 >>a
told Stop transcript.kept
run sessions transcript one; expect_rc 0
cmp -s "$scratch/out" "$talk/one.jsonl" || fail "another transcript than the agent's"
run sessions transcript one --json; expect_rc 0
expect_py "[(t['number'], t['path'], t['latest']) for t in d['transcripts']] == [(1, '$talk/one.jsonl', True)]"
expect_py "d['transcripts'][0]['bytes'] == $(stat -c %s "$talk/one.jsonl")"
# The agent deletes its own.
cp "$talk/one.jsonl" "$scratch/one.kept"; rm "$talk/one.jsonl"
event SessionEnd
run sessions transcript one; expect_rc 0
cmp -s "$scratch/out" "$scratch/one.kept" || fail "the copy went with the file"
run status --json; expect_py "d['failures'] == []"
run sessions transcript nobody; expect_rc 1; expect_in_err "there is no session nobody"
run sessions transcript nobody --json; expect_rc 1; expect_py "d['error']['code'] == 'not_found' and 'there is no session nobody' in d['error']['message']"
run sessions transcript one --copy 2; expect_rc 2
run sessions --copy 1; expect_rc 2
run sessions transcript; expect_rc 2

# --- a fork has the turns until it began
session=fork
said p1 "first wish" >"$talk/fork.jsonl"
told SessionStart session.known '"source":"resume"'
prompt f2 "another second wish"
run sessions --json; expect_rc 0
expect_py "[(s['id'], s['parent'], s['inherited_turns']) for s in d['sessions']] == [('fork', 'one', 1), ('one', None, 0)]"
run sessions; expect_in_out "from one after turn 1"
run show turn:1 --json; expect_rc 0; expect_py "d['session'] == 'one' and d['prompt'] == 'first wish'"
run show turn:2 --json; expect_rc 0; expect_py "d['session'] == 'fork' and d['prompt'] == 'another second wish'"
run show turn:2 --session one --json; expect_py "d['prompt'] == 'second wish'"
run rollback turn:1 --session fork --dry-run --exact --json; expect_rc 0; expect_py "d['steps'][0]['path'] == 'a'"
run list --session fork --json --tools; expect_rc 0
expect_py "[c['prompt'] for c in d['checkpoints'] if c['turn']][-1] == 'first wish' and 'second wish' not in [c['prompt'] for c in d['checkpoints']]"
# What it has of the other stays when that is deleted; the rest goes.
home=$BELAY_HOME; cp -a "$home" "$scratch/deleted"; export BELAY_HOME=$scratch/deleted
run sessions delete one --yes --json; expect_rc 0; expect_py "d['deleted'] > 0 and d['pinned'] == [] and len(d['shared']) > 0 and d['kept_turns'] == 1 and d['kept_transcripts'] == 0"
# The fork has what was said before it in its own file.
run sessions transcript one; expect_rc 1; expect_in_err "no copy"
run show fork; expect_rc 0; expect_in_out "first wish"
run rewind fork --to turn:1 --dry-run; expect_rc 0
run resume fork --dry-run; expect_rc 0
run show turn:1 --session fork --json; expect_rc 0; expect_py "d['session'] == 'one' and d['prompt'] == 'first wish'"
run list --json --all --tools; expect_py "[c for c in d['checkpoints'] if c['session'] == 'one' and (c['turn'] or 0) > 1] == []"
run list --json --all --tools; expect_py "'second wish' not in str([c for c in d['checkpoints'] if c['session'] == 'one'])"
run sessions delete one --yes; expect_rc 1; expect_in_err "session fork grew out of it and has what is left of it in its history"
export BELAY_HOME=$home

# --- a bundle holds no conversation; a purge leaves none
run export --session one -o "$scratch/bundle"; expect_rc 0
(export BELAY_HOME=$scratch/other; mkdir -p "$scratch/there"; cd "$scratch/there" || exit 1
 "$BELAY_BIN" on -q && "$BELAY_BIN" import "$scratch/bundle" -q && "$BELAY_BIN" sessions transcript one) >"$scratch/imported" 2>&1 && fail "a bundle carried the conversation"
grep -q "no copy" "$scratch/imported" || fail "import: $(cat "$scratch/imported")"
run purge --session one --dry-run; expect_rc 0
[[ $out$err == *"copy of its transcript"* && $out$err == *"session fork was forked from it"* ]] || fail "purge says: $out$err"
run purge --session one --yes; expect_rc 0
run sessions transcript one; expect_rc 1
run verify --read-data; expect_rc 0

# --- what is kept is the user's to say
run config transcripts anchors; expect_rc 0
session=quiet
prompt q1 "an anchored wish"
said q1 "an anchored wish" >"$talk/quiet.jsonl"
echo 3 >>a
event Stop
run sessions --json; expect_py "[s['transcript_bytes'] for s in d['sessions'] if s['id'] == 'quiet'] == [0]"
run show turn:1 --session quiet --json; expect_py "d['prompt'] == 'an anchored wish' and d['message_id'] == 'q1'"
run sessions transcript quiet; expect_rc 1; expect_in_err "no copy of a transcript of session quiet"
run sessions transcript quie --json; expect_rc 1; expect_py "d['error']['code'] == 'not_found' and 'session quiet' in d['error']['message']"
run config transcripts off; expect_rc 0
session=silent
prompt s1 "nobody's business"
run show turn:1 --session silent --json; expect_py "d['prompt'] is None and d['message_id'] is None"
finish
