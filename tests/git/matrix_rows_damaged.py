"""Single cases of tests/git/matrix.py: git's own files hold nonsense, or are gone. Files come
back whatever git's are like; what is not put back is said."""
from matrix_row import begin, commit, row
from matrix_world import expect, expect_same, expect_same_map

NOT_FSCK = ("status", "diff", "diff --cached", "log", "stash list", "HEAD", "ls-files", "files")


def survives(w, damage, *words, only=None):
    """Files come back whatever git's own are like; undo leaves what was there."""
    start = begin(w)
    commit(w)
    damage()
    w.append("edit.txt", "agent\n")
    git, files = w.git_print(), w.files()
    done = w.belay("rollback", "start", "--yes", *words)
    expect_same_map("files", start["files"], w.files()[0])
    if {k: v[2:] for k, v in w.git_print().items()} == {k: v[2:] for k, v in git.items()}:
        expect(done.err, f"git was left alone without a word: {done}")
    else:
        expect_same("rollback", start, w.record(), only=only)
    undone = w.belay("undo")
    expect_same_map("undo: files", files[0], w.files()[0])
    now = w.git_print()
    for name, value in git.items():
        if "/logs/" not in name and "/objects" not in name and len(value) == 3:
            expect(name in now and now[name][2:] == value[2:] or undone.err,
                   f"undo: {name} is another, and that is not said")


@row("both")
def packed_refs_are_nonsense(w):
    survives(w, lambda: (w.repo / ".git/packed-refs").write_text("nonsense\n"))


@row("both")
def settings_are_nonsense(w):
    survives(w, lambda: (w.repo / ".git/config").write_text("[nonsense\n"))


@row("both")
def settings_are_gone(w):
    survives(w, lambda: (w.repo / ".git/config").unlink())


@row("both")
def settings_name_a_format_of_the_future(w):
    survives(w, lambda: w.git("config", "core.repositoryFormatVersion", "99"))


@row("both")
def settings_name_an_unknown_hash(w):
    def damage():
        w.git("config", "core.repositoryFormatVersion", "1")
        w.git("config", "extensions.objectFormat", "sha999")
    survives(w, damage)


@row("both")
def settings_say_bare(w):
    survives(w, lambda: w.git("config", "core.bare", "true"))


@row("both")
def head_is_nonsense(w):
    survives(w, lambda: (w.repo / ".git/HEAD").write_text("nonsense\n"))


@row("both")
def head_is_empty(w):
    survives(w, lambda: (w.repo / ".git/HEAD").write_text(""))


@row("both")
def branch_is_nonsense(w):
    survives(w, lambda: (w.repo / ".git/refs/heads/main").write_text("nonsense\n"))


@row("both")
def branch_is_a_commit_that_is_not_there(w):
    survives(w, lambda: (w.repo / ".git/refs/heads/main").write_text("12345678" * 5 + "\n"))


@row("both")
def another_branch_is_a_commit_that_is_not_there(w):
    survives(w, lambda: (w.repo / ".git/refs/heads/other").write_text("12345678" * 5 + "\n"))


@row("both")
def branch_is_a_blob(w):
    def damage():
        blob = w.git("rev-parse", "HEAD:a.txt")
        (w.repo / ".git/refs/heads/main").write_text(blob + "\n")
    survives(w, damage)


@row("both")
def branch_is_a_full_directory(w):
    def damage():
        (w.repo / ".git/refs/heads/main").unlink()
        (w.repo / ".git/refs/heads/main/x").mkdir(parents=True)
        (w.repo / ".git/refs/heads/main/x/y").write_text("nonsense\n")
    survives(w, damage)


@row("both")
def logs_are_nonsense(w):
    def damage():
        (w.repo / ".git/logs/HEAD").write_text("nonsense\n")
        (w.repo / ".git/logs/refs/heads/main").write_bytes(b"\0\1\2")
        (w.repo / ".git/logs/refs/stash").write_text("nonsense\n")
    survives(w, damage)


@row("both")
def logs_are_directories(w):
    def damage():
        for name in ("HEAD", "refs/heads/main"):
            path = w.repo / ".git/logs" / name
            path.unlink()
            path.mkdir()
    survives(w, damage)


@row("both")
def files_of_an_operation_are_directories(w):
    def damage():
        for name in ("MERGE_HEAD", "ORIG_HEAD", "rebase-merge"):
            path = w.repo / ".git" / name
            path.unlink(missing_ok=True)
            path.mkdir()
    survives(w, damage)


@row("both")
def rebase_directory_is_empty(w):
    survives(w, lambda: (w.repo / ".git/rebase-merge").mkdir())


@row("both")
def index_is_a_directory(w):
    def damage():
        (w.repo / ".git/index").unlink()
        (w.repo / ".git/index").mkdir()
    survives(w, damage)


@row("both")
def git_dir_moved_aside(w):
    survives(w, lambda: (w.repo / ".git").rename(w.dir / "aside"))


@row("both")
def replacement_is_nonsense(w):
    def damage():
        (w.repo / ".git/refs/replace").mkdir()
        (w.repo / ".git/refs/replace/nonsense").write_text("nonsense\n")
        (w.repo / ".git/info").mkdir(exist_ok=True)
        (w.repo / ".git/info/grafts").write_text("nonsense\n")
    survives(w, damage, only=NOT_FSCK)  # what git leaves out is still there


@row("both")
def alternates_are_nonsense(w):
    def damage():
        (w.repo / ".git/objects/info").mkdir(exist_ok=True)
        (w.repo / ".git/objects/info/alternates").write_text("/nowhere\nnonsense\n\0\n")
    survives(w, damage, only=NOT_FSCK)


@row("both")
def shallow_is_nonsense(w):
    survives(w, lambda: (w.repo / ".git/shallow").write_text("nonsense\n"))
