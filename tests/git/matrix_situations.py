"""Starting situations of tests/git/matrix.py: each function turns a copy of the base
repository into one.

The base: main has three commits, `other` adds a file, `conflicting` changes x.txt in the
way of main, a tag, two stashes that touch s.txt alone, an ignored file, a symlink, an
empty directory. Situations change a.txt, dir/c.txt and new files only, so that the agent
can switch, merge and rebase without being refused for a reason that is not the point.
"""
from matrix_world import GITCONFIG, USER

CLIENT_HOOKS = """applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout
post-commit post-index-change post-merge post-rewrite pre-applypatch pre-auto-gc pre-commit
pre-merge-commit pre-push pre-rebase prepare-commit-msg push-to-checkout
reference-transaction sendemail-validate""".split()

LINES = "".join(f"line {number}\n" for number in range(1, 31))


class Situation:
    def __init__(self, build, about, **more):
        self.build, self.about, self.more = build, about, more
        self.from_base = more.pop("from_base", True)
        self.still = more.pop("still", None)  # what a copy must still be like
        self.name = build.__name__.replace("_", "-")


ALL = {}


def situation(about, **more):
    def add(build):
        made = Situation(build, about, **more)
        ALL[made.name] = made
        return build
    return add


def write_home(w, user=True):
    w.home.mkdir(parents=True, exist_ok=True)
    (w.home / ".gitconfig").write_text(GITCONFIG.format(dir=w.dir) + (USER if user else ""))


def build_base(w, *init):
    w.repo.mkdir(parents=True)
    w.marks.mkdir()
    write_home(w)
    w.trap("editor")
    w.trap("gpg")
    w.git("init", "-q", *init)
    w.write(".gitignore", "*.o\n")
    w.write(".gitattributes", "*.flt filter=up\n")
    for name in ("a.txt", "b.txt", "dir/c.txt", "x.txt", "s.txt", "edit.txt"):
        w.write(name, f"{name}\n{LINES}")
    w.write("dir/run.sh", "#!/bin/sh\nexit 0\n", 0o755)
    w.write("far/y.txt", "far\n")
    w.write("far/deep/z.txt", "deep\n")
    w.write("two words.txt", "words\n")
    w.write("words.flt", "some words\n")
    (w.repo / "link").symlink_to("a.txt")
    w.git("add", ".")
    w.git("commit", "-qm", "one")
    w.git("branch", "conflicting")
    w.write("x.txt", "x.txt\n" + LINES.replace("line 10\n", "line 10 of main\n"))
    w.git("commit", "-qam", "two")
    w.git("tag", "-a", "-m", "a tag", "v1")
    w.git("branch", "other")
    w.append("b.txt", "three\n")
    w.git("commit", "-qam", "three")
    w.git("switch", "-q", "other")
    w.write("o.txt", "other\n")
    w.git("add", ".")
    w.git("commit", "-qm", "another")
    w.git("switch", "-q", "conflicting")
    w.write("x.txt", "x.txt\n" + LINES.replace("line 10\n", "line 10 in the way\n"))
    w.git("commit", "-qam", "in the way")
    w.git("switch", "-q", "main")
    for which in ("first", "second"):
        w.append("s.txt", f"{which} stash\n")
        w.git("stash", "push", "-qm", which)
    w.write("made.o", "ignored\n")
    w.write("dir/made.o", "ignored, too\n")
    (w.repo / "empty").mkdir()


@situation("nothing to commit")
def clean(w):
    pass


@situation("changes in the index alone")
def staged(w):
    w.append("a.txt", "staged\n")
    w.write("new.txt", "staged and new\n")
    w.git("add", "a.txt", "new.txt")
    w.git("rm", "-q", "two words.txt")
    w.git("mv", "dir/run.sh", "dir/walk.sh")


@situation("changes in files alone")
def unstaged(w):
    w.append("a.txt", "not staged\n")
    (w.repo / "dir/c.txt").unlink()
    (w.repo / "dir/run.sh").chmod(0o644)


