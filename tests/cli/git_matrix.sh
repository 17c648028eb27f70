# Git state over rollback, undo and redo: the single cases of tests/git/matrix.py and every
# 27th cell, which meets each situation and each action. All cells: tests/git/matrix.py.
. "$(dirname "$0")/lib.bash"
command -v git >/dev/null || { echo "git is not installed"; exit 77; }

matrix() { TMPDIR=$scratch python3 "$BELAY_SOURCE_DIR/tests/git/matrix.py" "$@"; }

matrix 'rows/*' || fail "single cases failed"
matrix --slice 1/27 || fail "cells failed"
[ -z "$(find "$BELAY_SOURCE_DIR/tests/git" -name __pycache__)" ] || fail "compiled files in the sources"
finish
