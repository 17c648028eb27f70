"""Reasonix, Copilot CLI, opencode and Cline: each with a dialect of its own."""
import json

from agent import END, OTHER, POST, PRE, PROMPT, START, STOP, Agent, wait_until


class Reasonix(Agent):
    name = "reasonix"
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
