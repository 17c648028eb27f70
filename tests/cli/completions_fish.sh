# The completions in a real fish.
. "$(dirname "$0")/lib.bash"
command -v fish >/dev/null || { echo "fish is not installed"; exit 77; }
mkdir -p "$HOME/.config/fish/completions" "$HOME/.local/share"
run completions fish; expect_rc 0
cp "$scratch/out" "$HOME/.config/fish/completions/belay.fish"  # where fish looks
ln -s "$BELAY_BIN" "$scratch/belay"
touch a-file

# offered WORDS: what fish offers at the end of the line, without descriptions.
offered() {
  PATH=$scratch:$PATH fish -c 'complete -C "belay $argv"' -- "$1" 2>"$scratch/err" | cut -f1 | sort | tr '\n' ' '
}
check() {
  local got; got=$(offered "$1")
  [ "$got" = "$2" ] || fail "belay $1<TAB> offers '$got', not '$2'; $(cat "$scratch/err")"
}

check "statu" "status "
check "--root . statu" "status "
check "verify --read" "--read-data "
check "status --js" "--json "
check "config store.c" "store.cap "
check "config --project store.c" "store.cap "
check "config auto " "false true "
check "config granularity t" "tool turn "
check "config exclude " ""
check "config auto true " ""
check "completions z" "zsh "
check "help conf" "config "
check "help config " ""
check "serv" ""
check "summar" "summarize "
check "on a-f" "a-file "
finish
