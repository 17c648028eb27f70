# --root with the commands of the whole store: it limits, or it is said that it cannot.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
real=$(pwd -P)
"$BELAY_BUILD_DIR/bin/make_store" "$BELAY_HOME" "$real" || fail "make_store"
mkdir "$scratch/two" "$scratch/none"
two=$(cd -P "$scratch/two" && pwd)
run on "$two"; expect_rc 0
echo x >"$two/file"
run --root "$two" checkpoint; expect_rc 0

run du --json; expect_rc 0
expect_py "sorted(r['root'] for r in d['roots']) == sorted(['$real', '$two'])"
whole=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["packs"])' "$scratch/out")
run du --root "$two" --json; expect_rc 0; expect_silent_err
expect_py "[r['root'] for r in d['roots']] == ['$two'] and d['roots'][0]['checkpoints'] == 1"
expect_py "d['packs'] == $whole"
run du --root "$two"; expect_rc 0; expect_in_out "$two: 1 checkpoint"
[[ $out == *"$real:"* ]] && fail "another root is listed: '$out'"
mkdir "$two/deep"
run du --root "$two/deep" --json; expect_py "[r['root'] for r in d['roots']] == ['$two']"
run du --root "$scratch/none"; expect_rc 1; expect_out ""
expect_in_err "not a protected directory"
run du --root "$scratch/absent"; expect_rc 1; expect_in_err "no such directory"

# What is offered leads to the directory that was meant.
for command in list checkpoint; do
  run --root "$scratch/none" $command; expect_rc 1; expect_in_err "belay on $scratch/none"
done
(cd "$scratch/none" && "$BELAY_BIN" list) 2>&1 | grep -q 'belay on$' || fail "the hint for the current directory"
# A root that is gone, or became a file: said, with what to do.
mkdir "$scratch/gone" "$scratch/filed"; run on "$scratch/gone"; run on "$scratch/filed"; rmdir "$scratch/gone" "$scratch/filed"; : >"$scratch/filed"
run --root "$scratch/gone" checkpoint; expect_rc 1; expect_in_err "the directory is gone: $scratch/gone"; expect_in_err "belay on NEW --moved-from $scratch/gone"
run --root "$scratch/filed" checkpoint; expect_rc 1; expect_in_err "a file is in the place of the directory: $scratch/filed"; [[ $err == *"belay doctor"* ]] && fail "a hint about settings: $err"

for command in verify gc repair; do
  run $command --root "$two"; expect_rc 0
  expect_in_err "--root makes no difference"
  run $command --root "$two" -q; expect_rc 0; expect_silent_err
  run --root "$two" $command --json; expect_rc 0; expect_json
done
finish
