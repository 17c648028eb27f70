# belay diff: what it shows, what it leaves out, and that it says so.
. "$(dirname "$0")/lib.bash"
unset PAGER BELAY_PAGER

mkdir -p src d empty
seq -f 'line %g' 30 >src/app.c
printf 'bin\0x' >b.bin
echo SECRET=hunter1 >.env
echo x >d/x
ln -s x l
seq -f 'content %g' 20 >ren
echo t >ty
printf k >'na me'
"$BELAY_BIN" on >/dev/null
"$BELAY_BIN" checkpoint -q -m one >/dev/null
cp -a . "$scratch/before"

# Nothing differs: nothing is said to a program, and all is well.
run diff one; expect_rc 0; expect_out ""; expect_silent_err
run diff now; expect_rc 0; expect_out ""
run diff one --json; expect_rc 0
expect_py "d['files'] == [] and d['to'] is None and d['totals'] == {'files':0,'added':0,'deleted':0}"

sed -i 's/line 5$/line five/; s/line 25$/line 25 more/' src/app.c
printf 'bin\0y' >b.bin
echo SECRET=hunter2 >.env
rm -r d && echo nowfile >d
ln -sfn y l
sed -i 's/content 7/CONTENT 7/' ren
mkdir sub && mv ren sub/ren2
rm ty && ln -s src ty
echo kk >'na me'
chmod +x src/app.c
chmod 600 b.bin
printf 'u' >$'\303\274.txt'
: >emptyfile
rmdir empty && mkdir newempty

run diff one; expect_rc 0
for line in "# mode of b.bin: 0644 -> 0600" "Binary files a/b.bin and b/b.bin differ" \
    "new mode 100755" "-line 5" "+line five" "@@ -22,7 +22,7 @@" "similarity index 95%" \
    "rename from ren" "rename to sub/ren2" "deleted file mode 100644" "new file mode 120000" \
    "\\ No newline at end of file" 'diff --git "a/\303\274.txt" "b/\303\274.txt"' \
    "--- a/na me	" "# new empty directory newempty" "# deleted empty directory empty"; do
  expect_in_out "$line"
done
expect_in_err "1 binary file is only marked"
expect_in_err "1 secret is only named"
# Of a secret: hash and size, no byte of it, in no form of the output.
expect_in_out "# secret a/.env b/.env: sha256 $(printf 'SECRET=hunter1\n' | sha256sum | cut -d' ' -f1) (15 bytes) -> sha256 $(sha256sum <.env | cut -d' ' -f1) (15 bytes)"
for form in "" --stat --side-by-side --word --json "--json --stat" --no-renames; do
  run diff one $form
  expect_rc 0
  [[ $out == *hunter* ]] && fail "diff $form shows the secret"
done

# The patch, applied to what was: all but what it says it leaves out.
"$BELAY_BIN" diff one -q >"$scratch/patch" 2>/dev/null
cp -a "$scratch/before" "$scratch/git"
(cd "$scratch/git" && git apply "$scratch/patch") || fail "git apply"
differ=$(diff -rq --no-dereference "$scratch/git" . | grep -v -e '\.env' -e b.bin -e 'Only in.*empty$')
[ -z "$differ" ] || fail "after git apply: $differ"
[ -x "$scratch/git/src/app.c" ] || fail "git apply: mode"
cp -a "$scratch/before" "$scratch/patched"
"$BELAY_BIN" diff one -q -- src sub ren ty 'na me' l emptyfile >"$scratch/patch" 2>/dev/null
(cd "$scratch/patched" && patch -s -p1 -i "$scratch/patch") || fail "patch"
for path in src/app.c sub/ren2 'na me' emptyfile; do
  cmp "$scratch/patched/$path" "$path" || fail "patch: $path"
done
[ "$(readlink "$scratch/patched/l")" = y ] || fail "patch: a changed symlink"
[ "$(readlink "$scratch/patched/ty")" = src ] || fail "patch: a file that became a symlink"
[ -e "$scratch/patched/ren" ] && fail "patch: the old name is still there"

