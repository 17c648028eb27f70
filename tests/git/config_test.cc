// Git's settings as Belay reads them against `git config`.

#include "git/config.h"

#include <iostream>

#include "base/random.h"
#include "git/repository.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/git_world.h"

namespace belay::test {
namespace {

// "key\nvalue" or "key", as `git config --list -z` separates them, and the file's name.
struct Line {
  std::string text;
  std::string file;
  bool operator==(const Line&) const = default;
};
void PrintTo(const Line& line, std::ostream* out) {
  *out << testing::PrintToString(line.text) << " of " << line.file;
}

std::string LastName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<Line> OurLines(const GitConfig& config) {
  std::vector<Line> lines;
  for (const GitConfig::Entry& entry : config.entries())
    lines.push_back({entry.value ? entry.key + "\n" + *entry.value : entry.key,
                     LastName(entry.file)});
  return lines;
}

// The output of --list -z --show-origin; settings of the command line left out.
std::vector<Line> GitsLines(const std::string& output) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < output.size();) {
    size_t end = output.find('\0', at);
    parts.push_back(output.substr(at, end - at));
    at = end + 1;
  }
  std::vector<Line> lines;
  for (size_t i = 0; i + 1 < parts.size(); i += 2)
    if (parts[i].starts_with("file:"))
      lines.push_back({parts[i + 1], LastName(parts[i].substr(5))});
  return lines;
}

class ConfigTest : public testing::Test {
 protected:
  // One file and its includes against git.
  void ExpectFileAsGit(const std::string& text) {
    world.Write("f/config", text);
    ProcessResult git =
        world.TryGit("", {"config", "--file", (world / "f/config").bytes(),
                          "--includes", "--list", "-z", "--show-origin"});
    GitUserConfig user = world.user();
    user.global_override = (world / "f/config").bytes();
    GitConfig ours = GitConfig::Read(fs, user, {});
    EXPECT_EQ(ours.problems().empty(), git.ok())
        << testing::PrintToString(text) << "\n"
        << git.errors << testing::PrintToString(ours.problems());
    if (git.ok()) {
      EXPECT_EQ(OurLines(ours), GitsLines(git.output)) << testing::PrintToString(text);
    }
  }
  // Everything that counts in the repository `dir` against git.
  GitConfig ExpectAsGit(const std::string& dir) {
    std::string output =
        world.Git(dir, {"config", "--includes", "--list", "-z", "--show-origin"});
    auto repository = Must(OpenRepositoryAt(fs, world / dir, world.user()));
    BELAY_CHECK(repository.has_value());
    GitConfig ours;
    world.Around([&] {
      ours = GitConfig::Read(
          fs, world.user(),
          {.git_dir = repository->git_dir, .common_dir = repository->common_dir});
    });
    EXPECT_EQ(OurLines(ours), GitsLines(output));
    EXPECT_EQ(ours.problems(), std::vector<std::string>());
    return ours;
  }

  RealFs fs;
  GitWorld world;
};

