# belay run: a checkpoint before, a program, a checkpoint after.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
echo one >a
run run -- true; expect_rc 1; expect_in_err "not protected"
# What it says to type works, and where it would be refused something else is said.
run run --name 'my own' -- sh -c 'echo "$0" >said' 'a b'; expect_rc 1
mkdir "$scratch/other"; [ ! -e said ] || fail "it was run all the same"
(cd "$scratch/other" && PATH=$(dirname "$BELAY_BIN"):$PATH bash -c "${err##*protect it first: }" >/dev/null 2>"$scratch/err" && [ "$(cat said)" = "a b" ]) || fail "$err: $(cat "$scratch/err")"
mkdir "$scratch/third"; run run --root "$scratch/other/../third" -- true; expect_rc 1; expect_in_err "belay on $scratch/third && belay run --root $scratch/other/../third -- true"
(cd "$HOME" && run run -- true && expect_in_err "your home directory" && expect_in_err "go to the project") || fail "home: $err"
"$BELAY_BIN" on >/dev/null || fail on
run run -- sh -c 'echo two >a; echo out; echo err >&2; exit 7'
expect_rc 7; expect_out "out
"; expect_in_err "err"; expect_in_err "1 file changed; take it back with: belay rollback"
run list --json
expect_py "[c['description'][:5] for c in d['checkpoints']] == ['after', 'befor'] and d['checkpoints'][0]['kind'] == 'auto'"
run rollback 2 --yes; expect_rc 0; [ "$(cat a)" = one ] || fail "not taken back"
run run --name mine --json -- sh -c 'echo three >a; echo out'
expect_rc 0; expect_json; expect_in_err out
expect_py "d['exit_code'] == 0 and d['before']['name'] == 'mine' and d['after']['changed']['modified'] == 1 and not d['before']['partial']"
run rollback mine --yes; expect_rc 0; [ "$(cat a)" = one ] || fail "not taken back by name"
# What cannot be started makes no checkpoint.
count() { "$BELAY_BIN" list --all --json -n 1000 | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["checkpoints"]))'; }
had=$(count); mkdir "$scratch/bin" "$scratch/bin2"; echo 'echo ran >&2' >"$scratch/bin/tool"; mkdir "$scratch/bin/adir"
run run -- "$scratch/nowhere"; expect_rc 127; expect_in_err "nothing was run"
run run -- no-such-program-anywhere; expect_rc 127; run run -- ''; expect_rc 127
run run -- /; expect_rc 126; run run -- "$scratch/bin/tool"; expect_rc 126
run run --json -- nowhere; expect_rc 127; expect_json
PATH=$scratch/bin:$PATH run run -- tool; expect_rc 126; PATH=$PATH:$scratch/bin run run -- adir; expect_rc 126
[ "$(count)" = "$had" ] || fail "a checkpoint was made though nothing ran"
printf '#!/bin/sh\necho ran >&2\n' >"$scratch/bin2/tool"; chmod +x "$scratch/bin2/tool"
PATH=$scratch/bin:$scratch/bin2:$PATH run run -- tool; expect_rc 0; expect_in_err ran
cp "$scratch/bin2/tool" here; PATH=:$PATH run run -- here; expect_rc 0; expect_in_err ran; run run -- ./here; expect_rc 0
rm here; [ "$(count)" = $((had + 6)) ] || fail "not two checkpoints of each run"
run run -- sh -c 'kill -TERM $$'; expect_rc 143
run run; expect_rc 2
run -q run -- true; expect_rc 0; expect_silent_err

# No time to wait for the checkpoint: what the program changes is not in it, and it says
# that it is partial; nothing is deleted by going back to it.
"$BELAY_BIN" config -q run_wait_ms 0
mkdir many; for i in {1..400}; do head -c 20000 /dev/urandom >"many/$i"; done
run run --name late -- sh -c 'for i in 400 399 398; do echo changed >many/$i; done; echo new >many/new; rm many/1'
expect_rc 0
run show late --json
if expect_json && (cd / && python3 -c 'import json,sys; sys.exit(0 if json.load(open(sys.argv[1]))["partial"] else 1)' "$scratch/out"); then
  run rollback late --yes; expect_rc 0
  [ -e many/new ] || fail "a partial checkpoint deleted something"
fi
"$BELAY_BIN" cat late many/400 >"$scratch/400" 2>/dev/null && [ "$(head -c 7 "$scratch/400")" = changed ] && fail "the program's output is in the state before it"

# None from before, one from after: said until a person has gone on.
"$BELAY_BIN" config -q run_wait_ms 2000; "$BELAY_BIN" config -q max_files 100
run run -- sh -c 'rm -r many'; expect_rc 0; expect_in_err "no checkpoint from before"
run status; expect_rc 1; expect_in_out "no checkpoint from before sh -c rm"; expect_in_err "more than 100 files"
run run -- true; expect_rc 0; run status; expect_rc 1
run checkpoint; expect_rc 0; run status; expect_rc 0
"$BELAY_BIN" config -q max_files 2000000

# A copy of the store is put in its place meanwhile: that one has the checkpoint from after.
run run -- sh -c "echo moved >moved; mv '$BELAY_HOME' '$BELAY_HOME.aside'; cp -a '$BELAY_HOME.aside' '$BELAY_HOME'"; expect_rc 0
run list; expect_in_out "1. "; expect_in_out "after sh -c echo moved"
rm -rf "$BELAY_HOME.aside"

# Switched off: it runs, without checkpoints, and says so once.
printf 'enabled = false\n' >.belay.toml
run list --json; before=$(python3 -c 'import json, sys; print(len(json.loads(sys.argv[1])["checkpoints"]))' "$out")
run run -- sh -c 'echo ran >ran; exit 7'; expect_rc 7; [ -e ran ] || fail "not run"
expect_in_err "switched off"; [ "$(grep -c warning <<<"$err")" = 1 ] || fail "$err"
run run --json -- true; expect_rc 0; expect_py "d['before'] is None and d['after'] is None"
run list --json; expect_py "len(d['checkpoints']) == $before"
rm .belay.toml
finish
