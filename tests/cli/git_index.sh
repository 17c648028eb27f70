# An index that cannot be read: nothing vanishes, it is said, and nothing is deleted for it.
. "$(dirname "$0")/lib.bash"
command -v git >/dev/null || { echo "git is not installed"; exit 77; }

export BELAY_HOME=$scratch/store
git -c init.defaultBranch=main init -q
echo '*.o' >.gitignore; echo one >t.o; echo two >plain; git add -f t.o plain .gitignore
run on; run checkpoint -m good --json; expect_rc 0; expect_py "d['files'] == 3"

cp .git/index "$scratch/index"; echo nonsense >.git/index
run checkpoint -m doubtful --json; expect_rc 0; expect_in_err "index"
expect_py "d['files'] == 3 and d['changed'] == {'added':0,'modified':0,'deleted':0}"
run cat latest t.o; expect_out $'one\n'
run show latest --json; expect_rc 0; expect_py "len(d['doubts']) == 1 and d['rules']['work_trees'][0]['index_unknown']"
run show latest; expect_rc 0; expect_in_out "doubt"
run status; expect_rc 1; expect_in_err "index could not be read"
run status --json; expect_rc 1; expect_py "any('index' in f['what'] for f in d['failures'])"
run doctor --json; expect_py "any('index' in n for n in d['notes'])"

# Without anything to go by, too: it is said, and a rollback to it deletes nothing.
rm -r "$BELAY_HOME/cache"; run checkpoint -m blind --json; expect_rc 0
expect_py "d['files'] == 2 and d['changed']['deleted'] == 0"
cp "$scratch/index" .git/index; run checkpoint -m mended --json; expect_py "d['files'] == 3"
run status; expect_rc 0
run rollback blind --yes; [ "$(cat t.o)" = one ] || fail "a rollback deleted what was not known then"
run rollback doubtful --yes; [ "$(cat t.o)" = one ] || fail "deleted"
# And from such a state back to a good one.
echo changed >t.o; echo nonsense >.git/index; rm -r "$BELAY_HOME/cache"
run rollback good --yes; expect_rc 0; [ "$(cat t.o)" = one ] || fail "not brought back"
run undo; expect_rc 0; [ "$(cat t.o)" = changed ] || fail "not undone"
finish
