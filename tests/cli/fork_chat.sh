# belay fork with the conversation: of each agent where it looks for those of the new directory, several side by side, killed anywhere.
. "$(dirname "$0")/lib.bash"
command -v strace >/dev/null || { echo "strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
home=$scratch/home
mkdir -p "$root/sub" "$scratch/bin" && cd "$root" || exit 1
echo one >a
run on; expect_rc 0
field() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))" "$scratch/out" "$1"; }
dashed() { printf '%s' "$1" | tr -c 'a-zA-Z0-9' -; }
digest() { printf '%s' "$1" | sha256sum | cut -d' ' -f1; }
event() { # AGENT SESSION TRANSCRIPT EVENT MORE
  printf '%s' "{\"session_id\":\"$2\",\"cwd\":\"$root\",\"transcript_path\":\"$3\",\"hook_event_name\":\"$4\"${5:+,$5}}" |
    "$BELAY_BIN" hook "$1" >/dev/null 2>"$scratch/err" || fail "hook: exit $?"
}
prints() { (cd "$home" && find . -type f -exec sha256sum {} + | sort -k2); }

# --- Claude Code: three turns, forked at the second
claude=11111111-1111-4111-8111-111111111111
talk=$home/.claude/projects/$(dashed "$root")/$claude.jsonl
mkdir -p "${talk%/*}"
parent=null
turn() {
  event claude $claude "$talk" UserPromptSubmit "\"prompt_id\":\"p$1\",\"prompt\":\"$2\""
  printf '{"parentUuid":%s,"type":"user","uuid":"u%s","sessionId":"%s","cwd":"%s","promptId":"p%s","message":{"role":"user","content":"%s in %s/sub, not in %s-2"}}\n' \
    "$parent" "$1" "$claude" "$root" "$1" "$2" "$root" "$root" >>"$talk"
  echo "$2" >>a
  printf '{"parentUuid":"u%s","type":"assistant","uuid":"a%s","sessionId":"%s","cwd":"%s","message":{"id":"m%s","role":"assistant","content":[{"type":"text","text":"answer %s"}]}}\n' \
    "$1" "$1" "$claude" "$root" "$1" "$1" >>"$talk"
  parent="\"a$1\""
  event claude $claude "$talk" Stop
}
event claude $claude "$talk" SessionStart '"source":"startup"'
turn 1 "first wish"; turn 2 "second wish"; turn 3 "third wish"
cp "$talk" "$scratch/talk"; prints >"$scratch/before"; cp -a "$root" "$scratch/tree"

run fork turn:2 "$scratch/f1"; expect_rc 0
expect_in_out "goes along as session"; expect_in_out "from before turn 2 on"; expect_in_out "cd $scratch/f1 && claude --resume"
[ "$(cat "$scratch/f1/a")" = "$(printf 'one\nfirst wish')" ] || fail "files: $(cat "$scratch/f1/a")"
run sessions --root "$scratch/f1" --json; expect_rc 0
expect_py "[(s['parent'], s['inherited_turns']) for s in d['sessions']] == [('$claude', 1)]"
f1=$(field "d['sessions'][0]['id']")
copy=$home/.claude/projects/$(dashed "$scratch/f1")/$f1.jsonl
[ -e "$copy" ] || fail "not where the agent looks: $(find "$home" -name '*.jsonl')"
[ "$(wc -l <"$copy")" = 2 ] || fail "the copy: $(cat "$copy")"
grep -q "\"cwd\":\"$scratch/f1\"" "$copy" && grep -q "in $scratch/f1/sub, not in $root-2" "$copy" || fail "paths: $(cat "$copy")"
grep -q "$root[\"/]\|$claude" "$copy" && fail "the old directory or id: $(cat "$copy")"
prints | grep -v "$f1" | cmp -s - "$scratch/before" || fail "something else changed in the agent's home"
diff -r "$root" "$scratch/tree" >/dev/null || fail "the source changed"
# The original goes on as it was.
run resume $claude --dry-run; expect_in_out "claude --resume $claude"
"$BELAY_BIN" events --all | tail -3 | python3 -c "
import json, sys
on, made, known = [json.loads(line) for line in sys.stdin]
assert on['type'] == 'root.on' and made['type'] == 'checkpoint.made', (on, made)
assert known['type'] == 'session.known' and known['session'] == '$f1' and known['parent'] == '$claude', known" || fail "events: $("$BELAY_BIN" events --all | tail -3)"
# It is resumed there, from anywhere.
printf '#!/bin/sh\npwd\necho "$@"\n' >"$scratch/bin/claude"; chmod +x "$scratch/bin/claude"
got=$(cd / && PATH=$scratch/bin:$PATH "$BELAY_BIN" resume "$f1" 2>"$scratch/err")
[ "$got" = "$(printf '%s\n--resume %s' "$scratch/f1" "$f1")" ] || fail "resume ran: $got $(cat "$scratch/err")"
run show "$f1" --root "$scratch/f1"; expect_rc 0; expect_in_out "first wish"

