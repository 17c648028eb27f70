// Which protected directories an event is about.

#include "agent/event_roots.h"

#include <gmock/gmock.h>

#include "support/agent_world.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;

// Mutant: nested-roots-are-not-looked-at.
TEST(EventRoots, WhatMayWriteAnythingMayWriteInDirectoriesBelow) {
  MemFs disk;
  AgentWorld world{disk};
  auto opened = Must(world.world.Open());
  const std::string outer = opened.root.path;
  std::vector<RootEntry> roots;
  for (const std::string& path :
       {outer, outer + "/inner", outer + "-beside", outer + "/off"}) {
    Root root{.id = RootId(opened.store->random().NewId()), .path = path};
    root.off = path.ends_with("/off");
    roots.push_back({.root = root, .record = {}});
  }
  auto paths_of = [&](EventKind kind, ToolReach reach,
                      const std::vector<std::string>& paths) {
    HookEvent event{.kind = kind, .session = "s", .cwd = outer};
    event.tool = ToolCall{.name = "Tool", .reach = reach, .paths = paths};
    std::vector<std::string> out;
    for (const Root& root : RootsOf(*opened.store, roots, event).here)
      out.push_back(root.path);
    return out;
  };
  for (const EventKind kind : {EventKind::kToolBegin, EventKind::kToolEnd}) {
    EXPECT_THAT(paths_of(kind, ToolReach::kWrites, {}),
                ElementsAre(outer, outer + "/inner"));
    EXPECT_THAT(paths_of(kind, ToolReach::kPaths, {"a"}), ElementsAre(outer));
    EXPECT_THAT(paths_of(kind, ToolReach::kPaths, {"inner/a"}),
                ElementsAre(outer, outer + "/inner"));
  }
  EXPECT_THAT(paths_of(EventKind::kPrompt, ToolReach::kWrites, {}), ElementsAre(outer));
}

// Mutant: hosts-say-where-they-are.
TEST(EventRoots, WhatSaysNoDirectoryTakesPlaceWhereItsHookRuns) {
  const auto here = AbsPath::Literal("/p/src");
  auto place = [&](AgentKind agent, const std::string& cwd,
                   const std::vector<std::string>& workspaces = {}) {
    HookEvent event{.agent = agent, .cwd = cwd, .workspaces = workspaces};
    TakePlace(event, here);
    return event.cwd;
  };
  for (const AgentKind agent : {AgentKind::kGeneric, AgentKind::kClaude}) {
    EXPECT_EQ(place(agent, ""), "/p/src");
    EXPECT_EQ(place(agent, "."), "/p/src");
    EXPECT_EQ(place(agent, "../lib/"), "/p/lib");
    EXPECT_EQ(place(agent, "/q"), "/q");
    EXPECT_EQ(place(agent, "", {"/q"}), "");
  }
  EXPECT_EQ(place(AgentKind::kHermes, ""), "") << "it runs hooks anywhere";
  HookEvent event{.agent = AgentKind::kGeneric, .cwd = "src"};
  TakePlace(event, std::nullopt);
  EXPECT_EQ(event.cwd, "");
}

// Mutant: hosts-are-where-their-hooks-run.
TEST(EventRoots, AHostsSessionIsWhereItBeganWhereverItsHooksRun) {
  MemFs disk;
  AgentWorld world{disk};
  world.Start("s");
  auto opened = Must(world.world.Open());
  RememberSessionRoot(*opened.store, "s", opened.root.id);
  const std::vector<RootEntry> roots{{.root = opened.root, .record = {}}};
  auto place = [&](EventKind kind, const std::string& session, const AbsPath& here) {
    HookEvent event{.agent = AgentKind::kGeneric, .kind = kind, .session = session};
    TakePlace(event, here);
    LeavePlace(*opened.store, roots, event);
    return event.cwd;
  };
  const AbsPath other = AbsPath::Literal("/elsewhere"),
                began = AbsPath::Literal(opened.root.path);
  EXPECT_EQ(place(EventKind::kToolBegin, "s", other), "");
  EXPECT_EQ(place(EventKind::kToolBegin, "s", began), began.bytes());
  EXPECT_EQ(place(EventKind::kToolBegin, "new", other), "/elsewhere");
  EXPECT_EQ(place(EventKind::kSessionStart, "s", other), "/elsewhere");
}

