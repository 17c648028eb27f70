# The completions in a real zsh, at a terminal of its own.
. "$(dirname "$0")/lib.bash"
command -v zsh >/dev/null || { echo "zsh is not installed"; exit 77; }
zsh -fc 'zmodload zsh/zpty' 2>/dev/null || { echo "this zsh has no zpty"; exit 77; }
mkdir "$scratch/functions"
run completions zsh; expect_rc 0
cp "$scratch/out" "$scratch/functions/_belay"
cp "$scratch/out" "$scratch/sourced"
touch a-file

# What zsh makes of each line of standard input once TAB and RETURN are pressed: `belay` is
# a function in there that prints its words.
cat >"$scratch/drive" <<'END'
zmodload zsh/zpty
scratch=$1 how=$2
zpty z zsh -f -i
wait_for() {
  local line
  text=
  while [[ $text != *"$1"* ]]; do zpty -r z line || exit 1; text+=$line; done
}
zpty -w z "unsetopt beep prompt_cr prompt_sp; PS1= PS2= RPS1="
zpty -w z "autoload -Uz compinit"
[[ $how = autoload ]] && zpty -w z "fpath=($scratch/functions \$fpath)"
zpty -w z "compinit -u -d $scratch/dump-$how"
[[ $how = source ]] && zpty -w z ". $scratch/sourced"
zpty -w z "setopt no_auto_menu no_list_ambiguous; bindkey -e; bindkey '^I' complete-word"
zpty -w z "zstyle ':completion:*' completer _complete"
zpty -w z "belay() { print -r -- \"BEG\"\"IN=\$*=EN\"\"D\"; }"
zpty -w z "print READ\"\"Y"
wait_for READY
while IFS= read -r words; do
  zpty -w -n z "belay $words"$'\t'$'\n'
  wait_for '=END'
  text=${text##*BEGIN=}
  print -r -- "${text%%=END*}"
done
zpty -d z
END

lines=() expected=()
check() { lines+=("$1"); expected+=("$2"); }

check "statu" "status"
check "--root . statu" "--root . status"
check "verify --read" "verify --read-data"
check "status --js" "status --json"
check "config store.c" "config store.cap"
check "config granularity tu" "config granularity turn"
check "config auto f" "config auto false"
check "config auto stor" "config auto stor"
check "completions z" "completions zsh"
check "help conf" "help config"
check "serv" "serv"
check "summar" "summarize"
check "on a-f" "on a-file"

for how in autoload source; do
  printf '%s\n' "${lines[@]}" | timeout 120 zsh -f "$scratch/drive" "$scratch" $how >"$scratch/made" ||
    fail "zsh ended: $(cat "$scratch/made")"
  mapfile -t made <"$scratch/made"
  for i in "${!lines[@]}"; do
    got=${made[i]-}
    [ "${got% }" = "${expected[i]}" ] ||
      fail "belay ${lines[i]}<TAB> ($how) makes '$got', not '${expected[i]}'"
  done
done
finish
