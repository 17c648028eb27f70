# The protected directory itself: its mode comes back; made again, an undo takes it away.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
mkdir p; cd p; echo 1 >a; chmod 750 .; "$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m start; expect_rc 0
chmod 755 .
run rollback start --dry-run; expect_rc 0; expect_in_out "chmod   1 directory"$'\n'"    ./"
run rollback start --yes --json; expect_rc 0
expect_py "[(s['op'], s['path']) for s in d['steps']] == [('chmod', '.')] and d['verified']"
[ "$(stat -c %a .)" = 750 ] || fail "mode $(stat -c %a .)"
run log -- .; expect_rc 0; expect_in_out "modified  ."
run undo; expect_rc 0; expect_in_out "1 directory"; [ "$(stat -c %a .)" = 755 ] || fail "not taken back"
run redo; expect_rc 0; [ "$(stat -c %a .)" = 750 ] || fail "not done again"

cd ..; rm -r p
run --root p rollback start --dry-run; expect_rc 0; expect_in_err "gone"; expect_in_out "mkdir   1 directory"$'\n'"    ./"
[ ! -e p ] || fail "a preview made it"
run --root p rollback start --yes; expect_rc 0; [ "$(stat -c %a p)/$(cat p/a)" = 750/1 ] || fail "not as it was"
run --root p undo; expect_rc 0; [ ! -e p ] || fail "an empty directory is left"
run --root p redo; expect_rc 0; [ "$(stat -c %a p)/$(cat p/a)" = 750/1 ] || fail "not done again"
echo mine >p/mine
run --root p undo; expect_rc 0; expect_in_out ". stayed (not empty: something in it stays)"
[ "$(ls p)" = mine ] || fail "$(ls p)"

# --- an agent whose own command deleted it is not asked who did
root=$PWD/q; mkdir q; echo 1 >q/a; run --root q on; expect_rc 0
event() { printf '%s' "{\"session_id\":\"s\",\"cwd\":\"$root\",\"transcript_path\":\"/none\",\"hook_event_name\":\"$1\",\"prompt_id\":\"p1\"${2:+,$2}}" | "$BELAY_BIN" hook claude >/dev/null 2>&1 || fail "hook: exit $?"; }
event SessionStart '"source":"startup"'; behind_is_done
event UserPromptSubmit '"prompt":"wish"'
event PreToolUse '"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"rm"}'
rm -r q
event PostToolUse '"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"rm"},"tool_response":{}'
event Stop; behind_is_done
run --root q rollback turn:1 --yes; expect_rc 0; [ "$(cat q/a)" = 1 ] || fail "not back"
finish
