# A log of which a part cannot be read is not a log that never had it: no directory is
# called unprotected then, none gets a second history, and no checkpoint is gone
# without a word.
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
zero() { # FROM COUNT
  dd if=/dev/zero of="$pack" bs=1 seek="$1" count="$2" conv=notrunc 2>/dev/null
}
damaged() {
  for command in "$@"; do
    run $command; expect_rc 3
    expect_in_err "damaged"; expect_in_err "belay verify"
    [[ $out$err == *"not protected"* ]] && fail "$command: '$out' '$err'"
  done
}

# The record of the root, and nobody who remembers it.
zero 192 64
rm -r "$BELAY_HOME/catalog" "$BELAY_HOME/cache"
damaged status list "show one" "rollback one --yes" "checkpoint -m three" roots
expect_in_err "log cannot be read"
damaged on "on --moved-from $scratch/elsewhere"
mkdir "$scratch/other"
damaged "status --root $scratch/other" "on $scratch/other"
run repair --accept-loss; expect_rc 0
run on; expect_rc 0
restore

# The same while the catalogue remembers: repair brings it back, and with it everything.
zero 192 64
cp -a "$BELAY_HOME/catalog" "$scratch/kept"
rm -r "$BELAY_HOME/catalog" "$BELAY_HOME/cache"
damaged on
rm -r "$BELAY_HOME/catalog"; cp -a "$scratch/kept" "$BELAY_HOME/catalog"
run repair; expect_rc 0
run list; expect_rc 0; expect_in_out "one"; expect_in_out "two"; expect_silent_err
run rollback one --yes; expect_rc 0
[ "$(cat file)" = 1 ] || fail "file is '$(cat file)'"
echo 2 >file
restore

# The end of the open pack: what was acknowledged does not vanish in silence.
size=$(stat -c %s "$pack")
for count in 100 158; do
  zero $((size - count)) "$count"
  damaged roots
  for command in list status; do
    run $command; expect_rc 0; expect_in_out "one"
    expect_in_err "the store is damaged: a part of its log cannot be read"
  done
  run status --json; expect_py '"damaged" in d["failures"][0]["what"]'
  run verify; expect_rc 3
  run repair; expect_rc 0; expect_in_out "two"
  run list; expect_rc 0; expect_silent_err; expect_in_out "two"
  run status; expect_rc 0
  restore
done
# Cut in half: nothing of the log is left, and nobody is told to make the first one.
truncate -s $((size / 2)) "$pack"
damaged list "list --json" "cat one file" "show one" "rollback one --yes" "diff one"
run list; [[ $out == *"No checkpoint yet"* ]] && fail "out is '$out'"
run list --json; expect_py 'd["error"]["code"] == "damaged"'
run du; expect_rc 3; [[ $out == *"belay gc"* ]] && fail "du sends to gc: '$out'"
restore
# A tree that is gone is damage, too.
run show one --json
python3 - "$pack" "$scratch/out" <<'PY'
import json, sys
pack = bytearray(open(sys.argv[1], "rb").read())
tree = bytes.fromhex(json.load(open(sys.argv[2]))["tree"])
at = pack.find(tree)
while pack[at - 16] != 3: at = pack.find(tree, at + 1)  # the record itself, not who names it
pack[at - 16] ^= 0x40
open(sys.argv[1], "wb").write(pack)
PY
rm -f "$BELAY_HOME"/packs/*.idx
for command in "rollback one --yes" "rollback one --dry-run" "ls one"; do
  run $command; expect_rc 3; expect_in_err "is not in the store"
done
[ "$(cat file)" = 2 ] || fail "file is '$(cat file)'"
restore
# Nor when no catalogue remembers it.
zero $((size - 158)) 158
rm -r "$BELAY_HOME/catalog" "$BELAY_HOME/cache"
damaged roots
for command in list status; do run $command; expect_rc 0; expect_in_err "the store is damaged"; done
run checkpoint -m three; expect_rc 0
run list; expect_in_err "the store is damaged"; expect_in_out "three"
restore

# Cut short, and no tail that says so: the catalogue knows better, whoever comes first.
for first in verify list status "checkpoint -m four" repair; do
  truncate -s $((size - 100)) "$pack"; rm "$BELAY_HOME/tail"
  run $first
  if [ "$first" != repair ]; then
    run list; expect_in_err "the store is damaged"; expect_in_out "one"
    run verify; expect_rc 3; expect_in_out "'two'"
    run list; expect_in_err "the store is damaged"
    run gc; expect_rc 3
    run repair
  fi
  expect_in_out "brought back from the catalogue: checkpoint 'two'"
  run list; expect_in_out "two"
  run repair --accept-loss; expect_rc 0
  run verify --read-data; expect_rc 0
  run list; expect_rc 0; expect_silent_err; expect_in_out "two"
  restore
done
# What was not acknowledged is not missed.
head -c 300 /dev/urandom >>"$pack"; rm "$BELAY_HOME/tail"
run list; expect_rc 0; expect_silent_err; run verify; expect_rc 0; run repair; expect_rc 0
restore

# A pack that is gone with the manifest is not forgotten with it.
for content in aaa bbb ccc; do echo $content >file; run checkpoint -m "$content"; done
run list; expect_in_out "ccc"
python3 - "$BELAY_HOME/manifest" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read()); data[20] ^= 1
open(sys.argv[1], "wb").write(data)
PY
truncate -s $((size - 100)) "$pack"
run verify; expect_rc 3
run repair; expect_rc 3; expect_in_out "brought back from the catalogue: checkpoint 'ccc'"
expect_in_out "'two'"
run list; expect_in_err "the store is damaged"
for name in one two aaa bbb ccc; do expect_in_out "$name"; done
run repair --accept-loss; expect_rc 0; expect_in_out "given up"
run list; expect_rc 0; expect_in_out "ccc"
restore

# Given up, and then a copy is found after all.
cp "$pack" "$scratch/copy"; rm "$pack"
run repair --accept-loss; expect_rc 0
run cat two file; expect_rc 1
cp "$scratch/copy" "$pack"
run verify; expect_rc 0; expect_in_out "holds what was given up as lost: belay repair takes it back"
run gc; expect_rc 0; expect_in_err "may hold what was given up as lost, and stays"
run gc --json; expect_py "d['spared'] == ['packs/${pack##*/}']"
[ -e "$pack" ] || fail "the only good copy was removed"
run repair; expect_rc 0; expect_in_out "is back"; expect_in_out "checkpoint 'two'"
run cat two file; expect_rc 0; expect_out $'2\n'
run gc --everything; expect_rc 0; expect_silent_err
[ ! -e "$pack" ] || fail "a leftover was not removed"
run cat one file; expect_rc 0; expect_out $'1\n'
run verify --read-data; expect_rc 0
restore

# A pack that was away and is back leaves no doubt behind, whoever asked meanwhile.
mv "$pack" "$scratch/away"; damaged status roots; mv "$scratch/away" "$pack"
run status; expect_rc 0; expect_silent_err; expect_in_out "two"
run roots; expect_rc 0; expect_silent_err
restore

# An older copy of the packs, put back by hand: whole, and it is said what it lacks.
cp -a "$BELAY_HOME" "$scratch/older"
run checkpoint -m later; expect_rc 0; run list; expect_in_out "later"
for part in packs tail manifest; do rm -r "$BELAY_HOME/$part"; cp -a "$scratch/older/$part" "$BELAY_HOME/"; done
run verify --read-data; expect_rc 0; expect_in_out "the packs do not have, the newest checkpoint 'later'"
finish
