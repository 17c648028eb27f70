#!/usr/bin/env python3
"""Hooks under stress: many processes tell many events at once, some are killed, some
speak nonsense; the disk of the store may be full.

Each hook that is not killed must exit 0, print nothing and return in time; afterwards
the store verifies, and every call whose beginning was acknowledged in time can be gone
back to.

  hooks.py [--events N] [--processes N] [--seed S] [--full-disk]
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

LIMIT_S = 20  # far beyond the deadline: the machine may be busy


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--events", type=int, default=2000)
    p.add_argument("--processes", type=int, default=8)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--full-disk", action="store_true", help="the store is on a tmpfs of 2 MiB (root)")
    return p.parse_args()


class Worker:
    def __init__(self, number, world):
        self.world, self.rng = world, random.Random(world["seed"] * 1000 + number)
        self.session, self.calls, self.open = f"s{number}", 0, []
        self.told = self.killed = 0
        self.problems, self.begun = [], []

    def payload(self):
        kind = self.rng.choices(["begin", "end", "prompt", "stop", "read", "bad", "big"], [8, 8, 2, 1, 2, 1, 1])[0]
        base = {"session": self.session, "cwd": self.world["root"]}
        if kind == "bad":
            return None, self.rng.choice([b"", b"{", b"[]", b"\xff\xfe", b'{"event":7}', b"null", os.urandom(100)])
        if kind == "big":
            return None, json.dumps({**base, "event": "turn.end", "answer": "x" * 3_000_000}).encode()
        if kind in ("prompt", "stop"):
            return None, json.dumps({**base, "event": "turn.begin" if kind == "prompt" else "turn.end", "prompt": "p"}).encode()
        if kind == "end" and not self.open:
            kind = "begin"
        if kind == "end":
            call = self.open.pop(self.rng.randrange(len(self.open)))
        else:
            self.calls += 1
            call = f"{self.session}-{self.calls}"
            if kind == "begin":
                self.open.append(call)
        tool = {"name": "read" if kind == "read" else "shell", "id": call}
        if kind == "read":
            tool["reach"] = "reads"
        event = {**base, "event": "tool.end" if kind == "end" else "tool.begin", "tool": tool}
        return (call if kind == "begin" else None), json.dumps(event).encode()

    def one(self):
        call, payload = self.payload()
        path = os.path.join(self.world["root"], f"f{self.rng.randrange(50)}")
        with open(path, "a", encoding="utf-8") as out:
            out.write("line\n")
        began = time.monotonic()
        child = subprocess.Popen([self.world["belay"], "hook", "generic"], cwd="/", env=self.world["env"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.told += 1
        if self.rng.random() < 0.1:
            # At any moment: before it has read, while it works, after.
            try:
                child.communicate(payload, timeout=self.rng.random() * 0.03)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                self.killed += 1
            child.communicate()
            return
        out, err = child.communicate(payload)
        took = time.monotonic() - began
        if (child.returncode, out, err) != (0, b"", b"") or took > LIMIT_S:
            self.problems.append(f"exit {child.returncode} after {took:.1f} s: {out[:200]} {err[:200]}")
        elif call and took < 1.5:
            self.begun.append(call)

    def work(self, count):
        for _ in range(count):
            self.one()
        return self


def belay(world, *words):
    return subprocess.run([world["belay"], *words], cwd=world["root"], env=world["env"], capture_output=True, check=False)


def main():
    args = parse()
    top = tempfile.mkdtemp(prefix="belay-hooks.")
    store = os.path.join(top, "store")
    world = {"belay": os.environ["BELAY_BIN"], "root": os.path.join(top, "project"), "seed": args.seed,
             "env": {"HOME": top, "BELAY_HOME": os.path.join(store, "belay"), "PATH": os.environ["PATH"], "LC_ALL": "C"}}
    os.mkdir(world["root"])
    os.mkdir(store)
    if args.full_disk:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", store], check=True)
    try:
        return stress(args, world)
    finally:
        if args.full_disk:
            subprocess.run(["umount", "-l", store], check=False)
        subprocess.run(["rm", "-rf", top], check=False)


def stress(args, world):
    if args.full_disk:
        os.makedirs(os.path.join(world["env"]["HOME"], ".config/belay"))
        with open(os.path.join(world["env"]["HOME"], ".config/belay/config.toml"), "w", encoding="utf-8") as out:
            out.write('[store]\nfloor = "0"\n')
    if belay(world, "on").returncode != 0:
        sys.exit("belay on failed")
    if not args.full_disk:  # nothing is let go while it is counted
        belay(world, "config", "retention.auto", "100000")
    if args.full_disk:
        ballast = os.open(os.path.join(os.path.dirname(world["env"]["BELAY_HOME"]), "ballast"), os.O_CREAT | os.O_WRONLY)
        try:
            while True:
                os.write(ballast, os.urandom(4096))
        except OSError:
            pass
    with ThreadPoolExecutor(args.processes) as pool:
        workers = list(pool.map(lambda n: Worker(n, world).work(args.events // args.processes), range(args.processes)))
    problems = [p for w in workers for p in w.problems]
    told, killed = sum(w.told for w in workers), sum(w.killed for w in workers)
    verified = belay(world, "verify")
    status = belay(world, "status", "--json")
    failures = json.loads(status.stdout)["failures"] if status.stdout else []
    begun = [c for w in workers for c in w.begun]
    known = set()
    if args.full_disk:
        if not failures:
            problems.append("nothing is said of the full disk")
    else:
        if verified.returncode != 0:
            problems.append(f"verify: {verified.stdout.decode()} {verified.stderr.decode()}")
        if not any("could not be recorded" in f["what"] for f in failures):
            problems.append(f"nonsense was not counted: {failures}")
        for w in workers:
            listed = belay(world, "list", "--json", "--all", "--tools", "--session", w.session, "-n", "100000")
            known |= {c["tool"]["id"] for c in json.loads(listed.stdout or b"{}").get("checkpoints", []) if c["tool"]}
        missing = [c for c in begun if c not in known]
        if missing:
            problems.append(f"{len(missing)} calls that were told in time are not there: {missing[:5]}")
    print(f"hooks: {told} events from {args.processes} processes, {killed} killed, seed {args.seed}, "
          f"{len(begun)} beginnings acknowledged, {len(problems)} problems{' on a full disk' if args.full_disk else ''}")
    for line in problems[:10]:
        print("  " + line)
    return 1 if problems else 0


sys.exit(main())
