# verify, du, gc, repair and status on a real store.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
real=$(pwd -P)

# No store yet: nothing is wrong, and nothing is created.
for command in verify du gc; do
  run $command; expect_rc 0; expect_in_out "nothing stored yet"
  run $command --json; expect_rc 0; expect_json
done
run repair; expect_rc 1; expect_in_err "no store to repair"
[ ! -e "$BELAY_HOME" ] || fail "a look created the store"

# Somebody's directory: not a store, not touched.
mkdir "$BELAY_HOME"; : >"$BELAY_HOME/letter"; chmod 755 "$BELAY_HOME"
for command in verify du gc repair status; do run $command; done
[ "$(stat -c %a "$BELAY_HOME")$(ls -A "$BELAY_HOME")" = 755letter ] || fail "touched"
rm -r "$BELAY_HOME"

"$BELAY_BUILD_DIR/bin/make_store" "$BELAY_HOME" "$real" || fail "make_store"
chmod 755 "$BELAY_HOME"

run status --json; expect_py "d['protected'] and d['last']['name'] == 'big'"
expect_py "d['last']['kind'] == 'manual' and len(d['last']['tree']) == 64"
run status; expect_in_out "protected: $real"; expect_in_out "big"
mkdir -p inner/deep; cd inner/deep; run status --json
expect_py "d['root'] == '$real'"; cd "$real"
[ "$(stat -c %a "$BELAY_HOME")" = 700 ] || fail "the store is open to others"
[ -z "$(find "$BELAY_HOME" ! -type d -perm /077)" ] || fail "files are open to others"

run verify; expect_rc 0; expect_in_out "whole"
run verify --read-data; expect_rc 0; expect_in_out "every byte read"
run verify --json; expect_py "d['clean'] and d['objects'] > 10 and d['damage'] == []"

# The parts add up, and the sum is what du(1) counts.
run du --json; expect_rc 0
expect_py "d['packs'] + d['indexes'] + d['catalog'] + d['other'] == d['allocated']"
expect_py "d['allocated'] == $(du -s -B1 "$BELAY_HOME" | cut -f1)"
expect_py "d['reclaimable'] > 4 << 20"
expect_py "d['roots'][0]['root'] == '$real' and d['roots'][0]['checkpoints'] == 3"
run du; expect_in_out "belay gc"

run gc; expect_rc 0; expect_in_out "gave back 4."
run gc; expect_rc 0; expect_in_out "nothing to give back"
run gc --json; expect_py "d['freed'] == 0"
run verify --read-data; expect_rc 0
run status --json; expect_py "d['last']['name'] == 'big'"

