"""Claude Code and Codex: the same hook dialect, different everything else."""
import hashlib
import json
import re

from agent import (END, FAILED, POST, PRE, PROMPT, START, STOP, SnakeCaseAgent, nested_hooks)

CLAUDE_KINDS = {"SessionStart": START, "UserPromptSubmit": PROMPT, "PreToolUse": PRE,
                "PostToolUse": POST, "PostToolUseFailure": FAILED, "Stop": STOP,
                "SessionEnd": END}


class Claude(SnakeCaseAgent):
    name = "claude"
    serial = True
    slash = "blocked"
    cannot = ("wait", "finish")
    conversations = (".claude/projects/**/*",)
    adds = ("<system-reminder>.*?</system-reminder>",)
    varies = (r"Status:\\n.*?Recent commits",)
    compacts = "/compact"
    forks = True
    kinds = CLAUDE_KINDS
    settings = (".claude/settings.json",)

    def prepare(self):
        events = [*CLAUDE_KINDS, "SubagentStop", "PreCompact", "Notification"]
        matched = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
        self.world.write(".claude/settings.json", {
            "hooks": nested_hooks(events, self.recorder(), 60, matched)})

    def environment(self):
        return {"ANTHROPIC_BASE_URL": self.world.url, "ANTHROPIC_API_KEY": "test-key",
                "IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def arguments(self, prompt):
        resume = ["--resume", self.session] if self.session else []
        return [*resume, *self.saying(prompt)]

    def saying(self, prompt):
        return ["--permission-mode", "bypassPermissions", "-p", prompt]

    def own_fork(self, prompt):
        return ["--resume", self.session, "--fork-session", *self.saying(prompt)]

    def transcripts(self):
        return self.kept(transcript=".claude/projects/*/*.jsonl",
                         subagent=".claude/projects/*/*/subagents/*.jsonl")

    def read(self, action):
        return {"name": "Read", "args": {"file_path": self.path(action["path"])}}

    def write(self, action):
        return {"name": "Write", "args": {"file_path": self.path(action["path"]),
                                          "content": action["text"]}}

    def edit(self, action):
        return {"name": "Edit", "args": {
            "file_path": self.path(action["path"]), "old_string": action["old"],
            "new_string": action["new"]}}

    def shell(self, action):
        return {"name": "Bash", "args": {"command": action["command"],
                                         "description": "Run a command"}}

    def subagent(self, action):
        return {"name": "Agent", "args": {
            "description": "delegated", "prompt": action["prompt"],
            "subagent_type": "general-purpose", "run_in_background": False}}


class Codex(SnakeCaseAgent):
    name = "codex"
    slash, shows_reason = "blocked", False
    install_flags = ("--trust",)
    cannot = ("finish",)
    forks = True
    without_screen = '[ "$1" != resume ] || set -- exec "$@"\n'
    conversations = (".codex/sessions/**/*",)
    adds = ("<environment_context>.*?</environment_context>",)
    # The id of the last message.
    varies = (r'"id": "[^"]*"(?=,\s*"role": "user",\s*"content": \[\s*\{\s*"type": "input_text",'
              r'\s*"text": "PROMPT")',)
    kinds = {key: kind for key, kind in CLAUDE_KINDS.items() if key != "PostToolUseFailure"}
    settings = (".codex/hooks.json", ".codex/config.toml")
    config = """\
# Settings of somebody who used Codex before.
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[feedback]
enabled = false

[features]
multi_agent_v2 = true

[projects."{project}"]
trust_level = "trusted"
"""

    def prepare(self):
        world = self.world
        world.write(".codex/config.toml",
                    self.config.format(url=world.url, project=world.project))
        events = [*self.kinds, "PermissionRequest", "PreCompact", "PostCompact",
                  "SubagentStart", "SubagentStop", "Interrupt"]
        hooks = world.write(".codex/hooks.json",
                            {"hooks": nested_hooks(events, self.recorder(), 60)})
        with open(world.home / ".codex/config.toml", "a", encoding="utf-8") as config:
            for event in events:
                config.write(self._trust(hooks, event))

    def _trust(self, hooks, event):
        """What the user's consent to a hook looks like; without it the hook is skipped."""
        name = re.sub(r"(?<=.)([A-Z])", r"_\1", event).lower()
        seconds = 3 if event in ("SessionEnd", "Interrupt") else 60
        seen = {"event_name": name, "hooks": [{
            "async": False, "command": self.recorder(), "timeout": seconds, "type": "command"}]}
        digest = hashlib.sha256(json.dumps(seen, separators=(",", ":")).encode()).hexdigest()
        return (f'\n[hooks.state."{hooks}:{name}:0:0"]\n'
                f'trusted_hash = "sha256:{digest}"\n')

    def environment(self):
        return {"CODEX_HOME": str(self.world.home / ".codex"), "SCRIPTED_KEY": "test-key",
                "RUST_LOG": "error"}

    def arguments(self, prompt):
        resume = ["resume", self.session] if self.session else []
        return ["exec", *resume, prompt]

    def own_fork(self, prompt):
        return ["exec", "fork", self.session, prompt]

    def transcripts(self):
        return self.kept(transcript=".codex/sessions/**/rollout-*.jsonl")

    def read(self, action):
        return self.shell({"command": f"cat {action['path']}"})

    def write(self, action):
        lines = "".join(f"+{line}\n" for line in action["text"].splitlines())
        return self._patch(f"*** Add File: {action['path']}\n{lines}")

    def edit(self, action):
        return self._patch(f"*** Update File: {action['path']}\n@@\n"
                           f"-{action['old']}\n+{action['new']}\n")

    @staticmethod
    def _patch(text):
        return {"name": "apply_patch", "input": f"*** Begin Patch\n{text}*** End Patch\n"}

    def shell(self, action):
        return {"name": "exec_command", "args": {"cmd": action["command"]}}

    def subagent(self, action):
        return {"name": "spawn_agent", "namespace": "collaboration", "args": {
            "task_name": "delegated", "message": action["prompt"], "fork_turns": "none"}}

    def wait(self, _):
        return {"name": "wait_agent", "namespace": "collaboration", "args": {}}

    def hook_tool(self, action):
        call = self.call(action)
        if call["name"] == "exec_command":
            return "Bash"
        return call.get("namespace", "") + call["name"]

    def concerns(self, event, action):
        call = self.call(action)
        if "namespace" in call:
            return event.arguments == call["args"]
        told = call["input"] if "input" in call else call["args"].get("cmd")
        return (event.arguments or {}).get("command") == told
