# belay hook: what agents tell becomes history; whatever happens, it exits 0 and says
# nothing; /rollback is answered without the model; belay events tells hosts.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
# hook AGENT JSON [EVENT]: one event; settled when it returns.
hook() {
  printf '%s' "$2" | "$BELAY_BIN" hook "$1" ${3+"$3"} >"$scratch/out" 2>"$scratch/err"
  rc=$?
  out=$(cat "$scratch/out"); err=$(cat "$scratch/err")
}
quiet() { hook "$@"; [ "$rc$out$err" = 0 ] || fail "not silent: rc=$rc out='$out' err='$err'"; }
# event NAME [MORE]: of a Claude session s1.
session=s1
event() { quiet claude "{\"session_id\":\"$session\",\"cwd\":\"$root\",\"transcript_path\":\"/none\",\"hook_event_name\":\"$1\"${2:+,$2}}"; }
pre() { event PreToolUse "\"prompt_id\":\"$1\",\"tool_name\":\"$2\",\"tool_use_id\":\"$3\",\"tool_input\":$4"; }
post() { event PostToolUse "\"prompt_id\":\"$1\",\"tool_name\":\"$2\",\"tool_use_id\":\"$3\",\"tool_input\":$4,\"tool_response\":{}"; }
prompt() { event UserPromptSubmit "\"prompt_id\":\"$1\",\"prompt\":\"$2\""; }

# --- where nothing is protected nothing happens, and no file appears
mkdir -p "$root" && cd "$root" || exit 1
prompt p0 hello
[ ! -e "$BELAY_HOME" ] || fail "a store was made"
[ -z "$(find "$root" "$HOME" -mindepth 1)" ] || fail "files appeared: $(find "$root" "$HOME")"

# --- what may write anything is looked at in protected directories below, too
mkdir inner; echo v1 >inner/i; run on; run on inner; (cd inner && "$BELAY_BIN" checkpoint -q -m v1) >/dev/null
echo v2 >inner/i
pre p0 Bash n1 '{"command":"rm inner/i"}'
rm inner/i
post p0 Bash n1 '{"command":"rm inner/i"}'
run log --root inner -- i; expect_in_out "claude"
run rollback tool:n1 --root inner --yes; expect_rc 0
[ "$(cat inner/i)" = v2 ] || fail "inner/i is '$(cat inner/i)'"
# An edit tool says what it writes.
pre p0 Write n2 "{\"file_path\":\"$root/x\",\"content\":\"1\"}"
run rollback tool:n2 --root inner --dry-run; expect_rc 1; expect_in_err "no checkpoint of the tool call"
run off inner --forget --yes; run off --forget --yes; rm -r "$BELAY_HOME" inner

# --- a session
echo one >a; echo two >b
run on; expect_rc 0
# What cannot be recorded is counted although there is no checkpoint.
quiet claude '{"session_id":"s1","hook_ev'; run status; expect_rc 0; expect_in_out "1 event of agents could not be recorded"
rm -r "$BELAY_HOME/cache"
# Its checkpoint is made behind the hook.
mkfifo "$scratch/told"
"$BELAY_BIN" events --follow >"$scratch/told" & follower=$!
exec 8<"$scratch/told"
event SessionStart '"source":"startup"'
while read -r line <&8; do [[ $line == *session.known* ]] && break; done
exec 8<&-; kill "$follower"; wait "$follower" 2>/dev/null
run list --json --all; expect_py "[c['description'] for c in d['checkpoints']] == ['session started']"
prompt p1 "make it better"
echo mine >person
pre p1 Bash t1 '{"command":"rm a"}'
pre p1 Bash t1 '{"command":"rm a"}'
rm a
post p1 Bash t1 '{"command":"rm a"}'
pre p1 Read t2 '{"file_path":"b"}'
pre p1 Write t3 "{\"file_path\":\"$root/src/new\"}"
mkdir src; echo new >src/new; chmod 640 src/new
post p1 Write t3 "{\"file_path\":\"$root/src/new\"}"
event Stop
prompt p2 "and more"
event Stop
run list --json --tools; expect_rc 0
expect_py "[(c['description'], c['turn'], (c['tool'] or {}).get('id')) for c in reversed(d['checkpoints'])] == [
  ('session started', None, None), ('make it better', 1, None), ('before Bash: rm a', 1, 't1'), ('after Bash: rm a', 1, 't1'),
  ('before Write src/new', 1, 't3'), ('after Write src/new', 1, 't3'), ('and more', 2, None)]"
