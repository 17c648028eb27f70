# purge: a secret that was stored is found in the store's files before, and in none of
# them afterwards, however it was packed; who else has it is said, and so is what is
# left out from then on.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
search=$BELAY_BUILD_DIR/bin/raw_search
[ -x "$search" ] || { echo "raw_search was not built"; exit 77; }
# there WORD..., gone WORD...: in any file of the store, raw or in any frame.
there() { "$search" "$BELAY_HOME" "$@" >"$scratch/found" || fail "not found: $*"; }
gone() {
  "$search" "$BELAY_HOME" "$@" >"$scratch/found" && fail "$1 is in $(cat "$scratch/found")"
}
# Text that compresses, a line of it incompressible.
secret() { seq 1 3000; echo "password=$1"; seq 3000 6000; }
random() { head -c "$1" /dev/urandom | base64 -w0; }

mkdir project; cd project || exit 1
run purge .env; expect_rc 1
run on; expect_rc 0
noise=$(random 3000)
for i in 1 2 3; do
  secret "in-text-$i" >config.txt
  printf '%s%s' "$noise" $i >token
  { head -c 900000 /dev/zero | tr '\0' 'a'; echo "in-the-long-one-$i"; seq 1 90000; } >long
  echo "$i" >code
  run checkpoint -m "c$i"; expect_rc 0
done
there in-text-1; there in-text-3; there "${noise:100:40}"; there in-the-long-one-2

run purge; expect_rc 2
run purge a --session s; expect_rc 2
run purge --session s --everywhere; expect_rc 2
run purge .; expect_rc 1; expect_in_err "belay off --forget"
run purge --session nobody; expect_rc 1; expect_in_err "no session"
run purge config.txt; expect_rc 1; expect_in_err "give --yes"
# Neither a typo nor a pattern looks like a secret that is gone.
run purge confg.txt --yes; expect_rc 1; expect_in_err "nothing of confg.txt is stored"
run purge confg.txt --yes --json; expect_rc 1; expect_in_err "nothing of confg.txt is stored"; expect_py "d['versions'] == 0"
run purge confg.txt --dry-run; expect_rc 1; expect_in_err "nothing of confg.txt is stored"
run purge 'config.*' --yes; expect_rc 1; expect_in_err "not a pattern"
there in-text-1
before=$("$BELAY_BIN" ls c1 --json)
run purge config.txt --dry-run; expect_rc 0
expect_in_out "would erase 3 versions"; expect_in_out "from 3 checkpoints"
run purge config.txt --dry-run --json; expect_rc 0
expect_py "d['dry_run'] and d['versions'] == 3 and d['checkpoints'] == 3 and d['on_disk'] and d['shared'] == []"
there in-text-1
[ "$before" = "$("$BELAY_BIN" ls c1 --json)" ] || fail "a dry run changed something"

run purge config.txt --yes; expect_rc 0
expect_in_out "erased 3 versions"; expect_in_out "leave it out from now on"
gone in-text-1; gone in-text-2; gone in-text-3
run purge token --yes --json; expect_rc 0
expect_py "d['versions'] == 3 and d['freed'] > 3000 and len(d['left_out']) == 1 and d['may_still_hold'] == []"
for at in 0 100 1000 3000; do gone "${noise:at:24}"; done
rm long
run purge long --yes; expect_rc 0
gone in-the-long-one-1 in-the-long-one-2 in-the-long-one-3
run verify --read-data; expect_rc 0
# Once more is no mistake: a purge that was interrupted is finished so.
run purge long --yes; expect_rc 0; expect_in_out "nothing of long is stored"

# Everybody says so.
run show c2; expect_rc 0; expect_in_out "purged, and no longer held"; expect_in_out "token"
run show c2 --json; expect_py "d['purged'] == ['config.txt', 'long', 'token']"
run ls c2; expect_rc 0; expect_in_out "token  (purged)"; expect_in_out "code"
run ls c2 --json
expect_py "[e['path'] for e in d['entries'] if e['purged']] == ['config.txt', 'long', 'token']"
run cat c2 token; expect_rc 1; expect_in_err "was purged"
run cat c2 code; expect_rc 0; expect_out "2
"
run diff c1 c2 -- config.txt; expect_rc 1; expect_in_err "its content was purged"
run log; expect_rc 0; expect_in_out "purge of token"
run why config.txt code --json
expect_py "[p['why'] for p in d['paths']] == ['purged', 'covered']"
run doctor; expect_in_out "purged"
run checkpoint -m after; expect_rc 0; expect_in_out "(purged)"
run show after --json
expect_py "{'path': 'token', 'why': 'purged'} in d['skipped']"
run status; expect_rc 0

# A rollback leaves the path alone, and takes the rest back; so does undo.
echo 9 >code
run rollback c1 --dry-run --json; expect_rc 0
expect_py "('token', 'purged') in [(k['path'], k['why']) for k in d['kept']] and [s['path'] for s in d['steps']] == ['code']"
run rollback c1 --yes; expect_rc 0
[ "$(cat code)" = 1 ] || fail "code was not taken back"
[ "$(cat token)" = "${noise}3" ] || fail "a rollback touched what was purged"
[ -e long ] && fail "long came back"
run undo; expect_rc 0; [ "$(cat code)" = 9 ] || fail "not undone"
for at in 0 100 1000; do gone "${noise:at:24}"; done
run export c1 -o "$scratch/b"; expect_rc 0; expect_in_err "it was purged: config.txt"
run export c1 -o "$scratch/b" --force --json
expect_py "{'path': 'token', 'why': 'purged'} in d['checkpoints'][0]['left_out']"

