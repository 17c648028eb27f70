# The capture benchmark: its figures have the promised shape, and a Belay that misses a
# change, or fails, makes the whole run fail. A stand-in plays Belay; it knows only what
# the benchmark asks for.
. "$(dirname "$0")/lib.bash"

programs=$BELAY_BUILD_DIR/bench
bench=$BELAY_SOURCE_DIR/bench
for program in lab_run lab_tree lab_limits lab_hello; do
  [ -x "$programs/$program" ] || { echo "$program is not built"; exit 77; }
done
command -v git >/dev/null || { echo "git is missing"; exit 77; }

# A tree is a pure function of its numbers, and so are the edits.
for tree in a b; do
  "$programs/lab_tree" gen $tree 60 16 7 || fail "gen"
  "$programs/lab_limits" list $tree $tree.list node_modules || fail "list"
  "$programs/lab_tree" edit $tree $tree.list 7 10 20 3 || fail "edit"
done
diff -r a b >/dev/null || fail "two trees of the same numbers differ"
cmp -s a.list b.list || fail "two lists of the same tree differ"
[ "$(find a -type f | wc -l)" = 77 ] || fail "60 + 16 files and a .gitignore expected"
"$programs/lab_tree" gen c 60 16 7
[ "$(diff -rq a c | wc -l)" = 10 ] || fail "ten edits expected: $(diff -rq a c)"
# Never of the size it had: see lab_tree.cc on peers that would miss it.
diff -rq a c | while read -r _ new _ old _; do
  [ "$(stat -c %s "$new")" -gt "$(stat -c %s "$old")" ] || echo "$new"
done >same; [ -s same ] && fail "edited files that are not longer: $(cat same)"
"$programs/lab_limits" walk a 2 node_modules >"$scratch/out"; out=$(cat "$scratch/out")
expect_py "d['files'] == 61 and d['dirs'] == 5"

# stand_in NAME CHECKPOINT: a program in which `checkpoint -q` runs the given line first.
stand_in() {
  cat >"$1" <<END
#!/bin/bash
case \$1 in
  --version) echo "a stand-in for belay" ;;
  on) mkdir -p "\$BELAY_HOME" ;;
  checkpoint)
    $2
    id=\$(mktemp "\$BELAY_HOME/XXXXXX")
    python3 -S "$bench/lab/tree_id.py" "\$PWD" .git >"\$id" || exit 1
    cp "\$id" "\$BELAY_HOME/first"; echo "\${id##*/}" ;;
  show) echo "{\"id\":\"\$2\",\"tree\":\"\$(cat "\$BELAY_HOME/\$2")\"}" ;;
  list) ;;
  *) exit 2 ;;
esac
END
  chmod +x "$1"
}
stand_in honest ":"
# Misses every change after its first checkpoint, as a wrong stat cache would.
stand_in stale "[ -e \"\$BELAY_HOME/first\" ] && { echo first; exit 0; }"
stand_in failing "exit 3"

bench() { # PROGRAM WORDS...
  local program=$PWD/$1; shift
  PYTHONDONTWRITEBYTECODE=1 python3 "$bench/capture.py" --programs "$programs" \
    --belay "$program" --work "$scratch/lab" --any-fs --no-settle --sizes 200 --rounds 1 \
    --json "$scratch/out" "$@" >"$scratch/text" 2>"$scratch/err" </dev/null
  rc=$? out=$(cat "$scratch/text") err=$(cat "$scratch/err")
}

bench honest --only belay,codemux-core,hermes-core,limit
expect_rc 0
# One Python for all of it: starting one takes a tenth of a second on some machines.
python3 - "$scratch/out" <<'END' || fail "the figures are not as promised"
import json, sys
d = json.load(open(sys.argv[1]))
tree = d["trees"][0]
rows = {"belay", "codemux-core", "hermes-core", "walk1", "walk2", "statlist1", "statlist2"}
assert d["benchmark"] == "capture" and d["version"] == 1 and d["failed"] == []
assert d["machine"]["cores"] >= 1 and d["machine"]["fs"] and d["machine"]["kernel"]
assert tree["name"] == "200" and tree["files"] == 201 and tree["checked"] == 5
assert list(tree["workloads"]) == ["first", "nothing", "one", "ten", "thousand"]
for name, workload in tree["workloads"].items():
    assert set(workload["rows"]) == rows, name
    for key, row in workload["rows"].items():
        assert row["runs"] == len(row["all_wall_ms"]) == 1 and row["failed"] is None, (name, key)
        for field in ("wall_ms", "cpu_ms", "maxrss_kb", "wall_to_walk1", "cpu_to_statlist1",
                      "wall_to_belay"):
            assert row[field] > 0, (name, key, field)
assert tree["workloads"]["ten"]["rows"]["walk1"]["inside_wall_ms"] > 0
assert tree["growth_bytes"]["hermes-core"] > 10 * 512  # ten new blobs
assert {"what", "limit", "is", "values", "verdict"} <= set(tree["targets"][0])
assert any(t["verdict"] == "missed" for t in tree["targets"])  # a script is no rival
assert d["start"]["hello"]["wall_ms"] > 0 and d["start"]["target"]["limit"] == 4
END
expect_in_out "codemux-core"; expect_in_out "Targets:"; expect_in_out "missed"

bench stale --only belay
expect_rc 1; expect_in_err "a full re-hash gives"; expect_in_err "200, one: "

bench failing --only belay,walk1
expect_rc 1; expect_in_out "n/a (exit 3)"
expect_py "d['trees'][0]['rows']['belay']['unavailable'] == 'exit 3' and len(d['failed']) == 1"
expect_py "d['trees'][0]['workloads']['ten']['rows']['walk1']['runs'] == 1"

# Belay itself, as soon as it can show a checkpoint: equal to a full re-hash every time.
run show latest
if [ "$rc" != 2 ]; then
  ln -s "$BELAY_BIN" real
  bench real --only belay,walk1
  expect_rc 0; expect_in_out "5 checkpoints of Belay compared with a full re-hash: all equal"
fi

# The trees stay for the next run, what was stored does not; nothing foreign is touched.
[ -d "$scratch/lab/trees/200" ] || fail "the tree is gone"
[ -z "$(ls -d "$scratch"/lab/run-* 2>/dev/null)" ] || fail "a run left something behind"
mkdir other; : >other/letter
PYTHONDONTWRITEBYTECODE=1 python3 "$bench/capture.py" --work other --any-fs >/dev/null 2>&1
[ "$(ls -A other)" = letter ] || fail "somebody's directory was used"
[ -z "$(find "$bench" -name __pycache__)" ] || fail "compiled files in the sources"
finish
