"""What is done to every tree: a first checkpoint, then nothing, 1, 10 and 1000 changed
files, each in rounds in which every contender sees the same tree."""

import shutil

from . import contenders as base
from . import peers
from .kit import StepFailed
from .lab import Cell, WrongCheckpoint, time_run, turns
from .tree_id import tree_id

# name, title, files changed before each round
WORKLOADS = [("first", "first", 0), ("nothing", "nothing", 0), ("one", "1 changed", 1),
             ("ten", "10 changed", 10), ("thousand", "1000 changed", 1000)]


class Plan:
    """How often. A contender that has spent `budget_s` in a cell sits out the rest of its
    rounds: a peer that takes ten seconds is measured once, not fifteen times."""

    def __init__(self, files, rounds=None, quick=False):
        small = files <= 20_000
        usual = 15 if small else 7 if files <= 200_000 else 5
        counts = {"first": 3, "nothing": usual, "one": usual,
                  "ten": 25 if small else usual, "thousand": 7 if small else 5}
        if quick:
            counts = {name: min(count, 3) for name, count in counts.items()}
        if rounds:
            counts = {name: min(rounds, 3) if name == "first" else rounds for name in counts}
        self.rounds = counts
        self.budget_s = 3 if quick else 10

    def enough(self, workload, spent_s):
        # First checkpoints of shadow repositories leave a file per file behind, whose
        # removal is what takes longest in the end.
        return spent_s >= (self.budget_s / 2 if workload == "first" else self.budget_s)


class Measured:
    """Everything that came out of one tree."""

    def __init__(self, tree, rows, plan, workloads):
        self.tree, self.rows, self.plan, self.workloads = tree, rows, plan, workloads
        self.cells = {name: {row.name: Cell() for row in rows} for name, _, _ in workloads}
        self.unavailable = {}  # row name: why
        self.growth = {}       # row name: bytes per checkpoint of ten edits
        self.checked = 0       # checkpoints of Belay compared with a full re-hash

    def cell(self, workload, row_name):
        return self.cells[workload].get(row_name)


def make_rows(lab, tree, wanted):
    rows = [base.Belay(lab, tree)] + [peer(lab, tree) for peer in peers.ALL]
    rows += base.limits(lab, tree)
    return [row for row in rows if wanted(row)]


