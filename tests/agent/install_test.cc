#include "agent/install.h"

#include <gtest/gtest.h>

#include "agent/install_hooks_internal.h"
#include "agent/install_record_internal.h"
#include "agent/jsonc.h"
#include "base/mem_fs.h"
#include "base/tree_text.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"
#include "support/pass_fs.h"

namespace belay {
namespace {

using test::Must;
using test::N;
using test::P;

constexpr AgentKind kAgents[] = {
    AgentKind::kClaude,   AgentKind::kCodex, AgentKind::kOpencode,
    AgentKind::kGemini,   AgentKind::kQwen,  AgentKind::kCopilot,
    AgentKind::kReasonix, AgentKind::kCline, AgentKind::kCrush};

AbsPath A(std::string_view path) { return AbsPath::Literal(path); }

// A user's home, a project and a store, in memory.
class Desk {
 public:
  explicit Desk(Fs* through = nullptr) : fs_(through != nullptr ? through : &mem_) {
    for (std::string_view dir : {"/home/u", "/src/p", "/store", "/usr/bin"})
      Must(MakeDirs(mem_, A(dir), 0755));
    Put("/usr/bin/belay", "#!", 0755);
  }

  MemFs& mem() { return mem_; }
  Fs& fs() { return *fs_; }
  InstallPlaces& places() { return places_; }

  void Put(std::string_view path, std::string_view text, uint32_t mode = 0644) {
    const AbsPath at = A(path);
    const Fd dir = Must(MakeDirs(mem_, at.parent(), 0755));
    Must(test::PutFile(mem_, dir, P(path.substr(path.rfind('/') + 1)), text, mode));
  }
  std::optional<std::string> Get(std::string_view path) {
    auto dir = mem_.OpenDir(A(path).parent());
    if (!dir.ok()) return std::nullopt;
    auto text = test::GetFile(mem_, *dir, P(path.substr(path.rfind('/') + 1)));
    if (!text.ok()) return std::nullopt;
    return *text;
  }
  // What users see: not what is in the store.
  std::string Tree() {
    return Must(TreeText(mem_, Must(mem_.OpenDir(A("/home"))))) +
           Must(TreeText(mem_, Must(mem_.OpenDir(A("/src")))));
  }

  AgentPlan Install(AgentKind agent, bool trust = false) {
    AgentPlan plan = PlanInstall(fs(), places_, agent, trust);
    if (plan.changes()) Must(ApplyInstall(fs(), clock_, places_, plan));
    return plan;
  }
  AgentPlan Uninstall(AgentKind agent) {
    AgentPlan plan = PlanUninstall(fs(), places_, agent);
    Must(ApplyUninstall(fs(), clock_, places_, plan));
    return plan;
  }
  AgentStatus Look(AgentKind agent) {
    return LookAtAgent(fs(), places_, agent, "/nowhere:/usr/bin");
  }
  FakeClock& clock() { return clock_; }

