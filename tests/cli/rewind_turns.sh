# Turns by their numbers after a conversation was taken back, and what cannot be asked of a conversation; one that is kept in the directory itself.
. "$(dirname "$0")/talk.bash"

echo 0 >a
printf 'on_outside = "exact"\n' >"$BELAY_CONFIG"
run on; expect_rc 0
# turn NUMBER WISH: prompt, an edit, an answer.
turn() {
  event UserPromptSubmit "\"prompt_id\":\"p$2\",\"prompt\":\"wish $2\""
  line user "u$2" "\"role\":\"user\",\"content\":\"wish $2\"" ",\"promptId\":\"p$2\""
  line assistant "a$2" "\"id\":\"n$2\",\"content\":[{\"type\":\"text\",\"text\":\"answer $2\"}]" ""
  echo "$2" >a
  event Stop
}

event SessionStart '"source":"startup"'
for number in 1 2 3; do turn $number $number; done

# --- the conversation first, then the code: the numbers are those of `belay list`
run rollback turn:2 --chat --yes --json; expect_rc 0; second=$(field "d['chat']['forked']")
run list; expect_in_out "turn 2: wish 2"
run rollback turn:2 --yes; expect_rc 0; expect_in_err "turn 2 of session $first"
[ "$(cat a)" = 1 ] || fail "a: $(cat a)"
run undo; expect_rc 0
# With both another turn may be chosen.
run undo; expect_rc 0
run rollback turn:2 --both --yes; expect_rc 0; [ "$(cat a)" = 1 ] || fail "a: $(cat a)"
run rollback turn:3 --both --yes --json; expect_rc 0; expect_py "d['chat']['session'] == '$first' and d['chat']['turn'] == 3"
second=$(field "d['chat']['forked']")
[ "$(cat a)" = 2 ] || fail "a: $(cat a)"
# What goes on has a turn of its own: that is meant, and the other one named.
session=$second parent=$(tail -1 "$talk/$second.jsonl" | python3 -c 'import json,sys; print(json.dumps(json.loads(sys.stdin.readline())["uuid"]))')
event SessionStart '"source":"resume"'
turn 3 other
run show turn:3 --json; expect_rc 0; expect_py "d['session'] == '$second' and d['prompt'] == 'wish other'"; expect_in_err "--session $first"
run show turn:3 --session "$first" --json; expect_rc 0; expect_silent_err; expect_py "d['session'] == '$first' and d['prompt'] == 'wish 3'"
run show turn:2; expect_rc 0; expect_silent_err
run rewind "$second" --to turn:4; expect_rc 1; expect_in_err "has no turn 4"
run rewind "$second" --to turn:3 --json; expect_rc 0; third=$(field "d['chat']['forked']")
run rewind "$third" --to turn:3; expect_rc 1; expect_in_err "belay rewind $second --to turn:3"
run rollback turn:3 --session "$third"; expect_rc 1; expect_in_err "--session $second"
run undo; expect_rc 0
# The conversation of a turn whose checkpoint is gone is had by the turn itself
session=99999999-9999-4999-8999-999999999999 parent=null
event SessionStart '"source":"startup"'
turn 1 kept; turn 2 gone
run show turn:2 --json; expect_rc 0; run delete "$(field "d['id']")" --yes; expect_rc 0
run rollback turn:2 --chat --dry-run; expect_rc 1; expect_in_err "belay rewind $session --to turn:2"
run rollback turn:2 --dry-run; expect_rc 1; case $err in *"belay rewind"*) fail "files are not in a conversation: $err";; esac
run rewind "$session" --to turn:2 --dry-run; expect_rc 0; expect_silent_err
# A file that is empty by now: what was said is in the copy, and that is said.
behind_is_done; cp "$talk/$session.jsonl" "$scratch/said"; : >"$talk/$session.jsonl"
run rewind "$session" --to turn:2 --dry-run; expect_rc 0; expect_in_err "$session.jsonl, is empty: "; expect_in_err "from the copy that was kept"
run rollback turn:1 --session "$session" --both --dry-run; expect_rc 0; expect_in_err "from the copy that was kept"
# Whatever is there instead is named.
at() { run rewind "$session" --to turn:2 --dry-run; expect_rc 0; expect_in_err "$session.jsonl, $1: what was said is from the copy"; rm -rf "$talk/$session.jsonl"; }
rm "$talk/$session.jsonl"; at "is gone"
mkfifo "$talk/$session.jsonl"; at "is a FIFO"
mkdir "$talk/$session.jsonl"; at "is a directory"
ln -s "$scratch/nowhere" "$talk/$session.jsonl"; at "is a symlink to what is not there"
ln -s "$scratch" "$talk/$session.jsonl"; at "is a directory"
if [ "$(id -u)" != 0 ]; then
  cp "$scratch/said" "$talk/$session.jsonl"; chmod 000 "$talk/$session.jsonl"; at "cannot be read (Permission denied)"
