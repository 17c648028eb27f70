# `belay install`, `belay uninstall`, `belay install --list`: what is written where, and
# that uninstalling leaves every byte as it was.
. "$(dirname "$0")/lib.bash"

unset CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME
export BELAY_HOME=$scratch/store PATH=$scratch/bin:/usr/bin:/bin
agents="claude codex opencode gemini qwen copilot reasonix cline crush"
mkdir -p "$scratch/bin" "$scratch/project"
project=$(cd "$scratch/project" && pwd -P)
git -C "$project" -c init.defaultBranch=main init -q 2>/dev/null

# Names, types, modes, owners, link targets and bytes of everything below.
picture() {
  (cd "$1" && find . -path ./.git -prune -o -printf '%p %y %m %U %l\n' | sort
   find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0r sha256sum)
}
same() { [ "$1" = "$2" ] || fail "$3: $(diff <(echo "$1") <(echo "$2"))"; }
settings_of() {
  case $1 in
    claude) echo "$HOME/.claude/settings.json" ;;
    codex) echo "$HOME/.codex/hooks.json" ;;
    gemini) echo "$HOME/.gemini/settings.json" ;;
    qwen) echo "$HOME/.qwen/settings.json" ;;
    copilot) echo "$HOME/.copilot/hooks/belay.json" ;;
    reasonix) echo "$HOME/.reasonix/settings.json" ;;
    crush) echo "$HOME/.config/crush/crush.json" ;;
  esac
}
foreign() { [ -n "$(settings_of "$1")" ]; }

# --- which agents ---
run install; expect_rc 2; expect_in_err "--list"
run uninstall; expect_rc 2
run install clade; expect_rc 2; expect_in_err "did you mean claude?"
run install generic; expect_rc 2
run install claude xyzzy --json; expect_rc 2; expect_py "d['error']"
run install --list --trust; expect_rc 2
run install --list; expect_rc 0
for agent in $agents; do expect_in_out "$agent"; done
[ -z "$(ls -A "$HOME")" ] || fail "a look made $(ls -A "$HOME")"

# --- a dry run writes nothing, and tells everything ---
before=$(picture "$HOME")
run install $agents --dry-run; expect_rc 0
for agent in $agents; do
  foreign "$agent" && expect_in_out "+++ $(settings_of "$agent")"
done
expect_in_out "--- /dev/null"
run install $agents --dry-run --json; expect_rc 0
expect_py "d['dry_run'] and len(d['agents']) == 9 and all(f['action'] == 'create' and f['diff'] for a in d['agents'] for f in a['files'])"
same "$before" "$(picture "$HOME")" "a dry run wrote something"
[ ! -e "$BELAY_HOME" ] || fail "a dry run made a store"

# --- all nine, and back, twice ---
for round in 1 2; do
  run install $agents; expect_rc 0
  for agent in $agents; do
    expect_in_out "$agent: connected"; expect_in_err "$agent is not found in PATH"
  done
  expect_in_err "/hooks"; expect_in_err "belay config auto true"
  run install --list --json; expect_rc 0
  expect_py "all(a['hooks'] == 'all' and not a['outdated'] and a['found'] is None for a in d['agents'])"
  expect_py "[a['trusted'] for a in d['agents'] if a['agent'] == 'codex'] == [False]"
  for agent in $agents; do
    foreign "$agent" && { python3 -m json.tool <"$(settings_of "$agent")" >/dev/null || fail "$agent: not JSON"; }
  done
  [ "$(stat -c %a "$HOME/.claude/settings.json" "$HOME/.claude" "$HOME/.cline/hooks/PreToolUse" | tr '\n' ' ')" = "600 700 700 " ] ||
    fail "modes: $(stat -c '%n %a' "$HOME/.claude/settings.json" "$HOME/.claude" "$HOME/.cline/hooks/PreToolUse")"
  installed=$(picture "$HOME")
  run install $agents; expect_rc 0; expect_in_out "claude: is connected already"
  same "$installed" "$(picture "$HOME")" "installing twice is not installing once"
  run uninstall $agents --dry-run; expect_rc 0
  same "$installed" "$(picture "$HOME")" "a dry run of uninstall wrote something"
  run uninstall $agents; expect_rc 0; expect_in_out "claude: disconnected"
  same "$before" "$(picture "$HOME")" "uninstall left something"
  run uninstall $agents; expect_rc 0; expect_in_out "claude: is not connected"