# --- several side by side, of a state after which nothing was said all of it
run checkpoint -m present --session $claude; expect_rc 0
for n in 2 3 4; do
  run fork now-is-no-name "$scratch/f$n"; expect_rc 1
  run fork now "$scratch/f$n"; expect_rc 2
  run fork 1 "$scratch/f$n" --json; expect_rc 0
  expect_py "d['chat']['session'] == '$claude' and d['chat']['messages_taken_back'] == 0 and d['chat']['messages_kept'] == 6 and d['chat']['cwd'] == '$scratch/f$n' and d['chat']['transcript'] and d['chat']['resume'].startswith('claude --resume ')"
  copy=$(field "d['chat']['transcript']")
  [ "$copy" = "$home/.claude/projects/$(dashed "$scratch/f$n")/$(field "d['chat']['forked']").jsonl" ] && [ "$(wc -l <"$copy")" = 6 ] || fail "fork $n: $copy"
  grep -q "$root[\"/]" "$copy" && fail "fork $n: the old directory"
done
run fork 1 "$scratch/f5" --no-chat --json; expect_rc 0; expect_py "d['chat'] is None"
run fork turn:1 "$scratch/f6" --json; expect_rc 0
expect_py "d['chat'] is None and d['warnings'] == ['no conversation goes along: nothing was said before that checkpoint']"
cmp -s "$talk" "$scratch/talk" || fail "the original was changed"
# A fork is forked, just made; what belongs to no conversation takes none along, which is said.
(cd "$scratch/f2" && "$BELAY_BIN" fork 1 "$scratch/f8" --json >"$scratch/out") || fail "a fork of a fork"
expect_py "d['chat']['session'] != '$claude' and d['chat']['messages_kept'] == 6 and d['chat']['cwd'] == '$scratch/f8'"
run sessions --root "$scratch/f8" --json; expect_rc 0
expect_py "[(s['roots'], s['turns'] + s['inherited_turns']) for s in d['sessions']] == [(['$scratch/f8'], 3)] and d['sessions'][0]['file_bytes'] > 500"
run sessions --root "$scratch/f8"; expect_in_out "3 turns, 0 checkpoints, conversation "
run checkpoint -m "of nobody" --root "$scratch/f8"; expect_rc 0; run fork 1 "$scratch/f9" --root "$scratch/f8" --json; expect_rc 0
expect_py "d['chat'] is None"; expect_in_err "no conversation goes along"
# A fork is forked; its directory may be there, empty.
mkdir "$scratch/f7"
(cd "$scratch/f1" && "$BELAY_BIN" checkpoint --session "$f1" -q >/dev/null && "$BELAY_BIN" fork 1 "$scratch/f7" --json >"$scratch/out")
expect_py "d['chat']['session'] == '$f1' and d['chat']['cwd'] == '$scratch/f7'"

# --- Qwen Code, Gemini CLI, Codex, Copilot CLI
qwen=22222222-2222-4222-8222-222222222222
at=$home/.qwen/projects/$(dashed "$root")/chats/$qwen.jsonl; mkdir -p "${at%/*}"
event qwen $qwen "$at" UserPromptSubmit '"prompt":"hello","submitted_prompt":"hello"'
printf '{"uuid":"q1","parentUuid":null,"sessionId":"%s","type":"user","provenance":"real_user","cwd":"%s","message":{"role":"user","parts":[{"text":"hello"}]}}\n{"uuid":"q2","parentUuid":"q1","sessionId":"%s","type":"assistant","cwd":"%s","message":{"role":"model","parts":[{"text":"hi"}]}}\n' $qwen "$root" $qwen "$root" >"$at"
event qwen $qwen "$at" Stop; run checkpoint --session $qwen; expect_rc 0
run fork 1 "$scratch/q1" --session $qwen --json; expect_rc 0
[ "$(field "d['chat']['transcript']")" = "$home/.qwen/projects/$(dashed "$scratch/q1")/chats/$(field "d['chat']['forked']").jsonl" ] || fail "qwen: $(cat "$scratch/out")"
grep -q "$root\"" "$(field "d['chat']['transcript']")" && fail "qwen: the old directory"

