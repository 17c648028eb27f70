"""Whoever is measured: Belay and the bare limits here, the peers in peers.py."""

import json
import os


class Contender:
    """One row of the tables.

    `prepare` is not timed. `first` makes the first checkpoint in an empty store,
    `checkpoint` every later one; both run commands through a Meter, which times them.
    A command that fails raises StepFailed: the row then reads n/a.
    """

    name = ""
    group = ""           # rows of one peer in several forms share it
    kind = "peer"        # belay, peer or limit
    needs_git = False    # works in the user's repository (a copy of its .git)
    copies_content = False  # its first checkpoint stores every file
    program = None       # must be installed
    writes = True        # leaves something for the disk to do

    def __init__(self, lab, tree):
        self.lab, self.tree, self.store = lab, tree, None

    def env(self):
        return self.lab.env

    def prepare(self, store):
        """Takes an existing empty directory for all that it keeps."""
        self.store = store

    def first(self, meter):
        self.checkpoint(meter)

    def checkpoint(self, meter):
        raise NotImplementedError

    def before(self, workload):
        """What comes before a round of a workload and its edits, untimed."""

    def action(self, workload):
        """What is timed in a workload; None: it takes no part."""
        return self.first if workload == "first" else self.checkpoint

    def kept_in(self):
        """The directories whose growth counts."""
        return [self.store]


class Belay(Contender):
    """`belay on` and `belay checkpoint -q`, whole processes, durable as shipped."""

    name = group = kind = "belay"
    copies_content = True

    def prepare(self, store):
        super().prepare(store)
        self.home = os.path.join(store, "home")
        self.last = None

    def env(self):
        return {**self.lab.env, "BELAY_HOME": self.home}

    def first(self, meter):
        meter.run(self.lab.belay, "on", self.tree.path)
        self.checkpoint(meter)

    def checkpoint(self, meter):
        self.last = os.fsdecode(meter.run(self.lab.belay, "checkpoint", "-q").out).strip()

    def kept_in(self):
        return [self.home]

    def tree_of(self, checkpoint):
        """The tree id that a checkpoint holds, read from the store."""
        shown = self.lab.meter(self).run(self.lab.belay, "show", checkpoint, "--json")
        return json.loads(shown.out)["tree"]

    def tree_in_fresh_store(self, store):
        """The tree id of a first checkpoint: no stat cache, so every byte is read."""
        fresh = Belay(self.lab, self.tree)
        fresh.prepare(store)
        meter = self.lab.meter(fresh)
        meter.run(self.lab.belay, "on", self.tree.path)
        made = meter.run(self.lab.belay, "checkpoint", "--json")
        return json.loads(made.out)["tree"]


class Limit(Contender):
    """A bare look at the tree; see bench/lab_limits.cc. Reports its own times too."""

    kind = "limit"
    writes = False

    def __init__(self, lab, tree, what, threads):
        super().__init__(lab, tree)
        self.what, self.threads = what, str(threads)
        self.name = self.group = f"{what}{threads}"
        self.inside = None

    def checkpoint(self, meter):
        program = self.lab.kit.program("lab_limits")
        if self.what == "walk":
            words = ["walk", self.tree.path, self.threads, *self.tree.skip]
        else:
            words = ["statlist", self.tree.path, self.tree.list + ".dirs", self.threads]
        self.inside = json.loads(meter.run(program, *words).out)
        if self.tree.generated and self.inside["files"] != self.tree.files:
            raise RuntimeError(f"{self.name} looked at {self.inside['files']} files")


def limits(lab, tree):
    return [Limit(lab, tree, what, threads) for what in ("walk", "statlist") for threads in (1, 2)]
