# Commands of the user's around rollbacks and at the end of a session.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
mkdir -p "$scratch/project" "$scratch/bin"; cd "$scratch/project" || exit 1
hook() { printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/$1"; chmod +x "$scratch/bin/$1"; }
settings() { printf '%s\n' "$@" >"$BELAY_CONFIG"; }
see() { cp "$scratch/seen" "$scratch/out"; }
hook keep "cat >$scratch/seen; pwd >$scratch/where"
hook refuse 'echo "the database is busy" >&2; exit 3'
hook again "'$BELAY_BIN' rollback one --yes >$scratch/again 2>&1; echo \$? >>$scratch/again"

echo 1 >f
run on; run checkpoint -m one; expect_rc 0
one=$("$BELAY_BIN" show one --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
echo 2 >f; echo new >g

# --- before: with the plan, and it may stop it
settings "[hooks]" "before_rollback = [\"$scratch/bin/keep\"]"
run rollback one --yes --json; expect_rc 0
expect_py "d['operation'] and [(h['hook'], h['exit'], h['trouble']) for h in d['hooks']] == [('before_rollback', 0, None)]"
see; expect_py "d['hook'] == 'before_rollback' and d['command'] == 'rollback' and d['root'] == '$PWD'"
expect_py "d['plan']['target'] == '$one' and d['plan']['dry_run'] and sorted(s['path'] for s in d['plan']['steps']) == ['f', 'g']"
[ "$(cat "$scratch/where")" = "$PWD" ] || fail "run in $(cat "$scratch/where")"
rm "$scratch/seen"
run rollback one --yes; expect_rc 0; [ ! -e "$scratch/seen" ] || fail "asked though there was nothing to do"
run undo; expect_rc 0; see; expect_py "d['command'] == 'undo' and d['plan'] is None"

settings "[hooks]" "before_rollback = [[\"$scratch/bin/keep\"], [\"$scratch/bin/refuse\"], [\"$scratch/bin/keep\"]]"
"$BELAY_BIN" list --all --json >"$scratch/before"; find . -type f -exec sha256sum {} + | sort >"$scratch/tree"
run rollback one --yes; expect_rc 1
expect_in_err "hooks.before_rollback stopped it"; expect_in_err "the database is busy"; expect_in_err "exited with 3"
run undo; expect_rc 1
run rollback one --yes --json; expect_rc 1; expect_py "d['error']['code'] == 'refused' and 'busy' in d['error']['message']"
"$BELAY_BIN" list --all --json | cmp -s - "$scratch/before" || fail "a checkpoint was made"
find . -type f -exec sha256sum {} + | sort | cmp -s - "$scratch/tree" || fail "files changed"
"$BELAY_BIN" log --json >"$scratch/out"; expect_py "len([o for o in d['operations'] if o['name'] == 'rollback']) == 1"
run rollback one --dry-run; expect_rc 0

# One that makes no sense is not one that says yes, nor is one that cannot be read. A
# project's file, which has no say in it, stops nothing.
tell() {  # TURN PROMPT
  printf '%s' "{\"event\":\"turn.begin\",\"host\":\"acme\",\"session\":\"h0\",\"cwd\":\"$PWD\",\"turn\":\"t$1\",\"prompt\":\"$2\",\"message\":{\"id\":\"m$1\",\"index\":$1}}" |
    "$BELAY_BIN" hook generic >"$scratch/out" || fail "hook: exit $?"
}
rm "$BELAY_CONFIG"; tell 1 first; tell 2 second
printf '[hooks]\nbefore_rollback = [\n' >.belay.toml
find . -type f -exec sha256sum {} + | sort >"$scratch/tree"
refused() {  # WHERE: by all that is asked about
  local what
  for what in "rollback one --yes" "rollback latest --chat --yes" "rollback one --both --yes" "rewind h0 --to m2" undo redo; do
    run $what; expect_rc 1; expect_in_err "$1"; expect_in_err "not known whom hooks.before_rollback asks"
    [[ $err == *"nothing was changed"* ]] || fail "$what: $err"
  done
}
for line in 'hooks.before_rollback = "false"' 'hooks.before_rollback = [""]' 'hooks.before_rollback = [[]]' 'hooks.before_rollback = [1]' \
  'hooks.before_rollback = ["/bin/false"' '"hooks"."before_rollback" ["/bin/false"]' 'hook.before_rollback = ["/bin/false"]'; do
  settings "$line"; refused "$BELAY_CONFIG:1: "
done
settings '[[hooks]]' 'before_rollback = ["/bin/false"]'; refused "$BELAY_CONFIG:"
settings '[hooks]' 'before_rollback = [' '["/bin/true"],' '["/bin/false" "x"],' ']'; refused "$BELAY_CONFIG:4: "
rm "$BELAY_CONFIG"; mkdir "$BELAY_CONFIG"; refused "$BELAY_CONFIG: not a regular file"; rmdir "$BELAY_CONFIG"
BELAY_CONFIG=config.toml refused "BELAY_CONFIG is not an absolute path"
find . -type f -exec sha256sum {} + | sort | cmp -s - "$scratch/tree" || fail "files changed"
settings '# before_rollback = [""]' 'max_files = "many"' 'granularity = ['
run rewind h0 --to m2; expect_rc 0; expect_in_err "does not count until it is mended"
run undo; expect_rc 0; rm .belay.toml
# A guard that is known is asked, whatever else makes no sense.
settings "hooks.before_rollback = [\"$scratch/bin/refuse\"]" 'max_files = "many"'
run rewind h0 --to m2; expect_rc 1; expect_in_err "the database is busy"
settings 'hooks.before_rollback = []' 'max_files = "many"'
run rollback one --dry-run; expect_rc 0; expect_in_err "does not count until it is mended"

settings "[hooks]" "before_rollback = [\"$scratch/bin/refuse\"]" "timeout_ms = 100"
run rollback one --yes; expect_rc 1; expect_in_err "hooks.timeout_ms"
settings "[hooks]" "before_rollback = [\"bin/keep\"]"
run rollback one --yes; expect_rc 1; expect_in_err "absolute path"
settings "[hooks]" "before_rollback = [\"$scratch/bin/missing\"]"
run rollback one --yes; expect_rc 1
expect_in_err "stopped it: $scratch/bin/missing could not be run: No such file or directory"
# One that rolls back itself is refused, and neither hangs.
settings "[hooks]" "before_rollback = [\"$scratch/bin/again\"]"
run rollback one --yes; expect_rc 0
grep -q "may not roll back" "$scratch/again" && [ "$(tail -1 "$scratch/again")" = 1 ] || fail "$(cat "$scratch/again")"
run undo; expect_rc 0

# Nor one of a hook that is about something else.
rm "$BELAY_CONFIG"
export BELAY_HOOK=summarize; run rollback one --yes; unset BELAY_HOOK
expect_rc 1; expect_in_err "may not roll back"

# --- after: with what was done; its failure is said, and what was done stays done
settings "[hooks]" "after_rollback = [\"$scratch/bin/keep\"]"
run rollback one --yes; expect_rc 0
see; expect_py "d['hook'] == 'after_rollback' and d['result']['operation'] and d['result']['verified'] and not d['result']['dry_run']"
settings "[hooks]" "after_rollback = [[\"$scratch/bin/refuse\"], [\"$scratch/bin/keep\"]]"
rm "$scratch/seen"
run undo; expect_rc 1; expect_in_err "the undo is done"; expect_in_err "the database is busy"
[ -e "$scratch/seen" ] || fail "the second had no turn"
[ "$(cat f)" = 2 ] || fail "not undone"

# --- a project has no say in it
rm "$BELAY_CONFIG"
printf '[hooks]\nbefore_rollback = ["%s/bin/keep"]\nafter_rollback = ["%s/bin/keep"]\non_session_end = ["%s/bin/keep"]\n' "$scratch" "$scratch" "$scratch" >.belay.toml
rm "$scratch/seen"
run rollback one --yes -- f; expect_rc 0; expect_in_err "only your own settings file may set it"
[ ! -e "$scratch/seen" ] || fail "a project's command was run"
rm .belay.toml

# --- what it does to the directory is in the safety checkpoint, and nobody else's
event() {
  printf '%s' "{\"session_id\":\"s0\",\"cwd\":\"$PWD\",\"hook_event_name\":\"$1\"${2:+,$2}}" |
    "$BELAY_BIN" hook claude >"$scratch/out" || fail "hook: exit $?"
}
writes() {
  local call="\"tool_name\":\"Write\",\"tool_use_id\":\"$1\",\"tool_input\":{\"file_path\":\"$PWD/$2\",\"content\":\"x\"}"
  event PreToolUse "$call"; echo "$1" >"$2"; event PostToolUse "$call"
}
event UserPromptSubmit '"prompt_id":"p0","prompt":"wish"'
writes c1 mine
event Stop
hook dump "echo rows >dump.sql; echo more >>mine"
settings "[hooks]" "before_rollback = [\"$scratch/bin/dump\"]"
run rollback turn:1 --session s0 --yes; expect_rc 0
[ ! -e mine ] && [ ! -e dump.sql ] && [ ! -e fresh ] || fail "left: $(ls)"
rm "$BELAY_CONFIG"
run undo; expect_rc 0
[ "$(cat dump.sql mine)" = "$(printf 'rows\nc1\nmore')" ] || fail "not in the safety checkpoint: $(cat dump.sql mine)"
rm dump.sql mine; writes c2 fresh
settings "[hooks]" "before_rollback = [\"$scratch/bin/dump\"]"
# On a terminal: one question, whatever it does.
python3 - "$BELAY_BIN" >"$scratch/said" <<'PY' || fail "exit $?: $(cat "$scratch/said")"
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], [sys.argv[1], "rollback", "turn:1", "--session", "s0"])
said = b""
asked = 0
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        piece = b""
    if not piece:
        break
    said += piece
    if said.count(b"[y/N]") > asked:
        asked += 1
        os.write(terminal, b"y\n" if asked == 1 else b"n\n")
