"""Runs every command of a tutorial and compares what it prints.

usage: tutorial.py FILE DIR

In the console blocks of FILE a line `$ command` is run (with the `> ` lines after it),
all of them in one shell in DIR; the lines below are what it must print, both outputs
together. `…` in a line stands for any text, a line of it alone for any lines.
"""
import pathlib
import re
import subprocess
import sys

MARK = "--- end of command ---"


def commands(text):
    """(line number, command, expected lines) of every console block."""
    found, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append((number, line[2:], []))
        elif inside and line.startswith("> ") and not found[-1][2]:
            found[-1] = (found[-1][0], found[-1][1] + "\n" + line[2:], [])
        elif inside:
            found[-1][2].append(line)
    return found


def matches(expected, got):
    pattern = ""
    for line in expected:
        if line == "…":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += "[^\n]*".join(re.escape(part) for part in line.split("…")) + "\n"
    return re.fullmatch(pattern, got) is not None


def main():
    path, where = pathlib.Path(sys.argv[1]), sys.argv[2]
    shell = subprocess.Popen(["bash"], cwd=where, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    failures = ran = 0
    for number, command, expected in commands(path.read_text()):
        shell.stdin.write(f"{command}\necho '{MARK}' $?\n")
        shell.stdin.flush()
        got = ""
        for line in shell.stdout:
            if line.startswith(MARK):
                break
            got += line
        else:
            sys.exit(f"{path.name}:{number}: the shell ended: {got}")
        code = line.split()[-1]
        ran += 1
        if code == "0" and matches(expected, got):
            continue
        failures += 1
        print(f"{path.name}:{number}: $ {command}\nexit {code}, printed:\n{got}not:\n" +
              "\n".join(expected))
    shell.stdin.close()
    shell.wait()
    print(f"{ran} commands, {failures} differ")
    sys.exit(1 if failures or ran < 10 else 0)


main()
