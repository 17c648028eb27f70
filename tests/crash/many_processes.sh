#!/usr/bin/env bash
# Many processes write into one store, are killed at random and started again, while
# one collects (and is killed too) and one reads without pause. Afterwards: nothing
# acknowledged is lost, verify is clean. `many_processes_full` is the long form.
#
#   many_processes.sh [workers [batches]]       BELAY_SEED repeats the choices

set -u
workers=${1:-8}
batches=${2:-40}
tool=${BELAY_BUILD_DIR:?is set by ctest; or the build directory}/bin/store_worker
[ -x "$tool" ] || { echo "$tool is not built"; exit 1; }
seed=${BELAY_SEED:-$((RANDOM * 32768 + RANDOM))}
echo "BELAY_SEED=$seed"

work=$(mktemp -d "${TMPDIR:-/tmp}/belay-many-XXXXXX") || exit 1
keepers=()  # one shell per process, which starts it again
clean_up() {
  touch "$work/stop"
  for p in "${keepers[@]}"; do kill "$p"; done
  wait
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM
exec 2>"$work/shell"  # bash tells of every process that was killed

# Writers yield, or the one that collects would come to an end a few times in all.
# Runs `tool "$@" <kill seed>` until it ends by itself; kills are counted in killed.<name>.
keep() {
  local name=$1 number=$2 life=0 status child
  shift 2
  [ "$name" = writer ] && renice -n 10 $BASHPID >/dev/null
  trap 'kill -9 $child; exit 1' TERM
  while :; do
    "$tool" "$@" $(((seed * 1000 + number) * 100003 + life)) 2>>"$work/errors" &
    child=$!
    wait $child
    status=$?
    [ $status -eq 137 ] || break
    life=$((life + 1))
    echo x >>"$work/killed.$name"
  done
  [ $status -eq 0 ] || touch "$work/stop"
  exit $status
}

started=$(date +%s%N)
logs=()
writers=()
for ((i = 0; i < workers; ++i)); do
  logs+=("$work/log.$i")
  keep writer "$i" write "$work/store" "$work/log.$i" "$i" "$batches" $((seed + i)) &
  writers+=($!)
done
keep collector 900 collect "$work/store" "$work/collected" "$work/stop" &
keepers=("${writers[@]}" $!)
collector=$!
keep reader 901 read "$work/store" "$work/read" "$work/stop" &
keepers+=($!)
reader=$!

failed=0
for p in "${writers[@]}"; do
  wait "$p" || { echo "a writer failed"; failed=1; }
done
touch "$work/stop"
wait "$collector" || { echo "the collector failed"; failed=1; }
wait "$reader" || { echo "the reader failed"; failed=1; }
keepers=()
"$tool" check "$work/store" "${logs[@]}" 2>>"$work/errors" || failed=1
touch "$work/collected" "$work/read" "$work/killed.writer" "$work/killed.collector"
took=$((($(date +%s%N) - started) / 1000000))
count() { wc -l <"$work/$1"; }
echo "$workers processes x $batches batches in $took ms: $(count killed.writer) writers and" \
  "$(count killed.collector) collectors killed, $(count collected) collections that" \
  "removed something, $(count read) reads and verifies meanwhile"
# A run in which nobody died shows nothing.
[ "$(count killed.writer)" -gt 0 ] || { echo "no writer was killed"; failed=1; }
[ "$workers" -lt 16 ] || [ "$(count collected)" -gt 4 ] || { echo "too few collections"; failed=1; }
[ "$(count read)" -gt 0 ] || { echo "nothing was read meanwhile"; failed=1; }
sort "$work/errors" | uniq -c | sort -rn | head -20
exit $failed
