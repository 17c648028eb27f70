"""A project as plain data: what is there, with which bytes and modes; git as HEAD alone.

A tree is {path: {"mode": "100644", "text": "..."}}; a symlink has its target as text, a
directory no text. Bytes that are not UTF-8 are kept as surrogates.
"""
import os
import pathlib
import stat

GIT = ".git"  # in a tree: what HEAD leads to


def record(project):
    tree = {}
    root = os.fsencode(project)
    for where, directories, files in os.walk(root):
        directories[:] = sorted(name for name in directories if name != b".git")
        for name in sorted(directories + files):
            if name == b".git":
                continue
            full = os.path.join(where, name)
            try:
                tree[_text(os.path.relpath(full, root))] = _entry(full)
            except FileNotFoundError:
                pass  # it went while we looked
    head = read_head(pathlib.Path(project))
    if head:
        tree[GIT] = {"mode": "HEAD", "text": head}
    return tree


def write(project, tree):
    """Makes the directory hold exactly this tree (git is not touched)."""
    here = record(project)
    for path in sorted(here, reverse=True):
        if path != GIT and (path not in tree or _kind(tree[path]) != _kind(here[path])):
            full = os.path.join(project, path)
            (os.rmdir if _kind(here[path]) == "040" else os.unlink)(full)
    for path, entry in sorted(tree.items()):
        if path != GIT and entry != here.get(path):
            _make(os.path.join(project, path), entry)


def differences(is_now, should_be):
    """What differs, a line each; empty if nothing does."""
    lines = []
    for path in sorted(set(is_now) | set(should_be)):
        have, want = is_now.get(path), should_be.get(path)
        if have != want:
            lines.append(f"{path}: {_shown(have)}, not {_shown(want)}")
    return lines


def read_head(project):
    """The commit HEAD leads to, "unborn", or None where there is no repository."""
    git = project / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        name = head[5:]
        loose = git / name
        if loose.exists():
            return loose.read_text().strip()
        packed = git / "packed-refs"
        for line in packed.read_text().splitlines() if packed.exists() else []:
            if line.endswith(" " + name):
                return line.split()[0]
        return "unborn"
    except (FileNotFoundError, NotADirectoryError):
        return None


def _entry(path):
    seen = os.lstat(path)
    mode = f"{seen.st_mode:06o}"
    if stat.S_ISLNK(seen.st_mode):
        return {"mode": mode, "text": _text(os.readlink(path))}
    if stat.S_ISREG(seen.st_mode):
        with open(path, "rb") as file:
            return {"mode": mode, "text": _text(file.read())}
    return {"mode": mode}


def _make(path, entry):
    kind, mode = _kind(entry), int(entry["mode"], 8)
    if kind == "120":
        if os.path.islink(path):
            os.unlink(path)
        os.symlink(entry["text"].encode("utf-8", "surrogateescape"), path)
        return
    if kind == "040":
        os.makedirs(path, exist_ok=True)
    else:
        with open(path, "wb") as file:
            file.write(entry["text"].encode("utf-8", "surrogateescape"))
    os.chmod(path, stat.S_IMODE(mode))


def _kind(entry):
    return entry["mode"][:3]


def _text(data):
    return data.decode("utf-8", "surrogateescape")


def _shown(entry):
    if entry is None:
        return "absent"
    return entry["mode"] + (f" {entry['text']!r}"[:200] if "text" in entry else "")
