# /rollback typed at an agent: whose turn is meant, what numbers mean, what may be named.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
mkdir -p "$root"; cd "$root" || exit 1
tell() {  # AGENT JSON [EVENT]
  printf '%s' "$2" | "$BELAY_BIN" hook "$1" ${3+"$3"} >"$scratch/out" 2>"$scratch/err"
  rc=$?; out=$(cat "$scratch/out"); err=$(cat "$scratch/err")
  [ "$rc" = 0 ] || fail "exit $rc: $out $err"
}
claude() { tell claude "{\"session_id\":\"$1\",\"cwd\":\"$root\",\"hook_event_name\":\"$2\"${3:+,$3}}"; }
prompt() { claude "$1" UserPromptSubmit "\"prompt_id\":\"$2\",\"prompt\":\"$3\""; }
# call SESSION ID CONTENT: a shell that writes it.
call() {
  claude "$1" PreToolUse "\"tool_name\":\"Bash\",\"tool_use_id\":\"$2\",\"tool_input\":{\"command\":\"$2\"}"
  echo "$3" >file
  claude "$1" PostToolUse "\"tool_name\":\"Bash\",\"tool_use_id\":\"$2\",\"tool_input\":{\"command\":\"$2\"},\"tool_response\":{}"
}
ask() { prompt "$1" px "$2"; expect_json; }
is() { [ "$(cat file)" = "$1" ] || fail "file is '$(cat file)', not '$1'"; }

echo 0 >file
run on; expect_rc 0
prompt s1 p1 "first wish"; call s1 t1 one; claude s1 Stop
prompt s1 p2 "second wish"; call s1 t2 two; claude s1 Stop
prompt s9 r1 "another session"; claude s9 Stop

# Of who asks, not of who was heard of last.
ask s1 '/rollback turn:1'; expect_py "'first wish' in d['reason'] and 'Do it with: /rollback turn:1 yes' in d['reason']"
ask s9 '/rollback turn:1'; expect_py "'another session' in d['reason']"
run __slash claude turn:2; expect_rc 0; expect_in_out "no checkpoint of turn 2"

# Numbers count from the newest: what somebody says yes to is what was shown.
ask s1 /rollback; expect_py "'second wish' in d['reason']"
run list --json --all
number=$(cd / && python3 -c "import json,sys
c=json.load(open(sys.argv[1]))['checkpoints']; print(*[(x['number'], x['id'][:7]) for x in c if x['description'] == 'second wish'][0])" "$scratch/out")
id=${number#* } number=${number% *}
ask s1 "/rollback $number"; expect_py "'Do it with: /rollback $id yes' in d['reason'] and 'second wish' in d['reason']"
is two
claude s9 PreToolUse '"tool_name":"Bash","tool_use_id":"u1","tool_input":{"command":"make"}'
ask s1 "/rollback $number yes"; expect_py "'nothing was done' in d['reason'] and 'Do it with: /rollback ' in d['reason']"
is two
ask s1 "/rollback $((number + 1)) yes"; expect_py "'rolled back' in d['reason'] and 'second wish' in d['reason']"; is one
ask s1 '/rollback undo'; is two
ask s1 "/rollback $id yes"; is one
ask s1 '/rollback undo'; is two

# Neither an error nor a plan by name shows a number, nor does an undo.
call s1 t3 three; call s1 t4 four
for words in nonsense turn:1 undo; do
  ask s1 /rollback
  claude s9 PreToolUse "\"tool_name\":\"Bash\",\"tool_use_id\":\"u-$words\",\"tool_input\":{\"command\":\"make\"}"
  ask s1 "/rollback $words"
  ask s1 '/rollback 2 yes'; expect_py "'nothing was done' in d['reason']"
done
is four; echo two >file

# A reference may have blanks; a name of several words, a moment.
run checkpoint -m 'two words'; echo three >file
ask s1 '/rollback two words'; expect_py "'Do it with: /rollback two words yes' in d['reason']"
ask s1 "/rollback 'two words' yes exact"; expect_py "'rolled back' in d['reason']"; is two
ask s1 '/rollback undo'; is three
ask s1 '/rollback @{0 seconds ago}'; expect_py "'Do it with: /rollback ' in d['reason'] and '@' not in d['reason'].split('Do it with')[1]"
ask s1 "/rollback '--yes'"; expect_py "'lists' in d['reason']"; is three
ask s1 '/rollback no such thing'; expect_py "'lists' in d['reason']"

# Where a command file is expanded for the model, that is no turn either.
run __slash opencode; expect_rc 0
text=$(python3 -c 'import json,sys; print(json.dumps(sys.stdin.read() + "\nShow the user the text above exactly as it is, and do nothing else.\n"))' <"$scratch/out")
tell opencode "{\"sessionID\":\"o1\",\"directory\":\"$root\",\"message\":{\"id\":\"m1\"},\"parts\":[{\"type\":\"text\",\"text\":$text}]}" chat.message
tell gemini "{\"session_id\":\"g1\",\"cwd\":\"$root\",\"hook_event_name\":\"BeforeAgent\",\"prompt\":$text}"
run sessions --json; expect_py "{s['id']: s['turns'] for s in d['sessions']} == {'s1': 2, 's9': 1}"

# What was taken back is done again as it was taken back; both say what comes next.
field() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))" "$scratch/out" "$1"; }
echo three >file; run checkpoint -m here --json; id=$(field "d['id'][:7]")
echo four >file
ask s1 "/rollback $id yes exact"; expect_py "'undo with /rollback undo' in d['reason']"; is three
ask s1 '/rollback undo'; expect_py "'took back' in d['reason'] and 'with /rollback redo' in d['reason']"; is four
ask s1 '/rollback redo'; expect_py "'did again' in d['reason'] and 'with /rollback undo' in d['reason'] and 'with \`belay' not in d['reason']"; is three
ask s1 '/rollback undo'; is four
echo five >file
ask s1 '/rollback redo'; expect_py "'nothing was changed' in d['reason'] and '/rollback redo exact' in d['reason']"; is five
ask s1 '/rollback redo exact'; expect_py "'did again' in d['reason']"; is three
echo six >file
ask s1 '/rollback undo'; expect_py "'/rollback undo exact' in d['reason']"; is six
ask s1 '/rollback undo exact'; is four

