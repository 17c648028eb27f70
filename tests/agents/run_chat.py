"""A conversation taken back: what the model is told afterwards.

Every turn has a word of its own, which is in its prompt, its answers and what it writes, and
nowhere else: a request that holds the word of a turn that was taken back is wrong. What it
must hold is what the agent itself had sent at that point, message for message.
"""
import hashlib
import json
import re

import run_belay
import run_forks
import run_sandbox
import run_story
import run_tree
from run_story import edit, read, shell, write


def _turn(word, wish, *actions):
    return {"name": word, "prompt": f"{word}: {wish}", "steps": [
        {"text": f"Doing {word}.", "actions": list(actions)},
        {"text": f"{word} is done.", "actions": []}]}


def _writes(word, path):
    return _turn(word, f"write {path}", write(path, f"{word}\n"))


FIRST = {"name": "quartz", "prompt": "quartz: edit a.txt", "steps": [
    {"text": "Reading for quartz.", "actions": [read("a.txt")]},
    {"text": "Editing for quartz.", "actions": [edit("a.txt", "alpha original", "alpha quartz")]},
    {"text": "quartz is done.", "actions": []}]}
SECOND = _writes("walnut", "two.txt")
THIRD = _turn("cobalt", "delete and commit", shell(
    "rm doomed.txt && echo cobalt > three.txt && git add -A && git "
    + " ".join(run_story.GIT_IDENTITY) + " commit -q -m cobalt", []))
# What is said after a conversation was taken back, each once. Files have the first letter for
# a name: some agents tell the model which files there are.
LATER = [_writes(word, f"{word[0]}.txt") for word in (
    "juniper", "saffron", "heather", "marble", "amber", "linen", "copper", "velvet", "thistle",
    "pewter", "birch", "dahlia", "ebony", "garnet", "indigo")]
# Where the files are not the ones that the scripted model names.
TALK = [{"name": word, "prompt": f"{word}: what do you think?", "steps": [
    {"text": f"{word} is fine.", "actions": []}]} for word in ("fennel", "nutmeg", "onyx")]
TURNS = [FIRST, SECOND, THIRD]
EVERY = [*TURNS, *LATER, *TALK]


