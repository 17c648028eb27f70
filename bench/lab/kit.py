"""The clock of the benchmarks: a client of lab_run, and what one timed run adds up to."""

import os
import signal
import struct
import subprocess


class StepFailed(Exception):
    """A command of a contender ended with an exit code that was not expected."""

    def __init__(self, argv, code, stderr):
        first = stderr.decode("utf-8", "replace").strip().splitlines()[:1]
        super().__init__(f"{' '.join(argv)}: exit {code}" + "".join(f": {x}" for x in first))
        self.code = code


class Step:
    """What lab_run said about one command."""

    def __init__(self, fields):
        self.code = int(fields[0])
        self.wall_ms = int(fields[1]) / 1e6
        self.cpu_ms = int(fields[2]) / 1e3
        self.maxrss_kb = int(fields[3])
        self.out, self.err = fields[4], fields[5]


class Kit:
    """One lab_run process. Not for several threads."""

    def __init__(self, programs, timeout_s=1800):
        self.programs = programs
        self.timeout_ms = timeout_s * 1000
        # Ctrl-C is the harness's to handle; it then closes the pipe.
        self.process = subprocess.Popen(
            [self.program("lab_run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def program(self, name):
        return os.path.join(self.programs, name)

    def ask(self, *words):
        words = [w if isinstance(w, bytes) else os.fsencode(str(w)) for w in words]
        pipe = self.process.stdin
        pipe.write(struct.pack("<I", len(words)))
        for word in words:
            pipe.write(struct.pack("<I", len(word)) + word)
        pipe.flush()
        answer = [self._read(self._number()) for _ in range(self._number())]
        if answer[0] != b"ok":
            raise RuntimeError(os.fsdecode(answer[1]))
        return answer[1:]

    def _number(self):
        return struct.unpack("<I", self._read(4))[0]

    def _read(self, size):
        data = self.process.stdout.read(size)
        if len(data) != size:
            raise RuntimeError("lab_run ended")
        return data

    def run(self, commands):
        """Runs (argv, env, cwd, input) side by side: the wall time of all, a Step each."""
        words = ["run", self.timeout_ms, len(commands)]
        for argv, env, cwd, stdin in commands:
            words += [cwd, stdin, len(argv), *argv, len(env)]
            words += [f"{key}={value}" for key, value in env.items()]
        answer = self.ask(*words)
        steps = [Step(answer[i:i + 6]) for i in range(1, len(answer), 6)]
        return int(answer[0]) / 1e6, steps

    def disk_use(self, *dirs):
        return int(self.ask("du", *dirs)[0])

    def settle(self, directory):
        self.ask("settle", directory)

    def spread(self, directory):
        self.ask("spread", directory)


class Meter:
    """Adds up the commands of one run of a contender.

    The time of a run is the sum of its commands' times. What the harness does between
    them costs nothing, although the peers' own programs would take some: generous to them.
    """

    def __init__(self, kit, env, cwd):
        self.kit, self.env, self.cwd = kit, env, cwd
        self.wall_ms = self.cpu_ms = 0.0
        self.maxrss_kb = 0

    def run(self, *argv, env=None, cwd=None, stdin=b"", ok=(0,)):
        return self.together([argv], env, cwd, stdin, ok)[0]

    def together(self, commands, env=None, cwd=None, stdin=b"", ok=(0,)):
        """Commands at the same time, as some peers run them. A variable that is None is
        taken out of the environment; `ok` are the exit codes that are no failure."""
        env = {**self.env, **(env or {})}
        env = {key: value for key, value in env.items() if value is not None}
        wall, steps = self.kit.run([(argv, env, cwd or self.cwd, stdin) for argv in commands])
        self.wall_ms += wall
        for argv, step in zip(commands, steps):
            self.cpu_ms += step.cpu_ms
            self.maxrss_kb = max(self.maxrss_kb, step.maxrss_kb)
            if ok is not None and step.code not in ok:
                raise StepFailed(argv, step.code, step.err)
        return steps

    def copy(self, source, target):
        wall, cpu = self.kit.ask("copy", source, target)
        self.wall_ms += int(wall) / 1e6
        self.cpu_ms += int(cpu) / 1e3
