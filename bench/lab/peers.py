"""The peers, as the commands that their checkpoints and restores run.

Where two forms are known both are rows: the sequence that the peer's source runs (its
plain name) and the least that does the same job (-core). Ratios count against the faster.
Left out, which favours the peer: its own run time (Node, Python, Rust), Hermes' count of
all files and stat of each, Cline's search for nested repositories, everybody's clean-up
of old checkpoints beyond what is said here. The user's repository is packed and nobody's
gc runs.
"""

import os
import shutil

from .contenders import Contender


class GitPeer(Contender):
    program = "git"
    rev = "HEAD"  # the last checkpoint

    def __init__(self, lab, tree):
        super().__init__(lab, tree)
        self.count = 0

    def git_tree(self):
        """git's id of the tree in the last checkpoint; all peers must agree on it."""
        return self.text(self.lab.meter(self), "rev-parse", "--verify", self.rev + "^{tree}")

    def restore(self, meter, target):
        """Takes the tree to `target`, a commit or tree of an earlier checkpoint."""
        raise NotImplementedError

    def git(self, meter, *words, **options):
        return meter.run(self.lab.git, *words, **options)

    def text(self, meter, *words, **options):
        return os.fsdecode(self.git(meter, *words, **options).out).strip()

    def new_name(self):
        self.count += 1
        return f"bench-{self.count}"


class InRepository(GitPeer):
    """Works in the user's repository. Each gets a copy of .git with hard-linked objects,
    so that all of them see one work tree and none the refs and objects of another."""

    needs_git = True

    def prepare(self, store):
        super().prepare(store)
        self.git_dir = os.path.join(store, "git")

        def link(source, target):
            # Objects never change in place; index, refs and logs do.
            if "/objects/" in source:
                os.link(source, target)
            else:
                shutil.copy2(source, target)
        shutil.copytree(self.tree.git_dir, self.git_dir, symlinks=True, copy_function=link)

    def env(self):
        return {**self.lab.env, "GIT_DIR": self.git_dir, "GIT_WORK_TREE": self.tree.path}

    def refresh(self):
        """As after any `git status`: the index knows the files as they are."""
        self.git(self.lab.meter(self), "update-index", "-q", "--refresh", ok=(0, 1))

    def commit_temporary_index(self, meter, index, ref, head):
        own = {"GIT_INDEX_FILE": index}
        self.git(meter, "add", "-A", env=own)
        made = self.text(meter, "write-tree", env=own)
        commit = self.text(meter, "commit-tree", made, "-p", head, "-m", "checkpoint", env=own)
        self.git(meter, "update-ref", ref, commit)
        os.unlink(index)
        self.rev = commit


class CodemuxCore(InRepository):
    """Copies the user's index, so that only changed files are read."""

    name, group = "codemux-core", "codemux"

    def checkpoint(self, meter):
        index = os.path.join(self.store, "index.tmp")
        meter.copy(os.path.join(self.git_dir, "index"), index)
        ref = "refs/codemux/checkpoints/" + self.new_name()
        self.commit_temporary_index(meter, index, ref, "HEAD")

    def restore(self, meter, target):
        self.checkpoint(meter)
        self.git(meter, "read-tree", "--reset", "-u", target)
        self.git(meter, "clean", "-fd")
        self.git(meter, "reset", "-q", "--mixed", "HEAD")


class Codemux(InRepository):
    name = group = "codemux"
    KEEP = 20

    def checkpoint(self, meter):
        space = "refs/codemux/checkpoints/"
        self.create(meter, space)
        refs = self.text(meter, "for-each-ref", "--sort=-committerdate",
                         "--format=%(refname)", space).split()
        for old in refs[self.KEEP:]:
            self.git(meter, "update-ref", "-d", old)

    def restore(self, meter, target):
        head = self.text(self.lab.meter(self), "rev-parse", "HEAD")  # it knows that
        self.git(meter, "cat-file", "-e", target + "^{commit}")
        self.git(meter, "cat-file", "-e", head + "^{commit}")
        self.git(meter, "branch", "--show-current")
        self.create(meter, "refs/codemux/pre-restore/")
        self.git(meter, "read-tree", "--reset", "-u", target)
        self.git(meter, "clean", "-fd")
        self.git(meter, "reset", "--mixed", head)

    def create(self, meter, space):
        self.git(meter, "rev-parse", "--show-toplevel")
        head = self.text(meter, "rev-parse", "HEAD")
        self.git(meter, "branch", "--show-current")
        user_index = self.text(meter, "rev-parse", "--git-path", "index")
        index = os.path.join(self.store, "index.tmp")
        meter.copy(os.path.join(self.tree.path, user_index), index)
        self.commit_temporary_index(meter, index, space + self.new_name(), head)


