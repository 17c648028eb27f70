"""Claude Code and Codex: the same hook dialect, different everything else."""
from agent import (END, FAILED, POST, PRE, PROMPT, START, STOP, SnakeCaseAgent, nested_hooks)

CLAUDE_KINDS = {"SessionStart": START, "UserPromptSubmit": PROMPT, "PreToolUse": PRE,
                "PostToolUse": POST, "PostToolUseFailure": FAILED, "Stop": STOP,
                "SessionEnd": END}


class Claude(SnakeCaseAgent):
    name = "claude"
    has_subagents = True
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
        return [*resume, "--permission-mode", "bypassPermissions", "-p", prompt]

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
