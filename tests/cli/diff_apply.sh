# Random trees (modes, symlinks, renames, types that change, odd names, empty files): the
# patch between two states, applied to the first, gives the second.
. "$(dirname "$0")/lib.bash"
command -v git >/dev/null || { echo "git is not installed"; exit 77; }
python3 - "$BELAY_BIN" "$scratch" "${BELAY_SEED:-1}" "${BELAY_ROUNDS:-12}" <<'PY' || fail "a patch did not apply"
import os, random, shutil, stat, subprocess, sys
belay, scratch, seed, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
print(f"BELAY_SEED={seed}")
rng = random.Random(seed)
names = ["a", "b b", "c\tc", 'q"q', "back\\slash", "\u00fc", "d.c", "-e", "f", "new\nline", "blank "]

def text():
    lines = [rng.choice(["x", "y", "", "}", "if (a) {", str(rng.randrange(50))]) for _ in range(rng.randrange(30))]
    return ("\n".join(lines) + rng.choice(["\n", ""])).encode()

def paths(top):
    found = []
    for base, dirs, files in os.walk(top):
        for name in files + [d for d in dirs if os.path.islink(os.path.join(base, d))]:
            found.append(os.path.relpath(os.path.join(base, name), top))
    return sorted(found)

def look(top):
    out = {}
    for path in paths(top):
        full = os.path.join(top, path)
        if os.path.islink(full):
            out[path] = ("link", os.readlink(full))
        else:
            out[path] = (bool(os.stat(full).st_mode & stat.S_IXUSR), open(full, "rb").read())
    return out

def remove(full):
    shutil.rmtree(full) if os.path.isdir(full) and not os.path.islink(full) else os.remove(full)

def put(top, swaps):
    path = "/".join(rng.choice(names) for _ in range(rng.randrange(1, 4)))
    full = top
    for part in path.split("/")[:-1]:
        full = os.path.join(full, part)
        if os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full)):
            if not swaps:
                return
            os.remove(full)
        os.makedirs(full, exist_ok=True)
    full = os.path.join(top, path)
    if os.path.lexists(full):
        if os.path.isdir(full) and not os.path.islink(full) and not swaps:
            return
        remove(full)
    if rng.random() < 0.2:
        os.symlink(rng.choice(["a", "nowhere", "b b/c"]), full)
    else:
        open(full, "wb").write(text())
        os.chmod(full, rng.choice([0o644, 0o644, 0o755]))

def edit(top, swaps):
    have = paths(top)
    what = rng.randrange(6)
    if what < 2 or not have:
        return put(top, swaps)
    full = os.path.join(top, rng.choice(have))
    if what == 2:
        os.remove(full)
    elif what == 3 and not os.path.islink(full):
        os.chmod(full, rng.choice([0o644, 0o755]))
    elif what == 4 and not os.path.islink(full):
        data = open(full, "rb").read().split(b"\n")
        data.insert(rng.randrange(len(data) + 1), b"inserted")
        open(full, "wb").write(b"\n".join(data))
    elif what == 5:
        to = os.path.join(os.path.dirname(full), "moved%d" % rng.randrange(1000))
        if not os.path.lexists(to):
            os.rename(full, to)

def prune(top):  # a patch knows no empty directories
    for base, dirs, files in os.walk(top, topdown=False):
        if base != top and not os.listdir(base):
            os.rmdir(base)

def run(*words, cwd, **more):
    return subprocess.run(words, cwd=cwd, capture_output=True, check=True, **more).stdout

for number in range(rounds):
    tool = ["git", "apply", "--whitespace=nowarn"] if number % 3 else ["patch", "-f", "-s", "-p1", "-i"]
    swaps = tool[0] == "git"
    work = os.path.join(scratch, f"round{number}")
    os.mkdir(work)
    for _ in range(25):
        put(work, True)
    prune(work)
    run(belay, "on", cwd=work)
    run(belay, "checkpoint", "-q", cwd=work)
    copy = os.path.join(scratch, f"copy{number}")
    shutil.copytree(work, copy, symlinks=True)
    for _ in range(rng.randrange(1, 15)):
        edit(work, swaps)
    prune(work)
    # patch cannot put a file in the place of a directory that it empties, or the reverse
    def dirs(top):
        return {os.path.relpath(base, top) for base, _, _ in os.walk(top)}
    if dirs(copy) & set(paths(work)) or dirs(work) & set(paths(copy)):
        tool = ["git", "apply", "--whitespace=nowarn"]
    patch = run(belay, "diff", "1", "-q", cwd=work)
    if rng.random() < 0.5:  # from what is stored, not from the disk
        run(belay, "checkpoint", "-q", cwd=work)
        if run(belay, "diff", "2", "1", "-q", cwd=work) != patch:
            sys.exit(f"round {number}: now and its checkpoint differ")
    file = os.path.join(scratch, "p.diff")
    open(file, "wb").write(patch)
    if b"diff --git" in patch:
        done = subprocess.run(tool + [file], cwd=copy, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"round {number}: {tool[0]}: {done.stderr}{done.stdout}\n{patch.decode(errors='replace')}")
    if look(copy) != look(work):
        sys.exit(f"round {number}: {tool[0]} gives another tree\n{patch.decode(errors='replace')}")
PY
finish
