# belay fork: a state as a directory and a root of its own, with its repository; diff across roots.
. "$(dirname "$0")/lib.bash"
command -v strace >/dev/null || { echo "strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
root=$scratch/project
mkdir "$root"; cd "$root" || exit 1
git init -q -b main . && git config user.name me
echo 1 >a; mkdir sub; echo 2 >sub/b; ln -s a link; printf '#!/bin/sh\n' >run; chmod 755 run
git add . && git commit -qm first
echo staged >a; git add a; echo unstaged >a; echo new >untracked
git branch other; git tag v1
run on; run checkpoint -m one; expect_rc 0
one=$("$BELAY_BIN" show one --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
git commit -qam second; echo later >a; rm untracked; git checkout -q other 2>/dev/null || git checkout -qf other
prints() { find .git -printf "%p %y %m %s %T@ %C@ %n\n" | sort; find .git -type f -exec sha256sum {} + | sort; }
prints >"$scratch/git.before"; find . -path ./.git -prune -o -type f -print | sort | xargs sha256sum >"$scratch/tree.before"

run fork one "$scratch/f1"; expect_rc 0; expect_in_out "with a repository of its own"
[ "$(cat "$scratch/f1/a" "$scratch/f1/sub/b" "$scratch/f1/untracked")" = "$(printf 'unstaged\n2\nnew')" ] || fail "files of the fork"
[ "$(readlink "$scratch/f1/link")" = a ] && [ -x "$scratch/f1/run" ] || fail "links and modes"
(cd "$scratch/f1" || exit 1
 [ "$(git symbolic-ref HEAD)" = refs/heads/main ] || fail "branch $(git symbolic-ref HEAD)"
 [ "$(git log --format=%s)" = first ] || fail "log $(git log --format=%s)"
 [ "$(git status --porcelain)" = "MM a
?? untracked" ] || fail "status: $(git status --porcelain)"
 [ "$(git show :a)" = staged ] || fail "staged: $(git show :a)"
 [ "$(git config user.name)" = me ] || fail "settings"
 git rev-parse -q --verify v1 >/dev/null && git rev-parse -q --verify other >/dev/null || fail "refs"
 git fsck --no-dangling >/dev/null 2>&1 || fail "fsck: $(git fsck 2>&1)"
 git commit -qam third || fail "commit"; exit $((failures > 0))) || fail "the repository of the fork"
prints | cmp -s - "$scratch/git.before" || fail "the source's git changed: $(prints | diff - "$scratch/git.before" | head -3)"
[ "$(stat -c %a "$scratch/f1/.git" "$scratch/f1/.git/HEAD" "$scratch/f1/.git/refs")" = "$(stat -c %a .git .git/HEAD .git/refs)" ] || fail "modes: $(stat -c %a "$scratch/f1/.git" "$scratch/f1/.git/HEAD")"
find . -path ./.git -prune -o -type f -print | sort | xargs sha256sum | cmp -s - "$scratch/tree.before" || fail "the source changed"

# A root of its own; lineage is told.
run roots --json; expect_py "any('$scratch/f1' == r.get('root', r.get('path')) for r in d['roots'])"
run list --root "$scratch/f1" --json; expect_py "len(d['checkpoints']) == 1 and d['checkpoints'][0]['meta']['fork_of'] == '$one'"
echo more >"$scratch/f1/more"
run checkpoint --root "$scratch/f1" -m mine; expect_rc 0
run rollback "$(cd "$scratch/f1" && "$BELAY_BIN" list --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["checkpoints"][-1]["id"])')" --root "$scratch/f1" --yes --git keep; expect_rc 0
[ ! -e "$scratch/f1/more" ] || fail "the fork is no root that can be rolled back"

# Settings that say where the work tree is lead to the fork's own: of a submodule, of any.
git config core.worktree "$root"
run fork one "$scratch/led"; expect_rc 0
git config --unset core.worktree
[ "$(git -C "$scratch/led" rev-parse --show-toplevel)" = "$scratch/led" ] || fail "git works in $(git -C "$scratch/led" rev-parse --show-toplevel)"
[ "$(git -C "$scratch/led" status --porcelain)" = "MM a
?? untracked" ] || fail "status: $(git -C "$scratch/led" status --porcelain)"
git init -q "$scratch/super"
(cd "$scratch/super" && git -c protocol.file.allow=always submodule --quiet add "$root" sub && cd sub && "$BELAY_BIN" on -q && "$BELAY_BIN" checkpoint -q -m sub &&
  "$BELAY_BIN" fork sub "$scratch/led2" -q) || fail "fork of a submodule"
[ "$(git -C "$scratch/led2" rev-parse --show-toplevel)" = "$scratch/led2" ] || fail "git works in $(git -C "$scratch/led2" rev-parse --show-toplevel)"
[ -z "$(git -C "$scratch/led2" status --porcelain)" ] || fail "status: $(git -C "$scratch/led2" status --porcelain)"

# Settings of one work tree alone: a sparse checkout, a linked work tree with its own.
same_git() {  # FROM TO: git says of both the same
  [ "$(git -C "$1" status --porcelain=v2 2>&1)" = "$(git -C "$2" status --porcelain=v2 2>&1)" ] || fail "status of $2: $(git -C "$2" status 2>&1)"
  [ "$(git -C "$1" ls-files -s -v -t)" = "$(git -C "$2" ls-files -s -v -t)" ] || fail "index of $2"
  [ "$(git -C "$1" config --worktree --list)" = "$(git -C "$2" config --worktree --list | grep -v '^core\.bare=')" ] || fail "settings of $2: $(git -C "$2" config --worktree --list)"
  [ "$(git -C "$2" rev-parse --show-toplevel)" = "$2" ] || fail "git works in $(git -C "$2" rev-parse --show-toplevel)"
}
git init -q -b main "$scratch/sparse"
(cd "$scratch/sparse" && mkdir in out && echo 1 >in/a && echo 2 >out/b && echo 3 >top && git add . && git commit -qm one &&
  git sparse-checkout set --cone in && [ ! -e out ] && git config --worktree user.name its-own && echo more >>in/a && "$BELAY_BIN" on -q && "$BELAY_BIN" checkpoint -q -m narrow) || fail "a sparse checkout"
git_of() { (cd "$1" && find . -type f ! -path './worktrees/*/index' ! -name index -exec sha256sum {} + | sort); }
git_of "$scratch/sparse/.git" >"$scratch/sparse.git"
run fork narrow "$scratch/narrow" --root "$scratch/sparse"; expect_rc 0
git_of "$scratch/sparse/.git" | cmp -s - "$scratch/sparse.git" || fail "the source of a sparse fork changed"
same_git "$scratch/sparse" "$scratch/narrow"; [ ! -e "$scratch/narrow/out" ] || fail "the fork is not sparse"
# What was recorded counts, with the index and the patterns of that time.
(cd "$scratch/sparse" && git sparse-checkout disable && git config --worktree user.name later) || fail "sparse-checkout disable"
run fork narrow "$scratch/narrow2" --root "$scratch/sparse"; expect_rc 0
[ "$(git -C "$scratch/narrow2" config user.name)" = its-own ] && [ "$(git -C "$scratch/narrow2" status --porcelain)" = " M in/a" ] || fail "an earlier sparse state: $(git -C "$scratch/narrow2" status)"
(cd "$scratch/sparse" && git worktree add -q "$scratch/linked" -b linked && cd "$scratch/linked" && git sparse-checkout set --cone out && git config --worktree user.name linked &&
  "$BELAY_BIN" on -q && "$BELAY_BIN" checkpoint -q -m linked) || fail "a linked work tree"
run fork linked "$scratch/narrow3" --root "$scratch/linked"; expect_rc 0
same_git "$scratch/linked" "$scratch/narrow3"
[ "$(git -C "$scratch/narrow3" config user.name)" = linked ] && [ ! -e "$scratch/narrow3/in" ] || fail "the fork of a linked work tree"

# N of them, and what differs.
run fork one "$scratch/f2" --json; expect_rc 0; expect_py "d['repository'] and d['root'] == '$scratch/f2' and d['target'] == '$one' and d['files'] == 4"
mkdir "$scratch/f3"; run fork "$one" "$scratch/f3"; expect_rc 0
echo another >"$scratch/f2/a"
run diff one --against "$scratch/f2" --name-only; expect_rc 0; expect_out "a
"
run diff one latest --against "$scratch/f2" --name-only; expect_rc 0; expect_out ""
run diff now --against "$scratch/f2" --json; expect_rc 0; expect_py "d['against'] == '$scratch/f2'"
run diff one --against "$scratch/nowhere"; expect_rc 1

# Refused, with nothing changed.
run fork one "$scratch/f1"; expect_rc 1; expect_in_err "not empty"
run fork one "$root/inside"; expect_rc 1; expect_in_err "protected directory"; [ ! -e "$root/inside" ] || fail "made"
run fork one "$scratch/no/such"; expect_rc 1; expect_in_err "is not there"
run fork now "$scratch/f4"; expect_rc 2
run fork nothing "$scratch/f4"; expect_rc 1; [ ! -e "$scratch/f4" ] || fail "made"
echo x >"$scratch/file"; run fork one "$scratch/file"; expect_rc 1; [ "$(cat "$scratch/file")" = x ] || fail "overwritten"
ln -s "$scratch/f1" "$scratch/to-f1"; run fork one "$scratch/to-f1"; expect_rc 1

# Killed anywhere: all of it or nothing, and the next one tidies up.
kills=0
for ((call = 1; ; call += 17)); do
  killed_at $call fork one "$scratch/k" || break
  kills=$((kills + 1))
  run fork one "$scratch/after.$call"; expect_rc 0
  ls -A "$scratch" | grep -q '^\.belay-fork' && fail "left call $call: $(ls -A "$scratch")"
  if [ -e "$scratch/k" ]; then
    [ "$(cat "$scratch/k/a")" = unstaged ] && git -C "$scratch/k" fsck --no-dangling >/dev/null 2>&1 || fail "half of it call $call"
    run list --root "$scratch/k" --json; expect_rc 0
    run off --forget --yes "$scratch/k"; rm -rf "$scratch/k"
  fi
done
[ $kills -ge 5 ] || fail "killed $kills times"
run verify --read-data; expect_rc 0
finish
