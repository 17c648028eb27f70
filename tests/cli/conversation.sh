# Conversations taken back: rollback --chat and --both, rewind, resume, and undo of all of it, on the command line.
. "$(dirname "$0")/talk.bash"

echo one >a
run on; expect_rc 0
# turn NUMBER PROMPT: a whole turn: prompt, an edit, an answer; in the hooks and in the transcript.
turn() {
  event UserPromptSubmit "\"prompt_id\":\"p$1\",\"prompt\":\"$2\""
  printf '{"parentUuid":%s,"type":"user","uuid":"u%s","sessionId":"%s","promptId":"p%s","message":{"role":"user","content":"%s"}}\n' \
    "$parent" "$1" "$session" "$1" "$2" >>"$talk/$session.jsonl"
  echo "$2" >>a
  printf '{"parentUuid":"u%s","type":"assistant","uuid":"a%s","sessionId":"%s","message":{"id":"m%s","role":"assistant","content":[{"type":"text","text":"answer %s"}]}}\n' \
    "$1" "$1" "$session" "$1" "$1" >>"$talk/$session.jsonl"
  parent="\"a$1\""
  event Stop
}
goes_on() { "$BELAY_BIN" resume "$1" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["goes_on"])'; }
said() { grep -o '"content":"[^"]*"\|answer [0-9]*' "$1" | tr '\n' ' '; }

event SessionStart '"source":"startup"'
turn 1 "first wish"
turn 2 "second wish"
turn 3 "third wish"
chmod 640 "$talk/$first.jsonl"
cp -p "$talk/$first.jsonl" "$scratch/original"
state() { cat a; ls -A "$talk"; }
state >"$scratch/before"

# --- nothing is done but on request
run rollback turn:2 --both --dry-run --json; expect_rc 0
expect_py "d['scope'] == 'both' and d['chat']['messages_taken_back'] == 4 and d['chat']['messages_kept'] == 2 and d['chat']['forked'] is None and d['chat']['prompt'] == 'second wish'"
run rollback turn:2 --chat --dry-run; expect_rc 0; expect_in_out "would take back 4 messages"
run rollback turn:2 --chat; expect_rc 1; expect_in_err "to go ahead: --yes"
run rollback turn:2 --both; expect_rc 1; expect_in_out "4 messages of session $first, from turn 2 on"
run rollback turn:2 --both --code; expect_rc 2
run rewind "$first"; expect_rc 2
run rewind "$first" --to turn:x; expect_rc 2
run rewind "$first" --to turn:9; expect_rc 1; expect_in_err "has no turn 9"
run rewind "$first" --to nothing; expect_rc 1; expect_in_err "no message"
run rewind nobody --to turn:1; expect_rc 1; expect_in_err "no session"
state | cmp -s - "$scratch/before" || fail "something was done"

# --- both: files and conversation go back together
run rollback turn:2 --both --yes --exact; expect_rc 0
[ "$(cat a)" = "$(printf 'one\nfirst wish')" ] || fail "the code: $(cat a)"
expect_in_out "took back 4 messages of session $first"
expect_in_out "belay resume $first"
expect_in_out "does not read its file again"
[ "$(tail -1 "$scratch/out")" = "second wish" ] || fail "the prompt is not there to be edited: $out"
cmp -s "$talk/$first.jsonl" "$scratch/original" || fail "the original was changed"
second=$(goes_on "$first")
expect_in_out "claude --resume $second"
[ "$(said "$talk/$second.jsonl")" = '"content":"first wish" answer 1 ' ] || fail "the copy: $(said "$talk/$second.jsonl")"
grep -q "$first" "$talk/$second.jsonl" && fail "the old id is in the copy"
[ "$(stat -c %a "$talk/$second.jsonl")" = 640 ] || fail "the mode of the copy"
ls -A "$talk" | grep -q stage && fail "something is left: $(ls -A "$talk")"
run log; expect_rc 0; expect_in_out "rollback to"
run sessions --json; expect_py "[(s['id'], s['parent'], s['inherited_turns']) for s in d['sessions']][0] == ('$second', '$first', 1)"

