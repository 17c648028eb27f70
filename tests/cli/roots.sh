# on, off, roots and status: which directories are protected.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
real=$(pwd -P)
nl=$'\n'

# Nothing yet: no store is made by looking, nor by a command that is refused.
run roots; expect_rc 0; expect_in_out "belay on"
run roots --json; expect_rc 0; expect_out "{\"roots\":[]}$nl"
run off; expect_rc 1; expect_in_err "is not protected"
run checkpoint; expect_rc 1; expect_in_err "belay on"
run list; expect_rc 1
[ ! -e "$BELAY_HOME" ] || fail "a store was made"

# --- on ---
mkdir -p app/src lib
run on app; expect_rc 0; expect_in_out "protected: $real/app"
run on app; expect_rc 0; expect_in_out "already"
run on app --json; expect_py "d['root'] == '$real/app' and d['protected'] and not d['new']"
run on absent; expect_rc 1
: >file; run on file; expect_rc 1
run status --root app --json; expect_py "d['protected'] and d['last'] is None"
run status --root app; expect_in_out "No checkpoint yet"
cd app/src; run status --json; expect_py "d['root'] == '$real/app' and d['protected']"; cd "$real"
run status --root lib --json; expect_py "not d['protected'] and d['root'] == '$real/lib'"

# What nobody means to protect.
run on /; expect_rc 1; expect_in_err "the whole machine"; expect_in_err "--force"
run on "$HOME"; expect_rc 1; expect_in_err "your home directory"; expect_in_err "--force"
run on "$scratch"; expect_rc 1; expect_in_err "holds your home directory"
run on / --json; expect_rc 1; expect_py "d['error']['code'] == 'refused' and '--force' in d['error']['hint']"
run on "$BELAY_HOME"; expect_rc 1; expect_in_err "own store"
run on "$BELAY_HOME" --force; expect_rc 1
run on "$BELAY_HOME/packs" --force; expect_rc 1
for at in /proc /proc/self /proc/sys /sys /sys/kernel /dev; do
  [ -d "$at" ] || continue
  [ "$at" = /dev ] || [[ $(stat -f -c %T "$at") =~ ^(proc|sysfs)$ ]] || continue
  run on "$at"; expect_rc 1; expect_in_err "protect a directory on a disk"
  run on "$at" --force --json; expect_rc 1; expect_py "d['error']['code'] == 'refused'"
done
run roots --json; expect_py "[r['root'] for r in d['roots']] == ['$real/app']"
run on "$HOME" --force; expect_rc 0
run off "$HOME"; expect_rc 0

# --- roots ---
echo one >app/a.txt
(cd app && "$BELAY_BIN" checkpoint -m first >/dev/null) || fail "checkpoint"
run roots; expect_rc 0; expect_in_out "$real/app"; expect_in_out "1 checkpoint, the last 20"
expect_in_out "1 file, 4 B"; expect_in_out "belay roots --all"
run roots --json
expect_py "[(r['root'], r['state'], r['checkpoints'], r['files'], r['bytes']) for r in d['roots']] == [('$real/app', 'protected', 1, 1, 4)]"
expect_py "d['roots'][0]['last']['name'] == 'first' and len(d['roots'][0]['last']['tree']) == 64"
run roots --all --json; expect_py "[(r['root'], r['state'], r['protected']) for r in d['roots']] == [('$HOME', 'off', False), ('$real/app', 'protected', True)]"

# --- gone, and never had a checkpoint ---
mkdir gone; run on gone; expect_rc 0; rmdir gone
run checkpoint --root gone; expect_rc 1; expect_in_err "there is no checkpoint of it"
expect_in_err "belay off $real/gone"
[[ $err == *"rollback latest"* ]] && fail "nothing can be brought back: $err"
run off gone --forget --yes; expect_rc 0

