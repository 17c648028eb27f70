#!/usr/bin/env python3
"""What git says after a rollback is what it said at the checkpoint: the acceptance matrix.

usage: matrix.py [--list] [--keep] [--belay PROGRAM] [--jobs N] [--times] [--slice K/N]
                 [--without GLOB]... [GLOB ...]

A cell is a starting situation (matrix_situations.py) and what an agent then does (ACTIONS),
named SITUATION/ACTION. In each of them: checkpoint, the agent's work, rollback, undo, redo;
`git status`, `diff`, `log`, `stash list`, `fsck` and more, and all files, are compared with
what they were. git's own files may not change by as much as a time in a checkpoint, a
--dry-run or a rollback with --git keep. Single cases beyond that are rows/NAME
(matrix_rows_*.py).

  GLOB           only cells whose name matches ('staged/*', '*/stash-*', 'rows/*')
  --list         name the cells, and the pairs that git itself refuses
  --keep         leave the directories of failed cells, and say where
  --slice K/N    only every N-th cell, from the K-th (N odd: all situations and all actions)
  --without GLOB not these
  --times        say how long each took
  --belay FILE   the program; default: $BELAY_BIN

Where git refuses to do something in a situation there is no cell: it is tried all the same,
and git's refusal must be the one in REFUSALS. The last line counts; exit 1 if a cell failed.
"""
import sys

sys.dont_write_bytecode = True

import argparse
import fnmatch
import multiprocessing
import os
import pathlib
import shutil
import tempfile
import time
import traceback

import matrix_row
import matrix_rows_agents  # noqa: F401  (adds its rows)
import matrix_rows_damaged  # noqa: F401
import matrix_rows_refs  # noqa: F401
import matrix_rows_repos  # noqa: F401
import matrix_rows_state  # noqa: F401
import matrix_situations
from matrix_world import (Failed, Refused, World, expect, expect_same, expect_same_map)

SITUATIONS = matrix_situations.ALL

# --- what the agent does ----------------------------------------------------------------

ACTIONS = {}


class Action:
    """`switch`: "must" when a rollback has to be refused without --switch, "may" when HEAD
    moves away from the branch as part of something else."""

    def __init__(self, act, switch="no", protect=False, gone=False):
        self.act, self.switch, self.protect, self.gone = act, switch, protect, gone


def action(name, **more):
    def add(act):
        ACTIONS[name] = Action(act, **more)
        return act
    return add


def edit(w):
    """Every agent changes a tracked file and makes one: no rollback has nothing to do."""
    w.append("edit.txt", "by the agent\n")
    w.write("agent.txt", "by the agent\n")


def stopped(w, *words):
    """A command of git that is to stop at a conflict."""
    done = w.try_git(*words)
    if done.returncode != 1 or b"CONFLICT" not in done.stdout:
        raise Refused(words, done)


@action("commit-a")
def commit_a(w):
    w.git("commit", "-qam", "agent")


@action("commit-new")
def commit_new(w):
    w.git("add", "-A")
    w.git("commit", "-qm", "agent")


@action("commit-twice")
def commit_twice(w):
    w.git("commit", "-qam", "agent")
    w.append("edit.txt", "again\n")
    w.git("commit", "-qam", "agent again")


@action("amend")
def amend(w):
    w.git("commit", "-q", "--amend", "-am", "amended")


@action("reset-hard")
def reset_hard(w):
    w.git("reset", "-q", "--hard")


@action("reset-hard-1")
def reset_hard_1(w):
    w.git("reset", "-q", "--hard", "HEAD~1")


@action("checkout-dot")
def checkout_dot(w):
    w.git("checkout", "-q", ".")


@action("clean")
def clean(w):
    w.git("clean", "-qfdx")


@action("add-A")
def add_all(w):
    w.git("add", "-A")


@action("reset")
def reset(w):
    w.git("reset", "-q")


@action("stash")
def stash(w):
    w.git("stash", "push")


@action("stash-u")
def stash_u(w):
    w.write("more.txt", "so that something stays\n")
    w.git("stash", "push", "-u")
    edit(w)


@action("stash-pop")
def stash_pop(w):
    w.git("stash", "pop", "-q")


@action("stash-drop")
def stash_drop(w):
    w.git("stash", "drop", "-q", "stash@{1}")


@action("rebase", switch="may")
def rebase(w):
    w.git("rebase", "-q", "--autostash", "other")


@action("rebase-stop", switch="may")
def rebase_stop(w):
    stopped(w, "rebase", "--autostash", "conflicting")


@action("branch-D")
def branch_delete(w):
    w.git("branch", "-q", "-D", "other")


@action("branch-m", switch="may")
def branch_rename(w):
    w.git("branch", "-m", "renamed")


