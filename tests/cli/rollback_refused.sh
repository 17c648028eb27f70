# A plan that would be refused is shown all the same, with the room that it needs, and
# the reason after it. Needs root for a small disk.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store
mkdir disk
mount -t tmpfs -o size=1m none disk 2>/dev/null || { echo "no small disk can be mounted"; exit 77; }
trap 'cd /; umount "$scratch/work/disk"; rm -rf "$scratch"' EXIT
cd disk || exit 1
printf 'ignored\n' >.gitignore; head -c 700000 /dev/urandom >big; echo 1 >small
run on; expect_rc 0; run checkpoint -m one; expect_rc 0
rm big small; head -c 600000 /dev/urandom >ignored

run rollback one --dry-run; expect_rc 5
expect_in_out "create  2 files"; expect_in_out "    big"; expect_in_out "of room and 2 inodes"; expect_in_err "there is less"
run rollback one --dry-run --json; expect_rc 5
expect_py "len(d['steps']) == 2 and d['inodes_needed'] == 2 and d['bytes_needed'] > 700000 and 'there is less' in d['refused']"
run rollback one; expect_rc 5; expect_in_out "create  2 files"; expect_in_err "there is less"
run rollback one --yes --json; expect_rc 5; expect_py "'there is less: ' in d['error']['message']"
[ ! -e big ] && [ ! -e small ] || fail "something was changed"
rm ignored
run rollback one --dry-run --json; expect_rc 0; expect_py "d['refused'] is None"
run rollback one --yes; expect_rc 0; [ "$(cat small)" = 1 ] || fail "not done"
[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
