#!/usr/bin/env bash
# Hooks under stress: a slice of tests/crash/hooks.py (2,000 events by that name), and
# as root on a full disk, mounted in a namespace of its own.
set -u
: "${BELAY_BIN:?is not set}"
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
python3 "$here/hooks.py" --events 160 --seed 5 || exit 1
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
  unshare -m python3 "$here/hooks.py" --events 40 --seed 6 --full-disk || exit 1
fi
