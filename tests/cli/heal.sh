# What the store lost is stored again by the next checkpoint, as far as it is still there.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store

mkdir dir
for i in 1 2 3; do head -c 3000 /dev/urandom >"dir/f$i"; done
head -c 3000000 /dev/urandom >large
# Old enough for the stat cache to be trusted.
find . -exec touch -d '1 hour ago' {} +
run on; expect_rc 0
run checkpoint -m one; expect_rc 0
run checkpoint -m two; expect_rc 0
run list; expect_rc 0   # now the catalogue knows both
cp -a "$BELAY_HOME" "$scratch/good"
pack=$(ls "$BELAY_HOME"/packs/*.pack)
restore() { rm -rf "$BELAY_HOME"; cp -a "$scratch/good" "$BELAY_HOME"; }
damage() { # the content of FILE at OFFSET, where it stands in the pack
  python3 - "$pack" "$1" "$2" <<'PY'
import sys
pack = bytearray(open(sys.argv[1], "rb").read())
content = open(sys.argv[2], "rb").read()
at = pack.find(content[int(sys.argv[3]):int(sys.argv[3]) + 64])
assert at >= 0
pack[at + 5] ^= 1
open(sys.argv[1], "wb").write(pack)
PY
}
holds_all() { # REF
  for f in dir/f1 dir/f2 dir/f3 large; do
    "$BELAY_BIN" cat "$1" $f 2>"$scratch/err" | cmp -s - $f ||
      fail "$2: $1 does not hold $f: $(cat "$scratch/err")"
  done
}

for how in blob chunk garbage gone; do
  case $how in
    blob) damage dir/f2 100 ;;
    chunk) damage large 1500000 ;;
    garbage) head -c "$(stat -c %s "$pack")" /dev/urandom >"$pack" ;;
    gone) rm "$pack" ;;
  esac
  run verify --read-data; expect_rc 3
  run gc   # sees what it has to read
  case $how in garbage | gone) expect_rc 3; expect_in_err "belay verify --read-data names" ;; esac
  run du
  [ "$rc" = 0 ] || [[ $out != *"belay gc"* ]] || fail "$how: du sends to gc: '$out'"
  run repair; expect_rc 3; expect_in_out "2 checkpoints hit"; expect_in_out "next belay checkpoint"
  # What repair could do is done.
  run verify --read-data; expect_rc 3; [[ $out == *"rebuilds it"* ]] && fail "$how: $out"
  run list --json; expect_py "[c['lost'] for c in d['checkpoints']] == [0, 0]"
  run checkpoint -m three; expect_rc 0
  for ref in one two three; do holds_all $ref "$how"; done
  run verify --read-data; expect_in_out "0 checkpoints hit"
  run repair; expect_rc 0
  run verify --read-data; expect_rc 0; expect_in_out "whole"
  restore
  # The same when the loss was accepted first.
  [ $how = blob ] || [ $how = chunk ] || continue
  [ $how = blob ] && damage dir/f2 100 || damage large 1500000
  run repair --accept-loss; expect_rc 0; expect_in_out "given up"
  # A list says so, and show which.
  lost=dir/f2; [ $how = blob ] || lost=large
  run list; expect_in_out "two  (0 files changed) incomplete"; expect_in_out "(4 files changed) incomplete"
  run list --json; expect_py "[c['lost'] for c in d['checkpoints']] == [1, 1]"
  run show one; expect_in_out "incomplete: what was lost"; expect_in_out "--accept-loss:
  $lost"
  run show one --json; expect_py "d['lost'] == 1 and d['lost_paths'] == ['$lost'] and d['purged'] == []"
  run log; [[ $out == *annotate* ]] && fail "$out"
  # What is not there is missed, and said to be lost.
  mv "$lost" "$scratch/lost"
  run rollback one --yes; expect_rc 3; expect_in_err "$lost"
  run rollback one --yes --skip-damaged --json; expect_rc 1
  expect_py "[(k['path'], k['why'], k['wanted'], k['missing']) for k in d['kept']] == [('$lost', 'lost', True, True)]"
  run rollback one --dry-run --skip-damaged; expect_rc 1; expect_in_err "lost by damage"
  mv "$scratch/lost" "$lost"
  # Nobody purged it.
  [ $how = blob ] && { run cat one dir/f2; expect_rc 1; expect_in_err "was lost"; }
  # What was put aside is named, with its size, wherever room is the matter.
  aside=$pack.aside; [ -f "$aside" ] || fail "$(ls "$BELAY_HOME/packs")"
  run du; expect_rc 0; expect_in_out "put aside by repair, 1 file"; expect_in_out "$aside"
  run du --json; expect_py "d['aside'] > 1000000 and d['aside_paths'] == ['packs/${aside##*/}']"
  expect_py "d['aside'] + d['packs'] + d['indexes'] + d['catalog'] + d['other'] == d['allocated']"
  run status; expect_rc 0; expect_in_out "$aside"
  run config -q store.cap 5MiB; expect_rc 0; head -c 2000000 /dev/urandom >more
  run checkpoint; expect_rc 5; expect_in_err "$aside"
  run status; expect_rc 1; expect_in_out "$aside"
  rm more; run config -q store.cap 10GiB; expect_rc 0
  run checkpoint -m three; expect_rc 0
  holds_all three "$how, accepted"
  run list --json; expect_py "d['checkpoints'][0]['lost'] == 0"
  run verify --read-data; expect_rc 0
  restore
done

# A pack cut short: what is gone from the list is not gone without a word.
truncate -s $(($(stat -c %s "$pack") / 2)) "$pack"
for command in list "show 1" "ls 1" "cat 1 dir/f1"; do
  run $command; expect_in_err "${pack##*/} is shorter than it was"
done
restore

# A store of which nothing can be read is not one that never had anything.
head -c "$(stat -c %s "$pack")" /dev/urandom >"$pack"
rm -r "$BELAY_HOME/catalog" "$BELAY_HOME/cache"
for command in status list roots checkpoint "show 1"; do
  run $command; expect_rc 3; expect_in_err "${pack##*/}"
done
finish