class BooCode(InRepository):
    """Fills an empty index from HEAD: every file is read every time."""

    name = group = "boocode"

    def checkpoint(self, meter):
        index = os.path.join(self.store, "index.tmp")
        self.git(meter, "read-tree", "HEAD", env={"GIT_INDEX_FILE": index})
        ref = "refs/boocode/checkpoints/" + self.new_name()
        self.commit_temporary_index(meter, index, ref, "HEAD")

    def restore(self, meter, target):
        """Keeps nothing of what it overwrites, and moves the user's branch."""
        self.git(meter, "reset", "--hard", target)
        self.git(meter, "clean", "-fd")


class BooCodeSafe(BooCode):
    """The same after a checkpoint, as the others' restores have one."""

    name = "boocode-safe"

    def restore(self, meter, target):
        self.checkpoint(meter)
        super().restore(meter, target)


class Cline(InRepository):
    """The SDK of 2026: a stash commit, and a third parent for untracked files."""

    name = group = "cline"

    def checkpoint(self, meter):
        stash = self.text(meter, "stash", "create", "checkpoint")
        untracked = self.git(meter, "ls-files", "--others", "--exclude-standard", "-z").out
        commit = stash or self.text(meter, "rev-parse", "HEAD")
        if untracked:
            index = os.path.join(self.store, "index.tmp")
            own = {"GIT_INDEX_FILE": index}
            self.git(meter, "add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul",
                     stdin=untracked, env=own)
            made = self.text(meter, "write-tree", env=own)
            os.unlink(index)
            third = self.text(meter, "commit-tree", made, "-m", "untracked")
            parents = [commit + "^1", commit + "^2"] if stash else [commit, commit]
            words = [word for parent in (*parents, third) for word in ("-p", parent)]
            commit = self.text(meter, "commit-tree", commit + "^{tree}", *words, "-m", "all")
        self.git(meter, "update-ref", "refs/cline/checkpoints/s/" + self.new_name(), commit)
        self.rev = commit

    def restore(self, meter, target):
        """For a checkpoint of a tree with uncommitted changes."""
        transaction = "refs/cline/restore-transactions/" + self.new_name()
        self.git(meter, "stash", "push", "--include-untracked")
        self.git(meter, "update-ref", transaction, "refs/stash")
        self.git(meter, "stash", "drop")
        self.git(meter, "reset", "--hard", target + "^1")
        if self.git(meter, "rev-parse", "--verify", "-q", target + "^3", ok=(0, 1)).code == 0:
            self.git(meter, "clean", "-fd")
        self.git(meter, "stash", "apply", target)
        self.git(meter, "update-ref", "-d", transaction)


class Shadow(GitPeer):
    """A repository of its own beside the user's."""

    copies_content = True

    def prepare(self, store):
        super().prepare(store)
        self.git_dir = os.path.join(store, "git")

    def env(self):
        return {**self.lab.env, "GIT_DIR": self.git_dir, "GIT_WORK_TREE": self.tree.path}

    def kept_in(self):
        return [self.git_dir]

    def make(self, meter, *words):
        self.git(meter, "init", "-q", *words)
        self.git(meter, "config", "gc.auto", "0")

    def commit(self, meter, *words):
        self.git(meter, "commit", "-q", "--no-verify", "--no-gpg-sign", "-m", "checkpoint", *words)


