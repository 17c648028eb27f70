"""Tables of bench/git, and what is promised of it."""

from .git_rows import WORKLOADS, GitRow
from .report import Target, ratio, table


def _cell(measured, workload, name):
    return measured.cells[workload].get(name)


def added(measured, workload, name, column):
    """Milliseconds more than the same tree without git."""
    with_git, without = (_cell(measured, workload, row) for row in (name, "no git"))
    if not with_git or not without or not with_git.runs or not without.runs:
        return None
    return getattr(with_git, column) - getattr(without, column)


def targets(measured):
    """The first is of the issue that brought git; the others are those of every checkpoint
    (bench/capture), with git and its features on."""
    small = measured.trees.git.files <= 12_000
    rows = [row.name for row in measured.rows if isinstance(row, GitRow) and row.name != "no git"]
    found = [Target("ms of CPU that git adds where nothing changed, at 10k", 1.0, True,
                    {"git": added(measured, "nothing", "git", "cpu")}, applies=small)]
    for what, limit, base, column in (("times a single-thread walk", 1.0, "walk1", "wall"),
                                      ("CPU, times a bare statx of the list", 1.6, "statlist1",
                                       "cpu")):
        values, by_cpu = {}, {}
        for workload, title, *_ in WORKLOADS[:2]:
            for row in rows:
                ours, other = (_cell(measured, workload, name) for name in (row, base))
                if ours and other and ours.runs and other.runs:
                    key = f"{row}, {title}"
                    values[key] = ratio(getattr(ours, column), getattr(other, column))
                    by_cpu[key] = ratio(ours.cpu, other.cpu)
        found.append(Target(what, limit, True, values,
                            applies=measured.trees.git.files >= 10_000, by_cpu=by_cpu))
    return found


def _number(value):
    return "n/a" if value is None else f"{value:.2f}"


def _more(value):
    return "n/a" if value is None else f"{value:+.2f}"


def as_text(measured):
    lines = ["", f"== {measured.trees.name}: {measured.trees.git.files} files, "
                 f"{measured.plan.rounds} rounds; wall / CPU ms (medians), system calls, and what "
                 "git adds"]
    header = ["row"] + [title for _, title, *_ in WORKLOADS]
    rows = []
    for row in measured.rows:
        line = [row.name]
        for workload, *_ in WORKLOADS:
            cell = _cell(measured, workload, row.name)
            if not cell.runs:
                line.append("n/a")
                continue
            text = f"{cell.wall:.2f} / {cell.cpu:.2f}"
            calls = measured.calls[workload].get(row.name)
            if calls is not None:
                text += f", {calls} calls"
            if isinstance(row, GitRow) and row.name != "no git":
                text += (f" ({_more(added(measured, workload, row.name, 'wall'))}"
                         f" / {_more(added(measured, workload, row.name, 'cpu'))})")
            line.append(text)
        rows.append(line)
    lines += table(header, rows)
    for target in targets(measured):
        if target.applies:
            values = ", ".join(f"{key} {_number(value)}" for key, value in target.values.items())
            lines.append(f"{target.what}: at most {target.limit}: {target.verdict} ({values})")
            if "walk" in target.what:
                cpu = ", ".join(f"{key} {_number(value)}" for key, value in target.by_cpu.items())
                lines.append(f"  the same by CPU: {cpu}")
    return "\n".join(lines)


def as_json(measured):
    return {"name": measured.trees.name, "files": measured.trees.git.files,
            "rounds": measured.plan.rounds, "failed": measured.failed,
            "targets": [target.as_json() for target in targets(measured)],
            "workloads": {workload: {row.name: {
                "wall_ms": measured.cells[workload][row.name].wall,
                "cpu_ms": measured.cells[workload][row.name].cpu,
                "calls": measured.calls[workload].get(row.name)}
                for row in measured.rows} for workload, *_ in WORKLOADS}}
