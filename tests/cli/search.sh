# belay search and belay list with every filter; the history as a tree.
. "$(dirname "$0")/lib.bash"
run search words; expect_rc 1; expect_in_err "not protected"
run on; expect_rc 0
run search words; expect_rc 0; expect_in_out "No checkpoint mentions that"
mkdir -p src docs
echo 1 >src/login_form.ts; run checkpoint -m start; expect_rc 0
echo 2 >src/login_form.ts; echo x >docs/guide.md; run checkpoint --note 'the tests pass' --session s1; expect_rc 0
rm docs/guide.md; run checkpoint -m 'guide removed'; expect_rc 0
printf x >$'bad\xffname \e[1m.txt'; run checkpoint -m hostile-name; expect_rc 0

found() { expect_rc 0; expect_py "[c['number'] for c in d['checkpoints']] == $1"; }
run search login_form.ts --json; found "[4, 3]"
expect_py "d['checkpoints'][0]['matched'] == {'fields': ['paths'], 'paths': ['src/login_form.ts']}"
run search docs/guide --json; found "[2, 3]"
run search guide --json; found "[2, 3]"
run search tests --json; found "[3]"
run search 'pass tests' --json; found "[3]"
run search '"pass tests"' --json; found "[]"
run search '"tests pass"' --json; found "[3]"
run search log --json; found "[4, 3]"
run search 'log*' form --json; found "[4, 3]"
run search GUIDE --session s1 --json; found "[3]"
run search guide -n 1 --json; found "[2]"; expect_py "d['more'] is True"
run search guide -n 1; expect_in_out "There are more"
run search guide; expect_in_out "guide removed"; expect_in_out "docs/guide.md"
run search bad; expect_rc 0; expect_in_out "hostile-name"
[[ $out == *$'\e'* ]] && fail "an escape sequence reached the terminal"
run search bad --json; expect_py "'bytes' in d['checkpoints'][0]['matched']['paths'][0]"
run search; expect_rc 2
# Symbols alone.
run search '🚀'; expect_rc 0; expect_in_out "No checkpoint mentions that"
echo rocket >r; run checkpoint -m 'ship it 🚀' --note 'ready -> steady'; expect_rc 0
run search '🚀' --json; found "[1]"; expect_py "d['checkpoints'][0]['matched']['fields'] == ['name']"
run search -- '->'; expect_rc 0; expect_in_out "note: ready -> steady"
run delete 1 --yes; expect_rc 0
# A session that nobody knows.
for command in "list" "search guide"; do
  run $command --session nosuch; expect_rc 1; expect_in_err "there is no session nosuch here"
  run $command --session nosuch --json; expect_rc 1; expect_py "d['error']['code'] == 'not_found'"
done
run search nothingofthekind --session s1; expect_rc 0; expect_in_out "No checkpoint mentions that"
run list --session s1 --kind safety; expect_rc 0; expect_in_out "No such checkpoint."
run search x -n 0; expect_rc 2

# Whatever is asked: an answer, never an error of the index.
for words in '"' '""' '*' '^' '(' ')' 'a AND' 'OR' 'NOT a' 'NEAR(a b' '{name}: a' 'name:a' "';--" '\' \
    $'\xff\xfe' $'\n' '%s%n' '$(reboot)' '!!! ???' '日本' '"unclosed'; do
  run search "$words"; expect_rc 0
  [[ $out$err == *fts* || $out$err == *syntax* || $out$err == *catalogue* ]] && fail "'$words': $out$err"
done
run search -- --not-a-flag; expect_rc 0
run search "$(head -c 5000 /dev/zero | tr '\0' a)"; expect_rc 2; expect_in_err "4096 bytes"
# A megabyte, in arguments as long as the system takes.
big=$(head -c 100000 /dev/zero | tr '\0' 'x')
run search "$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big" "$big"; expect_rc 2
run search $(seq 70); expect_rc 2; expect_in_err "64 words"

# --- list
run list --json; expect_py "[c['number'] for c in d['checkpoints']] == [1, 2, 3, 4]"
run list --session s1 --json; expect_py "[c['number'] for c in d['checkpoints']] == [3]"
run list --kind manual -n 2 --json; expect_py "[c['number'] for c in d['checkpoints']] == [1, 2]"
run list --kind safety; expect_in_out "No such checkpoint."
run list --graph --json
expect_py "d['here'] == d['checkpoints'][0]['id'] and [c['parent'] for c in d['checkpoints']] == [c['id'] for c in d['checkpoints'][1:]] + [None]"
run list --graph; expect_rc 0; expect_in_out "* 1."
# A rollback makes a branch: folded, or drawn whole with --all.
run rollback 'guide removed' --yes; expect_rc 0
run list --graph; expect_rc 0
expect_in_out "@ here, after the rollback to 'guide removed'"
expect_in_out "| ~ 1-2 (2 checkpoints) taken back by the rollback to 'guide removed'
|/
* 3."
run list --graph --all; expect_in_out "| o 1."; expect_in_out "| o 2."
run list; expect_in_out "(2 taken back by a rollback"
run list --all; expect_in_out "taken back"
run search hostile; expect_in_out "taken back"
echo new >src/new; run checkpoint -m after; expect_rc 0
run list --graph; expect_in_out "* 1."; expect_in_out "| ~ 2-3"; expect_in_out "* 4."
run list --graph --json
expect_py "d['checkpoints'][0]['parent'] == d['checkpoints'][3]['id'] and d['checkpoints'][1]['taken_back_by']"
run undo; expect_rc 0
run list --graph; expect_in_out "| ~ 1-2 (2 checkpoints) taken back by the undo"
run list --graph -n 1; expect_rc 0
finish

# --- what is found without its accents, or in other capitals, is shown as found
mkdir menu; echo 1 >menu/café.txt
run checkpoint -m 'Crème brûlée' --note 'ЁЛКА, ΆΝΟΙΞΗ'; expect_rc 0
run search cafe --json; expect_py "d['checkpoints'][0]['matched']['paths'] == ['menu/café.txt']"
run search CAFÉ; expect_in_out "menu/café.txt"
run search brulee --json; expect_py "d['checkpoints'][0]['matched']['fields'] == ['name']"
run search 'CREME BRULEE' --json; expect_py "d['checkpoints'][0]['matched']['fields'] == ['name']"
for words in ёлка ανοιξη; do
  run search "$words" --json; expect_py "d['checkpoints'][0]['matched']['fields'] == ['note']"
done