print(said.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or (asked != 1))
PY
[ ! -e mine ] && [ ! -e dump.sql ] && [ ! -e fresh ] || fail "left: $(ls)"
# What somebody else did is asked about as ever.
writes c3 mine; echo "by hand" >>mine
run rollback turn:1 --session s0 --yes; expect_rc 1; expect_in_err "changed by others since: mine"
rm dump.sql
event SessionEnd '"reason":"other"'

# --- at the end of a session, once, behind the reply
mkfifo "$scratch/ended"
hook told "cat >$scratch/seen; echo x >>$scratch/count; : >$scratch/ended"
settings "[hooks]" "on_session_end = [\"$scratch/bin/told\"]"
event() {
  printf '%s' "{\"session_id\":\"s1\",\"cwd\":\"$PWD\",\"hook_event_name\":\"$1\"${2:+,$2}}" |
    "$BELAY_BIN" hook claude >"$scratch/out" || fail "hook: exit $?"
  [ ! -s "$scratch/out" ] || fail "the hook said something"
}
event UserPromptSubmit '"prompt_id":"p1","prompt":"wish"'
event SessionEnd '"reason":"other"'
: <"$scratch/ended"
see; expect_py "d['hook'] == 'on_session_end' and d['session'] == 's1' and d['agent'] == 'claude' and d['reason'] == 'other' and d['root'] == '$PWD'"
# Told again: nothing. Gone on: once more.
event SessionEnd '"reason":"other"'
event UserPromptSubmit '"prompt_id":"p2","prompt":"wish"'
event SessionEnd '"reason":"other"'
: <"$scratch/ended"
[ "$(wc -l <"$scratch/count")" = 2 ] || fail "run $(wc -l <"$scratch/count") times"

# --- the notice: once, in the agent's own words
settings "notice = true"
echo 3 >f
run rollback one --yes --exact; expect_rc 0
tell() { printf '%s' "{\"session_id\":\"s1\",\"cwd\":\"$PWD\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"$1\",\"prompt\":\"wish\"}" | "$BELAY_BIN" hook claude >"$scratch/out" || fail "hook"; }
tell p3
expect_py "d['hookSpecificOutput']['hookEventName'] == 'UserPromptSubmit' and '${one:0:7}' in d['hookSpecificOutput']['additionalContext']"
event Stop
tell p4; [ ! -s "$scratch/out" ] || fail "told twice: $(cat "$scratch/out")"
run status --json; expect_py "d['failures'] == []"
finish
