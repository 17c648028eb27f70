# What checkpoint, show, list, status and on say where it is easy to say the wrong thing.
. "$(dirname "$0")/lib.bash"
export BELAY_HOME=$scratch/store

# No longer tracked, and still there: left out, in every form.
git init -q .; echo '*.o' >.gitignore; echo 1 >x.o; echo 1 >gone.o; git add -f x.o gone.o .gitignore
run on; run checkpoint -q; expect_rc 0
git rm -q --cached x.o; run checkpoint; expect_in_out "what is staged changed"; expect_in_out "0 files changed"
run show 1; expect_in_out "left out  x.o"; [[ $out == *"deleted"* ]] && fail "$out"
run show 1 --json; expect_py "[c['change'] for c in d['changed_paths']] == ['left_out']"
# Gone for good: deleted.
git rm -q -f gone.o; run checkpoint -q; run show 1; expect_in_out "deleted   gone.o"

# Everywhere the checkpoint is shown it says what it lacks.
mkfifo pipe; run checkpoint -q
for command in "show 1" "list -n 1" status roots "search pipe"; do
  run $command --json; expect_rc 0
  [ "$command" = "search pipe" ] || [[ $out == *'{"path":"pipe","why":"special"}'* ]] ||
    fail "$command: $out"
done
rm pipe

# At the cap: no empty beginning, and what is advised helps.
head -c 3000000 /dev/urandom >big; echo 1 >t; run checkpoint -q
run config store.cap 1MiB; rm t
run checkpoint; expect_rc 5; expect_in_err "belay checkpoint: the store has reached its cap"
advice=$(sed -n 's/.*belay config store.cap \([0-9A-Za-z]*\).*/\1/p' <<<"$err" | head -n 1)
run config store.cap "$advice"; run checkpoint; expect_rc 0
run config store.cap 10GiB; rm big

# One line of at most 80 columns.
long=src/components/dashboard/widgets/__tests__/RevenueByRegionChart.integration.test.tsx
mkdir -p "${long%/*}"; echo 1 >"$long"; run checkpoint
[ "$(awk '{ if (length > most) most = length } END { print most }' <<<"$out")" -le 80 ] || fail "$out"
mkfifo "${long%/*}/RevenueByRegionChart.integration.test.of.a.very.long.name.pipe"; run checkpoint
[ "$(awk '{ if (length > most) most = length } END { print most }' <<<"$out")" -le 80 ] || fail "$out"
expect_in_out "name.pipe (special)"
rm -r src

# A rule file that cannot be obeyed is said.
mkdir sub; mkfifo sub/.belayignore; run checkpoint
expect_in_err "sub/.belayignore is not obeyed (special): what it leaves out is covered"
rm -r sub

# A directory of secrets.
mkdir vault; echo hunter2 >vault/token; run config secret_patterns '["vault/"]'
run why vault/token; expect_in_out "covered      secret      vault/token  (secret_patterns:1:vault/)"
run checkpoint -q; run cat 1 vault/token; expect_rc 1; [[ $out == *hunter2* ]] && fail "shown"
run config secrets skip; run why vault/token; expect_in_out "not covered  secret"

# Git's own directories are none to protect.
for dir in .git .git/hooks; do
  run on "$dir"; expect_rc 1; expect_in_err "a git directory"; expect_in_err "--force"
done

# The offer for one that moved can be pasted.
cd "$scratch"; mkdir "My 'Project"; cd "My 'Project"; run on; run checkpoint -q; cd ..
mv "My 'Project" moved; cd moved; run status
eval "\"\$BELAY_BIN\" ${out##*belay } >/dev/null" || fail "cannot be pasted: $out"
run status; expect_in_out "protected: $PWD"
finish
