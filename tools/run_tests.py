#!/usr/bin/env python3
"""What ./test does once the packages are there: stages, their times, one sum.

Each stage is a function that returns a Count. A stage that cannot even be built
counts as one failed test, so that nothing is lost from the sum.
"""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOG = BUILD / "log"
JOBS = str(os.cpu_count() or 2)
TEST_JOBS = str(int(JOBS) + 2)  # some tests wait, for a lock that is held or for git
SUM = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)
FUZZ_SECONDS = 4  # a target; all of them together stay below FUZZ_TOTAL
FUZZ_TOTAL = 60
FUZZ_SLICE = {"store", "ignore", "git", "core", "restore"}
# All of it must end within 15 minutes on two cores: seconds, and what a slice takes there at
# most, where the release tests take no more than TESTS_TAKE; else so many times more. What
# would end later is not begun.
END = 14 * 60 + 40
TESTS_TAKE = 260
# Where the build alone took longer, the tests that take longest would end too late: they are
# left to their commands, all of them or none.
BUILD_TAKES = 420
LONG = {r"^crash\.": "build/release/bin/crash_test, tests/crash/*.sh",
        r"^store\.Damage": "build/release/bin/store_test --gtest_filter='Damage*'",
        r"^cli\.(git_matrix|bench_)": "ctest --preset release -R 'cli.(git_matrix|bench_)'"}
TAKES = {"slice build": 240, "asan slice": 190, "fuzz slice": 30, "mutant slice": 110}


@dataclasses.dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = dataclasses.field(default_factory=list)  # printed below the stage

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


class StageFailed(Exception):
    """What a stage needed could not be done; the text says what."""


def run(log_name, command, check=True, **options):
    """Runs a command with its output in build/log; returns (status, output)."""
    log = LOG / log_name
    with log.open("w") as out:
        status = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT, **options).returncode
    output = log.read_text(errors="replace")
    if check and status:
        tail = "\n".join(output.splitlines()[-60:])
        shown = " ".join(map(str, command))
        raise StageFailed(f"{tail}\nfailed: {shown} (all of it in {log})")
    return status, output


def build(preset, *targets):
    cache = BUILD / preset / "CMakeCache.txt"
    here = f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT}\n"
    if cache.exists() and here not in cache.read_text():
        shutil.rmtree(BUILD / preset)  # the clone was moved
    run(f"{preset}-configure", ["cmake", "--preset", preset])
    target = ["--target", *targets] if targets else []
    run(f"{preset}-build", ["cmake", "--build", "--preset", preset, *target])


def skip_reason(output):
    found = re.search(r": Skipped\n(.*?)\n?\[  SKIPPED", output, re.S)
    lines = (found[1] if found else output).strip().splitlines()
    return lines[-1].strip() if lines else "no reason given"


def ctest(preset, without=()):
    junit = LOG / f"{preset}-junit.xml"
    junit.unlink(missing_ok=True)
    status, output = run(f"{preset}-ctest", [
        "ctest", "--preset", preset, "-j", TEST_JOBS, "--output-junit", junit,
        "--test-output-size-passed", "65536", *(["-E", "|".join(without)] if without else [])],
        check=False)
    if not junit.exists():
        raise StageFailed(output[-4000:])
    how = dict(re.findall(r"Test +#\d+: (\S+) \.*\*\*\*(.+?)\s+[\d.]+ sec", output))
    count = Count()
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        name, text = case.get("name"), case.findtext("system-out") or ""
        skipped = case.find("skipped")
        if case.get("status") == "run":
            count.passed += 1
        elif case.get("status") == "disabled":
            count.skipped += 1
            count.notes.append(f"skipped {name}: disabled")
        elif skipped is not None and "SKIP_" in skipped.get("message", ""):
            count.skipped += 1
            count.notes.append(f"skipped {name}: {skip_reason(text)}")
        else:  # failed, crashed, timed out, or could not be started
            count.failed += 1
            count.notes.append(f"FAILED {name} ({how.get(name, 'Failed')})\n{text.strip()}")
    if status and not count.failed:
        raise StageFailed(output[-4000:])
    return count


def release_tests(late=False):
    count = ctest("release", LONG if late else ())
    if late:
        count.skipped += len(LONG)
        count.notes += [f"skipped {what}: the build took more than {BUILD_TAKES} s; {command}"
                        for what, command in LONG.items()]
    return count


def release_build():
    stamp = BUILD / "stamp"  # as in tools/setup.sh: ./belay need not build again
    stamp.unlink(missing_ok=True)
    stamp.touch()
    build("release")
    stamp.replace(BUILD / "release/stamp")
    return Count()


def slice_targets():
    """What the slices need, of one build: the sanitizers, the fuzz targets, the mutants."""
    return ["slice_tests", "store_crash_test", *fuzz_names()]


def slice_build():
    build("slice", *slice_targets())
    return Count()


def asan_slice():
    return ctest("slice")


def mutant_slice():
    """tools/mutants ends in the same line as ./test; a mutant that is caught passes."""
    status, output = run("mutants", [ROOT / "tools/mutants", "--slice", "--bin", BUILD / "slice/bin"],
                         check=False)
    sums = SUM.findall(output)
    if not sums:
        raise StageFailed(f"{output[-4000:]}\ntools/mutants --slice gave no sum")
    count = Count(*map(int, sums[-1]))
    if count.failed or status:
        count.failed = max(count.failed, 1)
        count.notes.append(output[-4000:])
    return count