 private:
  MemFs mem_;
  Fs* fs_;
  FakeClock clock_;
  InstallPlaces places_{.program = A("/usr/bin/belay"),
                        .home = A("/home/u"),
                        .config_home = A("/home/u/.config"),
                        .store = A("/store"),
                        .uid = 1000};
};

std::string Said(const AgentPlan& plan) {
  std::string out;
  for (const Error& error : plan.refused) out += error.what + "\n";
  for (const std::string& note : plan.notes) out += "note: " + note + "\n";
  return out;
}

// The settings file of each agent that has one, where nothing moved it.
std::string SettingsOf(AgentKind agent) {
  switch (agent) {
    case AgentKind::kClaude:
      return "/home/u/.claude/settings.json";
    case AgentKind::kCodex:
      return "/home/u/.codex/hooks.json";
    case AgentKind::kGemini:
      return "/home/u/.gemini/settings.json";
    case AgentKind::kQwen:
      return "/home/u/.qwen/settings.json";
    case AgentKind::kCopilot:
      return "/home/u/.copilot/hooks/belay.json";
    case AgentKind::kReasonix:
      return "/home/u/.reasonix/settings.json";
    case AgentKind::kCrush:
      return "/home/u/.config/crush/crush.json";
    default:
      return "";
  }
}

TEST(Install, WritesWhatClaudeTakes) {
  Desk desk;
  const AgentPlan plan = desk.Install(AgentKind::kClaude);
  EXPECT_EQ(Said(plan), "");
  const std::string text = desk.Get("/home/u/.claude/settings.json").value_or("");
  EXPECT_TRUE(text.starts_with(
      "{\n  \"hooks\": {\n    \"SessionStart\": [\n      {\n        \"hooks\": [\n     "
      " "
      "    {\n            \"type\": \"command\",\n            \"command\": "
      "\"/usr/bin/belay hook claude\",\n            \"timeout\": 60\n          }\n     "
      "   ]\n      }\n    ],\n"))
      << text;
  EXPECT_NE(text.find("\"PreToolUse\": [\n      {\n        \"matcher\": \"*\","),
            std::string::npos)
      << text;
  const std::string command =
      desk.Get("/home/u/.claude/commands/rollback.md").value_or("");
  EXPECT_NE(command.find("\n!`/usr/bin/belay __slash claude $ARGUMENTS`\n"),
            std::string::npos)
      << command;
  EXPECT_NE(command.find("\ndisable-model-invocation: true\n"), std::string::npos);
}

TEST(Install, TimeoutsAreInTheUnitOfTheAgent) {
  const std::pair<AgentKind, std::string_view> rows[] = {
      {AgentKind::kClaude, "\"timeout\": 60\n"},
      {AgentKind::kCodex, "\"timeout\": 60\n"},
      {AgentKind::kGemini, "\"timeout\": 60000\n"},
      {AgentKind::kQwen, "\"timeout\": 60\n"},
      {AgentKind::kCopilot, "\"timeoutSec\": 60\n"},
      {AgentKind::kReasonix, "\"timeout\": 60000,\n"},
      {AgentKind::kCrush, "\"timeout\": 60\n"},
  };
  for (const auto& [agent, timeout] : rows) {
    Desk desk;
    desk.Install(agent);
    const std::string text = desk.Get(SettingsOf(agent)).value_or("");
    EXPECT_NE(text.find(timeout), std::string::npos) << AgentName(agent) << text;
  }
  Desk desk;
  desk.Install(AgentKind::kCodex);
  const std::string text = *desk.Get(SettingsOf(AgentKind::kCodex));
  EXPECT_NE(text.find("\"timeout\": 3\n", text.find("\"SessionEnd\"")),
            std::string::npos)
      << "Codex gives this event three seconds";
}

TEST(Install, APathThatAShellWouldTakeApartIsQuoted) {
  Desk desk;
  desk.Put("/home/u/my tools/it's/belay", "#!", 0755);
  desk.places().program = A("/home/u/my tools/it's/belay");
  desk.Install(AgentKind::kCopilot);
  desk.Install(AgentKind::kCline);
  EXPECT_NE(desk.Get(SettingsOf(AgentKind::kCopilot))
                ->find(" || '/home/u/my tools/it'\\\\''s/belay' hook copilot "
                       "preToolUse\""),
            std::string::npos);
  EXPECT_NE(desk.Get("/home/u/.cline/hooks/PreToolUse")
                ->find("\nexec '/home/u/my tools/it'\\''s/belay' hook cline "
                       "PreToolUse\n"),
            std::string::npos);
  // It is known again.
  EXPECT_FALSE(desk.Install(AgentKind::kCopilot).changes());
  EXPECT_EQ(desk.Look(AgentKind::kCopilot).user.dead, std::vector<std::string>());
  EXPECT_EQ(desk.Look(AgentKind::kCline).user.dead, std::vector<std::string>());
}

TEST(Install, AllOfThemComeAndGoWithoutATrace) {
  for (const bool project : {false, true}) {
    Desk desk;
    if (project) desk.places().project = A("/src/p");
    const std::string before = desk.Tree();
    for (AgentKind agent : kAgents) {
      const AgentPlan plan = desk.Install(agent, /*trust=*/true);
      EXPECT_TRUE(plan.refused.empty()) << AgentName(agent) << ": " << Said(plan);
      EXPECT_TRUE(plan.changes()) << AgentName(agent);
      const AgentStatus status = desk.Look(agent);
      const HooksAt& hooks = project ? *status.project : status.user;
      EXPECT_EQ(hooks.registered, hooks.wanted) << AgentName(agent);
      EXPECT_FALSE(hooks.outdated) << AgentName(agent);
    }
    const std::string installed = desk.Tree();
    for (AgentKind agent : kAgents)
      EXPECT_FALSE(desk.Install(agent, true).changes()) << AgentName(agent);
    EXPECT_EQ(desk.Tree(), installed);
    for (AgentKind agent : kAgents) {
      const AgentPlan plan = desk.Uninstall(agent);
      EXPECT_TRUE(plan.refused.empty()) << AgentName(agent) << ": " << Said(plan);
    }
    EXPECT_EQ(desk.Tree(), before) << (project ? "of a project" : "of a user");
    for (AgentKind agent : kAgents)
      EXPECT_FALSE(desk.Uninstall(agent).changes()) << AgentName(agent);
  }
}

// Settings of other people, in every style: with comments, a byte order mark, tabs,
// DOS line ends, no last line end, hooks of their own for our events.
std::vector<std::string> ForeignSettings(AgentKind agent) {
  const bool flat = agent == AgentKind::kCopilot || agent == AgentKind::kReasonix ||
                    agent == AgentKind::kCrush;
  const std::string event = agent == AgentKind::kGemini    ? "BeforeTool"
                            : agent == AgentKind::kCopilot ? "preToolUse"
                                                           : "PreToolUse";
  const std::string entry =
      flat
          ? R"({"command": "mine --hook", "bash": "mine"})"
          : R"({"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]})";
  return {
      "{\n  // mine\n  \"model\": \"x\", /* as it is */\n  \"hooks\": {\n    \"" +
          event + "\": [\n      " + entry + ", // keep\n    ],\n  },\n}",
      "\xef\xbb\xbf{\r\n\t\"a\": [1, 2],\r\n\t\"hooks\": {\r\n\t\t\"Other\": "
      "[]\r\n\t}\r\n}",
      "{\"hooks\":{\"" + event + "\":[" + entry + "]},\"z\":1}",
      "{}",
      "{ }\n",
      "",
      "\n\n",
      "{\"hooks\":{}}",
      "{\n    \"hooks\" : {\n        \"" + event + "\": []\n    }\n}\n\n\n// end",
  };
}

TEST(Install, ForeignSettingsComeBackToTheByte) {
  for (AgentKind agent : kAgents) {
    if (SettingsOf(agent).empty()) continue;
    for (const std::string& text : ForeignSettings(agent)) {
      Desk desk;
      desk.Put(SettingsOf(agent), text, 0640);
      const std::string before = desk.Tree();
      const AgentPlan plan = desk.Install(agent);
      ASSERT_TRUE(plan.refused.empty()) << Said(plan) << text;
      const std::string installed = desk.Get(SettingsOf(agent)).value_or("");
      EXPECT_NE(installed, text);
      if (text.find("mine") != std::string::npos) {
        EXPECT_NE(installed.find("mine"), std::string::npos) << installed;
      }
      EXPECT_FALSE(desk.Install(agent).changes()) << installed;
      desk.Uninstall(agent);
      EXPECT_EQ(desk.Get(SettingsOf(agent)), text);
      EXPECT_EQ(desk.Tree(), before) << AgentName(agent);
    }
  }
}

TEST(Install, EveryForeignEntryStays) {
  const std::string text =
      "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": "
      "\"Bash\",\n"
      "        \"hooks\": [\n          { \"type\": \"command\", \"command\": \"mine\" "
      "}\n"
      "        ]\n      }\n    ],\n    \"Notification\": [\n      { \"hooks\": [{ "
      "\"type\": "
      "\"command\", \"command\": \"belay-like hook claude\" }] }\n    ]\n  }\n}\n";
  Desk desk;
  desk.Put("/home/u/.claude/settings.json", text);
  desk.Install(AgentKind::kClaude);
  const std::string installed = *desk.Get("/home/u/.claude/settings.json");
  for (std::string_view kept :
       {"\"command\": \"mine\"", "belay-like hook claude", "\"matcher\": \"Bash\""})
    EXPECT_NE(installed.find(kept), std::string::npos) << installed;
}