@action("tag-f")
def tag_moved(w):
    w.git("tag", "-f", "-m", "moved", "v1", "other")


@action("switch", switch="must")
def switch(w):
    w.git("switch", "-q", "other")


@action("switch-c", switch="must")
def switch_new(w):
    w.git("switch", "-q", "-c", "agents")
    w.git("commit", "-qam", "agent")


@action("detach", switch="may")
def detach(w):
    w.git("checkout", "-q", "--detach")
    w.git("commit", "-qam", "agent")


@action("merge")
def merge(w):
    w.git("merge", "-q", "--no-edit", "--autostash", "other")


@action("merge-stop")
def merge_stop(w):
    stopped(w, "merge", "--autostash", "conflicting")


@action("cherry-pick-stop")
def cherry_pick_stop(w):
    w.git("commit", "-qam", "agent")  # it wants the index to be as HEAD is
    stopped(w, "cherry-pick", "conflicting")


@action("abort", switch="may")
def abort(w):
    for words in (("merge", "--abort"), ("rebase", "--abort"), ("cherry-pick", "--abort"),
                  ("bisect", "reset")):
        if words[0] == "bisect" and not w.git_path("BISECT_START").exists():
            raise Refused(words, done)  # git calls it done
        done = w.try_git(*words)
        if done.returncode == 0:
            edit(w)
            return
    raise Refused(words, done)


@action("finish", switch="may")
def finish(w):
    """Resolves what is in the way and goes on."""
    w.git("add", "-A")
    for words in (("merge", "--continue"), ("rebase", "--continue"),
                  ("cherry-pick", "--continue")):
        done = w.try_git(*words)
        if done.returncode == 0:
            return
    raise Refused(words, done)


@action("gc")
def gc(w):
    w.git("gc", "-q", "--prune=now")


@action("commit-gc")
def commit_gc(w):
    w.git("commit", "-qam", "agent")
    w.git("gc", "-q", "--prune=now")


@action("rm-index")
def rm_index(w):
    path = w.git_path("index")
    if not path.exists():
        raise Refused(("rm", str(path)), w.try_git("status"))
    path.unlink()


def rm_git(w):
    path = w.repo / ".git"
    path.unlink() if path.is_file() else shutil.rmtree(path)


action("rm-git", protect=True)(rm_git)
action("rm-git-unprotected", gone=True)(rm_git)

# --- what git refuses -------------------------------------------------------------------

# Actions, situations, and what git says. Each is tried in every run: a pair that is here
# and works, or is not here and does not, is a failure.
QUIET = ("clean staged unstaged both untracked partial intent detached unborn orphan worktree "
         "submodule nested sparse sparse-index sha256 split-index packed no-user gpgsign "
         "hooks autocrlf filters")  # nothing is in progress
NO_COMMIT = "unborn orphan"
UNMERGED = "conflict rebase cherry-pick"
REFUSALS = [
    ("abort finish", QUIET, "no cherry-pick or revert in progress"),
    ("finish", "bisect", "no cherry-pick or revert in progress"),
    ("stash stash-u", "intent", "Entry 'later.txt' not uptodate"),
    ("stash-pop", "intent", "would be overwritten by merge"),
    ("rebase rebase-stop merge merge-stop", "intent", "Cannot autostash"),
    ("amend", "conflict", "in the middle of a merge -- cannot amend"),
    ("amend", "cherry-pick", "in the middle of a cherry-pick -- cannot amend"),
    ("checkout-dot", UNMERGED, "'x.txt' is unmerged"),
    ("stash stash-u stash-pop detach", UNMERGED, "x.txt: needs merge"),
    ("rebase rebase-stop", "conflict cherry-pick", "x.txt: needs merge"),
    ("rebase rebase-stop", "rebase", "already a rebase-merge directory"),
    ("branch-m", "rebase bisect detached", "while not on any"),
    ("switch switch-c", "conflict", "cannot switch branch while merging"),
    ("switch switch-c", "rebase", "cannot switch branch while rebasing"),
    ("switch switch-c", "cherry-pick", "cannot switch branch while cherry-picking"),
    ("merge merge-stop", UNMERGED, "you have unmerged files"),
    ("amend", NO_COMMIT, "nothing to amend"),
    ("reset-hard-1", NO_COMMIT, "ambiguous argument 'HEAD~1'"),
    ("stash stash-u", NO_COMMIT, "do not have the initial commit yet"),
    ("detach", NO_COMMIT, "on a branch yet to be born"),
    ("stash-pop", "unborn", "No stash entries found"),
    ("stash-pop", "orphan", "CONFLICT (modify/delete)"),
    ("stash-drop", "unborn", "stash@{1} is not a valid reference"),
    ("rebase rebase-stop", "unborn", "invalid upstream"),
    ("rebase rebase-stop", "orphan", "Could not resolve HEAD to a commit"),
    ("branch-D", "unborn", "branch 'other' not found"),
    ("tag-f", "unborn", "Failed to resolve 'other'"),
    ("switch", "unborn", "invalid reference: other"),
    ("switch", "orphan", "would be overwritten by checkout"),
    ("merge merge-stop", "unborn", "not something we can merge"),
    ("merge merge-stop", "orphan", "would be overwritten by merge"),
    ("cherry-pick-stop", "unborn", "bad revision 'conflicting'"),
]


