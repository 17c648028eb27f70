# A session that works in two protected directories: what is told of it and is no call (a prompt, the end of a turn)
# matters in both, so that a call that was refused stays at work in neither.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
a=$scratch/src/a b=$scratch/src/b c=$scratch/src/c; mkdir -p "$a" "$b" "$c"
session=s turn=T1
codex() { printf '%s' "{\"session_id\":\"$session\",\"cwd\":\"$1\",\"transcript_path\":\"/none\",\"hook_event_name\":\"$2\",\"turn_id\":\"$turn\"${3:+,$3}}" | "$BELAY_BIN" hook codex >"$scratch/said" 2>&1 || fail "hook: exit $?"; }
bash_call() { codex "$b" "$1" "\"tool_name\":\"Bash\",\"tool_use_id\":\"$2\",\"tool_input\":{\"command\":\"x\"}"; }
prompt() { turn=$1; codex "$a" UserPromptSubmit "\"prompt\":\"wish ${1#T}\""; }
stop() { codex "$a" Stop; }
# anew DIRECTORY: the session begins there.
anew() {
  behind_is_done; cd "$scratch" || exit 1; rm -rf "$BELAY_HOME" "$b"; mkdir -p "$b"; echo old >"$b/by-hand"; turn=T1
  for at in "$a" "$b" "$c"; do "$BELAY_BIN" on "$at" >/dev/null || fail "on"; done
  codex "$1" SessionStart '"source":"startup"'; behind_is_done
}
call() { bash_call PreToolUse "$1"; echo "$1" >"$b/$1"; bash_call PostToolUse "$1"; }

# --- a person's edit after the turn is not the refused call's, wherever the session was started
for start in "$a" "$scratch/src"; do
  anew "$start"
  prompt T1; call c1; bash_call PreToolUse c2; stop; behind_is_done
  echo person >"$b/by-hand"
  prompt T2; call c3; stop; behind_is_done
  cd "$b" || exit 1
  run list --tools --json; target=$(printf %s "$out" | python3 -c 'import json, sys; print([c["id"] for c in json.load(sys.stdin)["checkpoints"] if c["description"].startswith("after Bash")][-1])')
  run rollback "$target" --yes; expect_rc 1; expect_in_err "by-hand"
  [ "$(cat "$b/by-hand")" = person ] || fail "the edit is lost"
  run rollback "$target" --yes --keep-outside; expect_rc 0
  [ "$(cat "$b/by-hand")" = person ] || fail "the edit is lost"
  [ ! -e "$b/c3" ] || fail "c3 is there"
done

# --- turns have one number in both, are recorded once, and prompts make one checkpoint
anew "$a"
cd "$b" || exit 1
prompt T1; call c1; stop; prompt T2; stop; prompt T3; call c3; behind_is_done
run list --tools --json; expect_py "[(c['description'], c['turn']) for c in d['checkpoints']][::-1] == [('before Bash: x', 1), ('after Bash: x', 1), ('before Bash: x', 3), ('after Bash: x', 3)]"
"$BELAY_BIN" events --all | python3 -c "
import json, sys
turns = [json.loads(line) for line in sys.stdin]
turns = [(e['turn'], e['root']) for e in turns if e['type'] == 'turn.started']
assert turns == [(1, '$a'), (2, '$a'), (3, '$a')], turns" || fail "turns: $("$BELAY_BIN" events --all)"
[ -e "$BELAY_HOME/cache/$("$BELAY_BIN" roots --json | python3 -c "import json, sys; print([r['id'] for r in json.load(sys.stdin)['roots'] if r['root'] == '$c'][0])").live" ] && fail "told where it made no call"
finish
