#include "base/path.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace belay {
namespace {

const std::string kLongest(255, 'n');
const std::string kTooLong(256, 'n');
const std::string kNul("a\0b", 3);

TEST(Path, NamesThatAreRefused) {
  for (const std::string& bad : std::vector<std::string>{"", ".", "..", "/", "a/b",
                                                         "/a", "a/", kNul, kTooLong}) {
    EXPECT_FALSE(IsValidName(bad)) << bad;
    auto parsed = Name::Parse(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().code, Errc::kInvalid) << bad;
  }
}

TEST(Path, NamesThatAreAccepted) {
  for (const std::string& good : std::vector<std::string>{
           "a", "...", ".a", "..a", "a.", " ", "-", "\n", "\x1b[2J", "\xff\xfe", "\\",
           "a\\b", "~", "CON", kLongest}) {
    auto parsed = Name::Parse(good);
    ASSERT_TRUE(parsed.ok()) << good;
    EXPECT_EQ(parsed->bytes(), good);
  }
}

TEST(Path, RelativePathsThatAreRefused) {
  for (const std::string& bad : std::vector<std::string>{"",
                                                         "/",
                                                         "/a",
                                                         "a/",
                                                         "a//b",
                                                         "//a",
                                                         ".",
                                                         "..",
                                                         "./a",
                                                         "../a",
                                                         "a/.",
                                                         "a/..",
                                                         "a/./b",
                                                         "a/../b",
                                                         "a/b/..",
                                                         kNul,
                                                         "a/" + kNul,
                                                         kTooLong,
                                                         "a/" + kTooLong,
                                                         kTooLong + "/a"}) {
    auto parsed = RelPath::Parse(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().code, Errc::kInvalid) << bad;
  }
}

TEST(Path, RelativePathsThatAreAccepted) {
  std::string deep = "d";
  for (int i = 0; i < 5000; ++i) deep += "/d";
  for (const std::string& good :
       std::vector<std::string>{"a", "a/b", "...", "a/.../b", ".git/config", "..a/b..",
                                "a b/c\n", kLongest + "/" + kLongest, deep}) {
    auto parsed = RelPath::Parse(good);
    ASSERT_TRUE(parsed.ok()) << good;
    EXPECT_EQ(parsed->bytes(), good);
  }
}

TEST(Path, ErrorsShowTheNameEscaped) {
  auto parsed = RelPath::Parse("a\n//b");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().what, "path 'a\\n//b' has an empty part");
}

TEST(Path, ComponentsBasenameAndJoin) {
  RelPath path = RelPath::Literal("a/bb/ccc");
  EXPECT_EQ(path.Components(), (std::vector<std::string_view>{"a", "bb", "ccc"}));
  EXPECT_EQ(path.basename(), Name::Literal("ccc"));
  EXPECT_EQ(RelPath::Literal("one").basename(), Name::Literal("one"));
  EXPECT_EQ(RelPath::Literal("one").Components().size(), 1u);
  EXPECT_EQ(path.Join(Name::Literal("d")).bytes(), "a/bb/ccc/d");
}

TEST(Path, AbsolutePaths) {
  for (const char* bad : {"", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "./a"})
    EXPECT_FALSE(AbsPath::Parse(bad).ok()) << bad;
  for (const char* good : {"/", "/a", "/a/b", "/..."})
    EXPECT_TRUE(AbsPath::Parse(good).ok()) << good;
  EXPECT_TRUE(AbsPath::Literal("/").is_root());
  EXPECT_EQ(AbsPath::Literal("/a/b").parent().bytes(), "/a");
  EXPECT_EQ(AbsPath::Literal("/a").parent().bytes(), "/");
  EXPECT_EQ(AbsPath::Literal("/").parent().bytes(), "/");
  EXPECT_EQ(AbsPath::Literal("/").Join(RelPath::Literal("a/b")).bytes(), "/a/b");
  EXPECT_EQ(AbsPath::Literal("/x").Join(RelPath::Literal("a")).bytes(), "/x/a");
}

TEST(Path, ResolveMakesWhatPeopleTypeAbsolute) {
  struct Row {
    const char* base;
    const char* typed;
    const char* want;
  };
  for (Row row :
       {Row{"/home/u", "a", "/home/u/a"}, Row{"/home/u", ".", "/home/u"},
        Row{"/home/u", "..", "/home"}, Row{"/home/u", "../../../..", "/"},
        Row{"/home/u", "./a//b/./c/../d/", "/home/u/a/b/d"}, Row{"/home/u", "/", "/"},
        Row{"/home/u", "//x///y", "/x/y"}, Row{"/home/u", "/../x", "/x"},
        Row{"/", "a", "/a"}, Row{"/", "..", "/"}, Row{"/a", "...", "/a/..."},
        Row{"/a", "../b/..", "/"}}) {
    auto got = AbsPath::Resolve(AbsPath::Literal(row.base), row.typed);
    ASSERT_TRUE(got.ok()) << row.typed;
    EXPECT_EQ(got->bytes(), row.want) << row.base << " + " << row.typed;
  }
  for (const std::string& bad : {std::string(), kNul, "/a/" + kTooLong})
    EXPECT_FALSE(AbsPath::Resolve(AbsPath::Literal("/"), bad).ok());
}

TEST(Path, IsWithinComparesWholeComponents) {
  AbsPath home = AbsPath::Literal("/home/u");
  EXPECT_TRUE(home.IsWithin(home));
  EXPECT_TRUE(AbsPath::Literal("/home/u/a").IsWithin(home));
  EXPECT_TRUE(home.IsWithin(AbsPath::Literal("/")));
  EXPECT_FALSE(AbsPath::Literal("/home/user").IsWithin(home));
  EXPECT_FALSE(AbsPath::Literal("/home").IsWithin(home));
  EXPECT_FALSE(AbsPath::Literal("/").IsWithin(home));
}

}  // namespace
}  // namespace belay