def refusal(situation, act):
    for actions, situations, text in REFUSALS:
        if act in actions.split() and situation in situations.split():
            return text
    return None


# --- what is excepted -------------------------------------------------------------------

# Cell -> (why, a function that shows the same with git alone). At most 15; they are listed
# in docs/guarantees.md. One that passes is a failure: it must leave this list.
EXCEPTIONS = {
}
assert len(EXCEPTIONS) <= 15

# --- a cell -----------------------------------------------------------------------------


def roll_back(w, act, start, before):
    """Rolls back to the start. With the branch switched that must be asked for."""
    git, files = w.git_print(), w.files()
    done = w.belay("rollback", "start", "--yes", rc=None)
    moved = start["HEAD"] != before["HEAD"]
    if act.switch == "must":
        expect(done.rc == 1, f"the branch was switched: exit 1 expected: {done}")
    if done.rc == 1 and act.switch != "no" and moved:
        expect("--switch" in done.text, f"the refusal does not name --switch: {done}")
        expect_same_map("refused for --switch, .git changed all the same", git, w.git_print())
        for old, new in zip(files, w.files()):
            expect_same_map("refused for --switch, files changed all the same", old, new)
        return w.belay("rollback", "start", "--yes", "--switch")
    expect(done.rc == 0, f"expected exit 0: {done}")
    return done


def run_cell(w, act):
    w.belay("on")
    if act.protect:
        w.belay("config", "git.protect", "true", "--project")
    w.checkpoint("start")
    start = w.record()
    whole = w.git_print() if act.protect else None

    edit(w)
    act.act(w)
    before = w.record()
    created = before.refs() - start.refs()
    w.checkpoint("agent")

    with w.same_all("rollback --dry-run"):
        w.belay("rollback", "start", "--dry-run", rc=(0, 1))
    with w.same_git("rollback --git keep, undo"):
        with w.same_git("rollback --git keep"):
            w.belay("rollback", "start", "--git", "keep", "--yes")
        expect_same_map("rollback --git keep: files", start["files"], w.files()[0])
        expect_same_map("rollback --git keep: ignored files", before["ignored"], w.files()[1])
        w.belay("undo")
    # git's own files are as they were, so that git would say the same: not asked again.
    expect_same_map("undo of --git keep: files", before["files"], w.files()[0])

    only = ("files",) if act.gone else None

    def at_start(what):
        now = w.record()
        expect_same(f"{what}, against the start", start, now, created, only)
        expect_same_map(f"{what}: ignored files", before["ignored"], now["ignored"])
        if act.gone:
            expect(not os.path.lexists(w.repo / ".git"), f"{what}: .git was written")
        if act.protect:
            expect_whole(what, whole, w.git_print())

    done = roll_back(w, act, start, before)
    if act.gone:
        expect(".git" in done.err or "git" in done.err.lower() and "lost" in done.err.lower(),
               f"no warning names what is lost: {done}")
    at_start("rollback")
    w.belay("undo")
    expect_same("undo, against before the rollback", before, w.record())
    w.belay("redo")
    at_start("redo")
    w.belay("verify", "--read-data")


def expect_whole(what, start, now):
    """All of .git is back: names, modes, content. A reflog may have grown."""
    for name, (mode, _, *content) in start.items():
        expect(name in now, f"{what}: {name} did not come back")
        expect(now[name][0] == mode, f"{what}: {name} has mode {now[name][0]}, not {mode}")
        if "/logs/" not in name:
            expect(list(now[name][2:]) == content, f"{what}: {name} has other content")


# --- running them -----------------------------------------------------------------------

base = None  # the directory of this run
program = None
keep = False


def template_of(name):
    return pathlib.Path(base) / "template" / name


def make_template(name):
    w = World(template_of(name))
    if name == "base":
        matrix_situations.build_base(w)
        return
    situation = SITUATIONS[name]
    if situation.from_base:
        w.copy_from(template_of("base"))
        note_inodes(w)
    situation.build(w)


def make_world(situation, at):
    made = SITUATIONS[situation]
    w = World(at, program=program, **made.more)
    w.copy_from(template_of(situation))
    note_inodes(w)
    assert made.still is None or made.still(w), f"the copy of {situation} is not {made.about}"
    return w


