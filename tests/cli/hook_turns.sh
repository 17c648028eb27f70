# turn:N is what was there when the prompt was submitted, or it is refused: whatever retention, `delete` and
# the settings leave of the turn. A session is known from its first event on.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project; mkdir -p "$root" "$scratch/src/other"; cd "$root" || exit 1
echo 0 >a
session=s
event() {  # event NAME [MORE]: of a Claude session
  printf '%s' "{\"session_id\":\"$session\",\"cwd\":\"$root\",\"transcript_path\":\"/none\",\"hook_event_name\":\"$1\"${2:+,$2}}" |
    "$BELAY_BIN" hook claude >"$scratch/out" 2>"$scratch/err" || fail "hook: exit $?"
}
# turn NUMBER FILES: a prompt, a call for each of the files, an end.
turn() {
  local number=$1 id; shift
  event UserPromptSubmit "\"prompt_id\":\"p$number\",\"prompt\":\"wish $number\""
  for id; do
    event PreToolUse "\"prompt_id\":\"p$number\",\"tool_name\":\"Write\",\"tool_use_id\":\"t$id\",\"tool_input\":{\"file_path\":\"$root/$id\"}"
    echo "$number" >"$id"
    event PostToolUse "\"prompt_id\":\"p$number\",\"tool_name\":\"Write\",\"tool_use_id\":\"t$id\",\"tool_input\":{\"file_path\":\"$root/$id\"},\"tool_response\":{}"
  done
  event Stop "\"prompt_id\":\"p$number\""
}
anew() { behind_is_done; rm -rf "$BELAY_HOME" "$root"; mkdir -p "$root"; cd "$root" || exit 1; echo 0 >a; printf '%b' "${1-}" >"$BELAY_CONFIG"; run on; expect_rc 0; }

# --- retention lets a turn's calls go before its beginning
anew 'retention.auto = 6\n'
event SessionStart '"source":"startup"'; behind_is_done
turn 1 b1; turn 2 c1 c2 c3 c4 c5 c6
run prune; expect_rc 0
run list --tools --json --all; expect_py "len([c for c in d['checkpoints'] if c['turn'] == 2]) < 9"
run show turn:2 --json; expect_rc 0; expect_py "d['description'] == 'wish 2' and d['prompt'] == 'wish 2'"
run rollback turn:2 --yes; expect_rc 0
[ "$(echo *)" = "a b1" ] || fail "left of the turn: $(echo *)"
run undo; expect_rc 0
# What began before the rest of it went is not what is left.
run show turn:1; expect_rc 1; expect_in_err "turn 1"

# --- what is left of a turn is not offered as what was there before it
anew
event SessionStart '"source":"startup"'; behind_is_done
turn 1 b1; turn 2 c1 c2
run list; expect_in_out "turn 2: wish 2"
run delete turn:2 --yes; expect_rc 0
run rollback turn:2 --yes; expect_rc 1; expect_in_err "what was there when turn 2 began is no longer kept"; expect_in_err "belay list --tools"
[ -e c1 ] || fail "changed"
run show turn:2 --json; expect_rc 1; expect_py "d['error']['code'] == 'not_found'"
run list; expect_in_out "before Write c1, within turn 2"; [[ $out == *"turn 2: "* ]] && fail "offered: $out"
run delete tool:tc1 --yes; expect_rc 0
run rollback turn:2; expect_rc 1; expect_in_err "no longer kept"
run list; expect_in_out "after Write c1, within turn 2"
run show turn:1 --json; expect_rc 0; expect_py "d['description'] == 'wish 1'"
event UserPromptSubmit '"prompt_id":"x","prompt":"/rollback turn:2 yes"'; out=$(cat "$scratch/out"); expect_in_out "no longer kept"; [ -e c1 ] || fail "changed"

# --- with granularity = "session" there are no states of turns
anew 'granularity = "session"\n'
event SessionStart '"source":"startup"'; behind_is_done
turn 1 b1; turn 2 c1; run checkpoint -m mid; expect_rc 0; turn 3 d1
event SessionEnd '"reason":"other"'; behind_is_done
for number in 1 2 3; do
  run rollback "turn:$number" --yes; expect_rc 1; expect_in_err 'granularity = "session"'
done
run show session:s --json; expect_rc 0; expect_py "d['description'] == 'session started'"

# --- what a rollback and its undo moved is not the turn's doing
anew
event SessionStart '"source":"startup"'; behind_is_done
turn 1 b1; event UserPromptSubmit '"prompt_id":"p2","prompt":"wish 2"'
run rollback turn:1 --yes; expect_rc 0; run undo; expect_rc 0
run list --all; expect_in_out "wish 2  (0 files changed)"
event PreToolUse "\"prompt_id\":\"p2\",\"tool_name\":\"Write\",\"tool_use_id\":\"x1\",\"tool_input\":{\"file_path\":\"$root/x\"}"
echo x >x
event PostToolUse "\"prompt_id\":\"p2\",\"tool_name\":\"Write\",\"tool_use_id\":\"x1\",\"tool_input\":{\"file_path\":\"$root/x\"},\"tool_response\":{}"
run list --all; expect_in_out "turn 2: wish 2 (1 file, +2)"

