#!/usr/bin/env python3
"""What ./test sums up: nothing that did not run is lost from its last line."""
import contextlib
import io
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import run_tests  # noqa: E402


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def stage(clock, seconds, **count):
    def run(late=False):
        clock.now += seconds
        return run_tests.Count(**count, notes=["in a hurry"] if late else [])
    return run


def broken():
    raise run_tests.StageFailed("no compiler")


class RunStages(unittest.TestCase):
    def total(self, *stages):
        clock = Clock()
        self.said = io.StringIO()
        with contextlib.redirect_stdout(self.said):
            total = run_tests.run_stages([(name, what if callable(what) else stage(clock, **what))
                                          for name, what in stages], clock)
        return total.passed, total.failed, total.skipped

    def test_adds_up(self):
        self.assertEqual(self.total(("release tests", dict(seconds=9, passed=5, skipped=1)),
                                    ("fuzz slice", dict(seconds=9, passed=3, failed=1))), (8, 1, 1))

    def test_a_slice_for_which_there_is_no_time_is_skipped(self):
        late = run_tests.END - 29
        self.assertEqual(self.total(("release tests", dict(seconds=late, passed=5)),
                                    ("format", dict(seconds=1, passed=1)),
                                    ("slice build", broken),
                                    ("asan slice", dict(seconds=1, passed=100)),
                                    ("mutant slice", dict(seconds=1, passed=100))), (6, 0, 3))
        self.assertIn("skipped mutant slice", self.said.getvalue())

    def test_without_time_to_build_them_slices_are_skipped(self):
        late = run_tests.END - run_tests.TAKES["slice build"] - 29  # and no slice after it
        self.assertEqual(self.total(("release build", dict(seconds=late)),
                                    ("release tests", dict(seconds=1, passed=5)),
                                    ("slice build", broken), ("asan slice", broken)), (5, 0, 2))

    def test_a_slice_in_time_is_run(self):
        in_time = run_tests.END - run_tests.TAKES["mutant slice"]
        self.assertEqual(self.total(("release build", dict(seconds=in_time - 1)),
                                    ("release tests", dict(seconds=1, passed=5)),
                                    ("asan slice", broken),
                                    ("mutant slice", dict(seconds=99, passed=1))), (6, 0, 1))

    def test_after_a_long_build_the_longest_tests_are_left_out(self):
        for seconds, hurry in (run_tests.BUILD_TAKES, False), (run_tests.BUILD_TAKES + 1, True):
            self.total(("release build", dict(seconds=seconds)),
                       ("release tests", dict(seconds=1, passed=5)))
            self.assertEqual("in a hurry" in self.said.getvalue(), hurry)

    def test_where_tests_are_slow_slices_are_thought_to_be_slow(self):
        takes = run_tests.TAKES["mutant slice"]
        slow = 2 * run_tests.TESTS_TAKE
        for left, count in (2 * takes, (6, 0, 0)), (2 * takes - 1, (5, 0, 1)):
            before = run_tests.END - slow - left
            self.assertEqual(self.total(("release build", dict(seconds=before)),
                                        ("release tests", dict(seconds=slow, passed=5)),
                                        ("mutant slice", dict(seconds=9, passed=1))), count)

    def test_each_slice_is_the_first_in_turn(self):
        orders = [[name for name, _ in run_tests.stages(False, number)][4:]
                  for number in range(3)]
        self.assertEqual({order[0] for order in orders},
                         {"asan slice", "fuzz slice", "mutant slice"})
        for order in orders:
            self.assertEqual(set(order), set(orders[0]))

    def test_what_cannot_be_built_failed(self):
        self.assertEqual(self.total(("release build", broken), ("release tests", broken)),
                         (0, 1, 0))
        self.assertEqual(self.total(("asan slice", broken)), (0, 1, 0))
        self.assertEqual(self.total(("slice build", broken), ("asan slice", broken)), (0, 1, 0))


if __name__ == "__main__":
    unittest.main()
