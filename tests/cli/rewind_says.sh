# What is said of conversations that were taken back: more than once, within a turn, from elsewhere, and when what goes on is gone.
. "$(dirname "$0")/talk.bash"

echo one >a
run on; expect_rc 0
# turn NUMBER: prompt, a call, its answer, an answer.
turn() {
  event UserPromptSubmit "\"prompt_id\":\"p$1\",\"prompt\":\"wish $1\""
  line user "u$1" "\"role\":\"user\",\"content\":\"wish $1\"" ",\"promptId\":\"p$1\""
  line assistant "c$1" "\"id\":\"m$1\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t$1\",\"name\":\"Bash\",\"input\":{}}]" ""
  echo "wish $1" >>a
  line user "r$1" "\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t$1\",\"content\":\"ok\"}]" ",\"promptId\":\"p$1\""
  line assistant "a$1" "\"id\":\"n$1\",\"content\":[{\"type\":\"text\",\"text\":\"answer $1\"}]" ""
  event Stop
}
goes_on() { "$BELAY_BIN" resume "$1" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["goes_on"])'; }
taken() { run show "$1" --json; field "''.join('x' if t['taken_back_by'] else '-' for t in d['turns'])"; }

event SessionStart '"source":"startup"'
for number in 1 2 3; do turn $number; done

# --- a checkpoint by hand is of the session that is at work
run checkpoint -m mine --json; expect_rc 0; expect_py "(d['session'], d['turn'], d['message_id']) == ('$session', 3, 'p3')"

# --- within a turn: it is named, and a call stays with its answer
run rewind "$session" --to a3; expect_rc 0
expect_in_out "took back 1 message of session $session, from message a3 in turn 3 on"
run undo; expect_rc 0
run rewind "$session" --to r3 --dry-run; expect_rc 0; expect_in_out "from message c3 in turn 3 on"; expect_in_err "message r3 is among calls and their answers"
run rewind "$session" --to r3 --json; expect_rc 0
expect_py "d['chat']['message'] == 'c3' and d['chat']['turn'] == 3 and d['chat']['inside_turn'] and d['chat']['messages_taken_back'] == 3 and 'among calls' in d['warnings'][0]"
tail -1 "$(field "d['chat']['transcript']")" | grep -q '"wish 3"' || fail "the copy ends elsewhere"
[ "$(taken "$session")" = --- ] || fail "a turn that is cut is not taken back as a whole: $(taken "$session")"
run show "$session"; expect_in_out "taken back in part"; expect_in_out "    taken back:"
run show "$session" --json
expect_py "[t['taken_back_from'] for t in d['turns']] == [None, None, 'c3'] and [{m['taken_back'] for m in t['messages']} for t in d['turns']] == [{False}, {False}, {True}]"
run undo; expect_rc 0

# --- twice: what stands is said
run rewind "$session" --to turn:3 --json; expect_rc 0; second=$(field "d['chat']['forked']")
[ "$(taken "$session")" = --x ] || fail "marked: $(taken "$session")"
run show "$session"; expect_in_out "as $second"; expect_in_out "taken back"
run sessions; expect_in_out "goes on as $second"
run sessions --json; expect_py "{s['id']: s['goes_on'] for s in d['sessions'] if s['id'] in ('$session', '$second')} == {'$session': '$second', '$second': '$second'}"
run rewind "$session" --to turn:2; expect_rc 0
[ "$(taken "$session")" = -xx ] || fail "marked: $(taken "$session")"
run undo; expect_rc 0; expect_in_out "goes on as session $second"
[ "$(goes_on "$session")" = "$second" ] || fail "$(goes_on "$session") goes on"
run redo; run undo --json; expect_rc 0; expect_py "d['chat']['goes_on'] == '$second' and d['chat']['resume'] == 'claude --resume $second'"
run log --json; expect_py "[(o['name'], o['chat']['goes_on']) for o in d['operations'][:2]] == [('undo', '$second'), ('redo', d['operations'][0]['chat']['forked'])]"
run events; tail -1 "$scratch/out" >"$scratch/last"; mv "$scratch/last" "$scratch/out"
expect_py "d['type'] == 'session.rewound' and d['session'] == d['goes_on'] == '$second' and d['kept']['turn'] == 2"

# --- what goes on is deleted here: the agent has it; then it is gone
run sessions delete "$second" --yes; expect_rc 0
run resume "$session" --dry-run; expect_rc 0; expect_in_out "claude --resume $second"
mv "$talk/$second.jsonl" "$scratch/away"
run resume "$session" --dry-run; expect_rc 1; expect_in_err "is gone"
run resume "$session" --json; expect_rc 1
mv "$scratch/away" "$talk/$second.jsonl"
run undo; expect_rc 0
run sessions; [[ $out == *"$second"* ]] && fail "an undo made it known again"
run rewind "$session" --to turn:3; expect_rc 0
mv "$talk/$session.jsonl" "$scratch/away"
run undo; expect_rc 0; expect_in_err "is gone"
mv "$scratch/away" "$talk/$session.jsonl"

