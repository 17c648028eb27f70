"""Tables, JSON and targets of the rollbacks."""

from .report import Target, counts, fastest, number, ratio, table, target_lines
from .rollbacks import WORKLOADS

TITLES = {name: title for name, title, _ in WORKLOADS}


def _ours(measured, workload):
    cell = measured.cell(workload, "belay")
    return (cell.wall, cell.cpu) if cell else (None, None)


def targets(measured):
    files = measured.tree.files
    out = []

    def faster(group, factor, workload, applies=True):
        theirs = fastest(measured, workload, lambda row: row.group == group)
        wall, cpu = ({workload: ratio(theirs[i], _ours(measured, workload)[i])} for i in (0, 1))
        out.append(Target(f"times faster than {group}", factor, False, wall, applies, cpu))

    for group in ("codemux", "boocode"):
        faster(group, 5, "ten")
    large = files >= 90_000
    faster("codemux", 4, "many", files >= 9_000)
    faster("boocode", 2 if large else 4, "many", files >= 9_000)
    out.append(Target("milliseconds (asked for by users)", 2000, True,
                      {name: _ours(measured, name)[0] for name in TITLES}, files <= 50_000))
    return out


def _times(measured, row):
    line = [row.name]
    for name in TITLES:
        cell = measured.cell(name, row.name)
        if cell.wall is None:
            line.append(f"n/a ({measured.unavailable[row.name]})"
                        if row.name in measured.unavailable else "-")
            line.append("")
            continue
        mark = "!" if row.name in measured.wrong[name] else ""
        line.append(f"{number(cell.wall)} / {number(cell.cpu)}{mark}")
        line.append(number(ratio(cell.wall, _ours(measured, name)[0])))
    return line


def size_text(measured):
    tree = measured.tree
    ignored = f", {tree.ignored} more ignored" if tree.ignored else ""
    lines = ["", f"== {tree.name}: {tree.files} files in {tree.dirs} directories, "
                 f"{tree.bytes / 1e6:.0f} MB{ignored}", "",
             "Median milliseconds, wall / CPU of the whole process or sequence, and wall of "
             "Belay's:"]
    header = ["", *(word for title in TITLES.values() for word in (title, "x"))]
    lines += table(header, [_times(measured, row) for row in measured.rows])
    runs = ", ".join(f"{title} {counts(measured, name)}" for name, title in TITLES.items())
    lines += [f"(runs: {runs})"]
    for name, title in TITLES.items():
        for row_name, wrong in measured.wrong[name].items():
            left = ", ".join(f"{count} {what}" for what, count in wrong.items() if count)
            lines.append(f"! {row_name}, {title}: not as it was: {left}")
    for row in measured.rows:
        cells = {title: measured.cell(name, row.name) for name, title in TITLES.items()}
        if row.kind == "limit" and all(cell.inside for cell in cells.values()):
            lines.append(f"{row.name} without its process start and reading: " + ", ".join(
                f"{title} {number(cell.inside_wall)} / {number(cell.inside_cpu)}"
                for title, cell in cells.items()))
    if measured.cell("ten", "belay"):
        lines += ["", "Targets:"] + target_lines(targets(measured), TITLES)
    if measured.checked:
        lines.append(f"{measured.checked} rollbacks and undos of Belay compared byte for byte: "
                     "all equal")
    return "\n".join(lines)


def size_json(measured):
    tree = measured.tree
    return {
        "name": tree.name, "files": tree.files, "dirs": tree.dirs, "bytes": tree.bytes,
        "ignored": tree.ignored, "generated": tree.generated,
        "rows": {row.name: {"kind": row.kind, "peer": row.group, "doc": type(row).__doc__,
                            "unavailable": measured.unavailable.get(row.name)}
                 for row in measured.rows},
        "workloads": {name: {"damage": dict(zip(("changed", "created", "deleted"), damage)),
                             "rows": {row.name: _cell_json(measured, name, row.name)
                                      for row in measured.rows}}
                      for name, _, damage in WORKLOADS},
        "targets": [target.as_json() for target in targets(measured)],
        "checked": measured.checked,
    }


def _cell_json(measured, workload, row_name):
    cell, ours = measured.cell(workload, row_name), _ours(measured, workload)
    return {
        "runs": len(cell.runs), "wall_ms": cell.wall, "cpu_ms": cell.cpu,
        "maxrss_kb": cell.maxrss_kb, "inside_wall_ms": cell.inside_wall,
        "inside_cpu_ms": cell.inside_cpu, "failed": cell.failed,
        "wrong": measured.wrong[workload].get(row_name),
        "wall_to_belay": ratio(cell.wall, ours[0]), "cpu_to_belay": ratio(cell.cpu, ours[1]),
        "all_wall_ms": [run[0] for run in cell.runs], "all_cpu_ms": [run[1] for run in cell.runs],
    }
