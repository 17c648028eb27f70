"""How fast Belay takes a tree back, next to its peers and to the bare limits, in one run.

What is compared, how, and why it is fair: docs/benchmarks.md.
"""

import sys

sys.dont_write_bytecode = True

from lab import rollback_report as report  # noqa: E402
from lab.command import Command, all_trees, chooser  # noqa: E402
from lab.rollbacks import Session, make_rows  # noqa: E402


class Rollback(Command):
    name = "rollback"
    description = ("Belay's rollbacks against its peers' restores and the bare limits, in one "
                   "run. Without arguments: trees of 1k and 10k files.")
    sizes = "1k,10k"

    def run(self, lab, args, document, progress):
        for tree in list(all_trees(lab, args, progress)):
            rows = make_rows(lab, tree, chooser(args))
            session = Session(lab, tree, rows, args.rounds, args.quick, progress)
            measured = session.measure()
            progress.end()
            document["trees"].append(report.size_json(measured))
            print(report.size_text(measured), flush=True)
            for row in rows:
                why = measured.unavailable.get(row.name)
                if why and row.kind == "belay":
                    document["failed"].append(f"{tree.name}: {row.name}: {why}")


if __name__ == "__main__":
    sys.exit(Rollback().main(sys.argv[1:]))
