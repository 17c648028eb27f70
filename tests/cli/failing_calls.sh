# System calls that are interrupted are made again; a system without random numbers is a
# clean error. Needs strace, and a system that lets it trace.
. "$(dirname "$0")/lib.bash"
command -v strace >/dev/null || { echo "strace is not installed"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }

# inject WHAT WORDS...: the program, with faults in its system calls.
inject() {
  strace -f -qq -o "$scratch/trace" -e "inject=$1" "$BELAY_BIN" "${@:2}" \
    >"$scratch/out" 2>"$scratch/err" </dev/null
  rc=$?
  out=$(cat "$scratch/out"; echo x); out=${out%x}
  err=$(cat "$scratch/err")
}

# Every second call of each kind that looks at, opens, reads or writes files. A file is
# replaced (config).
nl=$'\n'
export BELAY_HOME=$scratch/store
umask 077  # modes have to be put right
fired=0
for calls in newfstatat,fstat statx pread64,pwrite64 fdatasync,fsync ftruncate \
    renameat2,unlinkat mkdirat fchmod getdents64 readlinkat getrandom; do
  # The loader's own calls, which it does not make again, are left alone.
  strace -f -qq -o "$scratch/trace" -e "trace=$calls" "$BELAY_BIN" --version >/dev/null
  own=$(wc -l <"$scratch/trace")
  rm -rf "$HOME/.config"
  inject "$calls:error=EINTR:when=$((own + 1))+2" config notice true
  expect_rc 0
  fired=$((fired + $(grep -c INJECTED "$scratch/trace")))
  inject "$calls:error=EINTR:when=$((own + 1))+2" config notice
  expect_rc 0; expect_out "true
"
  # A store is made, written and read, a directory is taken back and forth.
  rm -rf "$BELAY_HOME" "$scratch/src/p"; mkdir -p "$scratch/src/p/d"; cd "$scratch/src/p" || exit 1
  echo old >a; echo gone >d/b; ln -s a l
  for words in on "checkpoint -m start" change "rollback start --yes" undo redo "verify --read-data"; do
    if [ "$words" = change ]; then echo newer >a; rm d/b l; ln -s d l; echo x >c; continue; fi
    # shellcheck disable=SC2086
    inject "$calls:error=EINTR:when=$((own + 2))+2" $words
    expect_rc 0
    fired=$((fired + $(grep -c INJECTED "$scratch/trace")))
  done
  [ "$(cat a d/b)$(readlink l)$(ls)" = "old${nl}gonea$(printf 'a\nd\nl')" ] || fail "$calls: not as it was: $(ls)"
  cd "$scratch/work" || exit 1
done
[ $fired -gt 50 ] || fail "only $fired calls were interrupted"

# The demo asks for random numbers; whatever it began is said, nothing aborts.
inject getrandom:error=EPERM demo
expect_rc 1
expect_in_err "belay: the system gives no random numbers (getrandom): Operation not permitted"
[[ $err == *"internal error"* ]] && fail "called a bug: '$err'"
inject getrandom:error=ENOSYS demo --json
expect_rc 1
expect_py "d['error']['code'] == 'io' and 'random' in d['error']['message']"
finish
