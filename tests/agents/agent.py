"""What the harness needs to know of an agent: how to start it, its tools, its hooks.

One class per agent in agents_*.py. Facts here were seen in runs of the pinned versions; the
README says which.
"""
import json
import os
import pathlib
import time

HOOK = pathlib.Path(__file__).resolve().parent / "hook"
# What the events of all agents come down to.
START, PROMPT, PRE, POST, FAILED, STOP, END, OTHER = (
    "start", "prompt", "pre", "post", "failed", "stop", "end", "other")


class World:
    """Directories of one run: all of them scratch."""

    def __init__(self, scratch, url):
        self.scratch, self.url = pathlib.Path(scratch), url
        self.home = self.scratch / "home"
        self.project = self.home / "app"
        self.bin = self.scratch / "bin"
        self.tmp = self.scratch / "tmp"
        self.notes = self.scratch / "notes"
        for directory in (self.project, self.bin, self.tmp, self.notes):
            directory.mkdir(parents=True)

    def write(self, path, content):
        """A settings file below HOME: text, or anything that becomes JSON."""
        full = self.home / path
        full.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str):
            content = json.dumps(content, indent=2) + "\n"
        full.write_text(content)
        return full


class Event:
    """One call of a hook, in common terms."""

    def __init__(self, kind, name, payload, note):
        self.kind, self.name, self.payload, self.note = kind, name, payload, note
        self.session = self.tool = self.call = self.prompt = None
        self.arguments = None

    @property
    def tree(self):
        return self.note["tree"]