TEST(Install, WhatIsEditedSinceKeepsTheEdits) {
  for (AgentKind agent : kAgents) {
    if (SettingsOf(agent).empty()) continue;
    for (const std::string& text : ForeignSettings(agent)) {
      Desk desk;
      desk.Put(SettingsOf(agent), text);
      desk.Install(agent);
      // A member that the agent itself adds, as they do.
      auto doc = Must(Jsonc::Parse(*desk.Get(SettingsOf(agent)), "f"));
      doc = Must(doc.Append(doc.root(), "added", JsonDraft::Int(7)));
      desk.Put(SettingsOf(agent), doc.text());
      const AgentPlan plan = desk.Uninstall(agent);
      EXPECT_TRUE(plan.refused.empty()) << Said(plan);
      const std::string left = desk.Get(SettingsOf(agent)).value_or("");
      EXPECT_EQ(left.find("belay"), std::string::npos) << left;
      // The same as adding it to what was there before.
      auto fresh = Must(Jsonc::Parse(text, "f"));
      if (fresh.root() == Jsonc::kNone) continue;
      fresh = Must(fresh.Append(fresh.root(), "added", JsonDraft::Int(7)));
      auto members = [](const Jsonc& d) {
        std::vector<std::string> out;
        for (Jsonc::Id id : d.Children(d.root())) {
          out.push_back(d.Key(id));
          std::string value(d.Text(id));
          std::erase_if(value,
                        [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
          out.push_back(value);
        }
        if (d.root() != Jsonc::kNone) std::erase(out, "version"), std::erase(out, "1");
        return out;
      };
      EXPECT_EQ(members(Must(Jsonc::Parse(left, "f"))), members(fresh)) << text;
    }
  }
}

TEST(Install, AnEditedFileThatWasNotThereGoesWhenNothingElseIsInIt) {
  Desk desk;
  const std::string before = desk.Tree();
  desk.Install(AgentKind::kClaude);
  // Written again by the agent, in another style.
  std::string text = *desk.Get("/home/u/.claude/settings.json");
  std::erase(text, '\n');
  desk.Put("/home/u/.claude/settings.json", text);
  desk.Uninstall(AgentKind::kClaude);
  EXPECT_EQ(desk.Tree(), before);
}

TEST(Install, OlderEntriesOfOursArePutRight) {
  const std::string older =
      R"({
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          { "type": "command", "command": "mine" },
          { "type": "command", "command": "/old/place/belay hook claude", "timeout": 5 }
        ]
      },
      {
        "matcher": "Write",
        "hooks": [{ "type": "command", "command": "'/old/belay' hook", "timeout": 5 }]
      }
    ],
    "PostToolUse": [
      { "matcher": "Edit|Write", "hooks": [{ "command": "belay hook claude" }] }
    ],
    "Notification": [
      { "hooks": [{ "type": "command", "command": "/old/place/belay hook claude" }] }
    ]
  }
}
)";
  Desk desk;
  desk.Put("/home/u/.claude/settings.json", older);
  EXPECT_EQ(desk.Look(AgentKind::kClaude).user.registered, 2u);
  EXPECT_EQ(desk.Look(AgentKind::kClaude).user.dead,
            std::vector<std::string>({"/old/place/belay"}));
  desk.Install(AgentKind::kClaude);
  const std::string text = *desk.Get("/home/u/.claude/settings.json");
  EXPECT_EQ(text.find("/old"), std::string::npos) << text;
  EXPECT_EQ(text.find("Notification"), std::string::npos) << text;
  EXPECT_NE(text.find("\"command\": \"mine\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"matcher\": \"Bash\""), std::string::npos) << text;
  const AgentStatus status = desk.Look(AgentKind::kClaude);
  EXPECT_EQ(status.user.registered, status.user.wanted);
  EXPECT_FALSE(status.user.outdated);
  EXPECT_FALSE(desk.Install(AgentKind::kClaude).changes());
  // What is left is what would have been there without us.
  desk.Uninstall(AgentKind::kClaude);
  const std::string left = *desk.Get("/home/u/.claude/settings.json");
  EXPECT_EQ(left.find("belay"), std::string::npos) << left;
  EXPECT_NE(left.find("\"command\": \"mine\""), std::string::npos) << left;
}

TEST(Install, WhatSharesAGroupWithOursStays) {
  Desk desk;
  desk.Put(
      "/home/u/.claude/settings.json",
      "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"mine\"}, {\"command\": "
      "\"belay hook claude\"}, {\"command\": \"theirs\"}]}]}}");
  EXPECT_TRUE(desk.Uninstall(AgentKind::kClaude).changes());
  EXPECT_EQ(
      desk.Get("/home/u/.claude/settings.json"),
      "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"mine\"}, {\"command\": "
      "\"theirs\"}]}]}}");
}

TEST(Install, AProgramThatMovedIsFollowedAndTheFirstBytesAreRemembered) {
  Desk desk;
  const std::string text = "{\n  \"x\": 1 // one\n}";
  desk.Put("/home/u/.gemini/settings.json", text);
  desk.Install(AgentKind::kGemini);
  desk.Put("/opt/belay", "#!", 0755);
  desk.places().program = A("/opt/belay");
  EXPECT_TRUE(desk.Install(AgentKind::kGemini).changes());
  EXPECT_NE(
      desk.Get("/home/u/.gemini/settings.json")->find(" || /opt/belay hook gemini\""),
      std::string::npos);
  EXPECT_NE(desk.Get("/home/u/.gemini/commands/rollback.toml")->find("/opt/belay"),
            std::string::npos);
  desk.Uninstall(AgentKind::kGemini);
  EXPECT_EQ(desk.Get("/home/u/.gemini/settings.json"), text);
}

