// The rules against the installed git, on generated trees and pattern files.
// tests/ignore/differential_full is the long form: a million decisions.

#include <gtest/gtest.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

#include "base/escape.h"
#include "ignore/rule_world.h"
#include "support/crash_harness.h"

namespace belay::test {
namespace {

class Differential : public ::testing::Test {
 protected:
  // Thousands of little files: in memory, when there is such a place, it takes a fifth
  // of the time.
  static void SetUpTestSuite() {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  }
  void SetUp() override {
    if (!FoundGit()) GTEST_SKIP() << "git is not installed";
  }
};

struct Counts {
  uint64_t decisions = 0;
  uint64_t matched = 0;   // by some pattern
  uint64_t negated = 0;   // of those
  uint64_t left_out = 0;  // not covered
  uint64_t differences = 0;
};

std::shared_ptr<const RuleConfig> NothingOfOurs() {
  return std::make_shared<RuleConfig>(RuleLists{.protect = {},
                                                .exclude = {},
                                                .secret_patterns = {},
                                                .skip_secrets = false,
                                                .default_excludes = false});
}

// Walks to a path as `belay why` does. Directories are kept between questions.
class Asker {
 public:
  Asker(const RuleWorld& world, std::shared_ptr<const WorkTree> work_tree,
        std::string prefix = "")
      : world_(world), prefix_(std::move(prefix)) {
    known_[""] = DirRules::Root(NothingOfOurs(), std::move(work_tree), Files(prefix_));
  }

  Decision Ask(const std::string& path, bool is_dir) {
    const size_t slash = path.rfind('/');
    const std::string dir = slash == std::string::npos ? "" : path.substr(0, slash);
    return Directory(dir)->Explain(path.substr(slash + 1), is_dir);
  }
  const DirRules::Ptr& Directory(const std::string& path) {
    DirRules::Ptr& at = known_[path];
    if (at == nullptr) {
      const size_t slash = path.rfind('/');
      const std::string dir = slash == std::string::npos ? "" : path.substr(0, slash);
      DirRules::Ptr parent = Directory(dir);
      auto made = parent->Enter(path.substr(slash + 1), Files(prefix_ + path + "/"));
      return known_[path] = made;
    }
    return at;
  }

 private:
  DirFiles Files(const std::string& dir) {
    bytes_ = world_.ReadRules(dir + ".gitignore");
    DirFiles files;
    if (bytes_) files.gitignore = *bytes_;
    return files;
  }

