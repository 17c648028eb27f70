# `git.refs = true`: each checkpoint is also a commit under refs/belay/checkpoints/, made
# after it was acknowledged, and gone with it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

export BELAY_HOME=$scratch/store GIT_CONFIG_NOSYSTEM=1
git_is_ours=1  # refs come, and are looked at one by one
g() { git -c user.name=Somebody -c user.email=some@body.example "$@"; }
anchors() { git for-each-ref --format='%(refname)' refs/belay/checkpoints/; }
count() { anchors | wc -l; }
id_of() { "$BELAY_BIN" show "$1" --json | (cd / && python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])'); }
# What commands leave running behind them holds a lock of ours, as long as it lives.
hold() { exec 9>"$scratch/alive"; flock -s 9; }
settle() { exec 9>&-; flock "$scratch/alive" true; hold; }
hold
# As the process that a checkpoint starts, which has ended by then.
anchor() { settle; run __anchor --json; expect_rc 0; }
git_bytes() { find .git -type f ! -name index -exec sha256sum {} + | LC_ALL=C sort; }

mkdir "$scratch/repo" && cd "$scratch/repo" || exit 1
git init -q -b main .
mkdir -p src d
printf 'one\n' >src/a; printf 'two\n' >d/b; printf '*.o\n' >.gitignore
printf '#!/bin/sh\ntouch %s/hook-ran\n' "$scratch" >.git/hooks/reference-transaction; chmod +x .git/hooks/reference-transaction
g add . && g commit -q -m first
rm -f "$scratch/hook-ran"
printf 'TOKEN=correct-horse\n' >.env
run on; expect_rc 0

# --- off: nothing
before=$(git_bytes)
run checkpoint -m off; expect_rc 0
run gc; expect_rc 0; run prune; expect_rc 0; expect_silent_err
run show off --json; expect_py "d['git']['ref'] is None"
run __anchor; expect_rc 1; expect_in_err "git.refs is off"
[ "$before" = "$(git_bytes)" ] || fail "git changed although git.refs is off"

# --- on: in the background, by itself
run config git.refs true; expect_rc 0; expect_silent_err
echo three >src/c
run checkpoint -m first --json; expect_rc 0
anchor
one=$(id_of first)
[ "$(anchors)" = "refs/belay/checkpoints/$one" ] || fail "anchors: $(anchors)"
[ "$(git rev-parse "refs/belay/checkpoints/$one^")" = "$(git rev-parse main)" ] || fail "its parent"
[ "$(git ls-tree -r --name-only "refs/belay/checkpoints/$one" | tr '\n' ' ')" = '.gitignore d/b src/a src/c ' ] || fail "what is in it"
run show first --json; expect_py "d['git']['ref'] == 'refs/belay/checkpoints/$one'"
run show first; expect_in_out "refs/belay/checkpoints/$one"
run list --json; expect_py "[c['git']['ref'] for c in d['checkpoints']] == ['refs/belay/checkpoints/$one', None]"
[ ! -e "$scratch/hook-ran" ] || fail "a hook ran"
# A checkpoint does start it: the ref comes without anybody asking for it. A git that
# says when it has made one.
echo more >>src/c
mkfifo "$scratch/made"; mkdir "$scratch/told"
exec 7<>"$scratch/made"  # open to the end: nobody waits for a reader
cat >"$scratch/told/git" <<EOF
#!/bin/sh
"$(command -v git)" "\$@"; rc=\$?
case " \$* " in *" update-ref "*) echo made >"$scratch/made" ;; esac
exit \$rc
EOF
chmod +x "$scratch/told/git"
PATH="$scratch/told:$PATH" run checkpoint -m started; expect_rc 0
read -r -t 60 _ <&7 || fail "no process was started for it"
git rev-parse -q --verify "refs/belay/checkpoints/$(id_of started)" >/dev/null || fail "the process made no ref"

# --- what changed, and nothing else; kinds that change, secrets that appear
rm d/b; rmdir d; echo file >d; rm src/a; mkdir src/a; echo in >src/a/in; ln -s a src/l; chmod +x src/c; printf 'k' >src/new.pem
run checkpoint -m second; expect_rc 0
anchor
same() { # NAME: the commit is as an export of the same checkpoint
  run export --git "check-$1" "$1"; expect_rc 0
  [ "$(git rev-parse "check-$1^{tree}")" = "$(git rev-parse "refs/belay/checkpoints/$(id_of "$1")^{tree}")" ] ||
    fail "the anchor of $1 differs: $(git diff --stat "check-$1" "refs/belay/checkpoints/$(id_of "$1")")"
  git -c core.hooksPath=/dev/null update-ref -d "refs/heads/check-$1"
}
same first; same started; same second
printf 'not a secret yet\n' >plan.vault; echo x >src/x
run checkpoint -m vault; expect_rc 0
anchor; same vault
printf 'secret_patterns = [".env", "*.pem", "*.vault"]\n[git]\nrefs = true\n' >"$HOME/.config/belay/config.toml"
echo y >src/x
run checkpoint -m hidden; expect_rc 0
anchor
git ls-tree -r --name-only "refs/belay/checkpoints/$(id_of hidden)" | grep -q vault && fail "a secret stayed in the next anchor"
same hidden
git cat-file --batch-all-objects --batch --unordered | grep -q -a correct-horse && fail "a secret is in git's objects"
[ -z "$(git fsck --full --strict 2>&1 | grep -v ^dangling)" ] || fail "fsck: $(git fsck --full --strict 2>&1)"
g commit -q --allow-empty -m second; run checkpoint -m committed; expect_rc 0
anchor
[ "$(git rev-parse "refs/belay/checkpoints/$(id_of committed)^")" = "$(git rev-parse main)" ] || fail "the parent moved with HEAD"