# --- from elsewhere: the session knows where it worked
cd / || exit 1
run rewind "$session" --to turn:3 --dry-run; expect_rc 0; expect_in_out "from turn 3 on"
run rewind "$second" --to turn:2 --dry-run; expect_rc 1; expect_in_err "no session"
run rewind nobody --to turn:3; expect_rc 1
cd "$root" || exit 1

mv "$root" "$root.away"
run rewind "$session" --to turn:3 --root "$root"; expect_rc 1; expect_in_err "is gone"; expect_in_err "belay rollback latest --root"
# Nor does a preview promise it. Where nothing is left, nothing has to be written.
run rewind "$session" --to turn:3 --root "$root" --dry-run; expect_rc 1; expect_in_err "is gone"; expect_in_err "belay rollback latest"
run rewind "$session" --to turn:1 --root "$root" --dry-run; expect_rc 0; expect_in_out "nothing would be left"
mv "$root.away" "$root"; cd "$root" || exit 1

# --- the end of a turn is where files and conversation agree: nothing was said since
session=33333333-3333-4333-8333-333333333333 parent=null
cd "$root" || exit 1
event SessionStart '"source":"startup"'
call() { # call TURN: one that writes
  event PreToolUse "\"prompt_id\":\"p$1\",\"tool_name\":\"Bash\",\"tool_use_id\":\"w$1\",\"tool_input\":{\"command\":\"echo $1\"}"
  echo "call $1" >>a
  event PostToolUse "\"prompt_id\":\"p$1\",\"tool_name\":\"Bash\",\"tool_use_id\":\"w$1\",\"tool_input\":{\"command\":\"echo $1\"},\"tool_response\":{}"
}
for number in 1 2; do
  event UserPromptSubmit "\"prompt_id\":\"p$number\",\"prompt\":\"wish $number\""
  line user "u$number" "\"role\":\"user\",\"content\":\"wish $number\"" ",\"promptId\":\"p$number\""
  line assistant "a$number" "\"id\":\"n$number\",\"content\":[{\"type\":\"text\",\"text\":\"answer $number\"}]" ""
  call $number
  if [ $number = 2 ]; then
    # It goes on: what the call left is not all.
    run rollback latest --chat --dry-run; expect_rc 0; expect_in_out "from turn 2 on"
  fi
  event Stop
done
run list --tools --json; expect_py "d['checkpoints'][0]['tool']['id'] == 'w2'"
last=$(field "d['checkpoints'][0]['id']") first=$(field "[c['id'] for c in d['checkpoints'] if c['tool'] and c['tool']['id'] == 'w1'][0]")
run rollback "$last" --chat --yes; expect_rc 1; expect_in_err "nothing was said since"
run rollback "$first" --both --dry-run --json; expect_rc 0; expect_py "d['chat']['turn'] == 2"

# --- a prompt that is too long says so, and lines stay lines
long=$(printf 'x%.0s' {1..17000})
event UserPromptSubmit "\"prompt_id\":\"p3\",\"prompt\":\"$long\""
line user u3 "\"role\":\"user\",\"content\":\"$long\"" ',"promptId":"p3"'
event Stop
event UserPromptSubmit '"prompt_id":"p4","prompt":"one\r\ntwo"'
line user u4 '"role":"user","content":"one\r\ntwo"' ',"promptId":"p4"'
event Stop
run rewind "$session" --to turn:4; expect_rc 0; expect_in_out $'one\ntwo'
run rewind "$session" --to turn:3 --json; expect_rc 0; expect_py "d['chat']['prompt_cut'] and len(d['chat']['prompt']) == 16384"
run undo; run rewind "$session" --to turn:3; expect_rc 0; expect_in_err "only the first 16"
run rewind "" --to turn:3; expect_rc 2

# --- nothing was recorded of what was said
printf 'transcripts = "off"\n' >"$BELAY_CONFIG"
session=22222222-2222-4222-8222-222222222222 parent=null
event SessionStart '"source":"startup"'
for number in 1 2; do turn $number; done
run rollback turn:2 --both --yes; expect_rc 1; expect_in_err 'transcripts = "off"'
run show "$session" --json; expect_rc 0; expect_py "len(d['turns']) == 2 and 'off' in d['trouble']"
rm "$BELAY_CONFIG"

# --- a host: ids of turns and messages; what it was told to forget stays so
mkdir -p "$scratch/src/hosted" && cd "$scratch/src/hosted" || exit 1
run on; expect_rc 0
host() { printf '%s' "{\"event\":\"$1\",\"host\":\"acme\",\"session\":\"h\",\"cwd\":\"$PWD\"${2:+,$2}}" | "$BELAY_BIN" hook generic >/dev/null 2>&1; }
for number in 1 2 3 4; do
  host turn.begin "\"turn\":\"t-$number\",\"prompt\":\"wish $number\",\"message\":{\"id\":\"m-$number\",\"index\":$((10 * number))}"
  echo $number >file
  host turn.end "\"turn\":\"t-$number\",\"messages\":[{\"role\":\"assistant\",\"id\":\"a-$number\",\"index\":$((10 * number + 1)),\"text\":\"answer $number\"}]"
  host whatever "\"turn\":\"t-$number\",\"messages\":[{\"role\":\"assistant\",\"text\":\"more $number\"}]"