done

# The hook can be run as it is written, from any directory with any name.
mkdir "$scratch/my tools"; ln "$BELAY_BIN" "$scratch/my tools/belay" 2>/dev/null ||
  cp "$BELAY_BIN" "$scratch/my tools/belay"
"$scratch/my tools/belay" install claude cline -q 2>/dev/null || fail "install of a copy"
command=$(python3 -c 'import json,sys
print(json.load(open(sys.argv[1]))["hooks"]["Stop"][0]["hooks"][0]["command"])' "$HOME/.claude/settings.json")
[ "$command" = "'$scratch/my tools/belay' hook claude" ] || fail "$command"
[ "$(sh -c "set -- $command; echo \$#")" = 3 ] || fail "a shell makes other words of $command"
sh -n "$HOME/.cline/hooks/PreToolUse" || fail "not a script"
[ -x "$HOME/.cline/hooks/PreToolUse" ] || fail "not to be run"
# Another program of the same: the entries follow it.
run install claude cline; expect_rc 0
grep -q "my tools" "$HOME/.claude/settings.json" "$HOME"/.cline/hooks/* "$HOME/.claude/commands/rollback.md" &&
  fail "the old path is still there"
run uninstall claude cline; expect_rc 0
same "$before" "$(picture "$HOME")" "uninstall after a move"
# By its name in PATH, where that is this program.
ln -s "$BELAY_BIN" "$scratch/bin/belay"
run install reasonix; grep -q "\"$scratch/bin/belay hook reasonix\"" "$HOME/.reasonix/settings.json" || fail "$(cat "$HOME/.reasonix/settings.json")"
run uninstall reasonix; rm "$scratch/bin/belay"

# Whatever it is called: its hooks are ours, also when it is gone.
cp "$BELAY_BIN" "$scratch/belay-9.9"; "$scratch/belay-9.9" install $agents -q 2>/dev/null || fail "install of another name"
rm "$scratch/belay-9.9"
# Agents that would not go on without it are not kept from it.
python3 - "$(settings_of copilot)" "$(settings_of gemini)" <<'PY' >"$scratch/lines" || fail "commands"
import json, sys
for name in sys.argv[1:]:
    for entries in json.load(open(name))["hooks"].values():
        for entry in entries:
            for one in entry.get("hooks", [entry]):
                print(one.get("bash") or one["command"])
PY
[ "$(wc -l <"$scratch/lines")" = 15 ] || fail "$(cat "$scratch/lines")"
while IFS= read -r line; do
  bash -c "$line" </dev/null >"$scratch/out" 2>&1 || fail "exit $?: $line"
  [ ! -s "$scratch/out" ] || fail "$line says $(cat "$scratch/out")"
done <"$scratch/lines"
run install --list --json; expect_py "all(a['hooks'] == 'all' and a['outdated'] for a in d['agents'])"
run doctor; expect_rc 1; expect_in_out "its hooks run $scratch/belay-9.9, which is not there"
run install $agents; expect_rc 0
grep -rq "belay-9.9" "$HOME" && fail "the old name is still there: $(grep -r belay-9.9 "$HOME")"
[ "$(grep -c 'hook claude"' "$HOME/.claude/settings.json")" = 9 ] || fail "doubled: $(cat "$HOME/.claude/settings.json")"
run uninstall $agents; expect_rc 0
same "$before" "$(picture "$HOME")" "uninstall after another name"

# As earlier versions wrote it, without that guard: listed as old, put right, taken out.
run install copilot gemini; installed=$(picture "$HOME")
for round in reinstall uninstall; do
  sed -i 's/\[ ! -x [^]]* \] || //' "$(settings_of copilot)" "$(settings_of gemini)"
  grep -q -- "-x" "$(settings_of copilot)" "$(settings_of gemini)" && fail "still guarded"
  run install --list --json; expect_py "all(a['hooks'] == 'all' and a['outdated'] for a in d['agents'] if a['agent'] in ('copilot', 'gemini'))"
  [ $round = reinstall ] || break
  run install copilot gemini; expect_rc 0; same "$installed" "$(picture "$HOME")" "put right"
done
run uninstall copilot gemini; expect_rc 0
same "$before" "$(picture "$HOME")" "uninstall of the old form"

# --- what somebody changed of ours stays when it is installed again ---
run install claude; expect_rc 0
echo "mine" >>"$HOME/.claude/commands/rollback.md"
sed -i '0,/hook claude"/s//hook claude 2>>\/tmp\/log || true"/' "$HOME/.claude/settings.json"
was=$(picture "$HOME")
run install claude --dry-run; expect_rc 0; expect_out ""
run install claude; expect_rc 0; expect_in_err "rollback.md was changed by somebody and stays"; expect_in_err "what SessionStart runs was changed by somebody"
run install --list --json; expect_py "[(a['hooks'], a['outdated']) for a in d['agents'] if a['agent'] == 'claude'] == [('all', False)]"
same "$was" "$(picture "$HOME")" "installed over what was changed"
run uninstall claude; expect_rc 1; expect_in_err "rollback.md was changed since"; expect_in_err "still there: $HOME/.claude/settings.json: what SessionStart runs"
[ "$(grep -c 'hook claude' "$HOME/.claude/settings.json")" = 1 ] || fail "$(cat "$HOME/.claude/settings.json")"
rm -r "$HOME/.claude"

# --- settings of somebody else, in every style ---
event() { case $1 in gemini) echo BeforeTool ;; copilot) echo preToolUse ;; *) echo PreToolUse ;; esac; }
style() { # NUMBER AGENT
  case $1 in
    1) printf '{\n  // mine, and stays\n  "model": "x", /* so does this */\n  "hooks": {\n    "%s": [\n      {"matcher": "Bash", "command": "mine", "bash": "mine", "hooks": [{"type": "command", "command": "mine"}]}, // keep\n    ],\n  },\n}\n' "$(event "$2")" ;;
    2) printf '\xef\xbb\xbf{\r\n\t"env": {"A": "b\\u0020c"},\r\n\t"hooks": {\r\n\t\t"Other": [1]\r\n\t}\r\n}' ;;
    3) printf '{"z":[],"hooks":{"%s":[]},"a":{"b":null}}' "$(event "$2")" ;;
    4) printf '{\n\t"only": "tabs"\n}\n\n' ;;
    5) printf '{}' ;;
    6) : ;;
  esac
}
for agent in $agents; do
  foreign "$agent" || continue
  file=$(settings_of "$agent")
  for number in 1 2 3 4 5 6; do
    mkdir -p "${file%/*}"; style $number "$agent" >"$file"; chmod 640 "$file"
    was=$(picture "$HOME")
    run install "$agent"; expect_rc 0
    [ $number != 1 ] || { grep -q '// mine, and stays' "$file" && grep -q '"command": "mine"' "$file" && grep -q '// keep' "$file"; } ||
      fail "$agent: lost something: $(cat "$file")"
    [ $number != 2 ] || { [ "$(head -c 3 "$file" | od -An -tx1 | tr -d ' ')" = efbbbf ] && ! grep -qv $'\r$' <(head -n -1 "$file"); } ||
      fail "$agent: other line ends: $(cat -A "$file")"
    run install "$agent"; expect_rc 0; expect_in_out "is connected already"
    run uninstall "$agent"; expect_rc 0
    same "$was" "$(picture "$HOME")" "$agent, style $number"
  done
  rm -r "$HOME"/.[a-z]*
