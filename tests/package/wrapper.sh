#!/usr/bin/env bash
# ./belay builds when it must, never otherwise, and hands everything on. The
# compiler and the package manager are stand-ins that count their calls.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
fail() { printf 'FAILED: %s\n' "$*" >&2 && exit 1; }

clone="$work/a clone"
fake=$work/fake
mkdir -p "$clone"/{tools,src/base,cmake} "$fake"
cp "$BELAY_SOURCE_DIR/belay" "$clone/"
cp "$BELAY_SOURCE_DIR"/tools/{setup.sh,packages} "$clone/tools/"
touch "$clone"/{CMakeLists.txt,CMakePresets.json,src/base/a.cc,src/base/b.cc}
unset BELAY_LOCK_HELD
export FAKE=$fake PATH=$fake:$PATH

cat >"$fake/cmake" <<'END'
#!/usr/bin/env bash
echo "$*" >>"$FAKE/cmake.calls"
[[ -e $FAKE/broken ]] && echo "a.cc:1: error: broken" && exit 1
if [[ $1 == --preset ]]; then
  mkdir -p build/release
  echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt
  : >build/release/build.ninja
else
  mkdir "$FAKE/building" || exit 9   # two builds at once
  sleep 0.2
  mkdir -p "$2/bin"
  printf '#!/bin/sh\npwd; printf "<%%s>" "$@"\nexit 3\n' >"$2/bin/belay"
  chmod +x "$2/bin/belay"
  rmdir "$FAKE/building"
fi
END
cat >"$fake/dpkg-query" <<'END'
#!/usr/bin/env bash
shift 2
for package; do
  [[ -e $FAKE/lacks-ninja && $package == ninja-build ]] || echo "$package installed"
done
END
cat >"$fake/apt-get" <<'END'
#!/usr/bin/env bash
echo "$*" >>"$FAKE/apt.calls"
[[ $1 == install && ! -e $FAKE/updated ]] && echo "E: Unable to locate package" && exit 100
[[ $1 == update ]] && : >"$FAKE/updated"
[[ $1 == install ]] && rm -f "$FAKE/lacks-ninja"
exit 0
END
cat >"$fake/sudo" <<'END'
#!/bin/sh
exit 1
END
chmod +x "$fake"/*

calls() { [[ -e $fake/$1.calls ]] && wc -l <"$fake/$1.calls" || echo 0; }
run() { # run DIR COMMAND…: output in $out, errors in $err, status in $status
  local dir=$1
  shift
  status=0
  out=$(cd "$dir" && "$@" 2>"$work/err" </dev/null) || status=$?
  err=$(cat "$work/err")
}
# File times advance in steps of a few milliseconds: waits until a new file is newer than
# the last build.
tick() {
  until : >"$work/probe" && [[ $work/probe -nt $clone/build/release/stamp ]]; do :; done
}

mkdir "$work/else where"
run "$work/else where" "$clone/belay" one "two  words" ''
[[ $out == "$work/else where"$'\n''<one><two  words><>' ]] || fail "arguments: $out"
[[ $status == 3 ]] || fail "exit code $status"
[[ -z $err ]] || fail "not quiet: $err"
[[ $(calls cmake) == 2 ]] || fail "first use: $(calls cmake) calls"
# What README says to run after it, cmake --install, builds nothing.
grep -q 'belay_docs' "$fake/cmake.calls" || fail "no man pages to install"

run / "$clone/belay"
[[ $(calls cmake) == 2 ]] || fail "built again without a change"

ln -s "a clone/belay" "$work/link"
mkdir "$work/bin" && ln -s ../link "$work/bin/belay"
run / "$work/bin/belay" x
[[ $out == $'/\n<x>' && $(calls cmake) == 2 ]] || fail "through two links: $out $err"

changes() { # changes WHAT: the next call builds once, the one after it not
  local before
  before=$(calls cmake)
  run / "$clone/belay"
  (($(calls cmake) == before + 1)) || fail "not rebuilt after $1"
  run / "$clone/belay"
  (($(calls cmake) == before + 1)) || fail "rebuilt twice after $1"
  tick
}
tick
touch "$clone/src/base/a.cc" && changes "an edit"
rm "$clone/src/base/b.cc" && changes "a deletion"
touch "$clone/CMakeLists.txt" && changes "a change of the build"
rm "$clone/build/release/bin/belay" && changes "the loss of the program"

rm "$clone/build/release/bin/belay"
before=$(calls cmake)
(cd / && "$clone/belay" >/dev/null || [[ $? == 3 ]]) &
run / "$clone/belay"
[[ $status == 3 ]] || fail "two at once: $err"
wait $! || fail "two at once, the other"
[[ ! -d $fake/building ]] || fail "two builds ran at once"

touch "$fake/broken" "$clone/src/base/a.cc"
run / "$clone/belay"
[[ $status == 1 && $err == *"a.cc:1: error: broken"* && -z $out ]] || fail "broken: $err"
rm "$fake/broken"
run / "$clone/belay"
[[ $status == 3 ]] || fail "did not recover from a broken build: $err"

mv "$clone" "$work/moved"
clone=$work/moved
tick && touch "$clone/src/base/a.cc"
run / "$clone/belay"
[[ $status == 3 && $(tail -n 2 "$fake/cmake.calls" | head -n 1) == "--preset release" ]] ||
  fail "a moved clone was not configured again: $err"

# Packages: an index that is missing is fetched, and only then.
((EUID == 0)) || { echo "passed, without the package part: not root" && exit 0; }
tick && touch "$fake/lacks-ninja" "$clone/src/base/a.cc"
run / "$clone/belay"
[[ $status == 3 && -z $err ]] || fail "install: $err"
[[ $(cut -d' ' -f1 "$fake/apt.calls" | xargs) == "install update install" ]] ||
  fail "apt-get was called: $(cat "$fake/apt.calls")"
[[ $(tail -n 1 "$fake/apt.calls") == *" ninja-build" ]] || fail "installed something else"

command -v setpriv >/dev/null || { echo "passed, without setpriv" && exit 0; }
# Somebody else's clone that must be built: told whose it is, not which call failed.
tick && touch "$clone/src/base/a.cc"
run / setpriv --reuid=65534 --regid=65534 --clear-groups "$clone/belay"
[[ $status == 1 && $err == "belay: this clone must be built, and $clone/build cannot be "* &&
  $err == *"clone it yourself"* ]] || fail "a clone of root: $err"
tick && touch "$fake/lacks-ninja" "$clone/src/base/a.cc"
chown -R 65534:65534 "$clone"
chmod 777 "$fake" && chmod 666 "$fake"/*.calls
run / setpriv --reuid=65534 --regid=65534 --clear-groups "$clone/belay"
[[ $status == 1 ]] || fail "not root: exit $status $err"
[[ $(tail -n 1 <<<"$err") == "  apt-get install --no-install-recommends ninja-build" ]] ||
  fail "not root: $err"
echo "passed"
