#include <gtest/gtest.h>

#include "agent/install_trust_internal.h"
#include "base/mem_fs.h"
#include "support/fs_world.h"

namespace belay {
namespace {

using test::Must;

// What Codex 0.166.0 itself lists as `currentHash` (app-server, hooks/list) of hooks
// with these commands.
TEST(CodexTrust, HashesAreThoseThatCodexComputes) {
  const std::string plain = "/usr/local/bin/belay hook codex";
  const std::pair<RegisteredHook, std::string_view> rows[] = {
      {{.event = "PreToolUse", .command = plain, .timeout = 60},
       "30bf359f565911bee2ca2711a7951c8bd6b6b826a993318c67c07f66457af67d"},
      {{.event = "SessionEnd", .command = plain, .timeout = 3},
       "975c976cb04939fa4e26ed5b7cfcefcedb969230dfe3d315cc10f5c521a84bee"},
      {{.event = "SessionEnd", .command = plain, .timeout = 60},
       "975c976cb04939fa4e26ed5b7cfcefcedb969230dfe3d315cc10f5c521a84bee"},
      {{.event = "Stop",
        .command = "'/home/u/my tools/it'\\''s/belay' hook codex",
        .timeout = 60},
       "e36d6772847366d16d2272b83551ed6f5fccd879062609a205e8c887080a7d89"},
      {{.event = "PostToolUse",
        .command = "/opt/b\xc3\xa9lay/belay hook codex",
        .matcher = "Bash|apply_patch"},
       "17057cf6d61035b6ce5a19a84445413ca585969f544185ab1d5dc9b8efb8233b"},
  };
  for (const auto& [hook, hash] : rows)
    EXPECT_EQ(CodexHookHash(hook), "sha256:" + std::string(hash))
        << hook.event << " " << hook.command;
}

const std::vector<TrustStamp> kStamps = {
    {"/h/.codex/hooks.json:stop:0:0", "sha256:aa"},
    {"/h/.codex/hooks.json:stop:1:0", "sha256:bb"}};

TEST(CodexTrust, StampsAreAppendedAndTakenOutToTheSameBytes) {
  const std::string_view files[] = {
      "model = \"x\"\n",
      "# mine\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n",
      "[a]\nb = 1\r\n\r\n",
      "[hooks.state.\"/other:stop:0:0\"]\ntrusted_hash = \"sha256:cc\"\n",
  };
  for (std::string_view text : files) {
    const std::string stamped = Must(AddTrust(text, "config.toml", kStamps));
    EXPECT_TRUE(stamped.starts_with(text));
    EXPECT_EQ(Must(CountTrusted(stamped, "config.toml", kStamps)), 2u) << stamped;
    EXPECT_EQ(Must(AddTrust(stamped, "config.toml", kStamps)), stamped);
    EXPECT_EQ(Must(RemoveTrust(stamped, "config.toml", kStamps)), text) << stamped;
  }
  const std::string alone = Must(AddTrust("", "config.toml", kStamps));
  EXPECT_EQ(alone,
            "[hooks.state.\"/h/.codex/hooks.json:stop:0:0\"]\ntrusted_hash = "
            "\"sha256:aa\"\n\n[hooks.state.\"/h/.codex/hooks.json:stop:1:0\"]\n"
            "trusted_hash = \"sha256:bb\"\n");
  EXPECT_EQ(Must(RemoveTrust(alone, "config.toml", kStamps)), "");
}

TEST(CodexTrust, AnOlderStampIsPutRightAndWhatIsBesideItStays) {
  const std::string text =
      "[hooks.state.\"/h/.codex/hooks.json:stop:0:0\"]\nenabled = true # yes\n"
      "trusted_hash = 'sha256:old' # by hand\n\n[x]\ny = 1\n";
  const std::string stamped = Must(AddTrust(text, "config.toml", {kStamps[0]}));
  EXPECT_EQ(stamped,
            "[hooks.state.\"/h/.codex/hooks.json:stop:0:0\"]\nenabled = true # yes\n"
            "trusted_hash = \"sha256:aa\" # by hand\n\n[x]\ny = 1\n");
  EXPECT_EQ(Must(RemoveTrust(stamped, "config.toml", {kStamps[0]})),
            "[hooks.state.\"/h/.codex/hooks.json:stop:0:0\"]\nenabled = true # yes\n\n"
            "[x]\ny = 1\n");
  // Of another hash it is not ours.
  EXPECT_EQ(Must(RemoveTrust(text, "config.toml", {kStamps[0]})), text);
  const std::string bare =
      "[hooks.state.\"/h/.codex/hooks.json:stop:0:0\"]\nenabled = true";
  EXPECT_EQ(
      Must(CountTrusted(Must(AddTrust(bare, "c", {kStamps[0]})), "c", {kStamps[0]})),
      1u);
}

TEST(CodexTrust, AFileThatCannotTakeThemIsRefused) {
  const std::string_view files[] = {
      "hooks = { state = {} }\n",
      "[hooks]\nstate = 1\n",
      "[[hooks.state]]\nx = 1\n",
      "not toml",
  };
  for (std::string_view text : files)
    EXPECT_FALSE(AddTrust(text, "config.toml", kStamps).ok()) << text;
}

TEST(CodexTrust, IsStampedOnlyWhenAskedAndGoesWithTheHooks) {
  MemFs fs;
  FakeClock clock;
  for (std::string_view dir : {"/h/.codex", "/src/p", "/store"})
    Must(MakeDirs(fs, AbsPath::Literal(dir), 0755));
  const Fd codex = Must(fs.OpenDir(AbsPath::Literal("/h/.codex")));
  const std::string mine = "model = \"x\"";
  Must(test::PutFile(fs, codex, test::P("config.toml"), mine));
  InstallPlaces user{.program = AbsPath::Literal("/usr/bin/belay"),
                     .home = AbsPath::Literal("/h"),
                     .config_home = AbsPath::Literal("/h/.config"),
                     .store = AbsPath::Literal("/store"),
                     .uid = 1000};
  InstallPlaces project = user;
  project.project = AbsPath::Literal("/src/p");
  auto toml = [&] { return Must(test::GetFile(fs, codex, test::P("config.toml"))); };
  auto install = [&](const InstallPlaces& places, bool trust) {
    AgentPlan plan = PlanInstall(fs, places, AgentKind::kCodex, trust);
    Must(ApplyInstall(fs, clock, places, plan));
    EXPECT_TRUE(plan.refused.empty());
    return plan;
  };
  auto uninstall = [&](const InstallPlaces& places) {
    AgentPlan plan = PlanUninstall(fs, places, AgentKind::kCodex);
    Must(ApplyUninstall(fs, clock, places, plan));
    EXPECT_TRUE(plan.refused.empty());
  };
  AgentPlan plan = install(user, false);
  EXPECT_EQ(toml(), mine) << "stamped without being asked";
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_NE(plan.notes[0].find("/hooks"), std::string::npos);
  EXPECT_EQ(LookAtAgent(fs, user, AgentKind::kCodex, "").user.trusted, false);
  plan = install(user, true);
  EXPECT_TRUE(plan.notes.empty());
  EXPECT_EQ(LookAtAgent(fs, user, AgentKind::kCodex, "").user.trusted, true);
  EXPECT_NE(toml().find("[hooks.state.\"/h/.codex/hooks.json:pre_tool_use:0:0\"]"),
            std::string::npos);

  // What another level needs stays until that goes too.
  install(project, true);
  EXPECT_NE(toml().find("/src/p/.codex/hooks.json:stop:0:0"), std::string::npos);
  uninstall(user);
  EXPECT_EQ(toml().find("\"/h/.codex/hooks.json:"), std::string::npos) << toml();
  EXPECT_EQ(LookAtAgent(fs, project, AgentKind::kCodex, "").project->trusted, true);
  uninstall(project);
  EXPECT_EQ(toml(), mine);
}

TEST(CodexTrust, WhatSomebodyMadeOfAHookIsNotStamped) {
  MemFs fs;
  FakeClock clock;
  for (std::string_view dir : {"/h/.codex", "/store"})
    Must(MakeDirs(fs, AbsPath::Literal(dir), 0755));
  const Fd codex = Must(fs.OpenDir(AbsPath::Literal("/h/.codex")));
  Must(test::PutFile(fs, codex, test::P("hooks.json"),
                     R"({"hooks": {"Stop": [{"hooks": [{"type": "command",
                         "command": "belay hook codex; /bin/evil"}]}]}})"));
  const InstallPlaces places{.program = AbsPath::Literal("/usr/bin/belay"),
                             .home = AbsPath::Literal("/h"),
                             .config_home = AbsPath::Literal("/h/.config"),
                             .store = AbsPath::Literal("/store"),
                             .uid = 1000};
  AgentPlan plan = PlanInstall(fs, places, AgentKind::kCodex, /*trust=*/true);
  Must(ApplyInstall(fs, clock, places, plan));
  const std::string toml = Must(test::GetFile(fs, codex, test::P("config.toml")));
  EXPECT_NE(toml.find("hooks.json:pre_tool_use:0:0"), std::string::npos) << toml;
  EXPECT_EQ(toml.find("hooks.json:stop:"), std::string::npos) << toml;
}

}  // namespace
}  // namespace belay
