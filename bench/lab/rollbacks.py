"""What is taken back, by whom: every contender has a checkpoint of the same tree, the same
damage is done to it, and the tree is compared byte for byte afterwards."""

import json
import os
import shutil
import subprocess

from . import contenders as base
from . import peers
from .kit import StepFailed
from .lab import Cell, WrongCheckpoint, time_run, turns

# name, title, files changed, created and deleted
WORKLOADS = [("ten", "10 changed", (10, 0, 0)),
             ("many", "1000 changed, 100 new, 100 deleted", (1000, 100, 100))]


class BelayRollback(base.Belay):
    """`belay rollback REF --yes`, a whole process: safety checkpoint, journal,
    verification; durable."""

    def restore(self, meter, target):
        meter.run(self.lab.belay, "rollback", target, "--yes")

    def target(self):
        return self.last


class BelayUndo(BelayRollback):
    """`belay undo` of that rollback: the damage comes back."""

    name = "belay-undo"

    def undo(self, meter):
        meter.run(self.lab.belay, "undo")


class Put(base.Limit):
    """Writes the files that differ and flushes once, knowing all of them before; see
    bench/lab_limits.cc."""

    writes = True

    def __init__(self, lab, tree, how):
        super().__init__(lab, tree, how, "")

    def restore(self, meter, target):
        copy, diff = target
        program = self.lab.kit.program("lab_limits")
        self.inside = json.loads(
            meter.run(program, "put", self.tree.path, copy, diff, self.what).out)


def make_rows(lab, tree, wanted):
    rows = [BelayRollback(lab, tree), BelayUndo(lab, tree)]
    rows += [peer(lab, tree) for peer in peers.RESTORING]
    rows += [Put(lab, tree, how) for how in ("pwrite", "rename")]
    return [row for row in rows if wanted(row)]


class Measured:
    """Everything that came out of one tree."""

    def __init__(self, tree, rows):
        self.tree, self.rows = tree, rows
        self.cells = {name: {row.name: Cell() for row in rows} for name, _, _ in WORKLOADS}
        self.unavailable = {}  # row name: why
        # workload: {row name: what was not as before, by kind}
        self.wrong = {name: {} for name, _, _ in WORKLOADS}
        self.checked = 0       # rollbacks and undos of Belay, compared byte for byte

    def cell(self, workload, row_name):
        return self.cells[workload].get(row_name)


class Session:
    """Measures one tree. A turn of a contender: a checkpoint of the tree as it is; the
    damage; its restore, timed; the comparison; and what it left wrong is put right."""

    def __init__(self, lab, tree, rows, rounds, quick, progress):
        self.lab, self.tree, self.progress = lab, tree, progress
        self.rounds = rounds or (3 if quick else 7 if tree.files <= 20_000 else 3)
        self.budget_s = 3 if quick else 10
        self.out = Measured(tree, rows)
        self.copy = lab.new_dir(tree.name, "as-it-was")
        self.number = 0  # of the damage: never the same twice
        for row in rows:
            if row.program and not shutil.which(row.program):
                self.out.unavailable[row.name] = "not installed"
            elif row.needs_git and not tree.has_git:
                self.out.unavailable[row.name] = "no git"

    def measure(self):
        git_before = self.tree.git_fingerprint() if self.tree.has_git else None
        self._damage((10, 0, 0))  # work that was never committed must come back as well
        self._copy_tree()
        for row in self._rows():
            self.progress.say(f"{self.tree.name}: first checkpoint: {row.name}")
            self._prepare(row)
        for name, title, counts in WORKLOADS:
            for number in range(self.rounds):
                self.number += 1
                for row in turns(self._rows(), number) if self._rows() else []:
                    self.progress.say(f"{self.tree.name}: {title}, round {number + 1} of "
                                      f"{self.rounds}: {row.name}")
                    self._turn(name, row, counts)
        if git_before and self.tree.git_fingerprint() != git_before:
            raise WrongCheckpoint(f"{self.tree.path}/.git was changed during the run")
        return self.out

    def _rows(self):
        return [row for row in self.out.rows if row.name not in self.out.unavailable]

    def _copy_tree(self):
        names = [name for name in os.listdir(self.tree.path) if name != ".git"]
        subprocess.run(["cp", "-a", "--reflink=auto", "--",
                        *(os.path.join(self.tree.path, name) for name in names), self.copy],
                       check=True)

    def _damage(self, counts):
        self.tree.damage(self.lab.kit, counts, self.number, self.lab.env)
        self.lab.unsettled = True

    def _compare(self, verb):
        """What differs from the tree as it was: counts, and every path with a hash."""
        out = os.path.join(self.lab.run_dir, "differs")
        done = subprocess.run([self.lab.kit.program("lab_tree"), verb, self.tree.path, self.copy,
                               out, ".git"], check=True, capture_output=True)
        with open(out, "rb") as file:
            return json.loads(done.stdout), file.read()

    def _prepare(self, row):
        try:
            row.prepare(self.lab.new_dir(self.tree.name, row.name))
            if row.kind != "limit":
                row.first(self.lab.meter(row))
        except StepFailed as failure:
            self._give_up(row, failure)

    def _give_up(self, row, failure):
        self.out.unavailable[row.name] = f"exit {failure.code}"
        self.out.cells[WORKLOADS[0][0]][row.name].failed = {
            "exit": failure.code, "why": str(failure)}

    def _turn(self, workload, row, counts):
        cell = self.out.cells[workload][row.name]
        if cell.spent_s() >= self.budget_s:
            return
        try:
            target = self._checkpoint(row)
            self._damage(counts)
            _, damage = self._compare("diff")
            if row.kind == "limit":
                target = (self.copy, os.path.join(self.lab.run_dir, "differs"))
            if isinstance(row, BelayUndo):
                row.restore(self.lab.meter(row), target)
                self._must_be_equal(workload, row, b"")
                fine = time_run(self.lab, row, cell, row.undo)
                if fine:
                    self._must_be_equal(workload, row, damage)
            else:
                fine = time_run(self.lab, row, cell, lambda meter: row.restore(meter, target))
        except StepFailed as failure:
            self._give_up(row, failure)
            fine = False
        if fine and row.kind == "belay" and not isinstance(row, BelayUndo):
            self._must_be_equal(workload, row, b"")
        if not fine and row.name not in self.out.unavailable:
            self.out.unavailable[row.name] = f"exit {cell.failed['exit']}"
        counts, left = self._compare("mend")
        if left:
            self.lab.unsettled = True
            if fine and not isinstance(row, BelayUndo):
                self.out.wrong[workload][row.name] = counts

    def _checkpoint(self, row):
        """Untimed; also what keeps one row from paying for files that another rewrote."""
        if row.kind == "limit":
            return None
        if hasattr(row, "refresh"):
            row.refresh()
        meter = self.lab.meter(row)
        row.checkpoint(meter)
        if row.kind == "belay":
            return row.target()
        return row.text(self.lab.meter(row), "rev-parse", "--verify", row.rev)

    def _must_be_equal(self, workload, row, expected):
        counts, found = self._compare("diff")
        if found != expected:
            what = "the tree as it was" if not expected else "what the rollback took back"
            raise WrongCheckpoint(f"{self.tree.name}, {workload}: {row.name} did not bring back "
                                  f"{what}: {counts}")
        self.out.checked += 1
