// Random work on a project, with checkpoints, rollbacks, undos and redos in between,
// against a model that knows only maps: what the tree must be after each step.
//
//   BELAY_FULL=1 model_test            10,000 steps for each of several seeds
//   BELAY_SEED=S BELAY_STEPS=N         that seed, so many steps

#include <cstdlib>
#include <iostream>

#include "support/crash_harness.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

// What stands at a path: "d 755", "f 644 content", "l target".
using Model = std::map<std::string, std::string>;

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}
bool IsDir(const Model& model, const std::string& path) {
  auto found = model.find(path);
  return path.empty() || (found != model.end() && found->second[0] == 'd');
}
bool IsBelow(const std::string& path, const std::string& dir) {
  return dir.empty() ||
         (path.starts_with(dir) && path.size() > dir.size() && path[dir.size()] == '/');
}

// The rules of the model: `*.tmp` and `ign*/` where a .gitignore at the top says so.
// Secrets (.env) are covered, brought back and never deleted.
struct Rules {
  bool tmp = false, ign = false;
  static Rules Of(const Model& model) {
    Rules out;
    auto found = model.find(".gitignore");
    if (found == model.end() || found->second[0] != 'f') return out;
    out.tmp = found->second.find("*.tmp\n") != std::string::npos;
    out.ign = found->second.find("ign*/\n") != std::string::npos;
    return out;
  }
  // Is it covered, in a tree where it is a directory or not?
  bool Covers(const std::string& path, bool is_dir) const {
    size_t start = 0;
    for (;;) {
      const size_t slash = path.find('/', start);
      const bool last = slash == std::string::npos;
      const std::string name = path.substr(start, last ? slash : slash - start);
      const bool dir = !last || is_dir;
      if (ign && dir && name.starts_with("ign")) return false;
      if (tmp && name.ends_with(".tmp")) return false;
      if (last) return true;
      start = slash + 1;
    }
  }
};

struct Moment {
  Model tree;  // what was covered
  Rules rules;
};

struct Done {  // an operation: per path, before and after
  std::map<std::string, std::pair<std::string, std::string>> paths;  // "": absent
};

class ModelRun {
 public:
  explicit ModelRun(uint64_t seed)
      : random_(seed), project_(disk_, AbsPath::Literal("/m"), 1000) {}

  void Steps(uint64_t count) {
    for (uint64_t step = 0; step < count && !::testing::Test::HasFailure(); ++step) {
      trail_.push_back("");
      Step();
      Compare(step);
    }
  }
  void Report() const {
    std::cout << edits_ << " edits, " << moments_.size() << " checkpoints, "
              << rollbacks_ << " rollbacks, " << paths_ << " of paths, " << undos_
              << " undos, " << redos_ << " redos, " << conflicts_ << " conflicts\n";
  }

 private:
  uint64_t Below(uint64_t n) { return random_.Below(n); }
  std::string Pick(std::initializer_list<const char*> names) {
    return *(names.begin() + static_cast<ptrdiff_t>(Below(names.size())));
  }
  std::string RandomPath() {
    std::string dir;
    for (int depth = static_cast<int>(Below(3)); depth > 0; --depth) {
      std::vector<std::string> dirs;
      for (const auto& [path, what] : model_)
        if (what[0] == 'd' && ParentOf(path) == dir) dirs.push_back(path);
      if (dirs.empty()) break;
      dir = dirs[Below(dirs.size())];
    }
    const std::string name =
        Pick({"a", "b", "c", "d", "e.tmp", "f.tmp", "ign", "ign2", ".env", "x y"});
    return dir.empty() ? name : dir + "/" + name;
  }
  void Note(const std::string& text) { trail_.back() = text; }

