# `belay config`: list, ask, write.
. "$(dirname "$0")/lib.bash"
file=$HOME/.config/belay/config.toml
nl=$'\n'

run config; expect_rc 0; expect_silent_err
expect_in_out "granularity"
run config --json; expect_rc 0
expect_py "[s for s in d['settings'] if s == {'key':'store.cap','value':'10GiB','source':'default'}]"
expect_py "[s for s in d['settings'] if s == {'key':'exclude','value':[],'source':'default'}]"
expect_py "[s for s in d['settings'] if s == {'key':'max_files','value':2000000,'source':'default'}]"
expect_py "[s for s in d['settings'] if s == {'key':'enabled','value':True,'source':'default'}]"
expect_py "len(d['settings']) == 29"
[ ! -e "$file" ] || fail "listing created $file"

run config granularity; expect_out "tool$nl"
run config granularty; expect_rc 1; expect_in_err "did you mean granularity?"

# --- writing, with private modes whatever the umask ---
(umask 0; "$BELAY_BIN" config granularity turn >/dev/null 2>&1) || fail "cannot write"
[ "$(cat "$file")" = 'granularity = "turn"' ] || fail "wrote $(cat "$file")"
[ "$(stat -c %a "$file")" = 600 ] || fail "mode $(stat -c %a "$file")"
[ "$(stat -c %a "$HOME/.config/belay")" = 700 ] || fail "directory mode"
run config granularity; expect_out "turn$nl"
run config granularity --json
expect_out '{"settings":[{"key":"granularity","value":"turn","source":"user"}]}'"$nl"
run config store.cap 20GiB --json
expect_out '{"settings":[{"key":"store.cap","value":"20GiB","source":"user"}]}'"$nl"
run config tools.Bash false; expect_rc 0
run config tools.Bash; expect_out "false$nl"
run config tools.Other; expect_out "true$nl"
run config -q notice true; expect_rc 0; expect_out ""

# --- comments, order and modes stay; a link stays a link ---
mkdir "$HOME/dotfiles"
printf '# mine\nauto = true  # why\n\n[git]\nrefs = false\n' >"$HOME/dotfiles/belay.toml"
chmod 640 "$HOME/dotfiles/belay.toml"
ln -sf ../../dotfiles/belay.toml "$file"
run config git.refs true; expect_rc 0
run config auto false; expect_rc 0
[ -L "$file" ] || fail "the link was replaced"
[ "$(cat "$file")" = "# mine${nl}auto = false  # why${nl}${nl}[git]${nl}refs = true" ] || fail "$(cat "$file")"
[ "$(stat -Lc %a "$file")" = 640 ] || fail "mode $(stat -Lc %a "$file")"
[ "$(ls -A "$HOME/dotfiles")" = belay.toml ] || fail "left: $(ls -A "$HOME/dotfiles")"
# A link whose file is not there yet: that file is made.
rm "$HOME/dotfiles/belay.toml"
run config max_files; expect_rc 0; expect_out "2000000$nl"
run config max_files 7; expect_rc 0
[ -L "$file" ] || fail "the link was replaced"
[ "$(cat "$HOME/dotfiles/belay.toml")" = "max_files = 7" ] || fail "$(cat "$HOME/dotfiles/belay.toml")"
# Many at once: each counts.
for i in $(seq 1 25); do "$BELAY_BIN" config -q tools.T$i false 2>/dev/null & done; wait
[ "$(grep -c 'T[0-9]* = false' "$HOME/dotfiles/belay.toml")" = 25 ] ||
  fail "settings were lost: $(cat "$HOME/dotfiles/belay.toml")"
[ "$(ls -A "$HOME/dotfiles")" = belay.toml ] || fail "left: $(ls -A "$HOME/dotfiles")"
rm "$file"

# --- what is set says nothing more ---
for words in "max_files 9" "granularity turn" "tools.Bash false" "strict true" "auto false" "deadline_ms 1000" "on_outside keep" "transcripts off" \
    "notice true" "hooks.before_rollback /bin/false" "hooks.on_session_end /bin/true"; do
  run config $words; expect_rc 0; expect_silent_err
  run config $words --json; expect_rc 0; expect_json
