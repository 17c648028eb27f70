"""Reasonix, Copilot CLI, opencode and Cline: each with a dialect of its own."""
import json

from agent import END, FAILED, POST, PRE, PROMPT, START, STOP, Agent, wait_until


class Reasonix(Agent):
    name = "reasonix"
    rewinds = False
    adds = ("<session-context .*?</session-context>",)
    slash = "blocked"
    serial = True
    tells_subagents = False
    cannot = ("wait", "finish")
    kinds = {"SessionStart": START, "UserPromptSubmit": PROMPT, "PreToolUse": PRE,
             "PostToolUse": POST, "Stop": STOP, "SessionEnd": END}
    settings = (".reasonix/settings.json",)
    config = """\
default_model = "scripted/scripted"

[[providers]]
name = "scripted"
kind = "openai"
base_url = "{url}/v1"
api_key_env = "SCRIPTED_KEY"
models = ["scripted"]
"""

    def prepare(self):
        events = [*self.kinds, "SubagentStop", "Notification", "PreCompact"]
        self.world.write(".reasonix/config.toml", self.config.format(url=self.world.url))
        self.world.write(".reasonix/.env", "SCRIPTED_KEY=test-key\n")
        self.world.write(".reasonix/settings.json", {"hooks": {
            event: [{"command": self.recorder(), "timeout": 60000, "description": "recorder"}]
            for event in events}})

    def environment(self):
        return {"REASONIX_NO_UPDATE_CHECK": "1", "REASONIX_TELEMETRY": "off"}

    def arguments(self, prompt):
        resume = ["--resume", self.session] if self.session else []
        return ["run", *resume, "--permission-mode", "danger-full-access", prompt]

    def read_event(self, note):
        payload = json.loads(note["stdin"])
        event = self.make_event(note, payload["event"], payload)
        event.session, event.prompt = payload.get("sessionId"), payload.get("prompt")
        event.tool, event.arguments = payload.get("toolName"), payload.get("toolArgs")
        return event

    def read(self, action):
        return {"name": "read_file", "args": {"path": action["path"]}}

    def write(self, action):
        return {"name": "write_file", "args": {"path": action["path"],
                                               "content": action["text"]}}

    def edit(self, action):
        return {"name": "edit_file", "args": {
            "path": action["path"], "old_string": action["old"], "new_string": action["new"]}}

    def shell(self, action):
        return {"name": "bash", "args": {"command": action["command"]}}

    def subagent(self, action):
        # In the foreground 1.38.11 waits for ever: the call holds what its subagent needs.
        return {"name": "use_capability", "args": {
            "action": "call", "capability_id": "tool:task", "arguments": {
                "description": "delegated", "prompt": action["prompt"],
                "run_in_background": True}}}

    def settle(self):
        """While a subagent runs, most calls of its parent are refused, the one that would
        wait for it too."""
        tasks = list(self.world.project.glob(".reasonix/tasks/*/snapshot.json"))
        wait_until(lambda: all('"runtime_state":"exited"' in task.read_text() for task in tasks))

    def hook_tool(self, action):
        """Hooks see what is called through the proxy, not the proxy."""
        return "task" if action["do"] == "subagent" else super().hook_tool(action)

    def concerns(self, event, action):
        if action["do"] == "subagent":
            return event.arguments == self.call(action)["args"]["arguments"]
        return super().concerns(event, action)


class Copilot(Agent):
    name = "copilot"
    event_argument = True
    conversations = (".copilot/session-state/*/events.jsonl",
                     ".copilot/session-state/*/workspace.yaml")
    adds = ("<current_datetime>.*?</current_datetime>",)
    varies = ("<current_datetime>.*?</current_datetime>",)
    slash = "blocked"
    cannot = ("wait", "finish")
    kinds = {"sessionStart": START, "userPromptSubmitted": PROMPT, "preToolUse": PRE,
             "postToolUse": POST, "postToolUseFailure": FAILED, "agentStop": STOP,
             "sessionEnd": END}
    settings = (".copilot/hooks/belay.json",)

    def prepare(self):
        events = [*self.kinds, "subagentStart", "subagentStop", "preCompact", "errorOccurred"]
        self.world.write(".copilot/hooks/recorder.json", {"version": 1, "hooks": {
            event: [{"type": "command", "bash": self.recorder(event), "timeoutSec": 60}]
            for event in events}})

    def environment(self):
        return {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": self.world.url + "/v1",
                "COPILOT_PROVIDER_API_KEY": "test-key", "COPILOT_MODEL": "gpt-4.1",
                "COPILOT_AUTO_UPDATE": "false", "COPILOT_ALLOW_ALL": "true"}

    def arguments(self, prompt):
        resume = ["--resume", self.session] if self.session else []
        return [*resume, *self.saying(prompt)]

    def saying(self, prompt):
        return ["--allow-all-tools", "--allow-all-paths", "-p", prompt]

    def read_event(self, note):
        payload = json.loads(note["stdin"])
        event = self.make_event(note, note["argument"], payload)
        event.session, event.prompt = payload.get("sessionId"), payload.get("prompt")
        event.tool, event.arguments = payload.get("toolName"), payload.get("toolArgs")
        return event

    def is_subagent(self, event):
        return "agentId" in event.payload

    def transcripts(self):
        return self.kept(transcript=".copilot/session-state/*/events.jsonl",
                         workspace=".copilot/session-state/*/workspace.yaml")

    def read(self, action):
        return {"name": "view", "args": {"path": self.path(action["path"])}}

    def write(self, action):
        return {"name": "create", "args": {"path": self.path(action["path"]),
                                           "file_text": action["text"]}}

    def edit(self, action):
        return {"name": "edit", "args": {"path": self.path(action["path"]),
                                         "old_str": action["old"], "new_str": action["new"]}}

    def shell(self, action):
        return {"name": "bash", "args": {"command": action["command"],
                                         "description": "Run a command"}}

    def subagent(self, action):
        return {"name": "task", "args": {
            "agent_type": "general-purpose", "name": "delegated", "description": "delegated",
            "prompt": action["prompt"], "mode": "sync"}}
