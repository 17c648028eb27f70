// A checkpoint that came in a bundle is gone back to like any other.

#include "support/bundle_world.h"

namespace belay::test {
namespace {

std::string Without(std::string tree, const std::vector<std::string>& paths) {
  std::string out;
  for (size_t at = 0; at < tree.size();) {
    size_t end = tree.find('\n', at);
    if (end == std::string::npos) end = tree.size() - 1;
    const std::string line = tree.substr(at, end + 1 - at);
    bool left_out = false;
    for (const std::string& path : paths)
      left_out |= line.find(path) != std::string::npos;
    if (!left_out) out += line;
    at = end + 1;
  }
  return out;
}

TEST(BundleRestore, BringsBackTheSameTreeElsewhere) {
  Machine from(1), to(2);
  from.Put("src/main.c", "int main() {}\n", 0755);
  from.Put(std::string("odd\nname \xff"), "odd");
  from.Put("empty", "", 0400);
  from.MakeDir("nothing", 0700);
  from.Link("src/link", "main.c");
  from.Link("away", "/etc/passwd");
  from.Put("big", Noise(5, 2'500'000));
  from.SetXattr("src/main.c", "user.note", "kept");
  from.SetXattr("nothing", "user.dir", "kept too");
  from.Put(".env", "TOKEN=theirs");
  from.Put("keys/server.pem", "theirs");
  Must(from.world.Capture("one"));
  const std::vector<std::string> secrets = {".env", "server.pem"};
  const std::string expected = Without(from.Tree(), secrets);

  to.Put(".env", "TOKEN=mine");
  to.Put("keys/server.pem", "mine");
  to.Put("src/main.c/was/a/directory", "x");
  to.Put("more", "goes");
  Must(to.Import(Must(from.Export({"one"})).bytes));
  const std::string before = to.Tree();
  const Outcome outcome = Must(to.world.Rollback("one"));
  EXPECT_TRUE(outcome.verified);
  EXPECT_EQ(Without(to.Tree(), secrets), expected);
  EXPECT_EQ(to.Read(".env"), "TOKEN=mine");
  EXPECT_EQ(to.Read("keys/server.pem"), "mine");
  EXPECT_EQ(to.Xattr("src/main.c", "user.note"), "kept");
  EXPECT_EQ(to.Xattr("nothing", "user.dir"), "kept too");
  EXPECT_FALSE(to.Exists("more"));
  Must(to.world.Undo());
  EXPECT_EQ(to.Tree(), before);
}

TEST(BundleRestore, NeverDeletesASecretThatOnlyThisMachineHas) {
  Machine from(1), to(2);
  from.Put("a", "1");
  from.Put("conf/.env", "theirs");
  Must(from.world.Capture("one"));
  to.Put("conf/.env", "mine");
  to.Put(".env", "mine too");
  Must(to.Import(Must(from.Export({"one"})).bytes));
  to.world.plan.delete_ignored = true;
  Must(to.world.Rollback("one"));
  EXPECT_EQ(to.Read("a"), "1");
  EXPECT_EQ(to.Read("conf/.env"), "mine");
}

}  // namespace
}  // namespace belay::test