# --- undo: the original goes on, the copy stays; redo: the copy goes on again
run undo; expect_rc 0; expect_in_out "goes on as session $first"
[ "$(tail -1 a)" = "third wish" ] || fail "undo of the code: $(cat a)"
[ "$(goes_on "$first")" = "$first" ] || fail "undo: $(goes_on "$first") goes on"
[ -e "$talk/$second.jsonl" ] || fail "undo deleted a conversation"
run show turn:3 --json; expect_rc 0; expect_py "d['session'] == '$first'"
run redo --json; expect_rc 0; expect_py "d['chat']['goes_on'] == '$second' and d['chat']['session'] == '$first'"
[ "$(goes_on "$first")" = "$second" ] || fail "redo: $(goes_on "$first") goes on"
[ "$(tail -1 a)" = "first wish" ] || fail "redo of the code: $(cat a)"
cp -p a "$scratch/a.was"; echo "by hand" >>a
run undo --json; expect_rc 1; expect_py "d['scope'] == 'both' and d['chat'] is None and [c['path'] for c in d['conflicts']] == ['a']"
cp -p "$scratch/a.was" a
run undo --json; expect_rc 0; expect_py "d['chat']['undone'] and d['chat']['resume'] == 'claude --resume $first'"
mv "$talk/$second.jsonl" "$scratch/away"
run redo; expect_rc 1; expect_in_err "is gone"
mv "$scratch/away" "$talk/$second.jsonl"
run redo; expect_rc 0

# --- the fork is worked in, and taken back itself
session=$second; parent='"a1"'
event SessionStart '"source":"resume"'
turn 22 "another second wish"
run show turn:2 --json; expect_py "d['session'] == '$second' and d['prompt'] == 'another second wish'"
run rewind "${second%%-*}" --to turn:2 --json; expect_rc 0
expect_py "d['scope'] == 'chat' and d['steps'] == [] and d['chat']['prompt'] == 'another second wish' and d['chat']['messages_taken_back'] == 2"
third=$(field "d['chat']['forked']")
[ "$(said "$talk/$third.jsonl")" = '"content":"first wish" answer 1 ' ] || fail "the fork of the fork: $(said "$talk/$third.jsonl")"
[ "$(goes_on "$first")" = "$third" ] || fail "fork after fork: $(goes_on "$first")"
[ "$(tail -1 a)" = "another second wish" ] || fail "rewind touched the code"
# Before anybody worked in it.
run rewind "$third" --to turn:1 --json; expect_rc 0; expect_py "d['chat']['forked'] is None and d['chat']['resume'] == 'claude'"
run undo; expect_rc 0; expect_in_out "rewind of session ${third:0:8}"
[ "$(goes_on "$third")" = "$third" ] || fail "undo of a rewind"
# In the middle of a turn, by the agent's own id.
run rewind "$second" --to a22 --json; expect_rc 0
expect_py "d['chat']['messages_taken_back'] == 1 and d['chat']['prompt'] is None"
fourth=$(field "d['chat']['forked']")
[ "$(said "$talk/$fourth.jsonl")" = '"content":"first wish" answer 1 "content":"another second wish" ' ] || fail "by message: $(said "$talk/$fourth.jsonl")"
[ "$(goes_on "$second")" = "$fourth" ] || fail "the newest goes on: $(goes_on "$second")"
run log --json; expect_py "d['operations'][0]['chat']['session'] == '$second'"
run undo; run undo; expect_rc 0
cmp -s "$talk/$first.jsonl" "$scratch/original" || fail "the original was changed"

# --- resume runs the agent, where it worked, with what goes on
printf '#!/bin/sh\npwd\necho "$@"\nexit 7\n' >"$scratch/bin/claude"; chmod +x "$scratch/bin/claude"
run resume "$first" --dry-run; expect_rc 0; expect_in_out "claude --resume $second"
(cd / && PATH=$scratch/bin:$PATH "$BELAY_BIN" resume "$first" -- -p "go on") >"$scratch/out" 2>"$scratch/err"
[ $? = 7 ] || fail "the agent's exit code"
[ "$(cat "$scratch/out")" = "$(printf '%s\n--resume %s -p go on' "$root" "$second")" ] || fail "resume ran: $(cat "$scratch/out" "$scratch/err")"
run resume nobody; expect_rc 1

# --- of another session it is not found
run show "$(run list --session "$second" --json; field "d['checkpoints'][0]['id']")" --session "$first"; expect_rc 1; expect_in_err "no checkpoint"

run show latest --session "$first" --json; expect_rc 0; expect_py "d['session'] == '$first'"
run rollback 1 --session "$first" --chat --dry-run; expect_rc 1

# --- the conversation is gone, and a copy of it is not
rm "$talk/$first.jsonl"
run rewind "$first" --to turn:3 --json; expect_rc 0; expect_py "d['chat']['messages_kept'] == 4"

