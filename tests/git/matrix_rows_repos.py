"""Single cases of tests/git/matrix.py: repositories that are made in less common ways."""
import os
import stat

from matrix_row import begin, commit, prune, row, there_and_back
from matrix_world import expect, expect_same, expect_same_map


def agent_commits(w, start):
    """The plainest work of an agent: what is staged and more becomes a commit."""
    w.append("a.txt", "agent\n")
    w.write("agent.txt", "agent\n")
    w.git("add", "-A")
    w.git("commit", "-qm", "agent")
    there_and_back(w, start)


@row()
def no_reflogs(w):
    w.git("config", "core.logAllRefUpdates", "false")
    for name in ("logs/HEAD", "logs/refs/heads/main"):
        (w.repo / ".git" / name).unlink()
    start = begin(w)
    agent_commits(w, start)
    expect(not (w.repo / ".git/logs/HEAD").exists(), "a reflog was made, which git would not")


@row("both")
def head_is_a_symlink(w):
    """As git made it once, and does with core.preferSymlinkRefs. All of it, or only files
    with a warning."""
    head = w.repo / ".git/HEAD"
    head.unlink()
    head.symlink_to("refs/heads/main")
    start = begin(w)
    commit(w)
    git, before = w.git_print(), w.record()
    done = w.belay("rollback", "start", "--yes")
    if w.git_print() == git:
        expect_same_map("files", start["files"], w.files()[0])
        expect(done.err, f"git was left alone without a word: {done}")
    else:
        expect_same("rollback", start, w.record())
    w.belay("undo")
    expect_same("undo", before, w.record())


@row()
def branch_is_another_name_of_a_branch(w):
    w.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    w.git("symbolic-ref", "HEAD", "refs/heads/alias")
    start = begin(w)
    commit(w)
    before = w.record()
    done = w.belay("rollback", "start", "--yes")
    now = w.record()
    expect(w.git("symbolic-ref", "refs/heads/alias") == "refs/heads/main", "alias is none now")
    if now["log"] == before["log"]:
        expect(done.err, f"the branch was left without a word: {done}")
        expect_same_map("files", start["files"], now["files"])
    else:
        expect_same("rollback", start, now)
    w.belay("undo")
    expect_same("undo", before, w.record())


@row("both")
def odd_branch_names(w):
    w.git("switch", "-q", "-c", "feature/ü-\"quoted\"-'$(x)'")
    start = begin(w)
    commit(w)
    there_and_back(w, start)


@row()
def objects_are_elsewhere(w):
    """A clone that borrows them (alternates)."""
    w.repo.rename(w.dir / "lender")
    w.git("clone", "-q", "--shared", str(w.dir / "lender"), str(w.repo), cwd=w.dir)
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    start = begin(w)
    agent_commits(w, start)


@row()
def shallow_clone(w):
    w.repo.rename(w.dir / "deep")
    w.git("clone", "-q", "--depth=1", f"file://{w.dir}/deep", str(w.repo), cwd=w.dir)
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    start = begin(w)
    agent_commits(w, start)


@row()
def partial_clone(w):
    """Blobs are missing, and nothing may fetch them."""
    w.repo.rename(w.dir / "full")
    w.git("config", "uploadpack.allowFilter", "true", cwd=w.dir / "full")
    w.git("clone", "-q", "--filter=blob:none", f"file://{w.dir}/full", str(w.repo), cwd=w.dir)
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    (w.dir / "full").rename(w.dir / "away")
    start = begin(w)
    agent_commits(w, start)


@row("both")
def git_dir_is_elsewhere(w):
    """`git init --separate-git-dir`."""
    w.git("init", "-q", "--separate-git-dir", str(w.dir / "real"))
    w.places, w.index = ("repo/.git", "real"), "real/index"
    start = begin(w)
    agent_commits(w, start)


@row("both")
def git_dir_is_a_symlink(w):
    (w.repo / ".git").rename(w.dir / "real")
    (w.repo / ".git").symlink_to("../real")
    w.places, w.index = ("repo/.git", "real"), "real/index"
    start = begin(w)
    agent_commits(w, start)
    expect((w.repo / ".git").is_symlink(), ".git is no symlink any more")


