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
declare -A pid   # worker number -> process
collector=
reader=
clean_up() {
  touch "$work/stop"
  for p in "${pid[@]}" $collector $reader; do kill -9 "$p" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

exec 2>"$work/shell"  # bash tells of every process that was killed
life=0
kill_seed() { echo $((seed * 100003 + life)); }
start() {
  life=$((life + 1))
  "$tool" write "$work/store" "$work/log.$1" "$1" "$batches" "$((seed + $1))" \
    "$(kill_seed)" 2>>"$work/errors" &
  pid[$1]=$!
}
start_collector() {
  life=$((life + 1))
  "$tool" collect "$work/store" "$work/collected" "$work/stop" "$(kill_seed)" \
    2>>"$work/errors" &
  collector=$!
}
started=$(date +%s%N)
logs=()
for ((i = 0; i < workers; ++i)); do
  logs+=("$work/log.$i")
  start "$i"
done
start_collector
"$tool" read "$work/store" "$work/read" "$work/stop" 2>>"$work/errors" &
reader=$!

worker_kills=0
collector_kills=0
failed=0
# Whoever was killed is started again; the collector as long as there are writers.
while [ ${#pid[@]} -gt 0 ] && [ $failed -eq 0 ]; do
  wait -n -p ended
  status=$?
  if [ "$ended" = "$reader" ]; then
    echo "the reader ended early with $status"
    failed=1
  elif [ "$ended" = "$collector" ]; then
    if [ $status -eq 137 ]; then
      collector_kills=$((collector_kills + 1))
      start_collector
    else
      echo "the collector ended early with $status"
      failed=1
    fi
  else
    for i in "${!pid[@]}"; do
      [ "${pid[$i]}" = "$ended" ] || continue
      case $status in
        0) unset "pid[$i]" ;;
        137) worker_kills=$((worker_kills + 1)) && start "$i" ;;
        *) echo "worker $i ended with $status" && failed=1 && unset "pid[$i]" ;;
      esac
    done
  fi
done
if [ $failed -ne 0 ]; then
  for p in "${pid[@]}"; do kill -9 "$p" && wait "$p"; done
  pid=()
fi
touch "$work/stop"
for p in "$collector" "$reader"; do
  wait "$p"
  status=$?
  [ $status -eq 0 ] || [ $status -eq 137 ] || [ $status -eq 127 ] || failed=1
done
collector=
reader=
"$tool" check "$work/store" "${logs[@]}" >"$work/sum" 2>>"$work/errors" || failed=1
cat "$work/sum"
touch "$work/collected" "$work/read"
took=$((($(date +%s%N) - started) / 1000000))
echo "$workers processes x $batches batches in $took ms: $worker_kills writers and" \
  "$collector_kills collectors killed, $(wc -l <"$work/collected") collections that" \
  "removed something, $(wc -l <"$work/read") reads and verifies meanwhile"
if [ -s "$work/errors" ]; then
  grep -v ': line .* Killed' "$work/errors" | sort | uniq -c | sort -rn | head -20
  grep -q '^wrong' "$work/errors" && failed=1
fi
exit $failed
