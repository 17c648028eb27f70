# Sourced after tools/setup.sh: throw-away Debian 12 roots for the machine tests.
# Mirror, proxy and name servers are this machine's own, asked for at run time.

chroot_cache=$root/build/chroot
suite=bookworm

# can_chroot: exits 77 with a reason where this machine cannot make one.
can_chroot() {
  ((EUID == 0)) || { echo "chroot tests need root" && exit 77; }
  install_packages build test chroot || exit 1
  command -v debootstrap >/dev/null || { echo "debootstrap is missing" && exit 77; }
  unshare -m true 2>/dev/null || { echo "mount namespaces are not allowed here" && exit 77; }
  mkdir -p "$chroot_cache/archives/partial"
}

# Lines "URI SUITE" of the Debian archives this machine uses.
host_archives() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
    awk -v suite="$suite" '$3 == "main" && $2 ~ "^" suite { print $1, $2 }' | sort -u
}

# make_base FILE PACKAGES…: a tar of a minimal root with PACKAGES, made once.
make_base() {
  local tar=$1 mirror dir
  shift
  [[ -e $tar ]] && return 0
  mirror=$(host_archives | awk -v suite="$suite" '$2 == suite { print $1; exit }')
  [[ -n $mirror ]] || { echo "this machine's apt knows no $suite archive" && exit 77; }
  dir=$(mktemp -d "$chroot_cache/base.XXXXXX")
  local include=$*
  local proxy
  proxy=$(apt-config dump --format '%v' Acquire::http::Proxy)
  if ! http_proxy=${http_proxy:-$proxy} debootstrap --variant=minbase \
    ${include:+--include="${include// /,}"} "$suite" "$dir" "$mirror" \
    >"$log_dir/debootstrap" 2>&1; then
    tail -n 20 "$log_dir/debootstrap" >&2
    rm -rf "$dir"
    return 1
  fi
  host_archives | awk '{ print "deb", $1, $2, "main" }' >"$dir/etc/apt/sources.list"
  apt-config dump --format '%f "%v";%n' Acquire | grep -E '::(Proxy|Retries) ' \
    >"$dir/etc/apt/apt.conf.d/90host" || true
  tar -C "$dir" -cf "$tar.new" . && mv "$tar.new" "$tar"
  rm -rf "$dir"
}

# new_chroot BASE: unpacks it; $chroot is its path, gone when the script ends.
new_chroot() {
  chroot=$(mktemp -d "$chroot_cache/work.XXXXXX")
  trap 'rm -rf --one-file-system "$chroot"' EXIT
  tar -C "$chroot" -xf "$1"
  chmod 755 "$chroot"
  cp -L /etc/resolv.conf /etc/hosts "$chroot/etc/" 2>/dev/null || true
}

# inside COMMAND…: runs it in $chroot with its own mounts and processes, which end
# with it. /mnt/clone is this clone, read-only; downloaded packages are kept.
inside() {
  unshare --mount --pid --fork --kill-child bash -c '
    set -e
    chroot=$1 root=$2 archives=$3
    shift 3
    mount -t proc proc "$chroot/proc"
    mount --rbind /sys "$chroot/sys"
    mount --rbind /dev "$chroot/dev"
    mkdir -p "$chroot/mnt/clone"
    mount --bind "$root" "$chroot/mnt/clone"
    mount -o remount,bind,ro "$chroot/mnt/clone"
    mount --bind "$archives" "$chroot/var/cache/apt/archives"
    exec chroot "$chroot" env -i HOME=/root LANG=C.UTF-8 \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
  ' bash "$chroot" "$root" "$chroot_cache/archives" "$@" </dev/null
}
