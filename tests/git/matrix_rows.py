"""Single cases beyond the matrix of tests/git/matrix.py, each a function of its own."""
import os
import shutil
import threading
import time

from matrix_world import expect, expect_same, expect_same_map


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


def expire(w):
    w.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
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


# --- which commits may be taken back ----------------------------------------------------


def with_remote(w):
    w.git("init", "-q", "--bare", str(w.dir / "remote"))
    w.git("remote", "add", "origin", str(w.dir / "remote"))
    w.git("push", "-q", "-u", "origin", "main")


@row()
def pushed_commits_stay(w):
    """On a remote-tracking branch: keep, with a warning."""
    with_remote(w)
    start = begin(w)
    pushed = commit(w, "pushed")
    w.git("push", "-q", "origin", "main")
    before = w.record()
    with w.same_git("rollback of pushed commits"):
        done = w.belay("rollback", "start", "--yes", "--json")
    expect(done.json["git"]["action"] == "keep", f"not keep: {done}")
    expect(done.json["warnings"], f"no warning: {done}")
    expect(w.git("rev-parse", "HEAD") == pushed, "the branch was moved")
    expect_same_map("files", start["files"], w.files()[0])
    w.belay("undo")
    expect_same("undo", before, w.record())
    done = w.belay("rollback", "start", "--yes")
    expect("remote" in done.text.lower() or "origin" in done.text,
           f"the warning does not say why: {done}")


@row()
def pushed_commits_go_when_asked(w):
    with_remote(w)
    start = begin(w)
    commit(w, "pushed")
    w.git("push", "-q", "origin", "main")
    before = w.record()
    w.belay("rollback", "start", "--yes", "--git", "reset")
    now = w.record()
    # Not the remote-tracking branch: that says where the remote is.
    same = ("diff", "diff --cached", "log", "stash list", "HEAD", "ls-files", "fsck", "files")
    expect_same("rollback --git reset", start, now, only=same)
    expect(w.git("rev-parse", "main") != w.git("rev-parse", "origin/main"),
           "what git knows of the remote was changed")
    w.belay("undo")
    expect_same("undo", before, w.record())


@row()
def commits_made_before_a_push_of_others_go(w):
    """A remote that does not have them is no reason to keep."""
    with_remote(w)
    start = begin(w)
    commit(w, "not pushed")
    there_and_back(w, start)


@row()
def setting_keep_is_obeyed(w):
    start = begin(w)
    head = commit(w)
    w.belay("config", "git.action", "keep")
    with w.same_git("rollback with git.action = keep"):
        w.belay("rollback", "start", "--yes")
    expect(w.git("rev-parse", "HEAD") == head, "the branch was moved")
    expect_same_map("files", start["files"], w.files()[0])


@row()
def commits_outside_the_session_stay(w):
    start = begin(w, "--session", "s1")
    head = commit(w, "by somebody else")
    with w.same_git("rollback beyond somebody's commit"):
        done = w.belay("rollback", "start", "--yes", "--exact", "--json")
    expect(done.json["git"]["action"] == "keep", f"not keep: {done}")
    expect(done.json["warnings"], f"no warning: {done}")
    expect(w.git("rev-parse", "HEAD") == head, "the branch was moved")
    expect_same_map("files", start["files"], w.files()[0])


# --- revert -----------------------------------------------------------------------------


def reverts(w):
    start = begin(w)
    tree = w.git("rev-parse", "HEAD^{tree}")
    w.write("brand-new.txt", "new\n")
    w.git("add", "brand-new.txt")
    commit(w, "wip one")
    head = commit(w, "wip two", "a.txt")
    before = w.record()
    done = w.belay("rollback", "start", "--yes", "--git", "revert", "--json")
    expect(done.json["git"]["action"] == "revert", f"not revert: {done}")
    expect(w.git("rev-parse", "HEAD^{tree}") == tree, "HEAD's tree is not the start's")
    expect(w.git("rev-parse", "HEAD~2") == head, "not two commits on top of the agent's")
    expect(w.git("symbolic-ref", "HEAD") == "refs/heads/main", "HEAD left the branch")
    now = w.record()
    expect_same("revert", start, now, only=("diff", "diff --cached", "stash list", "files",
                                            "ls-files", "fsck", "HEAD"))
    w.belay("undo")
    expect_same("undo of a revert", before, w.record())
    w.belay("redo")
    expect_same("redo of a revert", now, w.record())


