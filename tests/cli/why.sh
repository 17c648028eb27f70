# `belay why`: covered or not, and the rule that decided.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
real=$(pwd -P)
nl=$'\n'
git=(git -c init.defaultBranch=main -c user.name=u -c user.email=u@example.com)

# is PATH COVERED WHY RULE
is() {
  run why --json -- "$1"; expect_rc 0
  rule=$4; [ "$rule" = - ] && rule=None || rule="'$rule'"
  expect_py "[(p['path'],p['covered'],p['why'],p['rule']) for p in d['paths']] == [('$1',$2,'$3',$rule)]"
}

mkdir -p src node_modules/pkg/lib ignored/sub "$HOME/.config/git"
printf '*.o\n!keep.o\nignored/\n/top.txt\n' >.gitignore
printf '*.tmp\n' >src/.gitignore
printf 'inner/\n' >node_modules/pkg/.gitignore
printf '*.iso\n!x.o\n' >.belayignore
printf '*.global\n' >"$HOME/.config/git/ignore"
: >a.txt; : >b.o; : >src/c.tmp; : >node_modules/pkg/index.js; : >tracked.o; : >.env; : >ignored/.env
"${git[@]}" init -q; "${git[@]}" add -f tracked.o a.txt
printf '*.info\n' >.git/info/exclude

run why a.txt; expect_rc 1; expect_in_err "is not protected"
"$BELAY_BIN" on >/dev/null; "$BELAY_BIN" config -q protect '["vault/"]'; "$BELAY_BIN" config -q exclude '["*.big"]'
run why; expect_rc 2
run why a.txt --stdin; expect_rc 2
run why -z a.txt; expect_rc 2

is a.txt True tracked -
is src/d.c True covered -
is b.o False ignored .gitignore:1:*.o
is absent.o False ignored .gitignore:1:*.o
is keep.o True covered '.gitignore:2:!keep.o'
is x.o True covered '.belayignore:2:!x.o'
is tracked.o True tracked -
is src/c.tmp False ignored src/.gitignore:1:*.tmp
is c.tmp True covered -
is top.txt False ignored .gitignore:4:/top.txt
is src/top.txt True covered -
rm -r ignored; is ignored True covered -; is ignored/ False ignored .gitignore:3:ignored/
mkdir ignored; : >ignored/.env; is ignored False ignored .gitignore:3:ignored/
is ignored/deep/x False ignored .gitignore:3:ignored/
is x.info False ignored .git/info/exclude:1:*.info
is x.global False ignored "$HOME/.config/git/ignore:1:*.global"
is x.iso False excluded .belayignore:1:*.iso
is x.big False excluded exclude:1:*.big
is build/ False excluded default_excludes:3:build/
is x.log False excluded 'default_excludes:7:*.log'
# What git ignores is ignored even beneath what the defaults leave out.
is node_modules/pkg/index.js False excluded default_excludes:1:node_modules/
is node_modules/pkg/inner/x False ignored node_modules/pkg/.gitignore:1:inner/
is node_modules/y.o False ignored .gitignore:1:*.o
is .env True secret 'secret_patterns:1:.env'
is src/server.pem True secret "$("$BELAY_BIN" why --json src/server.pem | python3 -c 'import json,sys; print(json.load(sys.stdin)["paths"][0]["rule"])')"
is ignored/.env False ignored .gitignore:3:ignored/
is vault/x.o True protected protect:1:vault/
is .git False git_dir -
is .git/config False git_dir -
is src/.git/config False git_dir -
is .GIT False git_dir -
is . True covered -
is "$real" True covered -
is "$real/b.o" False ignored .gitignore:1:*.o
is ../elsewhere False outside -
is /etc/passwd False outside -
is src/../b.o False ignored .gitignore:1:*.o

# Things that are what they are.
mkfifo pipe; is pipe False special -
mkfifo fifo.o; is fifo.o False ignored .gitignore:1:*.o
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'; is sock False special -
truncate -s 600M huge; is huge False too_large -
"$BELAY_BIN" config -q max_file_size 1KiB; head -c 2000 /dev/zero >two; is two False too_large -
"$BELAY_BIN" config -q max_file_size 512MiB; is two True covered -
ln -s /etc out; is out True covered -; is out/passwd False outside -
ln -s src in; is in True covered -; is in/c.tmp False outside -; is in/new.c False outside -
run why in/c.tmp; expect_in_out "(beyond the symlink in)"; run why in/c.tmp src/c.tmp --json; expect_py "[p['link'] for p in d['paths']] == ['in', None]"
ln -s nowhere dangling; is dangling True covered -
if [ "$(id -u)" != 0 ]; then
  : >secretless; chmod 000 secretless; is secretless False unreadable -
  mkdir closed; : >closed/x; chmod 000 closed; is closed/x False unreadable -; is closed False unreadable -; chmod 700 closed
