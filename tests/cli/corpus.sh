# Stores that older versions wrote are opened, verified and gone back to: every
# checkpoint but one, whose git record and attributes were never real ones.
. "$(dirname "$0")/lib.bash"

for store in "$BELAY_SOURCE_DIR"/tests/corpus/store-v*; do
  name=${store##*/}
  cp -a "$store" "$scratch/$name"; chmod -R u+w "$scratch/$name"; chmod 700 "$scratch/$name"
  export BELAY_HOME=$scratch/$name
  mkdir "$scratch/at-$name"; cd "$scratch/at-$name" || exit 1
  here=$PWD
  run on . --moved-from /home/u/p; expect_rc 0
  run verify --read-data; expect_rc 0
  run list --all --json; expect_rc 0
  ids=$(cd / && python3 -c 'import json,sys
for c in json.load(open(sys.argv[1]))["checkpoints"]: print(c["id"], c["name"])' "$scratch/out")
  [ "$(wc -l <<<"$ids")" -ge 4 ] || fail "$name: $ids"
  while read -r id title; do
    run ls "$id" --json; expect_rc 0
    # What it has: path and content's hash, of files.
    wanted=$(cd / && python3 -c 'import json,sys
for e in json.load(open(sys.argv[1]))["entries"]:
  if e["kind"] == "file": print(json.dumps(e["path"]), e["hash"])' "$scratch/out" | LC_ALL=C sort)
    if [ "$title" = full ]; then
      run rollback "$id" --yes --exact; expect_rc 3; expect_in_err "the state of git"
      run rollback "$id" --yes --exact --git keep; expect_rc 3; expect_in_err "its attributes"
      run rollback "$id" --yes --exact --skip-damaged; expect_rc 1; expect_in_out "cannot give it back"
      continue
    fi
    [ -n "$wanted" ] || fail "$name: $title has nothing"
    run rollback "$id" --yes --exact; expect_rc 0
    found=$(cd / && python3 -c 'import base64,hashlib,json,os,sys
top = os.fsencode(sys.argv[1])
for at, dirs, files in os.walk(top):
  for f in files:
    path = os.path.join(at, f)
    if os.path.islink(path): continue
    rel = os.path.relpath(path, top)
    try: shown = rel.decode()
    except UnicodeDecodeError: shown = {"bytes": base64.b64encode(rel).decode()}
    print(json.dumps(shown), hashlib.sha256(open(path, "rb").read()).hexdigest())' "$here" | LC_ALL=C sort)
    while read -r line; do
      grep -qxF -- "$line" <<<"$found" || fail "$name: $title: not there: $line"
    done <<<"$wanted"
  done <<<"$ids"
  run undo; expect_rc 0
  run redo; expect_rc 0
done
finish