done

# --- edited since: only what is ours goes ---
mkdir "$HOME/.claude"; style 1 claude >"$HOME/.claude/settings.json"
run install claude; expect_rc 0
sed -i 's|"model": "x"|"model": "new"|' "$HOME/.claude/settings.json"
run uninstall claude; expect_rc 0
same "$(style 1 claude | sed 's/"x"/"new"/')" "$(cat "$HOME/.claude/settings.json")" "edited since"
# Written anew by the agent, with more in it.
run install claude; expect_rc 0
python3 - "$HOME/.claude/settings.json" <<'PY'
import json, re, sys
text = re.sub(r"//.*|/\*.*?\*/", "", open(sys.argv[1]).read())
d = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
d["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs"}]})
d["hooks"]["Mine"] = []
json.dump(d, open(sys.argv[1], "w"))
PY
run uninstall claude; expect_rc 0
python3 - "$HOME/.claude/settings.json" <<'PY' || fail "left: $(cat "$HOME/.claude/settings.json")"
import json, sys
d = json.load(open(sys.argv[1]))
assert "belay" not in json.dumps(d), d
assert d["model"] == "new" and list(d["hooks"]) == ["PreToolUse", "Stop", "Mine"], d
assert d["hooks"]["Stop"] == [{"hooks": [{"type": "command", "command": "theirs"}]}], d
assert len(d["hooks"]["PreToolUse"]) == 1, d
PY
rm -r "$HOME/.claude"
# The store was lost: the same.
mkdir "$HOME/.gemini"; printf '{\n  "a": 1\n}\n' >"$HOME/.gemini/settings.json"
run install gemini; expect_rc 0; mv "$BELAY_HOME" "$scratch/lost"
run uninstall gemini; expect_rc 0
[ ! -e "$BELAY_HOME" ] || fail "uninstall made a store"
same $'{\n  "a": 1\n}' "$(cat "$HOME/.gemini/settings.json")" "without a store"
mv "$scratch/lost" "$BELAY_HOME"; rm -rf "$HOME"/.[a-z]*