gemini=33333333-3333-4333-8333-333333333333
at=$home/.gemini/tmp/project/chats/session-2026-11-15T01-43-33333333.jsonl; mkdir -p "${at%/*}" "$home/.gemini/tmp/g1"
printf '%s' "$root" >"$home/.gemini/tmp/project/.project_root"; printf /elsewhere >"$home/.gemini/tmp/g1/.project_root"
event gemini $gemini "$at" BeforeAgent '"prompt":"hello"'
printf '{"sessionId":"%s","projectHash":"%s","startTime":"t","kind":"main"}\n{"id":"g1","type":"user","content":[{"text":"hello"}]}\n{"id":"g2","type":"gemini","content":"see %s/a"}\n' $gemini "$(digest "$root")" "$root" >"$at"
event gemini $gemini "$at" AfterAgent; run checkpoint --session $gemini; expect_rc 0
for n in 1 2; do
  run fork 1 "$scratch/G$n" --session $gemini --json; expect_rc 0
  copy=$(field "d['chat']['transcript']"); id=$(field "d['chat']['forked']")
  want=g$n; [ $n = 1 ] && want=g1-1  # g1 is somebody else's
  [ "$copy" = "$home/.gemini/tmp/$want/chats/session-2026-11-15T01-43-${id:0:8}.jsonl" ] || fail "gemini: $copy"
  [ "$(cat "$home/.gemini/tmp/$want/.project_root")" = "$scratch/G$n" ] || fail "gemini: whose it is"
  grep -q "$(digest "$scratch/G$n")" "$copy" && grep -q "see $scratch/G$n/a" "$copy" || fail "gemini: $(cat "$copy")"
done

codex=44444444-4444-4444-8444-444444444444
at=$home/.codex/sessions/2026/11/15/rollout-2026-11-15T01-00-00-$codex.jsonl; mkdir -p "${at%/*}"
event codex $codex "$at" UserPromptSubmit '"turn_id":"t1","prompt":"hello"'
printf '{"type":"session_meta","payload":{"id":"%s","cwd":"%s"}}\n{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}\n{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}\n{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}\n' $codex "$root" >"$at"
event codex $codex "$at" Stop; run checkpoint --session $codex; expect_rc 0
run fork 1 "$scratch/c1" --session $codex --json; expect_rc 0
copy=$(field "d['chat']['transcript']")
[ "$copy" = "${at%/*}/rollout-2026-11-15T01-00-00-$(field "d['chat']['forked']").jsonl" ] && grep -q "\"cwd\":\"$scratch/c1\"" "$copy" || fail "codex: $copy"

# --- directories with odd names: the copy can be read, or does not go along
odd=$scratch/new$'\n'line$'\t'é
run fork 1 "$odd" --session $codex --json; expect_rc 0
python3 - "$(field "d['chat']['transcript']")" "$odd" <<'PY' || fail "codex: no JSON, or not the directory"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
sys.exit(lines[0]["payload"]["cwd"] != sys.argv[2])
PY
run fork 1 "$scratch/bad"$'\xff' --session $codex --json; expect_rc 0; expect_py "d['chat'] is None"; expect_in_err "not UTF-8"
[ -e "$scratch/bad"$'\xff'/a ] || fail "the files of a directory that is not UTF-8"

copilot=55555555-5555-4555-8555-555555555555
at=$home/.copilot/session-state/$copilot/events.jsonl; mkdir -p "${at%/*}"
hook_copilot() { printf '%s' "{\"sessionId\":\"$copilot\",\"cwd\":\"$root\"${2:+,$2}}" | "$BELAY_BIN" hook copilot "$1" >/dev/null 2>&1; }
hook_copilot userPromptSubmitted '"prompt":"hello"'
printf '{"type":"session.start","data":{"sessionId":"%s","context":{"cwd":"%s"}},"id":"e1","parentId":null}\n{"type":"user.message","data":{"content":"hello"},"id":"e2","parentId":"e1"}\n{"type":"assistant.message","data":{"content":"hi","toolRequests":[]},"id":"e3","parentId":"e2"}\n' $copilot "$root" >"$at"
printf 'id: %s\ncwd: %s\ngit_root: %s\nother: %s-2\n' $copilot "$root" "$root" "$root" >"${at%/*}/workspace.yaml"
hook_copilot agentStop "\"transcriptPath\":\"$at\""; run checkpoint --session $copilot; expect_rc 0
run fork 1 "$scratch/p1" --session $copilot --json; expect_rc 0
id=$(field "d['chat']['forked']"); copy=$home/.copilot/session-state/$id
[ "$(cat "$copy/workspace.yaml")" = "$(printf 'id: %s\ncwd: %s\ngit_root: %s\nother: %s-2' "$id" "$scratch/p1" "$scratch/p1" "$root")" ] || fail "copilot: $(cat "$copy/workspace.yaml")"
grep -q "\"cwd\":\"$scratch/p1\"" "$copy/events.jsonl" || fail "copilot: $(cat "$copy/events.jsonl")"

