"""Where the figures come from: said with every table."""

import os
import platform
import subprocess


def fs_type(path):
    """The type of the file system that holds `path`, from the longest mount point."""
    path = os.path.realpath(path)
    best = ("", "unknown")
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            fields = line.split()
            point = fields[4].replace("\\040", " ")
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best[0]):
                best = (point, fields[fields.index("-") + 1])
    return best[1]


def in_memory(path):
    return fs_type(path) in ("tmpfs", "ramfs", "devtmpfs")


def _first_line(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return (done.stdout.strip().splitlines() or [None])[0] if done.returncode == 0 else None


def _cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def describe(work, belay):
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "kernel": platform.release(),
        "fs": fs_type(work),
        "load": round(os.getloadavg()[0], 2),
        "git": _first_line("git", "--version"),
        "restic": _first_line("restic", "version"),
        "borg": _first_line("borg", "--version"),
        "belay": _first_line(belay, "--version"),
    }
