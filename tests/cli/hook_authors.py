#!/usr/bin/env python3
"""Two agents and a person in one tree at once: whose doing is every change?

Calls overlap at random. What an edit tool names is its own; what a shell writes is the
shell's when it is alone, and shared with the others that are at work otherwise; what a
person writes is from outside unless a shell is at work, which may as well have done it.
A call that a later one of its agent overtook is doubted while no later one is at work,
but not by the end of one: what is found then is shared with outside.

  hook_authors.py [--edits N] [--seed S]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--edits", type=int, default=500)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


class World:
    def __init__(self, top):
        self.belay = os.environ["BELAY_BIN"]
        self.root = os.path.join(top, "project")
        os.mkdir(self.root)
        self.env = {"HOME": top, "BELAY_HOME": os.path.join(top, "store"), "PATH": os.environ["PATH"], "LC_ALL": "C"}
        self.events = 0

    def run(self, *words):
        done = subprocess.run([self.belay, *words], cwd=self.root, env=self.env, capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"belay {' '.join(words)}: {done.returncode} {done.stderr.decode()}")
        return done.stdout

    def tell(self, event):
        self.events += 1
        done = subprocess.run([self.belay, "hook", "generic"], cwd="/", env=self.env, capture_output=True,
                              input=json.dumps(event).encode(), check=False)
        if (done.returncode, done.stdout, done.stderr) != (0, b"", b""):
            sys.exit(f"hook: {done}")

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as out:
            out.write(text)


class Story:
    """What happens, and what is expected of it: path -> the set of authors."""

    def __init__(self, world, rng):
        self.world, self.rng = world, rng
        self.at_work = {}  # call id -> (session, shell?, path)
        self.expected = {}
        self.calls = self.writes = 0
        self.doubtful = set()
        self.pending = []  # (path, who) that nobody has looked at yet

    def sure(self, call, ended):
        session = self.at_work[call][0]
        return (call not in self.doubtful or (ended and self.at_work[ended][0] == session)
                or any(c not in self.doubtful and s == session for c, (s, _, _) in self.at_work.items()))

    def look(self, ended=None):
        shells = {c for c, (_, shell, _) in self.at_work.items() if shell}
        rest = shells if any(self.sure(c, ended) for c in shells) else shells | {"outside"}
        for path, who in self.pending:
            named = who in self.at_work and path == self.at_work[who][2]
            authors = rest if not named else {who} if self.sure(who, ended) else {who} | rest
            self.expected.setdefault(path, []).append(authors)
        self.pending = []

    def event(self, kind, session, call, path):
        tool = {"name": "edit" if path else "shell", "id": call, "input": {"n": call}}
        if path:
            tool.update(reach="paths", paths=[path])
        self.world.tell({"event": kind, "session": session, "cwd": self.world.root, "tool": tool})

    def begin(self):
        session = self.rng.choice(["one", "two"])
        self.calls += 1
        call = f"c{self.calls}"
        path = None if self.rng.random() < 0.4 else f"edits/{call}.txt"
        self.look()
        self.event("tool.begin", session, call, path)
        self.at_work[call] = (session, path is None, path)

    def end(self):
        call = self.rng.choice(list(self.at_work))
        session, _, path = self.at_work[call]
        self.look(call)
        self.event("tool.end", session, call, path)
        order = list(self.at_work)
        self.doubtful |= {c for c in order[:order.index(call)] if self.at_work[c][0] == session}
        del self.at_work[call]

    def change(self):
        self.writes += 1
        who = self.rng.choice(["person", *self.at_work])
        number = self.writes
        if who == "person":
            path = f"person/{number}.txt"
        else:
            _, shell, named = self.at_work[who]
            path = f"shell/{number}.txt" if shell else named
        old = [p for p in dict.fromkeys([*self.expected, *(p for p, _ in self.pending)]) if p.startswith("shell/")]
        if path.startswith("shell/") and old and self.rng.random() < 0.2:
            # A rename: two paths, one doing.
            source = self.rng.choice(old)
            full = os.path.join(self.world.root, source)
            if os.path.exists(full):
                os.rename(full, os.path.join(self.world.root, path))
                self.pending += [(source, who), (path, who)]
                return
        self.world.write(path, f"{who} {number}\n" * (number % 7 + 1))
        self.pending.append((path, who))

    def go(self, edits):
        while self.writes < edits:
            self.rng.choices([self.begin, self.end if self.at_work else self.begin, self.change],
                             [2 if len(self.at_work) < 4 else 0, 2, 3])[0]()
        while self.at_work:
            self.end()
        self.look()


def main():
    args = parse()
    with tempfile.TemporaryDirectory(prefix="belay-authors.") as top:
        world = World(top)
        world.run("on")
        world.run("config", "retention.auto", "100000")
        world.run("checkpoint", "-m", "start")
        for session in ("one", "two"):
            world.tell({"event": "turn.begin", "session": session, "cwd": world.root, "prompt": "go"})
        story = Story(world, random.Random(args.seed))
        story.go(args.edits)
        world.run("checkpoint", "-m", "end")
        changes = json.loads(world.run("log", "--json", "--", "."))["changes"]
        told = {}
        for change in sorted(changes, key=lambda c: c["seq"]):
            author = change["author"]
            among = author.get("among", [author])
            names = {a["tool_id"] if a["kind"] == "session" else a["kind"] for a in among}
            told.setdefault(change["path"], []).append(names)
        wrong, alone, shared = [], 0, 0
        for path, wanted in story.expected.items():
            known = told.get(path, [])
            # Two writes between two looks are seen as one.
            union = set().union(*wanted)
            exact = len(wanted) > 1 or known == wanted
            # Made and moved away between two looks: nobody has seen it.
            if not known and len(wanted) > 1 and not os.path.exists(os.path.join(world.root, path)):
                continue
            if not known or not exact or not set().union(*known) <= union:
                wrong.append(f"{path}: {known}, not {wanted}")
            for names in known:
                shared += len(names) > 1
                alone += len(names) == 1
        for path in set(told) - set(story.expected):
            wrong.append(f"{path}: {told[path]} of nobody's")
        lone = sum(len(w) == 1 for wanted in story.expected.values() for w in wanted)
        print(f"{story.writes} changes, {story.calls} calls, {world.events} events, seed {args.seed}: "
              f"{alone} with one author, {shared} shared ({story.writes - lone} overlapped), {len(wrong)} wrong")
        for line in wrong[:20]:
            print("  " + line)
        sys.exit(1 if wrong or alone == 0 or shared == 0 else 0)


main()