run fork 1 "$scratch/odd-copilot"$'\n' --session $copilot --json; expect_rc 0
grep -qF "cwd: \"$scratch/odd-copilot\\n\"" "$home/.copilot/session-state/$(field "d['chat']['forked']")/workspace.yaml" || fail "copilot: the workspace of an odd name"

# --- those whose conversation cannot be copied: the files alone, and that is said
printf '%s' "{\"hookName\":\"agent_start\",\"taskId\":\"t1\",\"workspaceRoots\":[\"$root\"],\"prompt\":\"do it\"}" | "$BELAY_BIN" hook cline >/dev/null 2>&1
run checkpoint --session t1; expect_rc 0
run fork 1 "$scratch/l1" --session t1 --json; expect_rc 0; expect_py "d['chat'] is None"; expect_in_err "does not go along"

# --- opencode: its own program exports the conversation, and imports the copy in the new directory
cat >"$scratch/opencode" <<'PY'
#!/usr/bin/env python3
# export and import of opencode, on files instead of a database.
import json, os, sys
db, fails = os.environ["FAKE_DB"], os.environ.get("FAKE_FAILS", "")
what, word = sys.argv[1:]
with open(os.path.join(db, "asked"), "a") as asked:
    print(what, word if what == "export" else "FILE", os.getcwd(), os.environ["PWD"], os.environ["BELAY_FORKING"], file=asked)
if fails == what:
    sys.exit("\033[91mError: \033[0mno such thing")
if what == "export":
    if fails == "rubbish":
        print("{ rubbish }")
        sys.exit()
    with open(os.path.join(db, word)) as file:
        said = json.dumps(json.load(file), indent=2).encode() + b"\n"
    print("Exporting session:", word, file=sys.stderr)
    os.set_blocking(1, False)  # as opencode does: what a pipe does not take is lost
    try:
        os.write(1, said)
    except BlockingIOError:
        pass
    os._exit(0)
assert what == "import" and os.stat(word).st_mode & 0o777 == 0o600, word
if fails == "interrupted":
    os.kill(os.getppid(), 9)
    sys.exit(1)
with open(word) as file:
    new = json.load(file)
used = set()
for name in os.listdir(db):
    if name.startswith("ses_"):
        with open(os.path.join(db, name)) as file:
            used.add(name)
            for m in json.load(file)["messages"]:
                used |= {m["info"]["id"], *(p["id"] for p in m["parts"])}
mine = [new["info"]["id"], *(i for m in new["messages"] for i in (m["info"]["id"], *(p["id"] for p in m["parts"])))]
assert len(set(mine)) == len(mine) and not used & set(mine), mine
new["info"]["directory"] = os.getcwd()
with open(os.path.join(db, mine[0]), "w") as file:
    json.dump(new, file)
print("Imported session: " + ("ses_other" if fails == "name" else mine[0]))
PY
chmod +x "$scratch/opencode"
db=$scratch/db; mkdir "$db"
opencode() { printf '%s' "{\"sessionID\":\"${3:-ses_1}\",\"directory\":\"$root\"${2:+,$2}}" | "$BELAY_BIN" hook opencode "$1" >/dev/null 2>&1; }
for i in 1 2 3; do
  opencode chat.message '"message":{"id":"msg_'$i'"},"parts":[{"type":"text","text":"wish '$i'"}]'; echo "oc $i" >>a; opencode session.idle