pack=$(ls "$BELAY_HOME"/packs/*.pack | head -n 1)
cp -a "$BELAY_HOME" "$scratch/good"
restore() { rm -rf "$BELAY_HOME"; cp -a "$scratch/good" "$BELAY_HOME"; }
flip() { # FILE OFFSET
  python3 -c 'import sys
f = open(sys.argv[1], "r+b"); f.seek(int(sys.argv[2])); b = f.read(1)
f.seek(int(sys.argv[2])); f.write(bytes([b[0] ^ 1]))' "$1" "$2"
}

# A flipped bit: found, named, and the rest still readable.
flip "$pack" $(($(stat -c %s "$pack") / 2))
run verify --read-data; expect_rc 3; expect_in_out "damaged"; expect_in_out "large.bin"
expect_in_out "'big'"
run verify --read-data --json; expect_rc 3
expect_py "not d['clean'] and [c['name'] for c in d['checkpoints']] == ['big']"
expect_py "d['checkpoints'][0]['paths'] == ['large.bin']"
run gc; [ "$rc" = 0 ] || expect_rc 3
run repair; expect_rc 3; expect_in_out "1 problem left, 1 checkpoint hit"
run repair --json; expect_rc 3; expect_py "not d['clean'] and len(d['damage']) == 1"
run verify --read-data; expect_rc 3
restore

# The manifest gone or damaged: said, and repaired to the same answers.
rm "$BELAY_HOME/manifest"
run verify; expect_rc 3; expect_in_err "belay repair"
run status; expect_rc 3
run repair; expect_rc 0; expect_in_out "manifest"; expect_in_out "3 checkpoints"
run verify --read-data; expect_rc 0
run status --json; expect_py "d['last']['name'] == 'big'"
restore
flip "$BELAY_HOME/manifest" 30
run du; expect_rc 3; expect_in_err "belay repair"
run repair; expect_rc 0; run verify --read-data; expect_rc 0
restore

# Rebuildable files: no answer changes.
rm -rf "$BELAY_HOME"/packs/*.idx "$BELAY_HOME/tail" "$BELAY_HOME/catalog"
run status --json; expect_py "d['last']['name'] == 'big'"
run verify --read-data; expect_rc 0
run repair --json; expect_rc 0; expect_py "d['checkpoints'] == 3"
run verify --read-data; expect_rc 0; [[ $out$err == *incomplete* ]] && fail "not rebuilt"
restore
printf 'not a database' >"$BELAY_HOME/catalog/catalog.db"
run status --json; expect_py "d['last']['name'] == 'big'"
restore

# A pack gone: named, with what it hits, also where the records themselves are gone.
run status; expect_rc 0
rm "$pack"
run verify; expect_rc 3; expect_in_out "is missing"
expect_in_out "'first'"; expect_in_out "3 checkpoints hit"; expect_in_out "the root $real"
run verify --json; expect_rc 3
expect_py "len(d['checkpoints']) == 3 and all(c['record_lost'] for c in d['checkpoints'])"
run gc; expect_rc 3
run repair; expect_rc 3; expect_in_out "brought back from the catalogue: checkpoint 'first'"
expect_in_out "--accept-loss"
run verify; expect_rc 3
run gc; expect_rc 3; expect_in_err "nothing was removed"
run repair --accept-loss; expect_rc 0; expect_in_out "given up: of checkpoint 'first'"
run verify --read-data; expect_rc 0
run gc; expect_rc 0
restore

# The record of a checkpoint damaged: named, and brought back with everything it had.
run status; expect_rc 0
flip "$pack" "$(python3 -c 'import sys; print(open(sys.argv[1], "rb").read().rfind(b"second"))' "$pack")"
run verify; expect_rc 3; expect_in_out "'second'"; expect_in_out "1 checkpoint hit"
expect_in_out "Everything else can be restored."
[[ $out == *catalogue:* ]] && fail "the catalogue is blamed: $out"
run repair; expect_rc 0; expect_in_out "brought back from the catalogue: checkpoint 'second'"
expect_in_out "the store is whole"
run verify --read-data; expect_rc 0; run gc; expect_rc 0
run repair --json; expect_rc 0; expect_py "d['checkpoints'] == 3 and d['clean']"
restore

# The directory of the packs gone, or something else in its place: only by consent.
for how in gone file; do
  mv "$BELAY_HOME/packs" "$scratch/packs"
  [ $how = gone ] || echo mine >"$BELAY_HOME/packs"
  for command in status repair; do
    run $command; expect_rc 3; expect_in_err "belay repair --accept-loss"
  done
  run repair --accept-loss; expect_rc 0; expect_in_out "given up: of checkpoint 'big'"
  [ $how = gone ] || [ "$(cat "$BELAY_HOME/packs.aside")" = mine ] || fail "packs was not kept"
  run verify --read-data; expect_rc 0
  run checkpoint -m anew; expect_rc 0
  run gc; expect_rc 0
  run list; expect_rc 0; expect_in_out anew
  restore; rm -r "$scratch/packs"
done

# Manifest and packs gone: not "nothing stored yet" while the catalogue knows better.
run status; expect_rc 0
rm "$BELAY_HOME/manifest" "$BELAY_HOME"/packs/*.pack
run verify; expect_rc 3; expect_in_err "every pack"; expect_in_out "'first'"
for command in du gc repair status; do run $command; expect_rc 3; done
rm -r "$BELAY_HOME/packs"
run repair; expect_rc 3; expect_in_err "packs is gone"
restore

# Something else under the name of a rebuildable file: no command stops or hangs, and
# repair moves it aside.
idx=${pack%.pack}.idx
for file in "$idx" "$BELAY_HOME/tail" "$BELAY_HOME/catalog/catalog.db" \
  "$BELAY_HOME/catalog/catalog.db-wal" "$BELAY_HOME/catalog/catalog.db-shm" \
  "$BELAY_HOME/catalog/changes" "$BELAY_HOME/catalog" "$BELAY_HOME/cache"; do
  for make in mkdir mkfifo; do
    case ${file##*/}-$make in catalog-mkdir | cache-mkdir) make="ln -s /nowhere" ;; esac
    rm -rf "$file"; $make "$file" || fail "$make $file"
    run status --json; expect_rc 0; expect_py "d['last']['name'] == 'big'"
    run verify; expect_rc 0
    run repair; expect_rc 0; expect_in_out "moved aside"
    [ -e "$file.aside" ] || [ -L "$file.aside" ] || fail "$file: $make: not kept"
    run verify; expect_rc 0; [[ $out$err == *note:* ]] && fail "$make $file: $out"
    restore
  done
done

# A pack that is no file any more: named.
for make in mkdir mkfifo "ln -s kept"; do
  mv "$pack" "$BELAY_HOME/packs/kept"; $make "$pack"
  for command in verify du gc status; do
    run $command; expect_rc 3; [[ $out$err == *"${pack##*/}"* ]] || fail "not named: $out$err"
  done
  run repair; expect_rc 3
  restore