# Paths and globs, as in rollback; from where one stands.
run diff one --name-only -- src; expect_rc 0; expect_out $'src/app.c\n'
run diff one --name-only -- '*.c' 'l'; expect_rc 0; expect_out $'l\nsrc/app.c\n'
(cd src && "$BELAY_BIN" diff one --name-only -- app.c) | grep -qx src/app.c || fail "from a directory below"
run diff one -- nothing; expect_rc 1; expect_in_err "neither side of the comparison has nothing"
run diff one -- /etc; expect_rc 2
run diff one -- 'x*z'; expect_rc 1
run diff one --name-only; expect_rc 0
expect_in_out $'ren\n'; expect_in_out $'sub/ren2\n'; expect_in_out $'\303\274.txt\n'
[ "$("$BELAY_BIN" diff one --name-only --null -- src | od -An -c | tr -d ' \n')" = 'src/app.c\0' ] || fail "--null"

# Other forms.
run diff one --stat; expect_rc 0
expect_in_out " src/app.c       | 4 ++--"; expect_in_out "b.bin           | Bin 5 -> 5 bytes"
expect_in_out "13 paths changed, 8 lines added, 7 deleted"
COLUMNS=200 "$BELAY_BIN" diff one --stat | awk 'length > 80 { exit 1 }' || fail "--stat is wider than 80 off a terminal"
run diff one --word -- src; expect_in_out "line [-5-]{+five+}"; expect_in_out "line 25{+ more+}"
run diff one --side-by-side -- src; expect_in_out "line 5                                 | line five"
run diff one --stat --word; expect_rc 2
run diff one --word --word-porcelain; expect_rc 2
# Text that holds the marks itself: each piece on a line of its own, as git has it.
run diff one --word-porcelain -- src; expect_in_out $'\n line 4\n~\n line \n-5\n+five\n~\n line 6\n~\n'
printf 'a [-x-] b\n{+y+}\n' >marks; "$BELAY_BIN" checkpoint -q -m marks >/dev/null
printf 'a [-x-] c\n{+y+}\n' >marks
run diff marks --word-porcelain -- marks; expect_in_out $'\n a [-x-] \n-b\n+c\n~\n {+y+}\n~'
"$BELAY_BIN" cat marks marks >"$scratch/marks.old"
hunks() { sed -n '/^@@/,$p'; }
diff <(git diff --no-index --word-diff=porcelain "$scratch/marks.old" marks | hunks) <(printf %s "$out" | hunks) ||
  fail "not what git says"
"$BELAY_BIN" delete marks --yes >/dev/null; rm marks
run diff one --null; expect_rc 2
run diff one --no-renames -- ren sub; expect_in_out "deleted file mode"; [[ $out == *rename* ]] && fail "--no-renames"
"$BELAY_BIN" diff one --text -- b.bin | grep -qa -e '--- a/b.bin' || fail "--text"

# JSON: hunks that rebuild the new side.
run diff one --json; expect_rc 0; expect_json
expect_py "[f['status'] for f in d['files'] if f['path'] == 'sub/ren2'] == ['renamed']"
expect_py "[(h['old_start'],h['old_lines'],h['new_start'],h['new_lines']) for f in d['files'] if f['path']=='src/app.c' for h in f['hunks']] == [(2,7,2,7),(22,7,22,7)]"
expect_py "[l for f in d['files'] if f['path']=='l' for h in f['hunks'] for l in h['lines']] == [{'op':'-','text':'x','no_newline':True},{'op':'+','text':'y','no_newline':True}]"
expect_py "[(f['secret'],f['hunks']) for f in d['files'] if f['path']=='.env'] == [(True,None)]"
expect_py "d['totals']['added'] == 8 and d['totals']['deleted'] == 7"

# A heading is bytes of the file.
printf 'caf\xe9 (\n 1\n 2\n 3\n 4\n 5\n' >latin; "$BELAY_BIN" checkpoint -q -m latin >/dev/null; sed -i 's/5/five/' latin
run diff latin --json -- latin; expect_rc 0; expect_json
expect_py "d['files'][0]['hunks'][0]['heading'] == {'bytes': 'Y2Fm6SAo'}"
rm latin

# Between two checkpoints, and backwards.
"$BELAY_BIN" checkpoint -q -m two >/dev/null
run diff one two --name-only; names=$out
run diff two one --name-only; expect_out "$names"
run diff two; expect_out ""
run diff one absent; expect_rc 1
run diff; expect_rc 2