@row("both")
def modes_of_a_shared_repository_stay(w):
    w.git("config", "core.sharedRepository", "group")
    os.umask(0o077)  # of Belay; git widens it by itself
    try:
        w.append("a.txt", "shared\n")
        w.git("add", "a.txt")
        w.git("commit", "-qm", "shared")
        start = begin(w)

        def modes():
            names = ("index", "refs/heads/main", "HEAD", "logs/HEAD")
            return {name: oct(stat.S_IMODE((w.repo / ".git" / name).stat().st_mode))
                    for name in names}

        before = modes()
        commit(w)
        w.belay("rollback", "start", "--yes")
        expect_same("rollback", start, w.record())
        expect_same_map("modes", before, modes())
    finally:
        os.umask(0o022)


@row()
def no_index_yet(w):
    """`git init` and nothing else: the agent's index has to go."""
    os.rename(w.repo / ".git", w.dir / "old.git")
    w.git("init", "-q")
    start = begin(w)
    expect(not (w.repo / ".git/index").exists(), "the test itself: there is an index")
    w.git("add", "-A")
    w.git("commit", "-qm", "agent")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)
    expect(not (w.repo / ".git/index").exists(), "the index stays")


@row()
def own_branch_became_a_directory(w):
    """main is now main/sub: main cannot be made again beside it."""
    start = begin(w)
    w.git("branch", "-m", "main/sub")
    commit(w)
    before = w.record()
    done = w.belay("rollback", "start", "--yes", "--switch", rc=None)
    expect(done.rc in (0, 1), f"exit 0 or 1 expected: {done}")
    now = w.record()
    if done.rc == 0 and now["HEAD"] == start["HEAD"]:
        expect_same("rollback", start, now, created={"refs/heads/main/sub"})
    elif done.rc == 0:
        expect_same_map("files", start["files"], now["files"])
        expect(done.err, f"the branch was left without a word: {done}")
    if done.rc == 0:
        w.belay("undo")
    expect_same("as before", before, w.record())


@row("worktree")
def branch_in_use_elsewhere_is_not_switched_to(w):
    """git refuses two work trees on one branch."""
    begin(w)
    w.git("switch", "-q", "-c", "agents")
    w.git("switch", "-q", "linked", cwd=w.dir / "main")
    w.append("edit.txt", "agent\n")
    done = w.belay("rollback", "start", "--yes", "--switch", rc=(0, 1))
    heads = [line for line in w.git("worktree", "list", "--porcelain").splitlines()
             if line == "branch refs/heads/linked"]
    expect(len(heads) == 1, f"two work trees on one branch: {done}")
    expect("linked" in done.err, f"nothing is said of the branch: {done}")


@row()
def grafted_and_replaced_commits(w):
    """`git replace` shows another commit; what is taken back are the real ones."""
    start = begin(w)
    head = commit(w, "agent one")
    commit(w, "agent two")
    w.git("replace", head, "other")
    before = w.record()
    w.belay("rollback", "start", "--yes")
    expect_same("rollback", start, w.record(), created=before.refs() - start.refs())
    prune(w)
    w.belay("undo")
    expect_same("undo after gc", before, w.record())


@row("both")
def merges_taken_back(w):
    """Commits of several parents, and an octopus."""
    w.git("stash", "push", "-q")
    w.git("branch", "third", "main~1")
    start = begin(w)
    w.git("merge", "-q", "--no-edit", "other")
    w.git("switch", "-q", "third")
    commit(w, "third")
    w.git("switch", "-q", "main")
    w.git("merge", "-q", "--no-edit", "third")
    commit(w, "after the merges", "a.txt")
    there_and_back(w, start)


@row()
def merges_reverted(w):
    start = begin(w)
    tree = w.git("rev-parse", "HEAD^{tree}")
    w.git("merge", "-q", "--no-edit", "other")
    head = commit(w, "after the merge")
    before = w.record()
    w.belay("rollback", "start", "--yes", "--git", "revert")
    expect(w.git("rev-parse", "HEAD^{tree}") == tree, "HEAD's tree is not the start's")
    expect(w.try_git("merge-base", "--is-ancestor", head, "HEAD").returncode == 0,
           "the agent's commits are no longer beneath")
    expect_same_map("files", start["files"], w.files()[0])
    w.belay("undo")
    expect_same("undo", before, w.record())


@row("both")
def revert_keeps_what_was_staged(w):
    """Inverse commits; then what was staged and what was not, as at the checkpoint."""
    start = begin(w)
    w.write("agent.txt", "agent\n")
    w.git("add", "agent.txt")
    w.git("commit", "-qm", "agent", "--", "agent.txt")
    before = w.record()
    w.belay("rollback", "start", "--yes", "--git", "revert")
    now = w.record()
    expect_same("revert", start, now, only=("diff", "diff --cached", "files", "ls-files", "fsck"))
    w.belay("undo")
    expect_same("undo", before, w.record())
