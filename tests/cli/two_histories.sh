# A store and a copy of it that went another way, laid together: everything that was
# acknowledged is in the list after a repair, once, and nothing is removed before.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
names() { run list --json; (cd / && python3 -c 'import json,sys; print(*sorted(c["name"] or "-" for c in json.load(open(sys.argv[1]))["checkpoints"]))' "$scratch/out"); }
keep() { run checkpoint -m "$1"; expect_rc 0; }

# --- the pack that was being written to and the tail are lost, and found again later
run config store.cap 6MiB; expect_rc 0  # small packs
echo 0 >f; run on; expect_rc 0; keep c1
head -c 300000 /dev/urandom >r; keep c2
for i in 3 4 5 6; do echo "$i" >f; keep "c$i"; done
lost=$(ls -t "$BELAY_HOME"/packs/*.pack | head -1)
mv "$lost" "$scratch/found"; rm "$BELAY_HOME/tail"
for i in 1 2; do echo "n$i" >f; keep "n$i"; done
mv "$scratch/found" "$lost"
run repair; expect_rc 0
[ "$(names)" = "c1 c2 c3 c4 c5 c6 n1 n2" ] || fail "listed: $(names)"
run verify --read-data; expect_rc 0

# --- a backup is copied back over a newer store, and work goes on
export BELAY_HOME=$scratch/over
rm r; echo 1 >f; run on; expect_rc 0; keep c1
cp -a "$BELAY_HOME" "$scratch/backup"
echo there >k; keep c2
head -c 300000 /dev/urandom >r; keep c3
cp -a "$scratch/backup/." "$BELAY_HOME/"
rm k r
for i in 1 2 3; do echo "w$i" >f; keep "w$i"; done
run verify; expect_rc 3; expect_in_out "checkpoint 'c3'"; expect_in_out "is in no list"
run gc --everything; expect_rc 3
run repair; expect_rc 3  # of c3 the file k is gone for good
[ "$(names)" = "c1 c3 w1 w2 w3" ] || fail "listed: $(names)"
run repair --accept-loss; expect_rc 0
[ "$(names)" = "c1 c3 w1 w2 w3" ] || fail "listed: $(names)"
run gc --everything; expect_rc 0
[ "$(names)" = "c1 c3 w1 w2 w3" ] || fail "listed: $(names)"

# --- a collection makes the log anew: who follows is told nothing twice
export BELAY_HOME=$scratch/told
run on; expect_rc 0; keep a1; keep a2
"$BELAY_BIN" events --follow >"$scratch/events" 2>&1 & follower=$!
until [ "$(wc -l <"$scratch/events")" -ge 3 ]; do kill -0 "$follower" || fail "it does not follow"; done
echo 3 >f; keep a3
run delete a1 --yes; expect_rc 0; run gc --everything; expect_rc 0
keep a4
until grep -q '"name":"a4"' "$scratch/events"; do kill -0 "$follower" || fail "it ended: $(cat "$scratch/events")"; done
kill "$follower"
[ -z "$(cut -d, -f1 "$scratch/events" | sort | uniq -d)" ] || fail "told twice: $(cut -c1-60 "$scratch/events")"
finish
