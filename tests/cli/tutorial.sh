# Every command of docs/tutorial.md does what is said there.
here=$(cd -P -- "$(dirname -- "$0")" && pwd)
. "$here/lib.bash"
mkdir "$scratch/bin"
ln -s "$(readlink -f "$BELAY_BIN")" "$scratch/bin/belay"
PATH=$scratch/bin:$PATH python3 "$here/tutorial.py" "$here/../../docs/tutorial.md" "$PWD" ||
  fail "the tutorial is not true"
finish
