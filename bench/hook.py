"""What one hook call costs an agent, process start to exit, next to the peers' sequences
and to the bare limits, in one run.

What is compared, how, and why it is fair: docs/benchmarks.md.
"""

import sys

sys.dont_write_bytecode = True

from lab import hooks, report  # noqa: E402
from lab.command import Command, all_trees, chooser  # noqa: E402


class HookBench(Command):
    name = "hook"
    description = ("One hook call of an agent, without a daemon, against the peers' sequences "
                   "and the bare limits. Without arguments: trees of 10k and 100k files.")
    sizes = "10k,100k"
    quick_sizes = "10k"

    def run(self, lab, args, document, progress):
        wanted = chooser(args)
        for tree in list(all_trees(lab, args, progress)):
            plan = hooks.HookPlan(tree.files, args.rounds, args.quick)
            session = hooks.HookSession(lab, tree, hooks.make_rows(lab, tree, wanted), plan,
                                        progress)
            measured = session.measure()
            progress.end()
            document["trees"].append(report.size_json(measured, hooks.targets))
            print(report.size_text(measured, hooks.targets), flush=True)
            why = measured.unavailable.get("belay")
            if why:
                document["failed"].append(f"{tree.name}: belay: {why}")


if __name__ == "__main__":
    sys.exit(HookBench().main(sys.argv[1:]))
