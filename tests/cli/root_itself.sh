# The protected directory itself: a chmod or chown of it alone is a change, and everybody says so.
. "$(dirname "$0")/lib.bash"
unset PAGER BELAY_PAGER

mkdir p; cd p || exit 1; chmod 755 .
echo 1 >a
"$BELAY_BIN" on >/dev/null && "$BELAY_BIN" checkpoint -q -m one >/dev/null || fail "on"

# Nothing about it changed: not a word.
run checkpoint --json; expect_py "d['description'] == 'nothing changed' and d['changed']['modified'] == 0"
run show 1; [[ $out == *"modified"* ]] && fail "show speaks of the root: $out"
for words in "" . a; do run diff one -- $words; expect_rc 0; expect_out ""; done

chmod 750 .
run diff one; expect_rc 0; expect_out "# mode of .: 0755 -> 0750
"
run diff one -- .; expect_out "# mode of .: 0755 -> 0750
"
# Neither a path nor a glob stands for it: a rollback of those leaves it alone, too.
run diff one -- a; expect_rc 0; expect_out ""
run diff one -- '*'; expect_rc 0; expect_out ""
run diff one --name-only; expect_out "./
"
run diff one --stat; expect_in_out " ./ | attributes"
run diff one --json
expect_py "[(f['path'], f['status'], f['old']['mode'], f['new']['mode']) for f in d['files']] == [('.', 'modified', '0755', '0750')]"
run checkpoint --json
expect_py "d['description'] == 'mode of . changed' and d['changed'] == {'added':0,'modified':1,'deleted':0}"
run show latest; expect_in_out "  modified  ."
run show latest --json; expect_py "d['changed_paths'] == [{'path':'.','change':'modified'}]"
run diff 2 1 --name-only; expect_out "./
"

# With other changes: a file gives the checkpoint its name, and the patch applies.
cp -a . "$scratch/before"
chmod 755 .; echo 2 >>a; echo 3 >b
run checkpoint --json
expect_py "d['description'] == 'a and 2 more changed' and d['changed'] == {'added':1,'modified':2,'deleted':0}"
run show latest --json
expect_py "[(c['path'], c['change']) for c in d['changed_paths']] == [('.','modified'),('a','modified'),('b','added')]"
run diff 2 1; expect_in_out "# mode of .: 0750 -> 0755"
(cd "$scratch/before" && git apply "$scratch/out") || fail "git apply: $out"
diff -r . "$scratch/before" || fail "the patch brings other files"

if [ "$(id -u)" = 0 ]; then
  chown 12345 .
  run checkpoint --json; expect_py "d['description'] == 'owner of . changed'"
  run diff 2 1; expect_out "# owner of .: 0:$(stat -c %g .) -> 12345:$(stat -c %g .)
"
  chown 0 .
fi
finish
