#!/usr/bin/env python3
"""Fails when a module includes one that ARCHITECTURE.md does not let it include.

The list is the fenced block there whose lines read `name/  what it is  includes: ...`,
with module names, "nothing of ours" or "all above" after the colon.
"""
import pathlib
import re
import sys
import tempfile

LINE = re.compile(r"^\s*((?:\w+/[,\s]*)+)\s.*\bincludes:\s*(.+?)\s*$")
INCLUDE = re.compile(r'^\s*#\s*include\s*"(\w+)/[^"]+"')


def allowed(text):
    """Maps each module to the modules it may include, itself among them."""
    rules = {}
    for block in re.findall(r"^```.*?^```", text, re.M | re.S):
        for names, targets in filter(None, map(split, block.splitlines())):
            above = set(rules)
            for name in names:
                rules[name] = {name} | (above if "all above" in targets
                                        else set(re.findall(r"\w+", targets)) & above)
    return rules


def split(line):
    match = LINE.match(line)
    return match and (re.findall(r"\w+", match[1]), match[2])


def problems(root):
    rules = allowed((root / "ARCHITECTURE.md").read_text())
    if not rules:
        yield "ARCHITECTURE.md: no module list found"
    for module in sorted(p.name for p in (root / "src").iterdir() if p.is_dir()):
        if module not in rules:
            yield f"src/{module}: not in ARCHITECTURE.md"
            continue
        for path in sorted((root / "src" / module).rglob("*.[ch]*")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                target = INCLUDE.match(line)
                where = f"{path.relative_to(root)}:{number}"
                if target and target[1] not in rules[module]:
                    yield f"{where}: {module} may not include {target[1]}"
                elif target and target[1] != module and '_internal.h"' in line:
                    yield f"{where}: a header private to {target[1]}"


def self_test():
    """A tree with one wrong arrow of each kind must give exactly those complaints."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        files = {
            "ARCHITECTURE.md": "```\nsrc/\n  base/  x  includes: nothing of ours\n"
                               "  store/  y  includes: base\n  git/  z  includes: base\n"
                               "  core/ cli/  w  includes: all above\n```\n",
            "src/base/a.h": '#include "store/b.h"\n',
            "src/store/b.h": '#include "base/a.h"\n#include "store/c_internal.h"\n',
            "src/git/g.cc": '#include "store/b.h"\n',
            "src/core/d.cc": '#include "git/g.h"\n#include "store/c_internal.h"\n',
            "src/lost/e.cc": "",
        }
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        found = list(problems(root))
        expected = ["src/base/a.h:1: base may not include store",
                    "src/core/d.cc:2: a header private to store",
                    "src/git/g.cc:1: git may not include store",
                    "src/lost: not in ARCHITECTURE.md"]
        return [] if found == expected else [f"self test found {found}"]


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent.parent
    args = sys.argv[1:]
    result = self_test() if args == ["--self-test"] else list(
        problems(pathlib.Path(args[0]) if args else here))
    print("\n".join(result) or "every include points up")
    sys.exit(bool(result))