@situation("one file staged, then changed again")
def both(w):
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    w.append("a.txt", "and on top\n")
    w.write("new.txt", "staged\n")
    w.git("add", "new.txt")
    (w.repo / "new.txt").unlink()


@situation("files git does not know")
def untracked(w):
    w.write("loose.txt", "untracked\n")
    w.write("loose/deep/file.txt", "untracked, too\n", 0o600)
    (w.repo / "loose/link").symlink_to("nowhere")


@situation("of two hunks one is staged")
def partial(w):
    top = w.read("a.txt").decode().replace("line 2\n", "line 2, staged\n")
    w.write("a.txt", top)
    w.git("add", "a.txt")
    w.write("a.txt", top.replace("line 28\n", "line 28, not staged\n"))


@situation("git add -N")
def intent(w):
    w.write("later.txt", "to be added\n")
    w.git("add", "-N", "later.txt")


@situation("a merge stopped by a conflict")
def conflict(w):
    assert w.try_git("merge", "conflicting").returncode == 1


@situation("a rebase stopped by a conflict")
def rebase(w):
    assert w.try_git("rebase", "conflicting").returncode == 1


@situation("a cherry-pick stopped by a conflict")
def cherry_pick(w):
    assert w.try_git("cherry-pick", "conflicting").returncode == 1


@situation("a bisection half-way")
def bisect(w):
    w.git("bisect", "start", "main", "main~2")


@situation("HEAD names a commit")
def detached(w):
    w.git("checkout", "-q", "--detach", "main~1")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")


@situation("no commit yet", from_base=False)
def unborn(w):
    w.repo.mkdir(parents=True)
    w.marks.mkdir()
    write_home(w)
    w.git("init", "-q")
    w.write(".gitignore", "*.o\n")
    w.write("a.txt", LINES)
    w.write("edit.txt", "edit\n")
    w.git("add", ".")
    w.append("a.txt", "not staged\n")
    w.write("loose.txt", "untracked\n")
    w.write("made.o", "ignored\n")


@situation("an orphan branch without a commit beside others")
def orphan(w):
    w.git("switch", "-q", "--orphan", "fresh")
    w.write("a.txt", "anew\n")
    w.write("edit.txt", "edit\n")
    w.write(".gitignore", "*.o\n")
    w.git("add", ".")
    w.append("a.txt", "not staged\n")


@situation("a linked work tree; the repository is outside the root",
           places=("repo/.git", "main/.git"), index="main/.git/worktrees/repo/index")
def worktree(w):
    (w.dir / "repo").rename(w.dir / "main")
    w.git("worktree", "add", "-q", "-b", "linked", "../repo", "main", cwd=w.dir / "main")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    w.append("a.txt", "and on top\n")
    w.write("made.o", "ignored\n")


@situation("a submodule with new commits and changes", places=("repo/.git", "repo/sub/.git"),
           inner=("sub",))
def submodule(w):
    away = w.dir / "away"
    away.mkdir()
    w.git("init", "-q", cwd=away)
    (away / "lib.txt").write_text("library\n")
    w.git("add", ".", cwd=away)
    w.git("commit", "-qm", "lib", cwd=away)
    w.git("submodule", "--quiet", "add", str(away), "sub")
    w.git("commit", "-qm", "with a submodule")
    sub = w.repo / "sub"
    (sub / "lib.txt").write_text("library\nchanged\n")
    w.git("commit", "-qam", "changed", cwd=sub)
    (sub / "lib.txt").write_text("library\nchanged\nnot staged\n")
    (sub / "loose.txt").write_text("untracked\n")


@situation("a clone inside, unknown to the repository around it",
           places=("repo/.git", "repo/nested/.git"), inner=("nested",))
