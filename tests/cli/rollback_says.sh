# What a rollback, an undo and `run` say when not all can be as it was, and the exit code.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
mkdir d many; echo 1 >a; echo f >x; echo s >su; chmod 4755 su
"$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m one; expect_rc 0

# A path that cannot be moved is in the way: one rule, alone or with others, dry or done,
# for people and for programs.
rm x; mkfifo x
for more in "" more; do
  [ -z "$more" ] || echo 2 >a
  run rollback one --dry-run; expect_rc 1; expect_in_err "x would not be brought back (a FIFO, socket or device)"; expect_in_err "move x elsewhere"
  expect_in_out "stays   1 path"; expect_in_out "    x  (a FIFO, socket or device)"
  run rollback one --dry-run --json; expect_rc 1
  expect_py "d['kept'] == [{'path': 'x', 'why': 'special', 'wanted': True}]"
  if [ -z "$more" ]; then
    run rollback one --yes --json; expect_rc 1; expect_py "not d['verified'] and d['operation'] is None"
    run rollback one --yes; expect_rc 1; expect_in_out "Nothing was changed; not all is as in 'one'"
  else
    run rollback one --yes --json; expect_rc 1
    expect_py "d['verified'] and len(d['steps']) == 1 and d['warnings'] == ['x was not brought back (a FIFO, socket or device)']"
    [ "$(cat a)" = 1 ] || fail "the rest was not done"
    echo 2 >a; run rollback one --yes; expect_rc 1; expect_in_out "rolled back 1 file"
  fi
  expect_in_out "x"; [ -z "$err" ] || expect_in_err "x was not brought back (a FIFO, socket or device)"
  [ -p x ] || fail "the FIFO is gone"
done
rm x; echo f >x

# A right that is not given back: nothing claims that all is as it was.
chmod 755 su
run rollback one --yes; expect_rc 0; expect_in_err "su stays without setuid/setgid"
expect_in_out "everything else is as in 'one'"; expect_in_out "su  (setuid and setgid are not given back)"
echo t >su; chmod 755 su
run rollback one --yes; expect_rc 0; expect_in_err "su comes back without setuid/setgid"
chmod 4755 su
run rollback one --yes; expect_rc 0; expect_in_out "Nothing to do: everything is as in 'one'"

# New since, and nobody's to delete.
mkfifo fifo; mkdir inner; "$BELAY_BIN" on inner >/dev/null
run rollback one --dry-run; expect_rc 0
expect_in_out "fifo  (a FIFO, socket or device)"; expect_in_out "inner  (a protected directory of its own)"
run checkpoint -m two; expect_rc 0; echo 3 >a
run rollback two --dry-run; expect_rc 0
[[ $out == *fifo* || $out == *inner* ]] && fail "nothing new: $out"
"$BELAY_BIN" off inner >/dev/null; rm -r fifo inner; echo 1 >a

# A directory is no file.
chmod 700 d; run rollback one --dry-run; expect_rc 0; expect_in_out "chmod   1 directory"$'\n'"    d/"
chmod 755 su; chmod 600 a; run rollback one --dry-run; expect_in_out "chmod   1 file and 1 directory"
chmod 755 d; chmod 644 a; chmod 4755 su

# Many conflicts: the first ten; all with -v and in JSON.
for i in {1..25}; do echo 1 >"many/$i"; done; run checkpoint -m many; expect_rc 0
for i in {1..25}; do echo 2 >"many/$i"; done; run rollback many --yes; expect_rc 0
for i in {1..25}; do echo 3 >"many/$i"; done
run undo; expect_rc 1; expect_in_err "25 paths changed since"; expect_in_err "and 15 more (all of them with -v)"
[ "$(grep -c 'changed since$' <<<"$err")" = 11 ] || fail "not the first ten: $err"
run undo -v; expect_rc 1; [ "$(grep -c 'changed since$' <<<"$err")" = 26 ] || fail "not all: $err"
run undo --json; expect_rc 1; expect_py "len(d['conflicts']) == 25"

# Nobody but us knows of a staging directory.
if command -v strace >/dev/null; then
  rm -f many/1; chmod 600 many/2
  for call in mkdirat:1 renameat2:1 fchmod:1; do
    strace -f -qq -o /dev/null -e "trace=${call%:*}" -e "inject=${call%:*}:error=EIO:when=${call#*:}" \
      "$BELAY_BIN" rollback many --yes -- many/1 many/2 >"$scratch/out" 2>"$scratch/err"; rc=$?
    err=$(cat "$scratch/err")
    [ "$rc" = 0 ] && continue
    [[ $err == *.belay-* ]] && fail "$call: $err"
    expect_in_err "$PWD"; expect_in_err "Input/output error"
  done
fi

# The files are as they were, git is gone: that is not "everything".
mkdir "$scratch/repo"
(cd "$scratch/repo" && git init -q . && echo x >x && git add .)
run on "$scratch/repo"; run checkpoint -m staged --root "$scratch/repo"; expect_rc 0
rm -rf "$scratch/repo/.git"
run rollback staged --yes --root "$scratch/repo"; expect_rc 0
expect_in_err "is gone"; expect_in_out "the files are as in 'staged'"
[[ $out == *everything* ]] && fail "git is gone, and it says: $out"

# The program removes the directory it was run in: the way back is said.
run run -- rm -rf "$PWD"; expect_rc 0
expect_in_err "$PWD is gone; take it back with: belay rollback "; expect_in_err " --root $PWD"
id=$(sed -n 's/.*belay rollback \([a-z0-9]*\) --root.*/\1/p' <<<"$err")
cd / && run rollback "$id" --root "$scratch/work" --yes; expect_rc 0
[ "$(cat "$scratch/work/many/9")" = 3 ] || fail "not brought back"
finish
