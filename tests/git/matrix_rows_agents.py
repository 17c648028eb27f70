"""Single cases of tests/git/matrix.py: what agents do with git beyond the actions of the
matrix, each rolled back, undone and redone."""
import os
import shutil

from matrix_row import begin, commit, row, there_and_back
from matrix_world import expect, expect_same, expect_same_map


def work(situation="both", *words, switch=False):
    """A row that is begun, lets the function do its work, goes there and back. Where the
    work leaves the branch, going back has to be asked for."""
    def add(act):
        def run(w):
            start = begin(w)
            w.append("edit.txt", "agent\n")
            act(w)
            more = words
            if switch:
                refused = w.belay("rollback", "start", "--yes", rc=1)
                expect("--switch" in refused.text, f"another refusal: {refused}")
                more = (*words, "--switch")
            there_and_back(w, start, *more)
        run.__name__, run.__doc__ = act.__name__, act.__doc__
        row(situation)(run)
        return act
    return add


# --- commits are rewritten --------------------------------------------------------------


@work()
def amended_again_and_again(w):
    for number in range(3):
        w.append("a.txt", f"{number}\n")
        w.git("commit", "-qa", "--amend", "-m", f"amended {number}")


@work("clean")
def fixups_squashed(w):
    w.git("commit", "-qam", "agent")
    w.append("edit.txt", "fix\n")
    w.git("commit", "-qa", "--fixup=HEAD")
    w.git("rebase", "-q", "-i", "--autosquash", "HEAD~2")


@work("clean")
def rebased_with_exec(w):
    w.git("commit", "-qam", "agent")
    w.git("rebase", "-q", "-i", "--exec", "echo exec >>by-exec.txt", "HEAD~2")


@work("clean")
def rebase_stopped_by_exec(w):
    """HEAD is off the branch meanwhile, and what is to be done is in files of git's."""
    w.git("commit", "-qam", "agent")
    done = w.try_git("rebase", "-i", "--exec", "false", "HEAD~2")
    expect(done.returncode == 1 and w.git_path("rebase-merge").is_dir(), "git did not stop")


@work("clean")
def rebase_stopped_to_edit(w):
    w.git("commit", "-qam", "agent")
    w.git("rebase", "-q", "-i", "HEAD~2",
          GIT_SEQUENCE_EDITOR="sed -i -e '1s/pick/edit/' -e '1aexec echo x >>x.txt'")
    expect(w.git_path("rebase-merge").is_dir(), "git did not stop")
    w.append("x.txt", "by the agent\n")
    w.git("add", "x.txt")


@work("clean")
def rebased_onto_another(w):
    w.git("commit", "-qam", "agent")
    w.git("rebase", "-q", "--onto", "other", "HEAD~1")


@work("clean")
def whole_history_filtered(w):
    """refs/original/ is new and stays."""
    w.git("commit", "-qam", "agent")
    w.git("filter-branch", "-f", "--msg-filter", "sed 's/^/filtered: /'", "--", "--branches",
          FILTER_BRANCH_SQUELCH_WARNING="1")


@work("clean")
def whole_history_filtered_and_pruned(w):
    w.git("commit", "-qam", "agent")
    w.git("filter-branch", "-f", "--tree-filter", "echo x >by-filter.txt", "--", "main",
          FILTER_BRANCH_SQUELCH_WARNING="1")
    w.git("update-ref", "-d", "refs/original/refs/heads/main")
    w.git("gc", "-q")


@work("clean")
def first_commit_undone(w):
    """`git update-ref -d HEAD`: the branch is gone, the index is not."""
    w.git("update-ref", "-d", "HEAD")


@work("clean")
def branch_forced_elsewhere(w):
    w.git("branch", "-f", "other", "main~2")
    w.git("tag", "-f", "v1", "main~1")
    w.git("tag", "-d", "v1")


@work("clean")
def reset_soft_and_committed_anew(w):
    w.git("reset", "-q", "--soft", "HEAD~2")
    w.git("commit", "-qam", "squashed by the agent")


@work("clean")
def squashed_merge_left_uncommitted(w):
    w.git("commit", "-qam", "agent")
    w.git("merge", "-q", "--squash", "other")


@work("clean")
def reverted_without_committing(w):
    w.git("commit", "-qam", "agent")
    w.git("revert", "--no-commit", "HEAD~1", "HEAD")


@work("clean")
def pick_of_several_stopped(w):
    w.git("commit", "-qam", "agent")
    done = w.try_git("cherry-pick", "other", "conflicting", "other~1")
    expect(done.returncode == 1, "git did not stop")


