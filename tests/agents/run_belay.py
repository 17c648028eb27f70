"""Belay beside an agent: what it installs, what it says afterwards, what it takes back.

Everything is compared with what the recording hook saw itself: the tree at each event, byte
for byte and mode for mode. `Belay` runs the program; each check_* function prints its lines.
"""
import json
import os
import subprocess

import run_sandbox
import run_story
import run_tree
from agent import POST, PRE, PROMPT

OWN = (".local", ".config/belay")  # below HOME: the store and settings of Belay itself


def why_not(program, *words):
    """Why this Belay has no such command; "" if it has."""
    try:
        asked = subprocess.run([program, *words, "--help"], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{program}: {error.strerror}"
    missing = "not in this version yet" in asked.stdout + asked.stderr
    return f"belay {words[0]}: not in this version yet" if missing else ""


class Belay:
    """The program, in the same HOME as the agent."""

    def __init__(self, program, world, environment):
        self.program, self.world = program, world
        self.environment = environment

    def without(self, agent):
        """The same where the agent's program is not to be found."""
        there = self.environment["PATH"].split(":")
        path = ":".join(one for one in there if one != str(agent.world.bin))
        return Belay(self.program, self.world, dict(self.environment, PATH=path))

    def run(self, *words, stdin=""):
        return run_sandbox.run([self.program, *words], self.environment, self.world.project,
                               60, stdin)

    def json(self, *words):
        """(exit code, document); the document is None where there is none."""
        done = self.run(words[0], "--json", *words[1:])
        for line in done.output.splitlines():
            if line.startswith("{"):
                return done.status, json.loads(line)
        return done.status, None

    def checkpoints(self):
        """All of them, oldest first."""
        _, document = self.json("list", "--all", "--tools", "-n", "10000")
        return sorted((document or {}).get("checkpoints", []), key=lambda c: c["seq"])


def settings_of(world):
    """Everything below HOME but the project and what is Belay's."""
    own = tuple(name + "/" for name in OWN)
    return {path: entry for path, entry in run_tree.record(world.home).items()
            if path.split("/")[0] != world.project.name and not (path + "/").startswith(own)}


def check_install(run, belay):
    """Ends with the hooks in place."""
    agent, before = run.agent, settings_of(run.agent.world)
    done = belay.run("on", str(agent.world.project))
    run.check("belay on", done.output if done.status else "")
    done = belay.run("install", agent.name, "--dry-run")
    run.check("belay install --dry-run says what it would do, and does nothing",
              (f"exit {done.status}: {done.output}" if done.status or not done.output else "")
              or run_tree.differences(settings_of(agent.world), before))
    done = belay.run("install", agent.name, *agent.install_flags)
    installed = settings_of(agent.world)
    run.check("belay install", done.output if done.status else
              "" if installed != before else "nothing changed")
    done = belay.run("install", agent.name, *agent.install_flags)
    run.check("belay install again changes nothing", (done.output if done.status else "")
              or run_tree.differences(settings_of(agent.world), installed))
    done = belay.run("uninstall", agent.name)
    run.check("belay uninstall leaves every byte as it was", (done.output if done.status else "")
              or run_tree.differences(settings_of(agent.world), before))
    done = belay.run("install", agent.name, *agent.install_flags)
    run.check("belay install after uninstall", (done.output if done.status else "")
              or run_tree.differences(settings_of(agent.world), installed))
    status, document = belay.json("install", "--list")
    run.check("belay install --list says that it is there",
              "" if status == 0 and agent.name in json.dumps(document) else f"{document}")
    return {path: before.get(path) for path in agent.settings}


def check_known(run, belay, events):
    """What Belay knows after the story."""
    check_timeline(run, belay, events)
    check_authors(run, belay, events)


def check_taking_back(run, belay, events):
    check_outside(run, belay, events)
    check_rollbacks(run, belay, events)


def check_uninstall(run, belay, before):
    """`before`: the settings files as check_install found them."""
    done = belay.run("uninstall", run.agent.name)
    now = settings_of(run.agent.world)
    wrong = run_tree.differences({path: now[path] for path in before if path in now},
                                 {path: entry for path, entry in before.items() if entry})
    run.check("belay uninstall after the story leaves every byte as it was",
              (done.output if done.status else "") or wrong)


def install_in_project(run, belay):
    """With --project; the paths that came into the project by it."""
    agent, project = run.agent, run.agent.world.project
    agent.prepare_project()
    home, before = settings_of(agent.world), run_tree.record(project)
    done = belay.run("on", str(project))
    run.check("belay on", done.output if done.status else "")
    done = belay.run("install", agent.name, "--project", *agent.install_flags)
    came = sorted(set(run_tree.record(project)) - set(before))
    run.check("belay install --project", done.output if done.status else
              "" if came else "nothing came into the project")
    # Codex keeps there what its user trusts.
    wrong = [line for line in run_tree.differences(settings_of(agent.world), home)
             if not agent.install_flags or not line.startswith(agent.settings)]
    run.check("belay install --project leaves the user's settings alone", wrong)
    return came


def check_project(run, belay, events, came):
    """What Belay knows after the first turn, by hooks of the project alone."""
    agent, project = run.agent, run.agent.world.project
    check_timeline(run, belay, events)
    made = [path for step in run_story.steps_of(run_story.TURNS[0], agent)
            for action in step["actions"] for path in written_by(action)]
    check_authors(run, belay, events, made)
    done = belay.run("uninstall", agent.name, "--project")
    # What the agent wrote there itself stays: Qwen its "$version", opencode a .gitignore.
    now = run_tree.record(project)
    left = [path for path in came if path in now and (
        f"hook {agent.name}" in str(now[path]) if os.path.isfile(project / path)
        else not any(other.startswith(path + "/") for other in now))]
    run.check("belay uninstall --project takes all that is Belay's away",
              (done.output if done.status else "") or left)


# --- the timeline --------------------------------------------------------------------------

def turns_of(agent, events):
    """[(session, number in it, prompt, event that began it)]"""
    made, count = [], {}
    begins = PROMPT if agent.says_prompt else agent.turn_begins
    for event in events:
        if event.kind == begins and agent.is_human(event):
            count[event.session] = count.get(event.session, 0) + 1
            made.append((event.session, count[event.session], event.prompt or "", event))
    return made


def writing(agent, events):
    """The beginnings of calls that may write, without those whose end is not a call's own."""
    readers = agent.readers()
    return [e for e in events if e.kind == PRE and e.tool not in readers]


def check_timeline(run, belay, events):
    agent, known = run.agent, belay.checkpoints()
    for session, number, prompt, _ in turns_of(agent, events):
        found = [c for c in known if c["session"] == session and c["turn"] == number]
        problem = "" if found else f"none of {len(known)} checkpoints"
        if found and agent.says_prompt and prompt not in {c["prompt"] for c in found}:
            problem = f"{prompt!r} is not among {[c['prompt'] for c in found]}"
        elif found and {c["agent"] for c in found} != {agent.name}:
            problem = f"by {[c['agent'] for c in found]}"
        run.check(f"timeline: turn {number} with its prompt ({prompt[:20]})", problem)
    status, document = belay.json("status")
    run.check("belay status: no failure", "" if status == 0 and not document["failures"]
              else f"exit {status}: {document}")


def check_authors(run, belay, events, only=None):
    """Who changed a path, asked path by path."""
    agent = run.agent
    for path, author in expected_authors(agent, events).items():
        if only is not None and path not in only:
            continue
        _, document = belay.json("log", "--", path)
        changes = (document or {}).get("changes", [])
        said = [c["author"] for c in sorted(changes, key=lambda c: c["seq"])]
        wrong = [] if said else ["no change is known"]
        for field, allowed in author.items():
            if said and said[-1].get(field) not in allowed:
                wrong.append(f"{field} is {said[-1].get(field)!r}, not {allowed}")
        run.check(f"author of {path}: {author.get('tool', author['kind'])[0]}", wrong)


def expected_authors(agent, events):
    """{path: {part of the author: what Belay may say}}"""
    made = {}
    if agent.tells_ends:  # otherwise nobody can know that no call was running
        made[run_story.OUTSIDE[0]] = {"kind": ["outside"], "session": [None]}
    numbers = {}
    for session, number, _, event in turns_of(agent, events):
        numbers[event.note["began"]] = (session, number)
    for event in writing(agent, events):
        for turn in [*run_story.TURNS, run_story.SUB]:
            for step in turn["steps"]:
                for action in step["actions"]:
                    if agent.hook_tool_or_none(action) != event.tool or \
                            not agent.concerns(event, action):
                        continue
                    began = [b for b in numbers if b < event.note["began"]]
                    session, number = numbers[max(began)] if began else (agent.session, None)
                    author = {"kind": ["session"], "agent": [agent.name], "tool": [event.tool]}
                    if agent.says_prompt:
                        author.update(session=[session], turn=[number])
                    if event.session != session:  # a subagent in a session of its own
                        author.update(session=[session, event.session], turn=[number, None])
                    if action in run_story.TWO_AT_ONCE and not agent.serial:
                        author = {key: [*said, None] for key, said in author.items()}
                        author["kind"] = ["session", "shared"]
                    for path in written_by(action):
                        made[path] = author
    return made


def written_by(action):
    if action["do"] in ("write", "edit"):
        return [action["path"]]
    if action["do"] == "shell":
        return [path for path, mode, _ in action["effect"]
                if mode is None or not f"{mode:06o}".startswith("040")]
    return []


# --- taking back ---------------------------------------------------------------------------

def covered(tree):
    """Without what Belay does not cover in this project: what git ignores."""
    return {path: entry for path, entry in run_story.without_agents(tree).items()
            if path.split("/")[0] != "ignored"}


def check_rollbacks(run, belay, events):
    agent, project = run.agent, run.agent.world.project
    final = covered(run_tree.record(project))
    for session, number, prompt, event in turns_of(agent, events):
        name = f"rollback to before turn {number} ({prompt[:20]})"
        _take_back(run, belay, name, turn_reference(run, belay, session, number),
                   lambda now, event=event: run_tree.differences(now, covered(event.tree)), final,
                   commit_is_of(agent, session))
    for event, reference in references(run, belay, events):
        name = f"rollback to before {event.tool} {shown(event)}"
        _take_back(run, belay, name, reference,
                   lambda now, event=event: differs(agent, events, event, now), final,
                   commit_is_of(agent, event.session))


def turn_reference(run, belay, session, number):
    """turn:N is of the session that was active last; one of another is named by its id."""
    if session == run.agent.session:
        return f"turn:{number}"
    return next((c["id"] for c in belay.checkpoints()
                 if (c["session"], c["turn"], c["tool"]) == (session, number, None)), "none")


def references(run, belay, events):
    """[(event, reference)]: what names the state before each call that may write. Where the
    agent gives its calls no ids, it is the checkpoint's own."""
    agent, made, used = run.agent, [], set()
    known = belay.checkpoints()
    for event in writing(agent, events):
        if event.call and event.session == agent.session:
            made.append((event, f"tool:{event.call}"))
            continue
        same = [c for c in known if c["tool"] and c["tool"]["name"] == event.tool
                and c["description"].startswith("before ") and c["id"] not in used
                and (not event.call or c["tool"]["id"] == event.call)
                and c["session"] in (event.session, agent.session)]
        if run.check(f"timeline: a checkpoint before {event.tool} {shown(event)}",
                     "" if same else f"none of {len(known)}"):
            used.add(same[0]["id"])
            made.append((event, same[0]["id"]))
    return made


def differs(agent, events, event, now):
    """What is wrong with a tree that is to be the one before a call."""
    expected = covered(event.tree)
    if agent.serial:
        return run_tree.differences(now, expected)
    # Others may run at the same time: each path is as before or as after them.
    later = [e for e in events if e.kind == POST and e.note["began"] > event.note["began"]]
    after = covered(later[-1].tree) if later else expected
    for other in later:
        if not any(e.kind == PRE and e.note["began"] < other.note["began"]
                   and e.note["began"] > event.note["began"] for e in events):
            after = covered(other.tree)
    # Of a call that was under way Belay may have seen nothing yet, when the hook that
    # recorded the tree beside it did.
    began = event.note["began"]
    ends_later = {e.call for e in events if e.kind == POST and e.call and e.note["began"] > began}
    before = next((covered(e.tree) for e in events if e.kind == PRE and e.call in ends_later
                   and e.note["began"] < began), expected)
    return [line for line, path in ((line, line.split(":")[0])
                                    for line in run_tree.differences(now, expected))
            if now.get(path) not in (after.get(path), before.get(path))]


def commit_is_of(agent, session):
    """Whether Belay can know that the commit was made in that session: then it goes with a
    rollback, otherwise it stays unless one says --git reset."""
    return agent.resumes and agent.tells_ends and session == agent.session


def _take_back(run, belay, name, reference, wrong, final, own):
    project = run.agent.world.project
    git = [] if own else ["--git", "reset"]
    status, document = belay.json("rollback", reference, "--yes", "--exact", *git)
    now = covered(run_tree.record(project))
    problem = f"exit {status}: {document}" if status else wrong(now)
    run.check(name, problem)
    if status == 0 and document.get("operation"):
        status, document = belay.json("undo")
        run.check(f"undo of it: {name[9:]}", f"exit {status}: {document}" if status else
                  run_tree.differences(covered(run_tree.record(project)), final))


def check_outside(run, belay, events):
    """What a person wrote since is not taken back unasked."""
    turns = turns_of(run.agent, events)
    if not turns:
        return
    session, number, _, _ = turns[0]
    project, path = run.agent.world.project, run_story.OUTSIDE[0]
    before = covered(run_tree.record(project))
    words = ["rollback", turn_reference(run, belay, session, number), "--yes"]
    done = belay.run(*words)
    run.check("rollback over a person's file asks first", (
        "" if done.status == 1 and path in done.output else f"exit {done.status}: {done.output}")
        or run_tree.differences(covered(run_tree.record(project)), before))
    status, document = belay.json(*words, "--keep-outside")
    run.check("rollback --keep-outside leaves it", f"exit {status}: {document}" if status else
              "" if os.path.exists(project / path) else f"{path} is gone")
    if run.agent.resumes:  # otherwise another session made the commit, and it stays
        run.check("... and takes the agent's commit back with the files", run_tree.differences(
            *({run_tree.GIT: tree.get(run_tree.GIT)} for tree in (
                run_tree.record(project), events[0].tree))))
    if status == 0:
        belay.json("undo")


def shown(event):
    text = json.dumps(event.arguments or {})
    return text if len(text) <= 50 else text[:49] + "…"


# --- /rollback -----------------------------------------------------------------------------

def check_slash(run, belay, events):
    """The command inside the agent; what it prints is the agent's to show."""
    agent, project = run.agent, run.agent.world.project
    if agent.slash is None:
        return
    final = covered(run_tree.record(project))
    session, number, _, event = turns_of(agent, events)[-1]
    target = next((c for c in reversed(belay.checkpoints())
                   if c["session"] == session and c["turn"] == number and not c["tool"]), None)
    if not run.check("timeline: the last turn can be named by a number",
                     "" if target else "no checkpoint of it"):
        return
    # By its id: a session that is resumed to say this makes a checkpoint, and numbers move on.
    name = target["id"][:12]
    for words in ("", name):
        output = _slash(run, words)
        run.check(f"/rollback {words}".rstrip() + " changes nothing", run_tree.differences(
            covered(run_tree.record(project)), final) or _unless_shown(agent, output, target))
    _slash(run, f"{name} yes")
    run.check("/rollback ID yes takes the turn back", run_tree.differences(
        covered(run_tree.record(project)), covered(event.tree)))
    status, document = belay.json("undo")
    run.check("undo of /rollback", f"exit {status}: {document}" if status else
              run_tree.differences(covered(run_tree.record(project)), final))


def _unless_shown(agent, output, target):
    if agent.slash == "blocked" and not agent.shows_reason:
        return ""
    return "" if target["id"][:7] in output else \
        f"nothing of the list is shown: {output[-500:]}"


def _slash(run, words):
    """What the agent printed; that the model was not asked where the agent allows it."""
    agent, seen = run.agent, len(run.server.entries)
    done = run_sandbox.run(agent.slash_command(words), agent.full_environment(),
                           agent.world.project, agent.timeout)
    asked = [e for e in run.server.entries[seen:] if "conversation" in e]
    name = f"/rollback {words}".rstrip()
    if agent.slash == "blocked":
        run.check(f"{name} sends no request", "" if not asked else f"{len(asked)} were sent")
        return done.output
    told = json.dumps([e["conversation"] for e in asked], ensure_ascii=False)
    return done.output + told