  // --- edits, on disk and in the model alike
  // ---------------------------------------------
  void RemoveBoth(const std::string& path) {
    if (!model_.contains(path)) return;
    project_.Remove(path);
    std::erase_if(model_, [&](const auto& entry) {
      return entry.first == path || IsBelow(entry.first, path);
    });
  }
  void Edit() {
    ++edits_;
    const std::string path = RandomPath();
    const uint64_t what = Below(12);
    if (what == 0) {
      std::string text = Below(2) ? "*.tmp\n" : "";
      if (Below(2)) text += "ign*/\n";
      if (IsDir(model_, ".gitignore")) RemoveBoth(".gitignore");
      project_.Put(".gitignore", text);
      model_[".gitignore"] = "f 644 " + text;
      return Note("gitignore " + text);
    }
    if (what < 3) {
      RemoveBoth(path);
      return Note("remove " + path);
    }
    if (what == 3 && model_.contains(path) && model_[path][0] != 'l') {
      const bool dir = model_[path][0] == 'd';
      const uint32_t mode =
          dir ? (Below(2) ? 0755u : 0700u) : (Below(2) ? 0600u : 0755u);
      project_.Chmod(path, mode);
      std::string octal = mode == 0755 ? "755" : mode == 0700 ? "700" : "600";
      model_[path] = model_[path].substr(0, 2) + octal + model_[path].substr(5);
      return Note("chmod " + path);
    }
    if (what < 6) {
      if (IsDir(model_, path)) return;
      RemoveBoth(path);
      project_.MakeDir(path);
      model_[path] = "d 755";
      return Note("mkdir " + path);
    }
    if (what == 6) {
      RemoveBoth(path);
      const std::string target = Pick({"a", "../b", "/nowhere"});
      project_.Link(path, target);
      model_[path] = "l " + target;
      return Note("link " + path);
    }
    if (IsDir(model_, path)) RemoveBoth(path);
    if (model_.contains(path) && model_[path][0] == 'l') RemoveBoth(path);
    const std::string text = "text " + std::to_string(Below(6));
    const std::string mode =
        model_.contains(path) ? model_[path].substr(2, 3) : std::string("644");
    const uint32_t bits = mode == "755" ? 0755u : mode == "600" ? 0600u : 0644u;
    project_.Put(path, text, bits);
    project_.Chmod(path, bits);
    model_[path] = "f " + mode + " " + text;
    Note("write " + path + " " + text);
  }

  // --- what belay does
  // -------------------------------------------------------------------
  void Checkpoint() {
    const std::string name = "c" + std::to_string(moments_.size());
    Must(project_.world.Capture(name));
    Moment moment;
    moment.rules = Rules::Of(model_);
    for (const auto& [path, what] : model_)
      if (Secret(path) ? CoversSecret(moment.rules, path)
                       : moment.rules.Covers(path, what[0] == 'd'))
        moment.tree[path] = what;
    moments_.push_back(std::move(moment));
    Note("checkpoint " + name);
  }
  static bool Secret(const std::string& path) {
    return path == ".env" || path.ends_with("/.env");
  }
  // A secret is covered unless a directory above it is left out. As a directory it is
  // no secret.
  static bool CoversSecret(const Rules& rules, const std::string& path) {
    const std::string parent = ParentOf(path);
    return parent.empty() || rules.Covers(parent, true);
  }
  static bool Covered(const Rules& rules, const std::string& path, bool is_dir) {
    return Secret(path) && !is_dir ? CoversSecret(rules, path)
                                   : rules.Covers(path, is_dir);
  }
  static bool Selected(const std::string& select, const std::string& path) {
    return select.empty() || path == select || IsBelow(path, select);
  }

  // The tree after a rollback to `to`, of `select` and below.
  Model Target(const Moment& to, const std::string& select) {
    Model out = model_;
    const Rules now = Rules::Of(model_);
    // 1. What goes: covered then and now, absent then.
    auto may_go = [&](const std::string& path, const std::string& what) {
      const bool is_dir = what[0] == 'd';
      return Selected(select, path) && !to.tree.contains(path) &&
             Covered(now, path, is_dir) && Covered(to.rules, path, is_dir) &&
             !(Secret(path) && !is_dir);
    };
    std::set<std::string> going;
    for (auto entry = model_.rbegin(); entry != model_.rend(); ++entry) {
      const auto& [path, what] = *entry;
      if (what[0] != 'd' && may_go(path, what)) going.insert(path);
    }
    auto becomes_empty = [&](const std::string& dir) {
      for (const auto& [path, what] : model_)
        if (ParentOf(path) == dir && !going.contains(path)) return false;
      return true;
    };
    // Deepest first; a directory where a file comes may only go empty, or nothing in it
    // goes.
    std::set<std::string> stays;
    for (auto entry = model_.rbegin(); entry != model_.rend(); ++entry) {
      const auto& [path, what] = *entry;
      if (what[0] != 'd') continue;
      auto then = to.tree.find(path);
      const bool swap = then != to.tree.end() && then->second[0] != 'd';
      if (swap && Selected(select, path)) {
        if (becomes_empty(path)) continue;
        stays.insert(path);
        std::erase_if(going, [&](const std::string& p) { return IsBelow(p, path); });
      } else if (may_go(path, what) && becomes_empty(path)) {
        going.insert(path);
      }
    }
    for (const std::string& path : going) out.erase(path);
    // 2. What comes, with the directories it needs.
    for (const auto& [path, what] : to.tree) {
      if (stays.contains(path)) continue;
      bool wanted = Selected(select, path);
      for (const auto& [below, unused] : to.tree)
        if (!wanted && what[0] == 'd' && IsBelow(below, path) &&
            Selected(select, below) && !IsDir(model_, path))
          wanted = true;
      if (wanted) out[path] = what;
    }
    return out;
  }