@work("clean")
def patches_stopped(w):
    """`git am`, at one that does not apply."""
    w.git("format-patch", "-q", "-o", str(w.dir / "patches"), "conflicting~1..conflicting")
    w.git("commit", "-qam", "agent")
    for patch in sorted((w.dir / "patches").iterdir()):
        done = w.try_git("am", str(patch))
        expect(done.returncode != 0, "git did not stop")
    expect(w.git_path("rebase-apply").is_dir(), "nothing is under way")


@work("conflict")
def resolutions_remembered(w):
    """rerere has files of its own."""
    w.git("config", "rerere.enabled", "true")
    w.git("rerere")
    w.write("x.txt", "resolved\n")
    w.git("rerere")
    w.git("commit", "-qam", "merged")


# --- branches ---------------------------------------------------------------------------


@work("clean", switch=True)
def orphan_branch(w):
    w.git("switch", "-q", "--discard-changes", "--orphan", "lone")
    w.write("lone.txt", "lone\n")
    w.git("add", "lone.txt")
    w.git("commit", "-qm", "lone")


@work("both", switch=True)
def orphan_branch_with_all_staged(w):
    w.git("checkout", "-q", "--orphan", "lone")


@work("clean", switch=True)
def head_made_to_name_nothing(w):
    w.git("symbolic-ref", "HEAD", "refs/heads/nothing/yet")


@work("clean", switch=True)
def branches_renamed_all_over(w):
    w.git("switch", "-q", "-c", "tmp")
    w.git("branch", "-D", "main")
    w.git("branch", "main/sub/way")
    w.git("branch", "-D", "main/sub/way")


@work("clean")
def bisected(w):
    w.git("commit", "-qam", "agent")
    w.git("bisect", "start", "HEAD", "HEAD~3")


@work("clean")
def bisected_by_a_run(w):
    w.git("commit", "-qam", "agent")
    w.git("bisect", "start", "HEAD", "HEAD~3")
    w.git("bisect", "run", "sh", "-c", "! grep -q three b.txt")


@work("bisect")
def bisection_gone_on_with(w):
    w.git("checkout", "-q", "--", "edit.txt")
    w.try_git("bisect", "good")


# --- index and settings of the work tree ------------------------------------------------


@work("both")
def bits_of_the_index(w):
    w.git("update-index", "--assume-unchanged", "b.txt")
    w.git("update-index", "--skip-worktree", "x.txt")
    w.git("update-index", "--chmod=+x", "s.txt")
    w.git("rm", "-q", "--cached", "far/y.txt")
    w.git("mv", "link", "links")


@work("both")
def index_of_another_version(w):
    w.git("update-index", "--index-version", "4")
    w.git("update-index", "--split-index")
    w.git("add", "-A")


@work("both")
def sparse_checkout_begun(w):
    w.git("commit", "-qam", "agent")
    w.git("sparse-checkout", "init", "--cone")
    w.git("sparse-checkout", "set", "dir")


@work("both")
def sparse_checkout_without_cones(w):
    w.git("commit", "-qam", "agent")
    w.git("sparse-checkout", "set", "--no-cone", "/*", "!far/")


@work("sparse")
def sparse_checkout_widened(w):
    w.git("sparse-checkout", "add", "far/deep")
    w.git("sparse-checkout", "reapply")


@work("both")
def own_settings_of_the_work_tree(w):
    w.git("config", "extensions.worktreeConfig", "true")
    w.git("config", "--worktree", "core.autocrlf", "input")
    w.git("commit", "-qam", "agent")


# --- stash ------------------------------------------------------------------------------


@work("both")
def stash_of_everything(w):
    w.write("loose.txt", "loose\n")
    w.git("stash", "push", "-q", "--include-untracked")
    w.write("more.txt", "more\n")


@work("partial")
def stash_that_keeps_the_index(w):
    w.git("stash", "push", "-q", "--keep-index")


@work("clean", switch=True)
def stash_made_a_branch(w):
    w.git("checkout", "-q", "--", "edit.txt")
    w.git("stash", "branch", "from-stash")


@work("clean")
def stash_list_in_another_order(w):
    top = w.git("rev-parse", "stash@{0}")
    w.git("stash", "drop", "-q", "stash@{0}")
    w.git("stash", "push", "-qm", "between")
    w.git("stash", "store", "-m", "again", top)
    w.append("edit.txt", "agent\n")


# --- what keeps a repository ------------------------------------------------------------