done
run doctor --json; expect_py "not any('no effect' in n for n in d['notes'])"
rm "$file"

# --- refused, and nothing written ---
for words in "granularity all" "notice yes" "max_files 0" "store.cap 5%" "store.floor 101%" \
    "deadline_ms -1" "nothing 1" "hooks.after_rollback [[]]"; do
  run config -- $words
  [ "$rc" = 1 ] || fail "$words: exit $rc"
  [ -n "$err" ] || fail "$words: silence"
done
[ ! -e "$file" ] || fail "a refused value created the file"
echo 'notice = maybe' >"$file"
run config; expect_rc 1; expect_in_err "$file:1:"
run config notice true; expect_rc 1
[ "$(cat "$file")" = "notice = maybe" ] || fail "a broken file was changed"
# What was given is shown, whatever it was.
for line in 'max_file_size = 1e9|1000000000' 'store.cap = -1|-1' 'store.cap = true|true' \
    'store.cap = [1]|a list' 'store.floor = "x"|"x"'; do
  echo "${line%|*}" >"$file"
  run config; expect_rc 1; expect_in_err "must be a size like"; expect_in_err ", not ${line#*|}"
done
echo 'enabeld = false' >"$file"
run config enabled; expect_rc 0; expect_out "true$nl"
expect_in_err "$file:1: enabeld is not a setting; did you mean enabled?"
rm "$file"

# --- the project's file ---
run config granularity session --project; expect_rc 0
[ "$(cat .belay.toml)" = 'granularity = "session"' ] || fail "$(cat .belay.toml)"
[ "$(stat -c %a .belay.toml)" = 644 ] || fail "mode $(stat -c %a .belay.toml)"
run config granularity --json
expect_out '{"settings":[{"key":"granularity","value":"session","source":"project"}]}'"$nl"
run config granularity turn; expect_rc 0; expect_in_err "comes first"
run config granularity; expect_out "session$nl"
# Lists add up: nothing comes first.
run config exclude '["a"]' --project; expect_rc 0
run config exclude '["b"]'; expect_rc 0; expect_silent_err
run config exclude; expect_out "[\"b\", \"a\"]$nl"
run config exclude '[]'; sed -i /exclude/d .belay.toml
mkdir elsewhere
run config granularity --root elsewhere; expect_out "turn$nl"
for words in "secrets skip" "hooks.after_rollback evil" "store.cap 1"; do
  run config $words --project; expect_rc 1; expect_in_err "your own settings file"
done

printf 'secrets = "skip"\nhooks.before_rollback = ["touch", "evil"]\nstore.cap = 1\n' >.belay.toml
run config secrets; expect_rc 0; expect_out "local$nl"; expect_in_err ".belay.toml:1: secrets"
run config hooks.before_rollback; expect_out "[]$nl"
run config store.cap; expect_out "10GiB$nl"

# A project cannot make us read, or wait for, something else.
rm .belay.toml; ln -s /etc/passwd .belay.toml
run config; expect_rc 1; expect_in_err "not a regular file"
[[ $err == *root:* ]] && fail "the linked file was shown"
run config notice true --project; expect_rc 1
rm .belay.toml; mkfifo .belay.toml
run config; expect_rc 1; expect_in_err "not a regular file"
rm .belay.toml; mkdir .belay.toml
run config; expect_rc 1
rmdir .belay.toml
head -c 1048577 /dev/zero | tr '\0' '#' >.belay.toml
run config; expect_rc 1; expect_in_err "1 MiB"
head -c 1000000 /dev/zero | tr '\0' '[' >.belay.toml
run config --json; expect_rc 1; expect_py "d['error']['code'] == 'invalid'"
python3 -c 'print("a." * 500000 + "a = 1")' >.belay.toml
run config; expect_rc 1; expect_in_err ".belay.toml:1:"
# A pattern that is too long is called that.
run config exclude "$(head -c 5000 /dev/zero | tr '\0' x)"; expect_rc 1
expect_in_err "a pattern of 5000 bytes; the longest may have 4096"
finish
