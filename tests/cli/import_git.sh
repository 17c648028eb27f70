# `belay import --git REV`: the files of a commit as a checkpoint. A rollback to it gives
# the bytes git has, deletes nothing and leaves git alone.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

export BELAY_HOME=$scratch/store GIT_CONFIG_NOSYSTEM=1
g() { git -c user.name=Somebody -c user.email=some@body.example "$@"; }
git_standing() { find .git -type f ! -name index -exec sha256sum {} + | LC_ALL=C sort; git for-each-ref; cat .git/HEAD; }
# Every tracked file of a commit, as git has it, is in the directory.
as_in() { # REV
  git ls-tree -r -z "$1" | (cd . && python3 -c '
import os, subprocess, sys
bad = 0
for line in sys.stdin.buffer.read().split(b"\0"):
    if not line: continue
    meta, path = line.split(b"\t", 1)
    mode, kind, oid = meta.split()
    if kind != b"blob": continue
    data = subprocess.run(["git", "cat-file", "blob", oid], check=True, stdout=subprocess.PIPE).stdout
    if mode == b"120000": same = os.readlink(path) == data
    else: same = open(path, "rb").read() == data and bool(os.stat(path).st_mode & 0o100) == (mode == b"100755")
    if not same: print("differs:", path); bad = 1
sys.exit(bad)') || fail "the files are not as in $1"
}

mkdir "$scratch/repo" && cd "$scratch/repo" || exit 1
run import --git HEAD; expect_rc 1; expect_in_err "not protected"
git init -q -b main .
mkdir -p src deep/er
printf 'int main() {}\n' >src/main.c
printf '#!/bin/sh\n' >src/run; chmod 0755 src/run
printf 'x\r\ny\n' >crlf.txt
ln -s src/main.c link
ln -s /nowhere dangling
printf odd >$'odd "name"\n\xff'
head -c 2500000 /dev/urandom >big
: >empty
printf 'a' >a.b; mkdir a; printf 'in a' >a/f   # git's order is not that of the names
printf private >deep/er/private; chmod 0600 deep/er/private
printf '*.log\n' >.gitignore
g add . && g commit -q -m 'first "quoted" subject'
first=$(git rev-parse HEAD)
rm empty; printf 'changed\n' >src/main.c; chmod 0644 src/run
rm -r a; printf 'now a file' >a
git rm -q --cached empty 2>/dev/null
g add -A && g commit -q -m second
git tag -a -m t v2 2>/dev/null || g tag -a -m t v2
# What git does not know.
printf untracked >untracked; printf log >build.log; printf TOKEN >.env
git config core.autocrlf true
printf '* text=auto\n*.txt text eol=crlf\n' >.git/info/attributes
run on; expect_rc 0
run import --git HEAD; expect_rc 0   # the first checkpoint of a root may be one
run checkpoint -m here; expect_rc 0
before=$(git_standing)
run import --git HEAD~1; expect_rc 0
expect_in_out "kept "; expect_in_out "git ${first:0:7} \"first \"quoted\" subject\""
[ "$before" = "$(git_standing)" ] || fail "git changed"
run show 1 --json; expect_rc 0
expect_py "d['kind'] == 'manual' and d['partial'] and d['git'] is None and d['meta'] == {'git.commit': '$first'} and d['name'] is None"
expect_py "d['description'].startswith('git ${first:0:7} ')"
run import --git "$first" --json; expect_rc 0
expect_py "d['was_there'] and d['commit'] == '$first' and d['subject'] == 'first \"quoted\" subject' and d['submodules'] == []"
run list --json; expect_py "len(d['checkpoints']) == 3"
run import --git v2; expect_rc 0
run import --git 'main@{0}' ; expect_rc 0

# --- going there and back
run rollback HEAD; expect_rc 1
ref=$("$BELAY_BIN" list --json | (cd / && python3 -c 'import json,sys
print([c["id"] for c in json.load(sys.stdin)["checkpoints"] if c["meta"].get("git.commit") == sys.argv[1]][0])' "$first"))
all() { find . -path ./.git -prune -o \( -type f -o -type l \) -printf '%p %m %l\n' | LC_ALL=C sort; find . -path ./.git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; }
was=$(all)
run rollback "$ref" --yes; expect_rc 0
expect_in_err "nothing is deleted"
as_in "$first"
[ "$before" = "$(git_standing)" ] || fail "a rollback to a commit touched git: $(diff <(echo "$before") <(git_standing))"
[ "$(cat untracked build.log .env)" = untrackedlogTOKEN ] || fail "untracked files went"
[ "$(stat -c %a deep/er/private)" = 600 ] || fail "a private file was opened to others: $(stat -c %a deep/er/private)"
[ -d a ] && [ "$(cat a/f)" = 'in a' ] || fail "a file that was a directory"
run undo; expect_rc 0
[ "$was" = "$(all)" ] || fail "undo: $(diff <(echo "$was") <(all))"
# Files that came since stay: a commit cannot tell them from those of nobody.
printf new >added-later; g add added-later; g commit -q -m third
run rollback "$ref" --yes; expect_rc 0
[ "$(cat added-later)" = new ] || fail "a file that the commit does not have was deleted"
git -c core.autocrlf=false reset -q --hard

# --- what is no commit
for bad in nosuch 'HEAD^{tree}' 'HEAD:src/main.c' '' '--all' $'HEAD\nHEAD~1'; do
  run import --git "$bad"; [ "$rc" = 1 ] || [ "$rc" = 2 ] || fail "exit $rc for '$bad'"
done
run import --git HEAD file; expect_rc 2

# --- submodules, and directories that others protect
git init -q "$scratch/lib" && (cd "$scratch/lib" && echo l >l && g add . && g commit -q -m l)
g -c protocol.file.allow=always submodule --quiet add "$scratch/lib" vendor/lib
mkdir other && echo o >other/o && g add . && g commit -q -m modules
run on other; expect_rc 0
run import --git HEAD; expect_rc 0; expect_in_err "submodules are not in it: vendor/lib"; expect_in_err "other (other_root)"
run ls 1; [[ $out != *vendor/lib* && $out != *other/o* && $out == *.gitmodules* ]] || fail "ls: $out"

# --- what was purged stays purged
printf 'correct-horse' >leaked; cp leaked leaked-too; g add leaked leaked-too; g commit -q -m leak
run checkpoint -m leak; expect_rc 0
run purge leaked --everywhere --yes; expect_rc 0
run import --git HEAD; expect_rc 0; expect_in_err "leaked (purged), leaked-too (purged)"
run cat 1 leaked --reveal; [ "$rc" != 0 ] || fail "purged content came back"
grep -r -q -a correct-horse "$BELAY_HOME/packs" && fail "purged content is in a pack"

# --- trees that no work tree may hold
evil() { # NAME: a commit with a file of that name
  local blob; blob=$(echo evil | git hash-object -w --stdin)
  python3 - "$1" "$blob" <<'P' >"$scratch/tree"
import sys, binascii
name = sys.argv[1].encode("utf-8", "surrogateescape")
sys.stdout.buffer.write(b"100644 " + name + b"\0" + binascii.unhexlify(sys.argv[2]))
P
  g commit-tree -m evil "$(git hash-object -t tree -w --stdin --literally <"$scratch/tree")"
}
for name in .. . .git .GIT 'git~1' '.git ' '../x' '/etc/x' 'a/../../x' '.git/config' ''; do
  run import --git "$(evil "$name")"; expect_rc 1; expect_in_err "nothing was imported"
done
blob=$(echo twice | git hash-object -w --stdin)
python3 - "$blob" <<'P' >"$scratch/tree"
import sys, binascii
b = binascii.unhexlify(sys.argv[1])
sys.stdout.buffer.write(b"100644 same\0" + b + b"100755 same\0" + b)
P
run import --git "$(g commit-tree -m twice "$(git hash-object -t tree -w --stdin --literally <"$scratch/tree")")"
expect_rc 1; expect_in_err "twice"
python3 - "$blob" <<'P' >"$scratch/tree"
import sys, binascii
b = binascii.unhexlify(sys.argv[1])
sys.stdout.buffer.write(b"100644 d\0" + b + b"100644 d/f\0" + b)
P
run import --git "$(g commit-tree -m both "$(git hash-object -t tree -w --stdin --literally <"$scratch/tree")")"
expect_rc 1; expect_in_err "twice"
link=$(head -c 5000 /dev/zero | tr '\0' x | git hash-object -w --stdin)
long=$(printf '120000 blob %s\tlong\n' "$link" | git mktree)
run import --git "$(g commit-tree -m long "$long")"; expect_rc 0; expect_in_err "left out: long"

# --- a clone that has not everything, and must not fetch
git clone -q --bare "$scratch/repo" "$scratch/remote.git"
git -C "$scratch/remote.git" config uploadpack.allowFilter true
git clone -q --no-checkout --filter=blob:none "file://$scratch/remote.git" "$scratch/part" 2>/dev/null
cd "$scratch/part" || exit 1
run on; expect_rc 0
objects=$(git count-objects -v)
run import --git HEAD; expect_rc 1; expect_in_err "nothing was fetched"
[ "$objects" = "$(git count-objects -v)" ] || fail "something was fetched"
run list --json; expect_py "d['checkpoints'] == []"

# --- a root below the top, a linked work tree, SHA-256
cd "$scratch/repo" && git worktree add -q "$scratch/linked" "$first" && cd "$scratch/linked" || exit 1
run on; expect_rc 0
run import --git main~1; expect_rc 0
mkdir "$scratch/top" && cd "$scratch/top" && git init -q --object-format=sha256 . && mkdir -p p/q r && echo 1 >p/q/f && echo 2 >r/f
g add . && g commit -q -m deep && cd p/q || exit 1
run on; expect_rc 0
run import --git HEAD; expect_rc 0; expect_in_err "only what is below p/q/"
run ls 1; expect_out $'f\n'
echo changed >f
run rollback 1 --yes; expect_rc 0
[ "$(cat f)$(cat ../../r/f)" = 12 ] || fail "below the top"
cd "$scratch/top/r" && run on && expect_rc 0 && g -C .. rm -q -r r && g -C .. commit -q -m gone && mkdir -p "$scratch/top/r" && cd "$scratch/top/r"
run import --git HEAD; expect_rc 1; expect_in_err "has no directory r"
cd "$scratch/top/p/q" && run import --git ':/gone' --json; expect_rc 0
expect_py "d['commit'] == '$(git rev-parse HEAD)'"
mkdir "$scratch/plain" && cd "$scratch/plain" && run on && expect_rc 0
run import --git HEAD; expect_rc 1; expect_in_err "in no git repository"

finish
