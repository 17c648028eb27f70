#!/usr/bin/env bash
# The install tree, the .deb and the .tar.gz hold what they should and run from
# wherever they are put. The same in a bare chroot: tools/package_test.
set -euo pipefail

if ! grep -q '^CMAKE_BUILD_TYPE:STRING=Release$' "$BELAY_BUILD_DIR/CMakeCache.txt"; then
  echo "only a release build is packaged" && exit 77
fi
command -v dpkg-deb >/dev/null || { echo "dpkg-deb is missing" && exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2 && exit 1; }

expected_version=$("$BELAY_BIN" --version)
runs() { # runs PROGRAM: it works away from the build
  [[ $(cd / && "$1" --version) == "$expected_version" ]] || fail "$1 --version"
}

holds() { # holds DIR: every file a user expects below a prefix
  local path
  for path in bin/belay share/man/man1/belay.1 share/doc/belay/LICENSE \
    share/bash-completion/completions/belay share/zsh/vendor-completions/_belay \
    share/fish/vendor_completions.d/belay.fish; do
    [[ -s $1/$path ]] || fail "$1 has no $path"
  done
  for path in README.md CHANGELOG.md docs; do # as soon as the project has them
    [[ ! -e $BELAY_SOURCE_DIR/$path || -e $1/share/doc/belay/$path ]] ||
      fail "$1 has no share/doc/belay/$path"
  done
}

DESTDIR=$work/stage cmake --install "$BELAY_BUILD_DIR" --prefix /usr >"$work/log" ||
  fail "$(cat "$work/log")"
holds "$work/stage/usr"
runs "$work/stage/usr/bin/belay"

cpack --config "$BELAY_BUILD_DIR/CPackConfig.cmake" -B "$work/packages" >"$work/log" 2>&1 ||
  fail "$(cat "$work/log")"
debs=("$work"/packages/belay_*_*.deb)
tars=("$work"/packages/belay-*.tar.gz)

dpkg-deb -x "${debs[0]}" "$work/deb"
holds "$work/deb/usr"
runs "$work/deb/usr/bin/belay"
[[ $(find "$work/deb" -mindepth 1 -maxdepth 1) == "$work/deb/usr" ]] || fail "files outside usr"
field() { dpkg-deb -f "${debs[0]}" "$1"; }
[[ $(field Package) == belay ]] || fail "Package: $(field Package)"
[[ $expected_version == *"$(field Version)"* ]] || fail "Version: $(field Version)"
[[ ${debs[0]} == *"/belay_$(field Version)_$(dpkg --print-architecture).deb" ]] ||
  fail "named ${debs[0]}"
# libstdc++, OpenSSL, zstd and SQLite are inside the program.
[[ $(field Depends) =~ ^libc6\ \(\>=\ [0-9.]+\)$ ]] || fail "Depends: $(field Depends)"
[[ -n $(field Maintainer) && -n $(field Description) ]] || fail "no maintainer or description"

mkdir "$work/any where"
tar -xzf "${tars[0]}" -C "$work/any where"
top=("$work/any where"/*)
((${#top[@]} == 1)) || fail "more than one directory in the tar.gz"
holds "${top[0]}"
mv "${top[0]}" "$work/moved away"
runs "$work/moved away/bin/belay"

# No directory of the machine that built it, nor a search path for libraries.
if grep -qaF "$BELAY_SOURCE_DIR/" "$work/deb/usr/bin/belay"; then
  fail "the program names $BELAY_SOURCE_DIR"
fi
if LC_ALL=C readelf -d "$work/deb/usr/bin/belay" 2>/dev/null | grep -E 'RPATH|RUNPATH'; then
  fail "the program has a library search path"
fi
echo "passed"