expect_py "d['checkpoints'][0]['prompt'] == 'and more' and d['checkpoints'][0]['message_id'] == 'p2' and d['checkpoints'][0]['agent'] == 'claude'"
run log --json -- .; expect_rc 0
expect_py "{c['path']: (c['author']['kind'], c['author']['session'], c['author']['tool_id']) for c in reversed(d['changes']) if c['checkpoint']}.items() >= {
  'person': ('outside', None, None), 'a': ('session', 's1', 't1'), 'src/new': ('session', 's1', 't3')}.items()"
run list; expect_in_out "turn 1"

# --- when an agent was heard of last, to ten seconds
seen=$BELAY_HOME/cache/agents.seen
for old in 1 99999999999999 x ""; do
  echo "claude $old" >"$seen"; event Stop; [ "$(cat "$seen")" != "claude $old" ] || fail "'$old' stays"
done
ours=$(stat -c %i "$seen"); event Stop; [ "$(stat -c %i "$seen")" = "$ours" ] || fail "replaced at once"

# --- back to before each call; what a person did is not taken back unasked
run rollback tool:t3 --yes; expect_rc 0; [ ! -e src ] || fail "src stays"; [ -e person ] || fail "person"
run undo; expect_rc 0; [ "$(stat -c %a src/new)" = 640 ] || fail "mode"
run rollback turn:1 --yes; expect_rc 1; expect_in_err "person"; [ -e src/new ] || fail "changed"
run rollback turn:1 --dry-run --json; expect_rc 0
expect_py "d['outside'] == ['person'] and [s['outside'] for s in d['steps'] if s['path'] == 'person'] == [True]"
run rollback turn:1 --yes --keep-outside; expect_rc 0
[ -e a ] && [ -e person ] && [ ! -e src ] || fail "keep-outside: $(ls)"
run undo; expect_rc 0
run rollback turn:1 --yes --exact; expect_rc 0
[ -e a ] && [ ! -e person ] && [ ! -e src ] || fail "exact: $(ls)"
run undo; expect_rc 0

# --- /rollback: answered by the hook, never a turn
ask() { hook claude "{\"session_id\":\"s1\",\"cwd\":\"$root\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"px\",\"prompt\":\"$1\"}"; expect_rc 0; expect_json; }
ask /rollback; expect_py "d['decision'] == 'block' and 'and more' in d['reason'] and '/rollback' in d['reason']"
ask '/rollback tool:t3'; expect_py "'src/new' in d['reason'] and '/rollback tool:t3 yes' in d['reason']"; [ -e src/new ] || fail "only asked"
ask '/rollback tool:t3 yes'; expect_py "'rolled back' in d['reason'] and '/rollback undo' in d['reason']"; [ ! -e src ] || fail "not done"
ask '/rollback undo'; [ -e src/new ] || fail "not undone"
ask '/rollback --yes'; ask '/rollback 1 maybe'; expect_py "'lists' in d['reason']"
hook reasonix "{\"event\":\"UserPromptSubmit\",\"sessionId\":\"r\",\"cwd\":\"$root\",\"prompt\":\"/rollback\"}"
[ "$rc" = 2 ] && [[ $err == *"and more"* ]] || fail "reasonix: $rc '$err'"
run list --json --all; expect_py "not any(c['prompt'] and c['prompt'].startswith('/rollback') for c in d['checkpoints'])"
run __slash gemini "tool:t3 yes"; expect_rc 0; expect_in_out "rolled back"; run undo; expect_rc 0

# --- events
run events; expect_rc 0
(cd / && python3 - "$scratch/out" <<'P') || fail "events: $out"
import json,sys
e=[json.loads(l) for l in open(sys.argv[1])]
assert [int(x['id']) for x in e]==sorted(int(x['id']) for x in e)
kinds=[x['type'] for x in e]
assert kinds.count('turn.started')==2 and 'rollback.done' in kinds and 'undo.done' in kinds and 'session.known' in kinds, kinds
assert any(x['type']=='checkpoint.made' and x['tool_id']=='t1' and x['session']=='s1' for x in e)
P
last=$(tail -1 "$scratch/out" | sed 's/.*"id":"\([0-9]*\)".*/\1/')
run events --since "$last"; expect_rc 0; expect_out ""
run events --since x; expect_rc 2
"$BELAY_BIN" events --follow --since "$last" >"$scratch/told" & follower=$!
exec 8<"$scratch/told"
run checkpoint -m told; expect_rc 0
read -r line <&8; exec 8<&-
kill "$follower"; wait "$follower" 2>/dev/null
[[ $line == *'"type":"checkpoint.made"'*'"name":"told"'* ]] || fail "followed: '$line'"