TEST(Install, BrokenSettingsAreNotWritten) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"{\n  \"hooks\": {,}\n}", ":2: not valid JSON"},
      {"{\"hooks\": {}", ":1: not valid JSON"},
      {"[1]", ":1: settings must be an object"},
      {"{\n\"hooks\": []}", ":2: \"hooks\" must be an object"},
      {"{\"hooks\": {\n\n\"PreToolUse\": {}}}", ":3: \"PreToolUse\" must be a list"},
      {"{\"hooks\": {},\n\"hooks\": {}}", ":2: \"hooks\" is there twice"},
      {"{\"hooks\": {\"Stop\": [],\n\"Stop\": []}}", ":2: \"Stop\" is there twice"},
  };
  for (const auto& [text, message] : rows) {
    Desk desk;
    desk.Put("/home/u/.claude/settings.json", text);
    const std::string before = desk.Tree();
    const AgentPlan plan = desk.Install(AgentKind::kClaude);
    ASSERT_EQ(plan.refused.size(), 1u) << text;
    EXPECT_NE(plan.refused[0].what.find(message), std::string::npos)
        << plan.refused[0].what;
    EXPECT_TRUE(plan.refused[0].what.starts_with("/home/u/.claude/settings.json:"));
    EXPECT_EQ(desk.Tree(), before) << text;
  }
  Desk desk;
  desk.Put("/home/u/.copilot/hooks/belay.json", "{\"version\": 2, \"hooks\": {}}");
  EXPECT_NE(Said(desk.Install(AgentKind::kCopilot)).find("version of hooks"),
            std::string::npos);
}

TEST(Install, WhatIsNotToBeWrittenIsNot) {
  auto refused = [](Desk& desk) {
    const std::string before = desk.Tree();
    const AgentPlan plan = desk.Install(AgentKind::kClaude);
    EXPECT_EQ(desk.Tree(), before);
    EXPECT_EQ(plan.refused.size(), 1u);
    return plan.refused.empty() ? std::string("accepted") : plan.refused[0].what;
  };
  const std::string file = "/home/u/.claude/settings.json";
  {
    Desk desk;
    desk.Put(file, "{}", 0444);
    EXPECT_EQ(refused(desk), file + " is read-only");
  }
  {
    Desk desk;
    desk.Put(file, "{}");
    Must(desk.mem().SetImmutable(Must(desk.mem().OpenDir(A("/home/u/.claude"))),
                                 N("settings.json"), true));
    EXPECT_EQ(refused(desk), file + " is read-only");
  }
  {
    Desk desk;
    desk.Put(file, "{}");
    desk.mem().SetReadOnly(true);
    EXPECT_EQ(refused(desk), file + " is on a file system that cannot be written");
  }
  {
    Desk desk;
    desk.Put(file, "{}");
    desk.places().uid = 1001;
    EXPECT_EQ(refused(desk), file + " belongs to user 1000");
  }
  {
    Desk desk;
    desk.Put(file, "{}");
    const Fd dir = Must(desk.mem().OpenDir(A("/home/u/.claude")));
    Must(desk.mem().Link(dir, N("settings.json"), dir, N("other")));
    EXPECT_EQ(refused(desk).substr(0, 50),
              (file + " has other names (hard links)").substr(0, 50));
  }
  {
    Desk desk;
    Must(MakeDirs(desk.mem(), A(file), 0755));
    EXPECT_EQ(refused(desk), file + " is a directory, not a file");
  }
}

// Mutant: install-follows-links.
TEST(Install, ALinkIsFollowedWhenToldToAndToAFileOfTheUsersAlone) {
  const std::string file = "/home/u/.claude/settings.json";
  auto link = [](Desk& desk, std::string_view target) {
    const Fd dir = Must(MakeDirs(desk.mem(), A("/home/u/.claude"), 0755));
    Must(desk.mem().Symlink(dir, N("settings.json"), target));
  };
  {
    Desk desk;
    desk.Put("/home/u/dotfiles/claude.json", "{\n\t\"mine\": true\n}", 0640);
    link(desk, "../dotfiles/claude.json");
    const std::string before = desk.Tree();
    EXPECT_EQ(Said(desk.Install(AgentKind::kClaude)),
              file + " is a symlink to ../dotfiles/claude.json\n");
    EXPECT_EQ(desk.Tree(), before);
    desk.places().follow_links = true;
    EXPECT_EQ(Said(desk.Install(AgentKind::kClaude)), "");
    EXPECT_NE(desk.Get("/home/u/dotfiles/claude.json")->find("belay"),
              std::string::npos);
    EXPECT_NE(desk.Tree().find("l 0777 u/.claude/settings.json"), std::string::npos)
        << desk.Tree();
    desk.Uninstall(AgentKind::kClaude);
    EXPECT_EQ(desk.Tree(), before);
  }
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"/nowhere/at/all", "which is not there"},
      {"/home/u", "is a directory"},
  };
  for (const auto& [target, message] : rows) {
    Desk desk;
    link(desk, target);
    const std::string before = desk.Tree();
    const AgentPlan plan = desk.Install(AgentKind::kClaude);
    EXPECT_NE(Said(plan).find(message), std::string::npos) << Said(plan);
    EXPECT_EQ(desk.Tree(), before);
  }
  Desk desk;
  desk.Put("/etc/claude.json", "{}");
  const Fd etc = Must(desk.mem().OpenDir(A("/etc")));
  Must(desk.mem().SetOwner(
      Must(desk.mem().Open(etc, N("claude.json"), OpenMode::Read())), 0, 0));
  link(desk, "/etc/claude.json");
  EXPECT_NE(Said(desk.Install(AgentKind::kClaude)).find("belongs to user 0"),
            std::string::npos);
  EXPECT_EQ(desk.Get("/etc/claude.json"), "{}");
}

TEST(Install, NothingOfAProjectLeadsOutOfIt) {
  Desk desk;
  desk.places().project = A("/src/p");
  desk.Put("/home/u/secret.json", "{}");
  const Fd project = Must(desk.mem().OpenDir(A("/src/p")));
  Must(desk.mem().Symlink(project, N(".claude"), "/home/u"));
  Must(desk.mem().MakeDir(project, N(".gemini"), 0755));
  Must(desk.mem().Symlink(Must(desk.mem().OpenDir(A("/src/p/.gemini"))),
                          N("settings.json"), "/home/u/secret.json"));
  const std::string before = desk.Tree();
  EXPECT_NE(Said(desk.Install(AgentKind::kClaude)).find("is not in the project"),
            std::string::npos);
  EXPECT_NE(Said(desk.Install(AgentKind::kGemini)).find("leads out of the project"),
            std::string::npos);
  EXPECT_EQ(desk.Tree(), before);
}