row()(reverts)


@row("no-user")
def reverts_without_identity(w):
    w.git("reset", "-q", "--hard")
    reverts(w)


@row("gpgsign")
def reverts_without_signing(w):
    w.git("reset", "-q", "--hard")
    reverts(w)


@row("hooks")
def reverts_without_hooks(w):
    w.git("reset", "-q", "--hard")
    reverts(w)


# --- keep -------------------------------------------------------------------------------


@row()
def keep_never_stops_for_a_switched_branch(w):
    start = begin(w)
    w.git("switch", "-q", "-c", "agents")
    commit(w)
    before = w.record()
    with w.same_git("rollback --git keep"):
        w.belay("rollback", "start", "--yes", "--git", "keep")
    expect_same_map("files", start["files"], w.files()[0])
    w.belay("undo")
    expect_same("undo", before, w.record())


@row("both")
def paths_leave_git_alone(w):
    start = begin(w)
    commit(w, "agent", "a.txt")
    w.append("b.txt", "agent\n")
    with w.same_git("rollback -- PATH"):
        w.belay("rollback", "start", "--yes", "--", "a.txt")
    expect(w.files()[0]["a.txt"] == start["files"]["a.txt"], "a.txt is not back")
    expect(w.files()[0]["b.txt"] != start["files"]["b.txt"], "b.txt was not asked for")
    with w.same_git("undo"):
        w.belay("undo")


@row()
def paths_do_not_stop_for_a_switched_branch(w):
    start = begin(w)
    w.git("switch", "-q", "other")
    w.append("a.txt", "agent\n")
    with w.same_git("rollback -- PATH"):
        w.belay("rollback", "start", "--yes", "--", "a.txt")
    expect(w.files()[0]["a.txt"] == start["files"]["a.txt"], "a.txt is not back")


# --- commits taken back stay reachable --------------------------------------------------


@row()
def commits_taken_back_are_listed_and_survive(w):
    start = begin(w)
    ids = [commit(w, "wip one"), commit(w, "wip two", "a.txt")]
    before = w.record()
    with w.same_all("rollback --dry-run"):
        shown = w.belay("rollback", "start", "--dry-run")
        plan = w.belay("rollback", "start", "--dry-run", "--json").json
    for commit_id, subject in zip(ids, ("wip one", "wip two")):
        expect(commit_id[:7] in shown.text, f"{commit_id[:7]} is not in the preview: {shown}")
        expect(subject in shown.text, f"{subject!r} is not in the preview: {shown}")
    git = plan["git"]
    expect(git["action"] == "reset", f"not reset: {git}")
    listed = [str(one.get("id", one) if isinstance(one, dict) else one)
              for one in git["commits"]]
    expect(len(listed) == 2 and all(any(i.startswith(one[:7]) for one in listed) for i in ids),
           f"git.commits of the plan is {git['commits']}, not {ids}")
    expect(ids[1].startswith(str(git["from"])[:7]), f"git.from is {git['from']}, not {ids[1]}")

    done = w.belay("rollback", "start", "--yes")
    expect_same("rollback", start, w.record())
    refs = safety_refs(w)
    expect(refs, "no ref under refs/belay/safety/")
    named = [ref for ref in refs if ref in done.text]
    expect(named, f"none of {refs} is named: {done}")
    for commit_id in ids:
        reached = w.try_git("merge-base", "--is-ancestor", commit_id, named[0])
        expect(reached.returncode == 0, f"{named[0]} does not lead to {commit_id}")
    expire(w)
    for commit_id in ids:
        expect(w.try_git("cat-file", "-e", commit_id).returncode == 0,
               f"{commit_id} did not survive gc --prune=now")
    w.belay("undo")
    expect_same("undo after gc", before, w.record())
    w.belay("redo")
    expect_same("redo", start, w.record())


@row("both")
def what_only_the_index_had_survives_until_undo(w):
    """What the agent staged is not in any commit: undo brings it back after a gc."""
    start = begin(w)
    w.write("agent-staged.txt", "staged by the agent\n")
    w.git("add", "agent-staged.txt")
    (w.repo / "agent-staged.txt").unlink()
    w.append("edit.txt", "agent\n")
    before = w.record()
    w.belay("rollback", "start", "--yes")
    expect_same("rollback", start, w.record())
    expire(w)
    w.belay("undo")
    expect_same("undo after gc", before, w.record())


