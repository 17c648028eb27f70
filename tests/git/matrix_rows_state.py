"""Single cases of tests/git/matrix.py: the index, operations in progress, repositories inside,
what a state is and how it is shown, .git as a whole."""
import os
import shutil

from matrix_row import begin, commit, row, there_and_back
from matrix_world import expect, expect_same, expect_same_map

# --- the index itself -------------------------------------------------------------------


@row("both")
def index_comes_back_byte_for_byte(w):
    start = begin(w)
    index = w.repo / ".git/index"
    content, mtime = index.read_bytes(), index.stat().st_mtime_ns
    w.git("add", "-A")
    w.append("edit.txt", "agent\n")
    w.belay("rollback", "start", "--yes")
    expect(index.read_bytes() == content, "the index has other bytes")
    expect(index.stat().st_mtime_ns == mtime, "the index has another time: see racy-change")
    expect_same("rollback", start, w.record())


def make_racy(w):
    """A change that git sees only because the index is not younger than the file."""
    w.git("config", "core.trustctime", "false")
    w.git("config", "core.checkStat", "minimal")
    path, index = w.repo / "racy.txt", w.repo / ".git/index"
    path.write_text("aaaa\n")
    at = 1767225600 * 10**9
    os.utime(path, ns=(at, at))
    w.git("add", "racy.txt")
    with open(path, "r+") as file:
        file.write("bbbb\n")
    os.utime(path, ns=(at, at))
    os.utime(index, ns=(at, at))
    expect("racy.txt" in w.git("diff", "--name-only", GIT_OPTIONAL_LOCKS="0"), "git is blind")


@row()
def racy_change_is_still_seen(w):
    make_racy(w)
    start = begin(w)
    w.git("add", "-A")  # the file itself stays as it is: only the index goes back
    w.append("edit.txt", "agent\n")
    w.belay("rollback", "start", "--yes")
    expect("racy.txt" in w.git("diff", "--name-only", GIT_OPTIONAL_LOCKS="0"),
           "git no longer sees the change")
    expect_same("rollback", start, w.record())


@row()
def racy_change_is_still_seen_with_old_times(w):
    make_racy(w)
    start = begin(w)
    w.git("add", "-A")
    w.append("racy.txt", "agent\n")
    w.belay("rollback", "start", "--yes", "--preserve-times")
    expect("racy.txt" in w.git("diff", "--name-only", GIT_OPTIONAL_LOCKS="0"),
           "git no longer sees the change")
    expect_same("rollback", start, w.record())


@row("sparse")
def sparse_checkout_switched_off_comes_back(w):
    start = begin(w)
    w.git("sparse-checkout", "disable")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("sparse-index")
def sparse_cone_comes_back(w):
    start = begin(w)
    w.git("sparse-checkout", "set", "far")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


# --- operations in progress can go on ---------------------------------------------------


@row("conflict")
def merge_can_be_finished_after_a_rollback(w):
    start = begin(w)
    w.git("merge", "--abort")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)
    w.write("x.txt", "resolved\n")
    w.git("commit", "-qa", "--no-edit")
    expect(len(w.git("log", "-1", "--format=%P").split()) == 2, "not a merge")
    expect("conflicting" in w.git("log", "-1", "--format=%s"), "the message is lost")


@row("conflict")
def resolved_conflict_can_still_be_taken_back(w):
    """git remembers in the index what was in conflict: `git checkout -m` needs that."""
    w.write("x.txt", "resolved\n")
    w.git("add", "x.txt")
    start, undo = begin(w), w.git("ls-files", "--resolve-undo")
    expect(undo, "the test itself: git remembers nothing")
    w.append("edit.txt", "agent\n")
    w.git("commit", "-qam", "merged")
    there_and_back(w, start)
    expect(w.git("ls-files", "--resolve-undo") == undo, "git remembers something else")
    w.git("checkout", "-m", "x.txt")
    expect("<<<<<<<" in w.read("x.txt").decode(), "the conflict is not back")


