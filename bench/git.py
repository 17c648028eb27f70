"""What git in a directory adds to a checkpoint: the same tree without it, with it, with
git.protect and with git.refs, in one run.

What is compared, how, and why it is fair: docs/benchmarks.md.
"""

import sys

sys.dont_write_bytecode = True

from lab import git_report  # noqa: E402
from lab.command import Command, chooser  # noqa: E402
from lab.git_rows import GitPlan, GitSession, make_trees  # noqa: E402


class Git(Command):
    name = "git"
    description = ("What git in a directory adds to a checkpoint: without it, with it, with "
                   "git.protect and git.refs. Without arguments: trees of 10k and 100k files.")
    sizes = "10k,100k"
    quick_sizes = "10k"

    def run(self, lab, args, document, progress):
        for number in args.sizes:
            progress.say(f"making trees of {number} files")
            trees = make_trees(lab, number)
            session = GitSession(lab, trees, chooser(args), GitPlan(args), progress)
            measured = session.measure()
            progress.end()
            document["trees"].append(git_report.as_json(measured))
            print(git_report.as_text(measured), flush=True)
            for row, why in measured.failed.items():
                document["failed"].append(f"{trees.name}: {row}: {why}")


if __name__ == "__main__":
    sys.exit(Git().main(sys.argv[1:]))