fi
mkdir -p mounted
if [ "$(id -u)" = 0 ] && mount --bind src mounted 2>/dev/null; then
  is mounted False other_mount -; is mounted/c.tmp False other_mount -; is mounted/none False other_mount -
  umount mounted
fi

# A nested repository by its own rules.
mkdir nested; "${git[@]}" -C nested init -q; printf '*.mine\n' >nested/.gitignore; : >nested/t.mine
"${git[@]}" -C nested add -f t.mine
is nested/b.o True covered -
is nested/x.mine False ignored nested/.gitignore:1:*.mine
is nested/t.mine True tracked -
is nested/.git/HEAD False git_dir -

# Names as bytes; many at once; in order, each as it was asked.
run why --json -- $'odd\xff.o' ; expect_py "d['paths'][0]['path'] == {'bytes':'b2Rk/y5v'} and d['paths'][0]['why'] == 'ignored'"
printf 'a.txt\0b.o\0new\nline.o\0a.txt\0' | "$BELAY_BIN" why --json --stdin -z >"$scratch/out"
expect_py "[(p['path'],p['why']) for p in d['paths']] == [('a.txt','tracked'),('b.o','ignored'),('new\nline.o','ignored'),('a.txt','tracked')]"
printf 'a.txt\nb.o\n' | "$BELAY_BIN" why --json --stdin >"$scratch/out"
expect_py "[p['why'] for p in d['paths']] == ['tracked','ignored']"
# One answer for each, whatever was asked: an empty path names nothing.
is "" False outside -
printf 'a.txt\0\0b.o\0\0' | "$BELAY_BIN" why --json --stdin -z >"$scratch/out"
expect_py "[(p['path'],p['why']) for p in d['paths']] == [('a.txt','tracked'),('','outside'),('b.o','ignored'),('','outside')]"
printf '\na.txt' | "$BELAY_BIN" why --json --stdin >"$scratch/out"
expect_py "[p['why'] for p in d['paths']] == ['outside','tracked']"
"$BELAY_BIN" why --json --stdin </dev/null >"$scratch/out"; expect_py "d['paths'] == []"
# Names that no file can have are answered too, and stop no other answer.
long=$(printf 'x%.0s' {1..300})
printf 'a.txt\0%s\0%s.o\0src/%s/../c.tmp\0%s/../../../elsewhere\0b.o\0' "$long" "$long" "$long" "$long" | "$BELAY_BIN" why --json --stdin -z >"$scratch/out" || fail "long names"
expect_py "[p['why'] for p in d['paths']] == ['tracked','covered','ignored','ignored','outside','ignored']"
printf 'a.txt\nb\0c\nb.o\n' | "$BELAY_BIN" why --json --stdin >"$scratch/out"; expect_py "[p['why'] for p in d['paths']] == ['tracked','outside','ignored']"
run why a.txt b.o .env; expect_rc 0
[[ $out == "covered      tracked     a.txt${nl}not covered  ignored     b.o  (.gitignore:1:*.o)${nl}covered      secret      .env  (secret_patterns:1:.env)$nl" ]] || fail "text: $out"
cd src; is c.tmp False ignored src/.gitignore:1:*.tmp; is ../b.o False ignored .gitignore:1:*.o; cd ..
(cd / && "$BELAY_BIN" why --root "$real" --json b.o) >"$scratch/out"; expect_py "d['paths'][0]['why'] == 'ignored'"

# Secrets skipped altogether.
"$BELAY_BIN" config -q secrets skip; is .env False secret secret_patterns:1:.env; "$BELAY_BIN" config -q secrets local

# What it says is what a checkpoint does: every path of the tree.
run checkpoint -q; expect_rc 0
"$BELAY_BIN" ls latest -z | sort -z >"$scratch/held"
find . -path '*/.git' -prune -o -mindepth 1 \( -type d -empty -printf '%P/\0' -o ! -type d -printf '%P\0' \) >"$scratch/all"
"$BELAY_BIN" why --json --stdin -z <"$scratch/all" >"$scratch/out"
(cd / && python3 - "$scratch" <<'PY'
import json, sys
at = sys.argv[1] + "/"
held = set(p.decode() for p in open(at + "held", "rb").read().split(b"\0") if p)
said = set(p["path"] for p in json.load(open(at + "out"))["paths"] if p["covered"])
sys.exit(0 if held == said else print("held only", held - said, "said only", said - held) or 1)
PY
) || fail "why and checkpoint differ"
[ -z "$("${git[@]}" status --porcelain -- a.txt tracked.o | grep -v '^A')" ] || fail "git's state changed"
finish
