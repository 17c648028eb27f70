# Names are bytes: whatever a file system takes comes back by ls and cat.
. "$(dirname "$0")/lib.bash"

export BELAY_HOME=$scratch/store
"$BELAY_BIN" on >/dev/null || fail on
python3 - "$BELAY_BIN" "${BELAY_SEED:-1}" <<'PY' || fail "names"
import base64, hashlib, json, os, random, subprocess, sys
belay, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
print("BELAY_SEED=%d" % seed)
held = {}

def put(path, content):
    """path may be longer than PATH_MAX: piece by piece."""
    parts, at = path.split(b"/"), os.open(b".", os.O_RDONLY)
    for part in parts[:-1]:
        try:
            os.mkdir(part, dir_fd=at)
        except FileExistsError:
            pass
        below = os.open(part, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    fd = os.open(parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=at)
    os.write(fd, content)
    os.close(fd)
    os.close(at)
    held[path] = content

one_byte = [bytes([b]) for b in range(1, 256) if b not in b"/."]
for name in one_byte:
    put(b"one/" + name, b"byte " + name)
special = [b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", "\u0440\u0443".encode(), "a\u0301".encode(),
           "\u00e1".encode(), b" ", b"  trailing  ", b"-rf", b"--help", b"...", b"..a", b"\\", b"a\\b", b"new\nline",
           b"tab\t", b"\x1b[31m", b'"quoted"', b"*", b"[a]", b"!not", b"#hash", b"~", b"a:b:1", b"CON", b"x" * 255,
           b"\xff" * 255, b"\n" * 255]
for name in special:
    put(b"special/" + name, b"special " + name)
# Far beyond PATH_MAX, by long names and by many.
deep = b"/".join(bytes([b"abcdefgh"[i % 8]]) * 200 for i in range(60)) + b"/end"
put(b"deep/" + deep, b"the end")
many = b"/".join([b"d"] * 3000) + b"/end"
put(b"many/" + many, b"another end")
while len(held) < 10_000 + 400:
    name = bytes(rng.choices([b for b in range(1, 256) if b != 0x2f], k=rng.randint(2, 40)))
    path = b"random/%d/%s" % (rng.randrange(50), name)
    if path not in held and name not in (b".", b".."):
        put(path, b"random " + name)

def run(*words):
    done = subprocess.run([belay, *words], capture_output=True)
    if done.returncode != 0:
        sys.exit("%r: exit %d: %r" % (words, done.returncode, done.stderr))
    return done.stdout

made = json.loads(run("checkpoint", "--json"))
assert made["files"] == len(held), (made["files"], len(held))
assert made["skipped"] == [], made["skipped"]
listed = run("ls", "latest", "-z").split(b"\0")[:-1]
assert len(listed) == len(held), (len(listed), len(held))
assert set(listed) == set(held), set(listed) ^ set(held)

def path_of(value):
    return value.encode() if isinstance(value, str) else base64.b64decode(value["bytes"])

for ref in "latest", "now":
    entries = {path_of(e["path"]): e for e in json.loads(run("ls", ref, "--json"))["entries"] if e["kind"] == "file"}
    assert set(entries) == set(held), ref
    for path, content in held.items():
        assert entries[path]["hash"] == hashlib.sha256(content).hexdigest(), (ref, path)
text = run("ls", "latest")
assert text.count(b"\n") == len(held)
assert not any(b < 0x20 and b != 0x0a for b in text), "a control character in the list"

asked = [b"one/" + n for n in one_byte] + [b"special/" + n for n in special]
asked += [b"deep/" + deep, b"many/" + many] + rng.sample([p for p in held if p.startswith(b"random/")], 100)
for path in asked:
    assert run("cat", "latest", "--reveal", "--", path) == held[path], path
why = json.loads(subprocess.run([belay, "why", "--json", "--stdin", "-z"], input=b"\0".join(held) + b"\0",
                                capture_output=True, check=True).stdout)["paths"]
assert [path_of(p["path"]) for p in why] == list(held)
assert all(p["covered"] for p in why), [p for p in why if not p["covered"]][:3]
again = json.loads(run("checkpoint", "--json"))
assert again["tree"] == made["tree"] and again["state"] == made["state"]

# There and back: all of it comes, goes and comes again.
def tree():
    return json.loads(run("checkpoint", "--json"))["tree"]

run("checkpoint", "-m", "full")
subprocess.run(["rm", "-rf", b"deep", b"many", b"special"], check=True)
without = tree()
assert json.loads(run("rollback", "full", "--yes", "--json"))["verified"]
assert tree() == made["tree"]
run("undo")
assert tree() == without
run("redo")
assert tree() == made["tree"]
PY
finish
