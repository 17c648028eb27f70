"""Tables for people, one JSON document for programs, and the targets."""

QUICK = ("nothing", "one", "ten")  # the everyday workloads


def titles(measured):
    return {name: title for name, title, _ in measured.workloads} | {"all": "all"}


class Target:
    """One promise about speed: a value for each of some workloads, and a limit. `by_cpu`
    holds the same ratio of CPU times, which says more when the machine was busy; the
    verdict goes by `values`."""

    def __init__(self, what, limit, most, values, applies=True, by_cpu=None):
        self.what, self.limit, self.most = what, limit, most  # most: value <= limit
        self.values, self.applies, self.by_cpu = values, applies, by_cpu or {}

    def met(self, key):
        value = self.values[key]
        if value is None or not self.applies:
            return None
        return value <= self.limit if self.most else value >= self.limit

    @property
    def verdict(self):
        if not self.applies:
            return "-"
        known = [self.met(key) for key in self.values if self.values[key] is not None]
        return "n/a" if not known else "met" if all(known) else "missed"

    def as_json(self):
        return {"what": self.what, "limit": self.limit,
                "is": "at most" if self.most else "at least", "values": self.values,
                "by_cpu": self.by_cpu, "verdict": self.verdict}


def ratio(a, b):
    return a / b if a is not None and b else None


def fastest(measured, workload, accept):
    """The least (wall, CPU) time among the rows that `accept` takes: a peer in several
    forms is as fast as its fastest."""
    cells = [measured.cell(workload, row.name) for row in measured.rows if accept(row)]
    cells = [cell for cell in cells if cell.runs]
    return (min((cell.wall for cell in cells), default=None),
            min((cell.cpu for cell in cells), default=None))


def _ours(measured, workload):
    cell = measured.cell(workload, "belay")
    return (cell.wall, cell.cpu) if cell else (None, None)


def targets(measured):
    """Of checkpoints that somebody asks for; those of hooks are in hooks.py."""
    out = everyday(measured, QUICK)

    def shadow(row):
        return row.kind == "peer" and row.copies_content and row.program == "git"

    out.append(faster(measured, "hermes", 5, ["thousand"], lambda row: row.group == "hermes"))
    out.append(faster(measured, "a shadow repository", 5, ["first"], shadow))
    out.append(faster(measured, "restic", 2, ["first"], lambda row: row.group == "restic"))

    grown = [measured.growth[row.name] for row in measured.rows
             if shadow(row) and row.name in measured.growth]
    least = min(grown, default=None)
    out.append(Target("growth, of a shadow repository's", 0.125, True,
                      {"ten": ratio(measured.growth.get("belay"), least)}))
    out.append(users_wish(measured, ["ten"]))
    out.append(Target("peak memory, MB", 150, True, {"all": peak_mb(measured)}))
    return out


def faster(measured, what, factor, workloads, accept):
    wall, cpu = ({w: ratio(fastest(measured, w, accept)[i], _ours(measured, w)[i])
                  for w in workloads} for i in (0, 1))
    return Target(f"times faster than {what}", factor, False, wall, by_cpu=cpu)


def users_wish(measured, workloads):
    return Target("milliseconds (asked for by users)", 100, True,
                  {w: _ours(measured, w)[0] for w in workloads}, measured.tree.files <= 50_000)


def everyday(measured, workloads):
    """What holds for every checkpoint that is made without a daemon."""
    def limit(workload, name, value):
        cell = measured.cell(workload, name)
        return value(cell) if cell else None

    walk, walk_cpu, listed = {}, {}, {}
    for w in workloads:
        wall, cpu = _ours(measured, w)
        walk[w] = ratio(wall, limit(w, "walk1", lambda c: c.wall))
        walk_cpu[w] = ratio(cpu, limit(w, "walk1", lambda c: c.cpu))
        listed[w] = ratio(cpu, limit(w, "statlist1", lambda c: c.inside_cpu))
    in_range = 9_000 <= measured.tree.files <= 110_000
    out = [Target("wall, of a walk on one thread", 1.0, True, walk, in_range, walk_cpu),
           Target("CPU, of statx of the known list", 1.6, True, listed, in_range)]
    for group, factor in (("opencode", 3), ("hermes", 4), ("codemux", 2), ("boocode", 20)):
        out.append(faster(measured, group, factor, workloads,
                          lambda row, group=group: row.group == group))
    return out


def peak_mb(measured):
    peaks = [cells["belay"].maxrss_kb for cells in measured.cells.values()
             if "belay" in cells and cells["belay"].maxrss_kb]
    return max(peaks) * 1024 / 1e6 if peaks else None