  const RuleWorld& world_;
  std::string prefix_;  // of the root, "" or with a slash
  std::map<std::string, DirRules::Ptr> known_;
  std::optional<std::string> bytes_;
};

std::string AsGitPrints(const RuleRef& rule) { return rule ? RuleText(rule) : "::"; }

// `git check-ignore -v -n -z --no-index --stdin`, one answer per path, in order.
std::vector<std::string> AskGit(const RuleWorld& world,
                                const std::vector<std::string>& paths) {
  std::string input;
  for (const std::string& path : paths) {
    input += "./" + path;  // or a colon at the start would be magic
    input += '\0';
  }
  const std::string output = world.Git(
      {"check-ignore", "-v", "-n", "-z", "--no-index", "--stdin"}, input, "", 1);
  std::vector<std::string> fields;
  for (size_t at = 0; at < output.size();) {
    const size_t end = output.find('\0', at);
    fields.push_back(output.substr(at, end - at));
    at = end + 1;
  }
  BELAY_CHECK(fields.size() == paths.size() * 4);
  std::vector<std::string> answers;
  for (size_t i = 0; i < paths.size(); ++i) {
    BELAY_CHECK(fields[i * 4 + 3] == "./" + paths[i]);
    answers.push_back(fields[i * 4] + ":" + fields[i * 4 + 1] + ":" +
                      fields[i * 4 + 2]);
  }
  return answers;
}

void Report(Counts& counts, const std::string& path, const std::string& git,
            const std::string& ours) {
  if (++counts.differences > 20) return;
  ADD_FAILURE() << "path " << EscapeForDisplay(path)
                << "\n git:   " << EscapeForDisplay(git)
                << "\n ours:  " << EscapeForDisplay(ours);
}

void CompareRound(RuleWorld& world, Counts& counts) {
  std::vector<std::string> paths;
  for (const auto& [path, kind] : world.tree()) paths.push_back(path);
  for (const std::string& dir : world.directories())
    paths.push_back(dir.empty() ? ".gitignore" : dir + "/.gitignore");
  for (int i = 0; i < 100; ++i) {
    std::string other = world.OtherPath();
    // git stops at a path beyond a symlink; a file has nothing below it.
    bool fine = true;
    for (size_t at = other.find('/'); at != std::string::npos;
         at = other.find('/', at + 1)) {
      auto found = world.tree().find(other.substr(0, at));
      fine &= found == world.tree().end() || found->second == NodeKind::kDirectory;
    }
    if (fine) paths.push_back(other);
  }
  const std::vector<std::string> git = AskGit(world, paths);
  Asker ours(world, world.Rules(nullptr));
  for (size_t i = 0; i < paths.size(); ++i) {
    const Decision d = ours.Ask(paths[i], world.IsDirectory(paths[i]));
    const std::string text = AsGitPrints(d.rule);
    ++counts.decisions;
    counts.matched += d.rule ? 1 : 0;
    counts.negated += d.rule && d.rule.pattern->negative ? 1 : 0;
    counts.left_out += d.covered ? 0 : 1;
    const bool agrees = d.rule ? d.covered == d.rule.pattern->negative : d.covered;
    if (text != git[i] || !agrees) Report(counts, paths[i], git[i], text);
  }
}

// Below a directory of the tree that is no top, the files above count too.
void CompareBelowTop(RuleWorld& world, Counts& counts) {
  const std::vector<std::string> dirs = world.directories();
  for (const std::string& dir : dirs) {
    if (dir.find('/') == std::string::npos) continue;
    WorkTreeInput input;
    if (auto bytes = world.ReadRules(".git/info/exclude"))
      input.info_exclude = RuleBytes{".git/info/exclude", *bytes};
    if (auto bytes = world.ReadRules("../excludes"))
      input.global_excludes = RuleBytes{world.global_file(), *bytes};
    input.ignore_case = world.ignore_case();
    input.root_below_top = dir;
    std::string above;
    for (const std::string& part : SplitPath(dir)) {
      auto bytes = world.ReadRules(above + ".gitignore");
      if (bytes)
        input.above_root.push_back(RuleBytes{above + ".gitignore", *bytes});
      else
        input.above_root.push_back(std::nullopt);
      above += part + "/";
    }
    auto work_tree = std::make_shared<WorkTree>(std::move(input));
    Asker ours(world, work_tree, dir + "/");
    if (ours.Directory("")->root_ignored_by()) continue;  // asked for by name
    std::vector<std::string> paths;
    for (const auto& [path, kind] : world.tree())
      if (path.starts_with(dir + "/")) paths.push_back(path);
    if (paths.empty()) continue;
    const std::vector<std::string> git = AskGit(world, paths);
    for (size_t i = 0; i < paths.size(); ++i) {
      const Decision d =
          ours.Ask(paths[i].substr(dir.size() + 1), world.IsDirectory(paths[i]));
      std::string text = AsGitPrints(d.rule);
      bool mine = d.rule && d.rule.file->name().ends_with(".gitignore");
      for (const WorkTree::Above& file : work_tree->above_root())
        mine &= &file.file != d.rule.file;
      if (mine) text = dir + "/" + text;
      ++counts.decisions;
      counts.matched += d.rule ? 1 : 0;
      counts.left_out += d.covered ? 0 : 1;
      if (text != git[i]) Report(counts, paths[i], git[i], text);
    }
    return;
  }
}

void Print(const char* what, const Counts& counts) {
  std::printf("%s: %" PRIu64 " decisions, %" PRIu64 " matched a pattern (%" PRIu64
              " negated), %" PRIu64 " left out, %" PRIu64 " differences\n",
              what, counts.decisions, counts.matched, counts.negated, counts.left_out,
              counts.differences);
}

TEST_F(Differential, NamesTheRuleThatGitNames) {
  SeededRandom random(TestSeed(3));
  const uint64_t wanted = RunEverything() ? 1'000'000 : 55'000;
  Counts counts;
  while (counts.decisions < wanted && counts.differences <= 20) {
    RuleWorld world(random, 60 + random.Below(300), random.Below(3) == 0, true);
    for (int round = 0; round < 12; ++round) {
      world.WriteRules();
      CompareRound(world, counts);
      if (round % 4 == 0) CompareBelowTop(world, counts);
    }
  }
  Print("check-ignore", counts);
  EXPECT_EQ(counts.differences, 0u);
  EXPECT_GT(counts.matched, counts.decisions / 10);  // or the patterns fit nothing
  EXPECT_GT(counts.negated, counts.decisions / 100);
}

// --- git ls-files --------------------------------------------------------------------

std::set<std::string> ListFiles(const RuleWorld& world, const std::string& dir) {
  const std::string output =
      world.Git({"ls-files", "-coz", "--exclude-standard"}, "", dir);
  std::set<std::string> files;
  for (size_t at = 0; at < output.size();) {
    const size_t end = output.find('\0', at);
    files.insert(output.substr(at, end - at));
    at = end + 1;
  }
  return files;
}

// Walks as the scanner does, into what Decide() says is worth it, and lists the files
// that are covered; a nested repository by its own name and a slash, as git does.
class Walker {
 public:
  Walker(const RuleWorld& world, std::map<std::string, std::set<std::string>> tracked)
      : world_(world), tracked_(std::move(tracked)) {}

