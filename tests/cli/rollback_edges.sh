# What a rollback does not touch, cannot bring back, and says about it.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
"$BELAY_BIN" on >/dev/null || fail on

# A directory that cannot go stands where the target has a file.
echo file >gx; echo one >a; run checkpoint -m one; expect_rc 0
rm gx; mkdir gx; echo x >gx/x.pyc
run rollback one --yes; expect_rc 1; expect_in_err "gx was not brought back (in the way: something not covered is there)"
expect_in_err "move what is in gx and not covered elsewhere"
[[ $out == *"everything is as in"* ]] && fail "said to be as it was"
rm -r gx; echo file >gx

# Nobody reads the answer: what was done is done.
echo two >a; "$BELAY_BIN" rollback one --yes >&- 2>"$scratch/err"; rc=$?
expect_rc 0; [ "$(cat a)" = one ] || fail "not rolled back"

# A protected root inside that is gone stays its own.
mkdir sub; echo outer >sub/x; run checkpoint -m nested; expect_rc 0
run on sub; expect_rc 0; rm -r sub
run rollback nested --yes; [ ! -e sub ] || fail "written into another root"
"$BELAY_BIN" off sub >/dev/null 2>&1

# A git directory under another name, where a work tree in the root leads to it.
if command -v git >/dev/null; then
  git init -q --separate-git-dir "$PWD/w.gd" w
  run checkpoint -m git; expect_rc 0
  echo changed >w.gd/description; echo new >w.gd/new
  run rollback git --yes
  [ "$(cat w.gd/description)" = changed ] && [ -e w.gd/new ] || fail "a git directory was touched"
fi

# What became too large was not deleted.
head -c 2000000 /dev/zero >big; run checkpoint; expect_rc 0
"$BELAY_BIN" config -q max_file_size 1MiB
run checkpoint --json; expect_rc 0; expect_py "d['changed']['deleted'] == 0"

finish
