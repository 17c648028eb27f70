# `belay export --git NAME REF`: a checkpoint as a commit on a new branch. The bytes are
# exact, secrets stay out, and nothing that was there is moved.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

export BELAY_HOME=$scratch/store
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
g() { git -c user.name=Somebody -c user.email=some@body.example "$@"; }
# What must not change: HEAD, index, refs, what git says of the work tree.
standing() {
  (cat "$(git rev-parse --git-dir)/HEAD"; sha256sum "$(git rev-parse --git-dir)/index" 2>&1
   git for-each-ref; git status --porcelain=v2 -b; ls "$(git rev-parse --git-common-dir)") 2>&1
}
# The files of a commit as git has them, without filters, against a directory.
same_files() { # COMMIT DIR [but names that match this]
  local bytes=$scratch/bytes
  rm -rf "$bytes"; mkdir "$bytes"
  git ls-tree -r -z "$1" | python3 -c '
import subprocess, sys, os
top = sys.argv[1].encode()
for line in sys.stdin.buffer.read().split(b"\0"):
    if not line: continue
    meta, path = line.split(b"\t", 1)
    mode, kind, oid = meta.split()
    at = os.path.join(top, path)
    os.makedirs(os.path.dirname(at), exist_ok=True)
    data = subprocess.run(["git", "cat-file", "blob", oid], check=True, stdout=subprocess.PIPE).stdout
    if mode == b"120000": os.symlink(data, at)
    else:
        open(at, "wb").write(data)
        os.chmod(at, 0o755 if mode == b"100755" else 0o644)
' "$bytes"
  list() { (cd "$1" && find . -path ./.git -prune -o \( -type f -o -type l \) -printf '%p %y %l\n' | grep -v "${2:-^$}" | LC_ALL=C sort
            find . -path ./.git -prune -o -type f -print0 | grep -zv "${2:-^$}" | LC_ALL=C sort -z | xargs -0 sha256sum
            find . -path ./.git -prune -o -type f -perm -u+x -print | grep -v "${2:-^$}" | LC_ALL=C sort); }
  [ "$(list "$bytes")" = "$(list "$2" "${3:-^$}")" ] || fail "the commit is not as the directory: $(diff <(list "$bytes") <(list "$2" "${3:-^$}"))"
}

mkdir "$scratch/repo" && cd "$scratch/repo" || exit 1
git init -q -b main .
# Everything that git might do to bytes on their way.
git config core.autocrlf true
git config filter.shout.clean "touch $scratch/filter-ran; tr a-z A-Z"
git config commit.gpgsign true
git config gpg.program /bin/false
printf '*.txt text eol=crlf\n*.shout filter=shout\n' >.gitattributes
mkdir -p .git/hooks src
for hook in pre-commit post-commit reference-transaction post-checkout update; do
  printf '#!/bin/sh\ntouch %s/hook-ran\n' "$scratch" >.git/hooks/$hook
  chmod +x .git/hooks/$hook
