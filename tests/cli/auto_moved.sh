# A project directory that was renamed, with `auto = true`: its history goes on where it is
# certain that it is the same, and only there. And what else a session works in then.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
printf 'auto = true\n' >"$BELAY_CONFIG"
top=$(pwd -P)
prompt() {  # SESSION DIR
  printf '{"session_id":"%s","cwd":"%s","hook_event_name":"UserPromptSubmit","prompt_id":"p%s","prompt":"in %s"}' "$1" "$2" "$1" "$1" |
    "$BELAY_BIN" hook claude >"$scratch/out" 2>&1
  [ "$?$(cat "$scratch/out")" = 0 ] || fail "not silent: $(cat "$scratch/out")"
  behind_is_done
}
roots() { run roots --json; expect_py "sorted(r['root'] for r in d['roots']) == sorted([$1])"; }
mkdir -p one/sub; echo 1 >one/a; echo 2 >one/sub/b
prompt s1 "$top/one"; roots "'$top/one'"
sleep 0.1; run checkpoint -q --root one  # times that are no longer of this moment
mv one two
prompt s2 "$top/two"; roots "'$top/two'"
run list --json --root two; expect_py "[c['session'] for c in d['checkpoints'] if c['kind'] == 'auto'] == ['s2', 's1']"
# It is not its number alone that counts: another directory may have been given that.
# (Some file systems give another one each time; then nothing can be mistaken.)
for try in 1 2 3 4 5 6 7 8; do
  number=$(stat -c %i two); rm -rf two; mkdir other; echo 1 >other/a
  [ "$(stat -c %i other)" = "$number" ] && break
  mv other two; prompt "t$try" "$top/two"; run checkpoint -q --root two