  static std::string At(const Model& model, const std::string& path) {
    auto found = model.find(path);
    return found == model.end() ? "" : found->second;
  }
  Done Difference(const Model& from, const Model& to) {
    Done out;
    for (const auto& [path, what] : from)
      if (At(to, path) != what) out.paths[path] = {what, At(to, path)};
    for (const auto& [path, what] : to)
      if (!from.contains(path)) out.paths[path] = {"", what};
    return out;
  }

  void Rollback() {
    if (moments_.empty()) return;
    const size_t which = Below(moments_.size());
    std::string select;
    if (Below(3) == 0) {
      const Moment& to = moments_[which];
      std::vector<std::string> all;
      for (const auto& [path, what] : to.tree) all.push_back(path);
      for (const auto& [path, what] : model_) all.push_back(path);
      if (!all.empty()) select = all[Below(all.size())];
    }
    Note("rollback c" + std::to_string(which) +
         (select.empty() ? "" : " -- " + select));
    const Model wanted = Target(moments_[which], select);
    Done done = Difference(model_, wanted);
    project_.world.plan.select.clear();
    if (!select.empty()) project_.world.plan.select.push_back(select);
    auto result = project_.world.Rollback("c" + std::to_string(which));
    project_.world.plan.select.clear();
    ASSERT_TRUE(result.ok()) << result.error().what;
    ++(select.empty() ? rollbacks_ : paths_);
    EXPECT_EQ(result->operation.has_value(), !done.paths.empty());
    EXPECT_TRUE(!result->operation || result->verified);
    model_ = wanted;
    if (done.paths.empty()) return;
    undo_.push_back(std::move(done));
    redo_.clear();
  }

  // What an undo or redo must do: true and the new model, or a conflict.
  bool Reverse(const Done& done, bool forward, Model& out) {
    out = model_;
    std::vector<std::pair<std::string, std::string>> removed_dirs;
    for (const auto& [path, sides] : done.paths) {
      const std::string& from = forward ? sides.first : sides.second;
      const std::string& to = forward ? sides.second : sides.first;
      const std::string now = At(model_, path);
      if (now == to) continue;
      const bool both_dirs =
          !now.empty() && now[0] == 'd' && !from.empty() && from[0] == 'd';
      if (now != from && !both_dirs) return false;
    }
    for (auto entry = done.paths.rbegin(); entry != done.paths.rend(); ++entry) {
      const auto& [path, sides] = *entry;
      const std::string& to = forward ? sides.second : sides.first;
      const std::string now = At(out, path);
      if (now == to) continue;
      const bool was_dir = !now.empty() && now[0] == 'd';
      const bool empty = std::none_of(out.begin(), out.end(), [&](const auto& e) {
        return IsBelow(e.first, path);
      });
      if (was_dir && (to.empty() || to[0] != 'd') && !empty) {
        if (!to.empty()) return false;  // something new is in the way
        continue;                       // stays, and is said to
      }
      out.erase(path);
    }
    for (const auto& [path, sides] : done.paths) {
      const std::string& to = forward ? sides.second : sides.first;
      if (to.empty()) continue;
      // Directories that went since are made again, like the nearest one that is there.
      std::vector<std::string> missing;
      std::string dir = ParentOf(path);
      for (; !dir.empty() && !out.contains(dir); dir = ParentOf(dir))
        missing.push_back(dir);
      if (!IsDir(out, dir)) return false;
      while (!dir.empty() && !IsDir(model_, dir)) dir = ParentOf(dir);
      for (const std::string& made : missing)
        out[made] = dir.empty() ? "d 755" : model_.at(dir);
      out[path] = to;
    }
    return true;
  }
  void UndoOrRedo(bool forward) {
    std::vector<Done>& from = forward ? redo_ : undo_;
    std::vector<Done>& to = forward ? undo_ : redo_;
    Note(forward ? "redo" : "undo");
    auto result = forward ? project_.world.Redo() : project_.world.Undo();
    if (from.empty()) {
      EXPECT_FALSE(result.ok());
      return;
    }
    Model wanted;
    if (!Reverse(from.back(), forward, wanted)) {
      ++conflicts_;
      ASSERT_TRUE(result.ok()) << result.error().what;
      EXPECT_FALSE(result->operation);
      EXPECT_FALSE(result->conflicts.empty());
      return;
    }
    ASSERT_TRUE(result.ok()) << result.error().what;
    EXPECT_TRUE(result->conflicts.empty()) << result->conflicts[0].path;
    ++(forward ? redos_ : undos_);
    const bool nothing = wanted == model_;
    EXPECT_TRUE(result->operation || nothing);
    model_ = wanted;
    if (!result->operation) return;
    to.push_back(std::move(from.back()));
    from.pop_back();
  }

