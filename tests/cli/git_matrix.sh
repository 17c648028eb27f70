# Git state over rollback, undo and redo: the single cases of tests/git/matrix.py and every
# ninth cell, which meets each situation and each action. All cells: tests/git/matrix.py.
. "$(dirname "$0")/lib.bash"
command -v git >/dev/null || { echo "git is not installed"; exit 77; }

# Not there yet: git.protect.
later=(--without '*/rm-git' --without 'rows/protected-git-*')
matrix() { TMPDIR=$scratch python3 "$BELAY_SOURCE_DIR/tests/git/matrix.py" "${later[@]}" "$@"; }

matrix 'rows/*' || fail "single cases failed"
matrix --slice 1/9 || fail "cells failed"
[ -z "$(find "$BELAY_SOURCE_DIR/tests/git" -name __pycache__)" ] || fail "compiled files in the sources"
finish
