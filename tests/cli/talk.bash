# Sourced by scripts about conversations in place of lib.bash: a directory to be protected, and
# a session of Claude Code in it whose transcript is in $talk. $root and $session may change.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
talk=$scratch/agent/projects
mkdir -p "$root" "$talk" "$scratch/bin" && cd "$root" || exit 1
session=11111111-1111-4111-8111-111111111111
first=$session
parent=null  # uuid of the last record, as JSON has it

# event NAME [FIELDS]: told by the hook.
event() {
  printf '%s' "{\"session_id\":\"$session\",\"cwd\":\"$root\",\"transcript_path\":\"$talk/$session.jsonl\",\"hook_event_name\":\"$1\"${2:+,$2}}" |
    "$BELAY_BIN" hook claude >"$scratch/out" 2>"$scratch/err" || fail "hook: exit $?"
}
# line TYPE UUID MESSAGE FIELDS: a record of the transcript, behind the last.
line() {
  printf '{"parentUuid":%s,"type":"%s","uuid":"%s","sessionId":"%s"%s,"message":{%s}}\n' "$parent" "$1" "$2" "$session" "$4" "$3" >>"$talk/$session.jsonl"
  parent="\"$2\""
}
# field EXPRESSION: of the JSON document d that was printed last.
field() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))" "$scratch/out" "$1"; }
