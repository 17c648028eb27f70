"""The agents themselves, from npm into a cache folder, at the versions of `versions`."""
import fcntl
import os
import pathlib
import platform
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


class Pin:
    def __init__(self, name, package, version, node, runs):
        self.name, self.package, self.version, self.runs = name, package, version, runs
        self.node = node == "node"
        self.folder = cache() / f"{name}-{version}"
        self.program = self.folder / runs

    def installed(self):
        return (self.folder / "installed").exists() and self.program.exists()


def cache():
    given = os.environ.get("BELAY_AGENTS_CACHE")
    if given:
        return pathlib.Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(home) / "belay-agents"


def pins():
    made = {}
    for line in (HERE / "versions").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            made[words[0]] = Pin(*words)
    return made


def install(pin):
    """"" once it is there; else why it is not."""
    if pin.installed():
        return ""
    if platform.machine() != "x86_64":
        return f"only x86_64 programs are pinned, this is {platform.machine()}"
    if not shutil.which("npm"):
        return "npm is not installed"
    cache().mkdir(parents=True, exist_ok=True)
    # Tests run side by side: a program that one runs must not be written by another.
    with (cache() / f"{pin.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return "" if pin.installed() else _install(pin)


def _install(pin):
    if pin.folder.exists():
        shutil.rmtree(pin.folder)
    pin.folder.mkdir(parents=True)
    # Scripts of packages are not run: all of these bring their programs along.
    done = subprocess.run(
        ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock",
         "--loglevel=error", "--fetch-retries=1", "--prefix", str(pin.folder),
         f"{pin.package}@{pin.version}"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return "npm install failed: " + (lines[0] if lines else f"exit {done.returncode}")
    if not pin.program.exists():
        return f"{pin.package}@{pin.version} has no {pin.runs}"
    (pin.folder / "installed").touch()
    return ""