# --- nothing is taken back of what cannot be, and nothing half
mkdir -p "$scratch/src/cline"; cd "$scratch/src/cline" || exit 1
echo one >c
run on; expect_rc 0
cline() { printf '%s' "{\"hookName\":\"$1\",\"taskId\":\"t1\",\"workspaceRoots\":[\"$PWD\"]${2:+,$2}}" | "$BELAY_BIN" hook cline >/dev/null 2>&1; }
cline agent_start '"prompt":"do it"'; echo two >c; cline agent_end
run rollback turn:1 --chat --yes; expect_rc 1; expect_in_err "cannot be taken back from outside"
[ "$(cat c)" = two ] || fail "the code went back"
run rollback turn:1 --both --yes --exact; expect_rc 0; expect_in_err "cannot be taken back from outside"; expect_in_err "the files alone"
[ "$(cat c)" = one ] || fail "the code did not go back"
run resume t1 --dry-run; expect_rc 0; expect_in_out "cline --id t1"

# --- the same of one whose hooks tell of no prompt
mkdir -p "$scratch/src/crush"; cd "$scratch/src/crush" || exit 1
echo one >c
run on; expect_rc 0
crush() { printf '%s' "{\"event\":\"PreToolUse\",\"session_id\":\"k1\",\"cwd\":\"$PWD\",\"tool_name\":\"bash\",\"tool_input\":{\"command\":\"$1\"}}" | "$BELAY_BIN" hook crush >/dev/null 2>&1; }
crush "echo two >c"; echo two >c; crush ls
run rollback 2 --chat --yes; expect_rc 1; expect_in_err "conversation of crush cannot be taken back from outside"
run rewind k1 --to turn:1; expect_rc 1; expect_in_err "conversation of crush cannot be taken back from outside"; expect_in_err "the files alone: belay rollback REF --code"
[ "$(cat c)" = two ] || fail "the code went back"
run rollback 2 --both --yes --exact; expect_rc 0; expect_in_err "cannot be taken back from outside"
[ "$(cat c)" = one ] || fail "the code did not go back"

# --- a host that keeps its messages itself is told what to take back
mkdir -p "$scratch/src/host"; cd "$scratch/src/host" || exit 1
echo one >h
run on; expect_rc 0
host() { printf '%s' "{\"event\":\"$1\",\"host\":\"desk\",\"session\":\"chat-7\",\"cwd\":\"$PWD\"${2:+,$2}}" | "$BELAY_BIN" hook generic >/dev/null 2>&1 || fail "hook generic"; }
host session.begin
host turn.begin '"message":{"id":"m1","index":1},"prompt":"first"'; echo 1 >>h; host turn.end
host turn.begin '"message":{"id":"m4","index":4},"prompt":"second"'; echo 2 >>h; host turn.end
last=$("$BELAY_BIN" events | tail -1 | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
run rollback turn:2 --both --yes --exact --json; expect_rc 0
expect_py "d['chat']['goes_on'] == 'chat-7' and d['chat']['forked'] is None and d['chat']['resume'] is None and d['chat']['message'] == 'm4' and d['chat']['message_index'] == 4"
run events --since "$last"; expect_rc 0
event_of() { python3 -c 'import json,sys; print([eval(sys.argv[3], {"e": e}) for e in map(json.loads, open(sys.argv[1])) if e["type"] == sys.argv[2]])' "$scratch/out" "$1" "$2"; }
[ "$(event_of session.rewound '(e["session"], e["kept"], e["prompt"], e["undone"])')" = "[('chat-7', {'turn': 1, 'before_message': 'm4', 'before_index': 4}, 'second', False)]" ] || fail "session.rewound: $out"
[ "$(event_of session.reset '(e["session"], e["goes_on"], e["reset"])')" = "[('chat-7', 'chat-7', ['messages', 'queued_prompts', 'running_turn', 'files'])]" ] || fail "session.reset: $out"
[ "$(event_of rollback.done 'e["chat"]["session"]')" = "['chat-7']" ] || fail "rollback.done: $out"
last=$("$BELAY_BIN" events | tail -1 | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
run undo; expect_rc 0; expect_in_out "counts again"
run events --since "$last"
[ "$(event_of session.rewound '(e["session"], e["kept"], e["undone"])')" = "[('chat-7', None, True)]" ] || fail "undone: $out"
[ "$(event_of session.reset '(e["session"], "files" in e["reset"])')" = "[('chat-7', True)]" ] || fail "undone, the files: $out"
run rewind chat-7 --to m4; expect_rc 0; expect_in_out "desk keeps the conversation itself"
run rewind chat-7 --to nobody; expect_rc 1; expect_in_err "nothing is known"
run resume chat-7; expect_rc 1; expect_in_err "is not known"
# The end of the session tells nothing of it again: whoever follows would take back what was said since.
last=$("$BELAY_BIN" events | tail -1 | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
host turn.begin '"message":{"id":"m9","index":9},"prompt":"third"'; host turn.end
host session.end
for try in $(seq 1 200); do run events --since "$last"; [[ $out == *session.ended* ]] && break; done
expect_in_out session.ended
[[ $out == *session.rewound* || $out == *session.reset* ]] && fail "told again: $out"
finish