class Chat:
    """One agent's conversation, and Belay's view of it."""

    def __init__(self, run, belay):
        self.run, self.belay, self.agent = run, belay, run.agent
        self.later, self.talk = iter(LATER), iter(TALK)
        self.project = run.agent.world.project
        self.told = {}  # word of a turn: the request that told its prompt
        self.original = None  # what the agent keeps of the first three turns

    def check(self, what, problem):
        return self.run.check(what, problem)

    # --- turns ----------------------------------------------------------------------------

    def say(self, turn, command, directory=None):
        """Runs a turn to its end; the requests that were sent, and whether it got there."""
        agent, seen = self.agent, len(self.run.server.entries)
        done = run_sandbox.run(command, agent.full_environment(), directory or self.project,
                               agent.timeout)
        self.run.seconds.append(done.seconds)
        with open(agent.world.scratch / "output.txt", "a", encoding="utf-8") as file:
            file.write(f"--- {turn['name']}: {command}: {done.status}\n{done.output}\n")
        sent = self.run.server.entries[seen:]
        steps = [(turn["name"], at) for at in range(len(turn["steps"]))]
        asked = [(e["rule"], e["step"]) for e in sent if e.get("rule")]
        self.told[turn["name"]] = next(
            (e for e in sent if (e.get("rule"), e.get("step")) == steps[0]), None)
        return sent, self.check(
            f"{turn['name']}: every step was asked for, exit 0",
            "" if done.status == 0 and set(steps) <= set(asked) else
            f"exit {done.status}, asked {asked}; its last words:\n" + done.output[-3000:])

    def first_turns(self):
        """The three; the trees before each and at the end, or None."""
        agent, trees = self.agent, [self.tree()]
        for turn in TURNS:
            count = len(agent.events())
            _, done = self.say(turn, agent.command(turn["prompt"]))
            if not done:
                return None
            if not agent.session or not agent.resumes:
                agent.session = next(
                    (e.session for e in agent.events()[count:] if e.session), None)
            trees.append(self.tree())
        self.original = self.kept()
        return trees

    def go_on(self, what, kept, command=None, directory=None):
        """`belay resume`, with a prompt of its own: the model is told the turns `kept` and
        that prompt, and nothing of any other. The turn that was said."""
        turn = next(self.later)
        words = self.agent.saying(turn["prompt"])
        if command is None:
            command = [str(self.agent.world.bin / "belay"), "resume", self.agent.session, "--"]
        sent, done = self.say(turn, [*command, *words], directory)
        if done:
            self.check_told(what, sent, turn, kept)
        return turn

    def check_told(self, what, sent, turn, kept, verbatim=True):
        agent, told = self.agent, self.told[turn["name"]]
        everything = json.dumps([e["body"] for e in sent], ensure_ascii=False)
        gone = [t["name"] for t in EVERY if t not in kept and t is not turn]
        self.check(f"{what}: no request has a word of {_named(gone, self.told)}", [
            f"{word}: …{everything[max(0, everything.index(word) - 200):][:400]}"
            for word in gone if word in everything])
        want = [part for t in kept for part in spoken(t, agent)] + [("user", turn["prompt"])]
        self.check(f"{what}: {_listed(kept)}, the new prompt, and nothing else",
                   first_difference(heard(told["conversation"], agent), want))
        # The agent's own words are in there too, when it said the same at that point.
        after = next((t for t in TURNS[1:] if kept == TURNS[:TURNS.index(t)]), None)
        if after and verbatim:
            self.check(f"{what}: byte for byte what the agent had sent before {after['name']}",
                       first_difference(lines_of(told, turn, agent),
                                        lines_of(self.told[after["name"]], after, agent)))

    # --- what there is --------------------------------------------------------------------

    def tree(self):
        return run_belay.covered(run_tree.record(self.project))

    def check_tree(self, what, expected):
        self.check(what, run_tree.differences(self.tree(), expected))

    def kept(self):
        """What the agent keeps of the session: {file: mode and digest}, or what it says."""
        agent, found = self.agent, {}
        for pattern in agent.conversations:
            for file in agent.world.home.glob(pattern):
                if file.is_file():
                    digest = hashlib.sha256(file.read_bytes()).hexdigest()
                    found[str(file)] = f"{file.stat().st_mode:o} {digest}"
        if not agent.conversations:
            found = {name: hashlib.sha256(text.encode()).hexdigest()
                     for name, text in agent.transcripts()}
        return found

    def check_original(self, what):
        now = self.kept()
        self.check(f"{what}: the original is byte for byte what it was",
                   [name for name, seen in self.original.items() if now.get(name) != seen])

    # --- Belay ----------------------------------------------------------------------------

    def take_back(self, what, *words, prompt, belay=None):
        """A rollback or rewind; what it says of the conversation."""
        status, document = (belay or self.belay).json(*words)
        chat = (document or {}).get("chat") or {}
        problem = f"exit {status}: {document}" if status or not chat.get("forked") else ""
        if not problem and prompt not in chat["prompt"]:
            problem = f"the prompt that was taken back is {chat['prompt']!r}"
        if not problem and chat["forked"] not in chat["resume"]:
            problem = f"{chat['forked']} is not resumed by {chat['resume']!r}"
        if not problem:  # the agent's own fork is taken wherever there is one
            problem = "; ".join(w for w in document["warnings"]
                                if "copy of its file" in w and "not in PATH" not in w)
        self.check(f"{what}: belay {' '.join(words[:3])}", problem)
        return chat


def _listed(turns):
    return ", ".join(turn["name"] for turn in turns)


def _named(gone, told):
    return ", ".join(word for word in gone if word in told)


def _same(have, want):
    """Agents may add arguments to a call, with what they take for given."""
    if "call" in (have[0], want[0]) and all(isinstance(one[-1], dict) for one in (have, want)):
        return have[:2] == want[:2] and want[2].items() <= have[2].items()
    return have == want


def first_difference(have, want):
    for at, (one, other) in enumerate(zip(have, want)):
        if not _same(one, other):
            return f"at {at}:\n  is   {one}\n  not  {other}"
    longer = have[len(want):] or want[len(have):]
    return f"{len(have)}, not {len(want)}: {longer}" if longer else ""


