# Summaries that stand for a part of a conversation: belay summarize, resume, undo, on the command line.
. "$(dirname "$0")/talk.bash"

echo one >a
run on; expect_rc 0
line() { printf '%s\n' "$1" >>"$talk/$session.jsonl"; }
# turn NUMBER PROMPT: prompt, an edit, a command, an answer; in the hooks and in the transcript.
turn() {
  event UserPromptSubmit "\"prompt_id\":\"p$1\",\"prompt\":\"$2\""
  line "{\"parentUuid\":$parent,\"type\":\"user\",\"uuid\":\"u$1\",\"sessionId\":\"$session\",\"promptId\":\"p$1\",\"message\":{\"role\":\"user\",\"content\":\"$2\"}}"
  line "{\"parentUuid\":\"u$1\",\"type\":\"assistant\",\"uuid\":\"c$1\",\"sessionId\":\"$session\",\"message\":{\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t$1\",\"name\":\"Write\",\"input\":{\"file_path\":\"$root/file$1\"}},{\"type\":\"tool_use\",\"id\":\"b$1\",\"name\":\"Bash\",\"input\":{\"command\":\"make step$1\"}}]}}"
  line "{\"parentUuid\":\"c$1\",\"type\":\"user\",\"uuid\":\"r$1\",\"sessionId\":\"$session\",\"promptId\":\"p$1\",\"toolUseResult\":{},\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t$1\",\"content\":\"fine\"},{\"type\":\"tool_result\",\"tool_use_id\":\"b$1\",\"content\":\"built $1\"}]}}"
  line "{\"parentUuid\":\"r$1\",\"type\":\"assistant\",\"uuid\":\"a$1\",\"sessionId\":\"$session\",\"message\":{\"role\":\"assistant\",\"model\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"answer $1\"}]}}"
  echo "$2" >>a
  parent="\"a$1\""
  event Stop
}
goes_on() { "$BELAY_BIN" resume "$1" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["goes_on"])'; }
# said FILE: the conversation as the agent reads it: from the last record to the first, by their parents; calls without answers stand out.
said() {
  python3 - "$1" <<'PY'
import json, sys
records = [json.loads(line) for line in open(sys.argv[1])]
by_id = {r["uuid"]: r for r in records}
assert len(by_id) == len(records), "an id twice"
chain, at = [], records[-1]
while at:
    chain.append(at)
    at = by_id[at["parentUuid"]] if at["parentUuid"] else None
chain.reverse()
out, open_calls, before = [], set(), None
for r in chain:
    role, content = r["message"]["role"], r["message"]["content"]
    assert role != before, "two of " + role
    before = role
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if part["type"] == "text":
            out.append(part["text"].split("\n")[0].split(" of our")[0])
        elif part["type"] == "tool_use":
            open_calls.add(part["id"])
        else:
            open_calls.remove(part["tool_use_id"])
assert not open_calls, open_calls
print("|".join(out))
PY
}

event SessionStart '"source":"startup"'
turn 1 "first wish"; turn 2 "second wish"; turn 3 "third wish"; turn 4 "fourth wish"
chmod 640 "$talk/$first.jsonl"
cp -p "$talk/$first.jsonl" "$scratch/original"
state() { cat a; ls -A "$talk"; }
state >"$scratch/before"
settings() { printf '%s\n' "$@" >"$BELAY_CONFIG"; }

