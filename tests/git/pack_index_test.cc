// The names in the index of a pack, against git's own list.

#include "git/pack_index.h"

#include <gtest/gtest.h>

#include "base/real_fs.h"
#include "support/fs_world.h"
#include "support/git_world.h"

namespace belay::test {
namespace {

class PackIndexTest : public testing::Test {
 protected:
  std::string NamesIn(ByteSpan bytes, GitHash hash) {
    auto names = ReadPackIndex(bytes, hash);
    if (!names.ok()) return names.error().what;
    std::string out;
    for (const std::string& name : *names) out += name + "\n";
    return out;
  }
  // Packed as `settings` say; the index of that pack.
  Bytes Pack(const std::string& dir, const std::vector<std::string>& init,
             const std::string& version) {
    world.Init(dir, init);
    for (const char* name : {"a", "b", "c"}) world.Write(dir + "/" + name, name);
    world.Git(dir, {"add", "."});
    world.Git(dir, {"commit", "-qm", "first"});
    world.Git(dir, {"-c", "pack.indexVersion=" + version, "repack", "-adq"});
    Fd packs = Must(fs.OpenDir(world / (dir + "/.git/objects/pack")));
    for (const DirEntry& entry : Must(fs.List(packs)))
      if (entry.name.ends_with(".idx"))
        return Must(ReadSmallFile(fs, packs, Must(Name::Parse(entry.name)), 1 << 20));
    return {};
  }
  std::string Listed(const std::string& dir) {
    return world.Git(
        dir, {"cat-file", "--batch-all-objects", "--batch-check=%(objectname)"});
  }

  RealFs fs;
  GitWorld world;
};

TEST_F(PackIndexTest, NamesWhatGitNames) {
  const Bytes second = Pack("second", {}, "2"), first = Pack("first", {}, "1");
  EXPECT_EQ(NamesIn(second, GitHash::kSha1), Listed("second"));
  EXPECT_EQ(NamesIn(first, GitHash::kSha1), Listed("first"));
  const Bytes longer = Pack("sha256", {"--object-format=sha256"}, "2");
  EXPECT_EQ(NamesIn(longer, GitHash::kSha256), Listed("sha256"));
}

TEST_F(PackIndexTest, WhatIsCutShortIsRefused) {
  const Bytes whole = Pack("repo", {}, "2");
  for (size_t size : {size_t{0}, size_t{8}, size_t{1032}, size_t{1100}})
    EXPECT_FALSE(ReadPackIndex(ByteSpan(whole).first(size), GitHash::kSha1).ok())
        << size;
}

}  // namespace
}  // namespace belay::test