// Mutant: the-first-session-is-forgotten.
TEST(EventRoots, TheFirstSessionOfANewStoreIsKnownByItsStart) {
  MemFs disk;
  AgentWorld world{disk};
  auto opened = Must(world.world.Open());
  ASSERT_FALSE(
      disk.Open(opened.store->dir(), Name::Literal("cache"), OpenMode::Directory())
          .ok());
  RememberSessionRoot(*opened.store, "s", opened.root.id);
  const std::vector<RootEntry> roots{{.root = opened.root, .record = {}}};
  for (const std::string& cwd : {std::string(), std::string("/elsewhere")}) {
    const HookEvent event{.kind = EventKind::kPrompt, .session = "s", .cwd = cwd};
    const auto found = RootsOf(*opened.store, roots, event).here;
    ASSERT_EQ(found.size(), 1u) << cwd;
    EXPECT_EQ(found[0].id, opened.root.id);
  }
}

// Mutant: who-begins-at-home-has-no-turns.
TEST(EventRoots, ASessionThatBeganWhereNothingIsProtectedBeginsWithItsFirstCall) {
  MemFs disk;
  AgentWorld world{disk};
  auto opened = Must(world.world.Open());
  const RootEntry first{.root = opened.root, .record = {}};
  RootEntry second = first;
  second.root.id = RootId(opened.store->random().NewId());
  second.root.path = "/second";
  const std::vector<RootEntry> roots{first, second};
  const HookEvent prompt{.kind = EventKind::kPrompt, .session = "s", .cwd = "/home"};
  auto known = RootsOf(*opened.store, roots, prompt);
  EXPECT_TRUE(known.here.empty() && known.homeless);
  RememberCallsIn(*opened.store, "s", std::vector<Root>{second.root});
  EXPECT_TRUE(RootsOf(*opened.store, roots, prompt).homeless);
  RememberFirstRoot(*opened.store, "s", second.root.id);
  RememberFirstRoot(*opened.store, "s", first.root.id);
  known = RootsOf(*opened.store, roots, prompt);
  EXPECT_FALSE(known.homeless);
  ASSERT_EQ(known.here.size(), 1u);
  EXPECT_EQ(known.here[0].id, second.root.id);
  EXPECT_TRUE(known.elsewhere.empty());
}

// Mutant: prompts-are-heard-in-one-place.
TEST(EventRoots, APromptMattersWhereverTheSessionHasMadeCalls) {
  MemFs disk;
  AgentWorld world{disk};
  auto opened = Must(world.world.Open());
  std::vector<RootEntry> roots;
  for (const char* path : {"/a", "/b", "/c", "/off"}) {
    Root root{.id = RootId(opened.store->random().NewId()), .path = path};
    root.off = root.path == "/off";
    roots.push_back({.root = root, .record = {}});
  }
  auto paths_of = [](const std::vector<Root>& found) {
    std::vector<std::string> out;
    for (const Root& root : found) out.push_back(root.path);
    return out;
  };
  auto elsewhere = [&](const std::string& session, const std::string& cwd,
                       EventKind kind = EventKind::kPrompt) {
    const HookEvent event{.kind = kind, .session = session, .cwd = cwd};
    return paths_of(RootsOf(*opened.store, roots, event).elsewhere);
  };
  auto call = [&](const std::string& session, const std::string& cwd) {
    HookEvent event{.kind = EventKind::kToolBegin, .session = session, .cwd = cwd};
    event.tool = ToolCall{.name = "Bash"};
    const EventRoots found = RootsOf(*opened.store, roots, event);
    if (found.news) RememberCallsIn(*opened.store, session, found.here);
    return found.news;
  };
  RememberSessionRoot(*opened.store, "s", roots[0].root.id);
  EXPECT_FALSE(call("s", "/a"));
  EXPECT_TRUE(call("s", "/b"));
  EXPECT_FALSE(call("s", "/b")) << "written down once";
  EXPECT_FALSE(call("s", "/off"));
  EXPECT_TRUE(call("t", "/c")) << "it was started where nothing is protected";
  EXPECT_THAT(elsewhere("s", "/c"), ElementsAre("/b"));
  EXPECT_THAT(elsewhere("s", "/c", EventKind::kSessionEnd), ElementsAre("/b"));
  EXPECT_THAT(elsewhere("s", "/c", EventKind::kCompact), ElementsAre());
  EXPECT_THAT(elsewhere("t", "/nowhere"), ElementsAre("/c"));
  EXPECT_THAT(elsewhere("other", "/a"), ElementsAre());
  // It is gone on with in another directory.
  RememberSessionRoot(*opened.store, "s", roots[2].root.id);
  EXPECT_THAT(elsewhere("s", "/nowhere"), ElementsAre("/a", "/b"));
  const std::vector<Root> here{roots[1].root};
  EXPECT_THAT(paths_of(OtherRootsOf(*opened.store, roots, "s", here)),
              ElementsAre("/a", "/c"));
}

}  // namespace
}  // namespace belay::test