@row("both")
def untracked_cache_does_not_lie(w):
    w.git("config", "core.untrackedCache", "true")
    w.git("update-index", "--untracked-cache")
    w.write("dir/loose.txt", "untracked\n")
    w.try_git("status")
    start = begin(w)
    (w.repo / "dir/loose.txt").unlink()
    w.write("dir/other.txt", "agent\n")
    w.git("add", "-A")
    w.git("commit", "-qm", "agent")
    there_and_back(w, start)
    w.git("status")
    expect_same("after git wrote the index", start, w.record())


@row("rebase")
def rebase_can_be_finished_after_a_rollback(w):
    start = begin(w)
    w.git("rebase", "--abort")
    w.append("edit.txt", "agent\n")
    before = w.record()
    done = w.belay("rollback", "start", "--yes", rc=(0, 1))
    if done.rc == 1:
        expect("--switch" in done.text, f"refused: {done}")
        w.belay("rollback", "start", "--yes", "--switch")
    expect_same("rollback", start, w.record())
    w.belay("undo")
    expect_same("undo", before, w.record())
    w.belay("redo")
    w.write("x.txt", "resolved\n")
    w.git("add", "x.txt")
    w.git("rebase", "--continue")
    expect(w.git("symbolic-ref", "HEAD") == "refs/heads/main", "HEAD did not return")
    subjects = w.git("log", "--format=%s").splitlines()
    expect(subjects == ["three", "two", "in the way", "one"], f"rebased to {subjects}")


# --- repositories inside ----------------------------------------------------------------


def inner_comes_back_when_asked(w, name):
    inner = w.repo / name
    start = begin(w)
    head = w.git("rev-parse", "HEAD", cwd=inner)
    shown = w.belay("show", "start", "--json")
    expect(isinstance(shown.json["git"], dict), f"no git in {shown}")
    expect(head in shown.out, f"show does not tell where {name} is ({head}): {shown}")
    w.git("commit", "-qam", "agent, inside", cwd=inner)
    w.append("edit.txt", "agent\n")
    (inner / "more.txt").write_text("agent\n")
    before, files = w.record(), w.git_print()
    w.belay("rollback", "start", "--yes")
    expect_same_map("rollback: files", start["files"], w.files()[0])
    now = w.git_print()
    part = f"repo/.git/modules/{name}" if w.inner == ("sub",) else f"repo/{name}/.git"
    expect_same_map(f"rollback: git's files of {name}",
                    {k: v for k, v in files.items() if k.startswith(part)},
                    {k: v for k, v in now.items() if k.startswith(part)})
    w.belay("undo")
    expect_same("undo", before, w.record())
    w.belay("rollback", "start", "--yes", "--git-nested")
    expect_same("rollback --git-nested", start, w.record())
    expect(w.git("rev-parse", "HEAD", cwd=inner) == head, f"HEAD of {name} is not back")
    w.belay("undo")
    expect_same("undo of --git-nested", before, w.record())
    w.belay("redo")
    expect_same("redo of --git-nested", start, w.record())


@row("nested")
def nested_clone_comes_back_when_asked(w):
    inner_comes_back_when_asked(w, "nested")


@row("submodule")
def submodule_comes_back_when_asked(w):
    inner_comes_back_when_asked(w, "sub")


@row("nested")
def commit_in_a_nested_clone_is_a_new_state(w):
    w.belay("on")
    first = w.checkpoint("first", "--json").json["state"]
    w.git("commit", "-qm", "staged alone", cwd=w.repo / "nested")
    expect(w.checkpoint("second", "--json").json["state"] != first, "the same state")


@row()
def root_below_the_top_comes_back(w):
    """The protected directory is a directory of a work tree: its own files, and git's
    state only where that takes nothing from files outside of it."""
    w.belay("on", "dir")
    w.belay("checkpoint", "-m", "start", "--root", "dir")
    start = w.record()
    commit(w, "agent", "dir/c.txt")
    outside = w.read("edit.txt")
    w.belay("rollback", "start", "--yes", "--root", "dir")
    now = w.record()
    expect(w.files()[0]["dir/c.txt"] == start["files"]["dir/c.txt"], "dir/c.txt is not back")
    expect(w.read("edit.txt") == outside, "a file outside the root was written")
    expect(now["fsck"] == start["fsck"], "fsck has something to say")


