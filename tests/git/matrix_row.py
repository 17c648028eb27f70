"""What the single cases of tests/git/matrix.py share: the list of them, and steps that most
take."""
from matrix_world import expect_same


class Row:
    def __init__(self, run, situation):
        self.run, self.situation = run, situation


ALL = {}


def row(situation="clean"):
    def add(run):
        ALL[run.__name__.replace("_", "-")] = Row(run, situation)
        return run
    return add


def begin(w, *words):
    """Protects the root and makes the checkpoint `start`; what git says then."""
    w.belay("on")
    w.checkpoint("start", *words)
    return w.record()


def commit(w, subject="agent", name="edit.txt"):
    w.append(name, f"{subject}\n")
    w.git("commit", "-qam", subject)
    return w.git("rev-parse", "HEAD")


def prune(w, *refs):
    """Takes away what no ref leads to. Lists of stashes are reflogs, too, which git would
    empty with the others (--all): those that a test does not name stay."""
    refs = refs or ("HEAD", *w.git("for-each-ref", "--format=%(refname)", "refs/heads").split())
    w.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", *refs)
    w.git("gc", "-q", "--prune=now")


def there_and_back(w, start, *words, what="rollback"):
    """Rollback, undo, redo, each compared; the agent's work is done."""
    before = w.record()
    created = before.refs() - start.refs()
    done = w.belay("rollback", "start", "--yes", *words)
    expect_same(what, start, w.record(), created)
    w.belay("undo")
    expect_same(f"undo of {what}", before, w.record())
    w.belay("redo")
    expect_same(f"redo of {what}", start, w.record(), created)
    return done


def safety_refs(w):
    lines = w.git("for-each-ref", "refs/belay/safety", "--format=%(refname)").splitlines()
    return [line for line in lines if line]