TEST_F(ConfigTest, ReadsTheSyntaxAsGitDoes) {
  const std::string rows[] = {
      "",
      "\n\n",
      "[core]\n\tkey = value\n",
      "[CoRe]KeY=value",
      "[core]\nkey\nother\n",
      "[core]\nkey=\n",
      "[core]\n key = a b  \t c  \n",
      "[core]\n key = \"a b  \t c  \"  \n",
      "[core]\n key = a\\\n   b\n",
      "[core]\n key = a \\\n",
      "[core]\n key = a\\",
      "[core]\n key = \"a\\\nb\"\n",
      "[core]\n key = \"a\nb\"\n",
      "[core]\n key = a # b\n other = a;b\n third = \"#;\" ; c\n",
      "[core]\n key = \\t\\n\\b\\\\\\\"x\n",
      "[core]\n key = \\x\n",
      "[core]\n key = \"unclosed\n",
      "[core]\n key = mid\"dle quo\"ted\n",
      "[core \"Sub Section\"]\n key=1\n",
      "[core \"a.b\"]\nkey=1\n[core.A.B]\nkey=2\n[core.x]\nkey=3\n",
      "[core \"q\\\"uo\\\\te\\d\"]\nkey=1\n",
      "[core \"\"]\nkey=1\n",
      "[core \"x\" ]\nkey=1\n",
      "[core\t \"x\"]\nkey=1\n",
      "[core \"x\ny\"]\nkey=1\n",
      "[core \"x]\nkey=1\n",
      "[core",
      "[co_re]\nkey=1\n",
      "[]\nkey=1\n",
      "[core]\n[]\n",
      "[ \"x\"]\nkey=1\n",
      "[.]\nkey=1\n",
      "[core]key=1[core]other=2\n",
      "[core] key = 1 ; comment\n[next] # comment\nkey = 2\n",
      "nosection = 1\n",
      "[core]\n1key = 1\n",
      "[core]\nke_y = 1\n",
      "[core]\nke-y9 = 1\n",
      "[core]\nkey : 1\n",
      "[core]\nkey = 1\r\nother = 2\r\n\r\n[next]\r\nkey\r\n",
      "[core]\nkey = a\rb\r\n",
      "[core]\nkey = a\\\r\nb\n",
      "\xEF\xBB\xBF[core]\nkey=1\n",
      "\xEF\xBB[core]\nkey=1\n",
      "[core]\nkey = \xff\xfe\xc3\xa4\n",
      std::string("[core]\nkey = a\0b\nother = 1\n", 27),
      "[core]\nkey = \"\"\n",
      "[core]\nkey = \"\" \"\"\n",
      "[core]\nkey = \"a\" \"b\"\n",
      "[core]\n\vkey = 1\n",
      "[core]\nkey = \va\v\n",
      "; only a comment",
      "[core]\nkey = 1",
      "[include]\npath = more\n[core]\nkey = after\n",
  };
  world.Write("f/more", "[core]\nkey = included\n");
  for (const std::string& row : rows) ExpectFileAsGit(row);
}

std::string RandomText(SeededRandom& random) {
  static const std::string_view kPieces[] = {
      "[core]",    "[a \"b\"]", "[A.b]",   "[]",    "[",    "]",        "\"",
      "\\",        "\\\\",      "\\\"",    "\\n",   "\\t",  "\\b",      "=",
      " = ",       "\n",        "\n",      "\n",    "\r\n", "\r",       "#",
      ";",         " ",         "\t",      "key",   "Key",  "k-1",      "true",
      "value",     "\\\n",      ".",       "-",     "9",    "\xc3\xa4", "\xff",
      "key = x\n", "[x]\nk\n",  "\"a b\"", "[a \"", "\"]",  "\\\r\n"};
  std::string text;
  if (random.Below(3) != 0) text = "[core]\n";
  for (uint64_t pieces = random.Below(30); pieces > 0; --pieces) {
    if (random.Below(60) == 0)
      text += static_cast<char>(random.Below(256));
    else
      text += kPieces[random.Below(std::size(kPieces))];
  }
  return text;
}

TEST_F(ConfigTest, ReadsRandomFilesAsGitDoes) {
  SeededRandom random(TestSeed(11));
  int files = RunEverything() ? 20'000 : 400;
  for (int i = 0; i < files && !HasFailure(); ++i) ExpectFileAsGit(RandomText(random));
  std::cout << files << " files\n";
}