# --- off keeps the history ---
run off app/src; expect_rc 1; expect_in_err "it is a part of $real/app"
run off lib; expect_rc 1; expect_in_err "belay roots"
cd app/src
run off --json; expect_rc 0
expect_py "d['root'] == '$real/app' and d['protected'] is False and d['forgotten'] is None"
run off; expect_rc 1; expect_in_err "is not protected"
run checkpoint; expect_rc 1; expect_in_err "is not protected"
run list --json; expect_rc 0; expect_py "len(d['checkpoints']) == 1"
run cat latest ../a.txt; expect_rc 0; expect_out "one$nl"
cd "$real"
run off app; expect_rc 1; expect_in_err "--forget"
run status --root app --json; expect_py "not d['protected'] and d['last'] is None and d['root'] == '$real/app'"
run status --root app; expect_in_out "not protected: $real/app"; expect_in_out "its history is kept"
run on app --json; expect_py "not d['new'] and d['protected']"
run list --root app --json; expect_py "len(d['checkpoints']) == 1"

# --- the innermost wins; the outer one leaves it alone ---
run on "$real"; expect_rc 0
echo x >outer.txt
run status --root app/src --json; expect_py "d['root'] == '$real/app'"
run checkpoint -q; expect_rc 0
run ls latest; expect_in_out "outer.txt"; [[ $out == *a.txt* ]] && fail "the inner root was entered"
run show latest --json; expect_py "{'path': 'app', 'why': 'other_root'} in d['skipped']"
run why app/a.txt --json; expect_py "not d['paths'][0]['covered'] and d['paths'][0]['why'] == 'outside'"
run off app; expect_rc 0
run checkpoint -q; run ls latest; expect_in_out "app/a.txt"
run on app; run off .; expect_rc 0

# --- moved, gone ---
(cd app && "$BELAY_BIN" checkpoint -q >/dev/null)
mv app moved
run roots --json; expect_py "[r['state'] for r in d['roots'] if r['root'] == '$real/app'] == ['missing']"
run roots; expect_in_out "the directory is gone"
run status --root moved; expect_rc 0; expect_in_out "belay on $real/moved --moved-from $real/app"
run status --root moved --json; expect_py "d['looks_like'] == '$real/app'"; run status --json; expect_py "d['looks_like'] is None"
run checkpoint --root moved; expect_rc 1; expect_in_err "--moved-from"
run list --root app --json; expect_rc 0; expect_py "len(d['checkpoints']) == 2"
run on moved --moved-from app; expect_rc 0; expect_in_out "goes on here"
run list --root moved --json; expect_py "len(d['checkpoints']) == 2 and d['root'] == '$real/moved'"
run on lib --moved-from never; expect_rc 1; expect_in_err "was never protected"
# A copy is not a move.
cp -a moved copy; run on copy --moved-from moved; expect_rc 1
expect_in_err "moved is still there"; expect_in_err "belay on $real/copy"
run on copy --moved-from moved --json; expect_py "d['error']['code'] == 'refused'"
run list --root moved --json; expect_py "len(d['checkpoints']) == 2"
# Protected in the new place already: fine as long as nothing was kept there.
mkdir lib2; run on lib2; (cd lib2 && "$BELAY_BIN" checkpoint -q >/dev/null)
mv moved again
run on again; expect_rc 0; expect_in_err "--moved-from $real/moved"
run on lib2 --moved-from moved; expect_rc 1; expect_in_err "history of its own"
run on again --moved-from moved; expect_rc 0; expect_in_out "goes on here"
run list --root again --json; expect_py "len(d['checkpoints']) == 2 and d['root'] == '$real/again'"
run roots --all --json; expect_py "[r['root'] for r in d['roots']].count('$real/again') == 1"
# The old name is a symlink to the new place.
mv again moved; ln -s moved again
run roots --json; expect_py "[r['state'] for r in d['roots'] if r['root'] == '$real/again'] == ['moved']"
run status --root moved; expect_in_out "belay on $real/moved --moved-from $real/again"
run checkpoint --root again; expect_rc 1; expect_in_err "--moved-from $real/again"
run on moved --moved-from again; expect_rc 0; expect_in_out "goes on here"
run list --root again --json; expect_py "len(d['checkpoints']) == 2 and d['root'] == '$real/moved'"
rm again
# Roots inside it go along, those whose directories did; each with its history.
mkdir -p out/in/deep out/stays out/other; for at in out out/in out/in/deep out/stays out/other; do
  echo 1 >"$at/f"; run on "$at"; expect_rc 0
  (cd "$at" && "$BELAY_BIN" checkpoint -q -m "of $at" >/dev/null) || fail "checkpoint"
