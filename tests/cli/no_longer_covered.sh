# What is left out from now on was not deleted.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
mkdir -p d/deep; for p in a.o b.o d/x d/deep/y; do echo 1 >"$p"; done
run on; run checkpoint -q; expect_rc 0
printf '*.o\nd/\n' >.gitignore
run checkpoint --json; expect_rc 0
expect_py "d['changed'] == {'added':1,'modified':0,'deleted':0} and d['description'] == '.gitignore added' and d['files'] == 1"
run show latest --json
expect_py "sorted((c['path'],c['change']) for c in d['changed_paths']) == [('.gitignore','added'),('a.o','left_out'),('b.o','left_out'),('d/deep/y','left_out'),('d/x','left_out')]"
run show latest; expect_in_out "left out  a.o"; [[ $out == *deleted* ]] && fail "said to be deleted: $out"
: >.gitignore; run checkpoint -q; rm -r d a.o
run checkpoint --json; expect_py "d['changed']['deleted'] == 3"
run show latest --json; expect_py "[c['change'] for c in d['changed_paths']] == ['deleted'] * 3"
finish
