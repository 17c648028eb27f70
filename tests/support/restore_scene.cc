#include "support/restore_scene.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/sha256.h"
#include "restore/journal.h"
#include "store/verify.h"
#include "support/talk_dir.h"

namespace belay::test {

namespace {

Error Wrong(std::string what) { return Error(Errc::kCorrupt, std::move(what)); }

// --- the tree as text, and as files --------------------------------------------------

Status AppendPath(Fs& fs, const Fd& handle, const FileStat& stat,
                  const std::string& path, const std::string& rest, std::string& out) {
  char line[64];
  const char letter = stat.type == FileType::kDirectory ? 'd'
                      : stat.type == FileType::kSymlink ? 'l'
                      : stat.type == FileType::kRegular ? 'f'
                                                        : '?';
  std::snprintf(line, sizeof line, "%c %04o %u:%u ", letter, stat.mode, stat.uid,
                stat.gid);
  out += line + EscapeForDisplay(path) + rest;
  if (handle.is_open()) {
    BELAY_TRY(auto names, fs.ListXattrs(handle));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      BELAY_TRY(Bytes value, fs.GetXattr(handle, name));
      out += " " + name + "=" + EscapeForDisplay(AsText(value));
    }
  }
  out += '\n';
  return Ok();
}

// Lines sort as their paths do: a directory before what is in it.
Status AppendBelow(Fs& fs, const Fd& dir, const std::string& prefix, std::string& out,
                   Files* files) {
  BELAY_TRY(auto entries, fs.List(dir));
  std::sort(entries.begin(), entries.end(),
            [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  for (const DirEntry& entry : entries) {
    BELAY_TRY(Name name, Name::Parse(entry.name));
    BELAY_TRY(FileStat stat, fs.StatAt(dir, name));
    const std::string path = prefix + entry.name;
    Fd handle;
    std::string rest;
    if (stat.type == FileType::kRegular) {
      BELAY_TRY(handle, fs.Open(dir, name, OpenMode::Read()));
      Bytes bytes(static_cast<size_t>(stat.size));
      BELAY_OK(ReadExact(fs, handle, 0, bytes));
      rest =
          " " + std::to_string(stat.size) + " " + Sha256::Of(bytes).hex().substr(0, 16);
      if (files != nullptr) (*files)[path] = std::string(AsText(bytes));
    } else if (stat.type == FileType::kSymlink) {
      BELAY_TRY(std::string target, fs.ReadLink(dir, name));
      rest = " -> " + EscapeForDisplay(target);
      if (files != nullptr) (*files)[path] = "-> " + target;
    } else if (stat.type == FileType::kDirectory) {
      BELAY_TRY(handle, fs.Open(dir, name, OpenMode::Directory()));
    }
    BELAY_OK(AppendPath(fs, handle, stat, path, rest, out));
    if (stat.type == FileType::kDirectory)
      BELAY_OK(AppendBelow(fs, handle, path + "/", out, files));
  }
  return Ok();
}

Result<std::string> TextOf(Fs& fs, const AbsPath& path, Files* files) {
  BELAY_TRY(Fd dir, fs.OpenDir(path));
  BELAY_TRY(FileStat stat, fs.Stat(dir));
  std::string out;
  BELAY_OK(AppendPath(fs, dir, stat, ".", "", out));
  BELAY_OK(AppendBelow(fs, dir, "", out, files));
  return out;
}

// Path to line.
std::map<std::string, std::string> LinesOf(const std::string& text) {
  std::map<std::string, std::string> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    size_t path = 0;
    for (int words = 0; words < 3; ++words) path = line.find(' ', path) + 1;
    lines[line.substr(path, line.find(' ', path) - path)] = line;
    begin = end + 1;
  }
  return lines;
}

// The first few lines that one has and the other not.
std::string Difference(const std::string& wanted, const std::string& got) {
  auto a = LinesOf(wanted), b = LinesOf(got);
  std::string text;
  int shown = 0;
  for (const auto& [path, line] : a)
    if ((!b.contains(path) || b[path] != line) && ++shown <= 4)
      text += "\n    wanted " + line;
  for (const auto& [path, line] : b)
    if ((!a.contains(path) || a[path] != line) && ++shown <= 8)
      text += "\n    there  " + line;
  return text;
}

// --- generating ----------------------------------------------------------------------

struct Sizes {
  uint64_t cap, over, large;
};
// Every third tree has files of more than a MiB, which are kept in pieces.
Sizes SizesOf(uint64_t seed) {
  if (seed % 3 == 0) return {1'600'000, 1'700'000, 1'200'000};
  return {60'000, 70'000, 20'000};
}

// Shorthand for making a tree; the first error sticks.
class Pen {
 public:
  Pen(Fs& fs, const Fd& root) : fs_(fs), root_(root) {}
  void Put(std::string_view path, std::string_view content, uint32_t mode = 0644) {
    Do([&] { return PutFile(fs_, root_, P(path), content, mode); });
  }
  // In the place of what was there, with a new inode.
  void Anew(std::string_view path, std::string_view content, uint32_t mode = 0644) {
    Remove(path);
    Put(path, content, mode);
  }
  void Dir(std::string_view path, uint32_t mode = 0755) {
    Do([&]() -> Status {
      BELAY_TRY(Parent at, OpenParent(fs_, root_, P(path)));
      return fs_.MakeDir(at.dir, at.name, mode);
    });
  }
  void Link(std::string_view path, std::string_view target) {
    Do([&]() -> Status {
      BELAY_TRY(Parent at, OpenParent(fs_, root_, P(path)));
      return fs_.Symlink(at.dir, at.name, target);
    });
  }
  void Hard(std::string_view from, std::string_view to) {
    Do([&]() -> Status {
      BELAY_TRY(Parent a, OpenParent(fs_, root_, P(from)));
      BELAY_TRY(Parent b, OpenParent(fs_, root_, P(to)));
      return fs_.Link(a.dir, a.name, b.dir, b.name);
    });
  }
  void Remove(std::string_view path) {
    Do([&]() -> Status {
      BELAY_TRY(Parent at, OpenParent(fs_, root_, P(path)));
      return fs_.Unlink(at.dir, at.name);
    });
  }
  void RemoveDir(std::string_view path) {
    Do([&]() -> Status {
      BELAY_TRY(Parent at, OpenParent(fs_, root_, P(path)));
      return fs_.RemoveDir(at.dir, at.name);
    });
  }
  void Mode(std::string_view path, uint32_t mode) {
    Handle(path, [&](const Fd& file) { return fs_.SetMode(file, mode); });
  }
  void Owner(std::string_view path, uint32_t uid, uint32_t gid) {
    Handle(path, [&](const Fd& file) { return fs_.SetOwner(file, uid, gid); });
  }
  void Tag(std::string_view path, const std::string& name, std::string_view value) {
    Do([&]() -> Status {
      BELAY_TRY(Fd file, fs_.OpenBeneath(root_, P(path), OpenMode::Read()));
      Status set = fs_.SetXattr(file, name, AsBytes(value));
      // Some file systems have none.
      return !set.ok() && set.error().sys == EOPNOTSUPP ? Ok() : std::move(set);
    });
  }
  const Status& status() const { return status_; }

 private:
  template <class F>
  void Do(const F& f) {
    if (status_.ok()) status_ = f();
  }
  template <class F>
  void Handle(std::string_view path, const F& f) {
    Do([&]() -> Status {
      BELAY_TRY(Fd file,
                fs_.OpenBeneath(root_, P(path), {.access = OpenMode::Access::kPath}));
      return f(file);
    });
  }

  Fs& fs_;
  const Fd& root_;
  Status status_ = Ok();
};

constexpr std::string_view kLatin1 = "caf\xe9.txt", kNewline = "two\nlines";

// The tree that the checkpoint holds. One file has a name outside of it, in `other`.
Status MakeTree(Fs& fs, const Fd& top, const Fd& root, uint64_t seed) {
  const Sizes sizes = SizesOf(seed);
  SeededRandom random(seed);
  Pen pen(fs, root);
  pen.Put(".gitignore", "*.log\nbuild/\n");
  pen.Put(".env", "KEY=1", 0600);
  pen.Dir("src");
  pen.Dir("src/deep");
  pen.Dir("src/deep/er");
  pen.Put("src/deep/er/leaf", "leaf");
  for (int i = 0; i < 4; ++i)
    pen.Put("src/f" + std::to_string(i),
            Noise(seed * 10 + static_cast<uint64_t>(i), 1 + random.Below(6000)));
  pen.Put("src/large", Noise(seed, sizes.large));
  pen.Put("src/zero", "");
  pen.Dir("empty");
  pen.Put("run.sh", "#!/bin/sh\n", 0755);
  pen.Put("tool", "setuid tool", 0755);
  pen.Mode("tool", 04755);
  pen.Put("tool2", "setgid tool", 0711);
  pen.Mode("tool2", 02711);
  pen.Put("readonly", "may only be read", 0444);
  pen.Dir("rodir");
  pen.Put("rodir/in", "inside");
  pen.Put("rodir/gone", "inside too");
  pen.Link("link", "src/f1");
  pen.Link("dangling", "nowhere/at all");
  pen.Put("hard1", "two names");
  pen.Hard("hard1", "hard2");
  pen.Put("hard3", "a name outside");
  pen.Put("huge.dat", Noise(seed + 1, sizes.over));
  pen.Put("grown.dat", "small once");
  pen.Put("note.log", "ignored");
  pen.Dir("build");
  pen.Put("build/out.o", "object");
  pen.Put("later.txt", "covered then");
  pen.Put("swap_fd", "file");
  pen.Dir("swap_df");
  pen.Dir("swap_df/sub");
  pen.Put("swap_df/a", "in a directory");
  pen.Put("swap_df/sub/b", "deeper");
  pen.Put("swap_fl", "file to link", 0640);
  pen.Link("swap_lf", "src/f2");
  pen.Dir("swap_dl");
  pen.Put("swap_dl/x", "x");
  pen.Link("swap_ld", "src");
  pen.Put("tagged", "with attributes");
  pen.Tag("tagged", "user.belay.one", "1");
  pen.Dir("xdir");
  pen.Tag("xdir", "user.belay.dir", "d");
  pen.Put(kLatin1, "no UTF-8");
  pen.Put(kNewline, "1\n2\n");
  pen.Mode("rodir", 0555);
  BELAY_OK(pen.status());
  BELAY_TRY(Fd other, fs.Open(top, N("other"), OpenMode::Directory()));
  return fs.Link(root, N("hard3"), other, N("hard"));
}

// What happens to it in a day; an odd seed does about a third of it.
Status EditTree(Fs& fs, const Fd& root, uint64_t seed, bool owners) {
  const Sizes sizes = SizesOf(seed);
  SeededRandom random(seed ^ 0x5eed);
  Pen pen(fs, root);
  const bool all = seed % 2 == 0;
  auto now = [&] { return all || random.Below(3) == 0; };
  // Always: one of each way that a file moves.
  pen.Put("src/f0", Noise(seed + 77, 1 + random.Below(9000)));
  pen.Remove("src/f1");
  pen.Put("src/new", "made today");
  pen.Mode("run.sh", 0700);
  if (now()) pen.Put("src/large", Noise(seed + 5, sizes.large + 30'000));
  if (now()) pen.Put("src/zero", "not empty now");
  if (now()) pen.Put("src/f2", "");
  if (now()) pen.Anew("src/f3", Noise(seed + 3, 500), 0600);
  if (now()) {
    pen.Remove("src/deep/er/leaf");
    pen.RemoveDir("src/deep/er");
    pen.RemoveDir("src/deep");
  }
  if (now()) pen.RemoveDir("empty");
  if (now()) {
    pen.Dir("fresh");
    pen.Dir("fresh/er");
    pen.Put("fresh/er/file", "new in new");
    pen.Link("fresh/link", "er/file");
  }
  if (now()) pen.Remove(".env");
  if (now()) pen.Put(".env.local", "KEY=2", 0600);
  if (now()) {
    pen.Put("tool", "another setuid tool");
    pen.Mode("tool", 04755);
  }
  if (now()) pen.Mode("tool2", 0711);
  if (now()) pen.Anew("readonly", "written all the same", 0444);
  if (now()) {
    pen.Mode("rodir", 0755);
    pen.Put("rodir/in", "inside, edited");
    pen.Remove("rodir/gone");
    pen.Put("rodir/more", "more");
    pen.Mode("rodir", 0555);
  }
  if (now()) {
    pen.Remove("link");
    pen.Link("link", "elsewhere");
  }
  if (now()) pen.Put("hard1", "two names, one edit");
  if (now()) pen.Put("hard3", "edited through the name inside");
  if (now()) pen.Put("grown.dat", Noise(seed + 9, sizes.over));
  if (now()) pen.Put("today.log", "ignored as well");
  if (now()) {
    pen.Put(".gitignore", "*.log\nbuild/\nlater.txt\n");
    pen.Put("later.txt", "edited when it was ignored");
  }
  if (now()) {
    pen.Remove("swap_fd");
    pen.Dir("swap_fd");
    pen.Put("swap_fd/in", "in what was a file");
  }
  if (now()) {
    pen.Remove("swap_df/sub/b");
    pen.RemoveDir("swap_df/sub");
    pen.Remove("swap_df/a");
    pen.RemoveDir("swap_df");
    pen.Put("swap_df", "was a directory");
  }
  if (now()) {
    pen.Remove("swap_fl");
    pen.Link("swap_fl", "src/f3");
  }
  if (now()) pen.Anew("swap_lf", "was a link");
  if (now()) {
    pen.Remove("swap_dl/x");
    pen.RemoveDir("swap_dl");
    pen.Link("swap_dl", "src");
  }
  if (now()) {
    pen.Remove("swap_ld");
    pen.Dir("swap_ld", 0750);
    pen.Put("swap_ld/in", "in what was a link");
  }
  if (now()) {
    pen.Tag("tagged", "user.belay.one", "2");
    pen.Tag("tagged", "user.belay.two", "2");
  }
  if (now()) pen.Tag("xdir", "user.belay.dir", "e");
  if (now()) pen.Put(kLatin1, "still no UTF-8");
  if (now()) pen.Remove(kNewline);
  if (owners && now()) pen.Owner("src/zero", 4321, 4322);
  BELAY_OK(pen.status());
  // The directory itself: read-only for its owner, or somebody else's.
  if (now()) BELAY_OK(fs.SetMode(root, owners ? 0750 : 0555));
  if (owners && now()) BELAY_OK(fs.SetOwner(root, 4321, 4322));
  return Ok();
}

// What a rollback leaves alone, though the checkpoint does not have it so.
bool StaysByRule(const std::string& path) {
  static const std::set<std::string> paths = {".env.local", "today.log",   "note.log",
                                              "build",      "build/out.o", "huge.dat"};
  return paths.contains(path);
}

struct Silent final : Acks {
  void Add(std::string_view) override {}
};

}  // namespace

Result<std::string> WholeTreeText(Fs& fs, const AbsPath& dir) {
  return TextOf(fs, dir, nullptr);
}

RestoreWorld RestoreScene::WorldAt(Fs& fs, const AbsPath& top, uint64_t step) const {
  RestoreWorld world(fs, top, options_.seed * 100 + step, options_.uid);
  world.settings.max_file_size.bytes = SizesOf(options_.seed).cap;
  if (options_.as_user) {
    world.plan.uid = options_.uid;
    world.plan.groups = {options_.uid};
  }
  return world;
}

Status RestoreScene::MakeStart(Fs& fs, const Fd& top, const Fd& root) const {
  BELAY_OK(fs.MakeDir(top, N("other"), 0755));
  if (options_.make) return options_.make(fs, root);
  return MakeTree(fs, top, root, options_.seed);
}

Result<Outcome> RestoreScene::RollBack(RestoreWorld& world) const {
  std::shared_ptr<const ChatPlan> chat;
  if (options_.chat) {
    BELAY_TRY(chat, options_.chat(world));
    world.chat = chat.get();
  }
  auto done = options_.op == "rewind" ? world.Rewind() : world.Rollback("start");
  world.chat = nullptr;
  return done;
}

// The conversations beside the project.
Result<std::string> RestoreScene::TalkText(Fs& fs, const AbsPath& top) const {
  if (!options_.chat) return std::string();
  return WholeTreeText(fs, TalkDir(top));
}

Status RestoreScene::UpToOperation(Fs& fs, const AbsPath& top) const {
  {
    BELAY_TRY(Fd dir, MakeDirs(fs, top, 0755));
    RestoreWorld world = WorldAt(fs, top, 1);
    BELAY_TRY(Fd root, world.Dir());
    BELAY_OK(MakeStart(fs, dir, root));
    BELAY_TRY([[maybe_unused]] Captured start, world.Capture("start"));
    if (options_.said) BELAY_OK(options_.said(world));
    if (options_.edit)
      BELAY_OK(options_.edit(fs, root));
    else
      BELAY_OK(
          EditTree(fs, root, options_.seed, options_.uid == 0 || !options_.as_user));
  }
  if (options_.op == "undo" || options_.op == "redo") {
    RestoreWorld world = WorldAt(fs, top, 2);
    BELAY_TRY([[maybe_unused]] Outcome done, RollBack(world));
  }
  if (options_.op == "redo") {
    RestoreWorld world = WorldAt(fs, top, 3);
    BELAY_TRY([[maybe_unused]] Outcome done, world.Undo());
  }
  return Ok();
}

Status RestoreScene::Setup(Fs& fs, const AbsPath& top) const {
  BELAY_OK(UpToOperation(fs, top));
  if (options_.op != "recovery") return Ok();
  auto* mem = dynamic_cast<MemFs*>(&fs);
  if (mem != nullptr) mem->Crash(CrashPolicy::KeepAll());
  {
    const uint64_t at =
        options_.interrupt != 0 ? options_.interrupt : (calls_ + calls_before_) / 2;
    FaultFs broken(fs, Fault::PowerCut(at));
    RestoreWorld world = WorldAt(broken, top, 4);
    auto done = RollBack(world);
    if (done.ok() && !broken.fired())
      return Wrong("the rollback was not interrupted at call " + std::to_string(at));
  }
  if (mem != nullptr) mem->Crash(options_.crash);
  return Ok();
}

Status RestoreScene::Operate(Fs& fs, const AbsPath& top, Acks& acks) const {
  RestoreWorld world = WorldAt(fs, top, options_.op == "recovery" ? 5 : 4);
  if (options_.op == "recovery") {
    BELAY_TRY([[maybe_unused]] auto recovered, world.Recover());
    return Ok();
  }
  Result<Outcome> done = options_.op == "undo"   ? world.Undo()
                         : options_.op == "redo" ? world.Redo()
                                                 : RollBack(world);
  if (!done.ok()) return std::move(done).error();
  if (!done->conflicts.empty())
    return Wrong("conflict at " + done->conflicts[0].path + ": " +
                 done->conflicts[0].what);
  for (const KeptPath& kept : done->plan.kept) acks.Add("kept " + kept.path);
  if (done->operation) acks.Add("done");
  return Ok();
}

// From the journal on, paths are touched.
static bool HasJournal(Fs& fs, const AbsPath& top) {
  auto dir = fs.OpenDir(top.Join(P("store/journal")));
  if (!dir.ok()) return false;
  auto names = fs.List(*dir);
  return names.ok() && std::ranges::any_of(*names, [](const DirEntry& entry) {
           return entry.name.find('.') ==
                  std::string::npos;  // no hint, not half written
         });
}

Status RestoreScene::Learn(Fs& fs, const AbsPath& top) {
  const TalkDirEnds talk_ends(top);
  BELAY_OK(UpToOperation(fs, top));
  const AbsPath project = top.Join(P("project"));
  BELAY_TRY(old_, TextOf(fs, project, &old_files_));
  BELAY_TRY(outside_, WholeTreeText(fs, top.Join(P("other"))));
  BELAY_TRY(old_talk_, TalkText(fs, top));
  FaultFs counted(fs);
  RestoreWorld world = WorldAt(counted, top, 4);
  world.stop = [&] {
    if (calls_before_ == 0 && HasJournal(fs, top)) calls_before_ = counted.calls();
    return false;
  };
  Result<Outcome> done = options_.op == "undo"   ? world.Undo()
                         : options_.op == "redo" ? world.Redo()
                                                 : RollBack(world);
  if (!done.ok()) return std::move(done).error();
  if (!done->verified || !done->conflicts.empty())
    return Wrong("the unharmed run was not verified");
  if (calls_before_ == 0 && options_.op != "rewind")
    return Wrong("nobody could have stopped the moves");
  calls_ = counted.calls();
  log_ = counted.log();
  BELAY_TRY(new_, WholeTreeText(fs, project));
  BELAY_TRY(new_talk_, TalkText(fs, top));
  if (options_.op == "rewind") {
    if (old_ != new_) return Wrong("the conversation alone moved a file");
    return old_talk_ == new_talk_ ? Wrong("the conversation did not go back") : Ok();
  }
  if (old_ == new_) return Wrong("the operation changes nothing");
  if (options_.chat && (options_.op == "rollback" || options_.op == "recovery") &&
      old_talk_ == new_talk_)
    return Wrong("the conversation did not go back");
  if (options_.op == "undo") return Ok();
  // The new tree is what the checkpoint was made of, but for what stays.
  MemFs::Options plain;
  plain.uid = plain.gid = options_.uid;
  MemFs disk(plain);
  BELAY_TRY(Fd place, MakeDirs(disk, AbsPath::Literal("/t/project"), 0755));
  BELAY_TRY(Fd above, disk.OpenDir(AbsPath::Literal("/t")));
  BELAY_OK(MakeStart(disk, above, place));
  BELAY_TRY(std::string start, WholeTreeText(disk, AbsPath::Literal("/t/project")));
  auto wanted = LinesOf(start), got = LinesOf(new_);
  for (const auto& [path, line] : wanted) {
    if (path == "tool2" || got[path] == line) continue;  // gives no setgid back
    return Wrong("not as in the checkpoint: " + line + "\n    but " + got[path]);
  }
  for (const auto& [path, line] : got)
    if (!wanted.contains(path) && !StaysByRule(path)) return Wrong("stayed: " + line);
  return Ok();
}

Status RestoreScene::CheckTree(const std::string& tree, const SweepRun& run) const {
  const bool done =
      std::find(run.acks.begin(), run.acks.end(), "done") != run.acks.end();
  if (tree == new_) return Ok();
  if (!done && tree == old_) return Ok();
  if (!done)
    return Wrong("NEITHER TREE; from the old one:" + Difference(old_, tree) +
                 "\n   from the new one:" + Difference(new_, tree));
  // What could not be read stays, when that was said.
  auto wanted = LinesOf(new_), before = LinesOf(old_), got = LinesOf(tree);
  std::vector<std::string> kept;
  for (const std::string& ack : run.acks)
    if (ack.starts_with("kept ")) kept.push_back(EscapeForDisplay(ack.substr(5)));
  auto said = [&](const std::string& path) {
    return std::any_of(kept.begin(), kept.end(), [&](const std::string& k) {
      return k == path || path.starts_with(k + "/") || k.starts_with(path + "/");
    });
  };
  auto line = [](std::map<std::string, std::string>& lines, const std::string& path) {
    auto found = lines.find(path);
    return found == lines.end() ? std::string() : found->second;
  };
  std::set<std::string> paths;
  for (const auto& [path, text] : wanted) paths.insert(path);
  for (const auto& [path, text] : got) paths.insert(path);
  for (const std::string& path : paths) {
    const std::string there = line(got, path);
    if (there == line(wanted, path)) continue;
    if (there == line(before, path) && said(path)) continue;
    return Wrong("ACKNOWLEDGED AND NOT DONE:" + Difference(new_, tree));
  }
  return Ok();
}

// Everything that the operation took away is in its safety checkpoint.
Status RestoreScene::CheckSafety(RestoreWorld::Opened& opened,
                                 const Operation& operation,
                                 const std::string& tree) const {
  if (!operation.safety) return Wrong("no safety checkpoint");
  BELAY_TRY(CatalogEntry safety,
            opened.catalog->FindById(opened.root.id, operation.safety->text()));
  BELAY_TRY(Files files, ReadFiles(*opened.store, safety.checkpoint.state));
  auto before = LinesOf(old_), after = LinesOf(tree);
  for (const auto& [path, content] : old_files_) {
    const std::string shown = EscapeForDisplay(path);
    if (after.contains(shown) && after[shown] == before[shown]) continue;
    auto kept = files.find(path);
    if (kept == files.end()) return Wrong("LOST: the safety checkpoint lacks " + shown);
    if (kept->second != content)
      return Wrong("LOST: the safety checkpoint has another " + shown);
  }
  return Ok();
}

Status RestoreScene::Check(Fs& fs, const AbsPath& top, const SweepRun& run,
                           bool failed) const {
  const TalkDirEnds talk_ends(top);
  const AbsPath project = top.Join(P("project"));
  const bool done =
      std::find(run.acks.begin(), run.acks.end(), "done") != run.acks.end();
  const bool interrupted = run.error.what.find("interrupted") != std::string::npos;
  if (failed && !run.done && !interrupted && options_.op != "recovery") {
    BELAY_TRY(std::string tree, WholeTreeText(fs, project));
    if (tree != old_)
      return Wrong("an error that says nothing was changed (" + run.error.what +
                   ") left:" + Difference(old_, tree));
    BELAY_TRY(std::string talk, TalkText(fs, top));
    if (talk != old_talk_)
      return Wrong("an error that says nothing was changed (" + run.error.what +
                   ") left of conversations:" + Difference(old_talk_, talk));
  }
  {
    RestoreWorld world = WorldAt(fs, top, 6);
    auto recovered = world.Recover();
    if (!recovered.ok()) return Wrong("RECOVERY FAILED: " + recovered.error().what);
  }
  BELAY_TRY(std::string tree, WholeTreeText(fs, project));
  BELAY_OK(CheckTree(tree, run));
  if (failed && !run.done && !interrupted && options_.op != "recovery" && tree != old_)
    return Wrong("an error that was none: recovery went on with it (" + run.error.what +
                 ")");
  RestoreWorld world = WorldAt(fs, top, 7);
  BELAY_TRY(auto opened, world.Open());
  BELAY_TRY(bool pending, JournalFile::Exists(*opened.store, opened.root.id));
  if (pending) return Wrong("the journal is still there");
  auto journals = fs.Open(opened.store->dir(), N("journal"), OpenMode::Directory());
  if (journals.ok()) {
    BELAY_TRY(auto listed, fs.List(*journals));
    for (const DirEntry& entry : listed)
      if (entry.name.ends_with(".aside") || entry.name.ends_with(".fork"))
        return Wrong("left among the journals: " + entry.name);
  } else if (tree != old_) {
    return Wrong("there is no directory for journals");
  }
  BELAY_TRY(std::string outside, WholeTreeText(fs, top.Join(P("other"))));
  if (outside != outside_) return Wrong("SOMETHING OUTSIDE CHANGED");
  BELAY_TRY(VerifyReport report, VerifyStore(*opened.store, {.read_data = true}));
  if (!report.clean()) return Wrong("the store does not verify: " + report.damage[0]);

  // Recorded if and only if it happened; and then it can be taken back.
  const bool rewind = options_.op == "rewind";
  const std::string kind =
      options_.op == "recovery" || rewind ? "rollback" : options_.op;
  BELAY_TRY(auto operations, ListOperations(*opened.catalog, opened.root.id));
  const size_t setup = options_.op == "undo" ? 1 : options_.op == "redo" ? 2 : 0;
  const bool recorded = operations.size() > setup;
  if (operations.size() > setup + 1) return Wrong("recorded twice");
  if (done && !recorded) return Wrong("acknowledged and not in the log");
  if (recorded && tree == old_ && !rewind)
    return Wrong("in the log, but the tree is the old one");
  if (!recorded && tree != old_) return Wrong("done, but not in the log");
  if (failed && !run.done && !interrupted && options_.op != "recovery" && recorded)
    return Wrong("an error, and it is in the log (" + run.error.what + ")");
  // The conversation is where the files are; nothing of ours is left beside it.
  BELAY_TRY(std::string talk, TalkText(fs, top));
  const std::string& wanted = recorded ? new_talk_ : old_talk_;
  if (talk != wanted)
    return Wrong(std::string("the files are ") + (recorded ? "new" : "old") +
                 ", THE CONVERSATION IS NOT:" + Difference(wanted, talk));
  if (recorded && !rewind) BELAY_OK(CheckSafety(opened, operations.back(), tree));
  opened = {};
  RestoreWorld after = WorldAt(fs, top, 8);
  if (recorded) {
    auto back = kind == "undo" ? after.Redo() : after.Undo();
    if (!back.ok()) return Wrong("cannot be taken back: " + back.error().what);
    if (!back->conflicts.empty())
      return Wrong("taking it back is refused: " + back->conflicts[0].path + " " +
                   back->conflicts[0].what);
    BELAY_TRY(std::string again, WholeTreeText(fs, project));
    if (again != old_)
      return Wrong("TAKEN BACK IT IS NOT THE OLD TREE:" + Difference(old_, again));
    BELAY_TRY(talk, TalkText(fs, top));
    if (talk != new_talk_) return Wrong("taking it back touched a conversation");
    return Ok();
  }
  auto again = kind == "rollback" ? RollBack(after)
               : kind == "undo"   ? after.Undo()
                                  : after.Redo();
  if (!again.ok()) return Wrong("cannot be done any more: " + again.error().what);
  BELAY_TRY(std::string then, WholeTreeText(fs, project));
  if (then != new_)
    return Wrong("done again it is not the new tree:" + Difference(new_, then));
  BELAY_TRY(talk, TalkText(fs, top));
  if (talk != new_talk_)
    return Wrong("done again the conversation is another:" +
                 Difference(new_talk_, talk));
  return Ok();
}

}  // namespace belay::test