# --- an answer that cannot be written stops nobody, and is counted
for to in '>&-' '>/dev/full'; do
  echo "{\"session_id\":\"s1\",\"cwd\":\"$root\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"px\",\"prompt\":\"/rollback\"}" |
    BELAY_BIN=$BELAY_BIN bash -c "\"\$BELAY_BIN\" hook claude $to" 2>"$scratch/err"
  rc=$?; [ "$rc" = 0 ] || fail "$to: exit $rc, $(cat "$scratch/err")"
done
run status; expect_rc 0; expect_in_out "2 answers to agents could not be given"

# --- nothing that goes wrong stops an agent; all of it is counted
for bad in '' 'not json' '[1,2]' '{"a":' "{\"hook_event_name\":{}}"; do quiet claude "$bad"; done
quiet claude "$(head -c 300000 /dev/zero | tr '\0' '[')"
hook nobody '{}'; [ "$rc" = 0 ] || fail "unknown agent: $rc"
printf 'max_files = 1\n' >"$BELAY_CONFIG"
pre p2 Bash t5 '{"command":"make"}'
run status; expect_in_out "could not be recorded"
run status --json; expect_py "any('could not be recorded' in f['what'] for f in d['failures'])"
echo "no conversation" >"$scratch/said.txt"; rm "$BELAY_CONFIG"
quiet claude "{\"session_id\":\"s1\",\"cwd\":\"$root\",\"transcript_path\":\"$scratch/said.txt\",\"hook_event_name\":\"Stop\"}"
behind_is_done
run status; expect_in_out "a conversation could not be kept"
printf 'max_files = 1\nstrict = true\n' >"$BELAY_CONFIG"
hook claude "{\"session_id\":\"s1\",\"cwd\":\"$root\",\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_use_id\":\"t6\",\"tool_input\":{}}"
[ "$rc" = 2 ] && [[ $err == *"no checkpoint"* ]] || fail "strict: $rc '$err'"
# Cline looks at what is said, and not at exit codes.
hook cline "{\"hookName\":\"tool_call\",\"taskId\":\"c1\",\"workspaceRoots\":[\"$root\"],\"tool_call\":{\"id\":\"t\",\"name\":\"run_commands\",\"input\":{\"commands\":[\"x\"]}}}" PreToolUse
[ "$rc" = 0 ] || fail "strict, cline: $rc '$err'"
expect_py "d['cancel'] is True and 'no checkpoint' in d['errorMessage']"
# ... also when it does not get as far as the directory's settings; and only of what waits.
strictly() { hook claude "{\"session_id\":\"s1\",\"cwd\":\"$root\",\"hook_event_name\":\"$1\",\"tool_name\":\"Bash\",\"tool_use_id\":\"t6\",\"tool_input\":{}}"; }
printf 'strict = true\nmax_files = "many"\n' >"$BELAY_CONFIG"
strictly PreToolUse; [ "$rc" = 2 ] || fail "strict, settings that make no sense: $rc '$err'"
printf 'strict = true\n' >"$BELAY_CONFIG"
mv "$BELAY_HOME/manifest" "$scratch/manifest"; echo garbage >"$BELAY_HOME/manifest"
strictly PreToolUse; [ "$rc" = 2 ] || fail "strict, a damaged store: $rc '$err'"
# What was swallowed is told also while nothing else can be.
run status; expect_rc 3; expect_in_err "could not be recorded"
run status --json; expect_rc 3
expect_py "d['error']['code'] == 'damaged' and any('could not be recorded' in f['what'] for f in d['failures'])"
strictly Stop; [ "$rc" = 0 ] || fail "strict, the end of a turn: $rc '$err'"
printf 'strict = false\n' >"$BELAY_CONFIG"
strictly PreToolUse; [ "$rc" = 0 ] || fail "not strict: $rc '$err'"
# Where a directory is protected at first sight and no store can be made, none is protected.
ln -s "$scratch/absent/disk" "$scratch/link"
printf 'auto = true\nstrict = true\n' >"$BELAY_CONFIG"
for home in /proc/x /sys/x "$scratch/link"; do
  BELAY_HOME=$home strictly PreToolUse; [ "$rc" = 2 ] && [[ $err == *"no checkpoint could be made: "*"store"* ]] || fail "strict, no store at $home: $rc '$err'"