class HermesCore(Shadow):
    """The index stays, so that later checkpoints read only what changed."""

    name, group = "hermes-core", "hermes"

    def first(self, meter):
        self.make(meter)
        self.checkpoint(meter)

    def checkpoint(self, meter):
        self.git(meter, "add", "-A")
        if self.git(meter, "diff", "--cached", "--quiet", ok=(0, 1)).code == 1:
            self.commit(meter)

    def restore(self, meter, target):
        self.checkpoint(meter)
        self.git(meter, "checkout", target, "--", ".")


class Hermes(Shadow):
    """Version 2: a shared bare store, a ref per directory; read-tree forgets the stat
    data, so every file is read every time."""

    name = group = "hermes"
    rev = REF = "refs/hermes/0123456789abcdef"

    def env(self):
        return {**super().env(), "GIT_INDEX_FILE": os.path.join(self.git_dir, "indexes", "0123")}

    def first(self, meter):
        plain = {"GIT_DIR": None, "GIT_WORK_TREE": None, "GIT_INDEX_FILE": None}
        self.git(meter, "init", "-q", "--bare", self.git_dir, env=plain)
        self.git(meter, "config", "gc.auto", "0")
        os.mkdir(os.path.join(self.git_dir, "indexes"))
        self.checkpoint(meter)

    def checkpoint(self, meter):
        tip = self.git(meter, "rev-parse", "--verify", "-q", self.REF + "^{commit}", ok=(0, 1))
        old = os.fsdecode(tip.out).strip()
        if old:
            self.git(meter, "read-tree", old)
        self.git(meter, "add", "-A")
        self.git(meter, "ls-files", "--cached", "-z")
        if old and self.git(meter, "diff-index", "--cached", "--quiet", old, ok=(0, 1)).code == 0:
            return
        made = self.text(meter, "write-tree")
        parent = ["-p", old] if old else []
        new = self.text(meter, "commit-tree", made, *parent, "-m", "checkpoint", "--no-gpg-sign")
        self.git(meter, "update-ref", self.REF, new, *([old] if old else []))

    def restore(self, meter, target):
        """Lays the old files over the new ones: what was created since stays."""
        self.git(meter, "cat-file", "-t", target)
        self.checkpoint(meter)
        self.git(meter, "checkout", target, "--", ".")


class OpencodeCore(Shadow):
    name, group = "opencode-core", "opencode"

    def first(self, meter):
        self.make(meter)
        self.checkpoint(meter)

    def checkpoint(self, meter):
        self.git(meter, "add", ".")
        self.rev = self.text(meter, "write-tree")


class Opencode(Shadow):
    """Borrows the user's objects and index, so that its first checkpoint copies nothing."""

    name = group = "opencode"
    needs_git = True
    copies_content = False
    CONFIG = {"core.autocrlf": "false", "core.longpaths": "true", "core.symlinks": "true",
              "core.fsmonitor": "false", "feature.manyFiles": "true", "index.version": "4",
              "index.threads": "true", "core.untrackedCache": "true"}

    def first(self, meter):
        self.make(meter)
        for key, value in self.CONFIG.items():
            self.git(meter, "config", key, value)
        info = os.path.join(self.git_dir, "objects", "info")
        os.makedirs(info, exist_ok=True)
        with open(os.path.join(info, "alternates"), "w", encoding="utf-8") as file:
            file.write(os.path.join(self.tree.git_dir, "objects") + "\n")
        meter.copy(os.path.join(self.tree.git_dir, "index"), os.path.join(self.git_dir, "index"))
        self.checkpoint(meter)

    def checkpoint(self, meter):
        with open(os.path.join(self.git_dir, "info", "exclude"), "w", encoding="utf-8"):
            pass
        changed, new = meter.together([
            (self.lab.git, "diff-files", "--name-only", "-z", "--", "."),
            (self.lab.git, "ls-files", "--full-name", "--others", "--exclude-standard", "-z",
             "--", ".")])
        paths = changed.out + new.out
        if paths:
            ignored = self.git(meter, "check-ignore", "--no-index", "--stdin", "-z", stdin=paths,
                               env={"GIT_DIR": self.tree.git_dir}, ok=(0, 1)).out
            if ignored:
                drop = set(ignored.split(b"\0")[:-1])
                self.git(meter, "rm", "--cached", "-f", "-q", "--ignore-unmatch",
                         "--pathspec-from-file=-", "--pathspec-file-nul", stdin=ignored)
                paths = b"".join(p + b"\0" for p in paths.split(b"\0")[:-1] if p not in drop)
        if paths:
            self.git(meter, "add", "--all", "--sparse", "--pathspec-from-file=-",
                     "--pathspec-file-nul", stdin=paths)
        self.rev = self.text(meter, "write-tree")

    def restore(self, meter, target):
        """Its undo: the files that differ, a hundred at a time."""
        self.checkpoint(meter)
        differ = self.git(meter, "diff", "--cached", "--no-ext-diff", "--no-renames",
                          "--name-only", "-z", target, "--", ".").out.split(b"\0")[:-1]
        for at in range(0, len(differ), 100):
            batch = differ[at:at + 100]
            held = set(self.git(meter, "ls-tree", "-r", "--name-only", "-z", target, "--",
                                *batch).out.split(b"\0")[:-1])
            if held:
                self.git(meter, "checkout", target, "--", *sorted(held))
            for path in set(batch) - held:
                os.unlink(os.path.join(os.fsencode(self.tree.path), path))


