"""The story every agent is led through, in no agent's words.

Three turns, each a prompt and what the model answers, step by step. Actions are plain data;
an agent (agents_*.py) says which of its tools does them. `apply` is what an action does to
a tree (run_tree.py), so that what an agent left can be compared with what it was told.
"""
import copy
import os
import subprocess

import run_tree

GIT_IDENTITY = ["-c", "user.name=dev", "-c", "user.email=dev@example.com"]
BEFORE = {
    ".gitignore": (0o644, "ignored/\n.reasonix/\n"),
    "a.txt": (0o644, "alpha original\n"),
    "doomed.txt": (0o600, "keep me\n"),
    "src/b.txt": (0o644, "line one\nline two\nline three\n"),
    "tool.sh": (0o755, "#!/bin/sh\necho tool\n"),
}
UNTRACKED = {"notes.txt": (0o644, "mine, not in git\n")}
OUTSIDE = ("person.txt", "written by a person between two turns\n")


def read(path):
    return {"do": "read", "path": path}


def write(path, text):
    return {"do": "write", "path": path, "text": text}


def edit(path, old, new):
    return {"do": "edit", "path": path, "old": old, "new": new}


def shell(command, effect):
    """`effect`: a list of (path, mode or None, text or None for deleted)."""
    return {"do": "shell", "command": command, "effect": effect}


def subagent(prompt):
    return {"do": "subagent", "prompt": prompt}


def wait():
    """For a subagent that runs beside its parent."""
    return {"do": "wait"}


def finish():
    """For a subagent that ends by calling a tool."""
    return {"do": "finish"}


CLEAN_UP = shell(
    "rm doomed.txt && echo overwritten > src/b.txt && mkdir out && echo x > out/gen.txt"
    " && chmod 644 tool.sh",
    [("doomed.txt", None, None), ("src/b.txt", None, "overwritten\n"),
     ("out", 0o040755, ""), ("out/gen.txt", 0o100644, "x\n"), ("tool.sh", 0o100644, None)])
TWO_AT_ONCE = [shell("echo one > p1.txt", [("p1.txt", 0o100644, "one\n")]),
               shell("echo two > p2.txt", [("p2.txt", 0o100644, "two\n")])]
COMMIT = shell(
    "git add -A && git " + " ".join(GIT_IDENTITY) + " commit -q -m 'by the agent'", [])
SUB_PROMPT = "sub task: write sub.txt"

TURNS = [
    {"name": "turn 1", "prompt": "turn 1: create new.txt and edit a.txt", "steps": [
        {"text": "Reading.", "actions": [read("a.txt")]},
        {"text": "Writing and editing.", "actions": [
            write("new.txt", "created by turn 1\n"),
            edit("a.txt", "alpha original", "alpha edited by turn 1")]},
        {"text": "Turn 1 complete.", "actions": []}]},
    {"name": "turn 2", "prompt": "turn 2: clean up with the shell", "steps": [
        {"text": "Cleaning up.", "actions": [CLEAN_UP]},
        {"text": "Two at once.", "actions": TWO_AT_ONCE},
        {"text": "Turn 2 complete.", "actions": []}]},
    {"name": "turn 3", "prompt": "turn 3: delegate, then commit", "steps": [
        {"text": "Delegating.", "actions": [subagent(SUB_PROMPT)]},
        {"text": "Waiting.", "actions": [wait()]},
        {"text": "Committing.", "actions": [COMMIT]},
        {"text": "Turn 3 complete.", "actions": []}]},
]
SUB = {"name": "sub", "prompt": SUB_PROMPT, "steps": [
    {"text": "Writing.", "actions": [write("sub.txt", "written by a subagent\n")]},
    {"text": "Sub task complete.", "actions": [finish()]}]}


