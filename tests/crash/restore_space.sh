#!/usr/bin/env bash
# Rollbacks on disks that are full, or turn read-only in the middle: a tmpfs swept from
# nothing to enough, bytes in steps of 4 KiB and inodes one by one, with the project on
# it and the store elsewhere, then both on it; and an ext4 image whose disk fails when
# it is flushed. Each ends refused with nothing changed, or done and right; nothing is
# lost. Needs root.
#
#   restore_space.sh [step]     every step-th size (1: all); default: a slice

set -u
step=${1:-7}
: "${BELAY_BIN:?is the program; set by ctest}"
skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "mounting a tmpfs needs root"
# In a mount namespace of its own: one that somebody else makes meanwhile would hold a
# copy of our mounts, and a file system that was shut down then never goes away.
if [ -z "${BELAY_OWN_MOUNTS-}" ] && unshare -m true 2>/dev/null; then
  BELAY_OWN_MOUNTS=1 exec unshare -m bash "${BASH_SOURCE[0]}" "$@"
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/belay-space-XXXXXX") || exit 1
disk=$work/disk
mkdir "$disk" "$work/backing" "$work/home"
clean_up() {
  cd /
  for at in "$disk" "$work/backing"; do
    mountpoint -q "$at" && { umount "$at" || umount -l "$at"; }
  done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
export HOME=$work/home LC_ALL=C TERM=dumb
unset BELAY_CONFIG XDG_DATA_HOME XDG_CONFIG_HOME
mount -t tmpfs -o size=64m tmpfs "$disk" 2>/dev/null || skip "no tmpfs can be mounted"

failed=0
sizes=0
fail() {
  echo "FAILED $*"
  sed 's/^/    /' "$work/said" | head -5
  failed=$((failed + 1))
  [ $failed -lt 20 ] || exit 1
}
tree() {
  (cd "$1" && find . -printf '%p %y %m %l\n' | sort &&
    find . -type f -print0 | sort -z | xargs -0 -r sha256sum)
}
noise() { head -c "$1" /dev/urandom; }

# A checkpoint, and edits that make coming back need room: files that were small or
# gone, directories, links.
make_project() {
  mkdir -p "$1" && cd "$1" || exit 1
  mkdir -p src/deep gone/deeper swap
  for i in 1 2 3 4 5; do noise $((i * 5000)) >"src/f$i"; done
  noise 30000 >src/deep/large
  for i in 1 2 3 4 5 6; do noise 700 >"gone/deeper/$i"; done
  echo in >swap/in
  ln -s src/f1 link
  ln src/f5 hard
  "$BELAY_BIN" on >/dev/null 2>&1 && "$BELAY_BIN" checkpoint -m start >/dev/null 2>&1 ||
    { echo "no checkpoint"; exit 1; }
  tree . >"$work/new"
  rm -r gone swap && echo file >swap
  echo small >src/deep/large
  echo edited >src/f2
  noise 9000 >src/f5
  rm link src/f1
  echo more >src/new
  chmod 600 src/f3
  tree . >"$work/old"
  cd / || exit 1
}

# try NAME PROJECT: a rollback; it ends old or new. 0 when it was done.
try() {
  local name=$1 project=$2 rc
  sizes=$((sizes + 1))
  "$BELAY_BIN" rollback --root "$project" start --yes >"$work/said" 2>&1
  rc=$?
  tree "$project" >"$work/now"
  if [ $rc -eq 0 ]; then
    cmp -s "$work/now" "$work/new" || fail "$name: done, and not the new tree"
    return 0
  fi
  if grep -q interrupted "$work/said"; then
    interrupted=$((interrupted + 1))
    return 2
  fi
  cmp -s "$work/now" "$work/old" || fail "$name: refused ($rc), and not the old tree"
  return 1
}

check_store() {
  "$BELAY_BIN" verify --read-data >"$work/said" 2>&1 || fail "$1: verify"
}

used_kib() { df -k --output=used "$disk" | tail -1 | tr -d ' '; }
used_inodes() { df --output=iused "$disk" | tail -1 | tr -d ' '; }

# sweep WHAT WHERE: until three sizes in a row were enough.
sweep() {
  local what=$1 where=$2 n=0 enough=0 refused=0 rc used project=$disk/project
  interrupted=0
  mount -o remount,size=64m,nr_inodes=100000 "$disk"
  rm -rf "${disk:?}"/* "$work/store" "$work/saved"
  if [ "$where" = both ]; then BELAY_HOME=$disk/store; else BELAY_HOME=$work/store; fi
  export BELAY_HOME
  make_project "$project"
  cp -a "$disk" "$work/saved"
  [ "$where" = both ] || cp -a "$work/store" "$work/saved-store"
  while [ $enough -lt 3 ]; do
    if [ "$what" = bytes ]; then
      used=$(used_kib)
      mount -o remount,size=$((used + 4 * n))k "$disk"
    else
      used=$(used_inodes)
      mount -o remount,nr_inodes=$((used + n)) "$disk"
    fi
    try "$where, $what $n" "$project"
    rc=$?
    mount -o remount,size=64m,nr_inodes=100000 "$disk"
    if [ $rc -eq 2 ]; then
      # With room again the next command ends it.
      "$BELAY_BIN" status --root "$project" >"$work/said" 2>&1 || fail "$where, $what $n: recovery"
      tree "$project" >"$work/now"
      cmp -s "$work/now" "$work/old" || cmp -s "$work/now" "$work/new" ||
        fail "$where, $what $n: recovered, and neither tree"
    fi
    if [ $rc -eq 0 ]; then
      enough=$((enough + 1))
      "$BELAY_BIN" undo --root "$project" >"$work/said" 2>&1 || fail "$where, $what $n: undo"
      tree "$project" | cmp -s - "$work/old" || fail "$where, $what $n: undone, and not the old tree"
    else
      enough=0
      refused=$((refused + 1))
    fi
    [ -z "$(find "$project" -name '.belay-stage-*' -print -quit)" ] ||
      fail "$where, $what $n: a staging directory is left"
    check_store "$where, $what $n" "$project"
    # Each size begins with the same disk.
    find "$disk" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
    cp -a "$work/saved/." "$disk/"
    if [ "$where" != both ]; then
      rm -rf "$work/store"
      cp -a "$work/saved-store" "$work/store"
    fi
    n=$((n + step))
    [ $n -lt 3000 ] || { fail "$where, $what: never enough"; break; }
  done
  rm -rf "$work/saved" "$work/saved-store"
  echo "$where, $what: $refused refused or taken back, $interrupted of them interrupted and recovered; enough at $((n - 3 * step))"
}

sweep bytes project
sweep inodes project
sweep bytes both
sweep inodes both

# A disk that takes writes and fails when they are flushed: a sparse image on a tmpfs
# that is too small for it. The kernel turns the file system read-only.
failing_disk() {
  local room=$1
  umount "$disk"
  mount -t tmpfs -o size=64m tmpfs "$work/backing" || return
  truncate -s 48M "$work/backing/image"
  mkfs.ext4 -q -F -m 0 -E lazy_itable_init=0,lazy_journal_init=0 -J size=4 \
    "$work/backing/image" >/dev/null 2>&1 &&
    mount -o loop "$work/backing/image" "$disk" 2>/dev/null || {
    umount "$work/backing"
    echo "no ext4 image can be mounted: not tried"
    return
  }
  export BELAY_HOME=$work/store
  rm -rf "$work/store"
  make_project "$disk/project"
  # Enough to be flushed: what comes back is larger than the room there is.
  sync -f "$disk"
  mount -o remount,size=$(($(df -k --output=used "$work/backing" | tail -1) + room))k "$work/backing"
  interrupted=0
  try "failing disk, $room KiB" "$disk/project"
  local rc=$?
  echo "failing disk with $room KiB: $([ $rc -eq 0 ] && echo done || tail -1 "$work/said" | cut -c1-100)"
  sync -f "$disk" 2>/dev/null
  umount "$disk" || umount -l "$disk"
  mount -o remount,size=64m "$work/backing"
  e2fsck -fy "$work/backing/image" >"$work/said" 2>&1
  mount -o loop "$work/backing/image" "$disk" || { fail "failing disk: cannot mount again"; return; }
  "$BELAY_BIN" status --root "$disk/project" >"$work/said" 2>&1 || fail "failing disk: recovery"
  tree "$disk/project" >"$work/now"
  if ! cmp -s "$work/now" "$work/new" && { [ $rc -eq 0 ] || ! cmp -s "$work/now" "$work/old"; }; then
    diff "$work/old" "$work/now" >"$work/said"
    fail "failing disk, $room KiB: neither tree (rollback ended with $rc)"
  fi
  check_store "failing disk" "$disk/project"
  umount "$disk"
  umount "$work/backing"
  mount -t tmpfs -o size=64m tmpfs "$disk"
}
if command -v mkfs.ext4 >/dev/null; then
  rooms=(8 60)
  [ "$step" -gt 1 ] || rooms=(0 4 8 12 16 20 24 32 40 50 60 70 80 100 120 150 200)
  for room in "${rooms[@]}"; do failing_disk "$room"; done
fi

echo "$sizes disks, $failed failures"
[ $failed -eq 0 ]