def fuzz_one(name, seconds):
    corpus = ROOT / "tests/fuzz/corpus" / name
    artifacts = BUILD / "fuzz-artifacts" / name
    artifacts.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        if corpus.is_dir():
            shutil.copytree(corpus, work, dirs_exist_ok=True)
        status, output = run(name, [
            BUILD / "slice/fuzz" / name, "-seed=1", "-runs=1000000", "-timeout=20",
            f"-max_total_time={seconds}", f"-artifact_prefix={artifacts}/", work], check=False)
    return name, status, output


def fuzz_names():
    # Those of agent, bundle and diff need the rest built too: by command only.
    return sorted(p.stem for p in (ROOT / "tests/fuzz").glob("fuzz_*.cc")
                  if p.stem.split("_")[1] in FUZZ_SLICE)


def fuzz_slice():
    names = fuzz_names()
    jobs = int(JOBS)
    seconds = max(2, min(FUZZ_SECONDS, FUZZ_TOTAL * jobs // len(names)))
    count = Count()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, status, output in pool.map(lambda n: fuzz_one(n, seconds), names):
            if status:
                count.failed += 1
                count.notes.append(f"FAILED {name}\n{output[-4000:]}")
            else:
                count.passed += 1
    return count


def format_check():
    run("lint", [ROOT / "tools/lint"])
    return Count(passed=1)


def commit_number():
    """The same for everybody who has this commit; another for the next one."""
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(said.stdout.strip()[:8] or "0", 16)


def stages(fast, number=None):
    yield "release build", release_build
    yield "release tests", release_tests
    yield "format", format_check
    if fast:
        return
    slices = [("asan slice", asan_slice), ("fuzz slice", fuzz_slice),
              ("mutant slice", mutant_slice)]
    yield "slice build", slice_build
    # Where there is no time for all of them it is not always the same that is missing.
    first = (commit_number() if number is None else number) % len(slices)
    yield from slices[first:] + slices[:first]


def not_run(fast):
    if fast:
        yield "./test", "the sanitizer, mutant and fuzz slices as well"
    yield "BELAY_FULL=1 ctest --preset release", "every call and byte where a slice is run here"
    yield "tests/git/matrix.py", "every cell (here every 27th)"
    yield "tests/crash/restore_full", "every kill, cut and failing call (here a slice)"
    yield "ctest --preset all", "whole asan and tsan builds, both chroot tests below"
    yield "ctest --preset asan", "base, store, scan, core and cli under the sanitizers"
    yield "tools/package_test", "the .deb and the .tar.gz in a bare chroot"
    yield "tools/fresh_machine_test", "a clone built and tested on a bare Debian 12"
    yield "cmake --build --preset fuzz --target fuzz_agent_transcript", \
        "then build/fuzz/fuzz/fuzz_agent_transcript -max_total_time=600 DIR; and the others"
    yield "tools/lint --tidy", "clang-tidy"
    yield "tools/test_preset asan", "what the asan slice runs, and the rest"
    if os.access(ROOT / "tools/mutants", os.X_OK):
        yield "tools/mutants", "every mutant (--slice: those of ./test)"
    if (ROOT / "bench").is_dir():
        yield "bench/", "benchmarks"


def run_stages(all_stages, clock=time.monotonic):
    """The sum. A slice for which there is no time is skipped, and counts as that."""
    begin = clock()
    total = Count()
    built = True
    slower, building = 1, 0
    for name, stage in all_stages:
        start = clock()
        takes = TAKES.get(name, 0)
        if name == "slice build":
            takes += min(other for slice_name, other in TAKES.items() if slice_name != name)
        latest = int(END - takes * slower)
        if name.endswith(" slice") and not built:
            count = Count(skipped=1, notes=[f"skipped {name}: not built; its command is below"])
        elif name in TAKES and start - begin > latest:
            built = built and name != "slice build"
            count = Count(skipped=1, notes=[f"skipped {name}: not begun after {latest} s; "
                                            "its command is below"])
        else:
            try:
                late = {"late": True} if name == "release tests" and building > BUILD_TAKES else {}
                count = stage(**late)
            except StageFailed as failure:
                count = Count(failed=1, notes=[str(failure)])
        if name == "release build":
            building = clock() - start
        if name == "release tests":
            slower = max(1, (clock() - start) / TESTS_TAKE)
        total.add(count)
        print(f"{name:<14} {clock() - start:6.1f} s  {count.passed} passed, "
              f"{count.failed} failed, {count.skipped} skipped", flush=True)
        for note in count.notes:
            print("  " + note.replace("\n", "\n  "), flush=True)
        if name.endswith(" build") and count.failed:
            break  # nothing after it can say anything new
    print(f"total          {clock() - begin:6.1f} s")
    return total


def main(args):
    fast = "--fast" in args
    LOG.mkdir(parents=True, exist_ok=True)
    total = run_stages(stages(fast))
    print("not run here:")
    for command, what in not_run(fast):
        print(f"  {command:<36} {what}")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
