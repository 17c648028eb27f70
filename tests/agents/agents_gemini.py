"""Gemini CLI and Qwen Code, which grew out of it."""
from agent import (END, POST, PRE, PROMPT, START, STOP, SnakeCaseAgent, nested_hooks)
from agents_claude import CLAUDE_KINDS


class Gemini(SnakeCaseAgent):
    name = "gemini"
    marks_subagents = False
    slash = "command"
    cannot = ("wait",)
    conversations = (".gemini/tmp/*/chats/**/*",)
    adds = ("<session_context>.*?</session_context>",)
    varies = (r"├───.*?\\n\\n",)
    answers_twice = True
    elsewhere = False
    kinds = {"SessionStart": START, "BeforeAgent": PROMPT, "BeforeTool": PRE, "AfterTool": POST,
             "AfterAgent": STOP, "SessionEnd": END}
    settings = (".gemini/settings.json",)

    def prepare(self):
        events = [*self.kinds, "PreCompress", "Notification"]
        self.world.write(".gemini/settings.json", {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            # It deletes sessions that were resumed, at the next start, however new.
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False,
                        "sessionRetention": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
            "hooks": nested_hooks(events, self.recorder(), 60000, ("BeforeTool", "AfterTool"),
                                  name="recorder")})

    def environment(self):
        return {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": self.world.url,
                "GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_TELEMETRY_ENABLED": "false",
                "GEMINI_SANDBOX": "false", "GEMINI_CLI_NO_RELAUNCH": "true"}

    def arguments(self, prompt):
        resume = ["-r", self.session] if self.session else []
        return [*resume, *self.saying(prompt)]

    def saying(self, prompt):
        return ["-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", prompt]

    def transcripts(self):
        return self.kept(transcript=".gemini/tmp/*/chats/**/*.jsonl")

    def read(self, action):
        return {"name": "read_file", "args": {"file_path": self.path(action["path"])}}

    def write(self, action):
        return {"name": "write_file", "args": {"file_path": self.path(action["path"]),
                                               "content": action["text"]}}

    def edit(self, action):
        return {"name": "replace", "args": {
            "file_path": self.path(action["path"]), "instruction": "edit it",
            "old_string": action["old"], "new_string": action["new"]}}

    def shell(self, action):
        return {"name": "run_shell_command", "args": {"command": action["command"],
                                                      "description": "Run a command"}}

    def subagent(self, action):
        return {"name": "invoke_agent", "args": {"agent_name": "generalist",
                                                 "prompt": action["prompt"]}}

    def finish(self, _):
        return {"name": "complete_task", "args": {"result": {"response": "Sub task complete."}}}


class Qwen(SnakeCaseAgent):
    name = "qwen"
    slash = "command"
    serial = True
    cannot = ("wait", "finish")
    conversations = (".qwen/projects/*/chats/*",)
    adds = ("<system-reminder>.*?</system-reminder>",)
    varies = (r"├───.*?</system-reminder>",)
    elsewhere = False
    kinds = CLAUDE_KINDS
    settings = (".qwen/settings.json",)

    def prepare(self):
        events = [*self.kinds, "PreCompact", "SubagentStart", "SubagentStop", "Notification"]
        self.world.write(".qwen/settings.json", {
            "$version": 4,  # otherwise it adds that itself
            "security": {"auth": {"selectedType": "openai"}},
            "general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "hooks": nested_hooks(events, self.recorder(), 60,
                                  ("PreToolUse", "PostToolUse", "PostToolUseFailure"),
                                  name="recorder")})

    def is_human(self, event):
        return "submitted_prompt" in event.payload and super().is_human(event)

    def environment(self):
        return {"OPENAI_BASE_URL": self.world.url + "/v1", "OPENAI_API_KEY": "test-key",
                "OPENAI_MODEL": "scripted", "QWEN_TELEMETRY_ENABLED": "false",
                "QWEN_SANDBOX": "false", "QWEN_CODE_NO_RELAUNCH": "true"}

    def arguments(self, prompt):
        resume = ["-r", self.session] if self.session else []
        return [*resume, *self.saying(prompt)]

    def saying(self, prompt):
        return ["--approval-mode", "yolo", "-p", prompt]

    def transcripts(self):
        return self.kept(transcript=".qwen/projects/*/chats/*.jsonl")

    def read(self, action):
        return {"name": "read_file", "args": {"file_path": self.path(action["path"])}}

    def write(self, action):
        return {"name": "write_file", "args": {"file_path": self.path(action["path"]),
                                               "content": action["text"]}}

    def edit(self, action):
        return {"name": "edit", "args": {
            "file_path": self.path(action["path"]), "old_string": action["old"],
            "new_string": action["new"]}}

    def shell(self, action):
        return {"name": "run_shell_command", "args": {
            "command": action["command"], "description": "Run a command",
            "is_background": False}}

    def subagent(self, action):
        return {"name": "agent", "args": {
            "description": "delegated", "prompt": action["prompt"],
            "subagent_type": "general-purpose", "run_in_background": False}}