def lines_of(entry, turn, agent):
    """The lines of a request's messages, the prompt by another name, times left out."""
    listed = entry["body"].get("messages") or entry["body"].get("input") or \
        entry["body"].get("contents")
    said = [one for one in listed if one.get("role") not in ("system", "developer")]
    if agent.answers_twice:
        said = [dict(one, parts=[part for at, part in enumerate(one["parts"])
                                 if part not in one["parts"][:at]]) for one in said]
    text = json.dumps(said, ensure_ascii=False, indent=1).replace(turn["prompt"], "PROMPT")
    for pattern in agent.varies:
        text = re.sub(pattern, "VARIES", text)
    return text.split("\n")


def spoken(turn, agent):
    """A turn as a request must hold it: prompt, answers, calls, that each was answered."""
    said = [("user", turn["prompt"])]
    for step in run_story.steps_of(turn, agent):
        calls = [agent.call(action) for action in step["actions"]]
        said.append(("assistant", step["text"]))
        said += [("call", call["name"], call.get("args", call.get("input"))) for call in calls]
        said += [("result", call["name"]) for call in calls]
    return said


def heard(conversation, agent):
    """The same of a request. What the agent adds of its own accord is left out."""
    said, names = [], {}
    for one in conversation:
        text = one.get("text", "")
        for pattern in agent.adds:
            text = re.sub(pattern, "", text, flags=re.S)
        text = text.strip().strip('"' if one["role"] == "user" else "")
        if one["role"] != "system" and text:
            said.append((one["role"], text))
        for call in one.get("calls", []):
            said.append(("call", call["name"], call["args"]))
            names[call["id"]] = call["name"]
        for result in one.get("results", []):
            answered = ("result", names.get(result["id"], result["id"]))
            if not (agent.answers_twice and said[-1] == answered):
                said.append(answered)
    return said


def set_up(run, belay):
    """The chat after three turns, with the trees; None if it did not get there."""
    chat = Chat(run, belay)
    for words in (("on", str(chat.project)), ("install", run.agent.name,
                                              *run.agent.install_flags)):
        done = belay.run(*words)
        run.check("belay " + words[0], done.output if done.status else "")
    return chat, chat.first_turns()


def tell(run, belay):
    chat, trees = set_up(run, belay)
    if not trees:
        return
    if run.agent.rewinds:
        tell_rewinds(chat, belay, trees)
    else:
        tell_refusal(chat, belay, trees)


def tell_rewinds(chat, belay, trees):
    agent, session = chat.agent, chat.agent.session

    # The files, git and the conversation.
    chat.take_back("both", "rollback", "turn:2", "--both", "--yes", prompt=SECOND["prompt"])
    chat.check_tree("both: files and HEAD are as before turn 2", trees[1])
    chat.check_original("both")
    belay.json("undo")
    chat.check_tree("undo of it: files and HEAD are back", trees[3])
    chat.check("undo of it: the session goes on", goes_on(belay, session, session))
    belay.json("redo")
    chat.check_tree("redo of it: files and HEAD are as before turn 2", trees[1])
    in_fork = chat.go_on("both", [FIRST])

    # A turn in the fork is taken back; here without the agent's own program.
    forked = chat.take_back("a turn in the fork", "rollback", "turn:2", "--both", "--yes",
                            prompt=in_fork["prompt"], belay=belay.without(agent)
                            if agent.conversations else None)
    if agent.conversations:
        chat.check("a turn in the fork: a copy was made by Belay",
                   "" if forked.get("transcript") else f"{forked}")
    chat.check_tree("a turn in the fork: files and HEAD are as before it", trees[1])
    chat.go_on("a turn in the fork", [FIRST])

    # Twice, nothing said between, then a turn, and a turn that was inherited goes.
    files = run_tree.record(chat.project)
    once = chat.take_back("rewind", "rewind", session, "--to", "turn:3",
                          prompt=THIRD["prompt"])
    chat.check_tree("rewind: no file was touched", run_belay.covered(files))
    own = chat.go_on("rewind", [FIRST, SECOND])
    again = chat.take_back("a turn of its own", "rewind", once.get("forked", ""), "--to",
                           "turn:3", prompt=own["prompt"])
    chat.go_on("a turn of its own", [FIRST, SECOND])
    once = again
    chat.take_back("an inherited turn", "rewind", once.get("forked", ""), "--to", "turn:2",
                   prompt=SECOND["prompt"])
    chat.check("an inherited turn: no file was touched", run_tree.differences(
        {k: v for k, v in chat.tree().items() if k in files}, run_belay.covered(files)))
    twice = chat.take_back("twice", "rewind", session, "--to", "turn:3", prompt=THIRD["prompt"])
    chat.take_back("twice", "rewind", twice.get("forked", ""), "--to", "turn:2",
                   prompt=SECOND["prompt"])
    chat.go_on("twice", [FIRST])
    chat.check_original("after all of it")

    # All of it undone.
    while belay.json("undo", "--exact")[0] == 0:
        pass
    chat.check("all undone: the session goes on", goes_on(belay, session, session))
    chat.check_original("all undone")
    more = chat.go_on("all undone", TURNS)
    said = [*TURNS, more]
    said.append(chat.go_on("the agent's own resume", said, agent.command("")[:-len(
        agent.saying(""))]))
    if agent.forks:
        run_forks.tell_own_fork(chat, belay, said)
    run_forks.tell_directories(chat, belay)
    if agent.summarizes:
        run_forks.tell_summaries(chat, belay, said)
    if agent.elsewhere:
        tell_elsewhere(chat, said)
    if agent.compacts:
        tell_compacted(chat, belay)


