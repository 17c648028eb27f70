# What waits for a busy directory, or for the start of its session to be recorded, is
# recorded in the order in which it was told: the prompt, its calls, the end of the turn.
. "$(dirname "$0")/lib.bash"
. "$(dirname "$0")/busy_root.bash"

cat >"$scratch/told" <<'EOF'
tell() { printf '%s' "{\"session_id\":\"s\",\"cwd\":\"$PWD\",\"hook_event_name\":\"$1\",\"prompt_id\":\"p$number\",$2}" | "$BELAY_BIN" hook claude; }
tell UserPromptSubmit "\"prompt\":\"wish $number\""
tell PreToolUse "\"tool_name\":\"Bash\",\"tool_use_id\":\"t$number\",\"tool_input\":{\"command\":\"make\"}" &
sleep 0.02  # it asks for the lock more often than who waits for long
EOF
for number in 1 2 3 4 5 6 7 8; do
  export number
  python3 "$scratch/hold.py" "$BELAY_HOME" "$id" bash "$scratch/told" >"$scratch/out" 2>"$scratch/err" || fail "$(cat "$scratch/err")"
  behind_is_done
  run list --tools --json; expect_rc 0
  expect_py "[c['description'] for c in sorted(d['checkpoints'], key=lambda c: c['number'])][:2] == ['before Bash: make', 'wish $number']"
done

cat >"$scratch/told" <<'EOF'
tell() { printf '%s' "{\"session_id\":\"n$number\",\"cwd\":\"$PWD\",\"hook_event_name\":\"$1\",$2}" | "$BELAY_BIN" hook claude; }
call() { tell "$1" "\"prompt_id\":\"p$2\",\"tool_name\":\"Bash\",\"tool_use_id\":\"t$2\",\"tool_input\":{\"command\":\"make $2\"}"; }
tell SessionStart '"source":"startup"'
for turn in 1 2 3 4 5; do
  tell UserPromptSubmit "\"prompt_id\":\"p$turn\",\"prompt\":\"wish $turn\""
  call PreToolUse $turn; echo "$number.$turn" >file; call PostToolUse $turn
done
tell Stop '"prompt_id":"p5"'
EOF
for number in 1 2 3; do
  export number
  python3 "$scratch/hold.py" "$BELAY_HOME" "$id" bash "$scratch/told" >"$scratch/out" 2>"$scratch/err" || fail "$(cat "$scratch/err")"
  behind_is_done
  run list --tools --json; expect_rc 0
  expect_py "[(c['description'], c['turn']) for c in sorted(d['checkpoints'], key=lambda c: -c['number']) if c['session'] == 'n$number'] == [('session started', None)] + [one for n in range(1, 6) for one in [(f'wish {n}', n), (f'before Bash: make {n}', n)]] + [('after Bash: make 5', 5)]"
done

# --- another directory that is busy keeps nobody from being at work here
printf 'deadline_ms = 3000\n' >"$BELAY_CONFIG"
mkdir ../other && echo 1 >../other/a; run on ../other; expect_rc 0
run roots --json
other=$(python3 -c 'import json,sys; print([r["id"] for r in json.load(open(sys.argv[1]))["roots"] if r["root"].endswith("/other")][0])' "$scratch/out")
cat >"$scratch/lib" <<'EOF'
tell() { printf '%s' "{\"session_id\":\"two\",\"cwd\":\"$at\",\"hook_event_name\":\"$1\",\"prompt_id\":\"p$2\",$3}" | "$BELAY_BIN" hook claude; }
call() { tell "$1" "$2" "\"tool_name\":\"Bash\",\"tool_use_id\":\"$3\",\"tool_input\":{\"command\":\"$3\"}"; }
EOF
cat >"$scratch/told" <<'EOF'
. "$1/lib"; at=$PWD
tell UserPromptSubmit 2 '"prompt":"wish 2"'
call PreToolUse 2 here; rm file; call PostToolUse 2 here
EOF
. "$scratch/lib"
at=$PWD; tell SessionStart 0 '"source":"startup"'; tell UserPromptSubmit 1 '"prompt":"wish 1"'
at=${PWD%/*}/other; call PreToolUse 1 there; call PostToolUse 1 there
at=$PWD; tell Stop 1 '"x":0'; behind_is_done
python3 "$scratch/hold.py" "$BELAY_HOME" "$other" bash "$scratch/told" "$scratch" >"$scratch/out" 2>&1 || fail "$(cat "$scratch/out")"
run list --tools --json; expect_py "[(c['description'], c['partial'], c['changed']['deleted']) for c in d['checkpoints'][:3]] == [('after Bash: here', False, 1), ('before Bash: here', False, 0), ('wish 2', False, 0)]"
# And a call there comes behind the prompt.
behind_is_done
at=${PWD%/*}/other; call PreToolUse 2 again; behind_is_done
run list --tools --json --root ../other; expect_py "(d['checkpoints'][0]['description'], d['checkpoints'][0]['turn']) == ('before Bash: again', 2)"
finish
