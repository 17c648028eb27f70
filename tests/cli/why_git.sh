# `belay why` and `belay checkpoint` against git, over random trees and ignore files:
# the same decision by the same rule, and the same files. BELAY_ROUNDS=N for more.
. "$(dirname "$0")/lib.bash"
command -v git >/dev/null || { echo "git is not installed"; exit 77; }

export BELAY_HOME=$scratch/store GIT_CONFIG_NOSYSTEM=1
python3 - "$BELAY_BIN" "$scratch" "${BELAY_SEED:-1}" "${BELAY_ROUNDS:-8}" <<'PY' || fail "they differ"
import json, os, random, shutil, subprocess, sys
belay, scratch, seed, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
names = ["a", "b", "foo", "bar", "foo.o", "bar.log", "dist", "build", "node_modules", "src", "lib", ".env", "x y",
         "\u00e9", "[z]", "*", "foo.c", ".hid", "tmp"]
patterns = ["a", "/b", "foo/", "*.o", "!foo.o", "**/bar", "src/**", "!src/", "lib/*", "!lib/foo", "*", "!*/", "!*.c",
            ".h*", "b?r", "[abc]", "[!a]", "\\*", "x\\ y", "x y ", "foo.o ", "# c", "\\#", "!", "/", "*/foo", "a/**/b",
            "**", "dist", "build/", "node_modules", "!node_modules/", ".env", "\u00e9", "\\[z\\]", "tmp/", "/src/*/",
            "foo*bar", "*.log", "!bar.log"]

def run(program, *words, **options):
    return subprocess.run([program, *words], check=options.pop("check", True), capture_output=True, **options).stdout

def compare(rng):
    work, config = scratch + "/work", scratch + "/home/.config/git"
    os.chdir("/")
    for path in work, config, scratch + "/store":
        shutil.rmtree(path, ignore_errors=True)
    os.makedirs(work)
    os.makedirs(config)
    os.chdir(work)
    run("git", "-c", "init.defaultBranch=main", "init")
    dirs, made = [""], []
    for _ in range(120):
        path = os.path.join(rng.choice(dirs), rng.choice(names))
        if os.path.lexists(path):
            continue
        kind = rng.random()
        if kind < 0.35:
            os.mkdir(path)
            dirs.append(path)
        elif kind < 0.4:
            os.symlink("a", path)
        else:
            open(path, "w").write("x")
        made.append(path)

    def ignore(path):
        with open(path, "w") as file:
            for _ in range(rng.randint(1, 5)):
                file.write(rng.choice(patterns) + rng.choice(["\n", "\n", "\r\n", " \n"]))

    for path in [os.path.join(d, ".gitignore") for d in dirs] + [".git/info/exclude", config + "/ignore"]:
        if rng.random() < 0.4:
            ignore(path)
    run(belay, "on")
    defaults = rng.random() < 0.3
    run(belay, "config", "default_excludes", "true" if defaults else "false")
    run(belay, "config", "secret_patterns", "[]")

    def beyond_a_link(path):
        while path := os.path.dirname(path):
            if os.path.islink(path):
                return True
        return False

    asked = made + [os.path.join(rng.choice(dirs), *rng.choices(names, k=rng.randint(1, 2))) for _ in range(80)]
    asked = [p for p in asked if not beyond_a_link(p)]
    stdin = b"".join(p.encode() + b"\0" for p in asked)
    told = run("git", "check-ignore", "-v", "-n", "-z", "--no-index", "--stdin", input=stdin, check=False).split(b"\0")
    told = [told[i:i + 4] for i in range(0, len(told) - 1, 4)]
    why = json.loads(run(belay, "why", "--json", "--stdin", "-z", input=stdin))["paths"]
    assert len(told) == len(why) == len(asked), (len(told), len(why), len(asked))
    for (source, line, pattern, path), answer in zip(told, why):
        rule = b":".join((source, line, pattern)).decode() if source else None
        if source and not pattern.startswith(b"!"):
            same = (answer["covered"], answer["why"], answer["rule"]) == (False, "ignored", rule)
        else:
            same = (answer["covered"], answer["why"], answer["rule"]) == (True, "covered", rule)
            same = same or (defaults and answer["why"] == "excluded")
        assert same, (path, rule, answer)

    before = run("git", "status", "--porcelain", "--ignored")
    run(belay, "checkpoint")
    held = {p for p in run(belay, "ls", "latest", "-z").split(b"\0") if p and not p.endswith(b"/")}
    if not defaults:
        listed = {p for p in run("git", "ls-files", "-coz", "--exclude-standard").split(b"\0") if p}
        assert held == listed, held ^ listed
    for path, answer in zip(asked, why):
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
            assert answer["covered"] == (path.encode() in held), answer
    assert run("git", "status", "--porcelain", "--ignored") == before
    return len(asked)

decisions = 0
for round in range(rounds):
    print("BELAY_SEED=%d" % (seed + round))
    decisions += compare(random.Random(seed + round))
print("%d decisions" % decisions)
os.chdir("/")
PY
finish