# --- refused, and nothing written ---
mkdir "$HOME/.qwen"; file=$HOME/.qwen/settings.json
refuse() { # CONTENT MESSAGE
  printf "$1" >"$file"; was=$(picture "$HOME")
  run install qwen; expect_rc 1; expect_in_err "$2"
  run install qwen --json; expect_rc 1; expect_py "d['error']['message']"
  same "$was" "$(picture "$HOME")" "$2"
}
refuse '{\n  "a": 1\n  "b": 2\n}' "$file:3: not valid JSON"
refuse '[]' "$file:1: settings must be an object"
refuse '{"hooks": []}' '"hooks" must be an object'
refuse '{"hooks": {"Stop": {}}}' '"Stop" must be a list'
refuse '{"hooks": {},\n"hooks": {}}' "$file:2: \"hooks\" is there twice"
echo '{}' >"$file"; chmod 444 "$file"; was=$(picture "$HOME")
run install qwen; expect_rc 1; expect_in_err "is read-only"
run install qwen --dry-run; expect_rc 1; expect_in_err "is read-only"
same "$was" "$(picture "$HOME")" "read-only"
rm "$file"; mkdir "$file"; run install qwen; expect_rc 1; expect_in_err "is a directory"
rmdir "$file"; mkfifo "$file"; run install qwen; expect_rc 1; expect_in_err "is a FIFO"
rm "$file"; ln -s nowhere "$file"; was=$(picture "$HOME")
run install qwen; expect_rc 1; expect_in_err "is a symlink to nowhere, which is not there"
same "$was" "$(picture "$HOME")" "a link to nothing"
# What is right of the others is done all the same, and said.
run install qwen crush --json; expect_rc 1
expect_py "[bool(a['refused']) for a in d['agents']] == [True, False]"
run uninstall crush; rm "$file"
# A link to a file of one's own is followed when told to, and stays.
mkdir "$HOME/dotfiles"; style 4 >"$HOME/dotfiles/qwen.json"; ln -s ../dotfiles/qwen.json "$file"; was=$(picture "$HOME")
run install qwen; expect_rc 1; expect_in_err "is a symlink to ../dotfiles/qwen.json"; expect_in_err "belay install qwen --follow-links"
run install qwen --dry-run; expect_rc 1; same "$was" "$(picture "$HOME")" "a link that is not followed"
run install qwen --follow-links; expect_rc 0; [ -L "$file" ] || fail "the link was replaced"
run install qwen; expect_rc 0; expect_in_out "is connected already"
grep -q belay "$HOME/dotfiles/qwen.json" || fail "the file behind the link is as it was"
run uninstall qwen; expect_rc 0; same "$was" "$(picture "$HOME")" "behind a link"
rm -r "$HOME"/.[a-z]* "$HOME/dotfiles"

