# Sourced by ./belay, ./test and tools/*, with `root` set to the clone. Nothing here
# prints unless it fails or stderr is a terminal; what it ran is in build/log/.

root=$(cd -P -- "$root" && pwd) || exit 1
log_dir=$root/build/log
if ! mkdir -p "$log_dir" 2>/dev/null || [[ ! -w $log_dir || ! -w $root/build ]] ||
  [[ -e $root/build/lock && ! -w $root/build/lock ]]; then
  printf 'belay: this clone must be built, and %s cannot be written by %s.\n%s\n' \
    "$root/build" "$(id -un 2>/dev/null || id -u)" \
    "Run it once as $(stat -c %U "$root"), or clone it yourself: git clone $root" >&2
  exit 1
fi

# A cache that cannot be written would fail every compilation.
if [[ -z ${CCACHE_DIR:-} && ! -w ${HOME:-/nonexistent} ]]; then
  export CCACHE_DISABLE=1
fi

progress() { [[ -t 2 ]] && printf '\r\033[Kbelay: %s' "$*" >&2; return 0; }
progress_end() { [[ -t 2 ]] && printf '\r\033[K' >&2; return 0; }

# One build or installation at a time in this clone. ./test holds the lock to its end;
# a wrapper that one of its tests runs must not wait for it.
lock() {
  [[ ${BELAY_LOCK_HELD:-} == "$root" ]] && return 0
  exec {lock_fd}>"$root/build/lock" || return 1
  if ! flock -n "$lock_fd"; then
    progress "waiting for another build in this clone…"
    flock "$lock_fd"
  fi
}
unlock() {
  [[ -n ${lock_fd:-} ]] && exec {lock_fd}>&-
  return 0
}

# logged NAME COMMAND…: output to build/log/NAME, shown only when the command fails.
logged() {
  local log=$log_dir/$1
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    progress_end
    tail -n 60 "$log" >&2
    printf 'belay: failed: %s (all of it in %s)\n' "$*" "$log" >&2
    return 1
  fi
}

# missing_packages LEVEL…: those of tools/packages that are not installed.
missing_packages() {
  local wanted=() level package
  while read -r level package; do
    [[ " $* " == *" $level "* ]] && wanted+=("$package")
  done <"$root/tools/packages"
  local have
  have=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null) ||
    true  # one that dpkg never heard of is missing, whatever `set` the caller has
  for package in "${wanted[@]}"; do
    [[ $'\n'$have$'\n' == *$'\n'"$package installed"$'\n'* ]] || printf '%s\n' "$package"
  done
}

apt_install() {
  local apt=("$@")
  local options=(-q -y --no-install-recommends -o DPkg::Lock::Timeout=600)
  # Package lists may be absent (a fresh system) or out of date.
  "${apt[@]}" install "${options[@]}" "${missing[@]}" ||
    { "${apt[@]}" update -q && "${apt[@]}" install "${options[@]}" "${missing[@]}"; }
}

# install_packages LEVEL…: makes sure of them, as far as we may.
install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  local run=(env DEBIAN_FRONTEND=noninteractive apt-get)
  if ((EUID != 0)); then
    local as_root="apt-get install --no-install-recommends ${missing[*]}"
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      run=(sudo -n "${run[@]}")
    elif command -v sudo >/dev/null && [[ -t 0 && -t 2 ]]; then
      local answer
      printf 'belay: the build needs packages that are missing:\n  %s\n' "${missing[*]}" >&2
      read -r -p 'Install them with sudo now? [Y/n] ' answer
      if [[ -n $answer && $answer != [Yy]* ]] || ! sudo -v; then
        printf 'belay: to install them yourself, run:\n  sudo %s\n' "$as_root" >&2
        return 1
      fi
      run=(sudo -n "${run[@]}")
    else
      printf 'belay: packages are missing; run this as root, then try again:\n  %s\n' \
        "$as_root" >&2
      return 1
    fi
  fi
  progress "installing ${missing[*]}…"
  logged install apt_install "${run[@]}"
}

# configure PRESET: a cache that belongs to another place (a moved clone) goes first.
configure() {
  local cache=$root/build/$1/CMakeCache.txt
  if [[ -e $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    rm -rf "${root:?}/build/$1"
  fi
  (cd "$root" && cmake --preset "$1")
}

# The man pages and completions too: cmake --install takes what is there.
compile() { cmake --build "$root/build/release" --target belay belay_docs; }

# build_program: build/release/bin/belay is current afterwards.
build_program() {
  local release=$root/build/release
  lock || return 1
  if [[ -x $release/bin/belay ]]; then
    progress "building…"
  else
    progress "building (first time takes about a minute)…"
  fi
  install_packages build || return 1
  # Dated before the build: an edit made while it runs is noticed next time.
  mkdir -p "$release" && : >"$root/build/stamp" || return 1
  if [[ ! -e $release/build.ninja ]] ||
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$release/CMakeCache.txt"; then
    logged configure configure release || return 1
  fi
  logged build compile || return 1
  mv "$root/build/stamp" "$release/stamp" || return 1
  progress_end
  unlock
}
