"""Checkpoints of one tree without git, with it, with git.protect and with git.refs; each
row has a store of its own and sees the same edits in the same rounds."""

import os
import shutil
import subprocess

from .contenders import Belay, Limit
from .kit import StepFailed
from .lab import Cell, WrongCheckpoint, time_run, turns
from .trees import generate, generate_plain, size_name

# name, title, files changed before each round, whether git commits them
WORKLOADS = [("nothing", "nothing", 0, False), ("ten", "10 changed", 10, False),
             ("committed", "10 committed", 10, True)]


class Trees:
    """The same files three times: without .git; with it; and with one that gets refs, so
    that what git.refs writes there is not seen by the others."""

    def __init__(self, name, plain, git, refs):
        self.name, self.plain, self.git, self.refs = name, plain, git, refs

    def all(self):
        return [self.plain, self.git, self.refs]


def make_trees(lab, number):
    made = []
    for suffix, make in (("plain", generate_plain), ("git", generate), ("refs", generate)):
        folder = os.path.join(lab.tree_dir, suffix)
        os.makedirs(folder, exist_ok=True)
        made.append(make(lab.kit, folder, number, lab.env))
    return Trees(size_name(number), *made)


class GitRow(Belay):
    """`belay checkpoint -q` with some settings."""

    kind = group = "belay"

    def __init__(self, lab, tree, name, settings):
        super().__init__(lab, tree)
        self.name, self.settings = name, settings

    def prepare(self, store):
        super().prepare(store)
        self.config = os.path.join(store, "config.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(self.settings)

    def env(self):
        return {**super().env(), "BELAY_CONFIG": self.config}

    def end(self):
        """What goes on in the background ends before anybody else is timed."""
        if "refs" not in self.settings:
            return
        busy = 4  # whoever is at it has not ended within ten seconds
        for _ in range(30):
            done = subprocess.run([self.lab.belay, "__anchor"], cwd=self.tree.path,
                                  env=self.env(), check=False, capture_output=True)
            if done.returncode != busy:
                done.check_returncode()
                return
        raise StepFailed(["belay", "__anchor"], busy, b"it is never done")

    def count_calls(self, scratch):
        """System calls of one checkpoint, all threads and children; None without strace."""
        if not shutil.which("strace"):
            return None
        log = os.path.join(scratch, "calls")
        subprocess.run(["strace", "-f", "-c", "-qq", "-o", log, self.lab.belay, "checkpoint",
                        "-q"], cwd=self.tree.path, env=self.env(), check=True,
                       capture_output=True)
        with open(log, encoding="utf-8") as file:
            total = [line.split() for line in file if line.rstrip().endswith("total")]
        return int(total[0][-3] if total and total[0][-2].isdigit() and len(total[0]) > 5
                   else total[0][-2]) if total else None


class GitPlan:
    def __init__(self, args):
        self.rounds = args.rounds or (3 if args.quick else 15)


class GitMeasured:
    """Everything that came out of one size."""

    def __init__(self, trees, rows, plan):
        self.trees, self.rows, self.plan = trees, rows, plan
        self.cells = {name: {row.name: Cell() for row in rows} for name, *_ in WORKLOADS}
        self.calls = {name: {} for name, *_ in WORKLOADS}
        self.failed = {}


class GitSession:
    def __init__(self, lab, trees, wanted, plan, progress):
        self.lab, self.trees, self.plan, self.progress = lab, trees, plan, progress
        rows = [GitRow(lab, trees.plain, "no git", ""),
                GitRow(lab, trees.git, "git", ""),
                GitRow(lab, trees.git, "protect", "[git]\nprotect = true\n"),
                GitRow(lab, trees.refs, "refs", "[git]\nrefs = true\n")]
        rows = [row for row in rows if wanted(row)]
        rows += [row for row in (Limit(lab, trees.git, "walk", 1),
                                 Limit(lab, trees.git, "statlist", 1)) if wanted(row)]
        self.out = GitMeasured(trees, rows, plan)
        self.edits = 0

    def _rows(self):
        return [row for row in self.out.rows if row.name not in self.out.failed]

    def measure(self):
        for row in self.out.rows:
            row.prepare(self.lab.new_dir(self.trees.name, row.name.replace(" ", "-")))
            self._turn(row, Cell(), row.first)
            self._turn(row, Cell(), row.checkpoint)  # by its caches from here on
        for name, title, count, commits in WORKLOADS:
            git_before = self.trees.git.git_fingerprint()
            for number in range(self.plan.rounds):
                self._edit(count, commits)
                for row in turns(self._rows(), number):
                    self.progress.say(f"{self.trees.name}: {title}, round {number + 1} of "
                                      f"{self.plan.rounds}: {row.name}")
                    self._turn(row, self.out.cells[name][row.name], row.checkpoint)
            if not commits and self.trees.git.git_fingerprint() != git_before:
                raise WrongCheckpoint(f"{self.trees.git.path}/.git was changed by a checkpoint")
            self._edit(count, commits)
            for row in self._rows():
                if isinstance(row, GitRow):
                    self.out.calls[name][row.name] = row.count_calls(row.store)
                    row.end()
        return self.out

    def _edit(self, count, commits):
        if not count:
            return
        self.edits += 1
        for tree in self.trees.all():
            tree.edit(self.lab.kit, count, self.edits, self.lab.env)
            if commits and tree.has_git:
                subprocess.run(["git", "-C", tree.path, "commit", "-qam", f"edit {self.edits}"],
                               env=self.lab.env, check=True, capture_output=True)
        self.lab.unsettled = True

    def _turn(self, row, cell, action):
        try:
            if not time_run(self.lab, row, cell, action):
                self.out.failed[row.name] = f"exit {cell.failed['exit']}: {cell.failed['why']}"
            elif isinstance(row, GitRow):
                row.end()
        except (StepFailed, subprocess.CalledProcessError) as failure:
            self.out.failed[row.name] = str(failure)