  void Step() {
    switch (Below(16)) {
      case 0:
      case 1:
        return Checkpoint();
      case 2:
      case 3:
        return Rollback();
      case 4:
        return UndoOrRedo(false);
      case 5:
        return UndoOrRedo(true);
      default:
        return Edit();
    }
  }

  // The disk in the model's words.
  Model OnDisk() {
    Model out;
    std::vector<std::string> waiting{""};
    while (!waiting.empty()) {
      const std::string dir = waiting.back();
      waiting.pop_back();
      Fd opened =
          dir.empty()
              ? Must(disk_.Duplicate(project_.root))
              : Must(disk_.OpenBeneath(project_.root, P(dir), OpenMode::Directory()));
      for (const DirEntry& entry : Must(disk_.List(opened))) {
        const std::string path = dir.empty() ? entry.name : dir + "/" + entry.name;
        const FileStat stat = Must(disk_.StatAt(opened, N(entry.name)));
        char mode[8];
        std::snprintf(mode, sizeof mode, "%03o", stat.mode & 0777);
        if (stat.type == FileType::kDirectory) {
          out[path] = std::string("d ") + mode;
          waiting.push_back(path);
        } else if (stat.type == FileType::kSymlink) {
          out[path] = "l " + Must(disk_.ReadLink(opened, N(entry.name)));
        } else {
          out[path] = std::string("f ") + mode + " " + project_.Read(path);
        }
      }
    }
    return out;
  }
  void Compare(uint64_t step) {
    const Model disk = OnDisk();
    if (disk == model_ && !::testing::Test::HasFailure()) return;
    std::string text;
    for (const auto& [path, what] : disk)
      if (At(model_, path) != what)
        text += path + " is '" + what + "', not '" + At(model_, path) + "'\n";
    for (const auto& [path, what] : model_)
      if (!disk.contains(path)) text += path + " is gone, not '" + what + "'\n";
    std::string last;
    for (size_t i = trail_.size() > 60 ? trail_.size() - 60 : 0; i < trail_.size(); ++i)
      last += std::to_string(i) + " " + trail_[i] + "\n";
    ADD_FAILURE() << "after step " << step << ":\n"
                  << text << "the last steps:\n"
                  << last;
  }

  SeededRandom random_;
  MemFs disk_;
  Project project_;
  Model model_;
  std::vector<Moment> moments_;
  std::vector<Done> undo_, redo_;
  std::vector<std::string> trail_;
  uint64_t edits_ = 0, rollbacks_ = 0, paths_ = 0, undos_ = 0, redos_ = 0,
           conflicts_ = 0;
};

TEST(RestoreModel, EveryStepLeavesWhatTheModelSays) {
  const uint64_t first = TestSeed(1);
  const char* given = std::getenv("BELAY_STEPS");
  const uint64_t steps = given != nullptr  ? std::strtoull(given, nullptr, 10)
                         : RunEverything() ? 10'000
                                           : 250;
  const uint64_t seeds = std::getenv("BELAY_SEED") != nullptr ? 1
                         : RunEverything()                    ? 5
                                                              : 4;
  for (uint64_t seed = first; seed < first + seeds && !::testing::Test::HasFailure();
       ++seed) {
    std::cout << "BELAY_SEED=" << seed << ": " << std::flush;
    ModelRun run(seed);
    run.Steps(steps);
    run.Report();
  }
}

}  // namespace
}  // namespace belay::test
