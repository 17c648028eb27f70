# belay on, and on --moved-from, end a rollback that was interrupted there, and say so.
# Needs strace, and a system that lets it trace.
. "$(dirname "$0")/lib.bash"
command -v strace >/dev/null || { echo "strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }
export BELAY_HOME=$scratch/store

mkdir r; cd r || exit 1
for i in {1..30}; do echo old >"f$i"; done
run on; expect_rc 0
run checkpoint -m one; expect_rc 0
run roots --json
root=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["roots"][0]["id"])' "$scratch/out")

# Files whose mode changed too are put in place by a rename: killed at one of those.
interrupt() {
  for i in {1..30}; do echo new >"f$i"; chmod 600 "f$i"; done
  for at in 8 12 16; do
    strace -f -qq -o /dev/null -e "inject=renameat2:signal=KILL:when=$at" "$BELAY_BIN" rollback one --yes >/dev/null 2>&1
    [ -e "$BELAY_HOME/journal/$root" ] && break
  done
  [ -e "$BELAY_HOME/journal/$root" ] || fail "it was not interrupted"
  grep -qx new f* && grep -qx old f* || fail "it is no mix"
}
is_whole() { ! grep -qx new f* || ! grep -qx old f* || fail "it is still a mix"; }

interrupt
run on; expect_rc 0; expect_in_err "that was interrupted"; expect_in_out "protected"; is_whole
[ -e "$BELAY_HOME/journal/$root" ] && fail "the journal is still there"
run on --json; expect_rc 0; expect_py "d['recovered'] is None"

interrupt
cd .. && mv r r2 && cd r2 || exit 1
run on --moved-from ../r --json; expect_rc 0; is_whole
expect_py "'that was interrupted' in d['recovered']"
run status; expect_rc 0
finish
