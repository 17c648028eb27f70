"""What starting the program costs: `belay list` on an empty store against a static hello."""

import os

from .contenders import Contender
from .lab import Cell, time_run
from .report import Target


class _Place:
    """Stands in for a tree: only a directory to be in."""

    def __init__(self, path):
        self.path = path


class _Hello(Contender):
    name = "hello"
    writes = False

    def checkpoint(self, meter):
        meter.run(self.lab.kit.program("lab_hello"))


class _List(Contender):
    name = "belay list"
    writes = False

    def env(self):
        return {**self.lab.env, "BELAY_HOME": os.path.join(self.store, "home")}

    def first(self, meter):
        meter.run(self.lab.belay, "on", self.tree.path)

    def checkpoint(self, meter):
        meter.run(self.lab.belay, "list")


def measure(lab, rounds):
    """(JSON, lines of text). A root is registered and has no checkpoint."""
    place = _Place(lab.new_dir("start", "project"))
    rows = [_Hello(lab, place), _List(lab, place)]
    cells = {row.name: Cell() for row in rows}
    for row in rows:
        row.prepare(lab.new_dir("start", row.name.replace(" ", "-")))
    alive = [rows[0]]
    if time_run(lab, rows[1], Cell(), rows[1].first):
        alive = rows
    for number in range(-2, rounds):
        for row in alive[::-1] if number % 2 else alive:
            cell = cells[row.name] if number >= 0 else Cell()
            if cells[row.name].failed is None and not time_run(lab, row, cell, row.checkpoint):
                cells[row.name].failed = cell.failed
    hello, listed = cells["hello"], cells["belay list"]
    ratio = listed.wall / hello.wall if hello.wall and listed.wall else None
    target = Target("belay list on an empty store, times a static hello", 4.0, True,
                    {"wall": ratio})
    shown = {name: f"{cell.wall:.2f} / {cell.cpu:.2f}" if cell.wall else "n/a"
             for name, cell in cells.items()}
    lines = ["", f"== start: hello {shown['hello']} ms, belay list {shown['belay list']} ms, "
                 f"{f'{ratio:.2f}' if ratio else 'n/a'} times (target <= 4): {target.verdict}"]
    return {"rounds": rounds, "target": target.as_json(),
            **{name.replace(" ", "_"): {"wall_ms": cell.wall, "cpu_ms": cell.cpu}
               for name, cell in cells.items()}}, lines