# --- the session that has its directory protected is known from its start on, wherever the next event takes place
generic() { printf '%s' "{\"host\":\"acme\",\"session\":\"g\",$1}" | (cd "$scratch/src/other" && "$BELAY_BIN" hook generic) || fail "hook: exit $?"; }
for round in 1 2 3; do
  behind_is_done; rm -rf "$BELAY_HOME"; echo 'auto = true' >"$BELAY_CONFIG"; rm -f g
  generic "\"event\":\"session.begin\",\"cwd\":\"$root\""
  generic '"event":"turn.begin","turn":"t1","prompt":"wish"'
  generic '"event":"tool.begin","turn":"t1","tool":{"name":"sh","id":"c1"}'
  echo g >g
  generic '"event":"tool.end","turn":"t1","tool":{"name":"sh","id":"c1"}'
  generic '"event":"turn.end","turn":"t1"'
  generic '"event":"session.end"'
  behind_is_done
  run list --tools --json; expect_rc 0
  expect_py "[c['description'] for c in d['checkpoints'] if c['turn']][::-1] == ['wish', 'before sh', 'after sh']"
  run log -- g; expect_in_out "acme"
  run sessions --json; expect_py "d['sessions'][0]['state'] == 'ended'"
done
# Codex names the shell's directory: another is not protected for it.
behind_is_done; rm -rf "$BELAY_HOME"
codex() { printf '%s' "{\"session_id\":\"c\",\"cwd\":\"$1\",\"transcript_path\":\"/none\",\"hook_event_name\":\"$2\"${3:+,$3}}" | "$BELAY_BIN" hook codex || fail "hook: exit $?"; }
codex "$root" SessionStart '"source":"startup"'
codex "$scratch/src/other" UserPromptSubmit '"turn_id":"T1","prompt":"wish"'
codex "$scratch/src/other" PreToolUse '"turn_id":"T1","tool_name":"Bash","tool_use_id":"b1","tool_input":{"command":"x"}'
echo x >x1
codex "$scratch/src/other" PostToolUse '"turn_id":"T1","tool_name":"Bash","tool_use_id":"b1","tool_input":{"command":"x"},"tool_response":""'
behind_is_done
run roots --json; expect_py "[r['root'] for r in d['roots']] == ['$root']"
run log -- x1; expect_in_out "codex"
run list --tools --json; expect_py "[c['description'] for c in d['checkpoints']][::-1] == ['session started', 'wish', 'before Bash: x', 'after Bash: x']"

# --- two hooks of one start are one start, also where it has the directory protected
for round in 1 2 3 4 5 6; do
  behind_is_done; rm -rf "$BELAY_HOME"
  event SessionStart '"source":"startup"' & event SessionStart '"source":"startup"' & wait $! ; wait
  behind_is_done
  run list --json; expect_py "[c['description'] for c in d['checkpoints']] == ['session started']"
done

# --- a session that works in two protected directories counts its turns once, also when two processes of it are
# told of at once. (Who comes second may know already where the first was, and is counted there: again, then.)
anew
"$BELAY_BIN" on "$scratch/src/other" >/dev/null || fail "on"
event SessionStart '"source":"startup"'; behind_is_done
in_both() { [[ $("$BELAY_BIN" events --all | grep '"turn.started"' | grep -o '"root":"[^"]*"' | sort -u | wc -l) == 2 ]]; }
rounds=0
until [[ $rounds -ge 6 ]] && { in_both || [[ $rounds -ge 60 ]]; }; do
  rounds=$((rounds + 1))
  rm -f "$BELAY_HOME/cache/sessions"
  event UserPromptSubmit "\"prompt_id\":\"h$rounds\",\"prompt\":\"here $rounds\"" &
  (root=$scratch/src/other; event UserPromptSubmit "\"prompt_id\":\"t$rounds\",\"prompt\":\"there $rounds\"") & wait $! ; wait
  behind_is_done
done
in_both || fail "never in both: $("$BELAY_BIN" events --all)"
"$BELAY_BIN" events --all | python3 -c "
import json, sys
turns = [json.loads(line) for line in sys.stdin]
turns = [e['turn'] for e in turns if e['type'] == 'turn.started']
assert sorted(turns) == list(range(1, 2 * $rounds + 1)), turns" || fail "turns: $("$BELAY_BIN" events --all)"
finish