done
run off out/other; mv out/stays kept; mv out new; mkdir new/stays
run on new --json; expect_py "d['looks_like'] == '$real/out' and d['moved_along'] == []"
run on new --moved-from out; expect_rc 0; expect_in_out "goes on here"
expect_in_out "So does that of $real/out/in, at $real/new/in."; expect_in_out "$real/new/in/deep."
[[ $out == *stays* ]] && fail "another directory was taken for the root that stayed: $out"
for at in in in/deep; do
  run list --root "new/$at" --json; expect_py "[c['name'] for c in d['checkpoints']] == ['of out/$at']"
done
run status --root new/in --json; expect_py "d['root'] == '$real/new/in' and d['protected']"
run checkpoint --root new --json
expect_py "sorted(s['path'] for s in d['skipped']) == ['in'] and d['changed']['deleted'] == 0"
run roots --all --json; expect_py "[r['root'] for r in d['roots'] if '/out' in r['root']] == ['$real/out/stays']"
mv new newer; run on newer --moved-from new --json
expect_py "[m['to'] for m in d['moved_along']] == ['$real/newer/in', '$real/newer/in/deep', '$real/newer/other']"
# What is offered is about the directory that was named, wherever it is pasted.
mkdir "a b"; run on "a b"; expect_in_out "belay checkpoint --root '$real/a b'"
run off "a b" --forget; expect_rc 1; expect_in_err "belay off --forget --yes '$real/a b'"
run off "a b"; expect_in_out "belay on '$real/a b'"
run off "a b"; expect_rc 1; expect_in_err "belay off --forget '$real/a b'"
run status --root "a b"; expect_in_out "belay on '$real/a b'"
cd "a b"; run on; expect_out "protected: $real/a b${nl}Keep the present state with: belay checkpoint$nl"
mkdir sub; cd sub; run off; expect_in_out "belay on '$real/a b'"; cd "$real"
mkdir gone; run on gone; rm -r gone
run status --root gone --json; expect_rc 1; expect_py "d['protected'] and d['root'] == '$real/gone' and 'is gone' in d['failures'][0]['what']"
run status --root gone; expect_rc 1; expect_in_err "the directory is gone"
run doctor --root gone; expect_rc 1; expect_in_out "the directory is gone"
run off gone; expect_rc 0
run status --root gone --json; expect_rc 0; expect_py "not d['protected']"

# --- --forget ---
run off moved --forget; expect_rc 1; expect_in_err "--yes"
run list --root moved --json; expect_py "len(d['checkpoints']) == 2"
run off moved --forget --json; expect_rc 1; expect_py "d['error']['code'] == 'refused'"
ls "$BELAY_HOME"/cache >"$scratch/before"
run off moved --forget --yes --json; expect_rc 0; expect_py "d['forgotten'] == 2"
[ "$(ls "$BELAY_HOME/cache" | wc -l)" = "$(($(wc -l <"$scratch/before") - 1))" ] || fail "its cache is left"
run list --root moved --json; expect_py "d['root'] == '$real'"  # what is around it
run roots --all --json; expect_py "'$real/moved' not in [r['root'] for r in d['roots']]"
run on moved --json; expect_py "d['new']"
run list --root moved --json; expect_py "d['checkpoints'] == []"
run off moved; run off moved --forget --yes; expect_rc 0; expect_in_out "0 checkpoints deleted"

# One that was gone and came back is known again after a move, too.
mkdir back; echo 1 >back/a
run on back; (cd back && "$BELAY_BIN" checkpoint -q -m start >/dev/null)
mv back "$scratch/away"
run rollback start --yes --root back; expect_rc 0
mv back again
run status --root again; expect_in_out "belay on $real/again --moved-from $real/back"
run on again --moved-from back; run off again --forget --yes; expect_rc 0

# On a terminal it asks.
if command -v script >/dev/null; then
  run on moved; (cd moved && "$BELAY_BIN" checkpoint -q >/dev/null)
  ask() { script -qec "'$BELAY_BIN' off '$real/moved' --forget" /dev/null <<<"$1" >"$scratch/out" 2>&1; rc=$?; out=$(cat "$scratch/out"); }
  ask n; expect_rc 1; expect_in_out "[y/N]"; expect_in_out "Delete all 1 checkpoint of"
  run list --root moved --json; expect_py "len(d['checkpoints']) == 1"
  ask y; expect_rc 0; expect_in_out "1 checkpoint deleted"
fi
finish
