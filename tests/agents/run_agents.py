"""One agent, from an empty HOME to the end of the story."""
import os
import shutil
import tempfile
import traceback

import model_script
import model_server
import run_belay
import run_chat
import run_install
import run_payloads
import run_sandbox
import run_story
import run_tree
from agent import FAILED, POST, PRE, PROMPT, START, World
from agents_claude import Claude, Codex
from agents_gemini import Gemini, Qwen
from agents_others import Copilot, Reasonix
from agents_plugins import Cline, Opencode

BUILT = run_install.HERE.parent.parent / "build/release/bin/belay"
ALL = {kind.name: kind for kind in (
    Claude, Codex, Opencode, Gemini, Qwen, Copilot, Reasonix, Cline)}
CANNOT = {
    "crush": "its npm package fetches the program from another host than the registry",
}


class Run:
    """What happened: requests and hook events with the trees they met."""

    def __init__(self, agent, server, report):
        self.agent, self.server, self.report = agent, server, report
        self.trees = {}  # (rule, step): the tree when the model was asked for that step
        self.start = run_tree.record(agent.world.project)
        self.seconds = []

    def on_request(self, entry):
        if entry.get("rule"):
            if entry["rule"] != run_story.SUB["name"]:
                self.agent.settle()
            key = (entry["rule"], entry["step"])
            self.trees.setdefault(key, run_tree.record(self.agent.world.project))

    def check(self, what, problem):
        return self.report.check(self.agent.name, what, problem)

    def turn(self, turn):
        """Runs one turn; whether the agent got through it."""
        agent, name = self.agent, turn["name"]
        seen = len(self.server.entries)
        known = len(agent.events())
        done = run_sandbox.run(agent.command(turn["prompt"]), agent.full_environment(),
                               agent.world.project, agent.timeout)
        self.seconds.append(done.seconds)
        with open(agent.world.scratch / "output.txt", "a", encoding="utf-8") as file:
            file.write(f"--- {name}: {done.status}\n{done.output}\n")
        asked = [(e["rule"], e["step"]) for e in self.server.entries[seen:] if e.get("rule")]
        steps = [(name, at) for at in range(len(run_story.steps_of(turn, agent)))]
        problem = ""
        if done.status != 0 or not set(steps) <= set(asked):
            problem = (f"exit {done.status}, asked {asked}, not {steps}; its last words:\n"
                       + done.output[-3000:])
        if not agent.session or not agent.resumes:
            agent.session = next((e.session for e in agent.events()[known:] if e.session), None)
        return self.check(f"{name}: every step was asked for, exit 0", problem)

    def check_heard(self, number):
        """That the model was told all that was said before, once, and nothing else."""
        turn = run_story.TURNS[number]
        before = run_story.TURNS[:number] if self.agent.resumes else []
        expected = [words for earlier in before
                    for words in run_story.words_of(earlier, self.agent)]
        entry = next((e for e in self.server.entries
                      if (e.get("rule"), e.get("step")) == (turn["name"], 0)), None)
        said = run_story.heard(entry["conversation"], self.agent) if entry else None
        self.check(f"{turn['name']}: the model hears the turns before it",
                   "" if said == [*expected, turn["prompt"]] else f"{said}")

    def check_trees(self, turn, before):
        """That the agent did what it was told; the tree it should have left."""
        expected = [run_story.without_git(before)]
        for at, step in enumerate(run_story.steps_of(turn, self.agent)):
            seen = run_story.without_git(self.trees.get((turn["name"], at), {}))
            wrong = [run_tree.differences(seen, tree) for tree in expected]
            self.check(f"{turn['name']}: the tree before step {at}", min(wrong, key=len))
            for action in step["actions"]:
                expected = run_story.applied(expected, action, self.agent)
        return expected[-1]

    def check_events(self, turn, events):
        name = turn["name"]
        kinds = [event.kind for event in events]
        prompts = [e for e in events if e.kind == PROMPT and turn["prompt"] in (e.prompt or "")]
        if self.agent.says_prompt:
            self.check(f"{name}: one prompt event says the prompt",
                       "" if len(prompts) == 1 else f"{len(prompts)} do: {kinds}")
        if self.agent.starts or turn is run_story.TURNS[0]:
            self.check(f"{name}: a start event", "" if START in kinds else f"events: {kinds}")
        self.check(f"{name}: every event of one session is of the same session", [
            f"{e.name}: {e.session}" for e in events
            if e.kind in (PRE, PROMPT) and e.session != self.agent.session
            and not self.agent.is_subagent(e)])
        actions = [a for step in run_story.steps_of(turn, self.agent) for a in step["actions"]]
        for action in actions:
            self._check_action(name, events, action)
        if any(action["do"] == "subagent" for action in actions):
            self._check_subagent(name, events)
        if self.agent.serial:
            self.check(f"{name}: one call after the other", _overlaps(self.agent, events))

    def _check_subagent(self, name, events):
        """Who is told to have done what a subagent did."""
        agent, action = self.agent, run_story.SUB["steps"][0]["actions"][0]
        found = [e for e in events if e.kind == PRE and agent.concerns(e, action)]
        expected = [agent.marks_subagents] if agent.tells_subagents else []
        self.check(f"{name}: hooks {'say' if any(expected) else 'do not say'} what a subagent did",
                   "" if [agent.is_subagent(e) for e in found] == expected else
                   f"{[(e.name, e.payload) for e in found]}")

    def _check_action(self, name, events, action):
        tool = self.agent.hook_tool(action)
        for kinds, word in (((PRE,), "before"), ((POST, FAILED), "after")):
            found = [e for e in events if e.kind in kinds and e.tool == tool
                     and self.agent.concerns(e, action)]
            self.check(f"{name}: a hook {word} {tool} ({action['do']})",
                       "" if len(found) == 1 else
                       f"{len(found)} events; there were "
                       f"{[(e.name, e.tool, e.arguments) for e in events if e.tool]}")


