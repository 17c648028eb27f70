# A conversation is taken back in bounded memory: less than its file is long, of every
# agent whose file we cut. BELAY_FULL=1 does it with 200 MB.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

megabytes=48
[ "${BELAY_FULL:-}" = 1 ] && megabytes=200
limit=24576  # KiB
[ -z "${BELAY_SANITIZED:-}" ] || limit=1000000  # says nothing of ours

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
mkdir -p "$scratch/src/project" && cd "$scratch/src/project" || exit 1
echo one >a
run on; expect_rc 0
printf 'transcripts = "anchors"\n' >"$BELAY_CONFIG"  # no copy of it is made

# make AGENT FILE: turns of answers of 10 KB, in that agent's form.
make() {
  python3 - "$1" "$2" "$megabytes" <<'P'
import json, sys
agent, path, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
session, turns, size = "00000000-0000-4000-8000-000000000001", 40, 10_000
answers = megabytes * 1_000_000 // turns // size
with open(path, "w") as out:
    def line(value): out.write(json.dumps(value) + "\n")
    if agent == "codex": line({"timestamp": "t", "type": "session_meta", "payload": {"id": session, "cwd": "/p"}})
    if agent == "gemini": line({"sessionId": session, "projectHash": "h", "startTime": "t", "lastUpdated": "t", "kind": "main"})
    last = None
    for turn in range(1, turns + 1):
        prompt, anchor = f"wish {turn}", f"p{turn}"
        for n in range(answers + 1):
            id = f"m{turn}-{n}"
            text = prompt if n == 0 else f"{id} " + "x" * size
            role = "user" if n == 0 else "assistant"
            if agent == "claude":
                line({"parentUuid": last, "type": role, "uuid": id, "sessionId": session, "promptId": anchor,
                      "message": {"role": role, "content": text if n == 0 else [{"type": "text", "text": text}]}})
            elif agent == "qwen":
                line({"uuid": id, "parentUuid": last, "sessionId": session, "type": role, "promptId": anchor,
                      "message": {"role": "user" if n == 0 else "model", "parts": [{"text": text}]}})
            elif agent == "codex":
                if n == 0:
                    line({"timestamp": "t", "type": "event_msg", "payload": {"type": "task_started", "turn_id": anchor}})
                    line({"timestamp": "t", "type": "turn_context", "payload": {"turn_id": anchor, "cwd": "/p"}})
                kind = "input_text" if n == 0 else "output_text"
                line({"timestamp": "t", "type": "response_item", "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}})
                if n == 0: line({"timestamp": "t", "type": "event_msg", "payload": {"type": "user_message", "message": text}})
            elif agent == "gemini":
                line({"id": id, "timestamp": "t", "type": "user" if n == 0 else "gemini", "content": text})
            else:
                line({"type": role + ".message", "id": id, "data": {"content": text}})
            last = id
P
}

# tell AGENT FILE: session and turns, as its hooks tell them.
tell() {
  local agent=$1 file=$2 turn id=00000000-0000-4000-8000-000000000001
  hook() { "$BELAY_BIN" hook "$agent" "$@" >/dev/null 2>&1 || fail "hook $agent"; }
  for turn in 1 2 39 40; do
    case $agent in
      gemini) printf '{"session_id":"%s","cwd":"%s","transcript_path":"%s","hook_event_name":"BeforeAgent","prompt":"wish %s"}' $id "$PWD" "$file" $turn | hook ;;
      copilot)
        printf '{"sessionId":"%s","cwd":"%s","prompt":"wish %s"}' $id "$PWD" $turn | hook userPromptSubmitted
        printf '{"sessionId":"%s","cwd":"%s","transcriptPath":"%s","stopReason":"end_turn"}' $id "$PWD" "$file" | hook agentStop ;;
      *) printf '{"session_id":"%s","cwd":"%s","transcript_path":"%s","hook_event_name":"UserPromptSubmit","prompt_id":"p%s","turn_id":"p%s","prompt":"wish %s"}' $id "$PWD" "$file" $turn $turn $turn | hook ;;
    esac
  done
}

for agent in claude codex gemini qwen copilot; do
  export BELAY_HOME=$scratch/store-$agent
  run on; expect_rc 0
  mkdir -p "$scratch/talk/$agent/old"
  case $agent in
    codex) file=$scratch/talk/codex/old/rollout-2026-11-15T01-00-00-00000000-0000-4000-8000-000000000001.jsonl ;;
    gemini) file=$scratch/talk/gemini/old/session-2026-11-15T01-43-00000000.jsonl ;;
    copilot) file=$scratch/talk/copilot/old/events.jsonl ;;
    *) file=$scratch/talk/$agent/old/old.jsonl ;;
  esac
  make $agent "$file"
  tell $agent "$file"
  before=$(sha256sum <"$file")
  size=$(stat -c %s "$file")
  peak=$(python3 - "$BELAY_BIN" "$scratch/out" <<'P'
import os, resource, subprocess, sys
env = {k: v for k, v in os.environ.items() if k != "PATH"} | {"PATH": "/nowhere"}  # no codex
with open(sys.argv[2], "w") as out:
    done = subprocess.run([sys.argv[1], "rewind", "00000000", "--to", "turn:4", "--json"], stdout=out, env=env)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
P
  ) || fail "$agent: rewind"
  echo "$agent: $((size / 1000000)) MB, peak $peak KiB"
  [ "$peak" -lt $limit ] || fail "$agent: $peak KiB"
  [ "$(sha256sum <"$file")" = "$before" ] || fail "$agent: the original was changed"
  copy=$(find "$scratch/talk/$agent" -name '*.jsonl' -newer "$file" ! -path "$file")
  [ -s "$copy" ] || fail "$agent: no copy"
  rm -rf "$scratch/talk/$agent"
done
finish