# --- gone with the checkpoint
run delete first --yes; expect_rc 0; expect_in_err "1 ref of git"; expect_in_err "git gc --prune=now"
anchors | grep -q "$one" && fail "the anchor outlived its checkpoint"
n=$(count)
git pack-refs --all
run show second --json; expect_py "d['git']['ref'] is not None"
run delete second --yes; expect_rc 0
[ "$(count)" = $((n - 1)) ] || fail "a packed anchor outlived its checkpoint"
run checkpoint -m s --session work; expect_rc 0
anchor
run sessions delete work --yes; expect_rc 0; expect_in_err "1 ref of git"

# --- the newest of a session stay
printf '[git]\nrefs = true\nrefs_keep = 2\n' >"$HOME/.config/belay/config.toml"
for i in 1 2 3 4; do echo $i >src/x; run checkpoint -m "n$i" --session many; expect_rc 0; anchor; done
[ "$(anchors | grep -c -e "$(id_of n3)" -e "$(id_of n4)")" = 2 ] || fail "the newest"
anchors | grep -q -e "$(id_of n1)" -e "$(id_of n2)" && fail "more than refs_keep of a session"
printf '[git]\nrefs = true\n' >"$HOME/.config/belay/config.toml"

# --- purged content is in no ref
echo leaked-password >src/leak; run checkpoint -m leak; expect_rc 0; anchor
echo z >src/z; run checkpoint -m after-leak; expect_rc 0; anchor
n=$(count)
run purge src/leak --yes; expect_rc 0; expect_in_err "2 refs of git"
[ "$(count)" = $((n - 2)) ] || fail "only those that hold it go: $n, now $(count)"
for ref in $(anchors); do git ls-tree -r --name-only "$ref" | grep -q src/leak && fail "$ref holds it"; done
echo zz >src/z; run checkpoint -m later; expect_rc 0; anchor
git -c core.hooksPath=/dev/null reflog expire --expire=now --all; git -c core.hooksPath=/dev/null gc -q --prune=now
git cat-file --batch-all-objects --batch --unordered | grep -q -a leaked-password && fail "git still has it"

# --- refs of others, and of nobody, stay; a failure is remembered and fails nothing
git -c core.hooksPath=/dev/null update-ref refs/belay/checkpoints/somebody main
BELAY_HOME=$scratch/store2 run on; expect_rc 0
BELAY_HOME=$scratch/store2 run checkpoint -m theirs; expect_rc 0
BELAY_HOME=$scratch/store2 run __anchor --json; expect_rc 0
theirs=$(BELAY_HOME=$scratch/store2 id_of theirs)
run delete later --yes; expect_rc 0; run gc; expect_rc 0
anchors | grep -q somebody || fail "a ref that is not ours went"
anchors | grep -q "$theirs" || fail "an anchor of another store went"
git -c core.hooksPath=/dev/null update-ref -d refs/belay/checkpoints/somebody
git pack-refs --all
echo broken >src/z
run checkpoint -m broken; expect_rc 0
anchor
# A file where git wants a directory.
mkdir -p .git/refs/belay; rm -rf .git/refs/belay/checkpoints; : >.git/refs/belay/checkpoints
echo broken3 >src/z
run checkpoint -m broken3; expect_rc 0
run __anchor; expect_rc 1
run status; expect_rc 0; expect_in_out "not anchored in git"
run stats --json; expect_py "d['operations']['failed'] == 0 and d['checkpoints']['failed'] == 0"
rm .git/refs/belay/checkpoints
# By this one, or by the one that the checkpoint started and that was late.
anchor
anchors | grep -q "$(id_of broken3)" || fail "what failed is not made up for"
run status; [[ $out == *anchored* ]] && fail "what was put right is still said: $out"

# --- below the top of a work tree
mkdir "$scratch/deep" && cd "$scratch/deep" && git init -q . && mkdir -p a/b && echo 1 >a/b/f && echo 2 >g && g add . && g commit -q -m deep && cd a/b || exit 1
run on; expect_rc 0
run checkpoint -m sub; expect_rc 0; anchor
echo 3 >f; echo 4 >../../g; g commit -q -m g ../../g; echo 5 >h
run checkpoint -m sub2; expect_rc 0; anchor
ref=refs/belay/checkpoints/$(id_of sub2)
[ "$(git show "$ref:a/b/f")$(git show "$ref:g")$(git show "$ref:a/b/h")" = 345 ] || fail "below the top"
run off --forget --yes; expect_rc 0
[ "$(count)" = 0 ] || fail "a forgotten root left anchors: $(anchors)"

finish
