# The hook benchmark: its figures have the promised shape, and a hook that misses a
# change, makes no checkpoint or a partial one, returns before its work is done, or says
# something, makes the whole run fail. A stand-in plays Belay.
. "$(dirname "$0")/lib.bash"

programs=$BELAY_BUILD_DIR/bench
bench=$BELAY_SOURCE_DIR/bench
for program in lab_run lab_tree lab_limits lab_hello; do
  [ -x "$programs/$program" ] || { echo "$program is not built"; exit 77; }
done
command -v git >/dev/null || { echo "git is missing"; exit 77; }

# stand_in NAME: a program that is told calls and lists them; its name is its fault.
stand_in() {
  cat >"$1" <<END
#!/usr/bin/env -S python3 -S -B
import json, os, signal, sys
sys.path.insert(0, "$bench")
from lab.tree_id import tree_id
fault, word = "$1", sys.argv[1]
log = os.environ.get("BELAY_HOME", ".") + "/calls"
if word == "--version":
    print("a stand-in for belay")
elif word == "on":
    os.makedirs(os.path.dirname(log))
elif word == "checkpoint":
    pass
elif word == "list":
    with open(log) as file:
        print(json.dumps({"checkpoints": [json.loads(line) for line in file]}))
elif word == "hook":
    told = json.load(sys.stdin)
    if told.get("tool_name") != "Bash":
        sys.exit(0)
    if fault == "failing":
        sys.exit(3)
    if fault == "chatty":
        print("done")
    if fault == "hasty" and os.fork() == 0:
        signal.alarm(2)  # ends it
        signal.pause()
    tree = tree_id(os.getcwd(), [".git"])
    if fault == "stale" and os.path.exists(log):
        with open(log) as file:
            tree = json.loads(file.readline())["tree"]
    when = "before" if told["hook_event_name"] == "PreToolUse" else "after"
    if fault != "silent" or not os.path.exists(log):
        with open(log, "a") as file:
            file.write(json.dumps({"tool": {"id": told["tool_use_id"]}, "tree": tree,
                                   "description": when + " Bash",
                                   "partial": fault == "partial"}) + "\n")
END
  chmod +x "$1"
}
for fault in honest stale silent partial hasty chatty failing; do stand_in $fault; done

bench() { # PROGRAM WORDS...
  local program=$PWD/$1; shift
  PYTHONDONTWRITEBYTECODE=1 python3 "$bench/hook.py" --programs "$programs" \
    --belay "$program" --work "$scratch/lab" --any-fs --no-settle --sizes 200 --rounds 2 \
    --json "$scratch/out" "$@" >"$scratch/text" 2>"$scratch/err" </dev/null
  rc=$? out=$(cat "$scratch/text") err=$(cat "$scratch/err")
}

bench honest --only belay,codemux-core,hermes-core,limit
expect_rc 0
python3 - "$scratch/out" <<'END' || fail "the figures are not as promised"
import json, os, sys
d = json.load(open(sys.argv[1]))
tree = d["trees"][0]
assert d["benchmark"] == "hook" and d["failed"] == []
assert tree["name"] == "200" and tree["files"] == 201 and tree["checked"] == 6
assert list(tree["workloads"]) == ["first", "nothing", "ten", "after", "reads"]
limits = {"walk1", "walk2", "statlist1", "statlist2"}
for name, workload in tree["workloads"].items():
    runs = {key: row["runs"] for key, row in workload["rows"].items()}
    expected = {"belay": 2, "hello": 2} if name == "reads" else dict.fromkeys(
        {"belay", "codemux-core", "hermes-core", *limits}, 1 if name == "first" else 2)
    assert {key: count for key, count in runs.items() if count} == expected, (name, runs)
by_name = {t["what"]: t for t in tree["targets"]}
assert set(by_name["times faster than codemux"]["values"]) == {"nothing", "ten", "after"}
assert by_name["times faster than codemux"]["verdict"] == "missed"  # a script is no rival
# With a sanitizer there is no static one.
assert by_name["times a static hello"]["values"]["reads"] > 4 or os.environ.get("BELAY_SANITIZED")
END
expect_in_out "10 by the call"; expect_in_out "Targets:"
expect_in_out "6 checkpoints of Belay compared with a full re-hash: all equal"

bench stale --only belay; expect_rc 1; expect_in_err "200, ten: "; expect_in_err "a full re-hash gives"
bench silent --only belay; expect_rc 1; expect_in_err "cannot be shown"
bench partial --only belay; expect_rc 1; expect_in_err "it is partial"
bench hasty --only belay; expect_rc 1; expect_in_err "returned before its work was done"
bench chatty --only belay; expect_rc 1; expect_in_err "said b'done"
bench failing --only belay,walk1; expect_rc 1; expect_in_err "200: belay: exit 3"
expect_py "d['trees'][0]['rows']['belay']['unavailable'] == 'exit 3' and len(d['failed']) == 1"
expect_py "d['trees'][0]['workloads']['ten']['rows']['walk1']['runs'] == 2"

ln -s "$BELAY_BIN" real
bench real --only belay,walk1; expect_rc 0
expect_in_out "6 checkpoints of Belay compared with a full re-hash: all equal"
finish
