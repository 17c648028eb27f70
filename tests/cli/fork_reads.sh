# A turn whose prompt names the directory, in a fork of it with the conversation: the copy
# names the fork, and it is the same turn (Gemini CLI tells no ids of prompts).
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
root=$scratch/src/project; mkdir -p "$root"; cd "$root" || exit 1
echo one >a; run on; expect_rc 0
dir=$HOME/.gemini/tmp/p; talk=$dir/chats/session-1-s.jsonl; mkdir -p "$dir/chats"; printf '%s\n' "$root" >"$dir/.project_root"
printf '{"sessionId":"s-1","projectHash":"%s"}\n' "$(printf %s "$root" | sha256sum | cut -d' ' -f1)" >"$talk"
event() {  # EVENT MORE
  "$BELAY_BIN" hook gemini <<<"{\"session_id\":\"s-1\",\"cwd\":\"$root\",\"transcript_path\":\"$talk\",\"hook_event_name\":\"$1\"${2:+,$2}}" >/dev/null 2>&1 || fail "hook: $?"
}
event SessionStart '"source":"startup"'
for i in 1 2 3; do
  event BeforeAgent "\"prompt\":\"wish $i in $root/a\""
  printf '{"id":"g%s","type":"user","content":[{"text":"wish %s in %s/a"}]}\n{"id":"h%s","type":"gemini","content":"answer %s"}\n' "$i" "$i" "$root" "$i" "$i" >>"$talk"
  echo "$i" >>a; event AfterAgent
done
behind_is_done
run fork turn:3 "$scratch/fork" --json; expect_rc 0
session=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["chat"]["forked"])' "$scratch/out")
run show "$session" --root "$scratch/fork"; expect_rc 0
[[ $out == *"not recorded"* ]] && fail "a turn is listed twice: $out"
run show "$session" --root "$scratch/fork" --json
expect_py "[t['turn'] for t in d['turns']] == [1, 2]"
expect_py "[[m['role'] for m in t['messages']] for t in d['turns']] == [['assistant'], ['assistant']]"
# In the source nothing of it is else than it was.
run show s-1 --json; expect_py "[t['turn'] for t in d['turns']] == [1, 2, 3]"
finish