done
python3 - "$db/ses_1" "$root" <<'PY'
import json, sys
root, messages = sys.argv[2], []
for i in (1, 2, 3):
    # The first is more than a pipe holds.
    for role, name, text in (("user", f"msg_{i}", f"wish {i} in {root}/sub, not in {root}-2" + "x" * (300000 if i == 1 else 0)), ("assistant", f"msg_{i}a", f"{root}/a\n{root}/b")):
        part = {"type": "text", "text": text, "id": name.replace("msg", "prt"), "sessionID": "ses_1", "messageID": name}
        info = {"role": role, "id": name, "sessionID": "ses_1", **({"parentID": f"msg_{i}"} if role == "assistant" else {})}
        messages.append({"info": info, "parts": [part]})
info = {"id": "ses_1", "directory": root, "title": "t", "time": {"created": 1, "updated": 2}}
json.dump({"info": info, "messages": messages}, open(sys.argv[1], "w"))
PY
cp "$db/ses_1" "$scratch/ses_1"
run checkpoint --session ses_1; expect_rc 0
export FAKE_DB=$db
run fork 1 "$scratch/o0" --session ses_1 --json; expect_rc 0; expect_py "d['chat'] is None"; expect_in_err "does not go along: opencode is not in PATH"
cp "$scratch/opencode" "$scratch/bin/opencode"; export PATH=$scratch/bin:$PATH
copied() { # SESSION DIR TURNS: what the copy has
  python3 - "$db/$1" "$1" "$scratch/$2" "$3" "$root" <<'PY' || fail "the copy $1: $(cut -c1-2000 "$db/$1")"
import json, re, sys
new, (session, here, turns, root) = json.load(open(sys.argv[1])), sys.argv[2:]
assert new["info"]["id"] == session and new["info"]["directory"] == here and re.fullmatch("ses_[0-9a-f]{12}[0-9A-Za-z]{14}", session)
messages = new["messages"]
assert len(messages) == 2 * int(turns), len(messages)
ids = [m["info"]["id"] for m in messages]
parts = [m["parts"][0]["id"] for m in messages]
assert ids == sorted(ids) and parts == sorted(parts)
for at, m in enumerate(messages):
    part, i = m["parts"][0], at // 2 + 1
    assert part["messageID"] == m["info"]["id"] and part["sessionID"] == m["info"]["sessionID"] == session
    assert m["info"].get("parentID") == (ids[at - 1] if at % 2 else None)
    assert part["text"].rstrip("x") == (f"{here}/a\n{here}/b" if at % 2 else f"wish {i} in {here}/sub, not in {root}-2"), part["text"][:100]
PY
}
# All of it, where nothing was said since, and cut.
run fork 1 "$scratch/o1" --session ses_1 --json; expect_rc 0
new=$(field "d['chat']['forked']")
expect_py "d['chat']['resume'] == 'opencode -s $new' and d['chat']['cwd'] == '$scratch/o1' and d['chat']['messages_kept'] == 6 and d['chat']['messages_taken_back'] == 0 and d['warnings'] == []"
copied "$new" o1 3
run sessions --root "$scratch/o1" --json; expect_py "[(s['id'], s['parent'], s['inherited_turns']) for s in d['sessions']] == [('$new', 'ses_1', 3)]"
run fork turn:3 "$scratch/o2" --session ses_1; expect_rc 0
expect_in_out "from before turn 3 on"; expect_in_out "cd $scratch/o2 && opencode -s ses_"
run sessions --root "$scratch/o2" --json; new2=$(field "d['sessions'][0]['id']"); expect_py "[(s['parent'], s['inherited_turns']) for s in d['sessions']] == [('ses_1', 2)]"
copied "$new2" o2 2
[ "$(cat "$scratch/o2/a")" = "$(sed '/oc 3/d' a)" ] || fail "opencode: files: $(cat "$scratch/o2/a")"
[ "$(cat "$db/asked")" = "$(for n in 1 2; do printf 'export ses_1 %s %s 1\nimport FILE %s %s 1\n' "$scratch/o$n" "$scratch/o$n" "$scratch/o$n" "$scratch/o$n"; done)" ] || fail "opencode was asked: $(cat "$db/asked")"
cmp -s "$db/ses_1" "$scratch/ses_1" || fail "opencode: the original"
ls "$BELAY_HOME/journal" | grep -q fork && fail "left in the store: $(ls "$BELAY_HOME/journal")"
# It is resumed there, from anywhere: opencode believes PWD.
printf '#!/usr/bin/env python3\nimport os, sys\nprint(os.getcwd(), os.environ["PWD"], *sys.argv[1:])\n' >"$scratch/bin/opencode"
got=$(cd / && "$BELAY_BIN" resume "$new2" 2>"$scratch/err")
[ "$got" = "$scratch/o2 $scratch/o2 -s $new2" ] || fail "resume ran: $got $(cat "$scratch/err")"
cp "$scratch/opencode" "$scratch/bin/opencode"
# A turn that it inherited is exported of the session in which it was said.
(cd "$scratch/o2" && "$BELAY_BIN" fork 1 "$scratch/o3" --json >"$scratch/out" 2>"$scratch/err") || fail "a fork of a fork: $(cat "$scratch/err")"
copied "$(field "d['chat']['forked']")" o3 2; expect_py "d['chat']['session'] == '$new2' and d['chat']['messages_kept'] == 4"
run fork turn:2 "$scratch/o4" --session "$new2" --json; expect_rc 0
copied "$(field "d['chat']['forked']")" o4 1; expect_py "d['chat']['session'] == '$new2'"
grep -q "^export ses_1 $scratch/o4 " "$db/asked" || fail "opencode was asked: $(cat "$db/asked")"
# Taken back in the fork, too, since opencode's own fork would stay in the first directory.
run rewind "$new2" --to turn:2 --root "$scratch/o2" --json; expect_rc 0
copied "$(field "d['chat']['forked']")" o2 1; expect_py "d['chat']['cwd'] == '$scratch/o2'"
run fork turn:1 "$scratch/o5" --session ses_1 --json; expect_rc 0; expect_py "d['chat'] is None and d['warnings'] == ['no conversation goes along: nothing was said before that checkpoint']"
# Whatever fails, the files are forked, that is said, and nothing is left.
n=5
for row in "export|could not export the conversation: it ended with exit code 1: Error: no such thing" "rubbish|does not go along: " "import|could not import the copy: it ended with exit code 1" "name|did not say that it has it: Imported session: ses_other"; do
  n=$((n + 1))
  FAKE_FAILS=${row%%|*} run fork 1 "$scratch/o$n" --session ses_1 --json; expect_rc 0
  expect_py "d['chat'] is None and len(d['warnings']) == 1"; expect_in_err "the conversation does not go along: "; expect_in_err "${row#*|}"
  cmp -s a "$scratch/o$n/a" || fail "${row%%|*}: the files"
  run sessions --root "$scratch/o$n" --json; expect_py "d['sessions'] == []"
  ls "$BELAY_HOME/journal" | grep -q fork && fail "left in the store: $(ls "$BELAY_HOME/journal")"
