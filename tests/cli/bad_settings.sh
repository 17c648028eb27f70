# Settings that make no sense keep nobody from a rescue.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
echo one >a; echo '!x' >/dev/null
printf 'exclude = ["out/"]\n' >.belay.toml
run on; run checkpoint -m good -q; expect_rc 0
printf 'exclude = ["out/", "data/"]\nmax_files = "many"\n' >.belay.toml
mkdir out data; echo o >out/o; echo d >data/d; echo two >a; echo new >n

run checkpoint; expect_rc 1; expect_in_err ".belay.toml:2:"; expect_in_err "rollback, undo"
run checkpoint --json; expect_rc 1; expect_py "'belay doctor' in d['error']['hint']"
run status; expect_rc 1; expect_in_err ".belay.toml:2:"
run status --json; expect_rc 1; expect_py "d['protected'] and '.belay.toml:2:' in d['failures'][0]['what']"
run list; expect_rc 0; run show latest; expect_rc 0; run ls latest; expect_rc 0
run cat latest a; expect_rc 0; expect_out $'one\n'; expect_in_err ".belay.toml:2:"
run ls now; expect_rc 0; expect_in_err ".belay.toml:2:"; expect_in_out "n"
[[ $out == *data/d* ]] && fail "the line that makes sense was not obeyed"

# Nothing that is new goes: it is not known what the file would protect.
run rollback good --yes --json -- a n data; expect_rc 0; expect_in_err ".belay.toml:2:"
expect_py "[k['why'] for k in d['kept'] if k['path'] == 'n'] == ['settings_unknown']"
[ "$(cat a)" = one ] || fail "not rolled back"; [ -e n ] && [ -e data/d ] && [ -e out/o ] || fail "deleted"
run undo; expect_rc 0; [ "$(cat a)" = two ] || fail "not undone"
run redo; expect_rc 0; [ "$(cat a)" = one ] || fail "not done again"
run undo; expect_rc 0

run why data/d n; expect_rc 0; expect_in_err ".belay.toml:2:"; expect_in_out "not covered  excluded"
# A key that does not count here cannot make no sense.
printf 'exclude = ["out/", "data/"]\nretention.days = 0\n' >.belay.toml
run rollback good --yes --json -- n; expect_rc 0; expect_in_err "is left out"
expect_py "d['kept'] == []"; [ -e n ] && fail "n was covered and is new"
run undo; expect_rc 0

# Not a file of settings at all; and the user's own.
rm .belay.toml; mkfifo .belay.toml
run rollback good --yes -- a; expect_rc 0; [ "$(cat a)" = one ] || fail "not rolled back"; expect_in_err "not a regular file"
rm .belay.toml; mkdir -p "$HOME/.config/belay"; echo 'secrets = "maybe"' >"$HOME/.config/belay/config.toml"
echo three >a; run checkpoint; expect_rc 1; expect_in_err "config.toml:1:"
run rollback good --yes -- a n; expect_rc 0; [ "$(cat a)" = one ] && [ -e n ] || fail "not rolled back as it should"
rm "$HOME/.config/belay/config.toml"; run rollback good --yes; expect_rc 0; [ -e n ] && fail "n was covered then and is now"
# Where nothing is protected they are said all the same, and what hooks could not record with them.
mkdir "$scratch/other"; echo 'auto = tru' >"$HOME/.config/belay/config.toml"
printf '{"session_id":"s","cwd":"%s","hook_event_name":"UserPromptSubmit","prompt":"x"}' "$scratch/other" | "$BELAY_BIN" hook claude >/dev/null || fail "hook: $?"
run status --root "$scratch/other"; expect_rc 1; expect_in_out "config.toml:1:"; expect_in_out "not protected"; expect_in_out "1 event of agents could not be recorded"
run status --root "$scratch/other" --json; expect_rc 1; expect_py "'config.toml:1:' in d['failures'][0]['what'] and len(d['failures']) == 2"
run install --list; expect_rc 0; expect_in_err "config.toml:1:"
run install --list --json; expect_rc 0; expect_json; expect_in_err "config.toml:1:"
BELAY_HOME=$scratch/none run status --root "$scratch/other"; expect_rc 1; [ ! -e "$scratch/none" ] || fail "a store was made"
rm "$HOME/.config/belay/config.toml"
[ -e data/d ] && fail "data was covered then and is now"; [ -e out/o ] || fail "out was not covered then"
finish
