# Help, man pages and completions: complete, within 80 columns, accepted by their readers.
. "$(dirname "$0")/lib.bash"

# The table of the command line's contract.
commands="on off roots checkpoint list show ls cat diff rollback undo redo revert log note
pin unpin delete search status doctor stats why sessions rewind fork summarize resume blame
bisect try run-check run prune gc du verify repair purge export import events install
uninstall hook serve ui pick demo config completions help"

too_wide() { awk 'length($0) > 80 { print FILENAME ":" FNR; found = 1 } END { exit !found }' "$scratch/out"; }

run --help
expect_rc 0; expect_silent_err
too_wide && fail "belay --help is wider than 80 columns"
expect_in_out "Example"
overview=$out

for command in $commands; do
  [[ $overview =~ [[:space:]]$command[[:space:],] ]] || fail "$command is not in belay --help"
  run "$command" --help
  expect_rc 0; expect_silent_err
  too_wide && fail "belay $command --help is wider than 80 columns"
  expect_in_out "Usage: belay $command"
  [[ $out =~ Examples?: ]] || fail "$command --help has no example"
  [[ $out =~ Examples?:.*"belay $command" ]] || fail "$command: the example does not use it"
  first=$out
  run help "$command"
  expect_rc 0; expect_out "$first"
  run "$command" -h
  expect_out "$first"
done

# A flag behind `--` is not ours.
run config -- --help
expect_rc 1

# Letters may stand together, before the command and behind it.
run -qh; expect_rc 0; expect_out "$overview"
run du --help; first=$out
run -qh du; expect_rc 0; expect_out "$first"
run du -vh; expect_rc 0; expect_out "$first"
run -q -h du; expect_rc 0; expect_out "$first"
run -qx du; expect_rc 2; expect_in_err "unknown flag"
# What follows a letter that takes a value is the value.
run checkpoint -mh; [[ $out == *Usage* ]] && fail "-mh was taken for a call for help"

run help nothing-like-it; expect_rc 2
run help statsu; expect_rc 2; expect_in_err "did you mean status?"
run --help --json; expect_rc 0; expect_py "'Usage' in d['help']"
run help config --json; expect_py "'belay config' in d['help']"

# --- man pages ---
mkdir "$scratch/man"
run __man "$scratch/man"; expect_rc 0
for page in belay $(printf 'belay-%s ' $commands); do
  [ -s "$scratch/man/$page.1" ] || fail "no page $page.1"
done
[ ! -e "$scratch/man/belay-__man.1" ] || fail "the hidden command has a page"
grep -n '[?!]\.$' "$scratch"/man/*.1 && fail "a full stop behind another end of a sentence"
for page in "$scratch"/man/*.1; do
  if command -v groff >/dev/null; then
    groff -man -ww -Tutf8 "$page" >/dev/null 2>"$scratch/warnings" || fail "groff: $page"
    [ -s "$scratch/warnings" ] && fail "groff warns of $page: $(head -3 "$scratch/warnings")"
  fi
  if command -v mandoc >/dev/null; then
    mandoc -Tlint -Wwarning "$page" >"$scratch/warnings" || fail "$(head -3 "$scratch/warnings")"
  fi
done
run __man "$scratch/absent"; expect_rc 1
run __man; expect_rc 2

# --- completions ---
for shell in bash zsh fish; do
  run completions $shell
  expect_rc 0; expect_silent_err
  expect_in_out "config"
  cp "$scratch/out" "$scratch/completion.$shell"
  if command -v $shell >/dev/null; then
    case $shell in
      fish) fish --no-execute "$scratch/completion.$shell" || fail "fish refuses it" ;;
      *) $shell -n "$scratch/completion.$shell" || fail "$shell refuses it" ;;
    esac
  fi
done
run completions tcsh; expect_rc 2; expect_in_err "bash|zsh|fish"
run completions; expect_rc 2
run completions bash --json; expect_py "'complete' in d['script']"

# What bash offers, asked the way bash asks.
complete_bash() {
  (
    . "$scratch/completion.bash"
    COMP_WORDS=(belay "$@"); COMP_CWORD=$#
    _belay
    printf '%s\n' "${COMPREPLY[@]}"
  )
}
[ "$(complete_bash statu)" = status ] || fail "statu<TAB>: $(complete_bash statu)"
[ "$(complete_bash completions z)" = zsh ] || fail "completions z<TAB>"
[ "$(complete_bash config store.c)" = store.cap ] || fail "config store.c<TAB>"
[ "$(complete_bash verify --read)" = --read-data ] || fail "verify --read<TAB>"
[ "$(complete_bash --root . statu)" = status ] || fail "--root . statu<TAB>"
[ "$(complete_bash config auto '')" = $'true\nfalse' ] || fail "config auto <TAB>: $(complete_bash config auto '')"
[ "$(complete_bash config --project granularity t)" = $'tool\nturn' ] || fail "config granularity t<TAB>"
[ "$(complete_bash config exclude '')" = "" ] || fail "config exclude <TAB>: $(complete_bash config exclude '')"
[ "$(complete_bash config auto true '')" = "" ] || fail "config auto true <TAB>"
[ "$(complete_bash help config '')" = "" ] || fail "help config <TAB>"
[ "$(complete_bash status --vers)" = --version ] || fail "status --vers<TAB>"
[ "$(complete_bash sessions d)" = delete ] || fail "sessions d<TAB>"
# A checkpoint is no file; what comes behind it may be one.
touch some-file
for words in "show some" "rollback some" "diff some" "diff 1 some" "cat some" "note some"; do
  # shellcheck disable=SC2086
  [ "$(complete_bash $words)" = "" ] || fail "$words<TAB>: $(complete_bash $words)"
done
for words in "cat 1 some" "rollback 1 some" "diff 1 -- some" "purge some" "why some" "import some"; do
  # shellcheck disable=SC2086
  [ "$(complete_bash $words)" = some-file ] || fail "$words<TAB>: $(complete_bash $words)"
done
[ "$(complete_bash rollb)" = rollback ] || fail "rollb<TAB>"
[ "$(complete_bash bisec)" = "" ] || fail "a command of a later version is offered"
finish
