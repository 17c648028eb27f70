"""Single cases of tests/git/matrix.py: which commits are taken back and stay reachable,
locks, refs, and what git no longer has."""
import os
import threading
import time

from matrix_row import begin, commit, prune, row, safety_refs, there_and_back
from matrix_world import expect, expect_same, expect_same_map

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
    prune(w)
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
    prune(w)
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
    prune(w)
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
    prune(w)
    expect(w.try_git("cat-file", "-e", head).returncode == 0, "the agent's commit is lost")


@row()
def commit_on_another_branch_survives(w):
    """The agent committed elsewhere and came back: that branch goes back, too, and what was
    on it can still be reached, by undo as well."""
    start = begin(w)
    w.git("switch", "-q", "other")
    head = commit(w)
    w.git("switch", "-q", "main")
    w.append("edit.txt", "agent\n")
    before = w.record()
    w.belay("rollback", "start", "--yes")
    expect_same("rollback", start, w.record())
    prune(w)
    expect(w.try_git("cat-file", "-e", head).returncode == 0, "the agent's commit is lost")
    w.belay("undo")
    expect_same("undo after gc", before, w.record())


@row("worktree")
def branch_of_another_work_tree_stays(w):
    """It is checked out elsewhere: moving it would make that work tree look changed."""
    begin(w)
    main = w.dir / "main"
    with open(main / "b.txt", "a") as file:
        file.write("somebody's\n")
    w.git("commit", "-qam", "somebody's", cwd=main)
    head, status = (w.git(*words, cwd=main) for words in (("rev-parse", "main"), ("status",)))
    commit(w)
    w.belay("rollback", "start", "--yes")
    expect(w.git("rev-parse", "main", cwd=main) == head, "main was moved under its work tree")
    expect(w.git("status", cwd=main) == status, "the other work tree looks changed")


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
    prune(w, "--all")
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
    expect("refs/heads/a/b/c" in w.record().refs() or "a/b/c" in done.err,
           f"the branch is not back, and that is not said: {done}")
    if done.rc == 0:
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
    prune(w, "--all")
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
    w.git("stash", "clear")
    start = begin(w)
    w.git("reset", "-q", "--hard")
    prune(w, "--all")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("both")
def staged_content_that_no_file_has_survives_gc(w):
    w.git("stash", "clear")
    start = begin(w)
    w.git("reset", "-q", "--hard")
    prune(w, "--all")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("conflict")
def conflict_survives_gc(w):
    w.git("stash", "clear")
    start = begin(w)
    w.git("merge", "--abort")
    prune(w, "--all")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("sha256")
def staged_sha256_content_survives_gc(w):
    w.git("stash", "clear")
    start = begin(w)
    w.git("reset", "-q", "--hard")
    prune(w, "--all")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)


@row("staged")
def staged_content_that_was_packed_survives_gc(w):
    """Objects that only the index names may be in a pack already."""
    w.git("gc", "-q")
    w.git("repack", "-qadk")
    w.git("stash", "clear")
    start = begin(w)
    w.git("reset", "-q", "--hard")
    prune(w, "--all")
    w.append("edit.txt", "agent\n")
    there_and_back(w, start)