// Mutant: uninstall-goes-down.
TEST(Install, ProjectsBelowAnotherStayConnected) {
  for (AgentKind agent : {AgentKind::kClaude, AgentKind::kOpencode, AgentKind::kCline,
                          AgentKind::kCrush, AgentKind::kCopilot}) {
    Desk desk;
    desk.places().project = A("/src/p");
    desk.Install(agent);
    const std::string connected = desk.Tree();
    desk.places().project = A("/src");
    const AgentPlan plan = desk.Uninstall(agent);
    EXPECT_EQ(desk.Tree(), connected) << AgentName(agent);
    EXPECT_FALSE(plan.notes.empty()) << "that it is still there is said";
    desk.places().project = A("/src/p");
    desk.Uninstall(agent);
    EXPECT_NE(desk.Tree(), connected) << AgentName(agent);
  }
}

TEST(Install, AProjectThatWasRenamedGivesBackWhatWasThereBefore) {
  for (AgentKind agent : kAgents) {
    SCOPED_TRACE(AgentName(agent));
    Desk desk;
    desk.places().project = A("/src/p");
    desk.Put("/src/p/.claude/settings.local.json", "{ \"model\": \"x\" }");
    desk.Put("/src/p/.codex/hooks.json", "{}\n");
    desk.Put("/src/p/.gemini/settings.json", "{\"a\": 1}\n");
    desk.Put("/home/u/.codex/config.toml", "model = \"x\"\n");
    const Fd src = Must(desk.mem().OpenDir(A("/src")));
    auto rename = [&](std::string_view from, std::string_view to) {
      Must(desk.mem().Rename(src, N(from), src, N(to), RenameHow::kNoReplace));
    };
    rename("p", "q");
    const std::string before = desk.Tree();
    rename("q", "p");
    Must(MakeDirs(desk.mem(), A("/src/copy"), 0755));
    desk.Install(agent, /*trust=*/true);
    rename("p", "q");
    desk.places().project = A("/src/q");
    const AgentPlan plan = desk.Uninstall(agent);
    EXPECT_TRUE(plan.refused.empty());
    EXPECT_TRUE(plan.notes.empty()) << plan.notes[0];
    Must(desk.mem().RemoveDir(src, N("copy")));
    EXPECT_EQ(desk.Tree(), before);
    EXPECT_TRUE(Must(InstallRecords::Load(desk.mem(), A("/store"))).all().empty());
  }
}

// Mutant: a-copy-is-a-move.
TEST(Install, ACopyOfAProjectIsNotTheProject) {
  Desk desk;
  desk.places().project = A("/src/p");
  desk.Install(AgentKind::kClaude);
  const std::string text = *desk.Get("/src/p/.claude/settings.local.json");
  desk.Put("/src/q/.claude/settings.local.json", text);
  desk.places().project = A("/src/q");
  desk.Uninstall(AgentKind::kClaude);
  EXPECT_EQ(desk.Get("/src/q/.claude/settings.local.json"), "{}\n");
  // The project's own way back is still there.
  desk.places().project = A("/src/p");
  desk.Uninstall(AgentKind::kClaude);
  EXPECT_FALSE(desk.Get("/src/p/.claude/settings.local.json"));
}

TEST(Install, AProjectThatWasRenamedAndEditedLosesWhatIsOurs) {
  Desk desk;
  desk.places().project = A("/src/p");
  desk.Install(AgentKind::kClaude);
  const Fd src = Must(desk.mem().OpenDir(A("/src")));
  Must(desk.mem().Rename(src, N("p"), src, N("q"), RenameHow::kNoReplace));
  const std::string file = "/src/q/.claude/settings.local.json";
  std::string text = *desk.Get(file);
  text.insert(1, "\"mine\": 1,");
  desk.Put(file, text);
  desk.places().project = A("/src/q");
  desk.Uninstall(AgentKind::kClaude);
  EXPECT_EQ(desk.Get(file)->find("belay"), std::string::npos);
  EXPECT_NE(desk.Get(file)->find("mine"), std::string::npos);
  EXPECT_FALSE(desk.Get("/src/q/.claude/commands/rollback.md"));
}

TEST(Install, HooksThatAreSwitchedOffAreSeen) {
  struct Row {
    AgentKind agent;
    std::string_view file, text, key;  // no key: they run
  };
  constexpr Row kRows[] = {
      {AgentKind::kClaude, "/home/u/.claude/settings.json",
       "{\"disableAllHooks\": true}", "disableAllHooks"},
      {AgentKind::kClaude, "/home/u/.claude/settings.json",
       "{\"disableAllHooks\": false}", ""},
      {AgentKind::kClaude, "/src/p/.claude/settings.json",
       "{\"disableAllHooks\": true}", "disableAllHooks"},
      {AgentKind::kClaude, "/src/p/.claude/settings.local.json",
       "{\"disableAllHooks\": true} // so", "disableAllHooks"},
      {AgentKind::kClaude, "/src/p/.claude/settings.json", "{broken", ""},
      {AgentKind::kQwen, "/home/u/.qwen/settings.json", "{\"disableAllHooks\": true}",
       "disableAllHooks"},
      {AgentKind::kCodex, "/home/u/.codex/config.toml", "[features]\nhooks = false\n",
       "features.hooks"},
      {AgentKind::kCodex, "/home/u/.codex/config.toml", "features.hooks = false\n",
       "features.hooks"},
      {AgentKind::kCodex, "/home/u/.codex/config.toml",
       "features = { codex_hooks = false }\n", "features.codex_hooks"},
      {AgentKind::kCodex, "/home/u/.codex/config.toml", "[features]\nhooks = true\n",
       ""},
      {AgentKind::kCodex, "/src/p/.codex/config.toml", "[features]\nhooks = false\n",
       "features.hooks"},
      {AgentKind::kGemini, "/home/u/.gemini/settings.json",
       "{\"hooksConfig\": {\"enabled\": false}}", "hooksConfig.enabled"},
      {AgentKind::kGemini, "/src/p/.gemini/settings.json",
       "{\"hooks\": {\"disabled\": [\"other\", \"belay\"]}}", "hooks.disabled"},
      {AgentKind::kGemini, "/src/p/.gemini/settings.json",
       "{\"hooksConfig\": {\"disabled\": [\"/usr/bin/belay hook gemini\"]}}",
       "hooksConfig.disabled"},
      {AgentKind::kGemini, "/src/p/.gemini/settings.json",
       "{\"hooks\": {\"disabled\": [\"other\"]}}", ""},
  };
  for (const Row& row : kRows) {
    SCOPED_TRACE(std::string(row.file) + ": " + std::string(row.text));
    Desk desk;
    desk.places().project = A("/src/p");
    desk.Put(row.file, row.text);
    const auto off = desk.Look(row.agent).off;
    ASSERT_EQ(off.has_value(), !row.key.empty());
    if (!off) continue;
    EXPECT_EQ(HooksOffText(*off), "hooks are switched off in " + std::string(row.file) +
                                      " (" + std::string(row.key) + ")");
    // Whoever connects it is told.
    bool told = false;
    for (const std::string& note : desk.Install(row.agent).notes)
      told = told || note.starts_with(HooksOffText(*off));
    EXPECT_TRUE(told);
  }
}

