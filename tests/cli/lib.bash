# Sourced by the scripts here: a scratch directory that is also HOME, and small checks.
# BELAY_BIN is the program. A failed check is reported with its line; `finish` decides.

set -u
: "${BELAY_BIN:?is not set}"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/belay-cli.XXXXXX")
# A script that forgot to `finish` fails too, when a check did.
failures=0
trap 'status=$?; cd /; rm -rf "$scratch"; [ "$failures" = 0 ] || [ "$status" != 0 ] || exit 1' EXIT
unset BELAY_HOME BELAY_CONFIG XDG_DATA_HOME XDG_CONFIG_HOME NO_COLOR COLUMNS
export HOME=$scratch/home LC_ALL=C TERM=dumb
mkdir -p "$HOME" "$scratch/work"
cd "$scratch/work" || exit 1

fail() {
  echo "FAILED ${BASH_SOURCE[-1]##*/}:${BASH_LINENO[-2]}: $*"
  failures=$((failures + 1))
}

# run WORDS...: the program, its output in $out and $err, its exit code in $rc.
run() {
  "$BELAY_BIN" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  rc=$?
  out=$(cat "$scratch/out"; echo x); out=${out%x}
  err=$(cat "$scratch/err")
}

expect_rc() { [ "$rc" = "$1" ] || fail "exit $rc, not $1: out='$out' err='$err'"; }
expect_out() { [ "$out" = "$1" ] || fail "out is '$out', not '$1'"; }
expect_in_out() { [[ $out == *"$1"* ]] || fail "'$1' is not in out '$out'"; }
expect_in_err() { [[ $err == *"$1"* ]] || fail "'$1' is not in err '$err'"; }
expect_silent_err() { [ -z "$err" ] || fail "err is '$err', not empty"; }
expect_json() {
  (cd / && python3 -m json.tool <"$scratch/out" >/dev/null) || fail "not JSON: '$out'"
}
# expect_py EXPRESSION: true of the JSON document d.
expect_py() {
  (cd / && python3 -c 'import json,sys
d=json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$scratch/out" "$1") || fail "not so: $1 of '$out'"
}

finish() {
  [ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
  exit 0
}
