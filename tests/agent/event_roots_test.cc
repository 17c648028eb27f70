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
    for (const Root& root : RootsOf(*opened.store, roots, event))
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
    const auto found = RootsOf(*opened.store, roots, event);
    ASSERT_EQ(found.size(), 1u) << cwd;
    EXPECT_EQ(found[0].id, opened.root.id);
  }
}

}  // namespace
}  // namespace belay::test
