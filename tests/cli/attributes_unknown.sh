# Extended attributes of a directory that cannot be read: said by everybody, and taken for
# none by nobody. Needs strace, and a file system with attributes.
. "$(dirname "$0")/lib.bash"
command -v strace >/dev/null || { echo "strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }

mkdir -p p/d; cd p || exit 1; echo 1 >d/a
d=$PWD/d
attribute() { (cd / && python3 -c 'import os,sys
d,v=sys.argv[1:]
if v: os.setxattr(d, "user.note", v.encode())
else: print(os.getxattr(d, "user.note").decode())' "$d" "$1"); }
attribute one 2>/dev/null || { echo "no extended attributes on this file system"; exit 77; }
"$BELAY_BIN" on >/dev/null || fail on
# mute WORDS...: the attributes of d cannot be read.
mute() {
  strace -f -qq -o "$scratch/trace" -P "$PWD/d" -e inject=flistxattr,listxattr:error=EIO \
    "$BELAY_BIN" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  rc=$?
  out=$(cat "$scratch/out"; echo x); out=${out%x}; err=$(cat "$scratch/err")
  grep -q INJECTED "$scratch/trace" || fail "nothing was injected: $*"
}

mute checkpoint -m blind; expect_rc 0; expect_in_out "extended attributes could not be read: d"
run show blind; expect_rc 0; expect_in_out "held, but extended attributes could not be read:"; expect_in_out "  d/"
run show blind --json
expect_py "d['attributes_unknown'] == ['d'] and d['skipped'] == [] and d['changing'] == [] and len(d['doubts']) == 1"
run status; expect_rc 1; expect_in_err "extended attributes of d could not be read"
run doctor; expect_in_out "extended attributes of d"
run ls blind; expect_in_out "d/a"
run diff blind; expect_rc 0; expect_out ""

# The next one knows them again, though nothing changed.
run checkpoint -m seeing --json; expect_py "d['attributes_unknown'] == []"
run status; expect_rc 0
# A rollback to the first leaves them as they are; one to the second brings them back.
attribute two; echo 2 >d/a
run rollback blind --yes --json; expect_rc 0
expect_py "{'path':'d','why':'attributes_unknown'} in [{k: x[k] for k in ('path','why')} for x in d['kept']]"
[ "$(attribute '')" = two ] || fail "the attribute was taken away"
[ "$(cat d/a)" = 1 ] || fail "d/a was not taken back"
run rollback seeing --yes; expect_rc 0; [ "$(attribute '')" = one ] || fail "the attribute did not come back"
# And one that does not know what it would take away does not begin.
attribute three; echo 3 >d/a; echo 4 >d/b
mute rollback seeing --yes; [ "$rc" != 0 ] || fail "went on without knowing"
[ "$(attribute '')$(cat d/a)" = three3 ] || fail "something was changed"
finish