# --- nothing is done but on request, and wrong ones are said
run summarize "$first"; expect_rc 2
run summarize "$first" --to turn:2 --to turn:3; expect_rc 2; expect_in_err "--to is given twice"
run summarize "$first" --to 3; expect_rc 2; expect_in_err "turn:3"
run summarize "$first" --from turn:3 --to turn:3; expect_rc 2
run summarize "$first" --to turn:9; expect_rc 1; expect_in_err "has no turn 9"
run summarize "$first" --to turn:1; expect_rc 1; expect_in_err "nothing was said before turn 1"
run summarize nobody --to turn:3; expect_rc 1; expect_in_err "no session"
run summarize "$first" --from turn:2 --to turn:4 --dry-run; expect_rc 0
expect_in_out "(turns 2 to 3)"; expect_in_out "second wish"; expect_in_out "Files changed: file2"; expect_in_out "Commands run: make step3"; expect_in_out "answer 3"
case $out in *"fourth wish"*) fail "too much: $out" ;; esac
run summarize "$first" --to turn:3 --dry-run --json; expect_rc 0
expect_py "d['dry_run'] and d['operation'] is None and d['by'] == 'extract' and d['chat']['forked'] is None and d['chat']['summarized'] == {'first_turn': 1, 'last_turn': 2} and d['chat']['messages_taken_back'] == 8 and d['chat']['messages_kept'] == 8"
state | cmp -s - "$scratch/before" || fail "something was done"

# --- the middle
run summarize "${first%%-*}" --from turn:2 --to turn:4; expect_rc 0
expect_in_out "a summary stands for 8 messages (turns 2 to 3) of session $first"
expect_in_out "belay resume $first"
cmp -s "$talk/$first.jsonl" "$scratch/original" || fail "the original was changed"
second=$(goes_on "$first")
[ "$second" != "$first" ] || fail "the original goes on"
expect_in_out "claude --resume $second"
got=$(said "$talk/$second.jsonl") || fail "the copy is no conversation"
[ "$got" = "first wish|answer 1|[This stands for turns 2 to 3|I go on from this summary.|fourth wish|answer 4" ] || fail "the copy: $got"
grep -q "$first" "$talk/$second.jsonl" && fail "the old id is in the copy"
[ "$(stat -c %a "$talk/$second.jsonl")" = 640 ] || fail "the mode of the copy"
[ "$(ls -A "$talk" | wc -l)" = 2 ] || fail "something is left: $(ls -A "$talk")"
[ "$(tail -1 a)" = "fourth wish" ] || fail "the code was touched"
run log; expect_rc 0; expect_in_out "summary of turns 2 to 3 of s"
run sessions --json; expect_py "[(s['id'], s['parent'], s['inherited_turns']) for s in d['sessions']][0] == ('$second', '$first', 4)"
run show "$second"; expect_rc 0; expect_in_out "This stands for turns 2 to 3"
# Nothing was taken back of the original.
run show "$first" --json; expect_py "[t['taken_back_by'] for t in d['turns']] == [None] * 4"
# Whoever keeps conversations is told.
"$BELAY_BIN" events | tail -2 >"$scratch/events"
python3 - "$scratch/events" "$first" "$second" <<'PY' || fail "events: $(cat "$scratch/events")"
import json, sys
reset, on = [json.loads(line) for line in open(sys.argv[1])]
first, second = sys.argv[2:]
assert reset["type"] == "session.reset" and reset["session"] == first and "files" not in reset["reset"], reset
assert on["type"] == "session.rewound" and on["session"] == on["goes_on"] == second and on["rewound"] == first, on
assert on["summarized"] == reset["summarized"] == {"first_turn": 2, "last_turn": 3} and on["prompt"] is None, on
PY

# A turn that the summary stands for is in the conversation it was said in.
run rollback turn:3 --chat --dry-run; expect_rc 1; expect_in_err "a summary stands for turn 3"; expect_in_err "--session $first"
run rollback turn:3 --chat --dry-run --session $first; expect_rc 0
run rollback turn:2 --both --dry-run; expect_rc 1; expect_in_err "a summary stands for turn 2"; expect_in_err "--session $first"
run fork turn:3 "$scratch/src/fork" --json; expect_rc 0; expect_py "d['chat']['session'] == '$first' and d['chat']['turn'] == 3"
rm "$(field "d['chat']['transcript']")"

# --- undo and redo
run undo; expect_rc 0; expect_in_out "summary of session"; expect_in_out "goes on as session $first"
[ "$(goes_on "$first")" = "$first" ] || fail "undo: $(goes_on "$first") goes on"
run redo; expect_rc 0; [ "$(goes_on "$first")" = "$second" ] || fail "redo"