# --- who git is -------------------------------------------------------------------------


@row("both")
def git_need_not_be_installed(w):
    start = begin(w)
    tools = w.dir / "tools"
    tools.mkdir()
    w.extra["PATH"] = str(tools)
    w.checkpoint("without git")
    commit(w)
    before, files = w.record(), w.git_print()
    w.checkpoint("without git, again")
    w.belay("rollback", "start", "--yes")
    now = w.record()
    expect_same_map("files", start["files"], now["files"])
    if w.git_print() != files:  # just files; or all of it
        expect_same("rollback without git", start, now)
    w.belay("undo")
    expect_same("undo without git", before, w.record())


@row()
def callers_git_variables_do_not_leak_in(w):
    decoy = w.dir / "decoy"
    shutil.copytree(w.repo, decoy, symlinks=True)
    w.git("commit", "-q", "--allow-empty", "-m", "decoy", cwd=decoy)
    w.places = (*w.places, "decoy/.git")
    w.extra.update(
        GIT_DIR=str(decoy / ".git"), GIT_WORK_TREE=str(decoy),
        GIT_INDEX_FILE=str(decoy / ".git/index"), GIT_OBJECT_DIRECTORY=str(decoy / ".git/objects"),
        GIT_COMMON_DIR=str(decoy / ".git"), GIT_NAMESPACE="away", GIT_PREFIX="far/",
        GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="core.bare", GIT_CONFIG_VALUE_0="true",
        GIT_CONFIG_PARAMETERS="'core.bare=true'", GIT_LITERAL_PATHSPECS="1",
        GIT_CEILING_DIRECTORIES=str(w.dir), GIT_DEFAULT_HASH="sha256",
        GIT_TRACE=str(w.marks / "git-trace"), GIT_EXEC_PATH="/nonexistent")
    start = begin(w)
    shown = w.belay("show", "start", "--json").json
    expect(shown["git"]["head"] == w.git("rev-parse", "HEAD"), f"another HEAD: {shown['git']}")

    def decoys():
        return {k: v for k, v in w.git_print().items() if k.startswith("decoy")}

    untouched = decoys()
    commit(w)
    there_and_back(w, start)
    w.belay("undo")
    w.belay("rollback", "start", "--yes", "--git", "revert")
    expect_same_map("the decoy", untouched, decoys())


# --- what a state is --------------------------------------------------------------------


def makes_a_state(w, act, same=False):
    w.belay("on")
    first = w.checkpoint("first", "--json").json["state"]
    files = w.files()
    act()
    expect(w.files() == files, "the test itself: files changed")
    second = w.checkpoint("second", "--json").json["state"]
    expect((first == second) == same, "the same state" if first == second else "another state")
    for name, state in (("first", first), ("second", second)):
        shown = w.belay("show", name, "--json").json["state"]
        expect(shown == state, f"show says that {name} is state {shown}, checkpoint {state}")


@row()
def nothing_done_is_the_same_state(w):
    makes_a_state(w, lambda: None, same=True)


@row("staged")
def commit_alone_is_a_new_state(w):
    makes_a_state(w, lambda: w.git("commit", "-qm", "staged"))


@row("unstaged")
def add_alone_is_a_new_state(w):
    makes_a_state(w, lambda: w.git("add", "-A"))


@row("unstaged")
def stash_alone_is_a_new_state(w):
    makes_a_state(w, lambda: w.git("stash", "store", "-m", "kept", w.git("stash", "create")))


@row()
def stash_drop_alone_is_a_new_state(w):
    makes_a_state(w, lambda: w.git("stash", "drop", "-q", "stash@{1}"))


@row()
def branch_alone_is_a_new_state(w):
    makes_a_state(w, lambda: w.git("branch", "-qD", "other"))


