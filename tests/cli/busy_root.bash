# Sourced behind lib.bash: a protected project ($root, $id) whose hooks wait for 50 ms, and
# hold.py, which keeps a root busy while a command runs: hold.py STORE ID COMMAND...

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
