# --session: a checkpoint asked for under another session is not found, in every command that takes both, by whatever name it is asked for.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
root=$scratch/src/project
mkdir -p "$root" && cd "$root" || exit 1
echo one >a
run on; expect_rc 0
event() { printf '%s' "{\"session_id\":\"$1\",\"cwd\":\"$root\",\"hook_event_name\":\"$2\"${3:+,$3}}" | "$BELAY_BIN" hook claude >/dev/null 2>&1 || fail "hook"; }
mine=11111111-1111-4111-8111-111111111111 other=22222222-2222-4222-8222-222222222222
for s in $mine $other; do
  event $s SessionStart '"source":"startup"'
  event $s UserPromptSubmit '"prompt_id":"p1","prompt":"a wish"'
  echo "$s" >>a; event $s Stop
  run checkpoint -m "name of ${s:0:1}" --session $s; expect_rc 0
done
echo later >>a
run checkpoint -m nobodys; expect_rc 0  # of the session that is at work
id=$("$BELAY_BIN" show "name of 1" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
number=$("$BELAY_BIN" show "$id" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["number"])')
when=$("$BELAY_BIN" show "$id" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["created_at"])')

# Every command that has a REF and --session is among these.
known="cat delete diff export fork list ls note pin purge rollback search show unpin checkpoint"
for c in $("$BELAY_BIN" completions bash | grep -o '^ *[a-z-]*)' | tr -d ' )' | sort -u); do
  "$BELAY_BIN" "$c" --help 2>/dev/null | grep -q "^ *--session ID" || continue
  case " $known " in *" $c "*) ;; *) fail "$c takes --session and is not tested here" ;; esac
done

print() { find . -type f -exec sha256sum {} + | sort; "$BELAY_BIN" list --json | python3 -c 'import json,sys; print([(c["id"], c["name"], c["note"], c["pinned"]) for c in json.load(sys.stdin)["checkpoints"]])'; ls -A "$scratch/src"; }
print >"$scratch/before"
for ref in "$id" "${id:0:10}" "$number" "name of 1" "session:$mine"; do
  for command in "show REF" "ls REF" "cat REF a" "diff REF" "diff REF now" "diff now REF" "rollback REF --yes --exact" "rollback REF --chat --yes" \
    "rollback REF --both --yes --exact" "fork REF $scratch/src/f" "export REF -o $scratch/src/bundle" "note REF words" "pin REF" "unpin REF" "delete REF"; do
    words=()
    for word in $command; do
      [ "$word" = REF ] && word=$ref
      words+=("$word")
    done
    "$BELAY_BIN" "${words[0]}" --help | grep -q "^ *--session ID" || continue
    run "${words[@]}" --session $other; expect_rc 1
    expect_in_err "has no checkpoint"
  done
done
print | cmp -s - "$scratch/before" || fail "something was done: $(print | diff - "$scratch/before")"

# Under its own session it is found by all of them.
for ref in "$id" "$number" "name of 1"; do
  run show "$ref" --session $mine --json; expect_rc 0; expect_py "d['id'] == '$id' and d['session'] == '$mine'"
done
run fork "name of 1" "$scratch/src/f" --session $mine; expect_rc 0
# And the words that mean one of them mean that session's.
run show latest --session $mine --json; expect_py "d['id'] == '$id'"
run show turn:1 --session $other --json; expect_py "d['session'] == '$other'"
run rollback turn:2 --session $mine --yes; expect_rc 1
run list --session $mine --json; expect_py "all(c['session'] == '$mine' for c in d['checkpoints']) and len(d['checkpoints']) > 0"
# What a record says decides, not the words of who asks: of a session that is not there nothing is found.
run show "$id" --session 33333333-3333-4333-8333-333333333333; expect_rc 1
finish
