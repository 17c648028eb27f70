#!/usr/bin/env python3
"""The slice of mutants that ./test runs has those that matter most, and every one in turn."""
import fnmatch
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mutants", str(ROOT / "tools/mutants"))
spec = importlib.util.spec_from_loader("mutants", loader)
mutants = importlib.util.module_from_spec(spec)
sys.modules["mutants"] = mutants
loader.exec_module(mutants)


class Slice(unittest.TestCase):
    all = mutants.read_list()

    def names(self, number):
        return {m.name for m in mutants.choose_slice(self.all, number)}

    def test_has_what_a_store_must_never_survive(self):
        for number in range(mutants.SLICE):
            self.assertLessEqual(mutants.ALWAYS, self.names(number))

    def test_has_every_one_in_turn(self):
        able = {m.name for m in self.all if m.program in mutants.SLICE_PROGRAMS}
        self.assertEqual(set.union(*map(self.names, range(mutants.SLICE))), able)

    def test_is_a_slice(self):
        for number in range(mutants.SLICE):
            self.assertLess(len(self.names(number)), 40)

    def test_list_and_sources_agree(self):
        self.assertEqual(mutants.differences(self.all), [])

    def test_every_mutant_has_a_test_that_is_there(self):
        built = pathlib.Path(os.environ.get("BELAY_BUILD_DIR", ROOT / "build/release")) / "bin"
        programs = {m.program for m in self.all}
        there = {p: mutants.tests_of(built / p) for p in programs if (built / p).exists()}
        if not there:
            self.skipTest("no test program is built")
        gone = [f"{m.name}: {part}" for m in self.all if m.program in there
                for part in m.tests.split("-")[0].split(":")
                if not any(fnmatch.fnmatchcase(t, part) for t in there[m.program])]
        self.assertEqual(gone, [])


if __name__ == "__main__":
    unittest.main()