TEST(Install, TheNearestSwitchDecides) {
  Desk desk;
  desk.places().project = A("/src/p");
  desk.Put("/home/u/.claude/settings.json", "{\"disableAllHooks\": true}");
  desk.Put("/src/p/.claude/settings.local.json", "{\"disableAllHooks\": false}");
  EXPECT_FALSE(desk.Look(AgentKind::kClaude).off);
  desk.places().project.reset();
  EXPECT_TRUE(desk.Look(AgentKind::kClaude).off);
}

TEST(Install, FilesOfOthersUnderOurNamesStay) {
  Desk desk;
  desk.Put("/home/u/.claude/commands/rollback.md", "my own\n");
  AgentPlan plan = desk.Install(AgentKind::kClaude);
  EXPECT_TRUE(plan.refused.empty());
  EXPECT_NE(Said(plan).find("note: /home/u/.claude/commands/rollback.md is there"),
            std::string::npos)
      << Said(plan);
  EXPECT_EQ(desk.Look(AgentKind::kClaude).user.registered, 9u);
  desk.Uninstall(AgentKind::kClaude);
  EXPECT_EQ(desk.Get("/home/u/.claude/commands/rollback.md"), "my own\n");

  desk.Put("/home/u/.cline/hooks/PreToolUse", "#!/bin/sh\nmine\n", 0755);
  desk.Put("/home/u/.cline/hooks/TaskStart", "mine", 0755);
  desk.Put("/home/u/.cline/hooks/TaskStart.sh", "mine", 0755);
  desk.Put("/home/u/.cline/hooks/TaskStart.bash", "mine", 0755);
  const std::string before = desk.Tree();
  plan = desk.Install(AgentKind::kCline);
  ASSERT_EQ(plan.refused.size(), 1u) << Said(plan);
  EXPECT_EQ(plan.refused[0].what,
            "/home/u/.cline/hooks/TaskStart is there already and not Belay's");
  EXPECT_EQ(desk.Look(AgentKind::kCline).user.missing,
            std::vector<std::string>({"TaskStart"}));
  EXPECT_EQ(desk.Get("/home/u/.cline/hooks/PreToolUse"), "#!/bin/sh\nmine\n");
  EXPECT_TRUE(desk.Get("/home/u/.cline/hooks/PreToolUse.sh")) << "beside it";
  EXPECT_FALSE(desk.Get("/home/u/.cline/hooks/PostToolUse.sh")) << "not needed";
  EXPECT_FALSE(desk.Install(AgentKind::kCline).changes());
  desk.Uninstall(AgentKind::kCline);
  EXPECT_EQ(desk.Tree(), before);
}

TEST(Install, AFileOfOursThatWasEditedStaysAndThatIsSaid) {
  Desk desk;
  desk.Install(AgentKind::kCline);
  const std::string path = "/home/u/.cline/hooks/TaskStart";
  desk.Put(path, *desk.Get(path) + "echo more\n", 0755);
  const AgentPlan plan = desk.Uninstall(AgentKind::kCline);
  ASSERT_EQ(plan.refused.size(), 1u);
  EXPECT_EQ(plan.refused[0].what, path + " was changed since it was installed");
  EXPECT_TRUE(desk.Get(path));
  EXPECT_FALSE(desk.Get("/home/u/.cline/hooks/PreToolUse"));
}

TEST(Install, AFileOfOursThatWasEditedIsNotWrittenOver) {
  const std::pair<AgentKind, std::string> rows[] = {
      {AgentKind::kClaude, "/home/u/.claude/commands/rollback.md"},
      {AgentKind::kOpencode, "/home/u/.config/opencode/plugins/belay.js"},
      {AgentKind::kGemini, "/home/u/.gemini/commands/rollback.toml"},
      {AgentKind::kCline, "/home/u/.cline/hooks/PreToolUse"}};
  for (const auto& [agent, path] : rows) {
    Desk desk;
    desk.Install(agent);
    const std::string written = *desk.Get(path);
    const std::string edited = written + "\n# mine\n";
    desk.Put(path, edited, 0700);
    for (std::string_view store : {"/store", "/another"}) {
      desk.places().store = A(store);
      // Another version, too.
      desk.places().program = A("/opt/belay");
      const AgentPlan plan = desk.Install(agent);
      EXPECT_EQ(desk.Get(path), edited) << path;
      EXPECT_TRUE(plan.refused.empty()) << Said(plan);
      EXPECT_NE(Said(plan).find(path + " was changed by somebody and stays"),
                std::string::npos)
          << Said(plan);
    }
    // What nobody changed is brought up to date, with a record of it and without.
    desk.Put(path, written, 0700);
    EXPECT_TRUE(desk.Install(agent).changes()) << path;
    EXPECT_NE(desk.Get(path)->find("/opt/belay"), std::string::npos) << path;
    desk.places().store = A("/store");
    EXPECT_TRUE(PlanUninstall(desk.fs(), desk.places(), agent).refused.empty()) << path;
  }
}

