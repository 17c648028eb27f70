# What a manifest does not name any more is said, stays, and comes back: an older copy of
# the manifest, a pack that was lost and found again, packs of another store, a root whose
# record is lost.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store

echo 1 >file
run on; expect_rc 0
run checkpoint -m one; expect_rc 0
echo 2 >file
run checkpoint -m two; expect_rc 0
run delete one --yes; expect_rc 0
run gc --everything; expect_rc 0
cp "$BELAY_HOME/manifest" "$scratch/older"
echo 3 >file
run checkpoint -m three; expect_rc 0
echo 4 >file
run checkpoint -m four; expect_rc 0
cp -a "$BELAY_HOME" "$scratch/good"
restore() { rm -rf "$BELAY_HOME"; cp -a "$scratch/good" "$BELAY_HOME"; }
all_there() {
  run verify --read-data; expect_rc 0
  run list; expect_rc 0
  for name in two three four; do expect_in_out "$name"; done
  run gc --everything; expect_rc 0
  run rollback three --yes; expect_rc 0
  [ "$(cat file)" = 3 ] || fail "three is not what it was: $(cat file)"
  echo 4 >file
}

# A pack of which only the header was left when the manifest was made anew, and whose
# records the catalogue brought back: put back whole, it is taken from.
pack=$(awk '/^pack / && !/open/ { print $2; exit }' "$BELAY_HOME/manifest")
run list; expect_rc 0
truncate -s 64 "$BELAY_HOME/packs/$pack.pack"; rm "$BELAY_HOME/packs/$pack.idx" "$BELAY_HOME/manifest"
run repair; expect_rc 3; expect_in_out "brought back from the catalogue"
cp "$scratch/good/packs/$pack.pack" "$BELAY_HOME/packs/"
run repair; expect_rc 0; expect_in_out "from behind the end of one"
all_there
restore

# An older manifest: nothing goes, and all of it comes back.
cp "$scratch/older" "$BELAY_HOME/manifest"
run list; expect_rc 0; expect_in_err "damaged"
run verify; expect_rc 3; expect_in_out "the manifest does not name"; expect_in_out "2 checkpoints hit"
run gc; expect_rc 3
run prune; expect_rc 3
run repair; expect_rc 0; expect_in_out "checkpoint 'four'"
all_there
restore

# Several repairs at once: it comes back once.
cp "$scratch/older" "$BELAY_HOME/manifest"
repairs=
for i in 1 2 3 4; do
  "$BELAY_BIN" repair >"$scratch/repair.$i" 2>&1 </dev/null & repairs="$repairs $!"
done
for pid in $repairs; do wait "$pid" || fail "a repair beside others: exit $?"; done
[ "$(cat "$scratch"/repair.? | grep -c "brought back.*'four'")" = 1 ] || { cat "$scratch"/repair.?; fail "brought back by several repairs"; }
run list --json; expect_py "[c['name'] for c in d['checkpoints']] == ['four', 'three', 'two']"
all_there
restore

