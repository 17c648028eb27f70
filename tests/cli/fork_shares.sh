# belay fork where the file system can share blocks (xfs): it does, and both sides stay apart.
self=$(realpath "$0")
. "$(dirname "$0")/lib.bash"
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "a loop image needs root"
command -v mkfs.xfs >/dev/null || skip "no mkfs.xfs"
if [ -z "${BELAY_OWN_MOUNTS-}" ] && unshare -m true 2>/dev/null; then
  cd / && rm -rf "$scratch"
  BELAY_OWN_MOUNTS=1 exec unshare -m bash "$self" "$@"
fi
disk=$scratch/disk
mkdir "$disk"
truncate -s 320M "$scratch/image" && mkfs.xfs -q -f "$scratch/image" >/dev/null 2>&1 || skip "mkfs.xfs failed"
mount -o loop "$scratch/image" "$disk" 2>/dev/null || skip "xfs cannot be mounted"
trap 'status=$?; cd /; umount "$disk" || umount -l "$disk"; rm -rf "$scratch"; [ "$failures" = 0 ] || [ "$status" != 0 ] || exit 1' EXIT

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$disk/project
mkdir "$root"; cd "$root" || exit 1
git init -q . && git config user.name me && git config user.email me@here
# Twenty megabytes that do not compress, of them twelve in git.
head -c 8000000 /dev/urandom >model.bin; head -c 4000000 /dev/urandom >edited.bin
head -c 8000000 /dev/urandom >tracked.bin; echo small >small.txt
git add tracked.bin && git commit -qm first
run on; run checkpoint -m one; expect_rc 0
sha256sum model.bin edited.bin tracked.bin small.txt >"$scratch/sums"
printf 'x' | dd of=edited.bin bs=1 seek=100 conv=notrunc status=none
sync -f "$disk"
used() { df --output=used -B1 "$disk" | tail -1; }
before=$(used)
run fork one "$disk/fork" --json; expect_rc 0
expect_py "d['shared_bytes'] == 16000000 and d['files'] == 4 and d['repository']"
sync -f "$disk"
took=$(($(used) - before))
[ "$took" -lt 6000000 ] || fail "the fork of 28 MB with its repository takes $took bytes"
(cd "$disk/fork" && sha256sum --quiet -c "$scratch/sums") || fail "the fork has other files"
git -C "$disk/fork" fsck >/dev/null 2>&1 || fail "git fsck: $(git -C "$disk/fork" fsck 2>&1)"
# Neither sees what is written to the other.
echo changed >"$disk/fork/model.bin"; echo changed >tracked.bin
run diff one --name-only; expect_in_out tracked.bin; expect_in_out edited.bin
[[ $out != *model.bin* ]] || fail "a write to the fork is in the source"
run status --root "$disk/fork"; expect_rc 0
run diff latest --root "$disk/fork" --name-only; expect_in_out model.bin
[[ $out != *tracked.bin* ]] || fail "a write to the source is in the fork"
finish
