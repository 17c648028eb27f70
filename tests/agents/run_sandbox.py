"""Where agents run: no network but loopback, no processes but their own, an empty environment.

`enter` restarts the program itself in new namespaces; everything it starts afterwards is in
there too, and ends with it.
"""
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

MARK = "--inside"
# Settings for a whole machine, which would reach an agent past its scratch HOME.
MACHINE_SETTINGS = ["/etc/claude-code", "/etc/codex", "/etc/gemini-cli", "/etc/opencode",
                    "/etc/qwen-code", "/etc/xdg"]
_UP, _RUNNING = 0x1, 0x40


def why_not():
    """Why namespaces cannot be had here; "" if they can."""
    if not shutil.which("unshare"):
        return "unshare is not installed"
    done = subprocess.run([*_unshare(), "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else "no namespaces: " + done.stderr.strip()


def enter(program, arguments):
    """Runs `program --inside ARGUMENTS` in there; its exit code."""
    command = [*_unshare(), sys.executable, program, MARK, *arguments]
    return subprocess.run(command, check=False).returncode


def _unshare():
    root = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *root, "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def prepare():
    """The first thing inside: loopback up, settings of the machine out of sight."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", b"lo", _UP | _RUNNING))
    names = [name for _, name in socket.if_nameindex()]
    if names != ["lo"]:
        raise SystemExit(f"there is more than loopback here: {names}")
    for directory in MACHINE_SETTINGS:
        if os.path.isdir(directory):
            subprocess.run(["mount", "-t", "tmpfs", "none", directory], check=True)


class Result:
    def __init__(self, status, output, seconds):
        self.status, self.output, self.seconds = status, output, seconds


def run(command, environment, directory, timeout, stdin=""):
    """Runs to the end with exactly this environment. What it leaves behind in its process
    group is ended."""
    began = time.monotonic()
    child = subprocess.Popen(
        command, env=environment, cwd=directory, stdin=subprocess.PIPE, text=True,
        errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = child.communicate(stdin, timeout=timeout)
        status = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        status = f"none after {timeout} s"
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return Result(status, output, time.monotonic() - began)
