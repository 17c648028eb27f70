# One damaged file does not block an undo, or a redo, for ever: the rest can be had.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store

# damage FILE: six bytes of the stored copy become zeros.
damage() {
  python3 - "$1" "$BELAY_HOME"/packs/*.pack <<'PY' || fail "no copy of $1 was found"
import sys
wanted = open(sys.argv[1], "rb").read()[1000:1100]
found = False
for name in sys.argv[2:]:
    with open(name, "r+b") as pack:
        at = pack.read().find(wanted)
        if at < 0:
            continue
        pack.seek(at)
        pack.write(bytes(6))
        found = True
sys.exit(0 if found else 1)
PY
}
head -c 5000 /dev/urandom >f; cp f "$scratch/f1"; echo 1 >g
run on; expect_rc 0; run checkpoint -m one; expect_rc 0
head -c 5000 /dev/urandom >f; cp f "$scratch/f2"; echo 2 >g
run rollback one --yes; expect_rc 0

damage "$scratch/f2"
run undo; expect_rc 3; expect_in_err "cannot give back f"; expect_in_err "restore the rest with --skip-damaged"
cmp -s f "$scratch/f1" && [ "$(cat g)" = 1 ] || fail "something was changed"
run undo --skip-damaged; expect_rc 1; expect_in_out "f stayed (the store cannot give it back)"
[ "$(cat g)" = 2 ] || fail "the rest was not brought back"
cmp -s f "$scratch/f1" || fail "f is neither"

# Forward again the same way.
damage "$scratch/f1"; rm f
run redo --exact; expect_rc 3
run redo --exact --skip-damaged --json; expect_rc 1
expect_py "[k['path'] for k in d['kept'] if k['wanted']] == ['f']"
[ "$(cat g)" = 1 ] || fail "not done again"
finish