# --- the copy is worked in: turns are counted on, and it can be taken back and summarized itself
session=$second; parent=$(tail -1 "$talk/$second.jsonl" | python3 -c 'import json,sys; print(json.dumps(json.loads(sys.stdin.readline())["uuid"]))')
event SessionStart '"source":"resume"'
turn 5 "fifth wish"
run show turn:5 --json; expect_py "d['session'] == '$second' and d['prompt'] == 'fifth wish'"
run rewind "$second" --to turn:4 --json; expect_rc 0; expect_py "d['chat']['prompt'] == 'fourth wish'"
third=$(field "d['chat']['forked']")
[ "$(said "$talk/$third.jsonl")" = "first wish|answer 1|[This stands for turns 2 to 3|I go on from this summary." ] || fail "taken back: $(said "$talk/$third.jsonl")"
run undo; expect_rc 0
for number in 2 3; do run rewind "$second" --to turn:$number; expect_rc 1; expect_in_err "a summary stands for turn $number"; expect_in_err "belay rewind $first --to turn:$number"; done
run fork turn:2 "$scratch/src/fork2" --session "$second" --json; expect_rc 0; expect_py "d['chat']['session'] == '$first' and d['chat']['turn'] == 2"
rm "$(field "d['chat']['transcript']")"
run summarize "$second" --to turn:5 --json; expect_rc 0; expect_py "d['by'] == 'extract' and 'first wish' in d['summary'] and 'fifth' not in d['summary']"
fourth=$(field "d['chat']['forked']")
[ "$(said "$talk/$fourth.jsonl")" = "[This stands for turns 1 to 4|I go on from this summary.|fifth wish|answer 5" ] || fail "the beginning: $(said "$talk/$fourth.jsonl")"
[ "$(goes_on "$first")" = "$fourth" ] || fail "fork after fork"
run summarize "$second" --from turn:5 --json; expect_rc 0
fifth=$(field "d['chat']['forked']")
[ "$(said "$talk/$fifth.jsonl")" = "first wish|answer 1|[This stands for turns 2 to 3|I go on from this summary.|fourth wish|answer 4|[This stands for turn 5|I go on from this summary." ] || fail "the end: $(said "$talk/$fifth.jsonl")"
run undo; run undo; expect_rc 0

# --- a command of the user's makes the summary
cat >"$scratch/bin/sum" <<'PY'
#!/usr/bin/env python3
import json, os, sys
head, *messages = [json.loads(line) for line in sys.stdin]
assert head["messages"] == len(messages) and head["messages_left_out"] == 0, head
assert os.environ["BELAY_HOOK"] == "summarize"
print("by", head["agent"], head["first_turn"], head["last_turn"], "of", os.path.basename(head["root"]))
print([(m["role"], m.get("turn"), m.get("text") or m["tool"]) for m in messages][:5])
PY
chmod +x "$scratch/bin/sum"
settings "[hooks]" "summarize = [\"$scratch/bin/sum\"]"
ls "$talk" >"$scratch/before"
run summarize "$first" --from turn:3 --dry-run --json; expect_rc 0; expect_py "d['by'] == 'command' and d['summary'] is None"
run summarize "$first" --from turn:3 --json; expect_rc 0
expect_py "d['by'] == 'command' and d['summary'].split('\n')[0] == 'by claude 3 4 of project'"
expect_py "d['summary'].split('\n')[1] == str([('user', 3, 'third wish'), ('assistant', 3, 'Write'), ('assistant', 3, 'Bash'), ('tool', 3, 'fine'), ('tool', 3, 'built 3')])"
made=$(field "d['chat']['forked']")
grep -q "by claude 3 4 of project" "$talk/$made.jsonl" || fail "the summary is not in the copy"
said "$talk/$made.jsonl" >/dev/null || fail "no conversation"
run undo; expect_rc 0; rm "$talk/$made.jsonl"
# Or nothing is made at all.
nothing() {
  run summarize "$first" --from turn:3; expect_rc 1; expect_in_err "$1"; expect_in_err "nothing was changed"
  ls "$talk" | cmp -s - "$scratch/before" || fail "$1: something was made"
}
printf '#!/bin/sh\necho half of it\necho no network >&2\nexit 3\n' >"$scratch/bin/sum"; nothing "exited with 3: no network"
printf '#!/bin/sh\ncat >/dev/null\necho "  "\n' >"$scratch/bin/sum"; nothing "answered nothing"
printf '#!/bin/sh\nprintf "\\377\\376"\n' >"$scratch/bin/sum"; nothing "no text"
printf '#!/bin/sh\nprintf "a\\000b"\n' >"$scratch/bin/sum"; nothing "no text"
printf '#!/bin/sh\nhead -c 300000 /dev/zero | tr "\\0" x\n' >"$scratch/bin/sum"; nothing "said more than"
settings "[hooks]" "summarize = [\"bin/sum\"]"; nothing "absolute path"
settings "[hooks]" "summarize = [[\"$scratch/bin/sum\"], [\"$scratch/bin/sum\"]]"
run summarize "$first" --from turn:3; expect_rc 1; expect_in_err "one command"
# A project cannot name one.
settings ""; printf '[hooks]\nsummarize = ["%s/bin/sum"]\n' "$scratch" >.belay.toml
run summarize "$first" --from turn:3 --dry-run --json; expect_rc 0; expect_py "d['by'] == 'extract'"
rm .belay.toml
cmp -s "$talk/$first.jsonl" "$scratch/original" || fail "the original was changed"

