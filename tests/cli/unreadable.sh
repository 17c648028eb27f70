# What one may not read is left out and said, and never taken for deleted.
. "$(dirname "$0")/lib.bash"

if [ "$(id -u)" = 0 ]; then
  # Root may read everything: as somebody else, then.
  command -v setpriv >/dev/null || { echo "setpriv is not installed"; exit 77; }
  chmod 711 "$scratch"; chown -R 65534:65534 "$HOME" "$scratch/work"
  cp "$BELAY_BIN" "$scratch/belay" && chmod 755 "$scratch/belay"
  as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
  as true 2>/dev/null || { echo "cannot become another user"; exit 77; }
  printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups "%s" "$@"\n' "$scratch/belay" >"$scratch/as-nobody"
  chmod 755 "$scratch/as-nobody"; BELAY_BIN=$scratch/as-nobody
else
  as() { "$@"; }
fi
export BELAY_HOME=$HOME/store
as sh -c 'mkdir open closed; echo 1 >open/a; echo 2 >open/b; echo 3 >closed/c'
run on; expect_rc 0
run checkpoint --json; expect_rc 0; expect_py "d['files'] == 3 and d['skipped'] == []"

chmod 000 open/b closed
run checkpoint --json; expect_rc 0
expect_py "d['skipped'] == [{'path':'closed','why':'unreadable'},{'path':'open/b','why':'unreadable'}] and d['files'] == 1"
run checkpoint; expect_in_out "2 paths left out: closed (unreadable), ..."
run show latest --json; expect_py "[s['why'] for s in d['skipped']] == ['unreadable'] * 2"
run cat latest open/b; expect_rc 1; expect_in_err "it was left out then: unreadable"
run cat 3 open/b; expect_rc 0; expect_out $'2\n'
run why open/b closed closed/c closed/none open/a --json
expect_py "[(p['covered'],p['why']) for p in d['paths']] == [(False,'unreadable')] * 4 + [(True,'covered')]"
run doctor --json; expect_rc 0
expect_py "sorted((o['path'],o['why']) for o in d['coverage']['left_out']) == [('closed','unreadable'),('open/b','unreadable')]"
expect_py "d['coverage']['files'] == 1"
run ls now; expect_out $'open/a\n'

# A root that may not be looked at is not gone.
as sh -c 'mkdir -p up/root; echo x >up/root/x'; run on up/root; expect_rc 0
run checkpoint -q --root up/root; expect_rc 0
chmod 000 up/root
run roots; expect_in_out "the directory may not be read"; [[ $out == *"is gone"* ]] && fail "said to be gone"
run roots --json; expect_py "[r['state'] for r in d['roots'] if r['root'].endswith('up/root')] == ['unreadable']"
run doctor --root up/root; expect_rc 1; expect_in_out "may not be read"; [[ $out == *"is gone"* ]] && fail "doctor says it is gone"
chmod 000 up
run roots --json; expect_py "[r['state'] for r in d['roots'] if r['root'].endswith('up/root')] == ['unreadable']"
as mkdir other; run on other --moved-from up/root; expect_rc 1; expect_in_err "still there"
chmod 755 up up/root; rm -r other
run off up/root; rm -r up

# Git's own directory that may not be read: what it tracks is not known, and stays.
if command -v git >/dev/null; then
  as sh -c 'git -c init.defaultBranch=main init -q repo && cd repo && echo "*.o" >.gitignore && echo 1 >t.o && git add -f t.o'
  run on repo; run checkpoint --root repo --json; expect_py "d['files'] == 2"
  for what in repo/.git/index repo/.git; do
    mode=$(stat -c %a "$what"); chmod 000 "$what"
    run checkpoint --root repo --json; expect_rc 0; expect_in_err "git tracks although it is ignored"
    expect_py "d['files'] == 2 and d['changed']['deleted'] == 0"
    run status --root repo; expect_rc 1
    chmod "$mode" "$what"; run checkpoint --root repo --json; expect_py "d['files'] == 2"; run status --root repo; expect_rc 0
  done
  run off repo; rm -r repo
fi

chmod 644 open/b; chmod 755 closed
run checkpoint --json; expect_py "d['files'] == 3 and d['skipped'] == []"
finish
