# A rollback that was interrupted while git's files moved, and then somebody else's lock in
# the git directory: every command says what waits and what to do, nobody removes the lock,
# and the next command after it is gone finishes the rollback. Needs strace to interrupt.
. "$(dirname "$0")/lib.bash"
command -v git >/dev/null || { echo "git is not installed"; exit 77; }
command -v strace >/dev/null || { echo "strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }

export BELAY_HOME=$scratch/store
export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
git init -q -b main . && echo one >a && git add a && git commit -qm first || fail "no repository"
"$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m start -q; expect_rc 0
first=$(git rev-parse HEAD)
echo two >a; git commit -qam second; second=$(git rev-parse HEAD)

# The second lock of git's is taken by linkat: killed there, some are held and nothing moved.
{ strace -f -qq -o "$scratch/trace" -e inject=linkat:signal=KILL:when=2 \
  "$BELAY_BIN" rollback start --yes >/dev/null; } 2>/dev/null
[ -n "$(ls "$BELAY_HOME/journal")" ] || fail "nothing was interrupted: $(cat "$scratch/trace")"
rm -f .git/index.lock; echo theirs >.git/index.lock  # of another git's

lock=$PWD/.git/index.lock
waits="the rollback to 'start' was interrupted and waits: git is at work here: $lock is held"
begin=$SECONDS
run status; expect_rc 1; expect_in_err "$waits"; expect_in_err "if no git is running, remove that file"
expect_in_out "protected, with problems"
run status --json; expect_rc 1
expect_py "d['recovered'] is None and len(d['failures']) == 1 and 'waits: git is at work' in d['failures'][0]['what']"
# Who only looks is told, and not kept from it.
for command in list "show start" "diff start" "log -- a" "why a"; do
  # shellcheck disable=SC2086
  run $command; expect_rc 0; expect_in_err "$waits"; expect_in_err "remove that file"
done
[ $((SECONDS - begin)) -lt 15 ] || fail "who only looks waited for the lock"
# Who would change something is refused, and told the same.
for command in "checkpoint -m x" "rollback start --yes" undo redo "note start x"; do
  # shellcheck disable=SC2086
  run $command; expect_rc 4; expect_in_err "$waits"; expect_in_err "if no git is running, remove that file"
done
run checkpoint --json; expect_rc 4
expect_py "d['error']['code'] == 'busy' and 'waits: git is at work' in d['error']['message'] and 'remove that file' in d['error']['hint']"
run off; [ "$rc" != 0 ] || fail "off while a rollback waits"; expect_in_err "$waits"
[ "$(cat .git/index.lock)" = theirs ] || fail "somebody else's lock was touched"
[ "$(git rev-parse HEAD)" = "$second" ] || fail "git moved"

rm .git/index.lock
run status; expect_rc 0; expect_in_out "Recovered: finished the rollback to 'start'"
[ "$(git rev-parse HEAD) $(cat a)" = "$first one" ] || fail "it was not finished"
[ -z "$(find .git -name '*.lock' -o -name '.belay-*')" ] || fail "something is left: $(find .git -name '*.lock' -o -name '.belay-*')"
run status; expect_rc 0
run undo; expect_rc 0
[ "$(git rev-parse HEAD) $(cat a)" = "$second two" ] || fail "undo did not take it back"
finish