TEST_F(ConfigTest, TakesTheFilesInGitsOrder) {
  world.Init("repo");
  world.Write("home/.config/git/config", "[core]\n excludesFile = xdg\n[a]\nx=1\n");
  EXPECT_EQ(ExpectAsGit("repo").Text("core.excludesfile"), "xdg");
  world.Write("home/.gitconfig", "[core]\n excludesFile = ~/home\n");
  EXPECT_EQ(ExpectAsGit("repo").Text("core.excludesfile"), "~/home");
  world.Git("repo", {"config", "core.excludesFile", "local"});
  EXPECT_EQ(ExpectAsGit("repo").Text("core.excludesfile"), "local");
  world.Write("repo/.git/config.worktree", "[core]\nexcludesFile = own\n");
  EXPECT_EQ(ExpectAsGit("repo").Text("core.excludesfile"), "local");
  world.Git("repo", {"config", "core.repositoryFormatVersion", "1"});
  world.Git("repo", {"config", "extensions.worktreeConfig", "true"});
  EXPECT_EQ(ExpectAsGit("repo").Text("core.excludesfile"), "own");
}

TEST_F(ConfigTest, TheVariablesMoveTheFiles) {
  world.Init("repo");
  world.Write("home/.config/git/config", "[x]\nfrom = xdg\n");
  world.Write("home/.gitconfig", "[x]\nfrom = home\n");
  world.Write("other/git/config", "[x]\nfrom = other-xdg\n");
  world.Write("system", "[x]\nfrom = system\n");
  world.Write("global", "[x]\nfrom = global\n");
  auto from = [&](const GitUserConfig& user) {
    std::vector<std::string> all;
    GitConfig config = GitConfig::Read(fs, user, {});
    for (const auto& entry : config.entries()) all.push_back(entry.value.value_or(""));
    return all;
  };
  using All = std::vector<std::string>;
  GitUserConfig user = world.user();
  EXPECT_EQ(from(user), (All{"xdg", "home"}));
  user.xdg_config_home = "";
  EXPECT_EQ(from(user), (All{"xdg", "home"}));
  user.xdg_config_home = (world / "other").bytes();
  EXPECT_EQ(from(user), (All{"other-xdg", "home"}));
  user.no_system = false;
  user.system_file = (world / "system").bytes();
  EXPECT_EQ(from(user), (All{"system", "other-xdg", "home"}));
  user.system_override = "/dev/null";
  EXPECT_EQ(from(user), (All{"other-xdg", "home"}));
  user.system_override = (world / "system").bytes();
  user.global_override = (world / "global").bytes();
  EXPECT_EQ(from(user), (All{"system", "global"}));
  user.no_system = true;
  user.global_override = "";
  EXPECT_EQ(from(user), All{});
  user.global_override.reset();
  user.home.reset();
  user.xdg_config_home.reset();
  EXPECT_EQ(from(user), All{});
}

TEST_F(ConfigTest, FollowsIncludesAsGitDoes) {
  world.Init("repo");
  world.Write("home/inc/one", "[a]\nb = one\n[include]\npath = deeper/two\n");
  world.Write("home/inc/deeper/two", "[a]\nb = two\n[include]\npath = ../three\n");
  world.Write("home/inc/three", "[a]\nb = three\n");
  world.Symlink("home/inc/link", "deeper/two");
  world.Write("home/inc/elsewhere", "[a]\nb = elsewhere\n");
  world.Write("home/.gitconfig",
              "[include]\npath = ~/inc/one\npath = inc/link\n"
              "path = nowhere\npath = inc/one/not-a-directory\n"
              "path = " +
                  (world / "home/inc/elsewhere").bytes() + "\n[a]\nb = last\n");
  world.Git("repo", {"config", "include.path", "../../home/inc/three"});
  GitConfig config = ExpectAsGit("repo");
  EXPECT_EQ(config.Text("a.b"), "three");
}