done
printf 'ignored/\n*.o\n' >.gitignore
printf 'one\r\ntwo\n' >mixed.txt
printf 'quiet\n' >a.shout
printf '#!/bin/sh\n' >src/run.sh; chmod 0755 src/run.sh
g -c core.hooksPath=/dev/null -c commit.gpgsign=false -c filter.shout.clean=cat add . 2>/dev/null
g -c core.hooksPath=/dev/null -c commit.gpgsign=false commit -q -m first
head1=$(git rev-parse HEAD)
ln -s src/run.sh link
ln -s /nowhere dangling
mkdir empty
printf untracked >'name with "quotes" \ and'$'\nline \xff'
printf 'TOKEN=correct-horse' >.env
printf staple >src/server.pem
: >nothing
head -c 3000000 /dev/urandom >big
printf 'int' >src/x.o   # ignored, and not in the checkpoint
mkdir nested && git init -q nested && echo inner >nested/file
printf 'mode\n' >private; chmod 0600 private
mkfifo pipe
run on; expect_rc 0
run checkpoint -m 'before it' --note 'a note'; expect_rc 0
id=$(cd / && "$BELAY_BIN" show 1 --json --root "$scratch/repo" | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
before=$(standing)

# --- a branch
rm -f "$scratch/filter-ran"
run export --git saved 'before it'; expect_rc 0
expect_in_out "branch saved: commit "
expect_in_err "secrets are not in it: .env, src/server.pem"
expect_in_err "git holds no empty directories: empty"
expect_in_err "pipe (special)"
expect_in_err "nested"
[ ! -e "$scratch/hook-ran" ] || fail "a hook ran"
[ "$(git rev-parse saved^)" = "$head1" ] || fail "the parent is not where HEAD was"
[ ! -e "$scratch/filter-ran" ] || fail "a filter ran"
[ "$before" = "$(standing | grep -v refs/heads/saved)" ] || fail "more than the branch came: $(diff <(echo "$before") <(standing))"
same_files saved . '\./\.env\|\.pem\|\.o\b\|/\.git/'
[ -z "$(git fsck --full --strict 2>&1)" ] || fail "fsck: $(git fsck --full --strict 2>&1)"
for secret in correct-horse staple; do
  git cat-file --batch-all-objects --batch --unordered | grep -q -a "$secret" && fail "$secret is in git's objects"
done
message=$(git log -1 --format='%an <%ae> %ct|%B' saved)
[[ $message == 'Belay <belay@localhost> '* ]] || fail "whose is it: $message"
[[ $message == *'before it'*'a note'*'  .env'*"Belay-Checkpoint: $id"* ]] || fail "message: $message"
[ "$(git ls-tree saved src/run.sh | cut -c1-6)" = 100755 ] || fail "mode of src/run.sh"
[ "$(git ls-tree saved private | cut -c1-6)" = 100644 ] || fail "mode of private"

# --- never over another
was=$(git rev-parse saved)
echo more >>mixed.txt
run checkpoint -m second; expect_rc 0
before=$(standing)
run export --git saved second; expect_rc 1; expect_in_err "is there already"; expect_in_err "git branch -D saved"
run export --git main second; expect_rc 1; expect_in_err "is there already"
run export --git saved/below second; expect_rc 1; expect_in_err "only one of them"
git update-ref refs/heads/dir/one HEAD
run export --git dir second; expect_rc 1; expect_in_err "only one of them"
git -c core.hooksPath=/dev/null update-ref -d refs/heads/dir/one
rm -f "$scratch/hook-ran"
[ "$(git rev-parse saved)" = "$was" ] || fail "the branch moved"
[ "$before" = "$(standing)" ] || fail "a refused export left something"
for bad in '' 'a..b' 'a b' '-x' 'HEAD' 'x.lock' 'a~1' 'refs/' 'refs/heads' 'refs/belay/x' 'refs/replace/x' '/x' 'x/' '@' 'a//b' $'a\nb'; do
  run export --git "$bad" second; expect_rc 2
done
run export --git x; expect_rc 2; expect_in_err "which checkpoint"
run export --git x 1 2; expect_rc 2
run export --git x now; expect_rc 1
run export --git x nosuch; expect_rc 1
run export --git x second --force; expect_rc 2

# --- other refs, JSON, and the same commit again
run export --git refs/tags/two 'before it' --json; expect_rc 0
expect_py "d['ref'] == 'refs/tags/two' and d['commit'] == '$was' and d['parent'] == '$head1' and d['lost_parent'] is None"
expect_py "[x['path'] for x in d['left_out'] if x['why'] == 'secret'] == ['.env', 'src/server.pem'] and d['nested'] == ['nested']"
expect_py "{'path': 'empty', 'why': 'empty_directory'} in d['left_out'] and d['repository_made'] is False"
expect_silent_err

# --- a commit that git lost
g -c core.hooksPath=/dev/null -c commit.gpgsign=false -c filter.shout.clean=cat commit -q -am second-commit
lost=$(git rev-parse HEAD)
run checkpoint -m third; expect_rc 0
git -c core.hooksPath=/dev/null reset -q --hard "$head1"
git -c core.hooksPath=/dev/null reflog expire --expire=now --all
git -c gc.auto=0 prune --expire=now
git cat-file -e "$lost" 2>/dev/null && fail "the commit is still there"
run export --git orphan third; expect_rc 0; expect_in_err "it has no parent: ${lost:0:10}"
[ -z "$(git log -1 --format=%P orphan)" ] || fail "a parent that is not there"
[ -z "$(git fsck --full --strict 2>&1 | grep -v ^dangling)" ] || fail "fsck: $(git fsck --full --strict 2>&1)"

# --- GIT_* of the caller do not count
mkdir "$scratch/other" && git init -q "$scratch/other"
GIT_DIR=$scratch/other/.git GIT_WORK_TREE=$scratch/other GIT_INDEX_FILE=/nonexistent run export --git env second; expect_rc 0
git rev-parse -q --verify env >/dev/null || fail "it went elsewhere"
[ -z "$(git -C "$scratch/other" for-each-ref)" ] || fail "another repository got it"

# --- a linked work tree, and a root below the top
git -c core.hooksPath=/dev/null worktree add -q "$scratch/linked" -b side
cd "$scratch/linked" || exit 1
echo linked >only-here
run on; expect_rc 0
run checkpoint -m w; expect_rc 0
run export --git from-linked w; expect_rc 0
same_files from-linked . '/\.git$'
[ "$(git symbolic-ref HEAD)" = refs/heads/side ] || fail "HEAD moved"
mkdir "$scratch/deep" && cd "$scratch/deep" && git init -q . && mkdir -p a/b c
echo 1 >a/b/f; echo 2 >c/f; echo 3 >a/g
g add . && g commit -q -m deep
cd a/b && echo changed >f && echo new >n
run on; expect_rc 0
run checkpoint -m sub; expect_rc 0
echo 'not this' >../../c/f
run export --git sub sub; expect_rc 0; expect_in_err "a/b/ alone"
[ "$(git ls-tree -r --name-only --full-tree sub | tr '\n' ' ')" = 'a/b/f a/b/n a/g c/f ' ] || fail "$(git ls-tree -r --name-only --full-tree sub)"
[ "$(git show sub:a/b/f)$(git show sub:c/f)" = changed2 ] || fail "contents below the top"

# --- the branch that HEAD names, before its first commit
mkdir "$scratch/unborn" && cd "$scratch/unborn" && git init -q -b main . && echo x >x
run on; expect_rc 0
run checkpoint -m u; expect_rc 0
run export --git main u; expect_rc 1; expect_in_err "checked out"
run export --git kept u; expect_rc 0; expect_in_err "no parent"
same_files kept . '^./\.git/'

# --- SHA-256
mkdir "$scratch/sha256" && cd "$scratch/sha256" && git init -q --object-format=sha256 -b main . && echo x >x
g add x && g commit -q -m x && echo y >y
run on; expect_rc 0
run checkpoint -m s; expect_rc 0
run export --git s s; expect_rc 0
[ "$(git rev-parse s^)" = "$(git rev-parse main)" ] || fail "the parent in a SHA-256 repository"
same_files s . '^./\.git/'
[ -z "$(git fsck --full --strict 2>&1)" ] || fail "fsck: $(git fsck --full --strict 2>&1)"

# --- no git at all: a repository beside the directory
mkdir "$scratch/plain" && cd "$scratch/plain" && mkdir e && echo x >x && echo secret >.env
run on; expect_rc 0
run checkpoint -m p; expect_rc 0
run export --git first p; expect_rc 0; expect_in_out "made the bare repository $scratch/plain.git"
[ "$(git -C "$scratch/plain.git" ls-tree -r --name-only first)" = x ] || fail "what is in it"
[ "$(cat "$scratch/plain.git/HEAD")" = 'ref: refs/heads/first' ] || fail "HEAD of it"
[ "$(ls -A | tr '\n' ' ')" = '.env e x ' ] || fail "the directory itself changed"
run export --git first p; expect_rc 1; expect_in_err "is there already"
run export --git again p; expect_rc 0
run export --git one p -o "$scratch/mine.git" --json; expect_rc 0; expect_py "d['repository_made'] and d['repository'] == '$scratch/mine.git'"
run export --git one p -o "$scratch/unborn"; expect_rc 0
run export --git one p -o "$scratch/store"; expect_rc 1; expect_in_err "no git repository"
run export --git one p -o "$scratch/none/x"; expect_rc 1; expect_in_err "there is no directory $scratch/none"
run export --git refs/x p; expect_rc 2; expect_in_err "a ref is called refs/KIND/NAME"
run export --git two p; expect_rc 0; expect_in_err "the checkpoint knows of no git repository"
git clone -q "$scratch/plain.git" "$scratch/clone" && [ "$(cat "$scratch/clone/x")" = x ] || fail "a clone of it"
[ -z "$(git -C "$scratch/plain.git" fsck --full --strict 2>&1)" ] || fail "fsck of the made one"
PATH=/nonexistent "$BELAY_BIN" export --git nogit p 2>"$scratch/err" && fail "without git"
grep -q "git is not installed" "$scratch/err" || fail "$(cat "$scratch/err")"

finish