class Agent:
    name = ""
    cannot = ("subagent", "wait", "finish")  # actions of the story
    side_words = []  # texts in requests that are not for the story
    kinds = {}  # event name: kind
    settings = ()  # files below HOME that `belay install` may change
    resumes = True  # a session goes on over all turns
    says_prompt = True  # hooks hear what the prompt is
    tells_ends = True  # of calls and turns
    serial = False  # calls of one agent that may write come one after the other
    tells_subagents = True  # hooks are called for what subagents do
    marks_subagents = True  # ... and say so
    starts = True  # hooks hear of a start when a session is resumed, too
    timeout = 240
    turn_begins = START  # where no prompt is told
    install_flags = ()
    event_argument = False  # hooks are registered with the event's name as an argument
    # How `/rollback` is done: "blocked" (the hook answers, the model is not asked), "command"
    # (one of the agent's own, whose text the model gets), or None.
    slash = None
    # Where the command that resumes opens a screen: the line of a shell that avoids it.
    without_screen = ""
    conversations = ()  # files below HOME in which they are kept
    rewinds = True  # a conversation can be taken back
    elsewhere = True  # a session goes on in another directory than it began in
    compacts = None  # the prompt that has it shorten the conversation
    forks = False  # it forks a session itself: `own_fork`
    summarizes = True  # a part of a conversation can be replaced by a summary
    copies_inherited = False  # ids of what a fork inherited are others in its copy
    adds = ()  # patterns of what it says to the model in the user's name
    varies = ()  # patterns of what differs between two requests that say the same
    answers_twice = False  # a resumed session tells each result again
    shows_reason = True  # of a prompt that was blocked

    def __init__(self, pin, node, world):
        self.pin, self.node, self.world = pin, node, world
        self.session = None

    # --- to be said by each -------------------------------------------------------------

    def prepare(self):
        """Writes settings: the model's address, and the recording hook."""
        raise NotImplementedError

    def prepare_project(self):
        """The same in the project, before Belay comes there."""

    def arguments(self, prompt):
        """After the program: a new session, or `self.session` resumed."""
        raise NotImplementedError

    def own_fork(self, prompt):
        """After the program: a session of its own that has all of `self.session`."""
        raise NotImplementedError

    def saying(self, prompt):
        """Behind the command that resumes a session: what says a prompt without a screen."""
        return [prompt]

    def call(self, action):
        """The tool call that does an action of the story."""
        return getattr(self, action["do"])(action)

    def environment(self):
        return {}

    def read_event(self, note):
        """The Event of a note that `hook` made."""
        raise NotImplementedError

    def concerns(self, event, action):
        """Whether a hook event is about this action: its arguments say so."""
        said = self.call(action).get("args") or {"input": self.call(action).get("input")}
        return all((event.arguments or {}).get(key) == value for key, value in said.items())

    @property
    def delegates(self):
        """The tool that starts a subagent, as hooks say it; None where there is none."""
        return None if "subagent" in self.cannot else self.hook_tool({"do": "subagent",
                                                                      "prompt": ""})

    def hook_tool(self, action):
        """The tool's name as hooks say it."""
        return self.call(action)["name"]

    def hook_tool_or_none(self, action):
        return None if action["do"] in self.cannot else self.hook_tool(action)

    def readers(self):
        """Tools that write nothing, as far as the story calls them."""
        return {self.hook_tool_or_none(a) for a in (
            {"do": "read", "path": ""}, {"do": "wait"}, {"do": "finish"},
            {"do": "subagent", "prompt": ""})} - {self.hook_tool({"do": "shell", "command": ""})}

    def is_human(self, event):
        return not self.is_subagent(event)

    def slash_command(self, words):
        return self.command(f"/rollback {words}".rstrip())

    def is_subagent(self, event):
        """Whether an event says that it is a subagent's."""
        return "agent_id" in event.payload

    def registered(self, event):
        """What the hook of an event was registered for."""
        return event.note["argument"] or event.name

    def transcripts(self):
        """What the agent keeps of the conversation: [(name, text)]."""
        return []

    def settle(self):
        """Called when the model is asked, before it answers: waits for what still goes on."""

    # --- common -------------------------------------------------------------------------

    def recorder(self, event=""):
        """The command of the recording hook."""
        words = [str(HOOK), str(self.world.notes), str(self.world.project), event]
        return " ".join(filter(None, words))

    def program(self):
        node = [str(self.node.program)] if self.pin.node else []
        return [*node, str(self.pin.program)]

    def command(self, prompt):
        return self.program() + self.arguments(prompt)

    def full_environment(self):
        """Nothing of ours: every variable the agent gets is named here."""
        world = self.world
        made = {"HOME": str(world.home), "USER": "dev", "LANG": "C.UTF-8", "SHELL": "/bin/bash",
                "TERM": "xterm-256color", "TMPDIR": str(world.tmp), "CI": "",
                "PATH": f"{world.bin}:/usr/local/bin:/usr/bin:/bin", "DO_NOT_TRACK": "1",
                "NO_PROXY": "127.0.0.1,localhost", "PWD": str(world.project),
                "GIT_CONFIG_NOSYSTEM": "1"}
        made.update(self.environment())
        return made

    def path(self, relative):
        return os.path.join(self.world.project, relative)

    def events(self):
        """All that was recorded, in the order it began."""
        notes = [json.loads(file.read_text()) for file in sorted(self.world.notes.glob("*.json"))]
        return [event for event in map(self.read_event, notes) if event]

    def kept(self, **patterns):
        """[(name, text)] of files below HOME: the name they get, and what finds them."""
        found = []
        for name, pattern in patterns.items():
            files = sorted(self.world.home.glob(pattern))
            for number, file in enumerate(files):
                count = "" if len(files) == 1 else f"-{number + 1}"
                found.append((f"{name}{count}{file.suffix}",
                              file.read_text(errors="surrogateescape")))
        return found

    def make_event(self, note, name, payload):
        return Event(self.kinds.get(name, OTHER), name, payload, note)


class SnakeCaseAgent(Agent):
    """Payloads as Claude Code writes them, which others took over."""

    def read_event(self, note):
        payload = json.loads(note["stdin"])
        event = self.make_event(note, payload["hook_event_name"], payload)
        event.session, event.prompt = payload.get("session_id"), payload.get("prompt")
        event.tool, event.call = payload.get("tool_name"), payload.get("tool_use_id")
        event.arguments = payload.get("tool_input")
        return event


def wait_until(done, seconds=20):
    """Looks again until it is so; for what another process does and tells nobody."""
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)


def nested_hooks(events, command, timeout, matched=(), **more):
    """`hooks` of settings in Claude Code's shape."""
    made = {}
    for event in events:
        group = {"matcher": "*"} if event in matched else {}
        group["hooks"] = [dict(more, type="command", command=command, timeout=timeout)]
        made[event] = [group]
    return made
