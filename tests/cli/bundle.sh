# `belay export REF... -o FILE` and `belay import FILE`: checkpoints travel between two
# stores as one file, without secrets, and come back byte for byte.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

here() { export BELAY_HOME=$scratch/store-$1; cd "$scratch/$1" || exit 1; }
# Everything but owners and times: kinds, modes, targets, content.
tree() {
  (cd "$1" && find . -mindepth 1 ! -name .env ! -name '*.pem' -printf '%p %y %m %l\n' | sort
   find . -type f ! -name .env ! -name '*.pem' -print0 | sort -z | xargs -0 sha256sum)
}
store_bytes() { (cd "$BELAY_HOME" && find packs manifest -type f -exec sha256sum {} + | sort); }

mkdir "$scratch/one" "$scratch/two"
here one
mkdir -p src/empty deep/er
echo 'int main() {}' >src/main.c
printf 'no newline' >deep/er/file
: >empty
ln -s ../src/main.c deep/link
ln -s /nowhere dangling
head -c 3000000 /dev/urandom >big
cp big deep/copy
chmod 0755 src/main.c
chmod 0400 deep/er/file
printf odd >$'odd\nname \xff'
echo 'TOKEN=correct-horse-battery' >.env
echo '-----BEGIN staple-of-the-battery' >src/server.pem
run on; expect_rc 0
run checkpoint -m first --note 'a note' --meta ticket=7; expect_rc 0
run import "$scratch/nosuch"; expect_rc 1; expect_in_err "nosuch: there is no such file"
run export --session nosuch -o "$scratch/nosuch"; expect_rc 1; expect_in_err "belay sessions"
tree . >"$scratch/first"
echo more >>src/main.c
rm empty
run checkpoint -m second --session s1; expect_rc 0
tree . >"$scratch/second"

# --- writing
run export first; expect_rc 2; expect_in_err "-o FILE"
run export -o ../x.belay; expect_rc 2; expect_in_err "which checkpoints"
run export nothing -o ../x.belay; expect_rc 1
run export now -o ../x.belay; expect_rc 1
[ ! -e ../x.belay ] || fail "a failed export left a file"
run export first second -o ../x.belay; expect_rc 0
expect_in_out "2 checkpoints"; expect_in_err ".env, src/server.pem"
[ "$(stat -c %a ../x.belay)" = 600 ] || fail "others may read the bundle"
[ -z "$(find .. -maxdepth 1 -name '.belay-export*')" ] || fail "a temporary is left"
run export first -o ../x.belay; expect_rc 1; expect_in_err "is there already"
run export first -o ..; expect_rc 1; expect_in_err "is a directory"
run export first -o ../absent/x; expect_rc 1
run export second first second -o ../y.belay --json; expect_rc 0
expect_py "[c['name'] for c in d['checkpoints']] == ['first', 'second']"
expect_py "d['checkpoints'][0]['left_out'] == [{'path': '.env', 'why': 'secret'}, {'path': 'src/server.pem', 'why': 'secret'}]"
cmp -s ../x.belay ../y.belay || fail "the order of the words shows in the bytes"
run export first -o ../y.belay --force; expect_rc 0
run export --session s1 -o ../s.belay --json; expect_rc 0
expect_py "[c['name'] for c in d['checkpoints']] == ['second']"
run export --session nobody -o ../n.belay; expect_rc 1
"$BELAY_BIN" export first second -o - 2>/dev/null | cmp -s - ../x.belay || fail "-o - differs"
run export first -o - --json; expect_rc 2
"$BELAY_BIN" export first second -o /dev/full >/dev/null 2>&1 && fail "wrote over a device"
[ -c /dev/full ] || fail "/dev/full is gone"
grep -q -a -e correct-horse -e staple-of ../x.belay && fail "a secret is in the bundle"
# What is staged in a repository stays here, and is in nobody's way.
mkdir "$scratch/repo"; cd "$scratch/repo"
git init -q . && echo staged-horse >.env && echo x >x && git add -f . && rm .env
run on; run checkpoint -m staged; expect_rc 0
run export staged -o ../r.belay; expect_rc 0
zstd -dc ../r.belay 2>/dev/null | grep -q -a staged-horse && fail "a staged secret is in the bundle"
grep -q -a staged-horse ../r.belay && fail "a staged secret is in the bundle"
run import ../r.belay; expect_rc 0
cd "$OLDPWD"

# --- reading, elsewhere
here two
run import ../x.belay; expect_rc 1; expect_in_err "not protected"
run on; expect_rc 0
echo 'TOKEN=mine' >.env
echo 'in the way' >big
run import ../x.belay; expect_rc 0; expect_in_out "2 checkpoints imported"
run list --json
expect_py "[c['name'] for c in d['checkpoints']] == ['second', 'first']"
expect_py "d['checkpoints'][1]['note'] == 'a note' and d['checkpoints'][0]['session'] == 's1'"
expect_py "d['checkpoints'][1]['meta']['ticket'] == '7' and 'origin.store' in d['checkpoints'][1]['meta']"
before=$(store_bytes)
run import ../x.belay; expect_rc 0; expect_in_out "all 2 checkpoints are there already"
run import ../y.belay --json; expect_rc 0
expect_py "d['imported'] == 0 and d['checkpoints'][0]['was_there']"
[ "$before" = "$(store_bytes)" ] || fail "importing again changed the store"
run rollback first --yes; expect_rc 0; expect_in_out ".env  (a secret)"
tree . | diff - "$scratch/first" || fail "first did not come back"
[ "$(cat .env)" = 'TOKEN=mine' ] || fail "the secret that is here was touched"
run rollback second --yes --delete-ignored --exact; expect_rc 0
tree . | diff - "$scratch/second" || fail "second did not come back"
[ "$(cat .env)" = 'TOKEN=mine' ] || fail "the secret that is here was deleted"
run export second first -o ../again.belay; expect_rc 0
cmp -s ../x.belay ../again.belay || fail "taken further, the bundle is another"
run verify --read-data; expect_rc 0

# --- what is no bundle, or no longer
before=$(store_bytes)
run import -; expect_rc 2
run import; expect_rc 2
run import ../absent; expect_rc 1
run import ..; expect_rc 1; expect_in_err "directory"
mkfifo ../fifo
run import ../fifo; expect_rc 1; expect_in_err "a FIFO"
run import /dev/zero; expect_rc 1
echo 'no bundle' >../text
run import ../text; expect_rc 1; expect_in_err "no bundle of checkpoints"
head -c 2000 ../s.belay >../cut
run import ../cut; expect_rc 1; expect_in_err "ends early"
printf x | cat ../s.belay - >../longer
run import ../longer; expect_rc 1
python3 - ../s.belay ../flipped <<'P'
import sys
b = bytearray(open(sys.argv[1], 'rb').read())
b[len(b) // 2] ^= 1
open(sys.argv[2], 'wb').write(b)
P
run import ../flipped --json; expect_rc 1; expect_py "d['error']['code'] == 'refused'"
[ "$before" = "$(store_bytes)" ] || fail "a refused bundle changed the store"

# --- into another root of the same store: another id, found again
here one
mkdir "$scratch/three"; run on "$scratch/three"; expect_rc 0
run import ../x.belay --root "$scratch/three" --json; expect_rc 0
expect_py "d['imported'] == 2 and all(c['id'] != c['id_in_bundle'] for c in d['checkpoints'])"
run import ../x.belay --root "$scratch/three" --json; expect_rc 0
expect_py "d['imported'] == 0"
run import ../x.belay; expect_rc 0; expect_in_out "there already"
run list; expect_in_out "first"
finish
