# Wrong usage, what is not there yet, exit codes, and errors as JSON.
. "$(dirname "$0")/lib.bash"

run --version; expect_rc 0; expect_in_out "belay "; expect_silent_err
run --version --json; expect_rc 0; expect_py "d['version']"
run --json --version; expect_rc 0; expect_py "d['version']"

version=$("$BELAY_BIN" --version)
for words in "verify --version" "--version verify" "-q --version" "rollback --version" \
    "config --version auto" "--root . --version"; do
  run $words; expect_rc 0; expect_out "$version
"
done
run verify --version --json; expect_rc 0; expect_py "d['version']"
run config -- --version; expect_rc 1
run --verison; expect_rc 2; expect_in_err "did you mean --version?"

run; expect_rc 2; expect_out ""; expect_in_err "belay --help"
run --json; expect_rc 2; expect_py "d['error']['code'] == 'usage'"

run statsu; expect_rc 2; expect_in_err "did you mean status?"
run xyzzy; expect_rc 2; expect_in_err "unknown command 'xyzzy'"
run ""; expect_rc 2
run $'\e[31mred'; expect_rc 2; expect_in_err '\x1b[31mred'
[[ $err == *$'\e'* ]] && fail "an escape sequence reached the terminal"
run -- status; expect_rc 0

run status --josn; expect_rc 2; expect_in_err "did you mean --json?"
run status --nothing-like-it; expect_rc 2
run status -x; expect_rc 2; expect_in_err "unknown flag -x"
run status extra; expect_rc 2; expect_in_err "too many arguments: 'extra'"
run status --root; expect_rc 2; expect_in_err "--root needs a value"
run status --root --json; expect_rc 2; expect_in_err "--root needs a value"
run status --root=; expect_rc 2
run status --json=yes; expect_rc 2; expect_in_err "--json takes no value"
run --nothing status; expect_rc 2; expect_in_err "unknown flag --nothing"
run config a b c; expect_rc 2; expect_in_err "too many arguments: 'c'"
run config --project; expect_rc 2
run status -qv; expect_rc 0
# -v says where it looked and what it took, on standard error.
run status; plain=$out; expect_silent_err
run -v status; expect_rc 0; expect_out "$plain"
expect_in_err "store: $HOME/.local/share/belay"
expect_in_err "settings: $HOME/.config/belay/config.toml"
[[ $err =~ took\ [0-9.]+\ ms\ \(CPU\ [0-9.]+\ ms\),\ peak\ memory\ [0-9.]+\ MiB ]] || fail "-v: '$err'"
run status --verbose --json; expect_rc 0; expect_json; expect_in_err "took "

# With --json every failure is one document on standard output.
for words in "statsu" "status --josn" "status extra" "--nothing" "rollback 1" \
    "verify --nothing" "config nothing" "completions tcsh" "status --root $scratch/absent"; do
  run $words --json
  [ "$rc" != 0 ] || fail "$words: exit 0"
  expect_py "sorted(d['error']) == ['code', 'hint', 'message'] and d['error']['message']"
  [ -n "$err" ] || fail "$words: nothing for a person"
done

# Known, but not in this version: exit 2, said plainly, whatever the words.
for command in on off roots checkpoint list show ls cat diff rollback undo redo revert log \
    note pin unpin delete search doctor stats why sessions rewind fork summarize resume \
    blame bisect try run-check run prune purge import events install uninstall \
    hook serve ui pick; do
  # What has come since is no longer asked for here.
  "$BELAY_BIN" --help | sed '/^Not in this version/,$d' | grep -q "^  $command " && continue
  run "$command"; expect_rc 2; expect_out ""
  [ "$err" = "belay $command: not in this version yet" ] || fail "$command: '$err'"
  run "$command" some --words -- more --json
  expect_rc 2; expect_out ""
  run "$command" --json
  expect_rc 2
  expect_py "d['error']['message'] == 'belay $command: not in this version yet'"
done

# Nothing above may have created anything.
[ -z "$(ls -A "$HOME")" ] || fail "HOME is no longer empty: $(ls -A "$HOME")"
[ -z "$(ls -A "$scratch/work")" ] || fail "the directory is no longer empty"
finish