done
[ -d other ] || mv two other
prompt s3 "$top/other"
run list --json --root other; expect_py "not any(c['session'] == 's1' for c in d['checkpoints'])"
# A copy is a directory of its own, whatever is in it.
cp -a other copy; prompt s4 "$top/copy"
run list --json --root copy; expect_py "[c['session'] for c in d['checkpoints']] == ['s4']"
# What hooks began where it was moved may go in one step, which the hint is.
mkdir old; echo 1 >old/a; run on old; run checkpoint -q --root old -m "by hand"
mv old new; printf 'auto = false\n' >"$BELAY_CONFIG"
run on new; prompt s5 "$top/new"; sleep 0.05
run on new --moved-from "$top/old"; expect_rc 1; expect_in_err "history of its own"
hint=${err##*may go: }
PATH=$(dirname "$BELAY_BIN"):$PATH bash -c "$hint" >"$scratch/out" 2>&1 </dev/null || fail "the hint is refused: $hint: $(cat "$scratch/out")"
run list --root new; expect_in_out "by hand"
# A history with a person's part in it is not offered to be deleted unasked.
mkdir old2; echo 1 >old2/a; run on old2; run checkpoint -q --root old2; mv old2 new2
run on new2; run checkpoint -q --root new2 -m mine
run on new2 --moved-from "$top/old2"; expect_rc 1; expect_in_err "if that history may go: belay off --forget $top/new2; then: belay on $top/new2 --moved-from $top/old2"

# --- in the middle of a session: it goes on where its directory was moved to
printf 'auto = true\n' >"$BELAY_CONFIG"
call() {  # EVENT DIR ID
  printf '{"session_id":"m","cwd":"%s","hook_event_name":"%s","prompt_id":"pm","tool_name":"Bash","tool_use_id":"%s","tool_input":{"command":"%s"}}' "$2" "$1" "$3" "$3" |
    "$BELAY_BIN" hook claude >"$scratch/out" 2>&1
  [ "$?$(cat "$scratch/out")" = 0 ] || fail "not silent: $(cat "$scratch/out")"
  behind_is_done
}
known() { run roots --json; expect_py "('$1' in [r['root'] for r in d['roots']]) == $2"; }
mkdir -p p1/sub; echo 1 >p1/a; echo 1 >p1/sub/b; sleep 0.1; prompt m "$top/p1"
call PreToolUse "$top/p1" move; echo 22 >p1/a; mv p1 p2; call PostToolUse "$top/p2/sub" move
known "$top/p2" True; known "$top/p1" False
call PreToolUse "$top/p2/sub" write; echo 22 >p2/sub/b; call PostToolUse "$top/p2/sub" write
run list --tools --json --root p2; expect_py "[c['description'] for c in d['checkpoints']][::-1] == ['in m', 'before Bash: move', 'after Bash: move', 'before Bash: write', 'after Bash: write']"
run rollback turn:1 --session m --root p2 --yes; expect_rc 0; [ "$(cat p2/a p2/sub/b)" = "1
1" ] || fail "not as before the turn: $(cat p2/a p2/sub/b)"
# Of calls that are made at once each finds it where it is by then.
cat >"$scratch/hold.py" <<'EOF'
import fcntl, hashlib, struct, subprocess, sys
store, name, command = sys.argv[1], sys.argv[2], sys.argv[3:]
byte = (1 << 50) + (int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") >> 16)
F_OFD_SETLK = 37
with open(store + "/lock", "r+b") as lock:
    fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, byte, 1, 0))
    sys.exit(subprocess.run(command, close_fds=True).returncode)
EOF
cat >"$scratch/both" <<'EOF'
for id in one other; do
  printf '%s' "{\"session_id\":\"m\",\"cwd\":\"$1\",\"hook_event_name\":\"PreToolUse\",\"agent_id\":\"$id\",\"tool_name\":\"Bash\",\"tool_use_id\":\"$id\",\"tool_input\":{\"command\":\"$id\"}}" | "$BELAY_BIN" hook claude &
done
sleep 0.4  # both are at it
EOF
mv p2 p2b
python3 "$scratch/hold.py" "$BELAY_HOME" "root $top/p2b" bash "$scratch/both" "$top/p2b" >"$scratch/out" 2>&1 || fail "$(cat "$scratch/out")"
behind_is_done
run list --tools --json --root p2b; expect_py "sorted(c['description'] for c in d['checkpoints'][:2]) == ['before Bash: one', 'before Bash: other']"
mv p2b p2
# One that is gone, and not there, is no reason to protect what is.
mkdir plain; mv p2 p3; rm -rf p3; call PreToolUse "$top/plain" gone; known "$top/plain" False

# --- a second project is one, too; a directory that a shell stands in is not
mkdir first second place; echo 1 >first/a; echo 1 >second/o; git init -q second; printf '{"session_id":"m","cwd":"%s","hook_event_name":"SessionStart","source":"resume"}' "$top/first" | "$BELAY_BIN" hook claude; behind_is_done
call PreToolUse "$top/place" b0; known "$top/place" False
call PreToolUse "$top/second" b1; known "$top/second" True
echo 22 >second/o; call PostToolUse "$top/second" b1
run rollback tool:b1 --session m --root second --yes; expect_rc 0; [ "$(cat second/o)" = 1 ] || fail "what was there is lost"
# What the session is at work in is not protected a second time by what is around it.
mkdir -p around/inner around/beside; git init -q around; echo 1 >around/inner/a; run on around/inner
printf '{"session_id":"m","cwd":"%s","hook_event_name":"SessionStart","source":"resume"}' "$top/around/inner" | "$BELAY_BIN" hook claude; behind_is_done
call PreToolUse "$top/around/beside" b2; known "$top/around" False
# --- a session that begins in the home directory works in what it edits there; its turns are known from then on
mkdir "$HOME/r"; git init -q "$HOME/r"; echo 1 >"$HOME/r/f"
home() { printf '{"session_id":"h","cwd":"%s","hook_event_name":"%s",%s}' "$HOME" "$1" "$2" | "$BELAY_BIN" hook claude; behind_is_done; }
write='"prompt_id":"h1","tool_name":"Write","tool_use_id":"w1","tool_input":{"file_path":"'$HOME/r/f'"}'
shell='"prompt_id":"h2","tool_name":"Bash","tool_use_id":"w2","tool_input":{"command":"x"}'
home SessionStart '"source":"startup"'; home UserPromptSubmit '"prompt_id":"h1","prompt":"fix f"'; known "$HOME" False; known "$HOME/r" False
home PreToolUse "$write"; known "$HOME/r" True; echo 2 >"$HOME/r/f"; home PostToolUse "$write"; home Stop '"prompt_id":"h1"'
home UserPromptSubmit '"prompt_id":"h2","prompt":"now a test"'
home PreToolUse "$shell"; echo 3 >"$HOME/r/g"; home PostToolUse "$shell"; home Stop '"prompt_id":"h2"'; known "$HOME" False
run rollback turn:1 --session h --root "$HOME/r" --yes; expect_rc 0; expect_in_out "now a test"
[ "$(cat "$HOME/r/f")" = 2 ] && [ ! -e "$HOME/r/g" ] || fail "not as before the turn: $(ls "$HOME/r")"
run rollback tool:w1 --session h --root "$HOME/r" --yes; expect_rc 0; [ "$(cat "$HOME/r/f")" = 1 ] || fail "the edit is in no checkpoint"
printf 'auto = false\n' >"$BELAY_CONFIG"
mkdir third; git init -q third; call PreToolUse "$top/third" b3; known "$top/third" False
finish
