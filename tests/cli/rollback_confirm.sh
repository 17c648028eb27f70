# On a terminal: what is done is what was shown. Files made between the preview and the
# yes are named, and asked about, before they are deleted.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
echo one >a; "$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m start; expect_rc 0
echo two >a; echo new >new

# talk LAST-ANSWER: "made since" appears after the first question; then yes, and LAST.
talk() {
  python3 - "$BELAY_BIN" "$1" <<'PY'
import os, pty, sys
program, last = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.execv(program, [program, "rollback", "start"])
said = b""
def until(count):
    global said
    while said.count(b"[y/N]") < count:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            piece = b""
        if not piece:
            return False
        said += piece
    return True
if until(1):
    open("made since", "w").write("precious\n")
    os.write(terminal, b"y\n")
    if until(2):
        os.write(terminal, last.encode() + b"\n")
until(99)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(said.decode())
sys.exit(code)
PY
}
out=$(talk n); rc=$?
expect_rc 1; expect_in_out "delete made since"; expect_in_out "Nothing was changed"
[ -e "made since" ] && [ "$(cat a)" = two ] && [ -e new ] || fail "done without a yes"
run log; expect_in_out "Nothing was done here"
rm "made since"
out=$(talk y); rc=$?
expect_rc 0; expect_in_out "delete made since"; expect_in_out "rolled back 3 files"
[ ! -e "made since" ] && [ "$(cat a)" = one ] || fail "not done after the second yes"
run undo; expect_rc 0; [ -e "made since" ] || fail "not stored"

# Nobody was shown anything: then it is said afterwards what is gone.
run rollback start --yes; expect_rc 0; expect_in_out "deleted 2 files: made since, new"

# -q: nothing but warnings. The same steps are counted the same both ways.
run undo -q; expect_rc 0; expect_out ""; expect_silent_err
run rollback start --yes -q; expect_rc 0; expect_out ""; expect_silent_err
run rollback start --yes -q; expect_rc 0; expect_out ""
run redo -q; expect_rc 1; expect_out ""
rm a; mkdir a empty; echo in >a/in
run rollback start --yes; expect_rc 0; expect_in_out "rolled back 2 files and 2 directories"
run undo; expect_rc 0; expect_in_out "2 files and 2 directories"
run redo; expect_rc 0; expect_in_out "2 files and 2 directories"

# Conflicts say what to do, both ways.
echo mine >a
run undo; expect_rc 1; expect_in_err "belay undo --exact"
run undo --exact; expect_rc 0; rm -r a; echo mine >a
run redo; expect_rc 1; expect_in_err "belay redo --exact"; [ "$(cat a)" = mine ] || fail "changed"
run redo --exact; expect_rc 0; [ "$(cat a)" = one ] || fail "not gone forward"

# An undo of one that is not the newest is an operation of its own.
echo x >x; echo y >y; run checkpoint -m both; expect_rc 0
echo x2 >x; echo y2 >y
run rollback both --yes --json -- x; expect_rc 0
first=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["operation"])' "$scratch/out")
run rollback both --yes -- y; expect_rc 0
run undo "$first"; expect_rc 0
expect_in_out "took back the rollback to 'both': 1 file; take it back with \`belay undo\`"
[ "$(cat x)" = x2 ] && [ "$(cat y)" = y ] || fail "not the one that was named"
run redo; expect_rc 1; expect_in_err "nothing to redo"
run log; expect_in_out "undo of rollback to 'both'"
run undo; expect_rc 0; [ "$(cat x)" = x ] || fail "the undo was not taken back"
run undo "$first"; expect_rc 0
echo x3 >x; run undo zzzz; expect_rc 1; expect_in_err "no operation is called zzzz"
# The ref that will hold a commit is named before, by the name that it then has.
if command -v git >/dev/null; then
  export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
  mkdir git; cd git || exit 1
  git init -q -b main . && echo one >a && git add a && git commit -qm first || fail "no repository"
  "$BELAY_BIN" on >/dev/null || fail on
  run checkpoint -m start; expect_rc 0
  echo two >a; git commit -qam second
  run rollback start --dry-run; expect_rc 0; expect_in_out "kept under refs/belay/safety/*/head"
  out=$(talk y); rc=$?
  expect_rc 0
  ref=$(git for-each-ref --format='%(refname)' 'refs/belay/safety/*/head')
  [ "$(grep -c "kept under $ref" <<<"$out")" = 2 ] || fail "$ref is not what was shown and done: $out"
  run undo; expect_rc 0; expect_in_out "was kept under $ref"
fi
finish