TEST_F(ConfigTest, FollowsConditionsAsGitDoes) {
  world.Write("home/found", "[found]\nby = yes\n");
  world.Init("work/repo");
  world.Init("Other[x]/repo");
  world.Symlink("alias", "work");
  world.Git("work/repo", {"checkout", "-qb", "feature/one"});
  world.Git("work/repo", {"remote", "add", "origin", "https://example.com/team/x.git"});
  world.Write("Other[x]/included",
              "[includeIf \"gitdir:./repo/\"]\npath = ../home/found\n");
  world.Symlink("home-link", "home");
  const std::string scratch = world.path().bytes();
  const std::string conditions[] = {
      "gitdir:" + scratch + "/work/",
      "gitdir:" + scratch + "/work/repo/.git",
      "gitdir:" + scratch + "/work/repo",
      "gitdir:" + scratch + "/work/*/.git",
      "gitdir:" + scratch + "/work/**",
      "gitdir:" + scratch + "/alias/",
      "gitdir:work/",
      "gitdir:repo/.git",
      "gitdir:WORK/",
      "gitdir/i:WORK/",
      "gitdir/i:" + scratch + "/WORK/REPO/.GIT",
      "gitdir:~/",
      "gitdir:~/../work/",
      "gitdir:./work/",
      "gitdir:./",
      "gitdir:",
      "gitdir:Other[x]/",
      "gitdir:Other\\\\[x]/",
      "gitdir:**/repo/**",
      "gitdir:?ork/",
      "onbranch:feature/one",
      "onbranch:feature/",
      "onbranch:feature/*",
      "onbranch:*",
      "onbranch:**",
      "onbranch:main",
      "onbranch:",
      "hasconfig:remote.*.url:https://example.com/**",
      "hasconfig:remote.*.url:https://example.com/*",
      "hasconfig:remote.*.url:nothing",
      "hasconfig:other:x",
      "unknown:x",
      "",
  };
  for (const std::string& condition : conditions) {
    SCOPED_TRACE(condition);
    world.Write("home/.gitconfig",
                "[includeIf \"" + condition + "\"]\npath = ~/found\n[a]\nb = c\n");
    ExpectAsGit("work/repo");
    ExpectAsGit("Other[x]/repo");
  }
  world.Write("home/.gitconfig",
              "[include]\npath = " + scratch + "/Other[x]/included\n");
  EXPECT_EQ(ExpectAsGit("Other[x]/repo").Text("found.by"), "yes");
  EXPECT_EQ(ExpectAsGit("work/repo").Text("found.by"), std::nullopt);
}

TEST_F(ConfigTest, HasconfigDoesNotSeeWhatDependsOnIt) {
  world.Init("repo");
  world.Write("home/urls", "[user]\nname = x\n");
  world.Write("home/.gitconfig",
              "[includeIf \"hasconfig:remote.*.url:a*\"]\npath = ~/urls\n"
              "[remote \"later\"]\nurl = abc\n");
  EXPECT_EQ(ExpectAsGit("repo").Text("user.name"), "x");
}

TEST_F(ConfigTest, IncludesThatNestTooDeeplyEndAndAreNamed) {
  world.Write("home/.gitconfig", "[a]\nb = 1\n[include]\npath = ~/.gitconfig\n");
  GitConfig config = GitConfig::Read(fs, world.user(), {});
  EXPECT_EQ(config.problems().size(), 1u);
  EXPECT_EQ(config.Text("a.b"), "1");
  // Two includes each: git would not end within its depth before 2^10 files.
  world.Write("home/.gitconfig",
              "[include]\npath = ~/.gitconfig\npath = ~/.gitconfig\n[a]\nb=2\n");
  config = GitConfig::Read(fs, world.user(), {});
  EXPECT_EQ(config.Text("a.b"), "2");
  EXPECT_FALSE(config.problems().empty());
}

TEST_F(ConfigTest, NonsenseIsNamedAndTheRestCounts) {
  world.Write("home/.gitconfig", "[core]\nexcludesFile = good\n\nbad bad\n");
  world.Write("home/.config/git/config", "[core]\nignoreCase = yes\n");
  GitConfig config = GitConfig::Read(fs, world.user(), {});
  EXPECT_EQ(config.Text("core.excludesfile"), "good");
  EXPECT_EQ(config.Bool("core.ignorecase"), true);
  ASSERT_EQ(config.problems().size(), 1u);
  EXPECT_NE(config.problems()[0].find("/home/.gitconfig:4: "), std::string::npos)
      << config.problems()[0];
}