def note_inodes(w):
    """A copy has other inodes: lets git note them, as it would have long ago. Otherwise it
    takes every file for changed, and a sparse checkout would not leave any out."""
    w.try_git("status", "--short")


def run_named(name):
    """Name -> what is wrong with it ("" for nothing), as "passed", "failed", "excepted"
    or "refused", and the seconds it took."""
    began = time.monotonic()
    at = pathlib.Path(base) / "cell" / name.replace("/", "-")
    situation, act = name.split("/")
    result, text = "passed", ""
    try:
        if situation == "rows":
            row = matrix_row.ALL[act]
            row.run(make_world(row.situation, at))
        else:
            w = make_world(situation, at)
            expected = refusal(situation, act)
            if expected is None:
                run_cell(w, ACTIONS[act])
            else:
                result = "refused"
                edit(w)
                try:
                    ACTIONS[act].act(w)
                    raise Failed("git does it, and REFUSALS says that it would not")
                except Refused as said:
                    expect(expected in said.text,
                           f"git's refusal is another: {expected!r} is not in {said}")
    except Failed as problem:
        result, text = "failed", str(problem)
    except Refused as problem:
        result, text = "failed", f"git refused, which is not in REFUSALS: {problem}"
    except Exception:  # of the test itself; still only this cell
        result, text = "failed", traceback.format_exc()
    if name in EXCEPTIONS:
        why, reproduce = EXCEPTIONS[name]
        if result == "passed":
            result, text = "failed", f"is excepted and passes: {why}"
        elif result == "failed":
            try:
                again = make_world(situation, f"{at}-git-alone")
                reproduce(again)
                result, text = "excepted", why
            except Exception as problem:
                text += f"\n  excepted, but git alone does not show it: {problem!r}"
    if not (keep and result == "failed"):
        shutil.rmtree(at, ignore_errors=True)
        shutil.rmtree(f"{at}-git-alone", ignore_errors=True)
    return name, result, text, time.monotonic() - began


def choose(globs, without, part):
    names = [f"{s}/{a}" for s in SITUATIONS for a in ACTIONS]
    names += [f"rows/{name}" for name in matrix_row.ALL]
    for name in EXCEPTIONS:
        assert name in names, name
    if globs:
        names = [name for name in names if any(fnmatch.fnmatchcase(name, g) for g in globs)]
    names = [name for name in names if not any(fnmatch.fnmatchcase(name, g) for g in without)]
    if part:
        which, of = (int(number) for number in part.split("/"))
        names = names[which - 1::of]
    return names


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--belay", default=os.environ.get("BELAY_BIN"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--slice")
    parser.add_argument("--without", action="append", default=[], metavar="GLOB")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("globs", nargs="*", metavar="GLOB")
    asked = parser.parse_args()

    names = choose(asked.globs, asked.without, asked.slice)
    if not names:
        sys.exit("no cell has such a name")
    if asked.list:
        for name in names:
            no = refusal(*name.split("/"))
            print(name if no is None else f"{name}  (no cell, git: {no})")
        return 0
    if not asked.belay:
        sys.exit("BELAY_BIN is not set; or say --belay PROGRAM")

    global base, program, keep
    program, keep = os.path.abspath(asked.belay), asked.keep
    os.umask(0o022)
    base = tempfile.mkdtemp(prefix="belay-git-matrix.")
    (pathlib.Path(base) / "cell").mkdir()
    (pathlib.Path(base) / "template").mkdir()
    counts = dict.fromkeys(("passed", "failed", "excepted", "refused"), 0)
    try:
        needed = {name.split("/")[0] for name in names} - {"rows"}
        needed |= {matrix_row.ALL[name.split("/")[1]].situation for name in names
                   if name.startswith("rows/")}
        make_template("base")
        with multiprocessing.get_context("fork").Pool(asked.jobs) as pool:
            pool.map(make_template, [name for name in SITUATIONS if name in needed], 1)
            for name, result, text, seconds in pool.imap_unordered(run_named, names, 1):
                counts[result] += 1
                if result == "failed":
                    print(f"FAILED {name}: {text}", flush=True)
                    if keep:
                        print(f"  left in {base}/cell/{name.replace('/', '-')}", flush=True)
                elif result == "excepted":
                    print(f"excepted {name}: {text}", flush=True)
                if asked.times:
                    print(f"{seconds:6.2f} s  {result}  {name}", flush=True)
    finally:
        if not (keep and counts["failed"]):
            shutil.rmtree(base, ignore_errors=True)
    print(f"{counts['refused']} pairs are no cells: git refuses them, as it should")
    cells = sum(counts.values()) - counts["refused"]
    print(f"{cells} cells, {counts['passed']} passed, {counts['failed']} failed, "
          f"{counts['excepted']} excepted")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
