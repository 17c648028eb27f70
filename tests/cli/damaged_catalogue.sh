# A catalogue that is damaged, wherever, keeps nobody from an answer: it is built anew.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store

run on; expect_rc 0
for i in 1 2 3 4 5 6 7 8; do
  echo "$i" >file
  run checkpoint -m "number $i"; expect_rc 0
done
run list --json; expect_rc 0; want=$out
run repair; expect_rc 0   # one file, no WAL
cp -a "$BELAY_HOME" "$scratch/good"
db=$BELAY_HOME/catalog/catalog.db
size=$(stat -c %s "$db")
for ((length = 0; length < size; length += 2048)); do
  rm -rf "$BELAY_HOME"; cp -a "$scratch/good" "$BELAY_HOME"
  truncate -s $length "$db"
  run list --json; expect_rc 0
  [ "$out" = "$want" ] || fail "another answer when cut at $length: '$out'"
  run search number; expect_rc 0; expect_in_out "number 3"
done
run verify; expect_rc 0
finish