done
# Killed while it imports: the next command there names the copy, and nothing is left.
{ FAKE_FAILS=interrupted "$BELAY_BIN" fork 1 "$scratch/o11" --session ses_1 >"$scratch/out"; } 2>/dev/null && fail "not killed"
[ -e "$scratch/o11/a" ] && ls "$BELAY_HOME/journal" | grep -q 'fork.json$' || fail "no note: $(ls "$BELAY_HOME/journal")"
run checkpoint --root "$scratch/o11"; expect_in_err "opencode was asked for a copy of the conversation of session ses_1, ses_"
ls "$BELAY_HOME/journal" | grep -q fork && fail "left in the store: $(ls "$BELAY_HOME/journal")"
run checkpoint --root "$scratch/o11"; grep -q "asked for a copy" "$scratch/err" && fail "said twice"

# --- killed anywhere: directory and conversation, or neither
ref=$("$BELAY_BIN" list --all --json | python3 -c 'import json,sys; print([c["id"] for c in json.load(sys.stdin)["checkpoints"] if c["name"] == "present"][0])')
slug=$home/.claude/projects/$(dashed "$scratch/k")
kills=0
for ((call = 1; ; call += 17)); do
  killed_at $call fork "$ref" "$scratch/k" || break
  kills=$((kills + 1))
  run fork "$ref" "$scratch/after.$call"; expect_rc 0
  find "$scratch" -name '.belay-fork*' | grep -q . && fail "left call $call: $(find "$scratch" -name '.belay-fork*')"
  if [ -e "$scratch/k" ]; then
    run sessions --root "$scratch/k" --json; expect_rc 0
    expect_py "len(d['sessions']) == 1 and d['sessions'][0]['parent'] == '$claude'"
    [ -s "$slug/$(field "d['sessions'][0]['id']").jsonl" ] || fail "no conversation call $call"
    run off --forget --yes "$scratch/k"; rm -rf "$scratch/k" "$slug"
  else
    [ -e "$slug" ] && fail "a conversation without its directory call $call"
  fi
done
[ $kills -ge 5 ] || fail "killed $kills times"
run verify --read-data; expect_rc 0
finish
