"""Conversations that go two ways: forks of an agent's own, forks of a directory, summaries.

Rows of `run --chat`; `chat` is a run_chat.Chat after its rewinds were all undone.
"""
import contextlib
import json

import run_chat


def sessions(belay):
    """What Belay knows of sessions, by id."""
    _, document = belay.json("sessions", "--all")
    return {one["id"]: one for one in (document or {}).get("sessions", [])}


def tell_own_fork(chat, belay, said):
    """The agent forks its session itself: the fork has the turns of the one it is of."""
    agent, known = chat.agent, set(sessions(belay))
    turn = next(chat.later)
    sent, done = chat.say(turn, agent.program() + agent.own_fork(turn["prompt"]))
    if not done:
        return
    chat.check_told("its own fork", sent, turn, said)
    new = {name: one for name, one in sessions(belay).items() if name not in known}
    fork, one = next(iter(new.items()), ("", {}))
    chat.check("its own fork: a session that has the turns of its parent", "" if
               len(new) == 1 and one["parent"] == agent.session
               and one["inherited_turns"] == len(said) and one["turns"] == 1
               and not one["is_subagent"] else f"{new}")
    number = next((c["turn"] for c in belay.checkpoints() if c["session"] == fork
                   and turn["prompt"] in (c["prompt"] or "")), None)
    chat.check("its own fork: turns are counted on",
               "" if number == len(said) + 1 else f"the first is turn {number}")
    chat.check("its own fork: an inherited turn is the parent's", "" if target_of(
        belay, "turn:2", fork) == target_of(belay, "turn:2", agent.session) else "another")
    chat.take_back("its own turn", "rewind", fork, "--to", f"turn:{len(said) + 1}",
                   prompt=turn["prompt"])
    belay_resume = [str(agent.world.bin / "belay"), "resume", fork, "--"]
    chat.go_on("its own turn taken back", said, belay_resume)


def target_of(belay, reference, session):
    _, document = belay.json("rollback", reference, "--session", session, "--dry-run")
    return (document or {}).get("target", f"none of {session}")


@contextlib.contextmanager
def working_in(agent, directory):
    """The agent's tools name files of that directory."""
    project, agent.world.project = agent.world.project, directory
    try:
        yield
    finally:
        agent.world.project = project


def tell_directories(chat, belay):
    """Two forks side by side of the directory as it was before turn 3."""
    agent, before = chat.agent, chat.kept()
    for name in ("left", "right"):
        directory = chat.project.parent / name
        status, made = belay.json("fork", "turn:3", str(directory), "--session", agent.session)
        session = ((made or {}).get("chat") or {}).get("forked")
        if not chat.check(f"fork {name}: the conversation goes along",
                          "" if status == 0 and session else f"exit {status}: {made}"):
            return
        turn = next(chat.talk)
        command = [str(agent.world.bin / "belay"), "resume", session, "--",
                   *agent.saying(turn["prompt"])]
        sent, done = chat.say(turn, command, directory)
        if not done:
            return
        with working_in(agent, directory):
            chat.check_told(f"fork {name}", sent, turn, [run_chat.FIRST, run_chat.SECOND],
                            verbatim=False)
        check_paths(chat, f"fork {name}", sent)
    if agent.copies_inherited:
        tell_inherited(chat, belay, session, directory)
    now = chat.kept()
    chat.check("forks: the original is byte for byte what it was",
               [name for name, seen in before.items() if now.get(name) != seen])


def tell_inherited(chat, belay, session, directory):
    """A turn that was said in the source is taken back in the fork."""
    status, made = belay.json("rewind", session, "--to", "turn:2", "--root", str(directory))
    chat.check("fork: an inherited turn is taken back", "" if status == 0 else
               f"exit {status}: {made}")
    turn = next(chat.talk)
    sent, done = chat.say(turn, [str(chat.agent.world.bin / "belay"), "resume", session, "--",
                                 *chat.agent.saying(turn["prompt"])], directory)
    if done:
        with working_in(chat.agent, directory):
            chat.check_told("fork: without it", sent, turn, [run_chat.FIRST], verbatim=False)
        check_paths(chat, "fork: without it", sent)


def check_paths(chat, what, sent):
    old = str(chat.project) + "/"
    everything = json.dumps([e["body"].get("messages") or e["body"].get("input")
                             or e["body"].get("contents") for e in sent])
    chat.check(f"{what}: no path of the source", "" if old not in everything else
               everything[max(0, everything.index(old) - 300):][:500])


def tell_summaries(chat, belay, said):
    """A part of the conversation is replaced: the model is told the rest and the summary."""
    agent, first = chat.agent, said[0]
    original = chat.kept()
    status, made = belay.json("summarize", agent.session, "--to", "turn:2")
    chat.check("summary: of the first turn", "" if status == 0 else f"exit {status}: {made}")
    turn = next(chat.talk)
    sent, done = chat.say(turn, [str(agent.world.bin / "belay"), "resume", agent.session, "--",
                                 *agent.saying(turn["prompt"])])
    now = chat.kept()
    chat.check("summary: the original is byte for byte what it was",
               [name for name, seen in original.items() if now.get(name) != seen])
    if done:
        told = run_chat.heard(chat.told[turn["name"]]["conversation"], agent)
        rest = [part for one in said[1:] for part in run_chat.spoken(one, agent)]
        want = [*rest, ("user", turn["prompt"])]
        at = len(told) - len(want)
        chat.check("summary: all that was said since, and the new prompt",
                   run_chat.first_difference(told[max(at, 0):], want))
        stands = " ".join(str(part[1]) for part in told[:max(at, 0)])
        chat.check("summary: two messages stand for the turn, and say what was asked", "" if
                   at == 2 and first["prompt"] in stands else f"{told[:max(at, 0)]}")
        calls = [part for part in told[:max(at, 0)] if part[0] in ("call", "result")]
        chat.check("summary: no call of it is left", f"{calls}" if calls else "")
    status, made = belay.json("undo", "--exact")
    chat.check("undo of it: the session goes on", run_chat.goes_on(belay, agent.session,
                                                                   agent.session))