# --- files of others under our names ---
mkdir -p "$HOME/.cline/hooks" "$HOME/.config/opencode/commands"
printf '#!/bin/sh\nmine\n' >"$HOME/.cline/hooks/TaskStart"; echo mine >"$HOME/.config/opencode/commands/rollback.md"
was=$(picture "$HOME")
run install cline; expect_rc 0; expect_in_out "cline: connected"; [ -x "$HOME/.cline/hooks/TaskStart.sh" ] || fail "not beside it"
for ending in .sh .bash; do echo mine >"$HOME/.cline/hooks/PreCompact$ending"; done; echo mine >"$HOME/.cline/hooks/PreCompact"
run install --list cline --json; expect_py "d['agents'][0]['hooks'] == 'some' and d['agents'][0]['missing'] == ['PreCompact']"
run install cline; expect_rc 1; expect_in_err "PreCompact is there already and not Belay's"
rm "$HOME/.cline/hooks"/PreCompact*
run install opencode; expect_rc 0; expect_in_err "rollback.md is there already"
run uninstall cline opencode; expect_rc 0
same "$was" "$(picture "$HOME")" "beside files of others"
rm -r "$HOME"/.[a-z]*

# --- where variables say ---
mkdir -p "$scratch/moved"
CLAUDE_CONFIG_DIR=$scratch/moved/claude CODEX_HOME=$scratch/moved/codex \
  COPILOT_HOME=$scratch/moved/copilot XDG_CONFIG_HOME=$scratch/moved/xdg \
  "$BELAY_BIN" install claude codex copilot opencode crush -q --trust 2>/dev/null || fail "moved"
for path in claude/settings.json claude/commands/rollback.md codex/hooks.json codex/config.toml \
    copilot/hooks/belay.json xdg/opencode/plugins/belay.js xdg/crush/crush.json; do
  [ -f "$scratch/moved/$path" ] || fail "not written: $path"
done
[ -z "$(ls -A "$HOME")" ] || fail "HOME has $(ls -A "$HOME")"
# They are known without the variables too.
run uninstall claude codex copilot opencode crush; expect_rc 0
[ -z "$(ls -A "$scratch/moved")" ] || fail "left: $(find "$scratch/moved")"

# --- Codex: stamped only when asked ---
mkdir "$HOME/.codex"; printf 'model = "x"\n[projects."/p"]\ntrust_level = "trusted"' >"$HOME/.codex/config.toml"; was=$(picture "$HOME")
run install codex; expect_rc 0; expect_in_err "/hooks"
[ "$(grep -c trusted_hash "$HOME/.codex/config.toml")" = 0 ] || fail "stamped unasked"
run install codex --trust; expect_rc 0; [[ $err == */hooks* ]] && fail "asks for what was done: $err"
[ "$(grep -c '^trusted_hash = "sha256:[0-9a-f]\{64\}"$' "$HOME/.codex/config.toml")" = 9 ] || fail "$(cat "$HOME/.codex/config.toml")"
grep -q "^\[hooks.state.\"$HOME/.codex/hooks.json:pre_tool_use:0:0\"\]$" "$HOME/.codex/config.toml" || fail "key"
run install --list codex --json; expect_py "d['agents'][0]['trusted'] is True"
run uninstall codex; expect_rc 0; same "$was" "$(picture "$HOME")" "config.toml"
printf 'hooks = { state = {} }\n' >"$HOME/.codex/config.toml"
run install codex --trust; expect_rc 1; expect_in_err "/hooks"
[ ! -e "$HOME/.codex/hooks.json" ] || fail "half of it was written"
rm -r "$HOME/.codex"

# --- for one project ---
was=$(picture "$project")
cd "$project" || exit 1; mkdir below; cd below || exit 1
run install $agents --project; expect_rc 0; expect_in_err "keep it out of commits"
for path in .claude/settings.local.json .claude/commands/rollback.md .codex/hooks.json .opencode/plugins/belay.js \
    .gemini/settings.json .qwen/settings.json .github/hooks/belay.json .reasonix/settings.json .cline/hooks/PreToolUse .crush.json; do
  [ -f "$project/$path" ] || fail "not written: $path"