done

# Looking changes nothing, not even the catalogue.
rm -rf "$BELAY_HOME/catalog"
before=$(cd "$BELAY_HOME" && find . -exec stat -c '%n %a %s %Y' {} + | sort)
run verify --read-data --json; expect_rc 0; expect_py "d['data_read']"
run verify --json; expect_py "not d['data_read']"
[ "$before" = "$(cd "$BELAY_HOME" && find . -exec stat -c '%n %a %s %Y' {} + | sort)" ] ||
  fail "verify changed something"
restore

# packs/ open to others is made private, like the store itself.
chmod 777 "$BELAY_HOME/packs"; run verify; expect_rc 0
[ "$(stat -c %a "$BELAY_HOME/packs")" = 700 ] || fail "packs is open to others"

# A limit of the process is named with the way to raise it.
(ulimit -n 5; exec "$BELAY_BIN" list) >"$scratch/out" 2>"$scratch/err" && fail "with 5 files"
grep -q "Too many open files" "$scratch/err" || fail "$(cat "$scratch/err")"
grep -q "hint: .*ulimit -n" "$scratch/err" || fail "$(cat "$scratch/err")"

# A read-only disk: looking works, changing says why not.
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
  on_read_only() {
    unshare -m bash -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77
      shift; exec "$@"' - "$BELAY_HOME" "$BELAY_BIN" "$@" >"$scratch/out" 2>"$scratch/err"
    rc=$?; out=$(cat "$scratch/out"); err=$(cat "$scratch/err")
  }
  on_read_only verify --read-data
  if [ "$rc" != 77 ]; then
    expect_rc 0; expect_in_out "whole"
    [[ $out$err == *"not checked"* ]] && fail "the catalogue was not checked: $out$err"
    on_read_only du; expect_rc 0
    on_read_only status --json; expect_rc 1; expect_py "d['last']['name'] == 'big'"
    for command in gc repair; do
      on_read_only $command; expect_rc 1; expect_in_err "read-only"
      expect_in_err "verify, du and status"
    done
    on_read_only purge --root "$PWD" nothing --yes
    expect_rc 1; expect_in_err "is read-only, so nothing can be erased"
    for command in checkpoint off; do
      on_read_only $command; expect_rc 1; expect_in_err "the disk is read-only"
    done
    on_read_only status; expect_rc 1; expect_in_out "cannot be written"
    [[ $out == *"belay repair"* ]] && fail "nothing can be repaired there: $out"
  fi
fi

# An error of the system names the file. (As root permissions do not matter.)
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 755 "$scratch"; chown -R 65534 "$BELAY_HOME"; chmod 000 "$BELAY_HOME/manifest"
  as_nobody() {
    setpriv --reuid=65534 --clear-groups "$BELAY_BIN" "$@" >"$scratch/out" 2>"$scratch/err"
    rc=$?; out=$(cat "$scratch/out"); err=$(cat "$scratch/err")
  }
  as_nobody verify; expect_rc 1; expect_in_err "$BELAY_HOME/manifest: Permission denied"
  expect_in_err "hint: "
  as_nobody cat latest big; expect_rc 1; expect_in_err "hint: see who owns it"
  chmod 600 "$BELAY_HOME/manifest"; chmod 000 "$pack"
  for command in verify du gc; do
    as_nobody $command; expect_rc 3; [[ $out$err == *"${pack##*/}"* ]] || fail "$out$err"
  done
  chmod 600 "$pack"; chmod 000 "$BELAY_HOME/lock"
  as_nobody status; expect_rc 1; expect_in_out "protected, with problems"
  expect_in_err "no checkpoint can be made: open $BELAY_HOME/lock: Permission denied"
  [[ $out$err == *catalogue* ]] && fail "of the lock, not the catalogue: $out$err"
fi
restore

# A place that takes no directories: which, and what to do.
mine=$BELAY_HOME; BELAY_HOME=/proc/belay
run on "$real"; expect_rc 1; expect_in_err "the store /proc/belay cannot be made"
expect_in_err "BELAY_HOME"
BELAY_HOME=$mine

