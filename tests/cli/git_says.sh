# What is said of git: by rollback, undo, purge and previews, in words and as JSON.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

command -v git >/dev/null || { echo "git is not installed"; exit 77; }
export BELAY_HOME=$scratch/store GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
mkdir "$scratch/repo" && cd "$scratch/repo" || exit 1
git init -q -b main . && echo one >a && git add a && git commit -qm first || fail "no repository"
run on; expect_rc 0
run config git.protect true; expect_rc 0
run checkpoint -m start; expect_rc 0

# --- only git moved
git commit -q --allow-empty -m second
run rollback start --yes; expect_rc 0; expect_in_out "rolled back git to 'start'"
run undo; expect_rc 0; expect_in_out "took back the rollback to 'start': git; go forward"
run redo; expect_rc 0; expect_in_out "did again the rollback to 'start': git;"

# --- paths that are git's own
run rollback start --yes -- .git; expect_rc 2
expect_in_err ".git is git's own, and a rollback of given paths leaves git alone"
mkdir deep; run rollback start --yes -- deep/.git/HEAD; expect_rc 2; expect_in_err "git's own"
rmdir deep

# --- .git as a whole, before it comes back
rm -rf .git
run rollback start --dry-run --json; expect_rc 0
expect_py "d['steps'] == [] and d['git']['action'] == 'reset' and d['git']['whole'] and d['git']['files'] > 10"
expect_py "d['bytes_needed'] > 50000 and d['git']['from'] is None and len(d['git']['to']) == 40"
expect_py "d['git']['notes'][0].startswith('.git comes back whole: ')"
run rollback start --yes; expect_rc 0
git fsck --no-dangling >"$scratch/fsck" 2>&1 || fail "$(cat "$scratch/fsck")"

# --- an object that is gone, though nothing moved
object=$(git rev-parse HEAD:a)
rm -f ".git/objects/${object:0:2}/${object:2}"
run rollback start --dry-run; expect_rc 0; expect_in_out "objects that were gone come back: 1 file"
run rollback start --yes; expect_rc 0; expect_in_out "objects that were gone come back: 1 file"
git cat-file -e "$object" || fail "the object did not come back"
run rollback start --yes; expect_rc 0; expect_in_out "Nothing to do"

# --- purged: files of git's are no versions of a path
run purge a --dry-run; expect_rc 0
expect_in_out "1 version of a and "; expect_in_out " files of copies of .git ("
run purge a --dry-run --json; expect_py "d['versions'] == 1 and d['git_files'] > 2"

# --- a submodule that comes back with the repository around it
mkdir "$scratch/super" && cd "$scratch/super" || exit 1
git init -q -b main . && git -c protocol.file.allow=always submodule --quiet add "$scratch/repo" sub
git commit -qm sub
run on; expect_rc 0
run checkpoint -m start; expect_rc 0
rm -rf .git
run rollback start --yes; expect_rc 0; expect_silent_err
[ "$(git -C sub rev-parse HEAD)" = "$(git rev-parse :sub)" ] || fail "the submodule is not there"

# --- a file that leads to the repository
git worktree add -q ../linked 2>/dev/null && cd ../linked || exit 1
run on; expect_rc 0
run checkpoint -m start; expect_rc 0
rm .git; run rollback start --yes; expect_rc 0
run undo; expect_rc 0; expect_in_out ".git, which leads to the repository, goes again"
finish