done
[ -z "$(ls -A "$HOME")" ] || fail "HOME has $(ls -A "$HOME")"
run install --list --json; expect_py "all(a['hooks'] == 'none' and a['project']['hooks'] == 'all' for a in d['agents'])"
run uninstall claude; expect_rc 0; expect_in_err "settings.local.json"
[ -f "$project/.claude/settings.local.json" ] || fail "the project's went too"
run uninstall $agents --project; expect_rc 0
cd "$project" && rmdir below; same "$was" "$(picture "$project")" "a project"
run install claude --project; expect_rc 0; cd .. && run uninstall claude --project; expect_rc 0; expect_in_err "still there"
[ -f "$project/.claude/settings.local.json" ] || fail "uninstall above disconnected the project"
cd "$project" && run uninstall claude --project; expect_rc 0; same "$was" "$(picture "$project")" "a project below"
ln -s "$HOME" .gemini; run install gemini --project; expect_rc 1; expect_in_err "is not in the project"
[ -z "$(ls -A "$HOME")" ] || fail "written through a link: $(ls -A "$HOME")"
rm .gemini; cd "$HOME" || exit 1
run install claude --project; expect_rc 1; expect_in_err "is not a project"
cd "$scratch/work" || exit 1

# --- what the list and doctor say ---
for agent in claude codex; do printf '#!/bin/sh\necho "%s-cli 1.2.3 (x)"\n' $agent >"$scratch/bin/$agent"; done
printf '#!/bin/sh\nexec sleep 60\n' >"$scratch/bin/gemini"; chmod +x "$scratch/bin"/*
run install claude codex; expect_rc 0; [[ $err == *"not found in PATH"* ]] && fail "$err"
mkdir -p "$BELAY_HOME/cache"; echo "claude 1700000000000" >"$BELAY_HOME/cache/agents.seen"
start=$SECONDS; run install --list; expect_rc 0; [ $((SECONDS - start)) -lt 20 ] || fail "waited for a program that hangs"
expect_in_out "1.2.3"; expect_in_out "2023-11-14"; expect_in_out "all, not trusted"
run install --list --json
expect_py "[(a['version'], a['last_event']) for a in d['agents'] if a['agent'] == 'claude'] == [('1.2.3', '2023-11-14T22:13:20.000Z')]"
expect_py "[(a['found'], a['version']) for a in d['agents'] if a['agent'] == 'gemini'] == [('$scratch/bin/gemini', None)]"
run doctor; expect_rc 0; expect_in_out "claude: connected; last event 2023-11-14"; expect_in_out "codex: connected, not trusted"
expect_in_out "gemini: found, not connected: belay install gemini"; expect_in_out "their hooks do nothing here"
"$BELAY_BIN" on >/dev/null; run doctor; expect_rc 0; [[ $out == *"do nothing here"* ]] && fail "$out"
run doctor --json; expect_py "[a['hooks'] for a in d['agents']][:3] == ['all', 'all', 'none']"
sed -i 's|"[^"]*/belay hook claude"|"/gone/belay hook claude"|' "$HOME/.claude/settings.json"
run doctor; expect_rc 1; expect_in_out "its hooks run /gone/belay, which is not there"
run install claude; expect_rc 0; run doctor; expect_rc 0
echo '{' >"$HOME/.claude/settings.json"; run doctor; expect_rc 0; expect_in_out "settings.json:2: not valid JSON"
run uninstall claude; expect_rc 1; expect_in_err "not valid JSON"

# Records of a newer version are not guessed at.
printf BELAYAG9xxxxxxxxxxx >"$BELAY_HOME/agents/x.was"
run install crush; expect_rc 1; expect_in_err "newer version"
rm "$BELAY_HOME/agents/x.was"

# Two at once: both count, nobody is in the way.
rm -r "$HOME/.claude"
jobs=""
for i in 1 2 3 4; do "$BELAY_BIN" install $agents -q 2>/dev/null & jobs="$jobs $!"; done
for job in $jobs; do wait "$job" || fail "one of several at once: exit $?"; done
run install --list --json; expect_py "all(a['hooks'] == 'all' for a in d['agents'])"
[ -z "$(find "$HOME" "$BELAY_HOME/agents" -name '*.tmp')" ] || fail "left: $(find "$HOME" "$BELAY_HOME/agents" -name '*.tmp')"
finish
