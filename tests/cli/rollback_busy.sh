# While one rollback is at work, a second is told who is at it.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
echo one >a; "$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m start -q; expect_rc 0
echo two >a
root=$("$BELAY_BIN" roots --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["roots"][0]["id"])')

# Somebody who holds the lock of the root, as a rollback does, until told to go.
mkfifo "$scratch/ready" "$scratch/go"
python3 - "$BELAY_HOME" "$root" "$scratch" <<'PY' &
import fcntl, os, struct, sys
store, root, scratch = sys.argv[1:]
lock = os.open(store + "/lock", os.O_RDWR)
F_OFD_SETLK = 37
# Every byte that may stand for a root.
fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 1 << 32, 0, 0))
os.makedirs(store + "/journal", mode=0o700, exist_ok=True)
with open(store + "/journal/" + root + ".at-work", "w") as note:
    note.write("%d rollback\n" % os.getpid())
open(scratch + "/ready", "w").close()
open(scratch + "/go").close()
PY
holder=$!
: <"$scratch/ready"
run rollback start --yes --json; expect_rc 4  # after ten seconds of waiting
expect_py "'rollback (process $holder)' in d['error']['message']"
expect_in_err "waiting for belay rollback (process $holder)"
[ "$(cat a)" = two ] || fail "a refused rollback changed something"
# Who only looks does not wait (ten seconds), and hears of it.
: >"$BELAY_HOME/journal/$root"
for command in list status "log -- a"; do
  out=$(timeout 8 "$BELAY_BIN" $command 2>"$scratch/err") || [ "$command" = status ] || fail "$command: $?"
  err=$(cat "$scratch/err")
  [[ $out$err == *"rollback (process $holder)"* ]] || fail "$command: $out$err"
  # Nothing is wrong, and nothing is called so.
  [ "$command" != status ] || [[ $out == *"Note ("* && $out != *Problem* ]] || fail "status: $out"
done
rm "$BELAY_HOME/journal/$root"
# Whoever waits says for whom, and goes on when they are done.
"$BELAY_BIN" rollback start --yes 2>&1 >"$scratch/out" | while read -r line; do
  echo "$line" >>"$scratch/said"
  [[ $line != *"waiting for"* ]] || : >"$scratch/go"
done
rc=${PIPESTATUS[0]}; expect_rc 0
grep -q "waiting for belay rollback (process $holder)" "$scratch/said" || fail "silence: $(cat "$scratch/said")"
grep -q "belay rollback (process $holder) was at work here" "$scratch/said" || fail "not told: $(cat "$scratch/said")"
wait $holder
[ "$(cat a)" = one ] || fail "it was not done afterwards"
finish
