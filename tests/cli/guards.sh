# What keeps a checkpoint from filling the disk, and Belay from eating itself.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
real=$(pwd -P)
nl=$'\n'
"$BELAY_BIN" on >/dev/null || fail on
count() { "$BELAY_BIN" list --json --root "$real" | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["checkpoints"]))'; }
packs() { cat "$BELAY_HOME"/packs/*.pack 2>/dev/null | wc -c; }

# --- max_files: refused, with the largest directories named ---
mkdir -p big/deep few
for i in {1..40}; do : >"big/deep/$i"; done
for i in {1..15}; do : >"few/$i"; done
"$BELAY_BIN" config -q max_files 50
run checkpoint; expect_rc 1
expect_in_err "more than 50 files"; expect_in_err ".belayignore"
expect_in_err "(of 55: 40 in big/deep/, 15 in few/)"
# Wherever the limit is met: the largest there is.
mkdir "$scratch/late"; cd "$scratch/late"; mkdir a b z; for i in {1..60}; do : >a/$i; : >b/$i; done; for i in {1..900}; do : >z/$i; done
"$BELAY_BIN" on -q >/dev/null; run checkpoint; expect_rc 1; expect_in_err "(of 1020: 900 in z/, 60 in a/, 60 in b/)"
run status; expect_rc 1; expect_in_err "900 in z/"
run doctor --json; expect_rc 1; expect_py "any('900 in z/' in p for p in d['problems'])"
cd "$real" || exit 1
run checkpoint --json; expect_rc 1; expect_py "d['error']['code'] == 'refused'"
[ "$(count)" = 0 ] || fail "a checkpoint was published"
run doctor; expect_rc 1; expect_in_out "max_files"
run status; expect_rc 1; expect_in_err "more than 50 files"; expect_in_out "protected, with problems"
run status --json; expect_rc 1; expect_py "d['protected'] and len(d['failures']) == 1 and 'more than 50 files' in d['failures'][0]['what'] and d['failures'][0]['at'].endswith('Z')"
# Only what is covered counts.
mkdir "$scratch/edge"; for i in {1..50}; do : >"$scratch/edge/$i"; done; mkfifo "$scratch/edge/pipe"
"$BELAY_BIN" on -q "$scratch/edge" >/dev/null; for i in 1 2 3; do run checkpoint --root "$scratch/edge" --json; expect_rc 0; expect_py "d['files'] == 50"; done
: >"$scratch/edge/51"; run checkpoint --root "$scratch/edge"; expect_rc 1
rm "$scratch/edge/51"; run status --root "$scratch/edge"; expect_rc 1; run checkpoint -q --root "$scratch/edge"; run status --root "$scratch/edge"; expect_rc 0; expect_silent_err
echo big/ >.belayignore
run checkpoint; expect_rc 0
run status; expect_rc 0
rm .belayignore; run checkpoint; expect_rc 1; [ "$(count)" = 1 ] || fail "published"
run status --json; expect_rc 1; expect_py "len(d['failures']) == 1"
"$BELAY_BIN" config -q max_files 2000000; run checkpoint; expect_rc 0

# --- max_file_size: left out, and said ---
"$BELAY_BIN" config -q max_file_size 1MiB
head -c 1048576 /dev/zero >fits; head -c 1048577 /dev/zero >over
run checkpoint; expect_rc 0; expect_in_out "1 path left out: over (too_large)"
run checkpoint --json; expect_py "d['skipped'] == [{'path':'over','why':'too_large'}]"
run show latest --json; expect_py "d['skipped'] == [{'path':'over','why':'too_large'}] and d['rules']['max_file_size'] == 1 << 20"
run ls latest; expect_in_out "fits"; [[ $out == *over* ]] && fail "it is there"
run cat latest over; expect_rc 1; expect_in_err "too_large"
run doctor --json; expect_py "[o['why'] for o in d['coverage']['left_out'] if o['path'] == 'over'] == ['too_large']"
: >over; run checkpoint --json; expect_py "d['skipped'] == []"
"$BELAY_BIN" config -q max_file_size 512MiB

# --- the store's cap: exit 5, nothing published, the rest as it was ---
run checkpoint -q; n=$(count); before=$(packs)
"$BELAY_BIN" config -q store.cap 1MiB
head -c 3000000 /dev/urandom >noise
run checkpoint; expect_rc 5; expect_in_err "store.cap"
run checkpoint --json; expect_rc 5; expect_py "d['error']['code'] == 'no_space' and 'store.cap' in d['error']['hint']"
[ "$(count)" = "$n" ] || fail "a checkpoint was published over the cap"
[[ $out == *"belay delete"* || $out == *"prune"* ]] && fail "a hint that cannot be followed: $out"
run checkpoint; expect_in_err "belay config store.cap 4MiB"
run status --json; expect_rc 1; expect_py "any('store.cap' in f['what'] for f in d['failures'])"
[ $(($(packs) - before)) -lt 1000000 ] || fail "the store grew by $(($(packs) - before))"
run verify --read-data; expect_rc 0
run doctor; [[ $out == *"store.cap"* ]] || [ "$rc" = 0 ] || fail "doctor: $out"
"$BELAY_BIN" config -q store.cap 10GiB
run checkpoint; expect_rc 0; [ "$(count)" = $((n + 1)) ] || fail "not published"

# --- the disk's floor ---
"$BELAY_BIN" config -q store.floor 900TiB
echo more >more
run checkpoint; expect_rc 5; expect_in_err "store.floor"
[ "$(count)" = $((n + 1)) ] || fail "a checkpoint was published below the floor"
run status; expect_rc 1; expect_in_err "store.floor"
run status --json; expect_rc 1; expect_py "len(d['failures']) == 1 and 'store.floor' in d['failures'][0]['what']"
run doctor; expect_rc 1; expect_in_out "store.floor"
run list; expect_rc 0
"$BELAY_BIN" config -q store.floor 0; run checkpoint; expect_rc 0

# --- switched off ---
run status; expect_rc 0; expect_silent_err
"$BELAY_BIN" config -q enabled false; run checkpoint; expect_rc 1; expect_in_err "belay config enabled true"
run status; expect_rc 1; expect_in_err "enabled = false in your settings"
"$BELAY_BIN" config -q enabled true
"$BELAY_BIN" config -q --project enabled false; run checkpoint; expect_rc 1; expect_in_err "belay config --project enabled true"
run status --json; expect_rc 1; expect_py "'.belay.toml' in d['failures'][0]['what'] and d['protected']"
run doctor; expect_in_out "enabled = false"
"$BELAY_BIN" config -q --project enabled true; run checkpoint; expect_rc 0; rm .belay.toml; run status; expect_rc 0

# --- at most 50 manual ones a session; those without one are not counted ---
for i in {1..50}; do "$BELAY_BIN" checkpoint -q --session s >/dev/null || fail "checkpoint $i of the session"; done
run checkpoint --session s; expect_rc 1; expect_in_err "50 checkpoints"
[[ $err == *"belay delete"* ]] && fail "a hint that cannot be followed: $err"
run checkpoint --session other; expect_rc 0
run checkpoint; expect_rc 0

# --- the store does not capture itself ---
mkdir -p "$scratch/self/sub/own"; cd "$scratch/self" || exit 1
export BELAY_HOME=$scratch/self/sub/own/store
echo text >a; echo text >sub/b
run on; expect_rc 0
run checkpoint --json; expect_rc 0
expect_py "d['files'] == 2 and d['skipped'] == [{'path':'sub/own/store','why':'other_root'}]"
run checkpoint --json; expect_py "d['changed'] == {'added':0,'modified':0,'deleted':0} and d['files'] == 2"
run ls latest; expect_out "a${nl}sub/b${nl}sub/own/$nl"
run why sub/own/store/manifest sub/own/store --json
expect_py "[(p['covered'],p['why']) for p in d['paths']] == [(False,'outside')] * 2"
# Not by another name either.
ln -s sub/own/store alias; export BELAY_HOME=$scratch/self/alias
run checkpoint --json; expect_py "d['files'] == 3 and d['skipped'] == [{'path':'sub/own/store','why':'other_root'}]"
run on sub/own/store --force; expect_rc 1
finish
