# What a checkpoint counts as changed: the first one as all others.
. "$(dirname "$0")/lib.bash"

mkdir p; cd p || exit 1
mkdir -p empty full/also-empty ignored; echo 1 >a; echo 2 >full/b; ln -s a l
echo 'ignored/' >.belayignore
"$BELAY_BIN" on >/dev/null || fail on
# Four files and links, two empty directories; one that holds something counts by that.
run checkpoint --json; expect_py "d['changed'] == {'added':6,'modified':0,'deleted':0} and d['files'] == 4"
run show latest --json; expect_py "len(d['changed_paths']) == 6"
run list; expect_in_out "(4 files changed)"
run show latest --json; expect_py "d['changed_directories'] == 2"
chmod 700 full; run checkpoint; expect_in_out "4 files, "; expect_in_out "; 1 directory changed; "; run list -n 1; expect_in_out "(1 directory changed)"
chmod 755 full; echo 3 >>a; run checkpoint; expect_in_out "; 1 file and 1 directory changed; "
# The same things, coming later and going.
cp -a . "$scratch/copy"; rm -r a l empty full .belayignore
run checkpoint --json; expect_py "d['changed'] == {'added':1,'modified':0,'deleted':6}"
cp -a "$scratch/copy/." .; run checkpoint --json; expect_py "d['changed']['added'] == 6"
mkdir ../q; cd ../q || exit 1
"$BELAY_BIN" on >/dev/null; run checkpoint --json; expect_py "d['changed']['added'] == 0"
finish