@row()
def stash_of_the_agent_survives_until_undo(w):
    start = begin(w)
    w.append("a.txt", "agent's\n")
    w.git("stash", "push", "-qm", "agent's")
    w.append("edit.txt", "agent\n")
    before = w.record()
    w.belay("rollback", "start", "--yes")
    expect_same("rollback", start, w.record())
    expire(w)
    w.belay("undo")
    expect_same("undo after gc", before, w.record())


@row()
def branch_of_the_agent_stays_or_comes_back(w):
    """A branch that the agent made never costs a commit."""
    begin(w)
    w.git("switch", "-q", "-c", "agents")
    head = commit(w)
    w.git("switch", "-q", "main")
    w.append("edit.txt", "agent\n")
    w.belay("rollback", "start", "--yes")
    expire(w)
    expect(w.try_git("cat-file", "-e", head).returncode == 0, "the agent's commit is lost")


@row()
def reflog_has_an_ordinary_entry(w):
    begin(w)
    old = w.git("rev-parse", "HEAD")
    commit(w)
    w.belay("rollback", "start", "--yes")
    for ref in ("HEAD", "main"):
        lines = w.git("reflog", "show", "--format=%H %gs", ref).splitlines()
        expect(lines[0].startswith(old), f"the reflog of {ref} begins with {lines[0]!r}")
        expect("belay" in lines[0].lower(), f"the reflog of {ref} does not say who: {lines[0]!r}")


# --- locks ------------------------------------------------------------------------------


def refuses_while_held(w, name):
    begin(w)
    commit(w)
    lock = w.repo / ".git" / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_bytes(b"somebody's")
    before = w.record()
    began = time.monotonic()
    with w.same_all(f"rollback while {name} is held"):
        done = w.belay("rollback", "start", "--yes", rc=(1, 4))
    expect(time.monotonic() - began < 20, "that was no brief wait")
    expect(os.path.basename(name) in done.text, f"{name} is not named: {done}")
    expect(lock.read_bytes() == b"somebody's", "the lock was written")
    lock.unlink()
    expect_same("after the refusal", before, w.record())
    w.belay("rollback", "start", "--yes")


@row()
def held_index_lock_is_left(w):
    refuses_while_held(w, "index.lock")


@row()
def held_head_lock_is_left(w):
    refuses_while_held(w, "HEAD.lock")


@row()
def held_branch_lock_is_left(w):
    refuses_while_held(w, "refs/heads/main.lock")


@row()
def held_index_lock_does_not_stop_keep(w):
    start = begin(w)
    commit(w)
    (w.repo / ".git/index.lock").write_bytes(b"somebody's")
    with w.same_git("rollback --git keep"):
        w.belay("rollback", "start", "--yes", "--git", "keep")
    expect_same_map("files", start["files"], w.files()[0])


@row()
def released_index_lock_is_waited_for(w):
    start = begin(w)
    commit(w)
    lock = w.repo / ".git/index.lock"
    lock.write_bytes(b"somebody's")
    release = threading.Timer(0.15, lambda: lock.unlink(missing_ok=True))
    release.start()
    try:
        w.belay("rollback", "start", "--yes")
    finally:
        release.join()
    expect_same("rollback", start, w.record())


@row()
def held_index_lock_does_not_stop_a_checkpoint(w):
    begin(w)
    commit(w)
    (w.repo / ".git/index.lock").write_bytes(b"somebody's")
    w.checkpoint("beside a lock")


# --- stash, branches, tags --------------------------------------------------------------


def three_stashes(w):
    for number in (1, 2, 3):
        w.append("s.txt", f"stash {number}\n")
        w.git("stash", "push", "-qm", f"number {number}")


@row()
def dropped_stashes_come_back_in_order(w):
    three_stashes(w)
    start = begin(w)
    w.git("stash", "drop", "-q", "stash@{1}")
    w.git("stash", "drop", "-q", "stash@{2}")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row()
