"""What the hooks were told in a run, kept as files to be told again: payloads/AGENT/.

`NNN.EVENT[.TOOL].json` is the standard input of one hook, in the order they came; EVENT is
what the hook was registered for. `story.json` has for each of them the tree it met (by its
number in `trees`), `environment.json` what the agent put into a hook's environment.
`transcript*` is what the agent itself keeps of the conversation.

Paths of the run become /home/dev (HOME), /home/dev/app (the project) and /tmp; commits of the
project become "commit 1", "commit 2". Texts over 600 characters in
transcripts are cut, and lists of tools: they are the vendors' own.
"""
import json
import pathlib
import re
import shutil

import run_tree
from agent import HOOK

HERE = pathlib.Path(__file__).resolve().parent
HOME, PROJECT = "/home/dev", "/home/dev/app"
LONGEST, LARGEST = 600, 4000  # a text; a member of a line that is no message
_PRIVATE = re.compile(r"TOKEN|API_KEY|SECRET|SOCKET|PID|SHLVL|^_$|^PWD$|^PATH$")


class Scrubber:
    def __init__(self, world, program):
        self.pairs = [(str(world.project), PROJECT), (str(world.home), HOME),
                      (str(world.tmp), "/tmp"), (str(world.scratch), "/scratch"),
                      (str(HOOK), "/usr/local/bin/hook"), (str(program.parent), "/usr/lib/agent"),
                      (world.url, "http://127.0.0.1:4000")]
        # Some agents make the name of a directory of a path: /a.b/c is -a-b-c.
        self.pairs += [(slug(old), slug(new)) for old, new in self.pairs[:2]]
        self.commits = {}

    def text(self, text):
        for old, new in self.pairs:
            text = text.replace(old, new)
        for commit, name in self.commits.items():
            text = text.replace(commit, name)
        return text

    def tree(self, tree):
        made = {path: dict(entry) for path, entry in tree.items()}
        if run_tree.GIT in made:
            head = made[run_tree.GIT]["text"]
            self.commits.setdefault(head, f"commit {len(self.commits) + 1}")
            made[run_tree.GIT]["text"] = self.commits[head]
        return made


def slug(path):
    return re.sub(r"[^A-Za-z0-9]", "-", path)


def cut(value):
    """The same with long texts shortened."""
    if isinstance(value, str) and len(value) > LONGEST:
        return f"{value[:LONGEST // 4]}…[cut {len(value) - LONGEST // 4} characters]"
    if isinstance(value, list):
        return [cut(part) for part in value]
    if isinstance(value, dict):
        return {key: cut(part) for key, part in value.items()}
    return value


def save(agent):
    directory = HERE / "payloads" / agent.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    scrubber = Scrubber(agent.world, agent.pin.program)
    trees, events = [], []
    for number, event in enumerate(agent.events(), 1):
        tree = scrubber.tree(event.tree)
        if tree not in trees:
            trees.append(tree)
        name = ".".join(filter(None, [f"{number:03}", agent.registered(event), event.tool]))
        (directory / f"{name}.json").write_text(scrubber.text(event.note["stdin"]).strip() + "\n")
        events.append({"file": f"{name}.json", "event": agent.registered(event),
                       "kind": event.kind, "tree": trees.index(tree)})
    _write(directory / "story.json", {
        "agent": agent.name, "version": agent.pin.version, "root": PROJECT,
        "events": events, "trees": trees})
    _write(directory / "environment.json", _environment(agent, scrubber))
    for name, text in agent.transcripts():
        _save_transcript(directory / name, text, scrubber)
    return len(events)


def _environment(agent, scrubber):
    """What the agent adds for its hooks, beside what it was started with."""
    given = agent.full_environment()
    added = {}
    for event in agent.events():
        if event.kind == "pre":
            for name, value in event.note["environment"].items():
                if given.get(name) != value and not _PRIVATE.search(name):
                    added[name] = scrubber.text(value)
    return dict(sorted(added.items()))


def _save_transcript(path, text, scrubber):
    lines = []
    for line in text.splitlines() if path.suffix == ".jsonl" else [text]:
        try:
            line = _dump(_without_lists(cut(json.loads(line))))
        except ValueError:
            pass
        lines.append(scrubber.text(line))
    path.write_text("\n".join(lines).rstrip("\n") + "\n")


def _dump(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _without_lists(line):
    """A line of a transcript without descriptions of all tools and the like."""
    for key in ("attachment", "shape", "systemPayload"):
        size = len(_dump(line.get(key))) if isinstance(line, dict) else 0
        if size > LARGEST:
            line[key] = {"cut": size}
    return line


def _write(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")

