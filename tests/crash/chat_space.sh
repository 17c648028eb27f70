#!/usr/bin/env bash
# `belay rollback --both` where the conversation's disk is full: a tmpfs from nothing to
# enough, bytes in steps of 4 KiB and inodes one by one, with the conversation alone on
# it, then with project and store. Each ends refused, with exit code 5 and in words, with
# files and conversations as they were, or done with both; nothing of ours is left. Of an
# agent with a file and of one with a directory. Needs root.
#
#   chat_space.sh [step]     every step-th size (1: all); default: a slice

set -u
step=${1:-5}
: "${BELAY_BIN:?is the program; set by ctest}" "${BELAY_SOURCE_DIR:?is not set}"
skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "mounting a tmpfs needs root"
if [ -z "${BELAY_OWN_MOUNTS-}" ] && unshare -m true 2>/dev/null; then
  BELAY_OWN_MOUNTS=1 exec unshare -m bash "${BASH_SOURCE[0]}" "$@"
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/belay-space-XXXXXX") || exit 1
disk=$work/disk
mkdir "$disk" "$work/home"
clean_up() {
  cd /
  mountpoint -q "$disk" && { umount "$disk" || umount -l "$disk"; }
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
export HOME=$work/home LC_ALL=C TERM=dumb BELAY_CONFIG=$work/config.toml
unset XDG_DATA_HOME XDG_CONFIG_HOME
mount -t tmpfs -o size=64m tmpfs "$disk" 2>/dev/null || skip "no tmpfs can be mounted"

failed=0 sizes=0
fail() {
  echo "FAILED $*"
  sed 's/^/    /' "$work/said" | head -5
  failed=$((failed + 1))
  [ $failed -lt 10 ] || exit 1
}
# By content; the id of a copy is another each time.
uuid='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
see() {
  (cd "$project" && find . -type f -print0 | sort -z | xargs -0 sha256sum; find . -name '.belay-*')
  (cd "$disk/talk" && find . | sed -E "s/$uuid/ID/g" | sort &&
    find . -type f | while read -r f; do sed -E "s/$uuid/ID/g" "$f" | sha256sum; done | sort)
}

make_world() {
  mkdir -p "$project" "$disk/talk/old"; cd "$project" || exit 1
  talk=$disk/talk/old/events.jsonl
  cp "$BELAY_SOURCE_DIR/tests/agent/data/transcripts/$agent.jsonl" "$talk"
  [ $agent = claude ] || echo 'id: old' >"$disk/talk/old/workspace.yaml"
  local session prompt
  session=$(grep -o '"sessionId":"[^"]*"' "$talk" | head -1 | cut -d'"' -f4)
  echo one >a
  "$BELAY_BIN" on -q >/dev/null || exit 1
  for prompt in "turn 1: create new.txt and edit a.txt" "turn 2: clean up with the shell" "turn 3: edit b.txt again"; do
    if [ $agent = claude ]; then
      printf '{"session_id":"%s","cwd":"%s","transcript_path":"%s","hook_event_name":"UserPromptSubmit","prompt":"%s"}' "$session" "$PWD" "$talk" "$prompt" | "$BELAY_BIN" hook claude
    else
      printf '{"sessionId":"%s","cwd":"%s","prompt":"%s"}' "$session" "$PWD" "$prompt" | "$BELAY_BIN" hook copilot userPromptSubmitted
      printf '{"sessionId":"%s","cwd":"%s","transcriptPath":"%s","stopReason":"end_turn"}' "$session" "$PWD" "$talk" | "$BELAY_BIN" hook copilot agentStop
    fi >/dev/null 2>&1
    echo "$prompt" >>a; echo "$prompt" >"new ${prompt:5:1}"
  done
  cd / || exit 1
}

# sweep AGENT WHERE WHAT: until three sizes in a row were enough.
sweep() {
  agent=$1
  local where=$2 what=$3 n=0 enough=0 refused=0 used rc
  mount -o remount,size=64m,nr_inodes=100000 "$disk"
  rm -rf "${disk:?}"/* "$work/beside" "$work/saved" "$work/saved-beside"
  mkdir "$work/beside"
  if [ "$where" = all ]; then project=$disk/project BELAY_HOME=$disk/store; else project=$work/beside/project BELAY_HOME=$work/beside/store; fi
  export BELAY_HOME
  make_world
  see >"$work/old"
  cp -a "$disk" "$work/saved"; cp -a "$work/beside" "$work/saved-beside"
  "$BELAY_BIN" rollback --root "$project" turn:3 --both --yes --exact >"$work/said" 2>&1 || fail "$agent, $where: with room"
  see >"$work/new"
  cmp -s "$work/old" "$work/new" && fail "$agent, $where: it changes nothing"
  while [ $enough -lt 3 ]; do
    # Each size begins with the same disk.
    find "$disk" -mindepth 1 -maxdepth 1 -exec rm -rf {} +; cp -a "$work/saved/." "$disk/"
    rm -rf "$work/beside"; cp -a "$work/saved-beside" "$work/beside"
    if [ "$what" = bytes ]; then
      used=$(df -k --output=used "$disk" | tail -1 | tr -d ' ')
      mount -o remount,size=$((used + 4 * n))k "$disk"
    else
      used=$(df --output=iused "$disk" | tail -1 | tr -d ' ')
      mount -o remount,nr_inodes=$((used + n)) "$disk"
    fi
    sizes=$((sizes + 1))
    "$BELAY_BIN" rollback --root "$project" turn:3 --both --yes --exact >"$work/said" 2>&1
    rc=$?
    see >"$work/now"
    if [ $rc = 0 ]; then
      enough=$((enough + 1))
      cmp -s "$work/now" "$work/new" || fail "$agent, $where, $what $n: done, and not both"
    else
      enough=0 refused=$((refused + 1))
      [ $rc = 5 ] || fail "$agent, $where, $what $n: exit $rc"
      grep -qi 'no space left\|of room, and there is less' "$work/said" || fail "$agent, $where, $what $n: not said"
      [ "$where" = all ] || grep -q "the conversation, in $disk/talk" "$work/said" || fail "$agent, $where, $what $n: not said whose"
      grep -q "interrupted" "$work/said" || cmp -s "$work/now" "$work/old" || { diff "$work/old" "$work/now" >>"$work/said"; fail "$agent, $where, $what $n: refused, and not as it was"; }
    fi
    mount -o remount,size=64m,nr_inodes=100000 "$disk"
    "$BELAY_BIN" status --root "$project" >"$work/said" 2>&1 || fail "$agent, $where, $what $n: status"
    see >"$work/now"
    cmp -s "$work/now" "$work/old" || cmp -s "$work/now" "$work/new" || { diff "$work/old" "$work/now" >>"$work/said"; fail "$agent, $where, $what $n: neither"; }
    n=$((n + step))
    [ $n -lt 3000 ] || { fail "$agent, $where, $what: never enough"; break; }
  done
  echo "$agent, $where, $what: $refused refused, enough at $((n - 3 * step))"
}

for agent in claude copilot; do
  sweep $agent talk bytes
  sweep $agent talk inodes
  sweep $agent all bytes
  sweep $agent all inodes
done
echo "$sizes disks, $failed failures"
[ $failed -eq 0 ]
