# Bundles are written, checked and read in flat memory: less than their content takes.
# BELAY_FULL=1 does it with 2 GB.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

megabytes=80
[ "${BELAY_FULL:-}" = 1 ] && megabytes=2000
limit=49152  # KiB
[ -z "${BELAY_SANITIZED:-}" ] || limit=1000000  # says nothing of ours

# measured WORDS...: runs the program, its peak in $peak (KiB).
measured() {
  peak=$(python3 - "$BELAY_BIN" "$@" <<'P'
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
P
  ) || fail "$*: failed"
  echo "$1 of ${megabytes} MB: peak $peak KiB"
  [ "$peak" -lt "$limit" ] || fail "$1: $peak KiB"
}

mkdir "$scratch/one" "$scratch/two"
cd "$scratch/one" || exit 1
export BELAY_HOME=$scratch/store-one
head -c $((megabytes * 1000000 / 2)) /dev/urandom >a
head -c $((megabytes * 1000000 / 2)) /dev/urandom >b
run on; expect_rc 0
run config max_file_size 4GiB; expect_rc 0
run checkpoint -m big; expect_rc 0
measured export big -o ../big.belay
cd "$scratch/two" || exit 1
export BELAY_HOME=$scratch/store-two
run on; expect_rc 0
measured import ../big.belay
measured import ../big.belay
"$BELAY_BIN" cat big a >"$scratch/out"
cmp -s "$scratch/out" "$scratch/one/a" || fail "it is not the same file"
finish