done
BELAY_HOME=/proc/x hook cline "{\"taskId\":\"c\",\"workspaceRoots\":[\"$root\"],\"hookName\":\"tool_call\",\"tool_call\":{\"id\":\"x\",\"name\":\"run_commands\",\"input\":{\"commands\":[\"x\"]}}}" PreToolUse
[ "$rc" = 0 ] && expect_json; expect_py "d['cancel'] and 'cannot be made' in d['errorMessage']"
# Home is nothing that anybody asked for.
(cd "$HOME" && root=$HOME && BELAY_HOME=$scratch/fresh strictly PreToolUse && [ "$rc" = 0 ]) || fail "strict, home"
printf 'auto = true\n' >"$BELAY_CONFIG"
BELAY_HOME=/proc/x strictly PreToolUse; [ "$rc$out$err" = 0 ] || fail "not strict: $rc '$err'"
printf 'strict = true\n' >"$BELAY_CONFIG"
BELAY_HOME=$scratch/link strictly PreToolUse; [ "$rc" = 2 ] || fail "strict, the store's disk is not there: $rc '$err'"
BELAY_HOME=$scratch/none strictly PreToolUse; [ "$rc" = 0 ] || fail "strict, and nothing was ever protected: $rc '$err'"
mv "$scratch/manifest" "$BELAY_HOME/manifest"
hook claude '{}' --bogus; [ "$rc" = 0 ] || fail "a word that is not known: $rc"
printf 'enabled = false\n' >"$BELAY_CONFIG"
before=$("$BELAY_BIN" list --json --all | wc -c)
pre p2 Bash t7 '{"command":"make"}'
[ "$("$BELAY_BIN" list --json --all | wc -c)" = "$before" ] || fail "recorded although switched off"
rm "$BELAY_CONFIG"
(failures=0; unset HOME BELAY_HOME BELAY_CONFIG; prompt p3 homeless; exit "$failures") || fail "without HOME"
cd / || exit 1
mv "$root" "$root.gone"; pre p2 Bash t8 '{"command":"make"}'; mv "$root.gone" "$root"
chmod 000 "$BELAY_HOME/packs"; mv "$BELAY_HOME/manifest" "$scratch/manifest"
pre p2 Bash t9 '{"command":"make"}'
mv "$scratch/manifest" "$BELAY_HOME/manifest"; chmod 700 "$BELAY_HOME/packs"
cd "$root" || exit 1
pre p2 Bash t10 '{"command":"make"}'
run show tool:t10 --session s1; expect_rc 0

# --- another host, by the published form
quiet generic "{\"event\":\"session.begin\",\"session\":\"g1\",\"host\":\"myhost\",\"cwd\":\"$root\"}"
quiet generic "{\"event\":\"turn.begin\",\"session\":\"g1\",\"host\":\"myhost\",\"cwd\":\"$root\",\"prompt\":\"from afar\",\"turn\":\"m1\"}"
run list --json --session g1; expect_py "any(c['prompt'] == 'from afar' and c['agent'] == 'myhost' for c in d['checkpoints'])"

# --- an agent's commit goes with its turn, also after a rollback and an undo
root=$scratch/work/repo; session=g2
git init -q -b main "$root"; cd "$root" || exit 1
commit() { git -c user.name=a -c user.email=a@b.example -c core.hooksPath=/dev/null commit -q -m "$1"; }
echo 1 >f; git add f; commit one; one=$(git rev-parse HEAD)
run on; expect_rc 0
prompt q1 "commit it"
pre q1 Bash k1 '{"command":"git commit"}'
echo 2 >f; git add f; commit two; two=$(git rev-parse HEAD)
post q1 Bash k1 '{"command":"git commit"}'
for i in 1 2; do
  run rollback turn:1 --session g2 --yes; expect_rc 0
  [ "$(git rev-parse HEAD)" = "$one" ] || fail "the commit stays, time $i: $out $err"
  run undo; expect_rc 0
  [ "$(git rev-parse HEAD)" = "$two" ] || fail "the commit is not back, time $i"
done
echo 3 >f; git add f; commit three; three=$(git rev-parse HEAD)
run rollback turn:1 --session g2 --yes --exact; expect_rc 0
[ "$(git rev-parse HEAD)" = "$three" ] || fail "a commit of somebody else was taken back"

