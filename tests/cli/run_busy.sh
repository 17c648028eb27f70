# belay run beside somebody who is at work on the root: it waits as long as run_wait_ms
# says, and goes on. Signals go to the program, its exit code comes back; a demo that is
# stopped leaves nothing.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
echo one >a; "$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m start -q; expect_rc 0
root=$("$BELAY_BIN" roots --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["roots"][0]["id"])')
"$BELAY_BIN" config -q run_wait_ms 100
mkfifo "$scratch/ready" "$scratch/go"
python3 - "$BELAY_HOME" "$root" "$scratch" <<'PY' &
import fcntl, os, struct, sys
store, root, scratch = sys.argv[1:]
lock = os.open(store + "/lock", os.O_RDWR)
F_OFD_SETLK = 37
fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1 << 32, 0, 0))
os.makedirs(store + "/journal", mode=0o700, exist_ok=True)
open(scratch + "/ready", "w").close()
open(scratch + "/go").close()
PY
holder=$!
: <"$scratch/ready"
began=$SECONDS
run run -- sh -c 'echo ran; exit 5'; expect_rc 5; expect_out "ran
"
expect_in_err "going on without a complete checkpoint from before"; expect_in_err "at work"
# The same while a rollback of another process is under way: its journal is there.
: >"$BELAY_HOME/journal/$root"
run run -- sh -c 'echo ran; exit 6'; expect_rc 6; expect_out "ran
"
expect_in_err "at work"
[ $((SECONDS - began)) -lt 9 ] || fail "waited $((SECONDS - began)) s with run_wait_ms = 100"
rm "$BELAY_HOME/journal/$root"
: >"$scratch/go"; wait $holder
run run -- sh -c 'exit 3'; expect_rc 3
[[ $err == *"going on without"* ]] && fail "nobody was at work: $err"

# Signals. What somebody sends is passed on; Ctrl-C comes to both from the terminal, and
# what the program makes of it counts.
for signal in TERM HUP INT QUIT; do
  "$BELAY_BIN" run -- sh -c 'trap "echo got >got; exit 42" TERM HUP INT QUIT; : >"$0"; while read -r _; do :; done; exit 9' "$scratch/ready" <"$scratch/go" >/dev/null 2>&1 &
  pid=$!
  exec 9>"$scratch/go"; : <"$scratch/ready"
  kill -$signal $pid
  wait $pid; rc=$?; expect_rc 42
  exec 9>&-  # the program goes now if it has not
  [ -e got ] || fail "$signal was not passed on"; rm -f got
done
python3 - "$BELAY_BIN" <<'PY' || fail "Ctrl-C: exit $?"
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], [sys.argv[1], "run", "--", "sh", "-c", 'trap "exit 43" INT; echo on; while read -r _; do :; done; exit 9'])
said = b""
while b"on" not in said:
    said += os.read(terminal, 4096)
os.write(terminal, b"\x03")
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass
sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 43 else 1)
PY
run list --json; expect_py "d['checkpoints'][0]['description'].startswith('after sh')"

# A demo that is stopped.
mkdir "$scratch/tmp"; mkfifo "$scratch/demo"
for signal in INT TERM; do
  TMPDIR=$scratch/tmp "$BELAY_BIN" demo --json >/dev/null 2>"$scratch/demo" &
  pid=$!
  exec 8<"$scratch/demo"; read -r _ <&8  # it is at work
  kill -$signal $pid
  cat <&8 >/dev/null; exec 8<&-
  wait $pid; rc=$?; expect_rc 1
  [ -z "$(ls -A "$scratch/tmp")" ] || fail "$signal left $(ls -A "$scratch/tmp")"
done
# Of the terminal it comes once, not once more from us.
python3 - "$BELAY_BIN" <<'PY' || fail "Ctrl-C twice: exit $?"
import os, pty, signal, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], [sys.argv[1], "run", "--", sys.executable, "-c", """
import signal, sys
count = 0
def heard(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, heard)
print("on", flush=True)
sys.stdin.readline()
sys.exit(40 + count)
"""])
said = b""
while b"on" not in said:
    said += os.read(terminal, 4096)
os.write(terminal, b"\x03")
while b"^C" not in said:
    said += os.read(terminal, 4096)
os.write(terminal, b"\n")
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(0 if code == 41 else code or 1)
PY

finish
