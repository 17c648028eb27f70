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

chmod 644 open/b; chmod 755 closed
run checkpoint --json; expect_py "d['files'] == 3 and d['skipped'] == []"
finish