done
behind_is_done
run show h; expect_rc 0; expect_in_out "answer 2"; expect_in_out "more 4"; expect_in_out "as the host told them"
run sessions transcript h; expect_rc 0; [ "$(printf '%s' "$out" | grep -c '"role"')" = 8 ] || fail "told: $out"
run rewind h --to m-3 --json; expect_rc 0
expect_py "(d['chat']['messages_taken_back'], d['chat']['messages_kept']) == (4, 4)"
expect_py "d['chat']['turn'] == 3 and d['chat']['message'] == 'm-3' and d['chat']['message_index'] == 30 and d['chat']['prompt'] == 'wish 3'"
[ "$(taken h)" = --xx ] || fail "marked: $(taken h)"
run rewind h --to turn:4; expect_rc 1; expect_in_err "was taken back already"; expect_in_err "belay undo"
run rewind h --to t-2; expect_rc 0
run undo; expect_rc 0; expect_in_out "counts again up to turn 2"
run events; tail -1 "$scratch/out" >"$scratch/last"; mv "$scratch/last" "$scratch/out"
expect_py "d['kept'] == {'turn': 2, 'before_message': 'm-3', 'before_index': 30}"
run undo; expect_rc 0; expect_in_out "counts again, all of it"
# A message that was told, and began no turn.
run rewind h --to a-3 --json; expect_rc 0
expect_py "d['chat']['inside_turn'] and d['chat']['turn'] == 3 and d['chat']['message_index'] == 31 and d['chat']['messages_taken_back'] == 4"
run undo; expect_rc 0
run rewind h --to a-9; expect_rc 1; expect_in_err "nothing is known of a message a-9"

# --- what the host said after an older rewind counts; what that took back does not
last_event() { run events; tail -1 "$scratch/out" >"$scratch/last"; mv "$scratch/last" "$scratch/out"; }
say() { host turn.begin "\"turn\":\"t-$1\",\"prompt\":\"wish $1\",\"message\":{\"id\":\"m-$1\",\"index\":$2}"; host turn.end "\"turn\":\"t-$1\""; }
run rewind h --to turn:2; expect_rc 0
say 5 20; say 6 30
run rewind h --to turn:6; expect_rc 0
last_event; expect_py "d['kept'] == {'turn': 5, 'before_message': 'm-6', 'before_index': 30}"
run undo; expect_rc 0; expect_in_out "counts again up to its end, turn 6; what was taken back before stays so"
last_event; expect_py "d['undone'] and d['kept'] == {'turn': 6, 'before_message': None, 'before_index': None}"
[ "$(taken h)" = -xxx-- ] || fail "marked: $(taken h)"
run rewind h --to turn:5; expect_rc 0
last_event; expect_py "d['kept'] == {'turn': 1, 'before_message': 'm-5', 'before_index': 20}"

# --- a session that goes on in its terminal all the same goes on as itself, all of it
mkdir -p "$scratch/src/open" && cd "$scratch/src/open" || exit 1
root=$PWD session=44444444-4444-4444-8444-444444444444 parent=null
run on; expect_rc 0
event SessionStart '"source":"startup"'
for number in 1 2 3; do turn $number; done
run rewind "$session" --to turn:2 --json; expect_rc 0; other=$(field "d['chat']['forked']")
[ "$(goes_on "$session")" = "$other" ] || fail "$(goes_on "$session") goes on"
for number in 4 5; do turn $number; done
[ "$(goes_on "$session")" = "$session" ] || fail "$(goes_on "$session") goes on"
run sessions --json; expect_py "{s['id']: s['goes_on'] for s in d['sessions']} == {'$session': '$session', '$other': '$other'}"
run rollback turn:5 --both --exact --yes; expect_rc 0
run undo; expect_rc 0; expect_in_out "goes on as session $session"
[ "$(goes_on "$session")" = "$session" ] || fail "$(goes_on "$session") goes on"
[ "$(tail -1 a)" = "wish 5" ] || fail "files: $(cat a)"

# --- undone and redone out of order: who really goes on is named
run rewind "$session" --to turn:5 --json; expect_rc 0; older=$(field "d['operation']") dead=$(field "d['chat']['forked']")
run rewind "$session" --to turn:4 --json; expect_rc 0; live=$(field "d['chat']['forked']")
run undo "$older"; expect_rc 0; expect_in_out "goes on as session $live"
run undo; expect_rc 0; expect_in_out "goes on as session $live"
run redo; expect_rc 0; expect_in_out "goes on as session $live"; [[ $out == *"$dead"* ]] && fail "named: $out"
last_event; expect_py "d['goes_on'] == d['session'] == '$live' and d['undone']"
run log --json; expect_py "(d['operations'][0]['name'], d['operations'][0]['chat']['goes_on'], d['operations'][0]['chat']['undone']) == ('redo', '$live', True)"
[ "$(goes_on "$session")" = "$live" ] || fail "$(goes_on "$session") goes on"

finish
