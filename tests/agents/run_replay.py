"""A story told again from payloads/AGENT, without the agent: the tree that each hook met, then
the hook itself."""
import json
import pathlib
import shutil
import subprocess
import tempfile

import run_agents
import run_belay
import run_install
import run_payloads
import run_story
import run_tree
from agent import World
from agents_replayed import Crush

HERE = pathlib.Path(__file__).resolve().parent
ALL = {**run_agents.ALL, Crush.name: Crush}


class Replayed:
    """As run_agents.Run, as far as run_belay.py needs it."""

    def __init__(self, agent, report):
        self.agent, self.report = agent, report

    def check(self, what, problem):
        return self.report.check(self.agent.name, what, problem)


class Story:
    """The files of payloads/AGENT, and a project that goes through its trees."""

    def __init__(self, agent):
        self.agent, self.world = agent, agent.world
        self.directory = HERE / "payloads" / agent.name
        self.story = json.loads((self.directory / "story.json").read_text())
        self.commit = "commit 1"
        run_story.make_project(self.world.project)

    def tell(self, hook):
        """Calls `hook(event name, payload)` for each event; the Events."""
        events = []
        for number, told in enumerate(self.story["events"], 1):
            self.become(self.story["trees"][told["tree"]])
            payload = self.here((self.directory / told["file"]).read_text())
            note = {"began": number, "argument": told["event"], "stdin": payload,
                    "tree": run_tree.record(self.world.project)}
            event = self.agent.read_event(note)
            events.append(event)
            if not self.agent.is_subagent(event):
                self.agent.session = event.session
            hook(told["event"], payload)
        self.become(self.story["trees"][-1])
        return events

    def here(self, text):
        """Paths of the recorded run become those of this one."""
        return text.replace(run_payloads.PROJECT, str(self.world.project)).replace(
            run_payloads.HOME, str(self.world.home))

    def become(self, tree):
        run_tree.write(self.world.project, tree)
        commit = tree[run_tree.GIT]["text"]
        if commit != self.commit:
            self.commit = commit
            command = run_story.COMMIT["command"].replace("git ", "git -c core.fsync=none ")
            subprocess.run(["sh", "-c", command], cwd=self.world.project, check=True)


def replay(name, program, report):
    """One agent: hooks, timeline, authors, rollbacks."""
    scratch = tempfile.mkdtemp(prefix=f"belay-replay-{name}-")
    try:
        world = World(scratch, "")
        pins = run_install.pins()
        agent = ALL[name](pins.get(name), pins["node"], world)
        belay = run_belay.Belay(program, world, {
            "HOME": str(world.home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"})
        tell(Replayed(agent, report), belay)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def tell(run, belay):
    agent = run.agent
    story = Story(agent)
    done = belay.run("on", str(agent.world.project))
    run.check("belay on", done.output if done.status else "")
    wrong = []

    def hook(event, payload):
        words = [event] if agent.event_argument else []
        done = belay.run("hook", agent.name, *words, stdin=payload)
        if done.status or done.output:
            wrong.append(f"{event}: exit {done.status}, printed {done.output!r}")

    events = story.tell(hook)
    run.check(f"{len(events)} hooks exit 0 and print nothing", wrong)
    run_belay.check_known(run, belay, events)
    run_belay.check_taking_back(run, belay, events)