# --- what the agent compacted later is not what it goes on from
session=22222222-2222-4222-8222-222222222222; parent=null
event SessionStart '"source":"startup"'
turn 1 "one"; turn 2 "two"
line '{"parentUuid":null,"logicalParentUuid":"a2","type":"system","subtype":"compact_boundary","uuid":"cb","sessionId":"s"}'
parent='"cb"'; turn 3 "three"
run summarize "$session" --to turn:2; expect_rc 1; expect_in_err "compacted the conversation later"
run summarize "$session" --to turn:3 --json; expect_rc 0
[ "$(said "$talk/$(field "d['chat']['forked']").jsonl")" = "[This stands for turns 1 to 2|I go on from this summary.|three|answer 3" ] || fail "over a compaction"

# --- those whose conversation nobody else can change
cline() { printf '%s' "{\"hookName\":\"$1\",\"taskId\":\"t1\",\"workspaceRoots\":[\"$PWD\"]${2:+,$2}}" | "$BELAY_BIN" hook cline >/dev/null 2>&1; }
cline agent_start '"prompt":"do it"'; cline agent_end
run summarize t1 --from turn:1; expect_rc 1; expect_in_err "cannot be changed from outside"
host() { printf '%s' "{\"event\":\"$1\",\"host\":\"desk\",\"session\":\"chat-7\",\"cwd\":\"$PWD\"${2:+,$2}}" | "$BELAY_BIN" hook generic >/dev/null 2>&1 || fail "hook generic"; }
host session.begin; host turn.begin '"message":{"id":"m1","index":1},"prompt":"first"'; host turn.end
run summarize chat-7 --from turn:1; expect_rc 1; expect_in_err "only it can shorten it"
printf '%s' "{\"sessionID\":\"ses_1\",\"directory\":\"$PWD\",\"message\":{\"id\":\"msg_1\"},\"parts\":[{\"type\":\"text\",\"text\":\"hello\"}]}" | "$BELAY_BIN" hook opencode chat.message >/dev/null 2>&1
run summarize ses_1 --from turn:1; expect_rc 1; expect_in_err "its own database"; expect_in_err "/compact"

# --- of another directory it is asked for there
mkdir -p "$scratch/src/other"; cd "$scratch/src/other" || exit 1
run on; run checkpoint; expect_rc 0
run summarize "$first" --from turn:2; expect_rc 1
finish
