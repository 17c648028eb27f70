#!/usr/bin/env bash
# `belay rollback --both`, killed (SIGKILL) at its system calls that write: files, git
# and the conversation are all old or all new after the next command, the original is as
# it was, and nothing of ours is left. Of an agent with a file and of one with a
# directory. Every STEP-th call (37; 1: all). Needs strace.
set -u
: "${BELAY_BIN:?is not set}" "${BELAY_SOURCE_DIR:?is not set}"
command -v strace >/dev/null || { echo "strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/belay-chat.XXXXXX")
trap 'cd /; rm -rf "$scratch"' EXIT
world=$scratch/world
export BELAY_HOME=$world/store BELAY_CONFIG=$scratch/config.toml HOME=$scratch LC_ALL=C
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
writing=openat,openat2,mkdirat,renameat2,unlinkat,pwrite64,pwritev2,ftruncate,fsync,fdatasync,syncfs,fchmod,fchown
bad=0 killed=0
wrong() { echo "FAILED $agent, call $call: $*"; bad=$((bad + 1)); [ $bad -lt 10 ] || exit 1; }

# The session of a recorded transcript, and its prompts.
tell() {
  local n=0 prompt
  for prompt in "turn 1: create new.txt and edit a.txt" "turn 2: clean up with the shell"; do
    n=$((n + 1))
    case $agent in
      claude) printf '{"session_id":"%s","cwd":"%s","transcript_path":"%s","hook_event_name":"UserPromptSubmit","prompt":"%s"}' "$session" "$PWD" "$talk" "$prompt" | "$BELAY_BIN" hook claude ;;
      copilot)
        printf '{"sessionId":"%s","cwd":"%s","prompt":"%s"}' "$session" "$PWD" "$prompt" | "$BELAY_BIN" hook copilot userPromptSubmitted
        printf '{"sessionId":"%s","cwd":"%s","transcriptPath":"%s","stopReason":"end_turn"}' "$session" "$PWD" "$talk" | "$BELAY_BIN" hook copilot agentStop ;;
    esac >/dev/null 2>&1
    echo "$prompt" >>a; echo "$n" >"new$n"; git add a; git commit -qm "$prompt"; echo staged >>b; git add b
  done
}
# All that people see: files, git, and conversations by what they hold (a copy has an id of its own).
see() {
  find . -name .git -prune -o -type f -print | sort | xargs sha256sum
  git status --porcelain=v2 --branch; git diff --cached; git log --format='%H %s'; git for-each-ref refs/heads
  find . -name '*.lock' -o -name '.belay-*'
  (cd "$world/talk" && find . | sed -E "s/$uuid/ID/g" | sort &&
    find . -type f | sort | while read -r f; do sed -E "s/$uuid/ID/g" "$f" | sha256sum; stat -c %a "$f"; done | sort)
  ls "$BELAY_HOME/journal" 2>/dev/null | grep -v '\.\(at-work\|hint\|lock\)$'
}
uuid='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'

for agent in claude copilot; do
  rm -rf "$world" "$scratch/template"
  mkdir -p "$world/project" "$world/talk/old"; cd "$world/project" || exit 1
  talk=$world/talk/old/events.jsonl
  cp "$BELAY_SOURCE_DIR/tests/agent/data/transcripts/$agent.jsonl" "$talk"
  [ $agent = copilot ] && echo 'id: old' >"$world/talk/old/workspace.yaml"
  session=$(grep -o '"sessionId":"[^"]*"' "$talk" | head -1 | cut -d'"' -f4)
  git init -q -b main; echo one >a; echo two >b; git add .; git commit -qm first
  "$BELAY_BIN" on -q >/dev/null || exit 1
  tell
  original=$(sha256sum <"$talk")
  call=0
  see >"$scratch/old"
  cp -a "$world" "$scratch/template"
  "$BELAY_BIN" rollback turn:2 --both --yes --exact >"$scratch/said" 2>&1 || { wrong "unharmed: $(cat "$scratch/said")"; exit 1; }
  see >"$scratch/new"
  cmp -s "$scratch/old" "$scratch/new" && wrong "it changes nothing"
  [ "$(find "$world/talk" -name '*.jsonl' | wc -l)" = 2 ] || wrong "no conversation: $(cat "$scratch/said")"
  old=0 new=0
  for ((call = 1; ; call += ${STEP:-37})); do
    cd /; rm -rf "$world"; cp -a "$scratch/template" "$world"; cd "$world/project" || exit 1
    # In a shell of its own, which says that it was killed.
    bash -c '"$@"; exit $?' - strace -f -qq -o /dev/null -e "trace=$writing" -e "inject=$writing:signal=KILL:when=$call" \
      "$BELAY_BIN" rollback turn:2 --both --yes --exact >"$scratch/said" 2>&1
    rc=$?
    [ $rc = 0 ] && break
    [ $rc = 137 ] || { wrong "exit $rc: $(cat "$scratch/said")"; continue; }
    killed=$((killed + 1))
    "$BELAY_BIN" status >"$scratch/said" 2>&1 || wrong "status: $(cat "$scratch/said")"
    see >"$scratch/now"
    if cmp -s "$scratch/now" "$scratch/old"; then old=$((old + 1))
    elif cmp -s "$scratch/now" "$scratch/new"; then new=$((new + 1))
    else wrong "neither:"; diff "$scratch/old" "$scratch/now" | head -10; diff "$scratch/new" "$scratch/now" | head -10; fi
    [ "$(sha256sum <"$talk")" = "$original" ] || wrong "the original was changed"
    "$BELAY_BIN" verify -q >/dev/null || wrong "the store is damaged"
  done
  echo "$agent: killed at $((old + new)) of $((call - 1)) calls: $old times all old, $new times all new"
  [ $old -gt 0 ] && [ $new -gt 0 ] || [ "${STEP:-37}" -gt 1 ] || wrong "never one of them"
done
echo "$killed kills, $bad failures"
[ $bad = 0 ]