def tell_elsewhere(chat, said):
    """A session that was gone on with in another directory."""
    agent = chat.agent
    own = agent.command("")[:-len(agent.saying(""))]
    there = chat.go_on("in another directory", said, own, chat.project / "src")
    number = len(said) + 1
    chat.take_back("a turn in another directory", "rewind", agent.session, "--to",
                   f"turn:{number}", prompt=there["prompt"])
    chat.go_on("a turn in another directory", said)


def tell_compacted(chat, belay):
    """A turn after the agent had shortened the conversation."""
    agent = chat.agent
    seen = len(chat.run.server.entries)
    done = run_sandbox.run(agent.command(agent.compacts), agent.full_environment(),
                           chat.project, agent.timeout)
    asked = [e for e in chat.run.server.entries[seen:] if "conversation" in e]
    chat.check(f"{agent.compacts}: the model was asked for a summary",
               "" if done.status == 0 and asked else f"exit {done.status}: {done.output}")
    turn, other = next(chat.later), next(chat.later)
    chat.say(turn, agent.command(turn["prompt"]))
    number = next((c["turn"] for c in belay.checkpoints()
                   if turn["prompt"] in (c["prompt"] or "")), 0)
    chat.take_back("after that", "rewind", agent.session, "--to", f"turn:{number}",
                   prompt=turn["prompt"])
    sent, done = chat.say(other, [str(agent.world.bin / "belay"), "resume", agent.session, "--",
                                  *agent.saying(other["prompt"])])
    if done:
        text = json.dumps([e["body"] for e in sent], ensure_ascii=False)
        chat.check(f"after that: no request has a word of {turn['name']}",
                   turn["name"] if turn["name"] in text else "")
        told, native = (lines_of(chat.told[one["name"]], one, agent) for one in (other, turn))
        chat.check("after that: byte for byte what the agent had sent before",
                   first_difference(told, native))
        chat.check("after that: what was shortened is not there again",
                   FIRST["prompt"] if FIRST["prompt"] in "\n".join(told) else "")


def goes_on(belay, session, expected):
    status, document = belay.json("resume", session)
    return "" if status == 0 and document["goes_on"] == expected else f"{status}: {document}"


def tell_refusal(chat, belay, trees):
    """Agents whose conversation cannot be taken back: it is said, and the files are."""
    reference = "turn:2" if chat.agent.resumes else next(
        (c["id"] for c in belay.checkpoints() if SECOND["name"] in (c["prompt"] or "")
         or c["session"] == chat.agent.session), "none")
    at = 1 if chat.agent.resumes else 2
    done = belay.run("rollback", reference, "--chat", "--yes")
    chat.check("--chat says that it cannot, exit 1", "" if done.status == 1 and
               "cannot be taken back from outside" in done.output else
               f"exit {done.status}: {done.output}")
    chat.check_tree("--chat: no file was touched", trees[3])
    done = belay.run("rollback", reference, "--both", "--yes")
    chat.check("--both says that it cannot, and rolls the files back", "" if
               done.status == 0 and "cannot be taken back from outside" in done.output else
               f"exit {done.status}: {done.output}")
    chat.check_tree("--both: files and HEAD are as before the turn", trees[at])
    if chat.agent.resumes:
        chat.go_on("resumed", TURNS)