def make_project(directory):
    for path, (mode, text) in {**BEFORE, **UNTRACKED}.items():
        full = os.path.join(directory, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(full, mode)
    os.symlink("a.txt", os.path.join(directory, "link"))
    environment = {"PATH": os.environ["PATH"], "HOME": directory, "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (["init", "-q", "-b", "main"], ["add", *BEFORE, "link"],
                  [*GIT_IDENTITY, "commit", "-q", "-m", "start"]):
        subprocess.run(["git", "-c", "core.fsync=none", *words], cwd=directory,
                       env=environment, check=True)
    os.mkdir(os.path.join(directory, "ignored"))
    with open(os.path.join(directory, "ignored/cache.bin"), "w", encoding="utf-8") as file:
        file.write("not covered\n")


def outside_edit(directory):
    with open(os.path.join(directory, OUTSIDE[0]), "w", encoding="utf-8") as file:
        file.write(OUTSIDE[1])


def apply(tree, action):
    """The tree after an action; commits are not followed."""
    after = copy.deepcopy(tree)
    if action["do"] == "write":
        after[action["path"]] = {"mode": "100644", "text": action["text"]}
    elif action["do"] == "edit":
        entry = after[action["path"]]
        entry["text"] = entry["text"].replace(action["old"], action["new"])
    elif action["do"] == "subagent":
        for step in SUB["steps"]:
            for inner in step["actions"]:
                after = apply(after, inner)
    elif action["do"] == "shell":
        for path, mode, text in action["effect"]:
            _shell_effect(after, path, mode, text)
    return after


def _shell_effect(tree, path, mode, text):
    if mode is None and text is None:
        del tree[path]
        return
    entry = tree.setdefault(path, {})
    if mode is not None:
        entry["mode"] = f"{mode:06o}"
    if text is not None and not entry["mode"].startswith("040"):
        entry["text"] = text


def applied(trees, action, agent):
    """All trees there may be after an action, when before it there was one of `trees`. What
    a subagent beside its parent does may come at any time until it was waited for."""
    after = [apply(tree, action) for tree in trees]
    beside = action["do"] == "subagent" and "wait" not in agent.cannot
    if action["do"] == "wait":
        after = after[-1:]
    return trees + after if beside else after


def without_agents(tree):
    """Without what agents keep in a project for themselves."""
    return {path: entry for path, entry in tree.items() if path.split("/")[0] != ".reasonix"}


def without_git(tree):
    return {path: entry for path, entry in without_agents(tree).items() if path != run_tree.GIT}


def steps_of(turn, agent):
    """The steps of a turn that this agent can do: without a subagent where it has none."""
    made = []
    for step in turn["steps"]:
        actions = [a for a in step["actions"] if a["do"] not in agent.cannot]
        if actions or step is turn["steps"][-1]:
            made.append(dict(step, actions=actions))
    return made


def words_of(turn, agent):
    """What is said in a turn, in order: the prompt, then the model's answers."""
    return [turn["prompt"], *(step["text"] for step in steps_of(turn, agent))]


def heard(conversation, agent):
    """What a request says of the story's turns, in order: prompts and answers, nothing else.
    This is what a conversation that goes on, or was taken back, is judged by."""
    known = [words for turn in TURNS for words in words_of(turn, agent)]
    found = []
    for said in conversation:
        text = said.get("text", "") if said["role"] in ("user", "assistant") else ""
        found += [words for _, words in sorted(
            (text.index(words), words) for words in known if words in text)]
    return found


def script_for(agent, turns=TURNS):
    """The story in the words of an agent, for the model server."""
    rules = []
    for turn in [*turns, *([] if "subagent" in agent.cannot else [SUB])]:
        steps = [{"text": step["text"], "calls": [agent.call(a) for a in step["actions"]]}
                 for step in steps_of(turn, agent)]
        rules.append({"name": turn["name"], "prompt": turn["prompt"], "steps": steps,
                      "unless": agent.side_words})
    # The list that /rollback prints names the prompts of turns; a model that gets to see it
    # is told at its end to do nothing.
    rules.append({"name": "shown", "prompt": "and do nothing else", "steps": [{"text": "Shown."}]})
    return {"rules": rules, "side": {"text": "A scripted story"}}
