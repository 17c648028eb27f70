#!/usr/bin/env bash
# `belay purge`, killed at random moments: what it was to erase is whole, or it is
# published and the next `belay gc` takes it out of every file; a purge that said it was
# done left nothing; nothing else is lost. ROUNDS (12) of them.
set -u
: "${BELAY_BIN:?is not set}" "${BELAY_BUILD_DIR:?is not set}"
search=$BELAY_BUILD_DIR/bin/raw_search
[ -x "$search" ] || { echo "raw_search was not built"; exit 77; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/belay-purge.XXXXXX")
trap 'cd /; rm -rf "$scratch"' EXIT
export BELAY_HOME=$scratch/store BELAY_CONFIG=$scratch/config.toml HOME=$scratch
belay() { "$BELAY_BIN" "$@"; }
mkdir "$scratch/project"; cd "$scratch/project" || exit 1
for d in $(seq 1 40); do
  mkdir "d$d"
  for f in $(seq 1 10); do echo "$d $f" >"d$d/f$f"; done
done
belay on -q >/dev/null
for i in 1 2 3; do
  echo "password=top-secret-word-$i" >.env
  echo $i >code
  belay checkpoint -q -m c$i >/dev/null || exit 1
done
"$search" "$BELAY_HOME" top-secret-word >/dev/null || { echo "not stored at all"; exit 1; }
mv "$BELAY_HOME" "$scratch/template"

before=0 published=0 finished=0 bad=0
wrong() { echo "FAILED round $round: $*"; bad=$((bad + 1)); }
for round in $(seq 1 "${ROUNDS:-12}"); do
  rm -rf "$BELAY_HOME"; cp -a "$scratch/template" "$BELAY_HOME"
  "$BELAY_BIN" purge .env --yes -q >/dev/null 2>&1 &
  pid=$!
  sleep "0.0$(printf %03d $((RANDOM % 400)))"
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null
  rc=$?
  if [ $rc = 0 ]; then
    finished=$((finished + 1))
    "$search" "$BELAY_HOME" top-secret-word && wrong "there though it said it was gone"
  fi
  if belay log | grep -q "purge of"; then
    [ $rc = 0 ] || published=$((published + 1))
    belay gc -q >/dev/null || wrong "gc"
  else
    before=$((before + 1))
    belay cat c2 .env --reveal | grep -q word-2 || wrong "lost, and not purged"
    belay purge .env --yes -q >/dev/null || wrong "purged again"
  fi
  "$search" "$BELAY_HOME" top-secret-word && wrong "not finished"
  belay verify --read-data -q >/dev/null || wrong "damaged"
  [ "$(belay cat c2 code)" = 2 ] || wrong "something else is lost"
done
echo "killed before it was published: $before, after: $published, not killed: $finished, wrong: $bad"
[ $bad = 0 ]
