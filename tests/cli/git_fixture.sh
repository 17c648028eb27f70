# What lib.bash looks at around every `run`: a program that touches git is noticed.
command -v git >/dev/null || { echo "git is not installed"; exit 77; }
. "$(dirname "$0")/lib.bash"

real=$BELAY_BIN lib=$(cd "$OLDPWD" 2>/dev/null; cd "$(dirname "$0")" && pwd)/lib.bash
# tries WHAT: how a test ends whose `belay checkpoint` does that in a repository.
tries() {
  printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "$1" "$real" >"$scratch/belay"; chmod 755 "$scratch/belay"
  BELAY_BIN=$scratch/belay bash -c '. "$1"; git init -q -b main . && echo 1 >a && git add a; run on; run ${2-checkpoint}; expect_rc 0; finish' - "$lib" >"$scratch/said" 2>&1
}
tries : || fail "one that touches nothing: $(cat "$scratch/said")"
for what in 'echo x >>.git/config' 'touch .git/index' ': >.git/refs/new' 'echo 2 >b'; do
  tries "$what" && fail "not noticed: $what"
  grep -q "git is not as it was" "$scratch/said" || fail "$what: $(cat "$scratch/said")"
done
finish
