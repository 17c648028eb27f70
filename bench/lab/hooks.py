"""One hook call of an agent, in Claude Code's words, in a session that goes on: what the
agent waits for before and after each call of a tool."""

import json
import os
import time

from . import peers, report
from .contenders import Belay, Contender, limits
from .lab import WrongCheckpoint
from .workloads import Plan, Session

# name, title, files changed before each round
WORKLOADS = [("first", "first", 0), ("nothing", "nothing", 0), ("ten", "10 changed", 10),
             ("after", "10 by the call", 10), ("reads", "a reading tool", 0)]
MAKING = ("nothing", "ten", "after")  # a checkpoint
PEERS = ("codemux", "boocode", "hermes", "opencode")


class Hook(Belay):
    """`belay hook claude`: nothing and 10 changed: before a shell runs; 10 by the call: after
    it; a reading tool: before one that never writes."""

    session, prompt = "3b5e6c2a-1f0d-4a7e-9c51-0d6f2b8e4a10", "p-1"

    def prepare(self, store):
        super().prepare(store)
        self.calls, self.open = 0, None
        self.config = os.path.join(store, "config.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("deadline_ms = 120000\n")  # it waits, however busy the machine is

    def env(self):
        return {**super().env(), "BELAY_CONFIG": self.config}

    def first(self, meter):
        meter.run(self.lab.belay, "on", self.tree.path)
        meter.run(self.lab.belay, "checkpoint", "-q")
        self.tell(meter, "SessionStart", source="startup")
        deadline = time.monotonic() + 300
        while self.behind():  # a session's start is recorded behind its hook
            if time.monotonic() > deadline:
                raise WrongCheckpoint("the session's start is never recorded")
            time.sleep(0.01)
        self.tell(meter, "UserPromptSubmit", prompt="make the tests pass")
        self.last = None

    def before(self, workload):
        if workload not in MAKING:
            return
        meter = self.lab.meter(self)
        if self.open:
            self.end_call(meter)
        if workload == "after":
            self.begin_call(meter)

    def action(self, workload):
        return {"first": self.first, "nothing": self.begin_call, "ten": self.begin_call,
                "after": self.end_call, "reads": self.read}[workload]

    def checkpoint(self, meter):
        """For rounds that it sat out."""
        self.before("after")
        self.end_call(meter)

    def begin_call(self, meter):
        self.calls += 1
        self.open = f"toolu_{self.calls:024}"
        self.about_shell(meter, "PreToolUse")
        self.last = ("before", self.open)

    def end_call(self, meter):
        self.about_shell(meter, "PostToolUse", tool_response={
            "stdout": "", "stderr": "", "interrupted": False, "isImage": False})
        self.last, self.open = ("after", self.open), None

    def read(self, meter):
        self.calls += 1
        self.tell(meter, "PreToolUse", tool_name="Read", tool_use_id=f"toolu_{self.calls:024}",
                  tool_input={"file_path": os.path.join(self.tree.path, "README.md")})
        self.last = None

    def about_shell(self, meter, event, **more):
        self.tell(meter, event, tool_name="Bash", tool_use_id=self.open,
                  tool_input={"command": "make test", "description": "Run the tests"}, **more)

    def tell(self, meter, event, **more):
        payload = {"session_id": self.session, "transcript_path": "/nonexistent/t.jsonl",
                   "cwd": self.tree.path, "prompt_id": self.prompt,
                   "permission_mode": "default", "hook_event_name": event, **more}
        step = meter.run(self.lab.belay, "hook", "claude", stdin=json.dumps(payload).encode())
        if step.out or step.err:
            raise WrongCheckpoint(f"the hook of {event} said {step.out + step.err!r}")
        if event != "SessionStart" and self.behind():
            raise WrongCheckpoint(f"the hook of {event} returned before its work was done")

    def behind(self):
        """Whether a hook of ours is still at work."""
        mark = b"BELAY_HOME=" + os.fsencode(self.home)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark not in file.read().split(b"\0"):
                        continue
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if b"hook" in file.read().split(b"\0"):
                        return True
            except OSError:
                continue
        return False

    def tree_of(self, checkpoint):
        """The tree that the checkpoint of a call holds; KeyError when there is none."""
        when, call = checkpoint
        listed = self.lab.meter(self).run(self.lab.belay, "list", "--session", self.session,
                                          "--all", "--tools", "-n", "1000000", "--json")
        for made in json.loads(listed.out)["checkpoints"]:
            tool = made["tool"] or {}
            if tool.get("id") == call and made["description"].startswith(when):
                if made["partial"]:
                    raise ValueError("it is partial")
                return made["tree"]
        raise KeyError(call)


class Hello(Contender):
    """A static program that says hello: a process start."""

    name = group = "hello"
    kind = "limit"
    writes = False

    def action(self, workload):
        return self.checkpoint if workload == "reads" else None

    def checkpoint(self, meter):
        meter.run(self.lab.kit.program("lab_hello"))


class HookPlan(Plan):
    def __init__(self, files, rounds=None, quick=False):
        super().__init__(files, rounds, quick)
        usual = rounds or (3 if quick else 15 if files <= 20_000 else 7)
        self.rounds = {"first": 1, "nothing": usual, "ten": usual, "after": usual,
                       "reads": rounds or (10 if quick else 50)}


class HookSession(Session):
    workloads = WORKLOADS


def make_rows(lab, tree, wanted):
    def only_making(row):
        """Whoever is no hook has nothing to say about a tool that only reads."""
        usual = row.action
        row.action = lambda workload: None if workload == "reads" else usual(workload)
        return row
    others = [peer(lab, tree) for peer in peers.ALL if peer.group in PEERS]
    others = [only_making(row) for row in others + limits(lab, tree)]
    return [row for row in [Hook(lab, tree), *others, Hello(lab, tree)] if wanted(row)]


def targets(measured):
    """Those of every checkpoint without a daemon, held to the hook as a whole."""
    out = report.everyday(measured, MAKING)
    out.append(report.users_wish(measured, ["ten", "after"]))
    ours, hello = (measured.cell("reads", name) for name in ("belay", "hello"))
    value = report.ratio(ours.wall if ours else None, hello.wall if hello else None)
    cpu = report.ratio(ours.cpu if ours else None, hello.cpu if hello else None)
    out.append(report.Target("times a static hello", 4, True, {"reads": value},
                             by_cpu={"reads": cpu}))
    return out