def number(value):
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def table(header, rows):
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    lines = []
    for line in [header, *rows]:
        cells = [line[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(line[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return lines


def _times(measured, row):
    line = [row.name]
    for name, _, _ in measured.workloads:
        cell = measured.cell(name, row.name)
        if cell.wall is None:
            why = measured.unavailable.get(row.name)
            line.append(f"n/a ({why})" if why and len(line) == 1 else "n/a" if why else "-")
        else:
            line.append(f"{number(cell.wall)} / {number(cell.cpu)}")
    return line


def _ratios(measured, row):
    line = [row.name]
    for name, _, _ in measured.workloads:
        cell, walk = measured.cell(name, row.name), measured.cell(name, "walk1")
        listed, (ours, _) = measured.cell(name, "statlist1"), _ours(measured, name)
        to_walk = ratio(cell.wall, walk.wall if walk else None)
        to_list = ratio(cell.cpu, listed.inside_cpu if listed else None)
        line.append(f"{number(to_walk)} {number(to_list)} {number(ratio(cell.wall, ours))}"
                    if cell.wall is not None else "-")
    return line


def counts(measured, name):
    counts = sorted({len(c.runs) for c in measured.cells[name].values() if c.runs})
    return f"{counts[0]}-{counts[-1]}" if len(counts) > 1 else str(counts[0]) if counts else "0"


def size_text(measured, find_targets=targets):
    tree, named = measured.tree, titles(measured)
    ignored = f", {tree.ignored} more ignored" if tree.ignored else ""
    lines = ["", f"== {tree.name}: {tree.files} files in {tree.dirs} directories, "
                 f"{tree.bytes / 1e6:.0f} MB{ignored}", ""]
    columns = [title for _, title, _ in measured.workloads]
    lines += ["Median milliseconds, wall / CPU of the whole process or sequence:"]
    lines += table(["", *columns], [_times(measured, row) for row in measured.rows])
    runs = ", ".join(f"{named[name]} {counts(measured, name)}" for name in measured.cells)
    lines += [f"(runs: {runs})", ""]
    for row in measured.rows:
        cell = measured.cell("ten", row.name)
        if row.kind == "limit" and cell.inside_wall is not None:
            lines.append(f"{row.name} without its process start, 10 changed: "
                         f"{number(cell.inside_wall)} / {number(cell.inside_cpu)}")
    lines += ["", "Ratios: wall to walk1, CPU to statlist1's own, wall to Belay's:"]
    live = [row for row in measured.rows if row.name not in measured.unavailable]
    lines += table(["", *columns], [_ratios(measured, row) for row in live])
    if measured.growth:
        lines += ["", "Store growth per checkpoint of ten edits, KB (allocated blocks):"]
        ours = measured.growth.get("belay")
        rows = [[name, f"{grown / 1000:.1f}", number(ratio(grown, ours))]
                for name, grown in measured.growth.items()]
        lines += table(["", "KB", "of Belay's"], rows)
    if "belay" in measured.cells["first"]:
        lines += ["", "Targets:"] + target_lines(find_targets(measured), named)
    if measured.checked:
        lines += [f"{measured.checked} checkpoints of Belay compared with a full re-hash: "
                  "all equal"]
    return "\n".join(lines)


def target_lines(found, titles):
    rows = []
    for target in found:
        bound = f"{'<=' if target.most else '>='} {target.limit:g}"
        values = ", ".join(
            f"{titles[key]} {number(value)}" +
            (f" ({number(target.by_cpu[key])})" if target.by_cpu.get(key) else "")
            for key, value in target.values.items())
        rows.append([target.what, bound, values, target.verdict])
    lines = table(["", "target", "found (the same by CPU)", ""], rows)
    if any(not target.applies for target in found):
        lines.append("(-: no target at this size)")
    return lines


def size_json(measured, find_targets=targets):
    workloads = {}
    for name, _, count in measured.workloads:
        walk, listed = measured.cell(name, "walk1"), measured.cell(name, "statlist1")
        workloads[name] = {"edits": count, "rows": {
            row_name: _cell_json(cell, walk, listed, _ours(measured, name))
            for row_name, cell in measured.cells[name].items()}}
    tree = measured.tree
    return {
        "name": tree.name, "files": tree.files, "dirs": tree.dirs, "bytes": tree.bytes,
        "ignored": tree.ignored, "generated": tree.generated, "rounds": measured.plan.rounds,
        "rows": {row.name: {"kind": row.kind, "peer": row.group, "doc": type(row).__doc__,
                            "unavailable": measured.unavailable.get(row.name)}
                 for row in measured.rows},
        "workloads": workloads,
        "growth_bytes": measured.growth,
        "peak_memory_mb": peak_mb(measured),
        "targets": [target.as_json() for target in find_targets(measured)],
        "checked": measured.checked,
    }


def _cell_json(cell, walk, listed, ours):
    return {
        "runs": len(cell.runs), "wall_ms": cell.wall, "cpu_ms": cell.cpu,
        "maxrss_kb": cell.maxrss_kb, "inside_wall_ms": cell.inside_wall,
        "inside_cpu_ms": cell.inside_cpu, "failed": cell.failed,
        "wall_to_walk1": ratio(cell.wall, walk.wall if walk else None),
        "cpu_to_statlist1": ratio(cell.cpu, listed.inside_cpu if listed else None),
        "wall_to_belay": ratio(cell.wall, ours[0]), "cpu_to_belay": ratio(cell.cpu, ours[1]),
        "all_wall_ms": [run[0] for run in cell.runs], "all_cpu_ms": [run[1] for run in cell.runs],
    }
