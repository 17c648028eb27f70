# Names, notes, pins and meta of checkpoints; deleting; what `list`, `show`, `log`, `export --notes`
# and a repaired catalogue say of them.
. "$(dirname "$0")/lib.bash"
run on; expect_rc 0
echo 1 >a; run checkpoint -m one --meta k=v; expect_rc 0
echo 2 >a; run checkpoint -m two --note 'first note'; expect_rc 0
echo 3 >a; run checkpoint -m three; expect_rc 0

# Notes: any time, the last wins, empty takes it away.
run note two 'tests pass here'; expect_rc 0; expect_in_out two
run show two --json; expect_py "d['note'] == 'tests pass here' and d['name'] == 'two'"
run note two several plain words; expect_rc 0
run show two --json; expect_py "d['note'] == 'several plain words'"
run note two ''; expect_rc 0; expect_in_out "note taken away"
run show two --json; expect_py "d['note'] is None"
run note two ''; expect_rc 0; expect_in_out "nothing new"
run note two $'line one\nline <two> \e[31m' --json; expect_rc 0
expect_py "d['note'] == 'line one\nline <two> \x1b[31m' and d['number'] == 2 and d['tree']"
run show two; expect_rc 0
[[ $out == *$'\e'* ]] && fail "an escape sequence reached the terminal"

# Names and meta.
run note two --name zwei --meta a=1 --meta b=2; expect_rc 0
run show zwei --json; expect_rc 0
expect_py "d['name'] == 'zwei' and d['meta'] == {'a': '1', 'b': '2'} and d['note']"
run show two; expect_rc 1
run note zwei --meta a=; run show zwei --json; expect_py "d['meta'] == {'b': '2'}"
run note zwei --name 17; expect_rc 2
run note zwei --name latest; expect_rc 2
run note zwei --name x --no-name; expect_rc 2
run note zwei; expect_rc 2; expect_in_err "needs TEXT"
run note zwei --meta nonsense; expect_rc 2
run note nothing-so-called x; expect_rc 1
run note 2 --no-name; expect_rc 0
run show 2 --json; expect_py "d['name'] is None"
run note 2 -m two; expect_rc 0

# Pins.
run pin two; expect_rc 0
run list --json; expect_py "[c['pinned'] for c in d['checkpoints']] == [False, True, False]"
run list; expect_in_out pinned
run pin two --json; expect_rc 0; expect_py "d['pinned'] is True"

# Deleting wants a word, and a pinned one stays.
run delete one; expect_rc 1; expect_in_err "--yes"; expect_in_out one
run delete one --json; expect_rc 1; expect_py "d['error']['code'] == 'refused'"
run delete one two --yes; expect_rc 1; expect_in_err "pinned"; expect_in_err "belay unpin"
run list --json; expect_py "len(d['checkpoints']) == 3"
run delete nothing; expect_rc 1
run delete; expect_rc 2
run note one 'goes soon'
run delete one --yes --json; expect_rc 0
expect_py "len(d['deleted']) == 1 and d['deleted'][0]['name'] == 'one' and d['operation']"
run list --json; expect_py "[c['name'] for c in d['checkpoints']] == ['three', 'two']"
run search soon --json; expect_py "d['checkpoints'] == []"
run unpin two; expect_rc 0

# The log tells of it.
run log; expect_rc 0
for words in "delete 'one'" "note 'two'" "pin 'two'" "unpin 'two'" "rename 'two'"; do expect_in_out "$words"; done
run log --json; expect_rc 0
expect_py "[o['name'] for o in d['operations']][:2] == ['unpin', 'delete']"

# A repaired catalogue gives the same answers.
run list --json; cp "$scratch/out" "$scratch/before"
run log --json; cp "$scratch/out" "$scratch/log"
rm -r "$HOME/.local/share/belay/catalog"
run repair; expect_rc 0
run list --json; cmp -s "$scratch/out" "$scratch/before" || fail "list is another one after repair"
run log --json; cmp -s "$scratch/out" "$scratch/log" || fail "log is another one after repair"
run gc; expect_rc 0
run list --json; cmp -s "$scratch/out" "$scratch/before" || fail "list is another one after gc"
run verify --read-data; expect_rc 0

# What undo needs stays, also when its safety checkpoint and its target go.
run rollback two --yes --json; expect_rc 0
safety=$(python3 -c "import json;print(json.load(open('$scratch/out'))['safety'])")
[ "$(cat a)" = 2 ] || fail "not rolled back"
run delete "$safety" --yes; expect_rc 0
run delete two --yes; expect_rc 0
run gc; expect_rc 0
run list --all --json; expect_py "[c['name'] for c in d['checkpoints']] == ['three'] and d['checkpoints'][0]['taken_back_by']"
run undo; expect_rc 0
[ "$(cat a)" = 3 ] || fail "undo after delete and gc: $(cat a)"
run redo; expect_rc 0
[ "$(cat a)" = 2 ] || fail "redo after delete and gc: $(cat a)"
run undo; expect_rc 0
run verify --read-data; expect_rc 0

