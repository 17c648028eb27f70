#!/usr/bin/env python3
"""The harness itself: its checks pass when Belay is right, and fail when it is not.

Belay is played by a small model of it (FakeBelay), which is told the recorded events of all
agents; each fault in FAULTS must be seen by a check.
"""
import sys

sys.dont_write_bytecode = True

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import model_request
import run_belay
import run_chat
import run_install
import run_payloads
import run_replay
import run_sandbox
import run_tree
from agent import FAILED, POST, PRE, PROMPT, World
from run_report import Report


class QuietReport(Report):
    def __init__(self):
        super().__init__()
        self.passed_names, self.failures = [], []

    def ok(self, agent, what):
        self.passed_names.append(what)

    def failed(self, agent, what, detail=""):
        self.failures.append(f"{what}: {detail}")


class FakeBelay:
    """Knows a project's trees at each event, and who was at work. `fault`: what it does wrong."""

    def __init__(self, agent, fault=""):
        self.agent, self.fault = agent, fault
        self.known, self.changes, self.open, self.undos = [], [], [], []
        self.turns, self.turn, self.last, self.seq = {}, None, None, 0

    # --- as run_belay.Belay --------------------------------------------------------------

    def run(self, *words, stdin=""):
        if words[0] == "hook":
            self._hook(words[2] if len(words) > 2 else "", stdin)
            return run_sandbox.Result(0, "", 0)
        if words[0] == "rollback":
            status, document = self._rollback(words)
            return run_sandbox.Result(status, str(document), 0)
        return run_sandbox.Result(0, "", 0)

    def json(self, *words):
        return getattr(self, "_" + words[0])(words)

    def checkpoints(self):
        return self.known

    # --- what it does ---------------------------------------------------------------------

    def _now(self):
        return run_belay.covered(run_tree.record(self.agent.world.project))

    def _look(self, by, running):
        self.seq += 1
        now = self._now()
        for path in sorted(set(now) | set(self.last or now)):
            if self.last is not None and now.get(path) != self.last.get(path):
                named = [call for call in running if path in json.dumps(call.arguments)]
                self.changes.append({"path": path, "seq": self.seq,
                                     "author": self._author(named[-1] if named else by)})
        self.last = now
        return now

    def _hook(self, argument, stdin):
        event = self.agent.read_event({"argument": argument, "stdin": stdin, "began": 0})
        running = list(self.open)
        by = running[-1] if running else None
        if event.kind in (POST, FAILED):
            same = [call for call in self.open if (call.tool, call.arguments) ==
                    (event.tool, event.arguments)]
            by = same[-1] if same else by
            self.open = [call for call in self.open if call not in same]
        tree = self._look(by, running)
        if event.kind == PRE:
            self.open = [*self.open, event] if self.agent.tells_ends else [event]
            self._keep(tree, event, {"name": event.tool, "id": event.call})
        begins = PROMPT if self.agent.says_prompt else self.agent.turn_begins
        if event.kind == begins and self.agent.is_human(event):
            number = self.turns[event.session] = self.turns.get(event.session, 0) + 1
            self.turn = (event.session, number, event.prompt)
            self._keep(tree, event, None)

    def _author(self, call):
        if call is None or self.fault == "everything is outside":
            return {"kind": "outside", "session": None, "agent": None, "turn": None, "tool": None}
        session, number, _ = self.turn or (call.session, None, None)
        return {"kind": "session", "session": session, "agent": self.agent.name, "turn": number,
                "tool": call.tool}

    def _keep(self, tree, event, tool):
        session, number, prompt = self.turn or (event.session, None, None)
        if self.fault == "prompts are lost":
            prompt = None
        self.known.append({
            "id": f"c{len(self.known)}", "seq": self.seq, "session": session, "turn": number,
            "prompt": prompt, "agent": self.agent.name, "tool": tool, "tree": tree,
            "description": "before it", "own": event.session})

    def _status(self, _):
        return 0, {"failures": ["one"] if self.fault == "a hook failed" else []}

    def _log(self, words):
        return 0, {"changes": [c for c in self.changes if c["path"] == words[-1]]}

    def _rollback(self, words):
        target = self._find(words)
        if target is None:
            return 1, {"error": "not found"}
        outside = [c["path"] for c in self.changes
                   if c["seq"] > target["seq"] and c["author"]["kind"] == "outside"]
        if outside and not {"--exact", "--keep-outside"} & set(words) and \
                self.fault != "nobody is asked":
            return 1, {"outside": outside}
        before, tree = self._now(), dict(target["tree"])
        if self.fault == "one call too late":
            tree = self.known[min(self.known.index(target) + 1, len(self.known) - 1)]["tree"]
        if self.fault == "modes stay":
            tree = {path: dict(entry, mode=before.get(path, entry)["mode"])
                    for path, entry in tree.items()}
        if self.fault == "nothing is deleted":
            tree = {**before, **tree}
        if "--keep-outside" in words:
            tree.update({path: before[path] for path in outside if path in before})
        self._become(tree)
        self.undos.append(before)
        return 0, {"operation": "o1"}

    def _find(self, words):
        name = words[1]
        session = self.agent.session
        for known in self.known:
            if name == known["id"] or (
                    name == f"turn:{known['turn']}" and known["session"] == session
                    and not known["tool"]) or (
                    known["tool"] and name == f"tool:{known['tool']['id']}"
                    and known["own"] == session):
                return known
        return None

    def _undo(self, _):
        tree = self.undos.pop()
        if self.fault != "undo does nothing":
            self._become(tree)
        return 0, {}

    def _become(self, tree):
        project = self.agent.world.project
        here = run_tree.record(project)
        ours = run_belay.covered(here)
        run_tree.write(project, {**{p: e for p, e in here.items() if p not in ours}, **tree})
        (project / ".git/refs/heads/main").write_text(tree[run_tree.GIT]["text"] + "\n")