def nested(w):
    away = w.repo / "nested"
    away.mkdir()
    w.git("init", "-q", cwd=away)
    (away / "n.txt").write_text("nested\n")
    w.git("add", ".", cwd=away)
    w.git("commit", "-qm", "nested", cwd=away)
    (away / "n.txt").write_text("nested\nstaged\n")
    w.git("add", ".", cwd=away)
    (away / "n.txt").write_text("nested\nstaged\nnot staged\n")


@situation("sparse checkout, cone mode", still=lambda w: not (w.repo / "far").exists())
def sparse(w):
    w.git("sparse-checkout", "set", "--cone", "dir")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")


@situation("sparse checkout with a sparse index",
           still=lambda w: "far/" in w.git("ls-files", "--sparse").split("\n"))
def sparse_index(w):
    w.git("sparse-checkout", "set", "--cone", "--sparse-index", "dir")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    w.append("dir/c.txt", "not staged\n")


@situation("object ids are SHA-256", from_base=False)
def sha256(w):
    build_base(w, "--object-format=sha256")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    w.append("a.txt", "and on top\n")


@situation("a split index", still=lambda w: w.git("rev-parse", "--shared-index-path"))
def split_index(w):
    w.git("config", "core.splitIndex", "true")
    w.git("config", "splitIndex.maxPercentChange", "100")
    w.git("update-index", "--split-index")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    w.append("a.txt", "and on top\n")


@situation("everything packed, index version 4, flags on entries")
def packed(w):
    w.git("update-index", "--index-version", "4")
    w.append("dir/c.txt", "hidden\n")
    w.git("update-index", "--assume-unchanged", "dir/c.txt")
    w.git("update-index", "--skip-worktree", "far/y.txt")
    w.git("gc", "-q", "--prune=now")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")


@situation("nobody said who the user is",
           options=("user.name=An Agent", "user.email=agent@example.com"))
def no_user(w):
    write_home(w, user=False)
    w.git("config", "user.useConfigOnly", "true")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")


@situation("commits must be signed and gpg fails", options=("commit.gpgSign=false", "tag.gpgSign=false"))
def gpgsign(w):
    w.git("config", "commit.gpgSign", "true")
    w.git("config", "tag.gpgSign", "true")
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")


@situation("every hook fails, and so does the file system monitor",
           options=("core.hooksPath=/dev/null",))
def hooks(w):
    w.git("config", "core.fsmonitor", str(w.trap("fsmonitor")))
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    w.append("a.txt", "and on top\n")
    hooks = w.repo / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in CLIENT_HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\n: >'{w.marks}/{name}'\nexit 1\n")
        (hooks / name).chmod(0o755)


@situation("core.autocrlf, with files that end their lines so")
def autocrlf(w):
    w.git("config", "core.autocrlf", "true")
    w.git("config", "core.safecrlf", "false")
    for name in ("a.txt", "dir/c.txt", "edit.txt"):
        (w.repo / name).unlink()
    w.git("checkout", "--", ".")
    assert b"\r\n" in w.read("a.txt")
    w.append("a.txt", "staged\r\n")
    w.git("add", "a.txt")
    w.append("a.txt", "not staged\r\n")
    w.append("dir/c.txt", "one ends so\r\nand one so\n")
    w.write("loose.txt", "untracked\r\n")


@situation("clean and smudge filters that must succeed")
def filters(w):
    smudge = w.trap("smudge", "exec tr a-z A-Z")
    clean = w.trap("clean", "exec tr A-Z a-z")
    w.git("config", "filter.up.smudge", str(smudge))
    w.git("config", "filter.up.clean", str(clean))
    w.git("config", "filter.up.required", "true")
    (w.repo / "words.flt").unlink()
    w.git("checkout", "--", "words.flt")
    assert w.read("words.flt") == b"SOME WORDS\n"
    w.append("words.flt", "STAGED\n")
    w.git("add", "words.flt")
    w.append("words.flt", "Not Staged\n")
    w.write("new.flt", "Mixed Case\n")
