# A journal that cannot be read: verify names it, status says what it means and how to
# go back, until that was done.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store

echo 1 >file
run on; expect_rc 0
run checkpoint -m one; expect_rc 0
echo 2 >file
run rollback one --yes; expect_rc 0   # its safety checkpoint holds 2
run list --json --all; expect_rc 0
safety=$(python3 -c 'import json,sys
print([c["id"] for c in json.load(open(sys.argv[1]))["checkpoints"] if c["kind"]=="safety"][0])' "$scratch/out")
run roots --json
root=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["roots"][0]["id"])' "$scratch/out")
mkdir -p "$BELAY_HOME/journal"
run verify; expect_rc 0

# Of a newer Belay: said, not touched.
python3 - "$BELAY_HOME/journal/$root" <<'PY'
import hashlib, sys
body = b"BELAYJN9" + b"anything at all"
open(sys.argv[1], "wb").write(body + hashlib.sha256(body).digest())
PY
run verify; expect_rc 1; expect_in_err "newer Belay"; expect_in_err "journal/$root"
run status; expect_rc 1; expect_in_err "newer Belay"
[ -f "$BELAY_HOME/journal/$root" ] || fail "the newer journal is gone"
# What waits to be finished is not forgotten on the way.
run off "$PWD" --forget --yes; [ "$rc" = 0 ] && fail "forgotten under a rollback"
run off "$PWD"; [ "$rc" = 0 ] && fail "switched off under a rollback"
run list --json --all; expect_py 'len(d["checkpoints"]) == 2'

# Damaged.
printf 'BELAYJN1 torn' >"$BELAY_HOME/journal/$root"
run verify; expect_rc 3; expect_in_out "journal/$root"
for time in first second; do
  run status; expect_rc 1
  expect_in_err "interrupted and its journal is damaged"
  expect_in_err "mix of before and after"
  expect_in_err "belay rollback ${safety:0:7}"
  [[ $out == *Recovered* ]] && fail "$time: nothing was recovered: '$out'"
done
run status --json; expect_py 'd["recovered"] is None and len(d["failures"]) == 1'
# A checkpoint that makes itself does not end it; a person who goes on does.
cp -a "$BELAY_HOME" "$scratch/mixed"
run run -- true; expect_rc 0
run status; expect_rc 1; expect_in_err "mix of before and after"
run checkpoint -m "it is fine so"; expect_rc 0
run status; expect_rc 0; expect_silent_err
rm -rf "$BELAY_HOME"; mv "$scratch/mixed" "$BELAY_HOME"
run status; expect_rc 1
run rollback "${safety:0:7}" --yes; expect_rc 0
[ "$(cat file)" = 2 ] || fail "file is '$(cat file)'"
run status; expect_rc 0; expect_silent_err
run verify; expect_rc 0

# A journal that is gone, and what was displaced is left.
mkdir .belay-stage-abc; echo mine >.belay-stage-abc/0.0
run status; expect_rc 1; expect_in_err ".belay-stage-abc is left of a rollback"
expect_in_err "belay rollback "
rm -r .belay-stage-abc; run status; expect_rc 0

# Not even a file: put aside by the next command on the directory, or by repair.
journal=$BELAY_HOME/journal/$root
rm -rf "$BELAY_HOME"/journal/*.aside
for what in directory FIFO symlink; do
  for how in status checkpoint repair; do
    case $what in
      directory) mkdir "$journal" ;;
      FIFO) mkfifo "$journal" ;;
      symlink) ln -s /etc/passwd "$journal" ;;
    esac
    run verify; expect_rc 3; expect_in_out "journal/$root: journal: is a $what"
    case $how in
      status) run status; expect_rc 1 ;;
      checkpoint) run checkpoint -q; expect_rc 0 ;;
      repair) run repair; expect_rc 0 ;;
    esac
    [[ $out$err == *"interrupted and its journal is damaged"* ]] || fail "$what, $how: '$out' '$err'"
    [[ $out$err == *"put aside as journal/$root."* ]] || fail "$what, $how: '$out' '$err'"
    [ ! -e "$journal" ] && [ ! -L "$journal" ] || fail "$what, $how: it is still there"
    run verify; expect_rc 0
    [ $how = checkpoint ] || { run status; expect_rc 1; expect_in_err "mix of before and after"; }
    run checkpoint -q; expect_rc 0
    run status; expect_rc 0
  done
done
[ "$(ls "$BELAY_HOME/journal" | grep -c aside)" = 9 ] || fail "$(ls "$BELAY_HOME/journal")"
# A damaged one, and one of no root, by repair; a journal that is not a directory.
printf torn >"$journal"; printf torn >"$BELAY_HOME/journal/aaaaaaaaaaaaaaaaaaaaaaaaaa"
run repair; expect_rc 0; expect_in_out "$PWD: a rollback was interrupted"; expect_in_out "of no root"
run verify; expect_rc 0
rm -r "$BELAY_HOME/journal"; : >"$BELAY_HOME/journal"
run repair; expect_rc 0; expect_in_out "journal was a file: moved aside"
run checkpoint -q; expect_rc 0
run status; expect_rc 0

# What a checkpoint needs and the store lost is damage to who asks for it.
pack=$(ls "$BELAY_HOME"/packs/*.pack)
run list; rm "$pack"; run repair; expect_rc 3
for command in "cat one file" "ls one" "show one"; do
  run $command; expect_rc 3
done
for command in "export one -o $scratch/x.belay" "fork one $scratch/forked"; do
  run $command; expect_rc 3; expect_in_err "belay verify --read-data"
done
finish
