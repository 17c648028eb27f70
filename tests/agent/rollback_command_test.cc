// Whose `/rollback` it is.

#include "agent/rollback_command.h"

#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "support/fs_world.h"

namespace belay {
namespace {

using test::Must;

class RollbackCommandTest : public ::testing::Test {
 protected:
  static AbsPath A(std::string_view path) { return AbsPath::Literal(path); }
  RollbackCommandTest() { Must(MakeDirs(fs_, A("/home/u/src/p/below"), 0755)); }
  void Put(const std::string& path, std::string_view text) {
    const AbsPath at = A(path);
    Must(MakeDirs(fs_, at.parent(), 0755));
    Must(test::PutFile(fs_, Must(fs_.OpenDir(at.parent())),
                       test::P(path.substr(path.rfind('/') + 1)), text));
  }
  bool IsTheirs(AgentKind agent) {
    return HasRollbackOfOthers(fs_, agent, places_, A("/home/u/src/p/below"),
                               A("/home/u/src/p"));
  }

  MemFs fs_;
  InstallPlaces places_{.program = A("/usr/bin/belay"),
                        .home = A("/home/u"),
                        .config_home = A("/home/u/.config"),
                        .store = A("/store")};
};

// Mutant: every-rollback-is-ours.
TEST_F(RollbackCommandTest, ACommandOfSomebodyElsesIsTheirs) {
  const std::pair<AgentKind, const char*> rows[] = {
      {AgentKind::kClaude, "/home/u/.claude/commands/rollback.md"},
      {AgentKind::kClaude, "/home/u/.claude/skills/rollback/SKILL.md"},
      {AgentKind::kClaude, "/home/u/src/p/.claude/commands/rollback.md"},
      {AgentKind::kClaude, "/home/u/src/p/below/.claude/commands/rollback.md"},
      {AgentKind::kCodex, "/home/u/.codex/prompts/rollback.md"},
      {AgentKind::kCopilot, "/home/u/.copilot/skills/rollback/SKILL.md"},
      {AgentKind::kCopilot, "/home/u/src/p/.github/skills/rollback/SKILL.md"},
      {AgentKind::kReasonix, "/home/u/.reasonix/commands/rollback.md"},
  };
  for (const auto& [agent, path] : rows) {
    SCOPED_TRACE(path);
    EXPECT_FALSE(IsTheirs(agent));
    Put(path, "Take the deployment back");
    EXPECT_TRUE(IsTheirs(agent));
    for (AgentKind other : kAllAgents)
      EXPECT_EQ(IsTheirs(other), other == agent) << AgentName(other);
    Must(fs_.Unlink(
        Must(fs_.OpenDir(A(path).parent())),
        test::N(std::string_view(path).substr(std::string_view(path).rfind('/') + 1))));
  }
}

TEST_F(RollbackCommandTest, OursIsOursAlsoChanged) {
  const std::string file = "/home/u/.claude/commands/rollback.md";
  Put(file, "---\n---\n!`/usr/bin/belay __slash claude $ARGUMENTS`\n\nmine\n");
  EXPECT_FALSE(IsTheirs(AgentKind::kClaude));
  // Ours beside theirs.
  Put("/home/u/src/p/.claude/commands/rollback.md", "theirs");
  EXPECT_TRUE(IsTheirs(AgentKind::kClaude));
}

TEST_F(RollbackCommandTest, WhatIsElsewhereDoesNotCount) {
  Put("/home/u/src/.claude/commands/rollback.md", "of another project");
  Put("/home/u/.claude/commands/other.md", "/rollback");
  EXPECT_FALSE(IsTheirs(AgentKind::kClaude));
  places_.claude_config_dir = A("/moved");
  Put("/moved/commands/rollback.md", "theirs");
  EXPECT_TRUE(IsTheirs(AgentKind::kClaude));
  // A link to theirs, one that leads nowhere, one to itself.
  Must(MakeDirs(fs_, A("/home/u/.reasonix/commands"), 0755));
  const Fd dir = Must(fs_.OpenDir(A("/home/u/.reasonix/commands")));
  for (const auto& [target, theirs] :
       {std::pair{"/moved/commands/rollback.md", true}, std::pair{"/nowhere", false},
        std::pair{"rollback.md", false}}) {
    Must(fs_.Symlink(dir, test::N("rollback.md"), target));
    EXPECT_EQ(IsTheirs(AgentKind::kReasonix), theirs) << target;
    Must(fs_.Unlink(dir, test::N("rollback.md")));
  }
}

}  // namespace
}  // namespace belay
