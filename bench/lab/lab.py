"""The place where benchmarks run: a directory on a real disk, an environment of its own,
and the rounds in which contenders take turns."""

import os
import shutil
import statistics
import sys
import tempfile

from . import machine
from .kit import Kit, Meter, StepFailed

MARK = ".belay-lab"


class WrongCheckpoint(Exception):
    """A checkpoint of Belay does not hold what the directory held, or a rollback did not
    bring it back."""


def default_work_parent():
    for place in (os.environ.get("TMPDIR"), "/var/tmp", "/tmp", os.path.expanduser("~")):
        if place and os.path.isdir(place) and not machine.in_memory(place):
            return place
    raise SystemExit("bench: no directory on a real disk found; name one with --work DIR")


class Lab:
    """Owns the work directory. With `work` the trees in it stay for the next run; what a
    run stores is removed at its end unless `keep`."""

    def __init__(self, programs, belay, work=None, keep=False, settles=True):
        self.settles = settles
        self.keep, self.keep_trees = keep, work is not None
        if work is None:
            work = tempfile.mkdtemp(prefix="belay-bench-", dir=default_work_parent())
        else:
            os.makedirs(work, exist_ok=True)
            if os.listdir(work) and not os.path.exists(os.path.join(work, MARK)):
                raise SystemExit(f"bench: {work}: neither empty nor a directory of this "
                                 "benchmark; left alone")
        self.work = os.path.realpath(work)
        with open(os.path.join(self.work, MARK), "w", encoding="utf-8"):
            pass
        self.run_dir = tempfile.mkdtemp(prefix="run-", dir=self.work)
        self.tree_dir = os.path.join(self.work, "trees")
        os.makedirs(self.tree_dir, exist_ok=True)
        self.belay = os.path.realpath(belay)
        self.git = shutil.which("git")
        self.env = self._environment()
        self.kit = Kit(programs)
        self.unsettled = True
        self.kit.spread(self.run_dir)
        self.kit.spread(self.tree_dir)

    def _environment(self):
        """Nobody's settings but the defaults; an identity, since commits want one."""
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C",
               "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"}
        for who in ("AUTHOR", "COMMITTER"):
            env[f"GIT_{who}_NAME"] = "bench"
            env[f"GIT_{who}_EMAIL"] = "bench@example.org"
        for key, name in (("HOME", "home"), ("TMPDIR", "tmp")):
            env[key] = os.path.join(self.run_dir, name)
            os.mkdir(env[key])
        return env

    def meter(self, contender):
        return Meter(self.kit, contender.env(), contender.tree.path)

    def new_dir(self, *words):
        """A new directory of this run. The directories above are spread, so that what one
        contender deletes does not slow another one's creates (ext4 skips inodes that
        were freed in the last minutes one by one)."""
        path = self.run_dir
        for word in words:
            path = os.path.join(path, word)
            if not os.path.isdir(path):
                os.mkdir(path)
                if word != words[-1]:
                    self.kit.spread(path)
        return path

    def settle(self):
        """Nobody shall pay for what another one left to be written."""
        if self.settles:
            self.kit.settle(self.run_dir)

    def close(self):
        self.kit.close()
        if self.keep:
            return
        shutil.rmtree(self.run_dir, ignore_errors=True)
        if not self.keep_trees:
            shutil.rmtree(self.work, ignore_errors=True)


class Cell:
    """All runs of one contender in one workload."""

    def __init__(self):
        self.runs, self.inside, self.failed = [], [], None

    def add(self, meter, inside=None):
        self.runs.append((meter.wall_ms, meter.cpu_ms, meter.maxrss_kb))
        if inside:
            self.inside.append((inside["wall_ms"], inside["cpu_ms"]))

    def _median(self, rows, column):
        return statistics.median(row[column] for row in rows) if rows else None

    @property
    def wall(self):
        return self._median(self.runs, 0)

    @property
    def cpu(self):
        return self._median(self.runs, 1)

    @property
    def inside_wall(self):
        return self._median(self.inside, 0)

    @property
    def inside_cpu(self):
        return self._median(self.inside, 1)

    @property
    def maxrss_kb(self):
        return max((run[2] for run in self.runs), default=None)

    def spent_s(self):
        return sum(run[0] for run in self.runs) / 1e3


def turns(contenders, round_number):
    """The order of one round: rotated, and backwards every other time, so that nobody
    always follows the same neighbour."""
    at = round_number % len(contenders)
    order = contenders[at:] + contenders[:at]
    return order[::-1] if round_number % 2 else order


def time_run(lab, contender, cell, action):
    """One timed run; False, and the cell marked, when a command of it failed."""
    if lab.unsettled:  # by an edit or by whoever ran before
        lab.settle()
    lab.unsettled = contender.writes
    meter = lab.meter(contender)
    try:
        action(meter)
    except StepFailed as failure:
        cell.failed = {"exit": failure.code, "why": str(failure)}
        return False
    cell.add(meter, getattr(contender, "inside", None))
    return True


class Progress:
    """One line on stderr, when that is a terminal."""

    def __init__(self):
        self.on = sys.stderr.isatty()

    def say(self, text):
        if self.on:
            print(f"\r\033[K{text[:78]}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.on:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
