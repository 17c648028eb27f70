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

finish
