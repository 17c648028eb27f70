"""What the benchmark commands have in common: arguments, the trees, and a tidy end."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys

from . import machine, trees
from .lab import Lab, Progress, WrongCheckpoint

PACKAGES = {"restic": "restic", "borg": "borgbackup"}


class Command:
    """One benchmark. `run` fills the JSON document as it goes and prints its tables;
    WrongCheckpoint from it makes the exit code 1, as does anything in document["failed"]."""

    name = ""          # of the command, bench/<name>
    description = ""
    sizes = "1k,10k,100k"
    quick_sizes = "1k,10k"
    peers_to_install = False

    def run(self, lab, args, document, progress):
        raise NotImplementedError

    def parse(self, argv):
        parser = argparse.ArgumentParser(
            prog=f"bench/{self.name}", description=self.description,
            epilog="Rows can be named singly (hermes-core), by peer (hermes), or by kind "
            "(belay, peer, limit). Exit code 1: something that Belay did was wrong, or it did "
            "nothing.")
        parser.add_argument("checkout", nargs="*", help="a real directory to copy and measure too")
        parser.add_argument("--sizes", help="trees to make, such as 1k,10k,100k,500k; or none")
        parser.add_argument("--rounds", type=int, help="rounds of every workload")
        parser.add_argument("--quick", action="store_true",
                            help=f"{self.quick_sizes.replace(',', ' and ')}, three rounds")
        parser.add_argument("--only", default="", help="rows to run, separated by commas")
        parser.add_argument("--without", default="", help="rows to leave out")
        parser.add_argument("--work", help="directory to work in; its trees stay for the next run")
        parser.add_argument("--keep", action="store_true", help="do not remove what was stored")
        parser.add_argument("--json", help="file for all figures")
        if self.peers_to_install:
            parser.add_argument("--install-peers", action="store_true",
                                help="apt-get restic and borg")
        parser.add_argument("--belay", help="the program to measure")
        parser.add_argument("--programs", help="where lab_run and the others are")
        parser.add_argument("--no-settle", action="store_true", help="no syncfs between two runs")
        parser.add_argument("--any-fs", action="store_true", help="even in memory (tmpfs)")
        args = parser.parse_args(argv)
        here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        args.belay = os.path.abspath(args.belay or os.path.join(here, "build/release/bin/belay"))
        args.programs = os.path.abspath(
            args.programs or os.path.join(here, "build/release/bench"))
        sizes = args.sizes or (self.quick_sizes if args.quick else self.sizes)
        try:
            listed = [] if sizes == "none" else [trees.parse_size(s) for s in sizes.split(",")]
            args.sizes = list(dict.fromkeys(listed))
        except ValueError as error:
            parser.error(f"--sizes: {error}")
        if args.rounds is not None and args.rounds < 1:
            parser.error("--rounds: at least 1")
        for path in args.checkout:
            if not os.path.isdir(path):
                parser.error(f"{path}: no such directory")
        if args.work and not args.any_fs and machine.in_memory(os.path.dirname(
                os.path.abspath(args.work)) if not os.path.isdir(args.work) else args.work):
            parser.error(f"{args.work} is in memory; figures from there say nothing about a disk")
        return args

    def main(self, argv):
        args = self.parse(argv)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidy up then too
        if self.peers_to_install and args.install_peers:
            install_peers()
        progress = Progress()
        lab = Lab(args.programs, args.belay, args.work, args.keep, not args.no_settle)
        document = {"benchmark": self.name, "version": 1, "trees": [], "failed": [],
                    "machine": machine.describe(lab.work, args.belay)}
        try:
            print(header(document["machine"]), flush=True)
            self.run(lab, args, document, progress)
        except WrongCheckpoint as wrong:
            document["failed"].append(str(wrong))
        except KeyboardInterrupt:
            document["failed"].append("interrupted")
        finally:
            progress.end()
            self._finish(lab, args, document, progress)
        return 1 if document["failed"] else 0

    def _finish(self, lab, args, document, progress):
        """The figures first: removing a hundred thousand files may take minutes."""
        if args.json:
            with open(args.json, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.write("\n")
        for what in document["failed"]:
            print(f"bench/{self.name}: FAILED: {what}", file=sys.stderr)
        if lab.keep:
            print(f"kept: {lab.work}", file=sys.stderr)
        progress.say("removing what was stored")
        lab.close()
        progress.end()


def chooser(args):
    only, without = (set(filter(None, text.split(","))) for text in (args.only, args.without))

    def wanted(row):
        names = {row.name, row.group, row.kind}
        return (not only or bool(names & only)) and not names & without
    return wanted


def install_peers():
    missing = [package for name, package in PACKAGES.items() if not shutil.which(name)]
    if missing:
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-q"],
                      ["install", "-q", "-y", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", *words], check=True, stdout=sys.stderr, env=env)


def header(about):
    return (f"{about['cpu']}, {about['cores']} cores, {about['memory_mb']} MB, Linux "
            f"{about['kernel']}, {about['fs']}, load {about['load']}\n"
            f"{about['belay'] or 'belay: does not run'}; {about['git']}; "
            f"{about['restic'] or 'no restic'}; {about['borg'] or 'no borg'}")


def all_trees(lab, args, progress):
    for number in args.sizes:
        progress.say(f"making the tree of {number} files")
        yield trees.generate(lab.kit, lab.tree_dir, number, lab.env)
    for source in args.checkout:
        progress.say(f"copying {source}")
        yield trees.copy_checkout(lab.kit, lab.run_dir, source, lab.env)
