# Two agents and a person in one tree: every change has its author. 500 changes and more:
# tests/cli/hook_authors.py --edits N --seed S.
. "$(dirname "$0")/lib.bash"
python3 "$BELAY_SOURCE_DIR/tests/cli/hook_authors.py" --edits 60 --seed 7 || fail "authors"
finish