@row()
def tag_alone_is_a_new_state(w):
    makes_a_state(w, lambda: w.git("tag", "v2"))


@row()
def head_alone_is_a_new_state(w):
    makes_a_state(w, lambda: w.git("checkout", "-q", "--detach"))


@row("conflict")
def end_of_a_merge_alone_is_a_new_state(w):
    makes_a_state(w, lambda: (w.repo / ".git/MERGE_HEAD").unlink())


@row("both")
def git_is_shown(w):
    begin(w)
    shown = w.belay("show", "start", "--json").json["git"]
    expect(shown["head"] == w.git("rev-parse", "HEAD"), f"head: {shown}")
    expect(shown["branch"] in ("main", "refs/heads/main"), f"branch: {shown}")
    expect(sorted(shown["staged"] or ()) == ["a.txt", "new.txt"], f"staged: {shown}")
    expect(shown["dirty"] is True, f"dirty: {shown}")
    expect(shown["in_progress"] is None, f"in_progress: {shown}")


@row("conflict")
def merge_in_progress_is_shown(w):
    begin(w)
    shown = w.belay("show", "start", "--json").json["git"]
    expect(shown["in_progress"] == "merge", f"in_progress: {shown}")


@row("rebase")
def rebase_in_progress_is_shown(w):
    begin(w)
    shown = w.belay("show", "start", "--json").json["git"]
    expect(shown["in_progress"] == "rebase", f"in_progress: {shown}")


# --- .git as a whole --------------------------------------------------------------------


@row("both")
def protected_git_comes_back_whole_after_damage(w):
    """Some objects gone, the rest there."""
    w.belay("on")
    w.belay("config", "git.protect", "true", "--project")
    w.checkpoint("start")
    start = w.record()
    for top in (w.repo / ".git/objects").iterdir():
        if len(top.name) == 2:
            shutil.rmtree(top)
    (w.repo / ".git/HEAD").unlink()
    w.append("edit.txt", "agent\n")
    w.belay("rollback", "start", "--yes")
    expect_same("rollback", start, w.record())


@row()
def repository_made_after_the_checkpoint_stays(w):
    """Just files at the checkpoint; a repository now: git is not written."""
    away = w.dir / "kept.git"
    (w.repo / ".git").rename(away)
    w.belay("on")
    w.checkpoint("start")
    files = w.files()[0]
    away.rename(w.repo / ".git")
    w.append("edit.txt", "agent\n")
    with w.same_git("rollback"):
        w.belay("rollback", "start", "--yes")
    expect_same_map("files", files, w.files()[0])
    with w.same_git("undo"):
        w.belay("undo")


@row()
def many_steps_back_and_forth(w):
    """Undo and redo any number of times, over several rollbacks."""
    start = begin(w)
    commit(w, "one more")
    w.checkpoint("middle")
    middle = w.record()
    w.git("reset", "-q", "--hard", "HEAD~2")
    w.write("agent.txt", "agent\n")
    last = w.record()
    w.belay("rollback", "middle", "--yes")
    expect_same("rollback to middle", middle, w.record())
    w.belay("rollback", "start", "--yes")
    expect_same("rollback to start", start, w.record())
    for what, expected in (("undo", middle), ("undo", last), ("redo", middle), ("redo", start),
                           ("undo", middle), ("undo", last)):
        w.belay(what)
        expect_same(what, expected, w.record())


@row()
def undo_after_the_branch_moved_on_is_a_conflict(w):
    """Somebody committed after the rollback: undo must not take that away."""
    begin(w)
    commit(w)
    w.belay("rollback", "start", "--yes")
    head = commit(w, "after the rollback", "b.txt")
    before = w.record()
    w.belay("undo", rc=None)
    expect(w.try_git("cat-file", "-e", head).returncode == 0, "the commit is lost")
    reached = w.git("for-each-ref", "--contains", head)
    expect(reached, "no ref leads to the commit that was made after the rollback")
    if w.record()["HEAD"] == before["HEAD"] and w.git("rev-parse", "HEAD") == head:
        expect_same("undo that was refused", before, w.record())
