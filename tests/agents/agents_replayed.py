"""Crush: what its documents say. It cannot be run here, only be replayed."""
import json

from agent import PRE, Agent


class Crush(Agent):
    name = "crush"
    cannot = ("subagent", "wait", "finish")
    says_prompt = starts = tells_subagents = tells_ends = False
    kinds = {"PreToolUse": PRE}

    def read_event(self, note):
        payload = json.loads(note["stdin"])
        event = self.make_event(note, payload["event"], payload)
        event.session, event.tool = payload["session_id"], payload["tool_name"]
        event.arguments = payload["tool_input"]
        return event

    def read(self, action):
        return {"name": "view", "args": {"file_path": self.path(action["path"])}}

    def write(self, action):
        return {"name": "write", "args": {"file_path": self.path(action["path"]),
                                          "content": action["text"]}}

    def edit(self, action):
        return {"name": "edit", "args": {
            "file_path": self.path(action["path"]), "old_string": action["old"],
            "new_string": action["new"]}}

    def shell(self, action):
        return {"name": "bash", "args": {"command": action["command"]}}
