# What is in the way of a repair costs nobody what the catalogue remembers; a repair that
# fails says what it did before; what it puts aside it never puts over something else.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store

echo 1 >file
run on; expect_rc 0
run checkpoint -m one; expect_rc 0
echo 2 >file
run checkpoint -m two; expect_rc 0
run list; expect_rc 0   # the catalogue knows both
cp -a "$BELAY_HOME" "$scratch/good"
pack=$(ls "$BELAY_HOME"/packs/*.pack)
restore() { rm -rf "$BELAY_HOME"; cp -a "$scratch/good" "$BELAY_HOME"; }
everything() { (cd "$BELAY_HOME" && find . \( -type f -exec sha256sum {} + \) -o -printf '%p %y\n' | sort); }
flip() { # FILE NEEDLE: one byte of the last one
  python3 - "$@" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.rindex(sys.argv[2].encode())
data[at] ^= 1
open(sys.argv[1], "wb").write(data)
PY
}

# A record that only the catalogue has, and a lock that is none: it is asked once that is
# out of the way.
for how in "" --accept-loss; do
  flip "$pack" two
  rm "$BELAY_HOME/lock"; mkdir "$BELAY_HOME/lock"
  run repair $how; expect_rc 0
  expect_in_out "lock was a directory"; expect_in_out "brought back from the catalogue: checkpoint 'two'"
  run list; expect_rc 0; expect_in_out "one"; expect_in_out "two"
  restore
done

# A newer format is said before anything moves.
newer() {
  python3 - "$BELAY_HOME/manifest" <<'PY'
import hashlib, sys
body = open(sys.argv[1], "rb").read()[:-71].replace(b"belay store 2\n", b"belay store 3\n")
open(sys.argv[1], "wb").write(body + b"check " + hashlib.sha256(body).hexdigest().encode() + b"\n")
PY
}
newer
rm "$BELAY_HOME/lock"; mkdir "$BELAY_HOME/lock"
before=$(everything)
run repair; expect_rc 1; expect_in_err "newer Belay"
[ "$before" = "$(everything)" ] || fail "a newer store was changed"
restore
newer
mv "$BELAY_HOME/packs" "$scratch/packs"
before=$(everything)
run repair --accept-loss; expect_rc 1; expect_in_err "newer Belay"
[ "$before" = "$(everything)" ] || fail "a newer store without its packs was changed"
rm -r "$scratch/packs"
restore

# An error names what was done before it.
rm "$BELAY_HOME/tail"; mkdir "$BELAY_HOME/tail"
id=$(basename "$pack" .pack)
chmod 0500 "$BELAY_HOME/packs"
if setpriv --reuid=65534 true 2>/dev/null; then
  chown -R 65534 "$BELAY_HOME" "$scratch"
  rc=0
  setpriv --reuid=65534 --regid=65534 --clear-groups "$BELAY_BIN" repair >"$scratch/out" 2>"$scratch/err" || rc=$?
  out=$(cat "$scratch/out") err=$(cat "$scratch/err")
  expect_rc 1
  expect_in_err "done before it failed: tail was a directory: moved aside, now tail.aside"
  chown -R 0 "$BELAY_HOME" "$scratch"
fi
chmod 0700 "$BELAY_HOME/packs"
restore

# No manifest, and a pack that nobody can read: put aside beside an earlier one.
printf 'an earlier one' >"$pack.aside"
printf 'no pack at all' >"$BELAY_HOME/packs/a2345678923456789234567892.pack"
printf 'an earlier one' >"$BELAY_HOME/packs/a2345678923456789234567892.pack.aside"
rm "$BELAY_HOME/manifest"
run repair; expect_rc 0; expect_in_out "it is unreadable: now a2345678923456789234567892.pack.aside2"
[ "$(cat "$BELAY_HOME/packs/a2345678923456789234567892.pack.aside")" = 'an earlier one' ] || fail "written over"
run list; expect_rc 0; expect_in_out "two"
restore

# No manifest, and packs of another store beside ours, one or many: whose it is says who
# remembers its end, and nobody where nobody does.
mine=$BELAY_HOME
for n in 1 2; do
  export BELAY_HOME=$scratch/other$n
  run on; run checkpoint -m foreign; expect_rc 0
done
export BELAY_HOME=$mine
cp "$scratch"/other1/packs/*.pack "$BELAY_HOME/packs/"
rm "$BELAY_HOME/manifest"
run repair; expect_rc 0; expect_in_out "it is of another store"
run list --all; expect_rc 0; expect_in_out "two"; [[ $out == *foreign* ]] && fail "of another store: $out"
restore
cp "$scratch"/other1/packs/*.pack "$BELAY_HOME/packs/"
rm -r "$BELAY_HOME/manifest" "$BELAY_HOME/tail" "$BELAY_HOME/catalog" "$BELAY_HOME/cache"
run repair; expect_rc 3; expect_in_err "as many packs of one store as of another"
[ "$(ls "$BELAY_HOME"/packs/*.pack | wc -l)" = 2 ] || fail "packs were put aside"
# Two files of the store that changed places: the pack is thrown away by no command, and
# a repair puts it back.
restore
scan=cache/$(cd "$BELAY_HOME/cache" && ls ./*.scan | head -1)
index=packs/$(basename "$pack" .pack).idx
for other in catalog/catalog.db catalog/changes tail cache/heads "$scan" "$index" cache/upkeep; do
  for then in list "checkpoint -m three" gc "repair --accept-loss"; do
    restore
    [ -e "$BELAY_HOME/$other" ] || : >"$BELAY_HOME/$other"
    mv "$pack" "$scratch/x"; mv "$BELAY_HOME/$other" "$pack"; mv "$scratch/x" "$BELAY_HOME/$other"
    run $then
    run repair; expect_rc 0
    run verify --read-data; expect_rc 0
    run list; expect_rc 0; expect_in_out "one"; expect_in_out "two"
  done
done
restore
mv "$pack" "$scratch/x"; mv "$BELAY_HOME/manifest" "$pack"; mv "$scratch/x" "$BELAY_HOME/manifest"
run repair; expect_rc 0; expect_in_out "had changed places"
run verify --read-data; expect_rc 0
restore

# No pack and no manifest: there is a way out, and what it costs.
mv "$BELAY_HOME/packs" "$scratch/packs"; echo >"$BELAY_HOME/manifest"
for how in "" --accept-loss; do
  run repair $how; expect_rc 3
  expect_in_err "bring it back from a copy"
  expect_in_err "to begin anew, and give up everything that was stored, remove $BELAY_HOME"
done
restore

finish
