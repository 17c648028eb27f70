# `belay status` of a directory that is not protected. It creates nothing.
. "$(dirname "$0")/lib.bash"

real=$(pwd -P)
run status; expect_rc 0; expect_silent_err
expect_in_out "not protected: $real"
run status --json; expect_rc 0; expect_silent_err
expect_out "{\"root\":\"$real\",\"protected\":false,\"last\":null,\"recovered\":null,\"watching\":false,\"looks_like\":null,\"failures\":[]}
"
run --json status; expect_py "d['protected'] is False"
run status -q; expect_rc 0; expect_in_out "not protected"

mkdir sub; ln -s sub link
run status --root sub --json; expect_py "d['root'] == '$real/sub'"
run status --root=link --json; expect_py "d['root'] == '$real/sub'"
run status --root sub/../sub// --json; expect_py "d['root'] == '$real/sub'"
run status --root / --json; expect_py "d['root'] == '/'"
run status --root absent; expect_rc 1; expect_in_err "no such directory"
: >file; run status --root file; expect_rc 1

# Names that are not text, or that a terminal would obey.
mkdir $'odd\xff' $'red\e[31m'
run status --root $'odd\xff' --json; expect_json
expect_py "d['root']['bytes']"
run status --root $'red\e[31m'; expect_in_out 'red\x1b[31m'
[[ $out == *$'\e'* ]] && fail "an escape sequence reached the terminal"
run status --root $'red\e[31m' --json; expect_py "d['root'].endswith('red\\x1b[31m')"

# Few files may be open: that is no reason to rebuild anything.
export BELAY_HOME=$scratch/few
run on sub; run checkpoint --root sub; expect_rc 0
told=
for most in $(seq 6 24); do
  (ulimit -n "$most"; exec "$BELAY_BIN" status --root sub) >"$scratch/out" 2>&1 </dev/null
  grep -q "belay repair" "$scratch/out" && fail "ulimit -n $most: $(cat "$scratch/out")"
  grep -q "ulimit -n" "$scratch/out" && told=yes
done
[ "$told" = yes ] || fail "nobody was told of the limit"
unset BELAY_HOME

[ -z "$(ls -A "$HOME")" ] || fail "status created something in HOME"
# Lines fit a terminal that is narrower than 80 columns.
mkdir "$scratch/narrow"; cd "$scratch/narrow" || exit 1
echo 1 >a; "$BELAY_BIN" on -q >/dev/null
name=$(printf 'a long name %.0s' {1..8}); run checkpoint -q -m "$name"; expect_rc 0
for columns in 56 70 80; do
  for command in list status; do
    COLUMNS=$columns run $command; expect_rc 0
    longest=$(grep -F "a lon" <<<"$out" | wc -L)
    [ "$longest" = "$columns" ] || fail "$command at $columns: $longest columns: $out"
  done
done
finish