# --- what is told while Belay has the agent fork a conversation is nobody's doing
run list --all --json; before=$(grep -o '"id"' <<<"$out" | wc -l)
export BELAY_FORKING=1
prompt q9 "said by nobody"
unset BELAY_FORKING
run list --all --json; [ "$(grep -o '"id"' <<<"$out" | wc -l)" = "$before" ] || fail "a fork was recorded: $out"
prompt q9 "said by somebody"
run list --all --json; [ "$(grep -o '"id"' <<<"$out" | wc -l)" -gt "$before" ] || fail "nothing is recorded any more"

# --- auto: a new directory is protected at first sight, its whole work tree; home is not
printf 'auto = true\n' >"$BELAY_CONFIG"
mkdir -p "$scratch/work/new/deep"; git init -q "$scratch/work/new"
session=s2 root=$scratch/work/new/deep; prompt p9 hi
run roots; expect_in_out "work/new"; [[ $out == *new/deep* ]] && fail "not the work tree: $out"
session=s3 root=$HOME; prompt p9 hi; run roots; [[ $out == *"$HOME"* ]] && fail "home is protected: $out"
run off "$scratch/work/new"; expect_rc 0
session=s4 root=$scratch/work/new/deep; prompt p10 hi
run roots --json; expect_py "not any(r['root'].endswith('/new') for r in d['roots'])"
# A host may keep its end of the pipe open: what is whole is not waited for.
root=$scratch/piped; mkdir "$root"; cd "$root" || exit 1; run on; expect_rc 0
mkfifo "$scratch/open"; exec 7<>"$scratch/open"
printf '%s\n' "{\"session_id\":\"open\",\"cwd\":\"$root\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"p0\",\"prompt\":\"said and held open\"}" >&7
"$BELAY_BIN" hook claude <"$scratch/open" >"$scratch/out" 2>&1; [ "$?$(cat "$scratch/out")" = 0 ] || fail "not silent: $(cat "$scratch/out")"
run show open; expect_in_out "said and held open"
# Also one that makes no sense, or is no text: five seconds of everybody's time otherwise.
for odd in '{"session_id":"\ud800\q"}' '["}",{"a":"\"]"}]' $'{"session_id":"\xff"}'; do
  printf '%s' "$odd" >&7; began=${EPOCHREALTIME/./}
  "$BELAY_BIN" hook claude <"$scratch/open" >"$scratch/out" 2>&1; [ "$?$(cat "$scratch/out")" = 0 ] || fail "not silent: $(cat "$scratch/out")"
  (( ${EPOCHREALTIME/./} - began < 4000000 )) || fail "waited for: $odd"
done
exec 7>&-
# One that comes byte by byte is waited for as long as any other: what is whole by then
# counts, and what is not is counted.
drip() {  # BEGINNING BYTE
  python3 -c '
import os,select,signal,sys
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
try:
    os.write(1, sys.argv[1].encode())
    while True:
        select.select([], [], [], 0.005)
        os.write(1, sys.argv[2].encode())
except BrokenPipeError: pass' "$1" "$2"
}
drip "{\"session_id\":\"dripped\",\"cwd\":\"$root\",\"hook_event_name\":\"UserPromptSubmit\",\"prompt_id\":\"p1\",\"prompt\":\"said drop by drop\"}" " " |
  timeout 60 "$BELAY_BIN" hook claude >"$scratch/drip1" 2>&1 &
whole=$!
drip "{" "x" | timeout 60 "$BELAY_BIN" hook claude >"$scratch/drip2" 2>&1; [ "$?$(cat "$scratch/drip2")" = 0 ] || fail "not silent: $(cat "$scratch/drip2")"
wait $whole; [ "$?$(cat "$scratch/drip1")" = 0 ] || fail "not silent: $(cat "$scratch/drip1")"
run show dripped; expect_in_out "said drop by drop"
run status; expect_in_out "nobody said what happened"
# A long one takes its time.
python3 -c "import json,sys; json.dump({'session_id':'long','cwd':sys.argv[1],'hook_event_name':'UserPromptSubmit','prompt_id':'p2','prompt':'at length','more':'x'*50_000_000}, sys.stdout)" "$root" |
  "$BELAY_BIN" hook claude >"$scratch/out" 2>&1; [ "$?$(cat "$scratch/out")" = 0 ] || fail "not silent: $(cat "$scratch/out")"
run show long; expect_in_out "at length"
finish