FAULTS = ("one call too late", "modes stay", "nothing is deleted", "undo does nothing",
          "everything is outside", "prompts are lost", "nobody is asked", "a hook failed")


def replay(name, fault=""):
    report = QuietReport()
    with tempfile.TemporaryDirectory() as scratch:
        agent = run_replay.ALL[name](None, None, World(scratch, ""))
        run_replay.tell(run_replay.Replayed(agent, report), FakeBelay(agent, fault))
    return report


class ReplayTest(unittest.TestCase):
    def test_every_agent_has_a_recorded_story(self):
        kept = {path.name for path in (run_payloads.HERE / "payloads").iterdir() if path.is_dir()}
        self.assertEqual(kept, set(run_replay.ALL))

    def test_all_checks_pass_when_all_is_right(self):
        for name in run_replay.ALL:
            with self.subTest(name):
                report = replay(name)
                self.assertEqual(report.failures, [])
                self.assertGreater(len(report.passed_names), 20)

    def test_every_fault_is_seen(self):
        for name in ("claude", "copilot"):  # with ids of calls, and without
            for fault in FAULTS:
                with self.subTest(fault, agent=name):
                    self.assertNotEqual(replay(name, fault).failures, [])


class ChatTest(unittest.TestCase):
    """What a request says after a conversation was taken back: every wrong one is seen."""

    def failures(self, change, said=(run_chat.FIRST,)):
        """`change` is made to the messages that are right; what is then said to be wrong."""
        report, turn = QuietReport(), run_chat.LATER[0]
        with tempfile.TemporaryDirectory() as scratch:
            agent = run_replay.ALL["qwen"](None, None, World(scratch, ""))
            run = type("Run", (), {"agent": agent, "check": lambda _, what, problem: report.check(
                "qwen", what, problem)})()
            chat = run_chat.Chat(run, None)
            native = self.request([run_chat.FIRST], run_chat.SECOND, agent)
            request = self.request(said, turn, agent)
            change(request["body"]["messages"])
            request["conversation"] = model_request.read(
                "/v1/chat/completions", request["body"]).conversation
            chat.told = {turn["name"]: request, run_chat.SECOND["name"]: native}
            chat.check_told("it", [request], turn, [run_chat.FIRST])
        return report.failures

    @staticmethod
    def request(turns, turn, agent):
        messages = []
        for one in turns:
            messages.append({"role": "user", "content": one["prompt"]})
            for step in one["steps"]:
                calls = [dict(agent.call(action), id=f"c{len(messages)}")
                         for action in step["actions"]]
                messages.append({"role": "assistant", "content": step["text"], "tool_calls": [
                    {"id": call["id"], "function": {"name": call["name"],
                                                    "arguments": json.dumps(call["args"])}}
                    for call in calls]})
                messages += [{"role": "tool", "tool_call_id": call["id"], "content": "done"}
                             for call in calls]
        messages.append({"role": "user", "content": turn["prompt"]})
        return {"body": {"messages": messages}}

    def test_what_is_right_passes(self):
        self.assertEqual(self.failures(lambda messages: None), [])

    def test_every_fault_is_seen(self):
        faults = {
            "a prompt is left": lambda m: m.insert(-1, {
                "role": "user", "content": run_chat.SECOND["prompt"]}),
            "an answer is missing": lambda m: m.pop(-2),
            "a result is missing": lambda m: m.pop(2),
            "a result is another": lambda m: m[2].update(content="other"),
            "a call has other arguments": lambda m: m[1]["tool_calls"][0]["function"].update(
                arguments='{"file_path": "/else"}'),
            "the first prompt is said twice": lambda m: m.insert(0, dict(m[0])),
            "nothing is kept": lambda m: m.__delitem__(slice(0, -1)),
            "a word is somewhere": lambda m: m[0].update(x=run_chat.THIRD["name"]),
        }
        for name, fault in faults.items():
            with self.subTest(name):
                self.assertNotEqual(self.failures(fault), [])
        self.assertNotEqual(self.failures(lambda _: None, said=run_chat.TURNS), [])


class TreeTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def test_a_tree_that_is_written_is_the_same_when_it_is_read(self):
        tree = {"d": {"mode": "040700"}, "d/f": {"mode": "100640", "text": "x\udcff\n"},
                "l": {"mode": "120777", "text": "d/f"}, "e": {"mode": "040755"}}
        (self.root / "l").mkdir()
        (self.root / "gone").write_text("")
        (self.root / "e").write_text("a file where a directory is to be")
        run_tree.write(self.root, tree)
        self.assertEqual(run_tree.record(self.root), tree)

    def test_differences_name_what_is_missing_added_and_changed(self):
        left = {"a": {"mode": "100644", "text": "1"}, "b": {"mode": "100644", "text": "1"}}
        right = {"b": {"mode": "100755", "text": "1"}, "c": {"mode": "100644", "text": "1"}}
        self.assertEqual([line.split(":")[0] for line in run_tree.differences(left, right)],
                         ["a", "b", "c"])
        self.assertEqual(run_tree.differences(left, dict(left)), [])

    def test_head_is_read_loose_packed_and_detached(self):
        def git(*words):
            return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
                                  cwd=self.root, check=True, capture_output=True,
                                  text=True).stdout.strip()
        self.assertIsNone(run_tree.read_head(self.root))
        git("init", "-q", "-b", "main")
        self.assertEqual(run_tree.read_head(self.root), "unborn")
        git("commit", "-q", "--allow-empty", "-m", "x")
        commit = git("rev-parse", "HEAD")
        self.assertEqual(run_tree.read_head(self.root), commit)
        git("pack-refs", "--all")
        self.assertEqual(run_tree.read_head(self.root), commit)
        git("checkout", "-q", "--detach")
        self.assertEqual(run_tree.read_head(self.root), commit)


class PayloadTest(unittest.TestCase):
    def test_paths_of_the_run_are_replaced_everywhere(self):
        with tempfile.TemporaryDirectory() as scratch:
            world = World(scratch, "http://127.0.0.1:34567")
            scrubber = run_payloads.Scrubber(world, pathlib.Path("/opt/agent/bin/x"))
            slug = run_payloads.slug(str(world.project))
            text = f"{world.project}/a {world.home}/.x {world.tmp}/y {slug}.jsonl {world.url}/v1"
            self.assertEqual(scrubber.text(text), "/home/dev/app/a /home/dev/.x /tmp/y "
                             "-home-dev-app.jsonl http://127.0.0.1:4000/v1")

    def test_kept_payloads_name_no_path_of_a_machine(self):
        for file in (run_payloads.HERE / "payloads").rglob("*.json*"):
            self.assertNotRegex(file.read_text(),
                                r"/tmp/belay|belay-agents|/root/[^d]|/scratch/home")


class InstallTest(unittest.TestCase):
    def test_versions_are_exact_and_the_cache_can_be_moved(self):
        pins = run_install.pins()
        self.assertEqual(set(pins) - {"node"}, set(run_replay.ALL) - {"crush"})
        for pin in pins.values():
            self.assertRegex(pin.version, r"^\d+\.\d+\.\d+$")
        os.environ["BELAY_AGENTS_CACHE"] = "/somewhere"
        self.addCleanup(os.environ.pop, "BELAY_AGENTS_CACHE")
        self.assertEqual(run_install.pins()["claude"].folder,
                         pathlib.Path("/somewhere/claude-2.1.325"))


if __name__ == "__main__":
    unittest.main()
