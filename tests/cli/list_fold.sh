# What `belay list` puts into the line of a turn: the work of its own session and of the
# subagents that it started, and nobody else's.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
root=$(pwd -P)
echo 0 >a; run on; expect_rc 0
tell() { "$BELAY_BIN" hook "$1" ${3:+"$3"} <<<"$2" >"$scratch/out" 2>&1; [ "$?$(cat "$scratch/out")" = 0 ] || fail "not silent: $(cat "$scratch/out")"; }

# --- opencode: a subagent is a session of its own, started within a turn
oc() { tell opencode "{\"sessionID\":\"$2\",\"directory\":\"$root\"${3:+,$3}}" "$1"; }
child='"parentID":"ses_1"'
said() { printf '"message":{"id":"msg_%s"},"parts":[{"type":"text","text":"%s"}]' "$1" "$2"; }
write() {  # SESSION CALL FILE MORE
  oc tool.execute.before "$1" "\"tool\":\"write\",\"callID\":\"$2\",\"args\":{\"filePath\":\"$root/$3\"}${4:+,$4}"
  echo "$2" >"$3"
  oc tool.execute.after "$1" "\"tool\":\"write\",\"callID\":\"$2\",\"args\":{\"filePath\":\"$root/$3\"}${4:+,$4}"
}
# A start is recorded behind its reply, and leaves out what is as new as that.
is_older() { until (($(date +%s%N) - $(stat -c %.9Z "$1" | tr -d .) > 30000000)); do :; done; }
is_older a
oc session.created ses_1 '"source":"startup"'
oc chat.message ses_1 "$(said 1 'first wish')"
write ses_1 c1 b
is_older b
oc session.created ses_2 "\"source\":\"startup\",$child"
oc chat.message ses_2 "$(said 2 'what the subagent is told'),$child"
write ses_2 c2 c "$child"; write ses_2 c3 d "$child"
oc session.idle ses_2 "$child"
write ses_1 c4 e
oc session.idle ses_1
oc chat.message ses_1 "$(said 3 'second wish')"
write ses_1 c5 f; oc session.idle ses_1
behind_is_done
run list; expect_rc 0
[[ $out == *"what the subagent is told"* ]] && fail "the subagent's turn is a line: $out"
expect_in_out "turn 1: first wish"; expect_in_out "turn 2: second wish"
grep -q "turn 1: first wish.*(4 files, " <<<"$out" || fail "not all that the turn changed: $out"
grep -q "turn 2: second wish.*(1 file, " <<<"$out" || fail "not all that the second turn changed: $out"
run list --json; expect_py "[c['session'] for c in d['checkpoints'] if c['kind'] == 'auto' and c['turn']] == ['ses_1', 'ses_1']"
run list --json --tools; expect_py "any(c['session'] == 'ses_2' for c in d['checkpoints'])"

# --- two agents at work at once: each turn has its own files, wherever they were found
export BELAY_HOME=$scratch/two
run on; expect_rc 0
cl() { tell claude "{\"session_id\":\"$1\",\"cwd\":\"$root\",\"hook_event_name\":\"$2\",\"prompt_id\":\"p-$1\"${3:+,$3}}"; }
call() { cl "$1" "$2" "\"tool_name\":\"Write\",\"tool_use_id\":\"$3\",\"tool_input\":{\"file_path\":\"$root/$4\",\"content\":\"x\"}"; }
cl one UserPromptSubmit '"prompt":"wish of one"'
cl two UserPromptSubmit '"prompt":"wish of two"'
for i in 1 2 3; do
  call one PreToolUse "o$i" "one$i"; call two PreToolUse "t$i" "two$i"
  echo "$i" >"one$i"; echo "$i" >"two$i"
  call two PostToolUse "t$i" "two$i"; call one PostToolUse "o$i" "one$i"
done
call two PreToolUse t4 two4; echo 4 >two4; call two PostToolUse t4 two4
cl one Stop; cl two Stop
behind_is_done
run list
grep -q "wish of one.*(3 files, +[0-9]*)" <<<"$out" || fail "of one: $out"
grep -q "wish of two.*(4 files, +[0-9]*)" <<<"$out" || fail "of two: $out"
run list --json; all=$out
expect_py "sum(c['folded'] for c in d['checkpoints'] if c['session'] == 'one') == len([c for c in json.loads('''$("$BELAY_BIN" list --tools --json)''')['checkpoints'] if c['session'] == 'one'])"
run sessions --json
expect_py "all(s['turns'] == 1 for s in d['sessions']) and {s['id']: s['checkpoints'] for s in d['sessions']} == {i: sum(c['folded'] for c in json.loads(r'''$all''')['checkpoints'] if c['session'] == i) for i in ('one', 'two')}"
finish