# Where nothing is protected it is not ours: the agent gets what was typed.
mkdir -p "$scratch/elsewhere"
tell claude "{\"session_id\":\"e1\",\"cwd\":\"$scratch/elsewhere\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"e1\",\"prompt\":\"/rollback 1 yes\"}"
[ -z "$out$err" ] || fail "answered elsewhere: $out $err"
(cd "$scratch/elsewhere" && tell reasonix "{\"event\":\"UserPromptSubmit\",\"sessionId\":\"e2\",\"cwd\":\"$scratch/elsewhere\",\"prompt\":\"/rollback\",\"turn\":1}")
BELAY_HOME=$scratch/none tell claude "{\"session_id\":\"s1\",\"cwd\":\"$root\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"e3\",\"prompt\":\"/rollback\"}"
[ -z "$out$err" ] || fail "answered without a store: $out $err"
# A session of the directory stays one, wherever its shell stands.
tell claude "{\"session_id\":\"s1\",\"cwd\":\"$scratch/elsewhere\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"e4\",\"prompt\":\"/rollback\"}"
expect_json; expect_py "'second wish' in d['reason']"

# Somebody's own command of that name stays theirs; ours is ours, wherever it is.
theirs() {  # FILE AGENT JSON [EVENT]
  mkdir -p "${1%/*}"; echo "Roll the deployment back" >"$1"
  tell "$2" "$3" ${4+"$4"}; [ -z "$out$err" ] || fail "$1: answered for another: $out $err"
  rm "$1"
}
claude_asks="{\"session_id\":\"s1\",\"cwd\":\"$root\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"e5\",\"prompt\":\"/rollback\"}"
theirs "$HOME/.claude/commands/rollback.md" claude "$claude_asks"; claude s1 Stop
theirs "$root/.claude/skills/rollback/SKILL.md" claude "${claude_asks/e5/e6}"; claude s1 Stop
theirs "$HOME/.codex/prompts/rollback.md" codex "{\"session_id\":\"c1\",\"cwd\":\"$root\",\"hook_event_name\":\"UserPromptSubmit\",\"turn_id\":\"c\",\"prompt\":\"/rollback\"}"
theirs "$root/.github/skills/rollback/SKILL.md" copilot "{\"sessionId\":\"c2\",\"cwd\":\"$root\",\"timestamp\":1,\"prompt\":\"/rollback\"}" userPromptSubmitted
theirs "$HOME/.reasonix/commands/rollback.md" reasonix "{\"event\":\"UserPromptSubmit\",\"sessionId\":\"c3\",\"cwd\":\"$root\",\"prompt\":\"/rollback\",\"turn\":1}"
"$BELAY_BIN" install claude -q 2>/dev/null || fail "install"
grep -q "__slash claude" "$HOME/.claude/commands/rollback.md" || fail "no command of ours"
ask s1 /rollback; expect_py "'second wish' in d['reason']"
finish
