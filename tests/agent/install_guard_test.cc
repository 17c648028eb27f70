// Hooks of agents that do not go on when the program is gone: guarded, and known again
// with and without the guard.

#include <gtest/gtest.h>

#include "agent/install_hooks_internal.h"
#include "agent/jsonc.h"
#include "support/fs_world.h"

namespace belay {
namespace {

using test::Must;

const AbsPath kBelay = AbsPath::Literal("/usr/bin/belay");

HookPrograms Programs() { return {.now = kBelay}; }

// Mutant: hooks-without-their-program-fail.
TEST(InstallGuard, WhatADeadHookStopsIsGuarded) {
  auto line = [](AgentKind agent, const AbsPath& program) {
    return HookLine(ProfileOf(agent), program, "preToolUse");
  };
  EXPECT_EQ(line(AgentKind::kCopilot, kBelay),
            "[ ! -x /usr/bin/belay ] || /usr/bin/belay hook copilot preToolUse");
  EXPECT_EQ(line(AgentKind::kGemini, kBelay),
            "[ ! -x /usr/bin/belay ] || /usr/bin/belay hook gemini");
  EXPECT_EQ(line(AgentKind::kGemini, AbsPath::Literal("/my tools/it's/belay")),
            "[ ! -x '/my tools/it'\\''s/belay' ] || '/my tools/it'\\''s/belay' hook "
            "gemini");
  for (AgentKind agent : {AgentKind::kClaude, AgentKind::kCodex, AgentKind::kQwen,
                          AgentKind::kReasonix, AgentKind::kCrush})
    EXPECT_EQ(line(agent, kBelay),
              "/usr/bin/belay hook " + std::string(AgentName(agent)));
}

TEST(InstallGuard, BothFormsAreOurs) {
  const std::pair<const char*, const char*> rows[] = {
      {"/usr/bin/belay hook copilot preToolUse", "/usr/bin/belay"},
      {"[ ! -x /usr/bin/belay ] || /usr/bin/belay hook copilot stop", "/usr/bin/belay"},
      {"[ ! -x '/a ] || b/belay' ] || '/a ] || b/belay' hook copilot",
       "/a ] || b/belay"},
      {"[ ! -x /usr/bin/belay ] || /opt/belay hook copilot", ""},
      {"[ ! -x /usr/bin/belay /x ] || /usr/bin/belay hook copilot", ""},
      {"[ ! -x /usr/bin/belay ] || /usr/bin/belay hook gemini", ""},
      {"[ ! -x /usr/bin/belay ] || /usr/bin/belay hook copilot || true", ""},
      {"[ ! -x /usr/bin/belay ] || ", ""},
      {"[ ! -x  ] || /usr/bin/belay hook copilot", ""},
      {"[ ! -x ] || ", ""},
  };
  for (const auto& [command, program] : rows)
    EXPECT_EQ(ProgramOfHook(command, AgentKind::kCopilot, Programs()).value_or(""),
              program)
        << command;
  // Somebody made more of it, or put a guard where we have none.
  EXPECT_EQ(
      ProgramInCommand("[ ! -x /usr/bin/belay ] || /usr/bin/belay hook copilot 2>>log",
                       AgentKind::kCopilot, Programs()),
      "/usr/bin/belay");
  EXPECT_FALSE(ProgramOfHook("[ ! -x /usr/bin/belay ] || /usr/bin/belay hook claude",
                             AgentKind::kClaude, Programs()));
}

TEST(InstallGuard, TheOldFormIsPutRightAndTakenOut) {
  const AgentProfile& profile = ProfileOf(AgentKind::kCopilot);
  const HookPrograms programs = Programs();
  const Jsonc empty = Must(Jsonc::Parse("", "f"));
  const Jsonc now = Must(MergeHooks(empty, profile, programs));
  std::string text(now.text());
  const std::string guard = "[ ! -x /usr/bin/belay ] || ";
  for (size_t at; (at = text.find(guard)) != std::string::npos;)
    text.erase(at, guard.size());
  const Jsonc old = Must(Jsonc::Parse(text, "f"));
  const auto found = Must(FindHooks(old, profile, programs));
  ASSERT_EQ(found.size(), profile.events.size());
  for (const RegisteredHook& hook : found) {
    EXPECT_EQ(hook.program, "/usr/bin/belay");
    EXPECT_FALSE(hook.right || hook.changed) << hook.command;
  }
  const Jsonc merged = Must(MergeHooks(old, profile, programs));
  EXPECT_EQ(merged.text(), now.text());
  for (const RegisteredHook& hook : Must(FindHooks(merged, profile, programs)))
    EXPECT_TRUE(hook.right && !hook.changed) << hook.command;
  for (const Jsonc& doc : {old, merged})
    EXPECT_TRUE(
        IsBareSettings(Must(RemoveHooks(doc, profile, programs, nullptr)), profile));
}

}  // namespace
}  // namespace belay
