"""The id of a tree, made anew from every byte on disk, after docs/format.md alone.

Shares no code with Belay, and no stat cache: a checkpoint whose tree id differs from
this one holds something else than the directory did.
"""

import hashlib
import os
import stat
import sys


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(data):
    return varint(len(data)) + data


def _content_id(path):
    with open(path, "rb", buffering=0) as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.digest()


def _entry(path, name, status):
    mode = status.st_mode
    if os.listxattr(path, follow_symlinks=False):
        raise ValueError(f"{os.fsdecode(path)}: extended attributes are not expected here")
    kind = 1 if stat.S_ISREG(mode) else 2 if stat.S_ISLNK(mode) else 3
    head = sized(name) + bytes([kind, 0]) + varint(stat.S_IMODE(mode))
    return head + varint(status.st_uid) + varint(status.st_gid)


def tree_id(top, skip=()):
    """Hexadecimal id of the tree of `top` without the paths `skip` below it."""
    skip = {os.path.join(os.fsencode(top), os.fsencode(path)) for path in skip}

    def of_directory(path):
        entries = []
        with os.scandir(path) as found:
            names = sorted((e.name, e.path) for e in found if e.path not in skip)
        for name, below in names:
            status = os.lstat(below)
            head = _entry(below, name, status)
            if stat.S_ISDIR(status.st_mode):
                entries.append(head + of_directory(below))
            elif stat.S_ISREG(status.st_mode):
                entries.append(head + varint(status.st_size) + _content_id(below))
            elif stat.S_ISLNK(status.st_mode):
                entries.append(head + sized(os.readlink(below)))
            else:
                raise ValueError(f"{os.fsdecode(below)}: not a file, link or directory")
        return hashlib.sha256(b"\x01" + varint(len(entries)) + b"".join(entries)).digest()

    return of_directory(os.fsencode(top)).hex()


if __name__ == "__main__":  # tree_id.py DIR [SKIP...]
    print(tree_id(sys.argv[1], sys.argv[2:]))