def cleared_stashes_come_back(w):
    three_stashes(w)
    start = begin(w)
    w.git("stash", "clear")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)
    w.git("stash", "pop", "-q", "stash@{4}")  # the oldest, which only the reflog names


@row()
def popped_stash_comes_back(w):
    start = begin(w)
    w.git("stash", "pop", "-q")
    there_and_back(w, start)


@row()
def cleared_stashes_come_back_after_gc(w):
    """git prunes them at once: only what was kept of them can bring them back, or it is
    said that they are lost."""
    three_stashes(w)
    start = begin(w)
    w.git("stash", "clear")
    expire(w)
    w.append("edit.txt", "agent\n")
    done = w.belay("rollback", "start", "--yes")
    now = w.record()
    expect(b"error" not in now["fsck"] and b"missing" not in now["fsck"],
           f"the repository is damaged: {now['fsck']!r}")
    expect_same_map("files", start["files"], now["files"])
    if now["stash list"] != start["stash list"]:
        expect("stash" in done.text, f"a lost stash is not named: {done}")


@row()
def deleted_branch_is_made_again(w):
    start = begin(w)
    w.git("branch", "-qD", "other")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("packed")
def deleted_packed_branch_is_made_again(w):
    start = begin(w)
    w.git("branch", "-qD", "other", "conflicting")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row()
def deleted_branches_in_directories_are_made_again(w):
    w.git("branch", "a/b/c")
    start = begin(w)
    w.git("branch", "-qD", "a/b/c")
    w.git("branch", "a/b")  # in the way: a file where the directory was
    w.append("edit.txt", "agent\n")
    before = w.record()
    done = w.belay("rollback", "start", "--yes", rc=(0, 1))
    if done.rc == 0:
        expect("refs/heads/a/b/c" in w.record().refs(), "the branch is not back")
        expect_same_map("files", start["files"], w.files()[0])
        w.belay("undo")
    expect_same("as before", before, w.record())


@row()
def own_branch_deleted_is_made_again(w):
    start = begin(w)
    w.git("switch", "-q", "other")
    w.git("branch", "-qD", "main")
    w.append("edit.txt", "agent\n")
    w.belay("rollback", "start", "--yes", rc=1)
    there_and_back(w, start, "--switch")


@row()
def deleted_tag_is_made_again(w):
    start = begin(w)
    w.git("tag", "-d", "v1")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row()
def refs_packed_meanwhile_go_back(w):
    start = begin(w)
    commit(w)
    w.git("pack-refs", "--all", "--prune")
    there_and_back(w, start)


# --- what git no longer has -------------------------------------------------------------


@row()
def pruned_commit_brings_files_back(w):
    start = begin(w)
    head = w.git("rev-parse", "HEAD")
    w.git("stash", "clear")
    w.git("reset", "-q", "--hard", "HEAD~1")
    expire(w)
    expect(w.try_git("cat-file", "-e", head).returncode != 0, "git still has it")
    w.append("edit.txt", "agent\n")
    before = w.record()
    with w.same_git("rollback to a pruned commit"):
        done = w.belay("rollback", "start", "--yes", "--json")
    expect_same_map("files", start["files"], w.files()[0])
    expect(done.json["warnings"], f"no warning: {done}")
    expect(head[:7] in done.text, f"the warning does not name the commit: {done}")
    w.belay("undo")
    expect_same("undo", before, w.record())


@row("staged")
def staged_content_survives_gc(w):
    start = begin(w)
    w.git("reset", "-q", "--hard")
    expire(w)
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("both")
def staged_content_that_no_file_has_survives_gc(w):
    start = begin(w)
    w.git("reset", "-q", "--hard")
    expire(w)
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("conflict")
def conflict_survives_gc(w):
    start = begin(w)
    w.git("merge", "--abort")
    expire(w)
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("sha256")
def staged_sha256_content_survives_gc(w):
    start = begin(w)
    w.git("reset", "-q", "--hard")
    expire(w)
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("staged")
def staged_content_that_was_packed_survives_gc(w):
    """Objects that only the index names may be in a pack already."""
    w.git("gc", "-q")
    w.git("repack", "-qadk")
    start = begin(w)
    w.git("reset", "-q", "--hard")
    expire(w)
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


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
    expect(sorted(shown["staged"]) == ["a.txt", "new.txt"], f"staged: {shown}")
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
