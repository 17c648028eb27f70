// Whole commands over file systems that fail.

#include "cli/run.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "cli/environment.h"
#include "cli/outcome.h"

namespace belay {
namespace {

using test::Outcome;

constexpr char kOld[] = "# mine\nnotice = false\n";
constexpr char kNew[] = "# mine\nnotice = true\n";

class RunTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("BELAY_CONFIG", "/home/me/.config/belay/config.toml", 1);
  }
  void TearDown() override { unsetenv("BELAY_CONFIG"); }

  static std::unique_ptr<MemFs> Disk(bool with_settings) {
    auto fs = std::make_unique<MemFs>();
    EXPECT_TRUE(MakeDirs(*fs, AbsPath::Literal("/home/me"), 0755).ok());
    EXPECT_TRUE(MakeDirs(*fs, AbsPath::Literal("/project"), 0755).ok());
    if (with_settings) {
      Fd dir = MakeDirs(*fs, AbsPath::Literal("/home/me/.config/belay"), 0700).value();
      EXPECT_TRUE(
          ReplaceFile(*fs, dir, Name::Literal("config.toml"), AsBytes(kOld), 0600)
              .ok());
    }
    return fs;
  }

  static Outcome Run(Fs& fs, std::vector<std::string> words) {
    words.insert(words.begin(), "belay");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.code = RunCli(fs, static_cast<int>(argv.size()), argv.data());
    outcome.err = testing::internal::GetCapturedStderr();
    outcome.out = testing::internal::GetCapturedStdout();
    return outcome;
  }

  static Outcome Set(Fs& fs) {
    return Run(fs, {"config", "notice", "true", "--root", "/project", "-q"});
  }

  // The settings file, or "" when there is none.
  static std::string Held(Fs& fs) {
    auto dir = fs.OpenDir(AbsPath::Literal("/home/me/.config/belay"));
    if (!dir.ok()) return "";
    auto bytes = ReadSmallFile(fs, *dir, Name::Literal("config.toml"), 1 << 20);
    return bytes.ok() ? std::string(AsText(*bytes)) : "";
  }
};

TEST_F(RunTest, ConfigWritesThroughTheFsItWasGiven) {
  auto disk = Disk(true);
  EXPECT_EQ(Set(*disk).code, 0);
  EXPECT_EQ(Held(*disk), kNew);
  EXPECT_EQ(disk->open_handles(), 0u);
}

