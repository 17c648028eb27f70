# What the program is started with: odd HOME, closed and full output, a deleted directory.
. "$(dirname "$0")/lib.bash"
real=$(pwd -P)

# --- HOME ---
mkdir -p "$HOME/.config/belay"
echo 'notice = true' >"$HOME/.config/belay/config.toml"
run config notice; expect_rc 0; expect_out "true
"
# Unset, empty or relative: the user database answers, or a clear error does.
for odd in unset empty relative; do
  (
    case $odd in unset) unset HOME ;; empty) HOME= ;; relative) HOME=here ;; esac
    "$BELAY_BIN" --version >/dev/null || exit 9
    "$BELAY_BIN" status >/dev/null || exit 8
    "$BELAY_BIN" config notice >"$scratch/out" 2>"$scratch/err"
  )
  rc=$?
  [ $rc = 0 ] || { [ $rc = 1 ] && grep -q HOME "$scratch/err"; } ||
    fail "HOME $odd: exit $rc, $(cat "$scratch/err")"
done
[ ! -e here ] || fail "a relative HOME was used"

# --- BELAY_HOME ---
mkdir "$scratch/proj"
for command in on checkpoint roots list; do
  BELAY_HOME=rel run --root "$scratch/proj" $command; expect_rc 1; expect_in_err "BELAY_HOME is not an absolute path: rel"
done
[ ! -e rel ] && [ ! -e "$scratch/proj/rel" ] || fail "a relative BELAY_HOME was used"

# --- where the settings are ---
mkdir -p "$scratch/xdg/belay"
echo 'granularity = "turn"' >"$scratch/xdg/belay/config.toml"
XDG_CONFIG_HOME=$scratch/xdg run config granularity; expect_out "turn
"
XDG_CONFIG_HOME=relative run config granularity; expect_out "tool
"
XDG_CONFIG_HOME= run config granularity; expect_out "tool
"
echo 'granularity = "session"' >mine.toml
# A file of whatever directory one is in is nobody's settings.
for command in "config granularity" "config granularity turn" doctor; do
  BELAY_CONFIG=mine.toml run $command; expect_rc 1
  [[ $err$out == *"BELAY_CONFIG is not an absolute path: mine.toml"* ]] || fail "$command: $err $out"
done
[ "$(cat mine.toml)" = 'granularity = "session"' ] || fail "mine.toml was written"
BELAY_CONFIG=$real/mine.toml run config granularity; expect_out "session
"
BELAY_CONFIG= run config granularity; expect_out "tool
"
BELAY_CONFIG=/dev/null run config granularity; expect_out "tool
"
BELAY_CONFIG=/dev/zero run config granularity; expect_rc 1; expect_in_err "larger than"
BELAY_CONFIG=$scratch run config granularity; expect_rc 1; expect_in_err "not a regular"

# Every failure says what to do about it.
for words in "on $scratch/absent/x" "status --root $scratch/absent/x"; do
  run $words --json; expect_rc 1; expect_py "d['error']['hint']"
done
BELAY_HOME=$real/mine.toml run list --json; expect_rc 1; expect_py "'BELAY_HOME' in d['error']['hint']"
BELAY_HOME=$real/mine.toml/store run on --json; expect_rc 1; expect_py "'BELAY_HOME' in d['error']['hint']"
mkdir kept; BELAY_HOME=$scratch/exported run on kept; BELAY_HOME=$scratch/exported run checkpoint --root kept; expect_rc 0
BELAY_HOME=$scratch/exported run export latest -o "$scratch/absent/x" --root kept --json; expect_rc 1; expect_py "d['error']['hint']"

# The store is not created by looking.
BELAY_HOME=$real/store run status; expect_rc 0
[ ! -e store ] || fail "status created the store"

