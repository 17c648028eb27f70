# What was said in a session is in no file once it is purged or deleted, not even where
# others tell of it: what goes on in a root, and what pruning and deleting leave in the
# log.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
search=$BELAY_BUILD_DIR/bin/raw_search
[ -x "$search" ] || { echo "raw_search was not built"; exit 77; }
there() { "$search" "$BELAY_HOME" "$@" >"$scratch/found" || fail "not found: $*"; }
gone() {
  "$search" "$BELAY_HOME" "$@" >"$scratch/found" && fail "$1 is in $(cat "$scratch/found")"
}
# tell SESSION EVENT [MEMBERS]: a hook of Claude Code.
tell() {
  printf '{"hook_event_name":"%s","session_id":"%s","cwd":"%s","transcript_path":"/t/%s.jsonl"%s}' \
    "$2" "$1" "$PWD" "$1" "${3:-}" | "$BELAY_BIN" hook claude "$2" || fail "hook $2"
}
said() { tell "$1" UserPromptSubmit ',"prompt":"say '"$2"' now","prompt_id":"'"$2"'"'; }

mkdir project; cd project || exit 1
run on; expect_rc 0
run config deadline_ms 60000; expect_rc 0
run config retention.auto 10; expect_rc 0
echo a >a; run checkpoint -m base; expect_rc 0

# Purged: the prompts of turns that were pruned or deleted before, and the last one.
tell one SessionStart
for i in $(seq 1 16); do
  echo "$i" >a
  said one "FIRSTSECRET$i"
  tell one PreToolUse ',"tool_name":"Bash","tool_use_id":"t'"$i"'","tool_input":{"command":"echo COMMANDSECRET'"$i"'"}'
done
tell one Stop
behind_is_done
run prune; expect_rc 0; expect_in_out "checkpoint"
run delete tool:t15 --yes; expect_rc 0
there FIRSTSECRET16; there COMMANDSECRET16
[ -n "$(ls "$BELAY_HOME"/cache/*.live)" ] || fail "nothing is known to go on"
run purge --session one --yes; expect_rc 0
behind_is_done
run gc --everything; expect_rc 0
gone FIRSTSECRET; gone COMMANDSECRET; gone t/one.jsonl
run log; expect_rc 0
[[ $out != *SECRET* ]] || fail "the log quotes it: $out"
expect_in_out "prune"; expect_in_out "delete"

# Deleted, and collected.
tell two SessionStart
said two OTHERSECRET; echo b >b
tell two PreToolUse ',"tool_name":"Bash","tool_use_id":"u1","tool_input":{"command":"echo LASTSECRET"}'
tell two SessionEnd
behind_is_done
there OTHERSECRET; there LASTSECRET
run sessions delete two --yes; expect_rc 0
behind_is_done
run gc --everything; expect_rc 0
gone OTHERSECRET; gone LASTSECRET; gone t/two.jsonl
# Somebody else's session goes on.
tell three SessionStart; said three KEPTWORD; tell three Stop
behind_is_done
run purge --session three --dry-run; expect_rc 0
there KEPTWORD
run verify --read-data; expect_rc 0
finish