class Gemini(Shadow):
    name = group = "gemini"

    def first(self, meter):
        self.make(meter, "--initial-branch", "main")
        self.commit(meter, "--allow-empty")
        self.checkpoint(meter)

    def checkpoint(self, meter):
        self.git(meter, "add", ".")
        status = self.git(meter, "status", "--porcelain", "-b", "-u", "--null").out
        if any(line and not line.startswith(b"##") for line in status.split(b"\0")):
            self.commit(meter)
        else:
            self.git(meter, "rev-parse", "HEAD")

    def restore(self, meter, target):
        self.git(meter, "restore", "--source", target, ".")
        self.git(meter, "clean", "-f", "-d")


class ClineLegacy(Shadow):
    """Cline up to 3.x, and Roo."""

    name, group = "cline-legacy", "cline"

    def first(self, meter):
        self.make(meter)
        self.checkpoint(meter)

    def checkpoint(self, meter):
        self.git(meter, "add", ".", "--ignore-errors")
        self.commit(meter, "--allow-empty")

    def restore(self, meter, target):
        self.git(meter, "reset", "--hard", target)


class Restic(Contender):
    """A backup program; its repository is made beforehand, the password is "x"."""

    name = group = program = "restic"
    copies_content = True

    def prepare(self, store):
        super().prepare(store)
        self.words = [shutil.which("restic"), "-q", "-r", os.path.join(store, "repo"),
                      "--cache-dir", os.path.join(store, "cache")]
        self.lab.meter(self).run(*self.words, "init")

    def env(self):
        return {**self.lab.env, "RESTIC_PASSWORD": "x"}

    def checkpoint(self, meter):
        skip = [word for path in self.tree.skip
                for word in ("--exclude", os.path.join(self.tree.path, path))]
        meter.run(*self.words, "backup", *skip, self.tree.path)


class Borg(Contender):
    name = group = program = "borg"
    copies_content = True

    def prepare(self, store):
        super().prepare(store)
        self.repo, self.count = os.path.join(store, "repo"), 0
        self.lab.meter(self).run(shutil.which("borg"), "init", "-e", "none", self.repo)

    def env(self):
        return {**self.lab.env, "BORG_BASE_DIR": os.path.join(self.store, "base"),
                "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}

    def checkpoint(self, meter):
        self.count += 1
        skip = [word for path in self.tree.skip
                for word in ("--exclude", os.path.join(self.tree.path, path))]
        meter.run(shutil.which("borg"), "create", *skip, f"{self.repo}::{self.count}",
                  self.tree.path)


ALL = [CodemuxCore, Codemux, BooCode, HermesCore, Hermes, OpencodeCore, Opencode, Gemini,
       Cline, ClineLegacy, Restic, Borg]
RESTORING = [CodemuxCore, Codemux, BooCode, BooCodeSafe, HermesCore, Hermes, Opencode, Gemini,
             Cline, ClineLegacy]