  void WalkTop() {
    Walk("", DirRules::Root(NothingOfOurs(), Rules(""), Files("")), "");
  }

  std::map<std::string, std::set<std::string>> found;  // by repository
  uint64_t decisions = 0;
  uint64_t left_out = 0;

 private:
  std::shared_ptr<const WorkTree> Rules(const std::string& dir) const {
    std::set<std::string, std::less<>> paths;
    for (const std::string& path : tracked_.at(dir)) paths.insert(path);
    return world_.Rules(std::make_shared<TestIndex>(std::move(paths)), dir);
  }
  DirFiles Files(const std::string& dir) {
    bytes_ = world_.ReadRules(dir + ".gitignore");
    DirFiles files;
    if (bytes_) files.gitignore = *bytes_;
    return files;
  }
  void Walk(const std::string& dir, const DirRules::Ptr& rules,
            const std::string& repository) {
    std::set<std::string>& files = found[repository];
    const size_t skip = repository.empty() ? 0 : repository.size() + 1;
    for (const std::string& name : world_.List(dir)) {
      if (name == ".git") continue;
      const std::string path = dir + name;
      const bool is_dir = world_.IsDirectory(path);
      const Decision d = rules->Decide(name, is_dir);
      ++decisions;
      left_out += d.covered ? 0 : 1;
      if (!is_dir) {
        if (d.covered) files.insert(path.substr(skip));
      } else if (tracked_.contains(path)) {
        if (d.covered) files.insert(path.substr(skip) + "/");
        if (d.descend == Descend::kNo) continue;
        DirFiles own = Files(path + "/");
        Walk(path + "/", rules->EnterWorkTree(name, Rules(path), own),
             d.covered ? path : "left out");
      } else if (d.descend != Descend::kNo) {
        DirFiles own = Files(path + "/");
        Walk(path + "/", rules->Enter(name, own), repository);
      }
    }
  }

  const RuleWorld& world_;
  std::map<std::string, std::set<std::string>> tracked_;  // by repository
  std::optional<std::string> bytes_;
};

// The repository of a path and the path in it.
std::pair<std::string, std::string> Locate(const std::string& path,
                                           const std::set<std::string>& repositories) {
  for (size_t at = path.rfind('/'); at != std::string::npos && at > 0;
       at = path.rfind('/', at - 1))
    if (repositories.contains(path.substr(0, at)))
      return {path.substr(0, at), path.substr(at + 1)};
  return {"", path};
}

TEST_F(Differential, WalksToTheFilesThatGitLists) {
  SeededRandom random(TestSeed(5));
  const uint64_t wanted = RunEverything() ? 300'000 : 12'000;
  Counts counts;
  uint64_t nested = 0;
  uint64_t tracked_files = 0;
  while (counts.decisions < wanted && counts.differences <= 20) {
    RuleWorld world(random, 60 + random.Below(200), random.Below(3) == 0, false);
    std::set<std::string> repositories;
    for (const auto& [path, kind] : world.tree()) {
      if (kind != NodeKind::kDirectory || random.Below(12) != 0) continue;
      world.InitRepository(path);
      repositories.insert(path);
    }
    std::map<std::string, std::set<std::string>> tracked;
    tracked[""];
    for (const std::string& dir : repositories) tracked[dir];
    for (const auto& [path, kind] : world.tree()) {
      if (kind == NodeKind::kDirectory || random.Below(4) != 0) continue;
      auto [repository, within] = Locate(path, repositories);
      tracked[repository].insert(within);
    }
    for (const auto& [dir, paths] : tracked) {
      std::string input;
      for (const std::string& path : paths) input += path + '\0';
      if (!input.empty())
        world.Git({"update-index", "--add", "-z", "--stdin"}, input, dir);
      tracked_files += paths.size();
    }
    for (int round = 0; round < 6; ++round) {
      world.WriteRules();
      Walker walker(world, tracked);
      walker.WalkTop();
      counts.decisions += walker.decisions;
      counts.left_out += walker.left_out;
      for (const auto& [dir, ours] : walker.found) {
        if (dir == "left out") {  // nothing is covered there
          for (const std::string& path : ours) Report(counts, path, "", "covered");
          continue;
        }
        nested += dir.empty() ? 0 : 1;
        const std::set<std::string> git = ListFiles(world, dir);
        for (const std::string& path : git)
          if (!ours.contains(path)) Report(counts, dir + "|" + path, "listed", "not");
        for (const std::string& path : ours)
          if (!git.contains(path)) Report(counts, dir + "|" + path, "not listed", "is");
      }
    }
  }
  Print("ls-files", counts);
  std::printf("%" PRIu64 " lists of nested repositories, %" PRIu64 " tracked files\n",
              nested, tracked_files);
  EXPECT_EQ(counts.differences, 0u);
  EXPECT_GT(nested, 20u);
}

}  // namespace
}  // namespace belay::test
