# The rollback benchmark: its figures have the promised shape, who leaves something wrong
# is named, and a Belay that does makes the whole run fail. A stand-in plays Belay; it
# keeps copies.
. "$(dirname "$0")/lib.bash"

programs=$BELAY_BUILD_DIR/bench
bench=$BELAY_SOURCE_DIR/bench
for program in lab_run lab_tree lab_limits; do
  [ -x "$programs/$program" ] || { echo "$program is not built"; exit 77; }
done
command -v git >/dev/null || { echo "git is missing"; exit 77; }

# Damage is a pure function of its numbers; diff finds it, and mend takes it back.
for tree in a b c; do
  "$programs/lab_tree" gen $tree 60 0 7 || fail "gen"
done
"$programs/lab_limits" list a list || fail "list"
for tree in a b; do
  "$programs/lab_tree" damage $tree list 7 10 20 5 3 >/dev/null || fail "damage"
done
diff -r a b >/dev/null || fail "the same damage differs"
[ "$("$programs/lab_tree" diff a c differs)" = '{"changed":10,"created":22,"deleted":5}' ] ||
  fail "20 new files, 2 new directories: $("$programs/lab_tree" diff a c differs)"
"$programs/lab_limits" put b c differs pwrite >/dev/null && diff -r b c >/dev/null ||
  fail "put did not bring the tree back"
"$programs/lab_tree" mend a c differs >/dev/null && diff -r a c >/dev/null ||
  fail "mend did not bring the tree back"
chmod 600 a/.gitignore; : >a/.git
[ "$("$programs/lab_tree" diff a c differs .git)" = '{"changed":1,"created":0,"deleted":0}' ] ||
  fail "a mode is a difference, what is skipped is none"

# stand_in NAME ROLLBACK: `rollback` runs the given line after the tree is back.
stand_in() {
  cat >"$1" <<END
#!/bin/bash
keep() { rm -rf "\$BELAY_HOME/\$1"; mkdir -p "\$BELAY_HOME/\$1"
  find . -mindepth 1 -maxdepth 1 ! -name .git -exec cp -a {} "\$BELAY_HOME/\$1" \;; }
back() { find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +
  cp -a "\$BELAY_HOME/\$1/." .; }
case \$1 in
  --version) echo "a stand-in for belay" ;;
  on) mkdir -p "\$BELAY_HOME" ;;
  checkpoint) keep state; echo state ;;
  rollback) [ "\$2 \$3" = "state --yes" ] || exit 2; keep before; back state; $2 ;;
  undo) back before ;;
  *) exit 2 ;;
esac
END
  chmod +x "$1"
}
stand_in honest ":"
stand_in wrong "chmod 600 .gitignore"
stand_in failing "exit 3"

bench() { # PROGRAM WORDS...
  local program=$PWD/$1; shift
  PYTHONDONTWRITEBYTECODE=1 python3 "$bench/rollback.py" --programs "$programs" \
    --belay "$program" --work "$scratch/lab" --any-fs --no-settle --sizes 200 --rounds 1 \
    --json "$scratch/out" "$@" >"$scratch/text" 2>"$scratch/err" </dev/null
  rc=$? out=$(cat "$scratch/text") err=$(cat "$scratch/err")
}

bench honest --only belay,codemux-core,boocode,cline-legacy,limit
expect_rc 0
python3 - "$scratch/out" <<'END' || fail "the figures are not as promised"
import json, sys
d = json.load(open(sys.argv[1]))
tree = d["trees"][0]
rows = {"belay", "belay-undo", "codemux-core", "boocode", "boocode-safe", "cline-legacy",
        "pwrite", "rename"}
assert d["benchmark"] == "rollback" and d["version"] == 1 and d["failed"] == []
assert tree["checked"] == 6  # of undo the rollback before it as well
assert list(tree["workloads"]) == ["ten", "many"]
for name, workload in tree["workloads"].items():
    assert set(workload["rows"]) == rows, name
    for key, row in workload["rows"].items():
        assert row["runs"] == 1 and row["failed"] is None, (name, key)
        assert row["wall_ms"] > 0 and row["cpu_ms"] > 0 and row["wall_to_belay"] > 0, (name, key)
        left = row["wrong"] and row["wrong"]["created"]
        assert left == (110 if (name, key) == ("many", "cline-legacy") else None), (name, key)
assert tree["workloads"]["ten"]["rows"]["pwrite"]["inside_wall_ms"] > 0
assert [t["limit"] for t in tree["targets"]] == [5, 5, 4, 4, 2000]
END
expect_in_out "! cline-legacy"; expect_in_out "Targets:"

bench wrong --only belay
expect_rc 1; expect_in_err "belay did not bring back the tree as it was"
bench failing --only belay,pwrite
expect_rc 1; expect_in_out "n/a (exit 3)"
expect_py "d['trees'][0]['workloads']['ten']['rows']['pwrite']['runs'] == 1"

# Belay itself.
ln -s "$BELAY_BIN" real
bench real --only belay
expect_rc 0; expect_in_out "6 rollbacks and undos of Belay compared byte for byte: all equal"
[ -z "$(find "$bench" -name __pycache__)" ] || fail "compiled files in the sources"
finish
