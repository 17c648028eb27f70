# A rollback of some paths never says that all is as it was of what differs, is missing,
# or is not held: it names the path and the reason.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
mkdir -p d/sub in; echo 1 >d/a; echo 1 >d/sub/b; echo 1 >in/g; echo '*.x' >.gitignore; echo 1 >q.x
echo 'max_file_size = "1KiB"' >.belay.toml; head -c 5000 /dev/zero >big
"$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m a; expect_rc 0

# not_held PATH WHY: nothing of it is in the checkpoint.
not_held() {
  run rollback a --yes -- "$1"; expect_rc 0; expect_in_out "$1"
  [[ $out == *"as in"* ]] && fail "said to be as it was: $out"
  run rollback a --yes --json -- "$1"; expect_rc 0
  expect_py "[(k['path'], k['why'], k['wanted']) for k in d['kept']] == [('$1', '$2', False)]"
}
# left PATH WHY: the checkpoint has it, and it cannot come back.
left() {
  run rollback a --yes -- "$1"; expect_rc 1; expect_in_err "$1 was not brought back"
  [[ $out == *"everything"* ]] && fail "said to be as it was: $out"
  run rollback a --yes --json -- "$1"; expect_rc 1
  expect_py "[(k['path'], k['why'], k['wanted']) for k in d['kept']] == [('$1', '$2', True)] and d['steps'] == []"
}

# A repository made since stays whole; what the checkpoint has of it can be had.
mkdir d/.git; echo 'ref: refs/heads/main' >d/.git/HEAD; echo 2 >d/a; rm d/sub/b
left d/a nested_repository; left d/sub/b nested_repository
run rollback a --yes -- d/a; expect_rc 1; expect_in_err "belay cat "
[ "$(cat d/a)" = 2 ] || fail "written into a repository that is new"

# Another protected directory.
run on in; expect_rc 0; echo 2 >in/g; left in/g other_root; rm -r in; left in/g other_root

# Not held, then and now.
head -c 5001 /dev/zero >big; not_held big too_large; rm big; not_held big too_large
echo 2 >q.x; not_held q.x ignored_then
run rollback a --yes -- nowhere; expect_rc 1; expect_in_err "neither the checkpoint nor the directory has nowhere"

# The whole: what it holds is as in it, the rest is named; what is not there does not stay.
rm -r d; mkdir -p d/sub; echo 1 >d/a; echo 1 >d/sub/b
run rollback a --yes; expect_rc 1; expect_in_out "  missing 2 paths"
expect_in_out "big  (too large: max_file_size)"; expect_in_out "in  (a protected directory of its own)"
expect_in_err "belay off $PWD/in"; expect_in_err "--root $PWD/in"
run rollback a --dry-run --json; expect_rc 1; expect_py "all(k['missing'] for k in d['kept'])"
run off in; expect_rc 0; mkdir in; echo 1 >in/g
run rollback a --yes; expect_rc 0; expect_in_out "Nothing to do: everything it holds is as in 'a'"

# Only today's limit protects it: it goes with --delete-ignored, and comes back.
rm .belay.toml; run checkpoint -m wide; expect_rc 0
head -c 5000 /dev/zero >big2; echo 'max_file_size = "1KiB"' >.belay.toml
run rollback wide --yes --delete-ignored; expect_rc 0; [ ! -e big2 ] || fail "big2 is there"
run undo; expect_rc 0; [ "$(stat -c %s big2)" = 5000 ] || fail "big2 is lost"
rm big2 .belay.toml

# All that is in the way, in plain words; more than ten with -v.
echo 1 >w; run checkpoint -m w; expect_rc 0
rm w; mkdir w; for i in {1..12}; do echo 2 >w/$i.log; done; echo 2 >w/.env; echo 2 >d/a
run rollback w --yes; expect_rc 1; expect_in_out "stays   14 paths"; expect_in_out "w/.env  (a secret)"
expect_in_out "w/1.log  (not covered)"; expect_in_out "... and 4 more (all of them with -v)"
echo 2 >d/a; run rollback w --yes -v; expect_rc 1; expect_in_out "w/9.log  (not covered)"
rm -r w; echo 1 >w

# The headline is the sum of the groups, of changes of kind too.
rm -r d; echo 2 >d; rm w; mkdir w
run rollback w --dry-run; expect_rc 0; expect_in_out ": 4 files and 3 directories"
for group in "create  3 files" "mkdir   2 directories" "delete  1 file" "rmdir   1 directory"; do
  expect_in_out "$group"
done
expect_in_out "needs   "; expect_in_out "of room and 5 inodes"
run rollback w --dry-run --json; expect_rc 0; expect_py "d['inodes_needed'] == 5 and d['bytes_needed'] > 0 and d['refused'] is None"
run rollback w --yes; expect_rc 0; expect_in_out "rolled back 4 files and 3 directories"
run undo; expect_rc 0; expect_in_out "4 files and 3 directories (5 paths)"
run log; expect_in_out "5 paths"

run rollback --help; expect_rc 0; expect_in_out "also crosses"

finish
