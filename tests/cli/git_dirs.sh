# Git directories that are not called .git: not captured, listed, not touched.
. "$(dirname "$0")/lib.bash"
command -v git >/dev/null || { echo "git is not installed"; exit 77; }

export BELAY_HOME=$scratch/store
git=(git -c init.defaultBranch=main -c user.name=u -c user.email=u@example.com)
prints() { find .bare x remote.git store -type f -exec sha256sum {} + | sort; }

"${git[@]}" init -q seed; (cd seed && echo 1 >a && "${git[@]}" add a && "${git[@]}" commit -qm one)
"${git[@]}" clone -q --bare seed .bare; "${git[@]}" -C .bare worktree add -q ../main main
"${git[@]}" init -q --separate-git-dir "$PWD/x" apart; echo b >apart/b
"${git[@]}" clone -q --bare seed remote.git
mkdir linked; (cd linked && "${git[@]}" init -q && mv .git ../store && ln -s ../store .git && echo c >c)
mkdir late

run on; expect_rc 0
prints >"$scratch/before"
run checkpoint -m one --json; expect_rc 0
expect_py "d['skipped'] == [{'path':p,'why':'git_dir'} for p in ('.bare','remote.git','store','x')]"
run ls latest; expect_out $'apart/b\nlate/\nlinked/c\nmain/a\nseed/a\n'
run checkpoint; expect_in_out "4 paths left out: .bare (git_dir), ..."
run show latest --json; expect_py "[s['why'] for s in d['skipped']] == ['git_dir'] * 4"
run why .bare .bare/HEAD x/refs/none.log store remote.git/objects main/a --json
expect_py "[(p['covered'],p['why']) for p in d['paths']] == [(False,'git_dir')] * 5 + [(True,'tracked')]"
run doctor --json
expect_py "sorted(o['path'] for o in d['coverage']['left_out'] if o['why'] == 'git_dir' and o['files'] > 3) == ['.bare','remote.git','store','x']"
expect_py "d['coverage']['files'] == 4"
prints | cmp -s - "$scratch/before" || fail "a look changed a git directory"

# Work, commits and a new repository; then back.
(cd main && echo 2 >a && echo new >n && "${git[@]}" add . && "${git[@]}" commit -qm two && "${git[@]}" push -q ../remote.git main)
(cd apart && "${git[@]}" add . && "${git[@]}" commit -qm first)
"${git[@]}" init -q --bare late/new.git
find .bare x remote.git store late -type f -exec sha256sum {} + | sort >"$scratch/before"
run rollback one --yes; expect_rc 0
[ "$(cat main/a)" = 1 ] && [ ! -e main/n ] || fail "not rolled back"
find .bare x remote.git store late -type f -exec sha256sum {} + | sort | cmp -s - "$scratch/before" || fail "a git directory was touched"
run undo; expect_rc 0; [ "$(cat main/a)" = 2 ] || fail "not undone"
find .bare x remote.git store late -type f -exec sha256sum {} + | sort | cmp -s - "$scratch/before" || fail "undo touched a git directory"

# It was a plain directory then, and is git's now; and the other way round.
mkdir grows; echo text >grows/text; run checkpoint -m plain; expect_rc 0
"${git[@]}" init -q --bare grows; run checkpoint -m git --json
expect_py "{'path':'grows','why':'git_dir'} in d['skipped'] and d['changed']['deleted'] == 0"
run rollback plain --yes; [ -e grows/HEAD ] || fail "it was taken for new"
rm grows/HEAD; run rollback git --yes; [ -e grows/config ] || fail "what the state did not cover was deleted"
finish