# --- TMPDIR ---
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp run demo; expect_rc 0; expect_in_out "at the end: $scratch/tmp/belay-demo-"
[ -z "$(ls -A "$scratch/tmp")" ] || fail "the demo left something behind"
[ -z "$(grep -E '^.{81}' <<<"${out//"$scratch"/}")" ] || fail "a line of more than 80: $out"
TMPDIR= run demo; expect_rc 0; expect_in_out ": /tmp/belay-demo-"
TMPDIR=$scratch/absent run demo; expect_rc 1; expect_in_err "$scratch/absent"

# A store behind a symlink that leads nowhere is not made: which, and where to.
ln -s "$scratch/absent/disk" "$scratch/link"
for home in "$scratch/link" "$scratch/link/store"; do
  BELAY_HOME=$home run on; expect_rc 1
  expect_in_err "$scratch/link is a symlink to $scratch/absent/disk, which is not there"
done
[ -e "$scratch/absent" ] && fail "something was made there"
# Nobody is told that nothing is protected, where the store's disk may not be mounted, or is not one.
mkdir "$scratch/foreign"; : >"$scratch/foreign/letter"
for command in checkpoint list status roots du off doctor repair; do
  BELAY_HOME=$scratch/link run $command; expect_rc 1; said=$(tr -s ' \n' ' ' <<<"$err$out")
  [[ $said == *"is a symlink to $scratch/absent/disk, which is not there"*"is its disk mounted?"* ]] || fail "$command: $said"
  [[ $said == *"not protected"* && $command != doctor ]] && fail "$command: $said"
  BELAY_HOME=$scratch/foreign run $command; expect_rc 1; said=$(tr -s ' \n' ' ' <<<"$err$out")
  [[ $said == *"$scratch/foreign is not empty and holds no Belay store"* ]] || fail "$command: $said"
done
[ "$(ls "$scratch/foreign")" = letter ] || fail "something was made there"
BELAY_HOME=/ run list; expect_rc 1
[[ $err == *"/ is not empty and holds no Belay store"* || $err == *"/ belongs to user 0"* ]] || fail "$err"
rm -r "$scratch/link" "$scratch/foreign"
# No store can be made: status says why.
for home in /proc/x /sys/x/y; do
  BELAY_HOME=$home run status; expect_rc 1; expect_in_out "not protected"; expect_in_err "the store $home cannot be made"
  BELAY_HOME=$home run status --json; expect_rc 1
  expect_py "not d['protected'] and 'cannot be made' in d['failures'][0]['what'] and 'BELAY_HOME' in d['failures'][0]['what']"
done

# --- output ---
if [ -w /dev/full ]; then
  for words in "--version" "--help" "status" "status --json" "config" "completions bash"; do
    "$BELAY_BIN" $words >/dev/full 2>"$scratch/err"; rc=$?
    [ $rc != 0 ] || fail "$words on a full device: exit 0"
    grep -q "standard output" "$scratch/err" || fail "$words on a full device: silence"
  done
fi
"$BELAY_BIN" status >&- 2>"$scratch/err" && fail "a closed output: exit 0"
# What was changed is done, whoever can be told of it.
mkdir "$scratch/kept"
for words in "on $scratch/kept" "config notice true" gc repair prune "off $scratch/kept"; do
  for json in "" --json; do
    if [ -w /dev/full ]; then
      BELAY_HOME=$scratch/kept-store "$BELAY_BIN" $words $json >/dev/full 2>"$scratch/err"; rc=$?
      [ $rc = 0 ] || fail "$words $json on a full device: exit $rc"
      grep -q "(all was done)" "$scratch/err" || fail "$words $json: $(cat "$scratch/err")"
    fi
    [ "${words%% *}" = off ] && BELAY_HOME=$scratch/kept-store "$BELAY_BIN" on -q "$scratch/kept" >/dev/null
    BELAY_HOME=$scratch/kept-store "$BELAY_BIN" $words $json >&- 2>"$scratch/err" ||
      fail "$words $json with a closed output"
    [ "${words%% *}" = off ] && BELAY_HOME=$scratch/kept-store "$BELAY_BIN" on -q "$scratch/kept" >/dev/null
  done
done
"$BELAY_BIN" status 2>&- >"$scratch/out" || fail "a closed standard error"
"$BELAY_BIN" status <&- >"$scratch/out" || fail "a closed standard input"
# All three closed, and a file written: no message may land in it.
"$BELAY_BIN" config notice false <&- >&- 2>&-
[ "$(cat "$HOME/.config/belay/config.toml")" = "notice = false" ] ||
  fail "settings: $(cat "$HOME/.config/belay/config.toml")"
"$BELAY_BIN" config nothing 2>/dev/full; [ $? = 1 ] || fail "full standard error"

# A reader that goes away is no failure, and nothing is said.
(trap '' PIPE; "$BELAY_BIN" completions bash 2>"$scratch/err"; echo $? >"$scratch/code") | true
[ "$(cat "$scratch/code")" = 0 ] || fail "broken pipe: exit $(cat "$scratch/code")"
[ ! -s "$scratch/err" ] || fail "broken pipe: $(cat "$scratch/err")"

# --- colours: only on a terminal, not with NO_COLOR ---
run status; [[ $out == *$'\e'* ]] && fail "colours in a file"
python3 - "$BELAY_BIN" <<'PY' || fail "colours on a terminal"
import os, pty, sys
def on_terminal(extra):
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm", **extra})
        os.execv(sys.argv[1], [sys.argv[1], "status"])
    text = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece: break
        text += piece
    os.waitpid(pid, 0)
    return text
assert b"\x1b[" in on_terminal({}), "none on a terminal"
assert b"\x1b[" in on_terminal({"NO_COLOR": ""}), "an empty NO_COLOR counts as unset"
assert b"\x1b" not in on_terminal({"NO_COLOR": "1"}), "NO_COLOR is not honoured"
assert b"\x1b" not in on_terminal({"TERM": "dumb"}), "a dumb terminal"
PY

# --- a directory that is gone ---
mkdir gone; cd gone; rmdir "$scratch/work/gone"
run --version; expect_rc 0
run status; expect_rc 1; expect_in_err "$real/gone"
run status --json; expect_rc 1; expect_py "d['error']['code'] == 'not_found'"
run status --root "$scratch"; expect_rc 0
run config notice --root "$scratch"; expect_rc 0
cd "$scratch/work" || exit 1

# --- no memory to speak of, and a file size limit of nothing ---
# (A thread sanitizer writes into a file of its own before main() begins.)
if [[ $BELAY_BIN != *tsan* ]]; then
  (ulimit -f 0; "$BELAY_BIN" config notice true >/dev/null 2>"$scratch/err"); rc=$?
  [ $rc = 5 ] || fail "file size limit: exit $rc: $(cat "$scratch/err")"
  [ "$(cat "$HOME/.config/belay/config.toml")" = "notice = false" ] || fail "torn settings"
  [ "$(ls -A "$HOME/.config/belay")" = config.toml ] || fail "a temporary was left behind"
fi
finish
