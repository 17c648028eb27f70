# belay log -- PATH: every change of a path, and whose doing it was.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
mkdir src; echo 1 >src/a; echo 1 >b; "$BELAY_BIN" on >/dev/null || fail on
run checkpoint -m first; expect_rc 0
run log; expect_rc 0; expect_in_out "Nothing was done here"
echo 2 >src/a
run checkpoint -m second --session s1; expect_rc 0
run run -- sh -c 'echo 3 >src/a'; expect_rc 0
echo 4 >src/a; echo 2 >b
run rollback first --yes -- src; expect_rc 0
run log -- src/a; expect_rc 0
[ "$(printf %s "$out" | grep -c "src/a$")" = 5 ] || fail "not five changes: $out"
[[ $(printf %s "$out" | head -1) == *"rollback to 'first'"* ]] || fail "not the newest first: $out"
expect_in_out "second"; expect_in_out "by session s1"; expect_in_out "by belay run"; expect_in_out "by outside"
expect_in_out "    added     src/a"
[[ $out == *" b"$'\n'* ]] && fail "another path: $out"
run log --json -- src/a; expect_rc 0
expect_py "[c['author']['kind'] for c in d['changes']] == ['rollback', 'outside', 'run', 'session', 'outside']"
expect_py "[c['change'] for c in d['changes']] == ['modified'] * 4 + ['added'] and d['changes'][3]['author']['session'] == 's1'"
expect_py "len(d['operations']) == 1 and d['operations'][0]['changed_paths'] == ['src/a']"
expect_py "d['changes'][0]['operation'] == d['operations'][0]['id'] and d['changes'][0]['checkpoint'] is None and d['changes'][1]['operation'] is None"
cd src && run log -- ../b; expect_rc 0; expect_in_out "modified  b"; cd ..
run log --json; expect_py "d['changes'] == [] and len(d['operations']) == 1"
# A directory and a pattern; a name that exists is that name.
run log --json -- src; expect_rc 0; expect_py "{c['path'] for c in d['changes']} == {'src/a'} and len(d['changes']) == 5"
run log --json -- 'src/*'; expect_rc 0; expect_py "{c['path'] for c in d['changes']} == {'src/a'} and len(d['changes']) == 5"
run log --json -- '?'; expect_rc 0; expect_py "{c['path'] for c in d['changes']} == {'b'}"
run log --json -- 's*' b; expect_rc 0; expect_py "{c['path'] for c in d['changes']} == {'src/a', 'b'}"
cd src && run log -- '[a-z]'; expect_rc 0; expect_in_out "src/a"; [[ $out == *" b"$'\n'* ]] && fail "another directory: $out"; cd ..
echo 1 >'[ab]'; run checkpoint; expect_rc 0
run log --json -- '[ab]'; expect_rc 0; expect_py "{c['path'] for c in d['changes']} == {'[ab]'}"
rm '[ab]'; run checkpoint; expect_rc 0
run log -- '*.nothing'; expect_rc 0; expect_in_out "No checkpoint and no operation"
run log -- nowhere; expect_rc 0; expect_in_out "No checkpoint and no operation"
run log -- /etc; expect_rc 2

# What was taken back is out of the way, and -n counts what is shown.
run checkpoint -m third; expect_rc 0; run checkpoint -m fourth; expect_rc 0
run rollback second --yes; expect_rc 0
run list; shown=$(printf %s "$out" | grep -c '^ *[0-9]*\. ')
expect_in_out "taken back by a rollback"
run list -n 1; [ "$(printf %s "$out" | grep -c '^ *[0-9]*\. ')" = 1 ] || fail "not one: $out"
[[ $out == *third* || $out == *fourth* ]] && fail "taken back, and shown: $out"
run list -n 2; [ "$(printf %s "$out" | grep -c '^ *[0-9]*\. ')" = 2 ] || fail "not two: $out"
number=$(printf %s "$out" | sed -n '2s/^ *\([0-9]*\)\..*/\1/p')
title=$(printf %s "$out" | sed -n 2p)
run show "$number"; expect_rc 0
id=$(printf %s "$title" | awk '{print $2}'); expect_in_out "$id"
run list --all -n 100; [ "$(printf %s "$out" | grep -c '^ *[0-9]*\. ')" -gt "$shown" ] || fail "--all hides: $out"
finish
