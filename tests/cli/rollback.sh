# A rollback as people do it: preview, yes, undo, redo, log.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
tree() {
  find . -printf '%p %y %m %l\n' | sort
  find . -type f -print0 | sort -z | xargs -0 sha256sum
}
mkdir -p src a/b/c empty swapd
for i in 1 2 3; do echo "file $i" >"src/f$i"; done
echo secret >.env; chmod 600 .env; echo .env >.gitignore
ln -s src/f1 link; echo x >a/b/c/x; echo swap >swapf; echo in >swapd/in
"$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m start; expect_rc 0
tree >"$scratch/start"

# What an agent may do in a minute.
echo changed >src/f1; rm src/f2; echo new >src/new; rm -rf a; chmod 755 src/f3
rm link; ln -s nowhere link; rm swapf; mkdir swapf; echo q >swapf/q
rm -rf swapd; echo file >swapd; rmdir empty; rm .env; mkdir newdir; echo n >newdir/n
tree >"$scratch/after"

run rollback start --dry-run; expect_rc 0; expect_in_out "To 'start'"; expect_in_out "delete"
run rollback start; expect_rc 1; expect_in_err "--yes"
run rollback start --json; expect_rc 1; expect_in_err "nothing was changed; to go ahead: --yes"; expect_py "d['dry_run'] and d['operation'] is None and len(d['steps']) > 10"
tree | cmp -s - "$scratch/after" || fail "a preview changed something"
run rollback start --yes; expect_rc 0; expect_in_out "rolled back"; expect_in_out "belay undo"
tree | cmp - "$scratch/start" || fail "not as it was"
run rollback start --yes; expect_rc 0; expect_in_out "Nothing to do"
run log; expect_rc 0; expect_in_out "rollback to 'start'"; expect_in_out "next undo"
run undo; expect_rc 0; tree | cmp - "$scratch/after" || fail "undo: not as it was"
run redo --json; expect_rc 0; expect_py "d['verified'] and d['operation']"
tree | cmp - "$scratch/start" || fail "redo: not as it was"
run undo; expect_rc 0
run undo; expect_rc 1; expect_in_err "nothing to undo"

# One path only; a conflict; and the way through it.
run rollback start --yes -- src/f1; expect_rc 0
[ "$(cat src/f1)" = "file 1" ] || fail "src/f1 did not come back"
[ -e src/new ] || fail "a path that was not named was touched"
echo again >src/f1
run undo; expect_rc 1; expect_in_err "src/f1 changed since"
[ "$(cat src/f1)" = again ] || fail "a refused undo changed something"
run undo --exact; expect_rc 0
[ "$(cat src/f1)" = changed ] || fail "--exact did not bring it back"
run rollback start --yes -- nowhere/to/be; expect_rc 1
run rollback start --git nonsense; expect_rc 2
run rollback start --chat; expect_rc 1; expect_in_err "no conversation"

# The directory itself is gone.
here=$(pwd -P)
cd "$scratch" && rm -rf "$here"
run rollback start --yes --root "$here"; expect_rc 0
cd "$here" && tree | cmp - "$scratch/start" || fail "rm -rf of the root: not as it was"
run verify --read-data; expect_rc 0

# In a git repository: changes that git does not have are named, staged ones are not.
if command -v git >/dev/null; then
  mkdir "$scratch/repo" && cd "$scratch/repo" || exit 1
  git init -q .; echo one >a; echo one >b; echo one >c; git add .
  git -c user.name=t -c user.email=t@t commit -qm one
  "$BELAY_BIN" on >/dev/null; run checkpoint -m clean; expect_rc 0
  echo two, longer >a; echo two, longer >b; git add b; cp -a .git "$scratch/git-before"
  run rollback clean --dry-run; expect_rc 0
  expect_in_err "a has changes that were not committed or staged in git"
  [[ $err == *"b has changes"* ]] && fail "b is staged"
  run rollback clean --git keep --yes; expect_rc 0
  diff -r .git "$scratch/git-before" >/dev/null || fail ".git was touched"
fi
finish
