# A store at its cap: what is said helps, and what is offered works when it is pasted.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
cap() { printf 'store.cap = "%s"\nstore.floor = 0\n' "$1" >"$BELAY_CONFIG"; }
cap 3MiB
run on -q
noise() { head -c "$1" /dev/urandom >noise; }

# Full of what was made by hand, then some of it deleted: the next one makes room.
for i in $(seq 40); do
  noise 200000
  run checkpoint -q -m "m$i"
  [ "$rc" = 0 ] || break
done
[ "$rc" = 5 ] || fail "never full: $rc"
[[ $err == *"may go by itself"*"belay delete"* ]] || fail "no way out is said: $err"
run status; expect_rc 1
run delete m2 m4 m6 --yes; expect_rc 0; expect_in_out "belay gc --everything"
# That one was refused is said until there is one again, once.
run status --json; expect_rc 1
expect_py "[f['what'].startswith('no checkpoint: ') for f in d['failures']] == [True]"
noise 150000
run checkpoint -q -m next; expect_rc 0
run status; expect_rc 0

# du's offer gives all of it back.
run delete m8 --yes; expect_rc 0
run du; expect_in_out "could be given back: belay gc --everything"
run gc --everything; expect_rc 0
run du --json; expect_py "d['reclaimable'] == 0"

# Old automatic ones go for a run, and it says so.
cap 4MiB
for i in $(seq 30); do
  run run -- sh -c 'head -c 150000 /dev/urandom >noise'; expect_rc 0
  [[ $err == *"let go"* ]] && break
done
expect_in_err "the store was full"

# A deleted session: what is offered erases it.
cap 100MiB
run checkpoint -q --session Z1 -m SESSION-NAME --note SESSION-NOTE; expect_rc 0
run sessions delete Z1 --yes; expect_rc 0; expect_in_out "belay gc --everything"
[[ $out != *"purge --session"* ]] || fail "offers what cannot work"
run purge --session Z1 --yes; expect_rc 1; expect_in_err "belay gc --everything"
run gc --everything; expect_rc 0
grep -rq SESSION-NOTE "$BELAY_HOME" && fail "the note is still there"

# A note that was taken away.
run checkpoint -q -m noted --note OWN-NOTE; expect_rc 0
run note noted 'pw is OLD-NOTE'; expect_rc 0
run note noted ''; expect_rc 0
run gc --everything; expect_rc 0
grep -rq 'OLD-NOTE\|OWN-NOTE' "$BELAY_HOME" && fail "a note that was taken away is there"
run show noted --json; expect_py "not d['note']"

# A bundle that does not fit is refused before anything is written; the cap it asks for
# suffices.
noise 6000000
run checkpoint -q -m large; expect_rc 0
run export large -o "$scratch/large.belay"; expect_rc 0
export BELAY_HOME=$scratch/other
cap 3MiB
run on -q
size() { du -s --block-size=1 "$BELAY_HOME/packs" | cut -f1; }
before=$(size)
run import "$scratch/large.belay"; expect_rc 5
[[ $err != *"to be kept"* && $err != *"go by itself"* ]] || fail "an empty store is not full: $err"
[ "$(size)" = "$before" ] || fail "grew from $before to $(size)"
enough=$(grep -o 'store.cap [0-9]*[A-Za-z]*' <<<"$err" | tail -1 | cut -d' ' -f2)
run config store.cap "$enough"; expect_rc 0
run import "$scratch/large.belay"; expect_rc 0

# A share of the disk has a bound, and that is said.
run config store.floor 99%; expect_rc 0; expect_in_out "at most 2GiB"
# A cap is shown as it was given.
cap 12; echo "$RANDOM" >"tiny"; run checkpoint; expect_rc 5; expect_in_err "store.cap = 12B"
finish
