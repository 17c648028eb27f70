#!/usr/bin/env bash
# 64 processes take checkpoints of 8 roots at once while the files change; some are
# killed. Afterwards: every id that was printed is there, the store verifies with every
# byte read, and the next checkpoint of each root equals one made from nothing.
#
#   many_checkpoints.sh [processes [roots [rounds]]]

set -u
processes=${1:-64} roots=${2:-8} rounds=${3:-1}
belay=${BELAY_BIN:?is not set}
work=$(mktemp -d "${TMPDIR:-/tmp}/belay-checkpoints-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unset BELAY_CONFIG XDG_DATA_HOME XDG_CONFIG_HOME
export HOME=$work BELAY_HOME=$work/store LC_ALL=C
exec 2>"$work/shell"
die() { echo "FAILED: $*"; sed -n 1,20p "$work/errors"; exit 1; }
: >"$work/errors"
: >"$work/killed"

for ((r = 0; r < roots; ++r)); do
  mkdir -p "$work/p$r/src/deep"
  for ((f = 0; f < 20; ++f)); do echo "root $r file $f" >"$work/p$r/src/f$f"; done
  "$belay" on "$work/p$r" -q >/dev/null || die "on"
done

one() {  # number
  local root=$work/p$(($1 % roots)) id
  echo "$1 $RANDOM" >"$root/src/deep/edit$1"
  echo "$1" >>"$root/src/f$(($1 % 20))"
  # Each fourth is killed while it is at work, at a moment of its own.
  if (($1 % 4 == 3)); then
    "$belay" checkpoint -q --root "$root" >"$work/maybe.$1" 2>>"$work/errors" &
    local pid=$! file
    # At work is who has the store's lock file open.
    while kill -0 $pid; do
      for file in "/proc/$pid/fd/"*; do [ "$file" -ef "$BELAY_HOME/lock" ] && break 2; done
    done
    for ((i = 0; i < $1 * 30; ++i)); do :; done
    kill -9 $pid
    wait $pid
    [ $? -ne 137 ] || echo "$1" >>"$work/killed"
    return 0
  fi
  id=$("$belay" checkpoint -q --root "$root" 2>>"$work/errors") || return 1
  echo "$id" >>"$work/acknowledged.$(($1 % roots))"
}

for ((round = 0; round < rounds; ++round)); do
  pids=()
  for ((n = 0; n < processes; ++n)); do
    one $((round * processes + n)) &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || die "a checkpoint failed"; done
done

"$belay" verify --read-data -q >/dev/null 2>>"$work/errors" || die "verify"
total=0
for ((r = 0; r < roots; ++r)); do
  "$belay" list --json --all --tools -n 100000 --root "$work/p$r" >"$work/list" \
    2>>"$work/errors" || die "list"
  while read -r id; do
    grep -q "\"id\":\"$id\"" "$work/list" || die "checkpoint $id of root $r is gone"
    total=$((total + 1))
  done <"$work/acknowledged.$r"
  with=$("$belay" checkpoint --json --root "$work/p$r" | grep -o '"tree":"[0-9a-f]*"')
  fresh=$(BELAY_HOME=$work/fresh$r sh -c '
    "$1" on "$2" -q >/dev/null && "$1" checkpoint --json --root "$2"' - "$belay" \
    "$work/p$r" | grep -o '"tree":"[0-9a-f]*"')
  [ -n "$with" ] && [ "$with" = "$fresh" ] || die "root $r: $with is not $fresh"
done
killed=$(wc -l <"$work/killed")
[ "$killed" -gt 0 ] || die "none was killed while it was at work"
echo "$processes processes on $roots roots, $rounds rounds: $total acknowledged, 0 lost," \
  "$killed killed at work"
