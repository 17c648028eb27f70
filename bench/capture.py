"""How fast Belay takes checkpoints, next to its peers and to the bare limits, in one run.

What is compared, how, and why it is fair: docs/benchmarks.md.
"""

import sys

sys.dont_write_bytecode = True

from lab import report, start  # noqa: E402
from lab.command import Command, all_trees, chooser  # noqa: E402
from lab.contenders import Belay  # noqa: E402
from lab.workloads import Plan, Session, make_rows  # noqa: E402


class Capture(Command):
    name = "capture"
    description = ("Belay's checkpoints against its peers' and the bare limits, in one run. "
                   "Without arguments: trees of 1k, 10k and 100k files.")
    peers_to_install = True

    def run(self, lab, args, document, progress):
        document["start"] = None
        wanted = chooser(args)
        # All trees first: making one is a burst of creates between two measurements.
        for tree in list(all_trees(lab, args, progress)):
            plan = Plan(tree.files, args.rounds, args.quick)
            session = Session(lab, tree, make_rows(lab, tree, wanted), plan, progress)
            measured = session.measure()
            progress.end()
            document["trees"].append(report.size_json(measured))
            print(report.size_text(measured), flush=True)
            why = measured.unavailable.get("belay")
            if why:
                document["failed"].append(f"{tree.name}: belay: {why}")
        if wanted(Belay):
            rounds = args.rounds or (10 if args.quick else 50)
            document["start"], lines = start.measure(lab, rounds)
            progress.end()
            print("\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(Capture().main(sys.argv[1:]))
