# The benchmark of what git adds: its figures have the promised shape, and a Belay that
# fails, or that writes to the user's repository, makes the run fail.
. "$(dirname "$0")/lib.bash"

programs=$BELAY_BUILD_DIR/bench
for program in lab_run lab_tree lab_limits; do
  [ -x "$programs/$program" ] || { echo "$program is not built"; exit 77; }
done
command -v git >/dev/null || { echo "git is missing"; exit 77; }

bench() { # PROGRAM
  PYTHONDONTWRITEBYTECODE=1 python3 "$BELAY_SOURCE_DIR/bench/git.py" --programs "$programs" \
    --belay "$1" --work "$scratch/lab" --any-fs --no-settle --sizes 200 --rounds 1 \
    --json "$scratch/out" >"$scratch/text" 2>"$scratch/err" </dev/null
  rc=$? out=$(cat "$scratch/text") err=$(cat "$scratch/err")
}

bench "$BELAY_BIN"; expect_rc 0
expect_py "[t['name'] for t in d['trees']] == ['200'] and d['failed'] == []"
expect_py "set(d['trees'][0]['workloads']) == {'nothing', 'ten', 'committed'}"
expect_py "all(w[r]['wall_ms'] > 0 and w[r]['cpu_ms'] > 0 for w in d['trees'][0]['workloads'].values() for r in ('no git', 'git', 'protect', 'refs', 'walk1', 'statlist1'))"
expect_in_out "10 committed"

# --- stand-ins that do wrong, after the first checkpoint
stand_in() { # NAME LINE
  printf '#!/bin/bash\ncase $1 in checkpoint) %s;; esac\nexec %q "$@"\n' "$2" "$BELAY_BIN" >"$1"
  chmod +x "$1"
}
stand_in writer '[ -d .git ] && echo x >>.git/description'
bench "$PWD/writer"; expect_rc 1; expect_in_err ".git was changed by a checkpoint"
stand_in failing '[ -n "$(ls "$BELAY_HOME" 2>/dev/null)" ] && [ -d .git ] && exit 3'
bench "$PWD/failing"; expect_rc 1; expect_in_err "exit 3"
finish
