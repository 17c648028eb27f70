# prune: what would go, what goes, what the log says of it, and what stays.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
mkdir project; cd project || exit 1
run prune; expect_rc 0; expect_in_out "nothing stored yet"
run on; expect_rc 0
run checkpoint -m by-hand; expect_rc 0
for i in 1 2 3 4 5 6; do
  echo $i >file
  run run -- true; expect_rc 0
done
run prune; expect_rc 0; expect_in_out "nothing to let go"
printf 'retention.auto = 2\n' >"$BELAY_CONFIG"
before=$("$BELAY_BIN" list --json --all)
run prune --dry-run; expect_rc 0; expect_in_out "9 checkpoints would go"
expect_in_out "more than 2 automatic ones"; expect_in_out "belay prune"
[ "$before" = "$("$BELAY_BIN" list --json --all)" ] || fail "a dry run changed something"
run prune --dry-run --json; expect_rc 0
expect_py "d['dry_run'] and d['checkpoints'] == 9 and len(d['roots'][0]['checkpoints']) == 9"
run prune; expect_rc 0; expect_in_out "9 checkpoints let go"
run list --json --all; expect_rc 0; expect_py "len(d['checkpoints']) == 4"
expect_py "d['checkpoints'][-1]['name'] == 'by-hand'"
run log; expect_rc 0; expect_in_out "prune"
run verify --read-data; expect_rc 0
run rollback by-hand --yes; expect_rc 0
[ -e file ] && fail "not rolled back"
run undo; expect_rc 0; [ "$(cat file)" = 6 ] || fail "not undone"

# A project may not have its own history thrown away.
printf 'retention.auto = 1\n' >.belay.toml
run checkpoint; expect_rc 0; expect_in_err "retention.auto"
run config retention.auto; expect_rc 0; expect_in_out 2
finish
