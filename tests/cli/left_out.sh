# A git work tree that a protected directory leaves out: an agent's own, a clone in an
# ignored directory. It is said that nothing there is covered, and with `auto` it becomes
# a root of its own at the first event in it.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
export GIT_CONFIG_NOSYSTEM=1
root=$(pwd -P)/p
mkdir -p "$root/src" "$root/node_modules/dep"; cd "$root" || exit 1
git init -q -b main .
printf '.worktrees/\nvendored/\nnode_modules/\n' >.gitignore; echo 1 >a; git add .
git -c user.name=a -c user.email=a@b.example commit -q -m one
git worktree add -q .worktrees/feature; mkdir .worktrees/feature/deep .worktrees/plain
git clone -q . vendored/clone 2>/dev/null; git clone -q . nested 2>/dev/null
tree=$root/.worktrees/feature
run on; run checkpoint -m first; expect_rc 0; expect_silent_err

# --- it is said, and what to type
for place in "$tree" "$tree/deep" "$root/vendored/clone"; do
  top=${place%/deep}
  cd "$place" || exit 1
  run status; expect_rc 0
  expect_in_out "not protected: $top"; out=$(tr -s ' \n' ' ' <<<"$out"); expect_in_out "git work tree of its own"; expect_in_out "belay on"
  run status --json; expect_py "d['root'] == '$top' and not d['protected']"
  run doctor --dry-run; expect_in_out "not protected: $top"
  for command in list checkpoint "run -- true"; do
    # shellcheck disable=SC2086
    run $command; expect_rc 0; expect_in_err "not covered: $top is a git work tree"; expect_in_err "belay on"
  done
done
# Who only stands in what is ignored, or in a work tree that is covered, is in the root.
for place in "$root/node_modules/dep" "$root/.worktrees/plain" "$root/nested" "$root/src" "$root/.worktrees"; do
  cd "$place" || exit 1
  run status --json; expect_py "d['root'] == '$root' and d['protected']"
  run list; expect_rc 0; expect_silent_err
done
cd "$root" || exit 1

# --- with auto it is protected at the first event there, or that names a file there
hook() {  # EVENT CWD MORE
  printf '{"session_id":"%s","cwd":"%s","hook_event_name":"%s"%s}' "$session" "$2" "$1" "$3" | "$BELAY_BIN" hook claude >"$scratch/out" 2>&1
  [ "$?$(cat "$scratch/out")" = 0 ] || fail "not silent: $(cat "$scratch/out")"
  behind_is_done
}
prompt() { hook UserPromptSubmit "$1" ',"prompt_id":"p","prompt":"go on"'; }
edit() { hook "$1" "$root" ",\"prompt_id\":\"p\",\"tool_name\":\"Write\",\"tool_use_id\":\"t1\",\"tool_input\":{\"file_path\":\"$2\",\"content\":\"x\"}"; }
protected() { run roots --json; expect_py "sorted(r['root'] for r in d['roots']) == sorted([$1])"; }
session=s0; prompt "$tree"; protected "'$root'"
printf 'auto = true\n' >"$BELAY_CONFIG"
for place in "$root" "$root/node_modules/dep" "$root/.worktrees/plain" "$root/nested" "$root/src"; do
  session=s1; prompt "$place"
done
edit PreToolUse "$root/src/f"; protected "'$root'"
session=s2; prompt "$tree/deep"; protected "'$root', '$tree'"
run list --json --root "$tree"; expect_py "d['checkpoints'][0]['session'] == 's2' and d['checkpoints'][0]['prompt'] == 'go on'"
session=s1; edit PreToolUse "$root/vendored/clone/new"; protected "'$root', '$tree', '$root/vendored/clone'"
echo x >vendored/clone/new; edit PostToolUse "$root/vendored/clone/new"
run rollback tool:t1 --session s1 --root "$root/vendored/clone" --yes; expect_rc 0
[ ! -e vendored/clone/new ] || fail "what was written there is not taken back"
# Whoever switched it off meant it.
run off "$tree"; expect_rc 0; session=s3; prompt "$tree"; protected "'$root', '$root/vendored/clone'"
finish