@work("both")
def repacked_in_every_way(w):
    w.git("commit", "-qam", "agent")
    w.git("repack", "-qadf")
    w.git("pack-refs", "--all", "--prune")
    w.git("commit-graph", "write", "--reachable")
    w.git("multi-pack-index", "write")
    w.git("update-server-info")
    w.git("gc", "-q", "--aggressive", "--prune=now")


@work("both")
def maintained(w):
    w.git("commit", "-qam", "agent")
    w.git("maintenance", "run", "--task=gc", "--task=commit-graph", "--task=loose-objects")


@work("packed")
def packed_and_deleted(w):
    w.git("branch", "-qD", "other", "conflicting")
    w.git("tag", "-d", "v1")
    w.git("pack-refs", "--all")
    w.git("commit", "-qam", "agent")
    w.git("pack-refs", "--all", "--prune")


@work("both")
def logs_expired(w):
    w.git("commit", "-qam", "agent")
    w.git("reflog", "expire", "--expire=now", "HEAD", "main")


@row("both")
def notes_and_replacements_stay(w):
    """They are no branch, tag or stash: what was added stays, and does not get in the way."""
    start = begin(w)
    w.git("notes", "add", "-m", "a note")
    head = commit(w)
    w.git("notes", "add", "-m", "another")
    w.git("replace", head, "other")
    w.git("replace", "--graft", "main~2", "conflicting")
    before = w.record()
    created = before.refs() - start.refs()
    # A graft below shows in the log of what is at the checkpoint, too.
    same = [name for name in start if name not in ("log", "ignored", "fsck")]
    w.belay("rollback", "start", "--yes")
    expect_same("rollback", start, w.record(), created, same)
    w.belay("undo")
    expect_same("undo", before, w.record())


# --- work trees, submodules, clones -----------------------------------------------------


@work("both")
def work_trees_outside_made_and_removed(w):
    w.git("worktree", "add", "-q", "-b", "beside", str(w.dir / "beside"))
    w.git("worktree", "add", "-q", "--detach", str(w.dir / "gone"))
    w.git("commit", "-qam", "agent")
    w.git("worktree", "remove", "--force", str(w.dir / "gone"))
    w.git("worktree", "lock", str(w.dir / "beside"))


@row("both")
def work_tree_inside_is_made(w):
    """It was absent then, and stays whole."""
    start = begin(w)
    w.git("worktree", "add", "-q", "-b", "inside", "trees/inside")
    w.git("commit", "-q", "--allow-empty", "-m", "in it", cwd=w.repo / "trees/inside")
    head = w.git("rev-parse", "inside")
    commit(w)
    before = w.record()
    w.belay("rollback", "start", "--yes", "--git-nested")
    now = w.record()
    same = ("diff", "diff --cached", "log", "stash list", "HEAD", "ls-files", "fsck")
    expect_same("rollback", start, now, only=same)
    expect(w.git("rev-parse", "HEAD", cwd=w.repo / "trees/inside") == head, "it moved")
    expect(not w.git("status", "--porcelain", cwd=w.repo / "trees/inside"), "it was changed")
    w.belay("undo")
    expect_same("undo", before, w.record())
    w.git("worktree", "remove", "trees/inside")


@row("both")
def work_tree_inside_is_removed(w):
    """Its files come back; what git had of it does, or it is said that it does not."""
    w.git("worktree", "add", "-q", "-b", "inside", "trees/inside")
    start = begin(w)
    w.git("worktree", "remove", "--force", "trees/inside")
    commit(w)
    before = w.record()
    done = w.belay("rollback", "start", "--yes", "--git-nested")
    expect_same_map("files", start["files"], w.files()[0])
    if w.try_git("status", cwd=w.repo / "trees/inside").returncode or not (
            w.repo / "trees/inside/.git").exists():
        expect("trees/inside" in done.err, f"that it is gone is not said: {done}")
    w.belay("undo")
    expect_same("undo", before, w.record())


@row("submodule")
def submodule_is_moved_on(w):
    """`git submodule update` to what was committed meanwhile."""
    w.git("reset", "-q", "--hard")
    start = begin(w)
    inner = w.repo / "sub"
    w.git("checkout", "-q", "--detach", cwd=inner)
    w.git("commit", "-q", "--allow-empty", "-m", "inside", cwd=inner)
    w.git("add", "sub")
    w.git("commit", "-qm", "moved on")
    w.git("submodule", "update")
    before = w.record()
    w.belay("rollback", "start", "--yes", "--git-nested", "--switch")
    expect_same("rollback --git-nested", start, w.record())
    w.belay("undo")
    expect_same("undo", before, w.record())
    w.belay("redo")
    expect_same("redo", start, w.record())


