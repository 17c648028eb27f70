"""The trees that are captured: generated ones, and copies of real checkouts.

A generated tree is a pure function of its numbers (bench/lab_tree.cc) with a user's git
repository in it, packed, gc off. It is made once; what the edits changed is put back when
a tree is used again. A real checkout is copied, never touched.
"""

import hashlib
import os
import shutil
import subprocess

SEED = 20261115
IGNORED = {"10k": 5000}


class Tree:
    """A directory under measurement and what the harness knows about it."""

    def __init__(self, name, path, generated):
        self.name, self.path, self.generated = name, path, generated
        self.list = path + ".list"
        self.has_git = os.path.isdir(os.path.join(path, ".git"))
        self.skip = [".git"] if self.has_git else []
        self.files = self.dirs = self.bytes = self.ignored = 0

    @property
    def git_dir(self):
        return os.path.join(self.path, ".git")

    def edit(self, kit, count, round_number, env):
        # The pool is what bounds the difference to HEAD; see docs/benchmarks.md.
        pool = max(count, 100)
        subprocess.run([kit.program("lab_tree"), "edit", self.path, self.list, str(SEED),
                        str(count), str(pool), str(round_number)], check=True, env=env)

    def damage(self, kit, counts, round_number, env):
        """`counts`: how many files are changed, created and deleted."""
        subprocess.run([kit.program("lab_tree"), "damage", self.path, self.list, str(SEED),
                        *map(str, counts), str(round_number)], check=True, env=env)

    def git_fingerprint(self):
        """Changes when anything in the user's .git does: name, size, inode, time. Without
        the times of objects: a peer that shares one freshens it, as git does."""
        digest = hashlib.sha256()
        for folder, dirs, files in os.walk(self.git_dir):
            dirs.sort()
            for name in sorted(dirs + files):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                words = [path, status.st_mode, status.st_ino]
                if name in files:
                    words.append(status.st_size)
                    if "/objects/" not in path:
                        words.append(status.st_mtime_ns)
                digest.update(os.fsencode(repr(words)))
        return digest.hexdigest()


def parse_size(text):
    """'1k' or '500' as a number; ValueError otherwise."""
    number = int(text[:-1]) * 1000 if text[-1:] in "kK" and text[:-1] else int(text)
    if not 1 <= number <= 5_000_000:
        raise ValueError(text)
    return number


def size_name(number):
    return f"{number // 1000}k" if number % 1000 == 0 else str(number)


def _git(path, env, *words, **options):
    return subprocess.run(["git", "-C", path, *words], env=env, check=True,
                          capture_output=True, **options)


def _look(tree, kit, env):
    """Fills in what is ignored, the list of the rest, and the counts."""
    if tree.has_git:
        found = _git(tree.path, env, "ls-files", "-oi", "--exclude-standard", "--directory", "-z")
        tree.skip += [os.fsdecode(p).rstrip("/") for p in found.stdout.split(b"\0")
                      if p.endswith(b"/")]
    subprocess.run([kit.program("lab_limits"), "list", tree.path, tree.list, *tree.skip],
                   check=True)
    with open(tree.list + ".dirs", "rb") as listing:
        items = listing.read().split(b"\0")
    tree.dirs = sum(item.startswith(b"D") for item in items)
    tree.files = sum(item.startswith(b"F") for item in items)
    with open(tree.list, "rb") as listing:
        paths = listing.read().split(b"\0")[:-1]
    top = os.fsencode(tree.path)
    tree.bytes = sum(os.lstat(os.path.join(top, path)).st_size for path in paths)
    tree.ignored = sum(len(files) for skipped in tree.skip if skipped != ".git"
                       for _, _, files in os.walk(os.path.join(tree.path, skipped)))


def _pack(path, env):
    _git(path, env, "config", "gc.auto", "0")
    _git(path, env, "repack", "-adq")


def generate(kit, folder, number, env):
    """The tree of `number` files in `folder`; made now, or as it was after it was made."""
    name = size_name(number)
    path = os.path.join(folder, name)
    if os.path.exists(path + ".ready"):
        _git(path, env, "reset", "-q", "--hard")
        _git(path, env, "status", "--porcelain")  # refreshes the index
    else:
        shutil.rmtree(path, ignore_errors=True)
        subprocess.run([kit.program("lab_tree"), "gen", path, str(number),
                        str(IGNORED.get(name, 0)), str(SEED)], check=True)
        _git(path, env, "init", "-q", "-b", "main")
        # A threshold of one byte sends every file into one pack: no loose objects that
        # repack would delete in bulk, and so slow down whoever creates files next.
        _git(path, env, "-c", "core.bigFileThreshold=1", "add", "-A")
        _git(path, env, "commit", "-q", "-m", "start")
        _pack(path, env)
        with open(path + ".ready", "w", encoding="utf-8"):
            pass
    tree = Tree(name, path, generated=True)
    _look(tree, kit, env)
    return tree


def generate_plain(kit, folder, number, env):
    """The same without a repository."""
    path = os.path.join(folder, size_name(number))
    shutil.rmtree(path, ignore_errors=True)
    subprocess.run([kit.program("lab_tree"), "gen", path, str(number),
                    str(IGNORED.get(size_name(number), 0)), str(SEED)], check=True)
    tree = Tree(size_name(number), path, generated=True)
    _look(tree, kit, env)
    return tree


def copy_checkout(kit, folder, source, env):
    """A copy of a real directory, its .git included."""
    name = os.path.basename(os.path.realpath(source)) or "root"
    path = os.path.join(folder, "checkout-" + name)
    for extra in range(2, 1000):
        if not os.path.exists(path):
            break
        path = os.path.join(folder, f"checkout-{name}-{extra}")
    subprocess.run(["cp", "-a", "--reflink=auto", "--", source, path], check=True)
    tree = Tree(name, path, generated=False)
    if tree.has_git:
        _pack(path, env)
        _git(path, env, "status", "--porcelain")  # the copies have new inodes
    _look(tree, kit, env)
    return tree