TEST_F(ConfigTest, WhatIsNoFileIsNamedAndDoesNotHang) {
  struct Row {
    const char* what;
    std::function<void()> make;
    size_t problems;
  };
  const Row rows[] = {
      {"a FIFO", [&] { world.MakeFifo("home/.gitconfig"); }, 1},
      {"a directory", [&] { world.MakeDir("home/.gitconfig"); }, 1},
      {"endless", [&] { world.Symlink("home/.gitconfig", "/dev/zero"); }, 1},
      {"a loop", [&] { world.Symlink("home/.gitconfig", ".gitconfig"); }, 1},
      {"a broken link", [&] { world.Symlink("home/.gitconfig", "nowhere"); }, 0},
      {"too large",
       [&] { world.Write("home/.gitconfig", std::string(9u << 20, '\n')); }, 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    row.make();
    GitConfig config = GitConfig::Read(fs, world.user(), {});
    EXPECT_TRUE(config.entries().empty());
    EXPECT_EQ(config.problems().size(), row.problems);
    world.Remove("home/.gitconfig");
  }
}

TEST_F(ConfigTest, TakesTruthAsGitDoes) {
  const char* rows[] = {"true",       "TRUE",       "yes",
                        "On",         "false",      "no",
                        "oFF",        "",           "1",
                        "0",          "-1",         "+2",
                        "007",        "08",         "0x0",
                        "0xg",        "0x1F",       "1k",
                        "0G",         "1m",         "4g",
                        "2g",         "1t",         "1kk",
                        "2147483647", "2147483648", "99999999999999999999",
                        "k",          "-",          "maybe",
                        "t",          "\" 1\"",     "\"1 \"",
                        "-0",         "0k",         "1.5"};
  for (const char* row : rows) {
    SCOPED_TRACE(row);
    world.Write("f/config", std::string("[a]\nb = ") + row + "\n");
    ProcessResult git = world.TryGit(
        "", {"config", "--file", (world / "f/config").bytes(), "--type=bool", "a.b"});
    auto ours = GitConfig::ReadOne(fs, world / "f/config").Bool("a.b");
    EXPECT_EQ(ours.has_value(), git.ok());
    if (ours && git.ok()) {
      EXPECT_EQ(*ours ? "true\n" : "false\n", git.output);
    }
  }
  EXPECT_EQ(GitConfig::Parse("[a]\nb\n", "x").Bool("a.b"), true);
  EXPECT_EQ(GitConfig::Parse("[a]\nb\n", "x").Bool("a.c"), std::nullopt);
}

TEST_F(ConfigTest, ExpandsPathsAsGitDoes) {
  const char* rows[] = {
      "~/ignore",          "~",         "~root/x",  "~root",
      "~nobody-here/x",    "/abs/path", "rel/path", "",
      "%(prefix)/share/x", "a~/b",      "~/",       "\"~/with space\"",
      "%(prefix)"};
  for (const char* row : rows) {
    SCOPED_TRACE(row);
    world.Write("home/.gitconfig", std::string("[core]\nexcludesFile = ") + row + "\n");
    ProcessResult git =
        world.TryGit("", {"config", "--type=path", "core.excludesFile"});
    GitConfig config = GitConfig::Read(fs, world.user(), {});
    auto ours = config.Path(fs, "core.excludesfile", world.user());
    EXPECT_EQ(ours.has_value(), git.ok()) << git.errors;
    if (ours && git.ok()) {
      EXPECT_EQ(*ours + "\n", git.output);
    }
  }
}

}  // namespace
}  // namespace belay::test
