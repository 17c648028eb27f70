# `belay doctor`: coverage, settings, and what is in the way.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
real=$(pwd -P)
file=$HOME/.config/belay/config.toml
too_wide() { awk 'length($0) > 80 { print; found = 1 } END { exit !found }' "$scratch/out"; }

mkdir -p node_modules/pkg src nested "$HOME/.config/belay"
head -c 50000 /dev/zero >node_modules/pkg/big.js; : >node_modules/pkg/small.js
echo x >src/a.c; echo y >a.o; echo '*.o' >.gitignore; echo t >.env; mkfifo pipe
git -C nested -c init.defaultBranch=main init -q

# A look creates nothing, and works without anything being there.
run doctor; expect_rc 0; expect_silent_err; too_wide && fail "wider than 80 columns"
expect_in_out "not protected: $real"; expect_in_out "would be covered: 3 files"; expect_in_out "nothing is in the way"
[ ! -e "$BELAY_HOME" ] || fail "a store was made"
BELAY_HOME=/proc/belay/store run doctor; expect_rc 1; expect_in_out "cannot be made: /proc"
run doctor --root /; expect_rc 0; expect_in_out "--root"
run doctor --root "$HOME" --json; expect_rc 0; expect_py "d['coverage'] is None"

"$BELAY_BIN" on >/dev/null
run doctor; expect_rc 0; expect_in_out "protected: $real"; expect_in_out "covered: 3 files"
expect_in_out "node_modules/"; expect_in_out "default_excludes:1:node_modules/"; expect_in_out "by its own git's rules: nested/"
expect_in_out "1 of them may hold secrets"; expect_in_out "openat2"; expect_in_out "inotify"; expect_in_out "agents"
run doctor --json; expect_rc 0; expect_silent_err
expect_py "d['protected'] and d['root'] == '$real' and all(a['hooks'] == 'none' and a['project']['hooks'] == 'none' for a in d['agents']) and len(d['agents']) == 9 and d['problems'] == []"
expect_py "[(o['path'],o['why'],o['rule'],o['files'],o['bytes']) for o in d['coverage']['left_out']] == [('node_modules','excluded','default_excludes:1:node_modules/',2,50000),('a.o','ignored','.gitignore:1:*.o',1,2),('pipe','special',None,1,0)]"
expect_py "(d['coverage']['files'], d['coverage']['secrets'], d['coverage']['left_out_files'], d['coverage']['nested']) == (3, 1, 4, ['nested'])"
expect_py "all(k in d['system'] for k in ('kernel','openat2','statx','reflink','inotify_watches','inotify_instances'))"
expect_py "all(k in d['store'] for k in ('path','bytes','cap','floor','free','read_only','network','file_system'))"
expect_py "len(d['settings']) == 29 and all(s['source'] == 'default' for s in d['settings'])"
[ -z "$(find "$BELAY_HOME" -name '*.tmp')" ] || fail "something is left in the store"

# The figures are those of a checkpoint.
run checkpoint --json; expect_py "d['files'] == 3"
run why node_modules a.o pipe --json; expect_py "[p['why'] for p in d['paths']] == ['excluded','ignored','special']"

# Tracked files in a directory that is left out are counted as covered.
mkdir -p "$scratch/repo/dist"; (cd "$scratch/repo" || exit; git -c init.defaultBranch=main init -q; echo 1 >dist/kept; echo 2 >dist/gone; git add -f dist/kept)
run doctor --root "$scratch/repo" --json; expect_py "d['coverage']['files'] == 1 and [(o['path'],o['files']) for o in d['coverage']['left_out']] == [('dist',1)]"

# --- settings: which, from where; what makes no sense is repaired ---
echo 'exclude = ["tmp/"]' >"$file"; echo 'max_files = 100' >.belay.toml
run doctor; expect_rc 0; expect_in_out 'exclude = ["tmp/"] (user)'; expect_in_out "max_files = 100 (project)"
printf '# mine\nnotice = maybe\ngranularity = "turn"\n\nmax_files = "many"\n' >"$file"; chmod 640 "$file"
cp "$file" "$scratch/was"
run status; run checkpoint; expect_rc 1
run doctor --dry-run; expect_rc 1; expect_in_out "$file:2:"; cmp -s "$file" "$scratch/was" || fail "a look changed the settings"
cp "$file" "$scratch/typos"; run doctor; expect_rc 0; expect_in_out "not set"; expect_in_out "notice is false now"; cp "$scratch/typos" "$file"
run doctor --json; expect_rc 0; expect_py "len(d['repaired']) == 2 and d['problems'] == []"
[ "$(cat "$file")" = $'# mine\n# notice = maybe\ngranularity = "turn"\n\n# max_files = "many"' ] || fail "$(cat "$file")"
[ "$(stat -c %a "$file")" = 640 ] || fail "mode $(stat -c %a "$file")"
run config granularity; expect_out $'turn\n'
run doctor --json; expect_rc 0; expect_py "d['repaired'] == []"
echo 'enabeld = true' >>"$file"; run doctor; expect_rc 0; expect_in_out "enabeld is not a"
rm "$file"
# A project's file is the project's.
echo 'max_files = "many"' >.belay.toml
run doctor; expect_rc 1; expect_in_out ".belay.toml:1:"
[ "$(cat .belay.toml)" = 'max_files = "many"' ] || fail "the project's file was changed"
rm .belay.toml
"$BELAY_BIN" config -q enabled false; run doctor; expect_rc 0; expect_in_out "enabled = false"; "$BELAY_BIN" config -q enabled true

# --- a damaged store ---
rm "$BELAY_HOME/manifest"; run doctor; expect_rc 3; expect_in_out "belay repair"
run doctor --json; expect_rc 3; expect_py "d['problems']"
finish
