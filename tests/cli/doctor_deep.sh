# A very deep tree: doctor and why take time by its depth, not by the square of it.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
mkdir deep; (cd deep && python3 -c '
import os
for i in range(6000):
    if i % 100 == 0: open("f", "w").close()
    os.mkdir("d"); os.chdir("d")')
"$BELAY_BIN" on -q >/dev/null
# Before: each directory was opened from the root, three times; 20,000 levels took minutes.
if command -v strace >/dev/null && strace -qq -o "$scratch/calls" true 2>/dev/null; then
  strace -f -qq -e trace=openat,openat2 -o "$scratch/calls" "$BELAY_BIN" doctor --json >"$scratch/out"
  calls=$(wc -l <"$scratch/calls")
  [ "$calls" -lt 15000 ] || fail "$calls opens for 6,000 directories"
else
  run doctor --json
fi
expect_py "d['coverage']['files'] == 60 and d['coverage']['directories'] == 6002"
rm -rf deep
finish
