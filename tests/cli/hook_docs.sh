# What docs/hooks.md lets people paste works: its generic events, and the settings for
# goose and Hermes with payloads of the form that their own documents give.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
mkdir -p "$root/src" "$scratch/bin" && cd "$root" || exit 1
ln -s "$BELAY_BIN" "$scratch/bin/belay"; PATH=$scratch/bin:$PATH
cat >"$scratch/docs.py" <<'END'
import json, os, shlex, subprocess, sys

what, root = sys.argv[1:]
text = open(os.environ["BELAY_SOURCE_DIR"] + "/docs/hooks.md", encoding="utf-8").read()


def block(after, kind):
    begin = text.index("```" + kind + "\n", text.index(after)) + len(kind) + 4
    return text[begin:text.index("\n```", begin)]


def tell(argv, payload, cwd=root):
    done = subprocess.run(argv, input=json.dumps(payload), text=True, cwd=cwd, check=False,
                          capture_output=True)
    if (done.returncode, done.stdout, done.stderr) != (0, "", ""):
        sys.exit(f"{argv}: {done}")


def write(path, content):
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(content)


def generic():
    events = [json.loads(line) for line in block("## Generic events", "json").splitlines()]
    for event in events:
        if "cwd" in event:
            event["cwd"] = root
        if event["event"] == "tool.end" and event["tool"]["name"] == "edit":
            write(event["tool"]["paths"][0], "new\n")
        tell(["belay", "hook", "generic"], event)


def goose():
    json.loads(block("**goose**", "json"))
    hooks = json.loads(block("`hooks/hooks.json`", "json"))["hooks"]

    def fire(event, **more):
        (rule,) = hooks[event]
        (action,) = rule["hooks"]
        assert action["type"] == "command" and action["timeout"] == 60
        tell(["sh", "-c", action["command"]], {"event": event, "session_id": "g1", **more})

    def call(event, name, tool_input, id, **more):
        fire(event, matcher_context=name, tool_call_id=id, tool_name=name,
             tool_input=tool_input, working_dir=root, **more)

    fire("SessionStart")
    fire("UserPromptSubmit", matcher_context="make it", message="make it")
    call("PreToolUse", "write", {"path": "src/goose", "content": "x"}, "c1")
    write("src/goose", "x")
    call("PostToolUse", "write", {"path": "src/goose", "content": "x"}, "c1", tool_output=[])
    call("PreToolUse", "shell", {"command": "rm nothing"}, "c2")
    write("shell", "x")
    call("PostToolUseFailure", "shell", {"command": "rm nothing"}, "c2", tool_output="no")
    fire("Stop", last_assistant_message="done", working_dir=root)
    fire("SessionEnd")


def hermes():
    commands, event = {}, None
    for line in block("**Hermes**", "yaml").splitlines()[1:]:
        key, _, value = line.strip().removeprefix("- ").partition(":")
        if value:
            commands[event][key] = value.strip().strip('"')
        else:
            event = key
            commands[event] = {}

    def fire(event, name=None, tool_input=None, **extra):
        assert commands[event]["timeout"] == "60"
        tell(shlex.split(commands[event]["command"]), {
            "hook_event_name": event, "tool_name": name, "tool_input": tool_input,
            "session_id": "h1", "cwd": root, "profile": "default", "extra": extra})

    ids = {"task_id": "x", "turn_id": "t1"}
    fire("on_session_start", model="m", platform="cli")
    fire("pre_llm_call", **ids, user_message="mend it", conversation_history=[])
    patch = {"mode": "replace", "path": "src/goose", "old_string": "x", "new_string": "y"}
    fire("pre_tool_call", "patch", patch, **ids, tool_call_id="p1")
    write("src/goose", "y")
    fire("post_tool_call", "patch", patch, **ids, tool_call_id="p1", status="success")
    fire("subagent_stop", **ids)
    fire("on_session_end", **ids, completed=True)
    fire("on_session_finalize", platform="cli")


{"generic": generic, "goose": goose, "hermes": hermes}[what]()
END
run on; expect_rc 0
run checkpoint -q; expect_rc 0  # the one of a session's start is made behind its hook
for who in generic goose hermes; do python3 "$scratch/docs.py" $who "$root" || fail "$who"; done

run list --json --all --tools; expect_rc 0
expect_py "[(c['agent'], c['turn'], c['description'], (c['tool'] or {}).get('id')) for c in reversed(d['checkpoints'])
    if c['session'] and c['description'] != 'session started'] == [
  ('acme', 1, 'rename the module', None), ('acme', 1, 'before edit src/app.ts', 'c-9'), ('acme', 1, 'after edit src/app.ts', 'c-9'),
  ('acme', 1, 'before shell: make', 'c-10'),
  ('goose', 1, 'make it', None), ('goose', 1, 'before write src/goose', 'c1'), ('goose', 1, 'after write src/goose', 'c1'),
  ('goose', 1, 'before shell: rm nothing', 'c2'), ('goose', 1, 'after shell: rm nothing', 'c2'),
  ('hermes', 1, 'mend it', None), ('hermes', 1, 'before patch src/goose', 'p1'), ('hermes', 1, 'after patch src/goose', 'p1')]"
run log --json -- .; expect_rc 0
expect_py "{(c['path'], c['author']['session'], c['author']['tool_id']) for c in d['changes'] if c['author']['kind'] == 'session'} == {
  ('src/app.ts', 's-17', 'c-9'), ('src/goose', 'g1', 'c1'), ('shell', 'g1', 'c2'), ('src/goose', 'h1', 'p1')}"
run rollback tool:p1 --session h1 --yes; expect_rc 0
[ "$(cat src/goose)" = x ] || fail "the patch is not taken back"
# Without hooks.
run run --name goose -- sh -c 'echo made >made'; expect_rc 0
run list --json -n 3; expect_py "sum(c['name'] == 'goose' or 'goose' in c['description'] for c in d['checkpoints']) > 0"
run rollback 2 --dry-run --json; expect_py "[s['path'] for s in d['steps']] == ['made']"
# They are known to hooks, not to install.
run install goose; expect_rc 2; expect_in_err "not 'goose'"
finish
