# sessions: listed, deleted with their checkpoints but for pinned ones, and accounted for
# by du.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
mkdir project; cd project || exit 1
run on; expect_rc 0
run sessions; expect_rc 0; expect_in_out "no sessions yet"
head -c 30000 /dev/urandom >common
run checkpoint -m plain; expect_rc 0
head -c 50000 /dev/urandom >file
run checkpoint -m a1 --session alpha; expect_rc 0
head -c 20000 /dev/urandom >file
run checkpoint -m a2 --session alpha; expect_rc 0
head -c 10000 /dev/urandom >file
run checkpoint -m b1 --session beta; expect_rc 0
run sessions; expect_rc 0; expect_in_out "alpha"; expect_in_out "2 checkpoints"
run sessions --json; expect_rc 0
expect_py "[(s['id'], s['checkpoints'], s['pinned']) for s in d['sessions']] == [('beta', 1, 0), ('alpha', 2, 0)]"
(
  mkdir "$scratch/elsewhere"; cd "$scratch/elsewhere" || exit 1
  run sessions; expect_rc 1
  run sessions --all; expect_rc 0; expect_in_out alpha; expect_in_out "/project"
  run sessions --all --json; expect_rc 0
  expect_py "d['root'] is None and [s['id'] for s in d['sessions']] == ['beta', 'alpha']"
  BELAY_HOME=$scratch/none run sessions --all --json; expect_rc 0
  expect_py "d == {'root': None, 'sessions': []}"
  [ "$failures" = 0 ]
) || fail "outside of a protected directory"
run sessions remove alpha; expect_rc 2
run sessions delete; expect_rc 2
run sessions delete nobody; expect_rc 1; expect_in_err "no session nobody"

# Unique, shared and reclaimable; the sums are true.
run du --json; expect_rc 0
expect_py "[s['session'] for s in d['sessions']] == ['alpha', 'beta']"
expect_py "70000 <= d['sessions'][0]['unique'] < 73000 and 30000 <= d['sessions'][0]['shared'] < 31000"
expect_py "d['sessions'][0]['reclaimable'] == 0 and d['roots'][0]['reclaimable'] == 0"
expect_py "d['packs'] + d['indexes'] + d['catalog'] + d['other'] == d['allocated']"
unique=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["sessions"][0]["unique"])' <"$scratch/out")
on_disk=$(du -s --block-size=1 "$BELAY_HOME" | cut -f1)
expect_py "d['allocated'] == $on_disk"
run du --sessions; expect_rc 0; expect_in_out "session alpha: 2 checkpoints"

run pin a1; expect_rc 0
run sessions delete alpha; expect_rc 1; expect_in_err "give --yes"
run list --json --all; expect_py "len(d['checkpoints']) == 4"
run sessions delete alpha --yes; expect_rc 0
expect_in_out "deleted session alpha: 1 checkpoint"; expect_in_out "pinned, and kept"
run list --json --all; expect_py "[c['name'] for c in d['checkpoints']] == ['b1', 'a1', 'plain']"
run unpin a1; expect_rc 0
run sessions delete alpha --yes --json; expect_rc 0; expect_py "d['deleted'] == 1 and d['pinned'] == []"
run sessions --all --json; expect_py "[s['id'] for s in d['sessions']] == ['beta']"
run du --json
expect_py "d['sessions'][0]['reclaimable'] >= $unique and d['roots'][0]['reclaimable'] >= $unique"
before=$(du -s --block-size=1 "$BELAY_HOME" | cut -f1)
run gc; expect_rc 0
after=$(du -s --block-size=1 "$BELAY_HOME" | cut -f1)
[ $((before - after)) -ge $((unique - 8192)) ] || fail "$before to $after, not less by $unique"
run log; expect_rc 0; expect_in_out "delete"

# The beginning of an id is enough, when it is of one.
echo 1 >more; run checkpoint --session gamma-one; expect_rc 0
echo 2 >more; run checkpoint --session gamma-two; expect_rc 0
run sessions delete gamma --yes; expect_rc 1; expect_in_err "several sessions begin with"
run sessions delete gamma-o --yes --json; expect_rc 0
expect_py "d['session'] == 'gamma-one' and d['deleted'] == 1"
run sessions delete gamma-two --yes; expect_rc 0; expect_in_out "session gamma-two: 1"
run verify --read-data; expect_rc 0
finish
