// What `auto = true` protects at first sight.

#include "cli/auto_protect.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/mem_fs.h"
#include "cli/open_store.h"
#include "core/roots.h"
#include "support/fs_world.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A home directory with two repositories in it, and one beside it.
class AutoProtectTest : public ::testing::Test {
 protected:
  AutoProtectTest()
      : disk_(MemFs::Options{.capacity_bytes = uint64_t{1} << 40, .uid = geteuid()}) {
    env_.home = "/home/me";
    env_.belay_home = "/store";
    env_.belay_config = "/home/me/belay.toml";
    env_.git.no_system = true;
    for (const char* path : {"/home/me/r/src", "/home/me/r2", "/home/me/notes", "/srv"})
      Must(MakeDirs(disk_, AbsPath::Literal(path), 0755));
    for (const char* path : {"/home/me/r/.git", "/home/me/r2/.git", "/srv/.git"}) {
      Fd git = Must(MakeDirs(disk_, AbsPath::Literal(path), 0755));
      Must(PutFile(disk_, git, P("HEAD"), "ref: refs/heads/main\n"));
      for (const char* name : {"objects", "refs"})
        Must(disk_.MakeDir(git, Name::Literal(name), 0755));
    }
    Configure("auto = true\n");
  }
  void Configure(std::string_view text) {
    Fd dir = Must(disk_.OpenDir(AbsPath::Literal("/home/me")));
    Must(ReplaceFile(disk_, dir, Name::Literal("belay.toml"), AsBytes(text)));
  }
  static HookEvent Edit(const std::string& cwd, std::vector<std::string> paths,
                        ToolReach reach = ToolReach::kPaths) {
    HookEvent event{.agent = AgentKind::kClaude,
                    .kind = EventKind::kToolBegin,
                    .session = "s",
                    .cwd = cwd};
    event.tool = ToolCall{.name = "Write", .reach = reach, .paths = std::move(paths)};
    return event;
  }
  std::vector<std::string> New(const HookEvent& event) {
    std::vector<std::string> out;
    for (const Root& root : Must(ProtectNew(ctx_, event))) out.push_back(root.path);
    return out;
  }
  std::vector<RootEntry> Roots() {
    auto opened = Must(OpenStore(ctx_, Store::Mode::kRead));
    return Must(Must(Catalog::Open(*opened->store))->Roots());
  }

  MemFs disk_;
  Environment env_;
  Terminal term_{{}};
  Args args_;
  CommandContext ctx_{disk_, env_, term_, *FindCommand("hook"), args_};
};

// Mutant: what-is-edited-from-home-is-nobodys.
TEST_F(AutoProtectTest, TheWorkTreeThatAnEditFromHomeNamesIsProtected) {
  EXPECT_THAT(New(Edit("/home/me", {"/home/me/notes/x"})), IsEmpty());
  EXPECT_THAT(New(Edit("/home/me", {"/home/me/r/f"}, ToolReach::kWrites)), IsEmpty());
  Configure("auto = false\n");
  EXPECT_THAT(New(Edit("/home/me", {"/home/me/r/f"})), IsEmpty());
  EXPECT_FALSE(disk_.OpenDir(AbsPath::Literal("/store")).ok());
  Configure("auto = true\n");
  // From the directory on, in one that is new, and of several each once.
  EXPECT_THAT(New(Edit("/home/me", {"r/src/new/dir/f", "/home/me/r/g", "/srv/h", "x"})),
              ElementsAre("/home/me/r", "/srv"));
  EXPECT_THAT(New(Edit("/", {"/home/me/r2/f"})), ElementsAre("/home/me/r2"));
}

TEST_F(AutoProtectTest, WhereThePlaceCanBeProtectedItAloneIs) {
  EXPECT_THAT(New(Edit("/home/me/notes", {"/home/me/r/f"})),
              ElementsAre("/home/me/notes"));
}

TEST_F(AutoProtectTest, ASessionThatCountsAsBegunElsewhereProtectsMore) {
  New(Edit("/home/me", {"/home/me/r/f"}));
  const std::vector<RootEntry> roots = Roots();
  ASSERT_EQ(roots.size(), 1u);
  const Root& first = roots[0].root;
  EXPECT_FALSE(Must(ProtectAway(ctx_, roots, first, Edit("/home/me", {"r/src/f"}))));
  EXPECT_FALSE(
      Must(ProtectAway(ctx_, roots, first, Edit("/home/me/notes", {"/srv/f"}))));
  EXPECT_TRUE(Must(ProtectAway(ctx_, roots, first, Edit("/home/me", {"/srv/f"}))));
  EXPECT_EQ(Roots().size(), 2u);
}

}  // namespace
}  // namespace belay::test