TEST(Install, AProgramOfAnotherNameIsKnownByTheRecords) {
  for (AgentKind agent : kAgents) {
    Desk desk;
    const std::string before = desk.Tree();
    desk.Put("/opt/belay-0.1.0", "#!", 0755);
    desk.places().program = A("/opt/belay-0.1.0");
    desk.Install(agent);
    desk.places().program = A("/usr/bin/belay");
    // It is gone, and its hooks are still there.
    Must(desk.mem().Unlink(Must(desk.mem().OpenDir(A("/opt"))), N("belay-0.1.0")));
    const AgentStatus status = desk.Look(agent);
    EXPECT_EQ(status.user.registered, status.user.wanted) << AgentName(agent);
    EXPECT_EQ(status.user.dead, std::vector<std::string>({"/opt/belay-0.1.0"}))
        << AgentName(agent);
    desk.Install(agent);
    EXPECT_EQ(desk.Look(agent).user.registered, status.user.wanted) << AgentName(agent);
    EXPECT_FALSE(desk.Look(agent).user.outdated) << AgentName(agent);
    if (const std::string file = SettingsOf(agent); !file.empty()) {
      EXPECT_EQ(desk.Get(file)->find("belay-0.1.0"), std::string::npos) << file;
    }
    desk.Uninstall(agent);
    EXPECT_EQ(desk.Tree(), before) << AgentName(agent);
    EXPECT_FALSE(desk.Get("/store/agents/programs"));
  }
}

// "Stop" alone, with one command.
std::string StopRuns(std::string_view command) {
  std::string out =
      "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": ";
  return out + JsonQuoted(command) + "}]}]}}";
}

TEST(Install, AHookThatSomebodyMadeMoreOfStaysAndGetsNoneBesideIt) {
  const std::string path = "/home/u/.claude/settings.json";
  for (std::string_view command :
       {"/usr/bin/belay hook claude 2>>/tmp/log || true", "cd /x && belay hook claude",
        "'/old place/belay' hook claude >/dev/null 2>&1", "exec belay hook claude;",
        "A=b env C=d timeout 5 belay hook claude", "belay hook claude | tee /tmp/x",
        "sh -c 'date; belay hook claude'", "(belay hook claude)&",
        "if true; then belay hook claude; fi",
        "tee /tmp/x | belay hook claude -v -q"}) {
    Desk desk;
    desk.Put(path, StopRuns(command));
    const AgentPlan plan = desk.Install(AgentKind::kClaude);
    const std::string text = *desk.Get(path);
    const size_t stop = text.find("\"Stop\"");
    const std::string list = text.substr(stop, text.find("]}]", stop) - stop);
    EXPECT_NE(list.find(JsonQuoted(command)), std::string::npos) << text;
    EXPECT_EQ(list.find("\"timeout\""), std::string::npos) << command << "\n" << text;
    EXPECT_NE(Said(plan).find("what Stop runs was changed by somebody"),
              std::string::npos)
        << command << Said(plan);
    EXPECT_EQ(desk.Look(AgentKind::kClaude).user.registered, 9u);
    EXPECT_FALSE(desk.Look(AgentKind::kClaude).user.outdated);
    EXPECT_FALSE(desk.Install(AgentKind::kClaude).changes());
    const AgentPlan gone = desk.Uninstall(AgentKind::kClaude);
    EXPECT_NE(Said(gone).find("note: still there: " + path), std::string::npos)
        << Said(gone);
    EXPECT_EQ(desk.Get(path), StopRuns(command));
  }
}

TEST(Install, WhatOnlyMentionsUsIsSomebodyElses) {
  const std::string path = "/home/u/.claude/settings.json";
  for (std::string_view command :
       {"echo belay hook claude", "/opt/notbelay hook claude",
        "/opt/mybelay/bin/belay-wrapper hook claude", "grep 'belay hook claude' /x",
        "belay hook codex || true", "mine >belay hook claude", "belay list; true"}) {
    Desk desk;
    desk.Put(path, StopRuns(command));
    const AgentPlan plan = desk.Install(AgentKind::kClaude);
    EXPECT_EQ(Said(plan), "") << command;
    const std::string text = *desk.Get(path);
    EXPECT_NE(text.find("/usr/bin/belay hook claude", text.find("\"Stop\"")),
              std::string::npos)
        << text;
    EXPECT_EQ(Said(desk.Uninstall(AgentKind::kClaude)), "") << command;
    EXPECT_EQ(desk.Get(path), StopRuns(command));
  }
}

TEST(Install, WhatSomebodyChangesMeanwhileIsNotOverwritten) {
  Desk desk;
  desk.Put("/home/u/.claude/settings.json", "{}");
  AgentPlan plan = PlanInstall(desk.fs(), desk.places(), AgentKind::kClaude, false);
  desk.Put("/home/u/.claude/settings.json", "{\"new\": 1}");
  ASSERT_TRUE(ApplyInstall(desk.fs(), desk.clock(), desk.places(), plan).ok());
  ASSERT_EQ(plan.refused.size(), 1u);
  EXPECT_EQ(plan.refused[0].code, Errc::kConflict);
  EXPECT_EQ(desk.Get("/home/u/.claude/settings.json"), "{\"new\": 1}");
}

TEST(Install, WithoutAStoreOnlyWhatIsOursGoes) {
  Desk desk;
  desk.Put("/home/u/.claude/settings.json", "{\n  \"hooks\": {},\n  \"a\": 1\n}\n");
  desk.Install(AgentKind::kClaude);
  desk.places().store = A("/another");
  const AgentPlan plan = desk.Uninstall(AgentKind::kClaude);
  EXPECT_TRUE(plan.refused.empty()) << Said(plan);
  EXPECT_EQ(desk.Get("/home/u/.claude/settings.json"), "{\n  \"a\": 1\n}\n");
  EXPECT_FALSE(desk.Get("/home/u/.claude/commands/rollback.md"));
  EXPECT_FALSE(desk.mem().OpenDir(A("/another")).ok()) << "a store was made";
}

TEST(Install, RecordsOfANewerVersionAreNotGuessedAt) {
  Desk desk;
  desk.Put("/store/agents/x.was", "BELAYAG2 and more");
  const AgentPlan plan = desk.Install(AgentKind::kClaude);
  ASSERT_EQ(plan.refused.size(), 1u);
  EXPECT_EQ(plan.refused[0].code, Errc::kUnsupported);
}

TEST(Install, ADirectoryGoesWithTheLastOfOursInIt) {
  Desk desk;
  const std::string before = desk.Tree();
  desk.Install(AgentKind::kOpencode);  // makes ~/.config
  desk.Install(AgentKind::kCrush);
  desk.Uninstall(AgentKind::kOpencode);
  EXPECT_TRUE(desk.Get("/home/u/.config/crush/crush.json"));
  desk.Uninstall(AgentKind::kCrush);
  EXPECT_EQ(desk.Tree(), before);
}