class Session:
    """Measures one tree."""

    workloads = WORKLOADS

    def __init__(self, lab, tree, rows, plan, progress):
        self.lab, self.tree, self.plan, self.progress = lab, tree, plan, progress
        self.out = Measured(tree, rows, plan, self.workloads)
        self.edits = 0
        self.behind = set()   # rows that have not seen the last edits
        self.expected = None  # tree id of the tree as it is, when known
        self.unchecked = []   # (Belay, id of a checkpoint, tree id that it must have)
        for row in rows:
            if row.program and not shutil.which(row.program):
                self.out.unavailable[row.name] = "not installed"
            elif row.needs_git and not tree.has_git:
                self.out.unavailable[row.name] = "no git"

    def measure(self):
        git_before = self.tree.git_fingerprint() if self.tree.has_git else None
        for name, title, count in self.workloads:
            self._workload(name, title, count)
        if git_before and self.tree.git_fingerprint() != git_before:
            raise WrongCheckpoint(f"{self.tree.path}/.git was changed during the run")
        return self.out

    def _rows(self):
        return [row for row in self.out.rows if row.name not in self.out.unavailable]

    def _workload(self, name, title, count):
        self._catch_up()
        before = self._disk_use() if name == "ten" else {}
        for number in range(self.plan.rounds[name]):
            for row in self._rows():
                row.before(name)
            if count:
                self.edits += 1
                self.tree.edit(self.lab.kit, count, self.edits, self.lab.env)
                self.expected, self.lab.unsettled = None, True
                self.behind.update(row.name for row in self._rows())
            for row in turns(self._rows(), number) if self._rows() else []:
                self.progress.say(f"{self.tree.name}: {title}, round {number + 1} of "
                                  f"{self.plan.rounds[name]}: {row.name}")
                self._turn(name, row, number)
        self._compare_peers(title)
        for row_name, size in (self._disk_use() if before else {}).items():
            runs = len(self.out.cells[name][row_name].runs)
            if runs and row_name in before:
                self.out.growth[row_name] = (size - before[row_name]) / runs
        self._check(name)

    def _turn(self, workload, row, number):
        cell = self.out.cells[workload][row.name]
        action = row.action(workload)
        if action is None or self.plan.enough(workload, cell.spent_s()):
            return
        if workload == "first":
            store = self.lab.new_dir(self.tree.name, f"{row.name}-{number}")
            try:
                row.prepare(store)
            except StepFailed as failure:
                self._give_up(row, cell, {"exit": failure.code, "why": str(failure)})
                return
        if not time_run(self.lab, row, cell, action):
            self._give_up(row, cell, cell.failed)
            return
        self.behind.discard(row.name)
        if row.kind == "belay" and row.last is not None:
            self._expect(row, workload)

    def _give_up(self, row, cell, failed):
        cell.failed = failed
        self.out.unavailable[row.name] = f"exit {failed['exit']}"

    def _catch_up(self):
        """Who sat out rounds sees their edits now, untimed: the next cell is its own."""
        for row in self._rows():
            if row.name in self.behind and row.kind != "limit":
                cell = Cell()
                if not time_run(self.lab, row, cell, row.checkpoint):
                    self._give_up(row, self.out.cells["first"][row.name], cell.failed)
        self.behind.clear()

    def _compare_peers(self, title):
        """A sequence that is wrong here would be fast or slow for no reason. (In a real
        checkout they may differ: shadow repositories miss what is tracked although ignored.)"""
        if not self.tree.generated:
            return
        found = {row.name: row.git_tree() for row in self._rows()
                 if hasattr(row, "git_tree") and row.name not in self.behind}
        if len(set(found.values())) > 1:
            raise RuntimeError(f"{self.tree.name}, {title}: the peers do not agree: {found}")

    def _disk_use(self):
        self.lab.settle()
        return {row.name: self.lab.kit.disk_use(*row.kept_in())
                for row in self._rows() if row.kind != "limit"}

    def _expect(self, belay, workload):
        """Reads every byte of the tree again, now that a checkpoint of it was made."""
        self.progress.say(f"{self.tree.name}: full re-hash, to compare a checkpoint with")
        if self.expected is None:
            try:
                self.expected = self._rehash(belay)
            except (StepFailed, KeyError, ValueError) as failure:
                raise WrongCheckpoint(f"{self.tree.name}, {workload}: the tree cannot be "
                                      f"read again: {failure}") from failure
        self.unchecked.append((belay, belay.last, self.expected))
        if workload == "first":  # the next one has another store
            self._check(workload)

    def _check(self, workload):
        """Not before the end of a workload: a look into the store between two timed runs
        would do some of their work for them, and add to the growth."""
        for belay, checkpoint, expected in self.unchecked:
            try:
                found = belay.tree_of(checkpoint)
            except (StepFailed, KeyError, ValueError) as failure:
                raise WrongCheckpoint(f"{self.tree.name}, {workload}: the checkpoint "
                                      f"'{checkpoint}' cannot be shown: {failure}") from failure
            if found != expected:
                raise WrongCheckpoint(
                    f"{self.tree.name}, {workload}: checkpoint {checkpoint} holds tree {found}, "
                    f"a full re-hash gives {expected}")
            self.out.checked += 1
        self.unchecked.clear()

    def _rehash(self, belay):
        if self.tree.generated:
            return tree_id(self.tree.path, self.tree.skip)
        # What a real checkout covers is for the rules to say: a store without a stat
        # cache, whose every checkpoint reads everything, is asked instead.
        store = self.lab.new_dir(self.tree.name, f"fresh-{self.edits}")
        found = belay.tree_in_fresh_store(store)
        shutil.rmtree(store)
        return found