# What a side did not cover is neither new nor deleted.
echo '*.late' >.gitignore
"$BELAY_BIN" checkpoint -q -m three >/dev/null
echo a >a.late
: >.gitignore
run diff three -- a.late; expect_rc 0
expect_out $'# a.late: only the new side has it; the old one left it out (ignored_then)\n'
"$BELAY_BIN" checkpoint -q -m four >/dev/null
echo '*.late' >.gitignore
run diff four -- a.late; expect_out $'# a.late: only the old side has it; the new one does not cover it, and it is there\n'
run diff four --name-only; expect_out $'.gitignore\n'; expect_in_err "1 path is not listed"
run diff four --json -- a.late; expect_py "d['files'][0]['status'] == 'unknown' and d['files'][0]['why'] == 'ignored_now'"
"$BELAY_BIN" checkpoint -q -m five >/dev/null
run diff four five -- a.late; expect_in_out "left it out (ignored_then)"
rm a.late
run diff four -- a.late; expect_in_out "deleted file mode"

# Nothing was stored by looking.
before=$(du -sb "$HOME/.local/share/belay/packs" | cut -f1)
seq 1000 >new.txt
run diff five --stat; expect_in_out "new.txt"
[ "$(du -sb "$HOME/.local/share/belay/packs" | cut -f1)" = "$before" ] || fail "diff stored something"

# On a terminal: colours, a pager, no control characters of others; elsewhere none.
printf 'a\033[31mb\n' >esc.txt
tty() {
  python3 - "$@" <<'PY'
import os, pty, sys
env = dict(os.environ)
words = sys.argv[1:]
while words and "=" in words[0] and not words[0].startswith("/"):
    key, value = words.pop(0).split("=", 1)
    env[key] = value
pid, fd = pty.fork()
if pid == 0:
    os.execve(words[0], words, env)
out = b""
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    out += piece
os.waitpid(pid, 0)
sys.stdout.buffer.write(out)
PY
}
shown=$(tty TERM=xterm BELAY_PAGER=cat "$BELAY_BIN" diff five -- esc.txt)
[[ $shown == *$'\033[32m+a\\x1b[31mb'* ]] || fail "escaped and green: $(printf %q "$shown")"
shown=$(tty TERM=xterm NO_COLOR=1 BELAY_PAGER=cat "$BELAY_BIN" diff five -- esc.txt)
[[ $shown == *$'\033'* ]] && fail "colour in spite of NO_COLOR"
shown=$(tty TERM=xterm "BELAY_PAGER=sed s/^/paged:/" PAGER=false "$BELAY_BIN" diff five -- esc.txt)
[[ $shown == *"paged:"* ]] || fail "BELAY_PAGER: $shown"
shown=$(tty TERM=xterm "PAGER=sed s/^/paged:/" "$BELAY_BIN" diff five -- esc.txt)
[[ $shown == *"paged:"* ]] || fail "PAGER: $shown"
shown=$(tty TERM=xterm PAGER=/nonexistent "$BELAY_BIN" diff five -- esc.txt)
[[ $shown == *"new file mode"* ]] || fail "a pager that is not there: $shown"
shown=$(tty TERM=xterm "$BELAY_BIN" diff now)
[[ $shown == *"No differences."* ]] || fail "nothing to show: $shown"
run diff five -- esc.txt; [[ $out == *$'+a\033[31mb\n'* ]] || fail "bytes as they are off a terminal"

# An empty file that goes, or becomes a symlink: for patch too.
mkdir "$scratch/hollow"; cd "$scratch/hollow" || exit 1
: >gone; : >link; echo x >stays
"$BELAY_BIN" on >/dev/null
"$BELAY_BIN" checkpoint -q -m hollow >/dev/null
cp -a . "$scratch/by-patch"; cp -a . "$scratch/by-git"
rm gone link; ln -s stays link
"$BELAY_BIN" diff hollow -q >"$scratch/patch"
(cd "$scratch/by-patch" && patch -s --batch -p1 -i "$scratch/patch") || fail "patch: an empty file"
(cd "$scratch/by-git" && git apply "$scratch/patch") || fail "git apply: an empty file"
for way in patch git; do
  diff -r --no-dereference "$scratch/by-$way" . || fail "$way: an empty file"
done
finish