# The pack is lost with the manifest and the catalogue, and found again.
pack=$(ls -t "$BELAY_HOME"/packs/*.pack | head -1)
mv "$pack" "$scratch/found.pack"
rm "${pack%.pack}.idx" "$BELAY_HOME/manifest"; rm -r "$BELAY_HOME/catalog" "$BELAY_HOME/cache"
run repair; expect_rc 3; expect_in_out "is missing"
run repair --accept-loss; expect_rc 0
cp "$scratch/found.pack" "$pack"
run verify; expect_rc 3
run repair; expect_rc 0; expect_in_out "checkpoint 'three'"
all_there
restore

# Packs of another store are nobody's business here.
mkdir "$scratch/other"
(cd "$scratch/other" && BELAY_HOME=$scratch/theirs "$BELAY_BIN" on -q && BELAY_HOME=$scratch/theirs "$BELAY_BIN" checkpoint -q) >/dev/null
theirs=$(ls "$scratch/theirs/packs"/*.pack)
cp "$theirs" "$BELAY_HOME/packs/"
run verify; expect_rc 0; expect_in_out "of another store"
run gc --everything; expect_rc 0; expect_in_err "is of another store, and stays"
[ -f "$BELAY_HOME/packs/$(basename "$theirs")" ] || fail "a pack of another store went"
run gc --everything --json; expect_rc 0; expect_py "d['foreign'] == ['packs/$(basename "$theirs")']"
all_there
restore

# The record of the root: one flipped bit, and whole checkpoints that nobody comes to.
rm -r "$BELAY_HOME/catalog"
python3 - "$BELAY_HOME/packs" "$PWD" <<'PY'
import glob, sys
hits = 0
for name in glob.glob(sys.argv[1] + "/*.pack"):
    data = bytearray(open(name, "rb").read())
    at = data.find(sys.argv[2].encode())
    if at >= 0:
        data[at] ^= 1
        open(name, "wb").write(data)
        hits += 1
sys.exit(hits == 0)
PY
run verify; expect_rc 3; expect_in_out "can be reached by nobody"
run repair --accept-loss; expect_rc 0; expect_in_out "the record of the root"
all_there

# Two things gone at once. An older manifest, and the pack that it does not name:
newest() { awk '/^pack/ { id = $2 } END { print id }' "$BELAY_HOME/manifest"; }
missed() {  # what nobody can bring back is said until the loss is accepted
  run verify; expect_rc 3; expect_in_out "is missing"; expect_in_out "of the log cannot be read"
  run list; expect_in_err "damaged"
  run repair; expect_rc 3
  run verify; expect_rc 3
  run repair --accept-loss; expect_rc 0; expect_in_out "given up: up to"
  run verify; expect_rc 0
  run list; expect_rc 0; [ -z "$err" ] || fail "still: $err"
  run checkpoint -m after; expect_rc 0
  run verify --read-data; expect_rc 0
}
fresh() {
  rm -rf "$BELAY_HOME"; run on; expect_rc 0
  for i in 0 1; do head -c 9000 /dev/urandom >file; run checkpoint -m "first$i"; expect_rc 0; done
  run delete first0 --yes; run gc --everything; expect_rc 0; expect_in_out "gave back"
}
fresh
cp "$BELAY_HOME/manifest" "$scratch/older"
for i in 2 3; do echo $i >file; run checkpoint -m "n$i"; expect_rc 0; done
[ "$(newest)" != "$(awk '/^pack/ { id = $2 } END { print id }' "$scratch/older")" ] || fail "no new pack"
cp -a "$BELAY_HOME" "$scratch/two"
rm "$BELAY_HOME/packs/$(newest)".*; cp "$scratch/older" "$BELAY_HOME/manifest"
missed

# The manifest and the newest pack, of which only the tail tells:
rm -rf "$BELAY_HOME"; cp -a "$scratch/two" "$BELAY_HOME"
rm "$BELAY_HOME/packs/$(newest)".* "$BELAY_HOME/manifest"
run repair; expect_rc 3; expect_in_out "is missing"
missed

# Who stores something by an older manifest makes a tail that no longer tells of it.
rm -rf "$BELAY_HOME"; cp -a "$scratch/two" "$BELAY_HOME"
cp "$scratch/older" "$BELAY_HOME/manifest"
echo 4 >file; run checkpoint -m n4; expect_rc 0
for looks in list status; do run "$looks"; expect_rc 0; expect_in_err "manifest is older"; done
run repair; expect_rc 0
for name in first1 n2 n3 n4; do run show "$name"; expect_rc 0; done
run list; expect_rc 0; [ -z "$err" ] || fail "still: $err"

# The tail, and the end of the open pack; nobody has asked anything since.
for cut in 1 700; do
  rm -rf "$BELAY_HOME"; run on; expect_rc 0
  for i in 1 2; do echo $i >file; run checkpoint -m "n$i"; expect_rc 0; done
  rm "$BELAY_HOME/tail"; truncate -s "-$cut" "$BELAY_HOME"/packs/*.pack
  cp -a "$BELAY_HOME" "$scratch/cut$cut"
  run verify; expect_rc 3; expect_in_out "shorter than it was"
  run repair; run verify
  [ "$rc" = 3 ] || { run show n2; expect_rc 0; }
  # A writer that comes first puts nothing in its place.
  BELAY_HOME=$scratch/cut$cut
  echo 3 >file; run checkpoint -m n3; expect_rc 0; expect_in_err "damaged"
  run verify; expect_rc 3
  BELAY_HOME=$scratch/store
done

# Manifest and packs: not a directory that never was a store.
rm -rf "$BELAY_HOME"; run on; run checkpoint -m n1; expect_rc 0
rm -r "$BELAY_HOME/manifest" "$BELAY_HOME/packs"
for asks in verify list "checkpoint -m x" on; do run $asks; expect_rc 3; expect_in_err "are gone"; done
finish