@row()
def submodule_is_added(w):
    """A repository that was absent then stays whole; .gitmodules and the index go back."""
    start = begin(w)
    w.git("clone", "-q", str(w.repo), str(w.dir / "lib"), cwd=w.dir)
    w.git("submodule", "--quiet", "add", str(w.dir / "lib"), "lib")
    w.git("commit", "-qm", "with a submodule")
    before = w.record()
    w.belay("rollback", "start", "--yes")
    same = ("diff", "diff --cached", "log", "stash list", "HEAD", "ls-files", "fsck")
    expect_same("rollback", start, w.record(), only=same)
    expect(not (w.repo / ".gitmodules").exists(), ".gitmodules stays")
    expect(w.git("rev-parse", "HEAD", cwd=w.repo / "lib"), "the submodule is none now")
    w.belay("undo")
    expect_same("undo", before, w.record())


@row("submodule")
def submodule_is_taken_out(w):
    """`git rm`, which leaves its git directory in the outer one."""
    start = begin(w)
    w.git("rm", "-qrf", "sub")
    w.git("commit", "-qm", "without")
    shutil.rmtree(w.repo / "sub", ignore_errors=True)
    before = w.record()
    done = w.belay("rollback", "start", "--yes", "--git-nested")
    expect(not done.err.strip(), f"something is said: {done}")
    # `git rm` takes the submodule's settings away, and settings are left alone.
    expect_same("rollback --git-nested", start, w.record())
    w.belay("undo")
    expect_same("undo", before, w.record())
    w.belay("redo")
    expect_same("redo", start, w.record())


@row("nested")
def nested_clone_is_cleaned_away(w):
    """`git clean -ffdx` takes clones along: with git.protect one rollback brings them back."""
    w.belay("on")
    w.belay("config", "git.protect", "true", "--project")
    w.checkpoint("start")
    start = w.record()
    inside = {k: v for k, v in w.git_print().items() if k.startswith("repo/nested/")}
    w.git("clean", "-qffdx")
    expect(not (w.repo / "nested").exists(), "git left it")
    before = w.record()
    done = w.belay("rollback", "start", "--yes", "--git-nested")
    expect("once more" not in done.text, f"once is not enough: {done}")
    expect_same("rollback --git-nested", start, w.record())
    now = w.git_print()
    for name, (mode, _, *content) in inside.items():
        expect(name in now and (now[name][0], list(now[name][2:])) == (mode, content),
               f"{name} is not as it was")
    w.belay("undo")
    expect_same("undo", before, w.record())
    expect(not (w.repo / "nested").exists(), "undo leaves it")
    w.belay("redo")
    expect_same("redo", start, w.record())


@row("clean")
def repository_begun_inside(w):
    start = begin(w)
    w.git("init", "-q", "dir/unborn")
    w.write("dir/unborn/file.txt", "in it\n")
    commit(w)
    before = w.record()
    w.belay("rollback", "start", "--yes", "--git-nested")
    expect_same("rollback", start, w.record(),
                only=("diff", "diff --cached", "log", "stash list", "HEAD", "ls-files"))
    expect((w.repo / "dir/unborn/.git/HEAD").exists(), "it is gone")
    w.belay("undo")
    expect_same("undo", before, w.record())


@row("nested")
def nested_repository_without_a_commit_is_covered(w):
    """What git cannot add (it has no commit) is in the checkpoint all the same, each time."""
    w.git("init", "-q", "fresh")
    w.write("fresh/file.txt", "one\n")
    w.belay("on")
    first = w.checkpoint("first", "--json").json["state"]
    w.write("fresh/file.txt", "two\n")
    start = w.record()
    expect(w.checkpoint("start", "--json").json["state"] != first, "the same state")
    w.write("fresh/file.txt", "three\n")
    w.write("fresh/more.txt", "more\n")
    w.git("add", ".", cwd=w.repo / "fresh")
    there_and_back(w, start, "--git-nested")
    expect(not w.git("ls-files", cwd=w.repo / "fresh"), "what was staged inside stays")


@row("worktree")
def each_work_tree_goes_back_by_itself(w):
    """Two work trees of one repository, both protected: a checkpoint of one is nothing to
    the other, and a rollback of one leaves files and index of the other alone."""
    main = w.dir / "main"
    w.belay("on", str(main))
    w.belay("checkpoint", "-m", "of main", "--root", str(main))
    start = begin(w)
    with open(main / "a.txt", "a") as file:
        file.write("somebody's\n")
    w.git("add", "a.txt", cwd=main)
    commit(w)
    refused = w.belay("rollback", "of main", "--yes", rc=None)
    expect(refused.rc != 0, f"a checkpoint of another work tree: {refused}")
    before = (w.git("status", "--porcelain=v2", "--branch", cwd=main), (main / "a.txt").read_bytes())
    w.belay("rollback", "start", "--yes")
    expect_same("rollback", start, w.record())
    now = (w.git("status", "--porcelain=v2", "--branch", cwd=main), (main / "a.txt").read_bytes())
    expect(before == now, f"the other work tree was {before} and is {now}")


