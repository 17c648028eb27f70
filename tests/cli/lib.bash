# Sourced by the scripts here: a scratch directory that is also HOME, and small checks.
# BELAY_BIN is the program. A failed check is reported with its line; `finish` decides.

set -u
: "${BELAY_BIN:?is not set}"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/belay-cli.XXXXXX")
# A script that forgot to `finish` fails too, when a check did.
failures=0
trap 'status=$?; cd /; [ -z "$judge" ] || kill "$judge"; rm -rf "$scratch"; [ "$failures" = 0 ] || [ "$status" != 0 ] || exit 1' EXIT
judge=
unset BELAY_HOME BELAY_CONFIG XDG_DATA_HOME XDG_CONFIG_HOME NO_COLOR COLUMNS
export HOME=$scratch/home LC_ALL=C TERM=dumb
mkdir -p "$HOME" "$scratch/work"
cd "$scratch/work" || exit 1

fail() {
  echo "FAILED ${BASH_SOURCE[-1]##*/}:${BASH_LINENO[-2]}: $*"
  failures=$((failures + 1))
}

# Around every `run` of a command that has no business there: each repository of this
# test byte by byte, with its times, and what git says of it (what may not be read says
# the same twice). git_is_ours=1 ends it where
# a test asks for refs of ours.
git_is_ours=
has_git() {  # No program is started where there is none, which is nearly everywhere.
  local at dots
  dots=$(shopt -p dotglob); shopt -s dotglob
  for at in "$scratch"/{,*/,*/*/,*/*/*/}.git; do [ -e "$at" ] && break; done
  $dots
  [ -e "$at" ]
}
git_print() {
  has_git || return 0
  find "$scratch" -maxdepth 4 -name .git -prune -print | sort | while read -r git_dir; do
    find "$git_dir" -printf '%p %y %m %s %T@ %l\n' 2>&1 | sort
    find "$git_dir" -type f -exec sha256sum {} + 2>&1 | sort
    (cd "${git_dir%/.git}" && git --no-optional-locks -c core.fsmonitor=false status --porcelain 2>&1)
  done
}
leaves_git_alone() {  # WORDS...: is it one that may not touch git, with nothing to recover?
  local word store=${BELAY_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/belay}
  [ -z "$git_is_ours" ] || return 1
  compgen -G "$store/journal/*" >/dev/null && return 1
  for word; do
    case $word in
      checkpoint | status | doctor | why | show | ls | cat | diff | list | roots | on | log | search | du | stats | verify | gc) return 0 ;;
      -*) ;;
      *) return 1 ;;
    esac
  done
  return 1
}

# run WORDS...: the program, its output in $out and $err, its exit code in $rc.
run() {
  local git_before='' watched=''
  leaves_git_alone "$@" && has_git && watched=1 && git_before=$(git_print)
  "$BELAY_BIN" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  rc=$?
  [ -z "$watched" ] || [ "$git_before" = "$(git_print)" ] ||
    fail "git is not as it was before: belay $*$(diff <(echo "$git_before") <(git_print) | head -5)"
  content "$scratch/out" out
  content "$scratch/err" err
  while [[ $err == *$'\n' ]]; do err=${err%$'\n'}; done
}
# content FILE NAME: into the variable, without its zeros; by no other program where there are none.
content() {
  if IFS= read -rd '' "$2" <"$1"; then printf -v "$2" %s "$(tr -d '\0' <"$1"; echo x)"; printf -v "$2" %s "${!2%x}"; fi
}

expect_rc() { [ "$rc" = "$1" ] || fail "exit $rc, not $1: out='$out' err='$err'"; }
expect_out() { [ "$out" = "$1" ] || fail "out is '$out', not '$1'"; }
expect_in_out() { [[ $out == *"$1"* ]] || fail "'$1' is not in out '$out'"; }
expect_in_err() { [[ $err == *"$1"* ]] || fail "'$1' is not in err '$err'"; }
expect_silent_err() { [ -z "$err" ] || fail "err is '$err', not empty"; }
expect_json() {
  (cd / && python3 -m json.tool <"$scratch/out" >/dev/null) || fail "not JSON: '$out'"
}
# expect_py EXPRESSION: true of the JSON document d. One Python answers all of a script.
expect_py() {
  local answer=
  [ -n "$judge" ] || begin_judging
  printf '%s\0' "$scratch/out" "$1" >&"$asks"
  IFS= read -rt 60 answer <&"$answers"
  [ "$answer" = yes ] || fail "not so: $1 of '$(cat "$scratch/out")' $answer"
}
begin_judging() {
  mkfifo "$scratch/asks" "$scratch/answers" || exit 1
  exec {asks}<>"$scratch/asks" {answers}<>"$scratch/answers"
  # Nobody's child, so that `wait` does not wait for it.
  (cd / && exec python3 -c 'import json, os, sys
os.closerange(3, 1024)  # what a script waits for the end of
asks, answers = open(sys.argv[1], "rb"), open(sys.argv[2], "w")
def words():
    word = b""
    while byte := asks.read(1):
        if byte == b"\0":
            yield os.fsdecode(word)
            word = b""
        else:
            word += byte
def say(text):
    print(text, file=answers, flush=True)
say(os.getpid())
asked = words()
for path in asked:
    expression = next(asked)
    try:
        with open(path) as file:
            d = json.load(file)
        say("yes" if eval(expression, {"d": d, "json": json, "sys": sys}) else "no")
    except Exception as error:
        say(repr(error).replace("\n", " "))' "$scratch/asks" "$scratch/answers" </dev/null >/dev/null 2>&1 &)
  IFS= read -rt 60 judge <&"$answers" || exit 1
}

# Waits until no belay on this store is left that a command started behind itself.
behind_is_done() {
  local exe found
  while :; do
    found=
    for exe in /proc/[0-9]*/exe; do
      [ "$exe" -ef "$BELAY_BIN" ] || continue
      { tr '\0' '\n' <"${exe%exe}environ" | grep -qxF "BELAY_HOME=$BELAY_HOME"; } 2>/dev/null || continue
      found=1
      break
    done
    [ -n "$found" ] || return 0
    read -rt 0.01 <> <(:) || :
  done
}

# killed_at CALL ARGS...: belay, killed (SIGKILL) at its CALL-th call that writes. False when it
# ended before that. Needs strace.
killed_at() {
  local writing=openat,openat2,mkdirat,renameat2,unlinkat,pwrite64,pwritev2,ftruncate,fsync,fdatasync,syncfs,fchmod,fchown
  local call=$1; shift
  # In a shell of its own, which says that it was killed.
  bash -c '"$@"; exit $?' - strace -f -qq -o /dev/null -e "trace=$writing" -e "inject=$writing:signal=KILL:when=$call" \
    "$BELAY_BIN" "$@" >"$scratch/said" 2>&1
  case $? in
    137) return 0 ;;
    0) return 1 ;;
    *) fail "to be killed at call $call: $(cat "$scratch/said")"; return 1 ;;
  esac
}

finish() {
  [ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
  exit 0
}