fi
cp "$scratch/said" "$talk/$session.jsonl"
# One that grew out of none.
session=44444444-4444-4444-8444-444444444444 parent=null
event SessionStart '"source":"startup"'
turn 1 new
run rollback turn:3; expect_rc 1; expect_in_err "has one: --session $second"
run rollback turn:2x; expect_rc 1; expect_in_err "turn:2x names no turn"
run rewind "$first" --to turn:2x; expect_rc 2; expect_in_err "turn:2x names no turn"
run rewind "$first" --to turn:99999999999999999999; expect_rc 2; expect_in_err "no turn has such a number"
run rewind "$first" --to turn:2 --to turn:1; expect_rc 2; expect_in_err "--to is given twice"
run rewind "$first" --to "$(head -c 5000 /dev/zero | tr '\0' x)"; expect_rc 2; expect_in_err "no id is 5000 bytes long"; [ "${#err}" -lt 400 ] || fail "echoed: ${#err} bytes"
run resume ''; expect_rc 2; expect_in_err "no session is named"
run rewind "$first" --to turn:0; expect_rc 2; expect_in_err "turns are counted from 1"

# --- said as it is: a prompt that is not written down, one message, nothing left, from anywhere
event UserPromptSubmit '"prompt_id":"px","prompt":"refused"'
run rewind "$session" --to turn:2; expect_rc 1; expect_in_err "has no turn 2: refused"; expect_in_err "not written it down"
run rewind "$session" --to anew; expect_rc 0; expect_in_out "it is kept, and"; run undo; expect_rc 0
run rewind "$first" --to turn:1 --dry-run; expect_rc 0; expect_in_out "nothing would be left of it"
cd / || exit 1
run show "$first"; expect_rc 0; expect_in_out "wish 3"
run show --session "$first"; expect_rc 0
run show nothing; expect_rc 1; expect_in_err "is not protected"
run summarize "$first" --to turn:3 --dry-run; expect_rc 0; expect_in_out "wish 2"
run resume -- "$first" --dry-run; expect_rc 1; expect_in_err "run claude"
run resume --dry-run -- "$first" -- -p hello; expect_rc 0; expect_in_out "-p hello"
cd "$root" || exit 1
run show 11111111; expect_rc 0; expect_in_out "session $first"
run log; expect_in_out "rewind to turn 3"; [[ $out == *"(0 paths)"* ]] && fail "no path: $out"
expect_in_out "conversation)"
run undo --help; expect_in_out "conversation"

# --- what is about files does not go with a conversation
ls "$talk" >"$scratch/before"
for words in "--exact" "--keep-outside" "--git reset" "--git revert" "--switch" "--delete-ignored" "--preserve-times" "--external-files" "--skip-damaged" "--hunks 1"; do
  run rollback turn:2 --session "$first" --chat --yes $words; expect_rc 2