TEST(Install, PlacesThatWereMovedAreFound) {
  Desk desk;
  desk.places().claude_config_dir = A("/home/u/c");
  desk.places().codex_home = A("/home/u/x");
  desk.places().copilot_home = A("/home/u/p");
  desk.places().config_home = A("/home/u/cfg");
  for (AgentKind agent : {AgentKind::kClaude, AgentKind::kCodex, AgentKind::kCopilot,
                          AgentKind::kCrush, AgentKind::kOpencode})
    desk.Install(agent, true);
  for (std::string_view path :
       {"/home/u/c/settings.json", "/home/u/c/commands/rollback.md",
        "/home/u/x/hooks.json", "/home/u/x/config.toml", "/home/u/p/hooks/belay.json",
        "/home/u/cfg/crush/crush.json", "/home/u/cfg/opencode/plugins/belay.js"})
    EXPECT_TRUE(desk.Get(path)) << path;
  // Moved back, what was written there is still known.
  desk.places().claude_config_dir.reset();
  EXPECT_TRUE(desk.Uninstall(AgentKind::kClaude).changes());
  EXPECT_FALSE(desk.Get("/home/u/c/settings.json"));
}

TEST(Install, OwnerModeAndAttributesStay) {
  Desk desk;
  desk.places().uid = 0;
  desk.Put("/home/u/.qwen/settings.json", "{}", 0604);
  const Fd dir = Must(desk.mem().OpenDir(A("/home/u/.qwen")));
  {
    const Fd file = Must(desk.mem().Open(dir, N("settings.json"), OpenMode::Read()));
    Must(desk.mem().SetOwner(file, 1234, 55));
    Must(desk.mem().SetXattr(file, "user.note", AsBytes("kept")));
  }
  EXPECT_EQ(Said(desk.Install(AgentKind::kQwen)), "");
  const Fd file = Must(desk.mem().Open(dir, N("settings.json"), OpenMode::Read()));
  const FileStat stat = Must(desk.mem().Stat(file));
  EXPECT_EQ(stat.uid, 1234u);
  EXPECT_EQ(stat.gid, 55u);
  EXPECT_EQ(stat.mode, 0604u);
  EXPECT_EQ(AsText(Must(desk.mem().GetXattr(file, "user.note"))), "kept");
}

TEST(Install, TheLastEventIsReadLeniently) {
  Desk desk;
  EXPECT_EQ(desk.Look(AgentKind::kClaude).last_event_ms, std::nullopt);
  desk.Put(
      "/store/cache/agents.seen",
      "claude 5\nnonsense\ncodex x\nclaude 1700000000123\nclaude 7 more\ngemini 12");
  EXPECT_EQ(desk.Look(AgentKind::kClaude).last_event_ms, 1700000000123);
  EXPECT_EQ(desk.Look(AgentKind::kCodex).last_event_ms, std::nullopt);
  EXPECT_EQ(desk.Look(AgentKind::kGemini).last_event_ms, 12);
}

TEST(Install, ProgramsAreFoundInPath) {
  Desk desk;
  desk.Put("/usr/bin/qwen", "#!", 0644);
  EXPECT_EQ(desk.Look(AgentKind::kQwen).program, std::nullopt) << "not to be run";
  desk.Put("/usr/bin/gemini", "#!", 0755);
  Must(MakeDirs(desk.mem(), A("/usr/bin/codex"), 0755));
  EXPECT_EQ(desk.Look(AgentKind::kGemini).program, A("/usr/bin/gemini"));
  EXPECT_EQ(desk.Look(AgentKind::kCodex).program, std::nullopt) << "a directory";
}

// --- whatever happens on the way -----------------------------------------------------

// Not to be had again by taking out what is ours alone.
constexpr std::string_view kMine = "{\n  // mine\n  \"hooks\": {\n  }\n}";

test::SweepResult SweepInstall(Fault fault) {
  const InstallPlaces places = Desk().places();
  auto setup = [](Fs& disk) -> Status {
    for (std::string_view dir : {"/home/u/.claude", "/store"})
      Must(MakeDirs(disk, A(dir), 0755));
    const Fd dir = Must(disk.OpenDir(A("/home/u/.claude")));
    return test::PutFile(disk, dir, P("settings.json"), kMine);
  };
  auto run = [places](Fs& fs, test::Acks& acks) -> Status {
    FakeClock clock;
    AgentPlan plan = PlanInstall(fs, places, AgentKind::kClaude, false);
    BELAY_OK(ApplyInstall(fs, clock, places, plan));
    if (!plan.refused.empty()) return plan.refused[0];
    if (!plan.changes()) return Error(Errc::kIo, "nothing was planned");
    acks.Add("installed");
    return Ok();
  };
  auto wrong = [](std::string what) { return Error(Errc::kIo, std::move(what)); };
  auto check = [places, wrong](Fs& disk, const test::SweepRun& sweep) -> Status {
    FakeClock clock;
    const Fd dir = Must(disk.OpenDir(A("/home/u/.claude")));
    auto text = test::GetFile(disk, dir, P("settings.json"));
    if (!text.ok()) return wrong("the settings are gone: " + text.error().what);
    auto doc = Jsonc::Parse(*text, "f");
    if (!doc.ok()) return wrong("torn: " + doc.error().what);
    if (!sweep.acks.empty() && text->find("belay") == std::string::npos)
      return wrong("said to be installed, and is not");
    AgentPlan plan = PlanUninstall(disk, places, AgentKind::kClaude);
    BELAY_OK(ApplyUninstall(disk, clock, places, plan));
    text = test::GetFile(disk, dir, P("settings.json"));
    if (!text.ok() || *text != kMine)
      return wrong("not as before: " + (text.ok() ? *text : text.error().what));
    return Ok();
  };
  test::SweepOptions options{.name = "install", .fault = fault};
  return test::SweepFaults(options, setup, run, check);
}

TEST(InstallSweep, APowerCutLeavesOldOrNewSettingsAndTheWayBack) {
  const test::SweepResult result = SweepInstall(Fault::PowerCut(0));
  EXPECT_TRUE(result.ok()) << result.Text();
}

TEST(InstallSweep, AFailingCallLeavesOldOrNewSettingsAndTheWayBack) {
  const test::SweepResult result = SweepInstall(Fault::Errno(0, ENOSPC));
  EXPECT_TRUE(result.ok()) << result.Text();
}

}  // namespace
}  // namespace belay
