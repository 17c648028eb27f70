# `belay status` says which checkpoints were not complete when their agent went on.
. "$(dirname "$0")/lib.bash"
. "$(dirname "$0")/busy_root.bash"

cat >"$scratch/lib" <<'EOF'
tell() { printf '%s' "{\"session_id\":\"$session\",\"cwd\":\"$PWD\",\"hook_event_name\":\"$1\",$2}" | "$BELAY_BIN" hook claude; }
call() { tell "$1" "\"tool_name\":\"Bash\",\"tool_use_id\":\"$2\",\"tool_input\":{\"command\":\"$2\"}"; }
EOF
. "$scratch/lib"
export session=one
# The directory is busy until the agent has gone on, and written.
cat >"$scratch/late" <<'EOF'
. "$1/lib"; call PreToolUse "$2"; echo "$2" >file
EOF
late() {
  python3 "$scratch/hold.py" "$BELAY_HOME" "$id" bash "$scratch/late" "$scratch" "$1" || fail "it could not be held"
  behind_is_done
}

tell SessionStart '"source":"startup"'; behind_is_done
run status; expect_rc 0; expect_silent_err
[[ $out == *partial* ]] && fail "nothing is partial: $out"
late first
run list --tools --json; expect_py "d['checkpoints'][0]['partial']"
run status; expect_rc 0; expect_silent_err
expect_in_out "the last checkpoint is partial"; expect_in_out "deadline_ms"
run status --json; expect_rc 0
expect_py "[f for f in d['failures'] if 'before Bash: first' in f['what'] and '(now 50)' in f['what']]"
call PostToolUse first; behind_is_done
run status; expect_rc 0; expect_in_out "a checkpoint of the last session is partial"
late second; call PostToolUse second; behind_is_done
run status --json; expect_rc 0
expect_py "[f for f in d['failures'] if f['what'].startswith('2 checkpoints of the last session are partial')]"
# Not for ever: another session is at work, and has time.
: >"$BELAY_CONFIG"
export session=two
tell SessionStart '"source":"startup"'; behind_is_done
call PreToolUse third
run status; expect_rc 0
[[ $out == *partial* ]] && fail "another session is at work: $out"
finish