@row()
def clone_deepened(w):
    """How far history reaches is the remote's: it stays, and nothing else does."""
    w.repo.rename(w.dir / "deep")
    w.git("clone", "-q", "--depth=1", f"file://{w.dir}/deep", str(w.repo), cwd=w.dir)
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    start = begin(w)
    w.git("fetch", "-q", "--unshallow")
    w.append("edit.txt", "agent\n")
    w.git("commit", "-qam", "agent")
    before = w.record()
    w.belay("rollback", "start", "--yes")
    same = [name for name in start if name not in ("log", "ignored")]
    expect_same("rollback", start, w.record(), before.refs() - start.refs(), same)
    w.belay("undo")
    expect_same("undo", before, w.record())


@row("both")
def objects_borrowed_and_copied(w):
    """The agent ends a loan (alternates)."""
    w.repo.rename(w.dir / "lender")
    w.git("clone", "-q", "--shared", str(w.dir / "lender"), str(w.repo), cwd=w.dir)
    w.append("a.txt", "staged\n")
    w.git("add", "a.txt")
    start = begin(w)
    w.git("commit", "-qam", "agent")
    w.git("repack", "-qad")
    (w.repo / ".git/objects/info/alternates").unlink()
    shutil.rmtree(w.dir / "lender")
    there_and_back(w, start)


@row("both")
def work_tree_set_elsewhere(w):
    """core.worktree leads away from where .git is."""
    start = begin(w)
    commit(w)
    shutil.copytree(w.repo, w.dir / "elsewhere", symlinks=True,
                    ignore=shutil.ignore_patterns(".git"))
    w.git("config", "core.worktree", str(w.dir / "elsewhere"))
    files = w.files()
    elsewhere = sorted(os.listdir(w.dir / "elsewhere"))
    with w.same_git("rollback"):
        done = w.belay("rollback", "start", "--yes")
    expect(done.err, f"git was left alone without a word: {done}")
    expect_same_map("files", start["files"], w.files()[0])
    expect(sorted(os.listdir(w.dir / "elsewhere")) == elsewhere, "files elsewhere changed")
    w.belay("undo")
    expect_same_map("undo: files", files[0], w.files()[0])


@row("both")
def git_dir_named_by_a_variable(w):
    """No .git here: as those have it who keep their dotfiles. Just files."""
    (w.repo / ".git").rename(w.dir / "real")
    w.places = ("real",)
    w.belay("on")
    w.checkpoint("start")
    files = w.files()
    w.git("--git-dir", str(w.dir / "real"), "--work-tree", str(w.repo), "commit", "-qam", "x")
    w.append("a.txt", "agent\n")
    with w.same_git("rollback"):
        w.belay("rollback", "start", "--yes")
    expect_same_map("files", files[0], w.files()[0])


@row("both")
def owner_is_somebody_else(w):
    """What is made belongs to whom the directory does; what is there keeps its owner."""
    if os.getuid() != 0:
        return
    for top, dirs, names in os.walk(w.repo):
        for name in [".", *dirs, *names]:
            os.lchown(os.path.join(top, name), 12345, 54321)
    w.options += ["safe.directory=*"]
    w.try_git("status", "--short")
    os.lchown(w.repo / ".git/index", 12345, 54321)

    def owners():
        return {os.path.relpath(os.path.join(top, name), w.repo):
                (os.lstat(os.path.join(top, name)).st_uid,
                 os.lstat(os.path.join(top, name)).st_gid)
                for top, dirs, names in os.walk(w.repo) for name in dirs + names
                if "objects" not in top}

    w.belay("on")
    w.checkpoint("start")
    w.git("commit", "-qam", "agent")
    w.git("branch", "-qD", "other")
    w.append("edit.txt", "agent\n")
    head, before = w.git("rev-parse", "HEAD"), owners()
    w.belay("rollback", "start", "--yes")
    expect(w.git("rev-parse", "HEAD") != head, "the branch did not go back")
    now = owners()
    expected = {name: before.get(name, (12345, 54321)) for name in now}
    expect_same_map("owners", expected, now)
