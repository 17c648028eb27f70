# Where there is not enough memory, or no further thread: said in words, with what may be
# the reason, and what was stored before is there.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml
(ulimit -v 4000000 && "$BELAY_BIN" --version >/dev/null 2>&1) || { echo "a limit of memory keeps this build from starting"; exit 77; }
mkdir project; cd project || exit 1
run on; expect_rc 0
echo 1 >first
run checkpoint -m before; expect_rc 0
python3 - <<'PY'
import os
for d in range(40):
    os.makedirs(f"d{d}")
    for i in range(300):
        with open(f"d{d}/{'x' * 100}{i}", "w") as f:
            f.write(str(d * 1000 + i))
with open("big", "wb") as f:
    f.write(os.urandom(30_000_000))
PY
said=0
for limit in $(seq 20000 4000 80000); do
  ( ulimit -v "$limit"; exec "$BELAY_BIN" checkpoint -m late --json ) \
    >"$scratch/out" 2>"$scratch/err"
  rc=$?; err=$(cat "$scratch/err")
  case $rc in
    0) break ;;
    127 | 139) continue ;;  # the loader had too little
    1) expect_in_err "limits may be set: ulimit -v"
       expect_py "d['error']['code'] == 'io' and 'ulimit' in d['error']['hint']"
       said=$((said + 1)) ;;
    *) fail "exit code $rc with $limit KiB: $(head -c 300 "$scratch/err")" ;;
  esac
done
[ "$said" -gt 0 ] || { echo "no limit lets this build start and no more"; exit 77; }
run list --json; expect_rc 0; expect_in_out before
run verify --read-data; expect_rc 0
finish