def _overlaps(agent, events):
    """Calls that began before the one before them had ended; those of a subagent do."""
    running, wrong = None, []
    for event in events:
        if agent.is_subagent(event) or event.tool == agent.delegates:
            continue
        if event.kind == PRE:
            wrong += [f"{event.tool} began during {running}"] if running else []
            running = event.tool
        elif event.kind in (POST, FAILED):
            running = None
    return wrong


def tell(run):
    """The story itself; whether it came to its end."""
    agent, project = run.agent, run.agent.world.project
    before = run.start
    for number, turn in enumerate(run_story.TURNS):
        if number == 1:
            run_story.outside_edit(project)
            before = run_tree.record(project)
        count = len(agent.events())
        if not run.turn(turn):
            return False
        run.check_heard(number)
        expected = run.check_trees(turn, before)
        run.check_events(turn, agent.events()[count:])
        before = run_tree.record(project)
        run.check(f"{turn['name']}: the tree at its end", run_tree.differences(
            run_story.without_git(before), expected))
    run.check("turn 3: the agent's commit is there",
              "" if before[run_tree.GIT] != run.start[run_tree.GIT] else "HEAD did not move")
    failed = agent.world.notes / "failed"
    return run.check("the recording hook recorded every event",
                     failed.read_text() if failed.exists() else "")


def tell_bare(told, options):
    if tell(told) and options.save_payloads:
        count = run_payloads.save(told.agent)
        told.check(f"{count} payloads kept", "" if count else "none")


def belay_for(agent, program, everything=False):
    """Belay in the agent's HOME; with `everything` in its environment as a whole, as where
    Belay starts the agent's program."""
    environment = agent.full_environment()
    needed = ("HOME", "PATH", "LANG", "TMPDIR", "USER")
    return run_belay.Belay(program, agent.world, environment if everything else {
        name: environment[name] for name in needed})


def tell_with_belay(told, program):
    agent, belay = told.agent, belay_for(told.agent, program)
    before = run_belay.check_install(told, belay)
    if not tell(told):
        return
    events = agent.events()
    run_belay.check_known(told, belay, events)
    run_belay.check_slash(told, belay, events)
    run_belay.check_taking_back(told, belay, events)
    run_belay.check_uninstall(told, belay, before)


def tell_in_project(told, program):
    """One turn, with hooks of the project alone: that the agent reads them there."""
    agent = told.agent
    belay = belay_for(agent, program)
    came = run_belay.install_in_project(told, belay)
    if told.turn(run_story.TURNS[0]):
        run_belay.check_project(told, belay, agent.events(), came)


def put_on_path(agent, belay):
    """The agent and Belay by the names people call them by."""
    (agent.world.bin / "belay").symlink_to(belay)
    own = agent.world.bin / agent.name
    own.write_text(f"#!/bin/sh\n{agent.without_screen}exec " + " ".join(agent.program())
                   + ' "$@"\n')
    own.chmod(0o755)


def run(name, options, report):
    pins = run_install.pins()
    os.umask(0o022)
    scratch = tempfile.mkdtemp(prefix=f"belay-agents-{name}-")
    try:
        with open(os.path.join(scratch, "requests.jsonl"), "w", encoding="utf-8") as log:
            world = World(scratch, "")
            agent = ALL[name](pins[name], pins["node"], world)
            run_story.make_project(world.project)
            turns = run_chat.EVERY if options.chat else run_story.TURNS
            script = model_script.Script(run_story.script_for(agent, turns))
            server = model_server.ModelServer(script, log)
            world.url = server.url
            told = Run(agent, server, report)
            server.on_request = told.on_request
            with server:
                agent.prepare()
                put_on_path(agent, options.belay)
                if options.chat:
                    run_chat.tell(told, belay_for(agent, options.belay, everything=True))
                elif options.bare:
                    tell_bare(told, options)
                elif options.project:
                    tell_in_project(told, options.belay)
                else:
                    tell_with_belay(told, options.belay)
        times = ", ".join(f"{seconds:.1f}" for seconds in told.seconds)
        print(f"         {name:<9} {agent.pin.version}: {times} s a turn", flush=True)
    except Exception:  # noqa: BLE001  (the other agents still have their turn)
        report.failed(name, "the harness itself", traceback.format_exc())
    finally:
        if options.keep:
            print(f"         {name:<9} left in {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
