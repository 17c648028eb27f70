# Hosts: what a hook goes on recording behind its reply is there for whoever needs it, and nobody waits for it for ever.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
mkdir -p "$scratch/src/project" && cd "$scratch/src/project" || exit 1
echo 0 >a
run on; expect_rc 0
session=p
tell() {  # tell EVENT [MORE]
  printf '%s' "{\"event\":\"$1\",\"host\":\"acme\",\"session\":\"$session\",\"cwd\":\"$PWD\"${2:+,$2}}" |
    "$BELAY_BIN" hook generic >"$scratch/out" 2>"$scratch/err" || fail "hook: exit $?"
  out=$(cat "$scratch/out"); err=$(cat "$scratch/err"); expect_silent_err
}
# turn NUMBER INDEX: a prompt, a call and an answer.
turn() {
  tell turn.begin "\"turn\":\"t-$1\",\"prompt\":\"wish $1\",\"message\":{\"id\":\"m-${1}0\",\"index\":$2},\"messages\":[{\"role\":\"user\",\"id\":\"m-${1}0\",\"index\":$2,\"text\":\"wish $1\"}]"
  tell tool.begin "\"turn\":\"t-$1\",\"tool\":{\"name\":\"edit\",\"id\":\"c-$1\",\"reach\":\"paths\",\"paths\":[\"a\"]}"
  echo "$session $1" >a
  tell tool.end "\"turn\":\"t-$1\",\"tool\":{\"name\":\"edit\",\"id\":\"c-$1\",\"reach\":\"paths\",\"paths\":[\"a\"]}"
  tell turn.end "\"turn\":\"t-$1\",\"messages\":[{\"role\":\"assistant\",\"id\":\"m-${1}1\",\"index\":$(($2 + 1)),\"text\":\"done $1\"}]"
}
turns() { run show "$1" --json; python3 -c 'import json,sys; print(*[str(t["turn"]) + t["session"] for t in json.load(open(sys.argv[1]))["turns"]])' "$scratch/out"; }

tell session.begin '"source":"startup"'
turn 1 0; turn 2 2

# --- a rewind counts also what was told just now
for number in 3 4 5 6; do
  turn $number 4
  run rewind p --to "t-$number" --json; expect_rc 0
  expect_py "(d['chat']['messages_taken_back'], d['chat']['messages_kept']) == (2, 4)"
done

# --- the first turn of a fork knows what comes before it
for number in 1 2 3 4 5 6; do
  session=c$number
  tell session.begin '"source":"fork","parent_session":"p","parent_turns":2'
  turn 7 4
  [ "$(turns "$session")" = "1p 2p 3$session" ] || fail "turns of the fork: $(turns "$session")"
done
# A turn that was inherited has its place, and its messages count.
run rewind c1 --to turn:2 --json; expect_rc 0
expect_py "(d['chat']['message'], d['chat']['message_index'], d['chat']['messages_taken_back'], d['chat']['messages_kept']) == ('m-20', 2, 4, 2)"
run undo; expect_rc 0

# --- it waits for the start that is still being recorded, and the host for it until the deadline
cat >"$scratch/hold.py" <<'EOF'
import fcntl, hashlib, struct, subprocess, sys
store, session, command = sys.argv[1], sys.argv[2], sys.argv[3:]
byte = (1 << 50) + (int.from_bytes(hashlib.sha256(session.encode()).digest()[:8], "little") >> 16)
F_OFD_SETLK = 37
with open(store + "/lock", "r+b") as lock:
    fcntl.fcntl(lock, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, byte, 1, 0))
    sys.exit(subprocess.run(command, close_fds=True).returncode)
EOF
printf 'deadline_ms = 100\n' >"$BELAY_CONFIG"
cat >"$scratch/late" <<EOF
printf '%s' '{"event":"turn.begin","host":"acme","session":"late","cwd":"$PWD","turn":"l-1","prompt":"late wish"}' | "$BELAY_BIN" hook generic
"$BELAY_BIN" sessions --json
EOF
python3 "$scratch/hold.py" "$BELAY_HOME" late bash "$scratch/late" >"$scratch/out" 2>"$scratch/err" || fail "$(cat "$scratch/err")"
expect_py "'late' not in [s['id'] for s in d['sessions']]"
behind_is_done
[ "$(turns late)" = 1late ] || fail "turns: $(turns late)"

# --- a notice comes also with a prompt that brings messages, once
printf 'notice = true\n' >"$BELAY_CONFIG"
session=c6
run rollback turn:3 --session c6 --exact --yes; expect_rc 0
tell turn.begin '"turn":"t-8","prompt":"go on","messages":[{"role":"user","id":"m-80","index":6,"text":"go on"}]'
expect_in_out '{"notice":"[belay] '
tell turn.end '"turn":"t-8"'
tell turn.begin '"turn":"t-9","prompt":"go on"'
expect_out ""
behind_is_done

finish
