# `belay status` says which checkpoints were not complete when their agent went on.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
mkdir -p "$root"; cd "$root" || exit 1
printf 'deadline_ms = 50\n' >"$BELAY_CONFIG"
echo 0 >file
run on; expect_rc 0
run roots --json; expect_rc 0
id=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["roots"][0]["id"])' "$scratch/out")
cat >"$scratch/hold.py" <<'EOF'
import fcntl, struct, subprocess, sys
store, root, command = sys.argv[1], sys.argv[2], sys.argv[3:]
number = 0
for letter in root:
    number = number * 32 + "abcdefghijkmnpqrstuvwxyz23456789".index(letter)
byte = (1 << 32) + (int.from_bytes(number.to_bytes(16, "big")[:8], "little") >> 16)
F_OFD_SETLK = 37
with open(store + "/lock", "r+b") as lock:
    fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, byte, 1, 0))
    sys.exit(subprocess.run(command, close_fds=True).returncode)
EOF
cat >"$scratch/lib" <<'EOF'
tell() { printf '%s' "{\"session_id\":\"$session\",\"cwd\":\"$PWD\",\"hook_event_name\":\"$1\",$2}" | "$BELAY_BIN" hook claude; }
call() { tell "$1" "\"tool_name\":\"Bash\",\"tool_use_id\":\"$2\",\"tool_input\":{\"command\":\"$2\"}"; }
EOF
. "$scratch/lib"
export session=one
# The directory is busy until the agent has gone on, and written.
cat >"$scratch/late" <<'EOF'
. "$1/lib"; call PreToolUse "$2"; echo "$2" >file
EOF
late() {
  python3 "$scratch/hold.py" "$BELAY_HOME" "$id" bash "$scratch/late" "$scratch" "$1" || fail "it could not be held"
  behind_is_done
}

tell SessionStart '"source":"startup"'; behind_is_done
run status; expect_rc 0; expect_silent_err
[[ $out == *partial* ]] && fail "nothing is partial: $out"
late first
run list --tools --json; expect_py "d['checkpoints'][0]['partial']"
run status; expect_rc 0; expect_silent_err
expect_in_out "the last checkpoint is partial"; expect_in_out "deadline_ms"
run status --json; expect_rc 0
expect_py "[f for f in d['failures'] if 'before Bash: first' in f['what'] and '(now 50)' in f['what']]"
call PostToolUse first; behind_is_done
run status; expect_rc 0; expect_in_out "a checkpoint of the last session is partial"
late second; call PostToolUse second; behind_is_done
run status --json; expect_rc 0
expect_py "[f for f in d['failures'] if f['what'].startswith('2 checkpoints of the last session are partial')]"
# Not for ever: another session is at work, and has time.
: >"$BELAY_CONFIG"
export session=two
tell SessionStart '"source":"startup"'; behind_is_done
call PreToolUse third
run status; expect_rc 0
[[ $out == *partial* ]] && fail "another session is at work: $out"
finish
