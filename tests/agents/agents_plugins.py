"""opencode and Cline: no settings name their hooks, files in a folder are them."""
import json
import os

import run_sandbox
from agent import END, HOOK, POST, PRE, PROMPT, START, STOP, Agent


class Opencode(Agent):
    name = "opencode"
    event_argument = True
    slash = "command"
    without_screen = '[ "$1" != -s ] || set -- run "$@"\n'
    starts = False
    forks, summarizes, copies_inherited = True, False, True
    cannot = ("wait", "finish")
    kinds = {"session.created": START, "chat.message": PROMPT, "tool.execute.before": PRE,
             "tool.execute.after": POST, "session.idle": STOP, "session.deleted": END}
    settings = (".config/opencode/plugins/belay.js",)

    def prepare(self):
        folder = ".config/opencode"
        self.world.write(folder + "/opencode.json", {
            "$schema": "https://opencode.ai/config.json", "autoupdate": False, "share": "disabled",
            "model": "scripted/scripted", "small_model": "scripted/scripted",
            "permission": {"*": "allow"},
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible", "name": "scripted",
                "options": {"baseURL": self.world.url + "/v1", "apiKey": "test-key"},
                "models": {"scripted": {"name": "scripted", "tool_call": True,
                                        "limit": {"context": 100000, "output": 8000}}}}}})
        text = (HOOK.parent / "recorder.js").read_text()
        for word, value in (("@HOOK@", HOOK), ("@NOTES@", self.world.notes),
                            ("@PROJECT@", self.world.project)):
            text = text.replace(word, str(value))
        self.world.write(folder + "/plugins/recorder.js", text)
        self._have_package(folder)

    def prepare_project(self):
        self._have_package(self.world.project.name + "/.opencode")

    def _have_package(self, folder):
        """Where this says that the package is there, opencode does not wait for npm."""
        needs = {"dependencies": {"@opencode-ai/plugin": self.pin.version}}
        self.world.write(folder + "/package.json", needs)
        self.world.write(folder + "/package-lock.json", {
            "lockfileVersion": 3, "packages": {"": needs}})
        (self.world.home / folder / "node_modules").mkdir()

    def environment(self):
        return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_SHARE": "1",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}

    def arguments(self, prompt):
        resume = ["-s", self.session] if self.session else []
        return ["run", *resume, prompt]

    def own_fork(self, prompt):
        return ["run", "-s", self.session, "--fork", prompt]

    def slash_command(self, words):
        return [str(self.pin.program), "run", "-s", self.session, "--command", "rollback",
                *words.split()]

    def read_event(self, note):
        payload = json.loads(note["stdin"])
        event = self.make_event(note, note["argument"], payload)
        event.session, event.tool = payload.get("sessionID"), payload.get("tool")
        event.call, event.arguments = payload.get("callID"), payload.get("args")
        event.prompt = "\n".join(part["text"] for part in payload.get("parts", []))
        return event

    def is_subagent(self, event):
        return "parentID" in event.payload

    def transcripts(self):
        done = run_sandbox.run([str(self.pin.program), "export", self.session],
                               self.full_environment(), self.world.project, self.timeout)
        return [("transcript.json", done.output[done.output.index("{"):])]

    def read(self, action):
        return {"name": "read", "args": {"filePath": self.path(action["path"])}}

    def write(self, action):
        return {"name": "write", "args": {"filePath": self.path(action["path"]),
                                          "content": action["text"]}}

    def edit(self, action):
        return {"name": "edit", "args": {"filePath": self.path(action["path"]),
                                         "oldString": action["old"], "newString": action["new"]}}

    def shell(self, action):
        return {"name": "bash", "args": {"command": action["command"],
                                         "description": "Run a command"}}

    def subagent(self, action):
        return {"name": "task", "args": {
            "description": "delegated", "prompt": action["prompt"], "subagent_type": "general"}}


class Cline(Agent):
    name = "cline"
    rewinds = False
    event_argument = True
    resumes = False  # --id needs a terminal
    says_prompt = False
    starts = False
    cannot = ("wait", "finish")
    kinds = {"agent_start": START, "tool_call": PRE, "tool_result": POST, "agent_end": STOP}
    settings = (".cline/hooks/PreToolUse",)
    files = ("TaskStart", "TaskResume", "TaskCancel", "TaskComplete", "TaskError", "PreToolUse",
             "PostToolUse", "UserPromptSubmit", "PreCompact", "SessionShutdown")

    def prepare(self):
        # A directory has one hook of each name: ~/.cline/hooks is left to others. (Of a
        # directory that is given by --hooks-dir 3.0.65 calls nothing.)
        for name in self.files:
            file = self.world.write("Documents/Cline/Hooks/" + name,
                                    f"#!/bin/sh\nexec {self.recorder(name)}\n")
            os.chmod(file, 0o755)
        # What `cline auth -p openai-compatible -k KEY -m MODEL -b URL` writes.
        self.world.write(".cline/data/settings/providers.json", {
            "version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {
                "openai-compatible": {"settings": {
                    "provider": "openai-compatible", "apiKey": "test-key", "model": "scripted",
                    "baseUrl": self.world.url + "/v1"}, "updatedAt": "2026-01-01T00:00:00.000Z",
                    "tokenSource": "manual"}}})

    def environment(self):
        return {"OPENAI_API_KEY": "test-key", "CLINE_TELEMETRY_DISABLED": "1",
                "CLINE_TELEMETRY": "off", "CLINE_NO_AUTO_UPDATE": "1"}

    def arguments(self, prompt):
        return ["--auto-approve", "true", prompt]

    def read_event(self, note):
        payload = json.loads(note["stdin"])
        event = self.make_event(note, payload["hookName"], payload)
        event.session = payload.get("sessionContext", {}).get("rootSessionId")
        about = payload.get("tool_call") or payload.get("tool_result") or {}
        event.tool, event.call = about.get("name"), about.get("id")
        event.arguments = about.get("input")
        return event

    def is_subagent(self, event):
        return bool(event.payload.get("parent_agent_id"))

    def transcripts(self):
        return self.kept(session=".cline/data/sessions/*/[0-9]*[!s].json",
                         transcript=".cline/data/sessions/*/[0-9]*.messages.json",
                         subagent=".cline/data/sessions/*/agent_*.messages.json")

    def read(self, action):
        return {"name": "read_files", "args": {"files": [{"path": self.path(action["path"])}]}}

    def write(self, action):
        return {"name": "editor", "args": {"path": self.path(action["path"]),
                                           "new_text": action["text"]}}

    def edit(self, action):
        return {"name": "editor", "args": {
            "path": self.path(action["path"]), "old_text": action["old"],
            "new_text": action["new"]}}

    def shell(self, action):
        return {"name": "run_commands", "args": {"commands": [action["command"]]}}

    def subagent(self, action):
        return {"name": "spawn_agent", "args": {"systemPrompt": "You do sub tasks.",
                                                "task": action["prompt"]}}
