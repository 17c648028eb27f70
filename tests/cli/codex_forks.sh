# Forks that Codex makes: looked at before they are believed, and asked for only when they will be used.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
mkdir -p "$root" "$HOME/bin" && cd "$root" || exit 1
echo 0 >a
run on; expect_rc 0
id=44444444-4444-4444-8444-444444444444
sessions=$HOME/.codex/sessions/2026/11/15
talk=$sessions/rollout-2026-11-15T01-00-00-$id.jsonl; mkdir -p "$sessions"
event() { printf '%s' "{\"session_id\":\"$id\",\"turn_id\":\"t$1\",\"transcript_path\":\"$talk\",\"cwd\":\"$root\",\"hook_event_name\":\"$2\",\"prompt\":\"wish $1\",\"tool_name\":\"Bash\",\"tool_use_id\":\"c$1\",\"tool_input\":{\"command\":\"x\"},\"tool_response\":\"ok\"}" | "$BELAY_BIN" hook codex >/dev/null 2>&1 || fail "hook"; }
item() { printf '{"ordinal":%s,"type":"response_item","payload":{"type":"message","role":"%s","content":[{"type":"%s","text":"%s"}]}}\n' "$n" "$1" "$2" "$3" >>"$talk"; n=$((n + 1)); }
printf '{"ordinal":0,"type":"session_meta","payload":{"id":"%s","cwd":"%s"}}\n' $id "$root" >"$talk"
n=1
for turn in 1 2 3; do
  event $turn UserPromptSubmit; event $turn PreToolUse
  echo $turn >a
  event $turn PostToolUse; event $turn Stop
  printf '{"ordinal":%s,"type":"event_msg","payload":{"type":"task_started","turn_id":"t%s"}}\n' "$n" $turn >>"$talk"; n=$((n + 1))
  item user input_text "wish $turn"; item assistant output_text "answer $turn"
done
cp "$talk" "$scratch/talk"
# codex KEEPS: one that forks the first lines of the file, so many.
codex() {
  cat >"$HOME/bin/codex" <<PY
#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call.get("method") == "initialize": print(json.dumps({"id": call["id"], "result": {}}), flush=True)
    if call.get("method") == "thread/fork":
        new = "$new"
        path = "$talk".replace("$id", new)
        with open(path, "w") as out: out.write("".join(open("$talk").readlines()[:$1]).replace("$id", new))
        print(json.dumps({"id": call["id"], "result": {"thread": {"id": new, "path": path}}}), flush=True)
PY
  chmod +x "$HOME/bin/codex"
}
PATH=$HOME/bin:$PATH

# --- one that forks all there is: a copy of the file is used
new=99999999-9999-4999-8999-999999999999
codex 100
run rollback turn:2 --both --yes --json; expect_rc 0
expect_py "d['chat']['forked'] not in (None, '$new') and any('$new' in w and 'a copy of its file is made' in w for w in d['warnings'])"
copy=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["chat"]["transcript"])' "$scratch/out")
grep -q "wish 1" "$copy" && ! grep -q "wish 2" "$copy" || fail "the copy: $(cat "$copy")"
[ "$(cat a)" = 1 ] || fail "the files"
run undo; expect_rc 0
[ "$(cat a)" = 3 ] || fail "the files, undone"

# --- one that says what it made, and made it: that is used
new=88888888-8888-4888-8888-888888888888
codex 4
run rollback turn:2 --both --yes --json; expect_rc 0
expect_py "d['chat']['forked'] == '$new'"; expect_in_err "waiting for codex"
run undo; expect_rc 0

# --- what will be refused asks for none
new=77777777-7777-4777-8777-777777777777
codex 4
echo mine >a
run rollback turn:2 --both --yes; expect_rc 1; expect_in_err "changed by others since: a"
[ ! -e "${talk/$id/$new}" ] || fail "codex was asked"
[[ $err == *"waiting for"* ]] && fail "waited: $err"
run rollback turn:2 --both --yes --exact --json; expect_rc 0; expect_py "d['chat']['forked'] == '$new'"
run undo; expect_rc 0
# --- and who is not there is not waited for
rm "$HOME/bin/codex"
if ! command -v codex >/dev/null; then
  run rollback turn:2 --both --yes --exact; expect_rc 0; expect_in_err "codex is not in PATH"
  [[ $err == *"waiting for"* ]] && fail "waited: $err"
fi
cmp -s "$talk" "$scratch/talk" || fail "the original is another"
finish