# A newer format: refused, nothing changed.
sed -i 's/^belay store 2$/belay store 3/' "$BELAY_HOME/manifest"
# Without a check that matches it is a flipped bit, and the packs say what it was.
run verify; expect_rc 3; expect_in_err "check does not match"; expect_in_err "belay repair"
run repair; expect_rc 0; expect_in_out "made a new manifest"
run verify --read-data; expect_rc 0
# But not where a pack is of a newer version.
sed -i 's/^belay store 2$/belay store 3/' "$BELAY_HOME/manifest"
before=$(cd "$BELAY_HOME" && find . -type f -exec sha256sum {} + | sort)
pack=$(ls "$BELAY_HOME"/packs/*.pack | head -n 1); cp "$pack" "$scratch/pack"
python3 - "$pack" <<'PY'
import hashlib, sys
with open(sys.argv[1], "r+b") as f:
    head = bytearray(f.read(56)); head[8] = 3
    f.seek(0); f.write(head + hashlib.sha256(head).digest()[:8])
PY
run repair; expect_rc 1; expect_in_err "newer Belay"
cp "$scratch/pack" "$pack"
[ "$before" = "$(cd "$BELAY_HOME" && find . -type f -exec sha256sum {} + | sort)" ] ||
  fail "a store with a newer pack was changed"
python3 - "$BELAY_HOME/manifest" <<'PY'
import hashlib, sys
body = open(sys.argv[1], "rb").read()[:-71]
open(sys.argv[1], "wb").write(body + b"check " + hashlib.sha256(body).hexdigest().encode() + b"\n")
PY
mkdir -p "$BELAY_HOME/cache"
before=$(cd "$BELAY_HOME" && find . -type f -exec sha256sum {} + | sort)
for command in verify du gc repair status checkpoint; do
  run $command; expect_rc 1; expect_in_err "newer Belay"
done
run hook claude; expect_rc 0   # which notes what it could not do
[ "$before" = "$(cd "$BELAY_HOME" && find . -type f -exec sha256sum {} + | sort)" ] ||
  fail "a newer store was changed"
restore

# Open to others: said, and put right.
chmod -R go+rwX "$BELAY_HOME"
run verify; expect_rc 0; expect_in_out "other users may read or write the store's directory and"
chmod -R go+rwX "$BELAY_HOME"
run doctor; expect_in_out "other users may read or write"
run verify --json; expect_py "any('belay repair makes all of it private' in n for n in d['notes'])"
run repair; expect_rc 0; expect_in_out "private now"
[ -z "$(find "$BELAY_HOME" -perm /077)" ] || fail "open: $(find "$BELAY_HOME" -perm /077)"
run verify --json; expect_rc 0; expect_py "d['notes'] == []"
restore

# Somebody else's store: what to do is said here, too.
if [ "$(id -u)" = 0 ]; then
  chown 12345 "$BELAY_HOME"
  run repair; expect_rc 1; expect_in_err "belongs to user 12345, not to you (0)"; expect_in_err "BELAY_HOME"
  restore
fi

# A lock that is no file: what to do, and that helps.
rm "$BELAY_HOME/lock"; mkdir "$BELAY_HOME/lock"; echo more >>a
for command in checkpoint verify "verify --json"; do
  run $command; expect_rc 3; expect_in_err "\`lock\` is something else"; expect_in_err "belay repair"
done
expect_py 'd["error"]["code"] == "damaged"'
run repair; expect_rc 0; expect_in_out "lock was a directory: moved aside"
run checkpoint; expect_rc 0
restore

# A directory in the store is none to protect; files may not grow: which limit.
mkdir "$BELAY_HOME/project"
run on "$BELAY_HOME/project"; expect_rc 1; expect_in_err "lies inside Belay's store"
run on "$BELAY_HOME"; expect_rc 1; expect_in_err "cannot protect itself"
restore
head -c 200000 /dev/urandom >grown
(ulimit -f 1; trap '' XFSZ; "$BELAY_BIN" checkpoint) >"$scratch/out" 2>"$scratch/err"
rc=$?; out=$(cat "$scratch/out") err=$(cat "$scratch/err")
[ $rc != 0 ] || fail "a file size limit: exit 0"
expect_in_err "ulimit -f"
# It had begun a pack by then, and the catalogue has not read of it: no damage.
rm grown; run verify --read-data; expect_rc 0; expect_in_out "2 packs"
restore

# Somebody else's store.
if [ "$(id -u)" = 0 ]; then
  chown 65534 "$BELAY_HOME"
  for command in verify du gc repair; do
    run $command; expect_rc 1; expect_in_err "belongs to user 65534"
  done
  chown 0 "$BELAY_HOME"
fi

# A lock that is held: busy, not for ever.
python3 - "$BELAY_HOME/lock" <<'PY' &
import fcntl, os, struct, sys, signal
f = open(sys.argv[1], "r+b")
F_OFD_SETLK = 37
fcntl.fcntl(f, F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1, 0))
open(sys.argv[1] + ".held", "w").close()
signal.pause()
PY
holder=$!
until [ -e "$BELAY_HOME/lock.held" ]; do read -rt 0.01 <> <(:) || :; done
run gc; expect_rc 4; expect_in_err "cleaning up"
kill "$holder"

run demo; expect_rc 0; expect_in_out "All as promised"
run demo --json; expect_rc 0; expect_py "d['ok']"
finish