# Checkpoints go on leaving it out, also of a directory that was switched off between,
# until somebody says otherwise.
run off; expect_rc 0; run on; expect_rc 0
echo "password=another-one" >config.txt
run checkpoint; expect_rc 0; gone another-one
run purge --allow config.txt; expect_rc 0
run purge --allow config.txt; expect_rc 1
run checkpoint -m allowed; expect_rc 0; there another-one
run cat allowed config.txt; expect_rc 0
run cat c1 config.txt; expect_rc 1

# What another path or project has is named, and kept unless --everywhere.
mkdir ../other; echo "password=in-two-places" | tee a >b; cp a ../other/c
run checkpoint -m both; expect_rc 0
(cd ../other && "$BELAY_BIN" on -q >/dev/null && "$BELAY_BIN" checkpoint -q >/dev/null) || fail "other"
run purge a --yes; expect_rc 1; expect_in_err "nothing was erased"; expect_in_err "--everywhere"
expect_in_out "b"; expect_in_out "other"; there in-two-places
run log; expect_in_out "purge of a (no checkpoint lost anything"
run purge a --yes --json; expect_rc 1
expect_py "sorted(s['also'] for s in d['shared']) == ['b', 'c'] and all(s['kept'] for s in d['shared'])"
run purge a --everywhere --yes; expect_rc 0
gone in-two-places
for dir in . ../other; do
  (cd "$dir" && "$BELAY_BIN" checkpoint -q >/dev/null) || fail "$dir"
done
gone in-two-places
run verify --read-data; expect_rc 0

# Two paths that are purged one after the other do not keep content for each other.
echo "password=each-for-the-other" | tee first >second
run checkpoint -m pair; expect_rc 0
run purge first --yes; expect_rc 1; expect_in_err "because of second"; there each-for-the-other
run purge second --yes; expect_rc 0; expect_in_out "erased there too: first, which was purged before"
gone each-for-the-other
run cat pair first; expect_rc 1; expect_in_err "was purged"
run verify --read-data; expect_rc 0

# A bundle does not bring back what was purged, and says so.
echo "password=in-a-bundle" >bundled; echo plain >beside
run checkpoint -m packed; expect_rc 0
run export packed -o "$scratch/packed"; expect_rc 0
run purge bundled --yes; expect_rc 0; gone in-a-bundle
run delete packed --yes; expect_rc 0
run import "$scratch/packed"; expect_rc 0; expect_in_err "purged here before"; gone in-a-bundle
run cat packed bundled; expect_rc 1; expect_in_err "was purged"
run cat packed beside; expect_rc 0; expect_out "plain
"
run show packed --json; expect_py "'bundled' in d['purged'] and 'beside' not in d['purged']"
run delete packed --yes; expect_rc 0
run import "$scratch/packed" --json; expect_rc 0
expect_py "d['purged'] > 0 and d['checkpoints'][0]['lacks_purged'] and not d['checkpoints'][0]['was_purged']"
run rollback packed --dry-run --json; expect_rc 0
expect_py "('bundled', 'purged') in [(k['path'], k['why']) for k in d['kept']]"
run verify --read-data; expect_rc 0; gone in-a-bundle

# A name and a note: deleted, they are in no file once everything was collected.
run checkpoint -m name-is-hunter2 --note "note-is-hunter3"; expect_rc 0
there name-is-hunter2; there note-is-hunter3
run delete name-is-hunter2 --yes; expect_rc 0
run gc --everything; expect_rc 0
# `belay log` goes on naming what was deleted.
there name-is-hunter2; gone note-is-hunter3

# A session, with what was said in it.
echo "password=of-a-session" >s
run checkpoint -m in-session --session talk --note "note-of-the-talk"; expect_rc 0
echo clean >s
run checkpoint -m later; expect_rc 0
there of-a-session; there note-of-the-talk
run purge --session talk --yes --json; expect_rc 0
expect_py "d['session'] == 'talk' and d['checkpoints'] == 1"
gone of-a-session; gone note-of-the-talk; gone in-session
run list --json --all; expect_py "'in-session' not in [c['name'] for c in d['checkpoints']]"
run verify --read-data; expect_rc 0

# What rollbacks left of a session is not passed over in silence.
echo base >q; run checkpoint -m qbase; expect_rc 0
echo "password=left-by-a-rollback" >q
run checkpoint -m QNAME-S3CRET --session Q; expect_rc 0
echo next >q
run rollback QNAME-S3CRET --yes --exact; expect_rc 0
run rollback qbase --yes; expect_rc 0
run purge --session Q --yes; expect_rc 0
expect_in_out "content that came with the session"; expect_in_out "the name of one of its checkpoints goes from 1 other record"
expect_in_err "1 checkpoint that"; expect_in_err "belay delete REF"; gone QNAME-S3CRET
run list --all --json; expect_py "'before rollback to a checkpoint that was purged' in [c['description'] for c in d['checkpoints']]"
run log; [[ $out != *"rollback to 'QNAME-S3CRET'"* ]] || fail "its rollback is still in the log: $out"
run verify --read-data; expect_rc 0

# Files that repair kept may hold anything: it says so, and does not say "done".
touch "$BELAY_HOME/packs/old.pack.aside"
run purge b --yes; expect_rc 1; expect_in_err "old.pack.aside"
finish