done
run rollback turn:2 --session "$first" --chat --yes --exact; expect_in_err "--exact does not go with it"
run rollback turn:2 --session "$first" --chat --yes -- a; expect_rc 2; expect_in_err "paths do not go with --chat"
run rollback turn:2 --session "$first" --both --yes -- a; expect_rc 2; expect_in_err "paths do not go with --both"
run rollback turn:2 --session "$first" --chat --dry-run -- nosuch; expect_rc 2
ls "$talk" | cmp -s - "$scratch/before" || fail "something was made"
run rollback turn:2 --session "$first" --chat --git keep --dry-run; expect_rc 0
run rollback turn:2 --session "$first" --code --dry-run -- a; expect_rc 0

# --- kept in the directory itself: refused, also in a preview; a fork has the files
root=$scratch/src/inside
mkdir "$root" && cd "$root" || exit 1
talk=$root session=55555555-5555-4555-8555-555555555555 parent=null
run on; expect_rc 0
event SessionStart '"source":"startup"'
turn 1 1; turn 2 2
for words in --dry-run --yes; do
  for scope in --chat --both; do
    run rollback turn:2 $scope $words; expect_rc 1; expect_in_err "is kept in the directory itself"; expect_in_err "the files alone: --code"
  done
done
for words in --dry-run ""; do
  run rewind "$session" --to turn:2 $words; expect_rc 1; expect_in_err "is kept in the directory itself"
  [[ $err == *--code* ]] && fail "rewind has no --code: $err"
  run summarize "$session" --to turn:2 $words; expect_rc 1; expect_in_err "is kept in the directory itself"
done
run fork turn:2 "$scratch/src/forked"; expect_rc 0; expect_in_err "the conversation does not go along"; expect_in_err "is kept in the directory itself"
[[ $err == *"beside the original"* ]] && fail "nothing is there: $err"
[ "$(cat "$scratch/src/forked/a")" = 1 ] || fail "the files of the fork"
run fork turn:2 "$scratch/src/forked2" --json; expect_rc 0; expect_py "d['chat'] is None and 'does not go along' in d['warnings'][0]"

for turn in 1 2; do run rollback turn:$turn --both --exact --yes; expect_rc 1; expect_in_err "is kept in the directory itself"; done
# Or its file is a link into it.
mv "$talk/$session.jsonl" "$root/chat.jsonl"; talk=$scratch/agent/linked; mkdir -p "$talk"
ln -s "$root/chat.jsonl" "$talk/$session.jsonl"
turn 3 3; cp "$root/chat.jsonl" "$scratch/chat"
run rollback turn:3 --both --exact --yes; expect_rc 1; expect_in_err "is kept in the directory itself, $root/chat.jsonl"
run rewind "$session" --to turn:3; expect_rc 1; expect_in_err "is kept in the directory itself"
run summarize "$session" --to turn:3; expect_rc 1; expect_in_err "is kept in the directory itself"
run fork turn:3 "$scratch/src/forked3"; expect_rc 0; expect_in_err "is kept in the directory itself"
cmp -s "$root/chat.jsonl" "$scratch/chat" || fail "the original is another"

# --- an agent whose conversation cannot be taken back: said in JSON, too
mkdir "$scratch/src/reasonix" && cd "$scratch/src/reasonix" || exit 1
run on; expect_rc 0
for number in 1 2; do
  printf '{"event":"UserPromptSubmit","sessionId":"rx","cwd":"%s","prompt":"wish %s"}' "$PWD" $number | "$BELAY_BIN" hook reasonix >/dev/null 2>&1
  echo $number >a
done
run rollback turn:2 --both --dry-run --json; expect_rc 0; expect_py "d['chat'] is None and 'cannot be taken back from outside; the files alone' in d['warnings'][0]"
run rollback turn:2 --both --yes --json; expect_rc 0; expect_py "d['chat'] is None and 'conversation of reasonix cannot' in d['warnings'][0]"
run undo; expect_rc 0
run rollback turn:2 --both --yes; expect_rc 0; expect_in_err "the files alone are rolled back"
run checkpoint -m mine; expect_rc 0
run rollback mine --chat --yes --json; expect_rc 1; expect_json

finish