TEST_F(RunTest, StatusOnlyLooks) {
  auto disk = Disk(false);
  std::string before = disk->TreeText();
  FaultFs fs(*disk);
  Outcome outcome = Run(fs, {"status", "--root", "/project", "--json"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out,
            "{\"root\":\"/project\",\"protected\":false,\"last\":null,"
            "\"recovered\":null,\"watching\":false,\"looks_like\":null,"
            "\"failures\":[]}\n");
  EXPECT_EQ(disk->TreeText(), before);
}

// Mutant: files-are-swallowed-with-the-chat.
TEST_F(RunTest, WhatIsAboutFilesDoesNotGoWithTheConversation) {
  auto disk = Disk(false);
  const std::vector<std::string> chat = {"rollback", "turn:2", "--root", "/project",
                                         "--chat"};
  auto code = [&](std::vector<std::string> more, const std::string& scope = "--chat") {
    std::vector<std::string> words = chat;
    words.back() = scope;
    words.insert(words.end(), more.begin(), more.end());
    return Run(*disk, words).code;
  };
  for (const char* flag : {"--exact", "--keep-outside", "--git=reset", "--git=revert",
                           "--switch", "--git-nested", "--delete-ignored",
                           "--skip-damaged", "--preserve-times", "--external-files"}) {
    EXPECT_EQ(code({flag}), 2) << flag;
    EXPECT_EQ(code({flag, "--dry-run"}), 2) << flag;
    EXPECT_EQ(code({flag}, "--both"), 1) << flag << ": nothing is protected there";
  }
  for (const char* scope : {"--chat", "--both"}) {
    EXPECT_EQ(code({"--", "a.txt"}, scope), 2) << scope;
    EXPECT_EQ(code({"--git=keep"}, scope), 1) << scope;
    EXPECT_EQ(code({"--yes"}, scope), 1) << scope;
  }
  EXPECT_EQ(code({"--", "a.txt"}, "--code"), 1);
}

// Mutant: hooks-roll-back.
TEST_F(RunTest, WhatBelayRunsDoesNotRollBackWhateverHookItIsOf) {
  MemFs::Options options;
  options.uid = geteuid();
  MemFs disk(options);
  ASSERT_TRUE(MakeDirs(disk, AbsPath::Literal("/project"), 0755).ok());
  setenv("BELAY_HOME", "/store", 1);
  EXPECT_EQ(Run(disk, {"on", "/project"}).code, 0);
  for (const char* hook : {"summarize", "on_session_end", "after_rollback"}) {
    setenv("BELAY_HOOK", hook, 1);
    for (const char* command : {"undo", "redo"}) {
      const Outcome outcome = Run(disk, {command, "--root", "/project"});
      EXPECT_EQ(outcome.code, 1);
      EXPECT_TRUE(outcome.Says("may not roll back")) << hook << ": " << outcome.err;
    }
  }
  unsetenv("BELAY_HOOK");
  EXPECT_FALSE(Run(disk, {"undo", "--root", "/project"}).Says("may not roll back"));
  unsetenv("BELAY_HOME");
}

// Mutants: no-guard-where-it-is-unknown, half-a-guard-is-one.
TEST_F(RunTest, AGuardThatIsNotKnownDoesNotSayYes) {
  MemFs::Options options;
  options.uid = geteuid();
  MemFs disk(options);
  ASSERT_TRUE(MakeDirs(disk, AbsPath::Literal("/project"), 0755).ok());
  const Fd settings =
      MakeDirs(disk, AbsPath::Literal("/home/me/.config/belay"), 0700).value();
  setenv("BELAY_HOME", "/store", 1);
  EXPECT_EQ(Run(disk, {"on", "/project"}).code, 0);
  auto undo = [&](std::string_view text) {
    EXPECT_TRUE(
        ReplaceFile(disk, settings, Name::Literal("config.toml"), AsBytes(text), 0600)
            .ok());
    return Run(disk, {"undo", "--root", "/project"});
  };
  const std::string known = "max_files = 5\n";
  for (const char* text :
       {"hooks.before_rollback = \"a\"", "hooks.before_rollback = [[]]",
        "hooks.before_rollback = [\"a\"", "hook.before_rollback = [\"a\"]",
        "hooks.before_rollback = [[\"a\"],\n[\"b\" \"c\"],\n]"}) {
    const Outcome outcome = undo(known + text);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(outcome.Says("config.toml:") && outcome.Says("not known whom"))
        << text << ": " << outcome.err;
  }
  for (const char* text : {"", "# hooks.before_rollback = \"a\"\nmax_files = [",
                           "hooks.before_rollback = []\nmax_files = \"many\""})
    EXPECT_TRUE(undo(text).Says("nothing to undo")) << text;
  unsetenv("BELAY_HOME");
}

TEST_F(RunTest, EveryFailedCallLeavesTheOldSettingsOrTheNew) {
  for (bool existing : {true, false}) {
    for (int sys : {EIO, ENOSPC, EACCES}) {
      for (uint64_t at = 1;; ++at) {
        ASSERT_LT(at, 200u);
        auto disk = Disk(existing);
        std::string before = Held(*disk);
        bool fired = false;
        int code = 0;
        {
          FaultFs fs(*disk, Fault::Errno(at, sys));
          code = Set(fs).code;
          fired = fs.fired();
          std::string after = Held(*disk);
          std::string fresh = existing ? kNew : "notice = true\n";
          ASSERT_TRUE(after == before || after == fresh) << fs.Where() << ": " << after;
          if (code == 0) {
            ASSERT_EQ(after, fresh) << fs.Where();
          }
          ASSERT_TRUE(code == 0 || code == 1 || code == 5)
              << fs.Where() << ": " << code;
        }
        EXPECT_EQ(disk->open_handles(), 0u) << at;
        if (!fired) {
          EXPECT_EQ(code, 0);
          break;
        }
      }
    }
  }
}

TEST_F(RunTest, EveryPowerCutLeavesTheOldSettingsOrTheNew) {
  for (uint64_t at = 1;; ++at) {
    ASSERT_LT(at, 200u);
    auto disk = Disk(true);
    FaultFs fs(*disk, Fault::PowerCut(at));
    int code = Set(fs).code;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      auto after = disk->Clone();
      after->Crash(seed == 0 ? CrashPolicy::DropUnsynced() : CrashPolicy::Tear(seed));
      std::string held = Held(*after);
      ASSERT_TRUE(held == kOld || held == kNew)
          << fs.Where() << " seed " << seed << held;
      if (code == 0) {
        ASSERT_EQ(held, kNew) << fs.Where() << " seed " << seed;
      }
    }
    if (!fs.fired()) break;
  }
}

TEST(Environment, PlacesFollowTheVariablesInOrder) {
  Environment env;
  env.cwd = AbsPath::Literal("/home/u");
  env.home = "/home/me";
  auto store = [&] { return env.StoreDir().value().bytes(); };
  auto file = [&] { return env.UserSettingsFile().value().bytes(); };
  EXPECT_EQ(store(), "/home/me/.local/share/belay");
  EXPECT_EQ(file(), "/home/me/.config/belay/config.toml");
  env.xdg_data_home = "relative";
  env.xdg_config_home = "relative";
  EXPECT_EQ(store(), "/home/me/.local/share/belay");
  EXPECT_EQ(file(), "/home/me/.config/belay/config.toml");
  env.xdg_data_home = "/data/";
  env.xdg_config_home = "/config//x";
  EXPECT_EQ(store(), "/data/belay");
  EXPECT_EQ(file(), "/config/x/belay/config.toml");
  // Another one in every directory would be no store.
  env.belay_home = "../store";
  EXPECT_FALSE(env.StoreDir().ok());
  // Nor would a file of whatever directory one is in be the user's settings.
  env.belay_config = "my.toml";
  EXPECT_FALSE(env.UserSettingsFile().ok());
  env.belay_config = "/my.toml";
  EXPECT_EQ(file(), "/my.toml");
  env.belay_home = "/s";
  EXPECT_EQ(store(), "/s");
}

// Mutant: a-wrong-word-stops-the-agent. (Input is not asked for.)
TEST_F(RunTest, WordsThatAHookDoesNotKnowStopNobody) {
  auto fs = Disk(true);
  EXPECT_EQ(Run(*fs, {"hook", "claude", "--bogus"}).code, 0);
  EXPECT_EQ(Run(*fs, {"hook", "claude", "PreToolUse", "more"}).code, 0);
  EXPECT_EQ(Run(*fs, {"hook"}).code, 0);
  EXPECT_EQ(Run(*fs, {"list", "--bogus"}).code, 2);
}

TEST(Environment, WithoutADirectoryOnlyAbsolutePathsResolve) {
  Environment env;
  EXPECT_EQ(env.Resolve("/a/../b").value().bytes(), "/b");
  EXPECT_EQ(env.Resolve("b").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace belay
