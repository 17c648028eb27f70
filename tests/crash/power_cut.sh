#!/usr/bin/env bash
# Power cuts on real file systems: a store on a loop image, the file system shut down in
# the middle of an append, a new pack, a checkpoint of several batches or a collection,
# a rollback, undo, redo or recovery; unmounted, mounted again, checked. Needs root and
# loop devices.
#
#   power_cut.sh [cuts [scenario...]]   about that many, over ext4 and xfs; BELAY_SEED
#   POWER_CUT_LEAST: how many must have happened, of the store and of rollbacks each, on
#   both file systems. Without it half of what was asked for.

set -u
cuts=${1:-16}
scenarios=("${@:2}")
[ ${#scenarios[@]} -gt 0 ] || scenarios=(append roll large gc rollback undo redo recovery)
tool=${BELAY_BUILD_DIR:?is set by ctest; or the build directory}/bin/power_cut
skip() {
  echo "skipped: $1"
  exit 77
}
[ -x "$tool" ] || { echo "$tool is not built"; exit 1; }
[ "$(id -u)" = 0 ] || skip "power cuts on loop images need root"
# In a mount namespace of its own: one that somebody else makes meanwhile would hold a
# copy of our mounts, and a file system that was shut down then never goes away.
if [ -z "${BELAY_OWN_MOUNTS-}" ] && unshare -m true 2>/dev/null; then
  BELAY_OWN_MOUNTS=1 exec unshare -m bash "${BASH_SOURCE[0]}" "$@"
fi
seed=${BELAY_SEED:-$((RANDOM * 32768 + RANDOM))}
echo "BELAY_SEED=$seed"

work=$(mktemp -d "${TMPDIR:-/tmp}/belay-cut-XXXXXX") || exit 1
mount_point=$work/m
mkdir "$mount_point"
clean_up() {
  mountpoint -q "$mount_point" && { umount "$mount_point" || umount -l "$mount_point"; }
  for device in $(losetup -n -O NAME -j "$work/image" 2>/dev/null); do
    losetup -d "$device"
  done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# `mount -o loop` frees the loop device again at umount, whatever happens in between.
mount_it() { mount -o loop "$work/image" "$mount_point" 2>>"$work/errors"; }

done_cuts=0
asked=0
declare -A of=([store]=0 [rollback]=0)
failed=0
tried=()
for kind in ext4 xfs; do
  command -v "mkfs.$kind" >/dev/null || { tried+=("no mkfs.$kind"); continue; }
  rm -f "$work/image"
  case $kind in
    ext4) truncate -s 64M "$work/image" && mkfs.ext4 -q -F "$work/image" ;;
    xfs) truncate -s 320M "$work/image" && mkfs.xfs -q -f "$work/image" ;;
  esac >>"$work/errors" 2>&1 || { tried+=("mkfs.$kind failed"); continue; }
  mount_it || { tried+=("$kind cannot be mounted"); continue; }
  here=0
  share=$(((cuts + 2 * ${#scenarios[@]} - 1) / (2 * ${#scenarios[@]})))
  for scenario in "${scenarios[@]}"; do
    case $scenario in
      rollback | undo | redo | recovery) group=rollback ;;
      *) group=store ;;
    esac
    calls=$("$tool" count "$mount_point" "$scenario" "$seed") || { failed=1; continue; }
    rm -rf "${mount_point:?}/count"
    for ((n = 0; n < share; ++n)); do
      asked=$((asked + 1))
      # Spread over the scenario, each in its own stretch, at a random place of it.
      from=$((n * calls / share))
      width=$((calls / share > 0 ? calls / share : 1))
      at=$((1 + from + (seed + n * 7919) % width))
      how=$((n % 4 == 3 ? 1 : 2))
      rm -rf "${mount_point:?}/store"
      sync -f "$mount_point"
      where="$kind $scenario at call $at of $calls, how $how"
      "$tool" run "$mount_point" "$scenario" "$seed" "$at" "$how" "$work/acks" \
        2>"$work/said"
      status=$?
      if [ $status -ne 0 ] && [ $status -ne 3 ]; then
        echo "$where: run ended with $status"
        cat "$work/said"
        failed=1
      fi
      umount "$mount_point" || { echo "$where: cannot unmount"; exit 1; }
      mount_it || { echo "$where: cannot mount again"; exit 1; }
      if ! "$tool" check "$mount_point" "$work/acks" 2>"$work/said"; then
        echo "$where: $(wc -l <"$work/acks") acknowledged"
        head -8 "$work/said"
        failed=1
      fi
      [ $status -eq 0 ] && here=$((here + 1)) && of[$group]=$((of[$group] + 1))
    done
  done
  umount "$mount_point"
  echo "$kind: $here power cuts"
  done_cuts=$((done_cuts + here))
done
[ ${#tried[@]} -eq 0 ] || printf '%s\n' "${tried[@]}"
if [ $done_cuts -eq 0 ] && [ $failed -eq 0 ]; then
  skip "no loop image could be mounted (${tried[*]:-no reason known})"
fi
if [ -n "${POWER_CUT_LEAST-}" ]; then
  for group in store rollback; do
    [ "${of[$group]}" -ge "$POWER_CUT_LEAST" ] && continue
    echo "only ${of[$group]} cuts of the $group happened, not $POWER_CUT_LEAST"
    failed=1
  done
  [ ${#tried[@]} -eq 0 ] || failed=1
elif [ $((done_cuts * 2)) -lt $asked ]; then
  echo "only $done_cuts of $asked cuts happened"
  failed=1
fi
echo "$done_cuts power cuts (${of[store]} of the store, ${of[rollback]} of rollbacks)," \
  "$((failed ? 1 : 0)) failures"
exit $failed