# Exported: JSON and Markdown, all or of one session.
run checkpoint -m 'with *stars* & <b>' --session s1; expect_rc 0
run note latest $'first line\n# no heading\n<script>'; expect_rc 0
run export --notes --format json; expect_rc 0; expect_json
expect_py "[n['name'] for n in d['notes']] == ['three', 'with *stars* & <b>'] and d['notes'][1]['note'].startswith('first line')"
run export --notes --json; expect_rc 0; expect_py "len(d['notes']) == 2"
run export --notes --session s1 --json; expect_rc 0
expect_py "len(d['notes']) == 1 and d['session'] == 's1' and d['notes'][0]['session'] == 's1'"
run export --notes --session s2 --json; expect_rc 1; expect_py "d['error']['code'] == 'not_found'"
run export --notes; expect_rc 0
expect_in_out "# Notes on $(pwd -P)"
expect_in_out "## Session s1"
expect_in_out '### with \*stars\* &amp; &lt;b>'
expect_in_out '> first line
> \# no heading
> &lt;script>'
run export --notes --format md --json; expect_rc 2
run export --notes latest; expect_rc 2
run export --notes -o "$scratch/notes.md"; expect_rc 0
run export --notes -o "$scratch/notes.md"; expect_rc 1; expect_in_err "--force"
run export --notes -o "$scratch/notes.md" --force; expect_rc 0
grep -q '^## Session s1' "$scratch/notes.md" || fail "the file lacks the session"

# Figures: honest about little data.
run stats --json; expect_rc 0
expect_py "d['rollback_success_rate'] == 1.0 and d['operations']['rollback'] == 1 and d['operations']['undo'] == 2"
expect_py "d['create']['p95_ms'] is None and d['sessions']['total'] == 1 and d['sessions']['share'] == 1.0"
run stats; expect_rc 0; expect_in_out "100.0 %"; expect_in_out "too few"
run stats --all --json; expect_rc 0; expect_py "d['roots'] == 1 and d['root'] is None"
# A failed checkpoint counts.
run config store.cap 1KiB; expect_rc 0
head -c 100000 /dev/urandom >big
run checkpoint; expect_rc 5
run status --json; expect_py "any('cap' in f['what'] for f in d['failures'])"
run stats --json; expect_py "d['checkpoints']['failed'] == 1"
run config store.cap 1GiB; expect_rc 0
run checkpoint; expect_rc 0
run status --json; expect_py "d['failures'] == []"
# Bytes that are not UTF-8 are not lost in JSON, wherever they stand.
mkdir "$scratch/bytes"; cd "$scratch/bytes" || exit 1
run on; expect_rc 0; echo 1 >f
run checkpoint -m $'n\xff' --note $'t\xff' --session $'s\xff' --meta $'k\xff=v\xff' --meta $'plain=v\xff' --json; expect_rc 0
same="d['name'] == {'bytes': 'bv8='} and d['note'] == {'bytes': 'dP8='} and d['session'] == {'bytes': 'c/8='}"
same="$same and d['meta'] == {'plain': {'bytes': 'dv8='}} and d['meta_bytes'] == [{'key': {'bytes': 'a/8='}, 'value': {'bytes': 'dv8='}}]"
expect_py "$same"
run show latest --json; expect_py "$same"
run list --json; expect_py "(lambda d: $same)(d['checkpoints'][0])"
run sessions --json; expect_py "d['sessions'][0]['id'] == {'bytes': 'c/8='}"
run export --notes --format json; expect_rc 0; expect_py "(lambda d: $same)(d['notes'][0])"
run du --sessions --json; expect_py "{'bytes': 'c/8='} in [s['session'] for s in d['sessions']]"
run export latest -o "$scratch/named.belay" --json; expect_py "d['checkpoints'][0]['name'] == {'bytes': 'bv8='}"
echo 2 >f; run rollback $'n\xff' --yes --exact; expect_rc 0
run log --json; expect_py "d['operations'][0]['label'] == {'bytes': 'bv8='}"
run search n --json; expect_rc 0
# A blank is no name; a session that is not there is no empty list.
for blank in ' ' $'\t' $'  \n'; do
  run checkpoint -m "$blank"; expect_rc 2; expect_in_err "blank"
done
run export --notes --session nosuch; expect_rc 1; expect_in_err "no checkpoint of session 'nosuch'"
run export --notes --session nosuch --format json; expect_rc 1
run export --notes --session $'s\xff'; expect_rc 0
# A backslash is a backslash, and what only looks like an escape is told from one.
mkdir "$scratch/slash" && cd "$scratch/slash" && run on; expect_rc 0
echo 1 >a; run checkpoint -m 'a\b' --note 'match \d+\.ts, not C:\new'; expect_rc 0
run show latest; expect_in_out 'match \d+\.ts, not C:\\new'; expect_in_out '  a\b'
run list; expect_in_out ' a\b  ('
echo 2 >a; run rollback 'a\b' --yes; expect_rc 0
run list --all; expect_in_out "before rollback to"; run search before; expect_in_out "a\b"; run log; expect_in_out "rollback to 'a\b'"
run show 1 --json; expect_py "d['description'] == \"before rollback to 'a\\\\b'\""
run undo; expect_rc 0; expect_in_out "took back the rollback to 'a\b'"
finish
