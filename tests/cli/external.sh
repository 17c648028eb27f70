# Files outside the project that an edit tool named, turns that are running, and what a
# turn is called in a list: as a person sees them.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
outside=$scratch/work/outside
event() {
  printf '{"session_id":"s1","cwd":"%s","hook_event_name":"%s"%s}' "$root" "$1" "${2:+,$2}" |
    "$BELAY_BIN" hook claude >"$scratch/out" 2>"$scratch/err"
  rc=$?; out=$(cat "$scratch/out"); err=$(cat "$scratch/err")
  [ "$rc" = 0 ] || fail "hook: exit $rc: $err"
}
pre() { event PreToolUse "\"tool_name\":\"Write\",\"tool_use_id\":\"$1\",\"tool_input\":{\"file_path\":\"$2\"}"; }
post() { event PostToolUse "\"tool_name\":\"Write\",\"tool_use_id\":\"$1\",\"tool_input\":{\"file_path\":\"$2\"},\"tool_response\":{}"; }

mkdir -p "$root" "$outside" && cd "$root" || exit 1
echo inside >a; echo before >"$outside/conf"; chmod 640 "$outside/conf"
run on; expect_rc 0
event UserPromptSubmit '"prompt_id":"p1","prompt":"please make the settings right, all of them, and the file a as well"'
pre t1 "$outside/conf"; echo after >"$outside/conf"; chmod 600 "$outside/conf"; post t1 "$outside/conf"
pre t2 "$outside/made"; echo made >"$outside/made"; post t2 "$outside/made"
pre t3 "$root/a"; echo changed >a; post t3 "$root/a"

# --- shown
run show tool:t1; expect_rc 0; expect_in_out "file          $outside/conf"
run show tool:t2 --json; expect_rc 0
expect_py "d['external'] == [{'path': '$outside/made', 'kind': 'absent', 'why': None, 'size': 0}]"
run rollback turn:1 --dry-run; expect_rc 0
expect_in_err "2 files outside the project that edit tools changed are kept; --external-files brings them back: $outside/conf, $outside/made"
expect_in_err "claude is in a turn here ('please make the settings right"
[[ $out == *"$outside"* ]] && fail "they are in the plan: $out"
run rollback turn:1 --dry-run --external-files; expect_rc 0
expect_in_out "  outside 2 files, not in the project
    write   $outside/conf
    delete  $outside/made
"
run rollback turn:1 --dry-run --external-files --json; expect_rc 0
expect_py "[(s['op'], s['path'], s.get('external', False)) for s in d['steps']] == [('write', 'a', False), ('write', '$outside/conf', True), ('delete', '$outside/made', True)]"
run rollback turn:1 --external-files --yes -- a; expect_rc 2

# --- brought back only when asked for
run rollback turn:1 --yes; expect_rc 0
[ "$(cat a "$outside/conf" "$outside/made")" = "inside
after
made" ] || fail "$(cat a "$outside"/*)"
run rollback turn:1 --yes --external-files; expect_rc 0; expect_in_out "$outside/conf"
[ "$(cat "$outside/conf") $(stat -c %a "$outside/conf")" = "before 640" ] || fail "conf: $(cat "$outside/conf")"
[ "$(ls -A "$outside")" = conf ] || fail "left: $(ls -A "$outside")"
run undo; expect_rc 0
[ "$(cat "$outside/conf" "$outside/made") $(stat -c %a "$outside/conf")" = "after
made 600" ] || fail "undone: $(cat "$outside"/*)"
run redo; expect_rc 0; [ "$(cat "$outside/conf")" = before ] || fail "redone"

# --- an edit since is a conflict of the undo
echo mine >"$outside/conf"
run undo; expect_rc 1; expect_in_err "$outside/conf changed since"; [ "$(cat "$outside/conf")" = mine ] || fail "conflict"
run undo --exact; expect_rc 0; [ "$(cat "$outside/conf")" = after ] || fail "exact"

# --- /rollback waits, and is not warned of; when the turn is over nobody is
ask() {
  printf '{"session_id":"s1","cwd":"%s","hook_event_name":"UserPromptSubmit","prompt_id":"px","prompt":"/rollback %s"}' "$root" "$1" |
    "$BELAY_BIN" hook claude >"$scratch/out" 2>"$scratch/err"
  out=$(cat "$scratch/out")
}
echo more >a
ask turn:1; [[ $out == *"is in a turn"* ]] && fail "who asks is warned of: $out"
[[ $out == *'"decision":"block"'* ]] || fail "$out"
run rollback turn:1 --dry-run; expect_in_err "is in a turn"
event Stop
run rollback turn:1 --dry-run; [[ $err == *"is in a turn"* ]] && fail "it is over: $err"

# --- a list: what was asked for has the room, and the terminal's width counts
run list; expect_rc 0
expect_in_out "turn 1: please make the settings ... (1 file, +5)"
while IFS= read -r line; do [ "${#line}" -le 80 ] || fail "${#line} columns: $line"; done <<<"$out"
python3 - "$BELAY_BIN" <<'P' >"$scratch/wide" || fail "no terminal"
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["COLUMNS"] = "120"
    os.execv(sys.argv[1], ["belay", "list"])
data = b""
try:
    while chunk := os.read(fd, 4096):
        data += chunk
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.write(data.decode())
P
grep -q "turn 1: please make the settings right, all of them, and the file a as well (1 file, +5)" "$scratch/wide" ||
  fail "120 columns: $(cat "$scratch/wide")"

# --- in a directory that is protected by itself now: how it comes back is said, and is so
run show tool:t1; expect_in_out "as it was (rollback --external-files):"
echo newer >"$outside/conf"; run on "$outside"; expect_rc 0
run show tool:t1; expect_in_out "(--external-files after: belay off $outside):"; [[ $out == *"as it was (rollback"* ]] && fail "offered: $out"
run rollback turn:1 --external-files --yes --exact; expect_rc 1; expect_in_err "belay off $outside, this rollback again, belay on $outside"
run off "$outside"; run rollback turn:1 --external-files --yes --exact; expect_rc 0; [ "$(cat "$outside/conf")" = before ] || fail "$(cat "$outside/conf")"
run undo; expect_rc 0; [ "$(cat "$outside/conf")" = newer ] || fail "not undone"

# --- erased
run purge "$outside/conf" --yes; expect_rc 0; expect_in_out "$outside/conf is still there"
run rollback turn:1 --dry-run --external-files; expect_in_out "erased by belay purge"
run purge "$scratch/work/elsewhere" --yes; expect_rc 1; expect_in_err "is not below"
finish
