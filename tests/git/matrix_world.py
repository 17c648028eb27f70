"""The scratch worlds in which tests/git/matrix.py runs: one directory per cell.

A world is a directory with

  repo/    the protected root, a work tree of git
  home/    HOME, of git and of Belay
  store/   BELAY_HOME, made by Belay
  trap/    programs that nobody but git may run (hooks, filters, gpg, editors)
  marks/   what a trap leaves when it runs

and whatever else the starting situation needs (main/ of a linked work tree, ...). Worlds
are copied from templates: paths of the template inside git's files are rewritten.

git sees nothing of this machine: no system settings, its own HOME, fixed dates.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess

DATE = "1767225600 +0000"  # of every commit; settings below keep gc from calling it old
COMMAND_SECONDS = 120

GITCONFIG = """\
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
[gc]
	auto = 0
	reflogExpire = never
	reflogExpireUnreachable = never
[maintenance]
	auto = false
[core]
	editor = {dir}/trap/editor
[sequence]
	editor = {dir}/trap/editor
[gpg]
	program = {dir}/trap/gpg
"""
USER = "[user]\n\tname = A User\n\temail = user@example.com\n"

# One shell for all questions: starting it from Python once is a third of the time.
# `git diff` writes what it found out about times into the index, optional locks or not: it
# gets a copy.
QUESTIONS = r"""
r() { n=$1; shift; printf '\n@@%s\n' "$n"; git "$@"; printf '\n@=%s' $?; }
r status status --porcelain=v2 -z --branch 2>/dev/null
r 'long status' status 2>/dev/null
GIT_INDEX_FILE=$COPY; export GIT_INDEX_FILE; r diff diff 2>/dev/null; unset GIT_INDEX_FILE
r 'diff --cached' diff --cached 2>/dev/null
r log log --format=raw HEAD -- 2>/dev/null
r 'stash list' stash list '--format=%gd %H %gs' 2>/dev/null
r refs for-each-ref 2>/dev/null
r HEAD symbolic-ref HEAD 2>/dev/null
r ls-files ls-files -s -t -v --stage 2>/dev/null
r fsck fsck --no-progress 2>&1
"""


class Failed(Exception):
    """A check that did not hold; its text is what is reported."""


class Record(dict):
    """What git says and what is in the files at one moment, by name of the question."""

    def refs(self):
        lines = self["refs"].decode(errors="replace").splitlines()
        return {line.split("\t", 1)[1] for line in lines if "\t" in line}


class Answer:
    def __init__(self, words, done):
        self.words, self.rc = words, done.returncode
        self.out = done.stdout.decode(errors="replace")
        self.err = done.stderr.decode(errors="replace")
        self.text = self.out + self.err

    @property
    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as problem:
            raise Failed(f"belay {' '.join(self.words)}: not JSON ({problem}): {self.out!r}")

    def __str__(self):
        return (f"belay {' '.join(self.words)}: exit {self.rc}\n"
                f"    out: {self.out.strip()[-1500:]}\n    err: {self.err.strip()[-1500:]}")


class World:
    """One scratch directory. `options` are `-c` settings without which the agent's own git
    would not succeed there; `places` names every place where git keeps something."""

    def __init__(self, path, options=(), places=("repo/.git",), inner=(),
                 index="repo/.git/index", program=None):
        self.dir = pathlib.Path(path)
        self.repo, self.home = self.dir / "repo", self.dir / "home"
        self.marks = self.dir / "marks"
        self.options, self.places, self.inner = list(options), places, inner
        self.index, self.program = index, program
        self.extra = {}  # variables for Belay alone

    # --- making -------------------------------------------------------------------------

    def copy_from(self, template):
        """Becomes a copy of another world, times included."""
        subprocess.run(["cp", "-a", str(template), str(self.dir)], check=True)
        old, new = os.fsencode(str(template)), os.fsencode(str(self.dir))
        names = ["home/.gitconfig", "trap/*", "*/.git", "*/*/.git", "*/.git/config",
                 "*/.git/hooks/*", "*/.git/worktrees/*/gitdir", "*/.git/modules/*/config"]
        for path in (path for name in names for path in self.dir.glob(name)):
            if not path.is_file() or path.is_symlink():
                continue
            content = path.read_bytes()
            if old + b"/" in content:
                was = path.stat()
                path.write_bytes(content.replace(old + b"/", new + b"/"))
                os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def write(self, name, content, mode=None):
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if mode is not None:
            path.chmod(mode)

    def append(self, name, content):
        with open(self.repo / name, "a", newline="") as file:
            file.write(content)

    def read(self, name):
        return (self.repo / name).read_bytes()

    def trap(self, name, then="exit 1"):
        """A program that leaves a mark. Nothing of it may show after a command of Belay."""
        path = self.dir / "trap" / name
        path.parent.mkdir(exist_ok=True)
        self.marks.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n: >'{self.marks}/{name}'\n{then}\n")
        path.chmod(0o755)
        return path

    # --- git ----------------------------------------------------------------------------

    def git_variables(self, **more):
        variables = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C", "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(self.dir),
            "GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE, "GIT_TEMPLATE_DIR": "",
            "GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0"}
        variables.update(more)
        return variables

    def try_git(self, *words, cwd=None, **variables):
        command = ["git"]
        for option in self.options:
            command += ["-c", option]
        return subprocess.run(
            command + list(words), cwd=cwd or self.repo, env=self.git_variables(**variables),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=COMMAND_SECONDS)

    def git(self, *words, cwd=None, **variables):
        done = self.try_git(*words, cwd=cwd, **variables)
        if done.returncode:
            raise Refused(words, done)
        return done.stdout.decode(errors="replace").strip()

    def git_path(self, name):
        return self.repo / self.git("rev-parse", "--git-path", name)

    # --- looking ------------------------------------------------------------------------

    def record(self):
        """What git says; without optional locks, so that asking does not write the index."""
        script = QUESTIONS
        for name in self.inner:
            script += f"r '{name}: status' -C '{name}' status --porcelain=v2 -z --branch 2>/dev/null\n"
        index, copy = self.dir / self.index, self.dir / "index.copy"
        copy.unlink(missing_ok=True)
        was = index.exists() and index.stat().st_mtime_ns
        if was:
            shutil.copy2(index, copy)
        done = subprocess.run(
            ["sh", "-c", script], cwd=self.repo, stdin=subprocess.DEVNULL,
            env=self.git_variables(GIT_OPTIONAL_LOCKS="0", COPY=str(copy)),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=COMMAND_SECONDS)
        assert (index.exists() and index.stat().st_mtime_ns) == was, "asking wrote the index"
        record = Record()
        for part in done.stdout.split(b"\n@@")[1:]:
            name, answer = part.split(b"\n", 1)
            record[name.decode()] = answer
        lines = record["fsck"].splitlines(keepends=True)
        # A ref under refs/belay/ is one, and is not compared either.
        record["fsck"] = b"".join(sorted(
            line for line in lines
            if not line.startswith((b"dangling", b"notice: No default references"))))
        # Since when HEAD is detached git reads from the newest line of a reflog, which
        # may well be about the rollback.
        record["long status"] = re.sub(rb"(?m)^(HEAD detached) .*", rb"\1", record["long status"])
        lines = record["refs"].splitlines(keepends=True)
        record["refs"] = b"".join(l for l in lines if b"\trefs/belay/" not in l)
        record["files"], record["ignored"] = self.files()
        return record

    def files(self):
        """Name -> kind, mode and content of all but git's own, covered and ignored apart."""
        covered, ignored = {}, {}
        for top, dirs, names in os.walk(self.repo):
            dirs[:] = [name for name in dirs if name != ".git"]
            for name in dirs + [name for name in names if name != ".git"]:
                path = os.path.join(top, name)
                look = os.lstat(path)
                if stat.S_ISLNK(look.st_mode):
                    what = os.readlink(path)
                elif stat.S_ISDIR(look.st_mode):
                    what = "directory"
                else:
                    with open(path, "rb") as file:
                        what = file.read()
                kept = ignored if name.endswith(".o") else covered
                kept[os.path.relpath(path, self.repo)] = (oct(look.st_mode), what)
        return covered, ignored

    def git_print(self):
        """Everything about git's own files: names, modes, times, content."""
        found = {}

        def look(path):
            seen = os.lstat(path)
            what = (oct(seen.st_mode), seen.st_mtime_ns)
            if stat.S_ISREG(seen.st_mode):
                with open(path, "rb") as file:
                    what += (hashlib.sha256(file.read()).hexdigest(),)
            elif stat.S_ISLNK(seen.st_mode):
                what += (os.readlink(path),)
            found[os.path.relpath(path, self.dir)] = what

        for place in self.places:
            place = self.dir / place
            if not os.path.lexists(place):
                continue
            look(place)
            for top, dirs, names in os.walk(place):
                for name in dirs + names:
                    look(os.path.join(top, name))
        return found

    # --- Belay --------------------------------------------------------------------------

    def belay_variables(self, **more):
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C", "TZ": "UTC",
                "TERM": "dumb", "BELAY_HOME": str(self.dir / "store"),
                "GIT_CONFIG_NOSYSTEM": "1", **self.extra, **more}

    def belay(self, *words, rc=0, **variables):
        """Runs Belay in the root. `rc` is the exit code it must have, a tuple of them, or
        None for any. No trap may have been sprung."""
        for mark in self.marks.glob("*") if self.marks.is_dir() else ():
            mark.unlink()
        env = self.belay_variables(**variables)
        cwd = self.repo if self.repo.is_dir() else self.dir
        try:
            done = subprocess.run([self.program, *words], cwd=cwd, env=env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed(f"belay {' '.join(words)}: still at work after {COMMAND_SECONDS} s")
        answer = Answer(words, done)
        sprung = sorted(mark.name for mark in self.marks.glob("*")) if self.marks.is_dir() else []
        if sprung:
            raise Failed(f"belay {' '.join(words)} ran {', '.join(sprung)}")
        if rc is not None and answer.rc not in (rc if isinstance(rc, tuple) else (rc,)):
            raise Failed(f"expected exit {rc}: {answer}")
        return answer

    def checkpoint(self, name, *words):
        """A checkpoint, around which nothing of git may change."""
        with self.same_git(f"checkpoint {name}"):
            return self.belay("checkpoint", "-m", name, *words)

    def same_git(self, what):
        return SameGit(self, what)

    def same_all(self, what):
        return SameGit(self, what, files=True)


class Refused(Exception):
    """git did not do what the agent wanted."""

    def __init__(self, words, done):
        self.text = done.stdout.decode(errors="replace")
        super().__init__(f"git {' '.join(words)}: exit {done.returncode}: {self.text.strip()}")


class SameGit:
    """with world.same_git("..."): what is inside leaves git's files as they are."""

    def __init__(self, world, what, files=False):
        self.world, self.what, self.files = world, what, files

    def __enter__(self):
        self.git = self.world.git_print()
        self.tree = self.world.files() if self.files else None

    def __exit__(self, kind, value, trace):
        if kind is not None:
            return
        expect_same_map(f"{self.what}: .git is not as before", self.git, self.world.git_print())
        if self.files:
            for old, new in zip(self.tree, self.world.files()):
                expect_same_map(f"{self.what}: files are not as before", old, new)


# --- comparing --------------------------------------------------------------------------


def short(value):
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "..."


def expect_same_map(what, expected, got):
    for name in sorted(set(expected) | set(got)):
        if name not in got:
            raise Failed(f"{what}: {name} is missing (expected {short(expected[name])})")
        if name not in expected:
            raise Failed(f"{what}: {name} is there and should not be: {short(got[name])}")
        if expected[name] != got[name]:
            raise Failed(f"{what}: {name}\n    expected {short(expected[name])}\n"
                         f"    got      {short(got[name])}")


def first_difference(expected, got):
    """The first line, or NUL-ended part, in which two answers differ, with the one before."""
    old, new = (re.split(rb"[\n\0]", text) for text in (expected, got))
    for at in range(max(len(old), len(new))):
        one = old[at] if at < len(old) else None
        two = new[at] if at < len(new) else None
        if one != two:
            return f"part {at + 1}\n    expected {short(one)}\n    got      {short(two)}"
    return "no difference"


def expect_same(what, expected, got, created=(), only=None):
    """Two records are equal, but for refs in `created`, which may be there or not."""
    for name, answer in expected.items():
        if name == "ignored" or (only and name not in only):
            continue
        if name == "files":
            expect_same_map(f"{what}: files", answer, got[name])
            continue
        one, two = answer, got[name]
        if name == "refs":
            two = b"".join(line for line in two.splitlines(keepends=True)
                           if line.rstrip(b"\n").split(b"\t")[-1].decode() not in created)
        if one != two:
            raise Failed(f"{what}: git {name}: {first_difference(one, two)}")


def expect(condition, what):
    if not condition:
        raise Failed(what)
