#include "ignore/pattern_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/crash_harness.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "3:!docs/": the patterns that a file is made of.
std::vector<std::string> Read(std::string bytes) {
  const PatternFile file = PatternFile::Parse(".gitignore", std::move(bytes), false);
  std::vector<std::string> lines;
  for (const Pattern& p : file.patterns())
    lines.push_back(std::to_string(p.line) + ":" + file.PatternText(p));
  return lines;
}

// The line that decides about `path` (a directory when it ends in a slash), 0 = none.
uint32_t Line(std::string bytes, std::string path, bool fold_case = false) {
  const bool is_dir = path.ends_with('/');
  if (is_dir) path.pop_back();
  const PatternFile file = PatternFile::Parse("f", std::move(bytes), fold_case);
  const Pattern* p = file.LastMatch(path, is_dir);
  return p == nullptr ? 0 : p->line;
}

TEST(PatternFile, ReadsOnePatternPerLine) {
  EXPECT_THAT(Read("a\nb\n"), ElementsAre("1:a", "2:b"));
  EXPECT_THAT(Read("a\nb"), ElementsAre("1:a", "2:b"));
  EXPECT_THAT(Read("a\n\n\nb\n"), ElementsAre("1:a", "4:b"));
  EXPECT_THAT(Read(""), IsEmpty());
  EXPECT_THAT(Read("\n\n"), IsEmpty());
}

TEST(PatternFile, SkipsCommentsButNotEscapedOnes) {
  EXPECT_THAT(Read("#a\n\\#a\n #a\n!#a\n"), ElementsAre("2:\\#a", "3: #a", "4:!#a"));
  EXPECT_EQ(Line("\\#a\n", "#a"), 1u);
  EXPECT_EQ(Line("#a\n", "#a"), 0u);
}

TEST(PatternFile, SkipsOneByteOrderMarkAtTheStartOnly) {
  EXPECT_THAT(Read("\xef\xbb\xbf"
                   "a\n"),
              ElementsAre("1:a"));
  EXPECT_THAT(Read("\xef\xbb\xbf#a\n"), IsEmpty());
  EXPECT_THAT(Read("\xef\xbb\xbf\xef\xbb\xbf"
                   "a"),
              ElementsAre("1:\xef\xbb\xbf"
                          "a"));
  EXPECT_THAT(Read("a\n\xef\xbb\xbf"
                   "b\n"),
              ElementsAre("1:a",
                          "2:\xef\xbb\xbf"
                          "b"));
  EXPECT_THAT(Read("\xef\xbb\xbf"), IsEmpty());
}

TEST(PatternFile, DropsOneCarriageReturnBeforeTheLineFeed) {
  EXPECT_THAT(Read("a\r\nb\r\n"), ElementsAre("1:a", "2:b"));
  EXPECT_THAT(Read("a\r"), ElementsAre("1:a"));
  EXPECT_THAT(Read("a\r\r\n"), ElementsAre("1:a\r"));
  EXPECT_THAT(Read("a\rb\n"), ElementsAre("1:a\rb"));
  EXPECT_THAT(Read("a \r\n"), ElementsAre("1:a"));  // then the spaces
  EXPECT_THAT(Read("\r\n"), ElementsAre("1:"));     // a pattern that matches nothing
  EXPECT_EQ(Line("\r\n", "a"), 0u);
}

TEST(PatternFile, DropsTrailingSpacesThatAreNotEscaped) {
  EXPECT_THAT(Read("a  \n"), ElementsAre("1:a"));
  EXPECT_THAT(Read("a\\ \n"), ElementsAre("1:a\\ "));
  EXPECT_THAT(Read("a\\  \n"), ElementsAre("1:a\\ "));
  EXPECT_THAT(Read("a \\ b  \n"), ElementsAre("1:a \\ b"));
  EXPECT_THAT(Read("a\t\n"), ElementsAre("1:a\t"));  // tabs stay
  EXPECT_THAT(Read("a\t \n"), ElementsAre("1:a\t"));
  EXPECT_THAT(Read("a/ \n"), ElementsAre("1:a/"));
  EXPECT_THAT(Read("a\\\\ \n"), ElementsAre("1:a\\\\"));
  EXPECT_THAT(Read("a \\\n"), ElementsAre("1:a \\"));  // ends in a lone backslash
  EXPECT_THAT(Read("   \n"), ElementsAre("1:"));
  EXPECT_EQ(Line("a\\ \n", "a "), 1u);
  EXPECT_EQ(Line("a \n", "a "), 0u);
  EXPECT_EQ(Line("a \n", "a"), 1u);
}

TEST(PatternFile, EndsAPatternAtANul) {
  EXPECT_THAT(Read(std::string("a\0b\nc\n", 6)), ElementsAre("1:a", "2:c"));
  EXPECT_THAT(Read(std::string("a \0b\n", 5)), ElementsAre("1:a"));
}

TEST(PatternFile, KeepsVeryLongLines) {
  const std::string line(1 << 20, 'x');
  EXPECT_THAT(Read(line + "\na\n"), ElementsAre("1:" + line, "2:a"));
}

TEST(PatternFile, CountsAsEmptyAboveTheLimitOfGit) {
  std::string bytes = "a\n" + std::string(kMaxPatternFile - 2, '#');
  PatternFile most = PatternFile::Parse("f", bytes, false);
  EXPECT_FALSE(most.too_large());
  EXPECT_NE(most.LastMatch("a", false), nullptr);
  bytes += '#';
  PatternFile more = PatternFile::Parse("f", std::move(bytes), false);
  EXPECT_TRUE(more.too_large());
  EXPECT_EQ(more.LastMatch("a", false), nullptr);
}

TEST(PatternFile, LastMatchingLineDecides) {
  EXPECT_EQ(Line("a\n!a\n", "a"), 2u);
  EXPECT_EQ(Line("!a\na\n", "a"), 2u);
  EXPECT_EQ(Line("*\n!b\n", "a"), 1u);
  EXPECT_EQ(Line("a\nb\nc\nd\ne\nf\na*\ng\n", "a"), 7u);
  EXPECT_EQ(Line("a*\nb\nc\nd\ne\nf\na\ng\n", "a"), 7u);
  EXPECT_EQ(Line("*.o\n*.o\nc\nd\ne\nf\na.*\n*.o\n", "a.o"), 8u);
}

TEST(PatternFile, NegationIsRememberedAndEscapable) {
  const PatternFile file = PatternFile::Parse("f", "!a\n\\!b\n!!c\n", false);
  ASSERT_NE(file.LastMatch("a", false), nullptr);
  EXPECT_TRUE(file.LastMatch("a", false)->negative);
  ASSERT_NE(file.LastMatch("!b", false), nullptr);
  EXPECT_FALSE(file.LastMatch("!b", false)->negative);
  ASSERT_NE(file.LastMatch("!c", false), nullptr);
  EXPECT_TRUE(file.LastMatch("!c", false)->negative);
}

struct LineRow {
  const char* pattern;
  const char* path;
  bool matches;
};
const LineRow kLineRows[] = {
    // without a slash: anywhere
    {"foo", "foo", true},
    {"foo", "a/foo", true},
    {"foo", "foo/a", false},
    {"*.o", "a/b.o", true},
    {"*.o", ".o", true},
    {"*.o", "b.O", false},
    {"*", "a/b", true},
    {"f?o", "x/fXo", true},
    // with one at the start or inside: from the file's directory
    {"/foo", "foo", true},
    {"/foo", "a/foo", false},
    {"a/foo", "a/foo", true},
    {"a/foo", "b/a/foo", false},
    {"/*.c", "cat-file.c", true},
    {"/*.c", "mozilla-sha1/sha1.c", false},
    {"doc/*.html", "doc/git.html", true},
    {"doc/*.html", "doc/ppc/ppc.html", false},
    {"doc/*.html", "tools/doc/x.html", false},
    // one at the end: directories only
    {"foo/", "foo/", true},
    {"foo/", "foo", false},
    {"foo/", "a/foo/", true},
    {"doc/frotz/", "doc/frotz/", true},
    {"doc/frotz/", "a/doc/frotz/", false},
    {"*/", "a/", true},
    {"*/", "a", false},
    {"/", "a/", false},
    {"//", "a/", false},
    {"a//", "a/", false},
    {"a//b", "a/b", false},
    {"//a", "a", false},
    {"./a", "a", false},
    // ** as documented
    {"**/foo", "foo", true},
    {"**/foo", "a/b/foo", true},
    {"**/foo/bar", "x/foo/bar", true},
    {"**/foo/bar", "foo/x/bar", false},
    {"abc/**", "abc/x", true},
    {"abc/**", "abc/", false},
    {"abc/**", "x/abc/y", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a**", "ab", true},
    {"a**b", "a/b", false},
    // the plain start of a pattern is cut off first: its stars then stand at the start
    {"foo**/bar", "foobar", true},
    {"foo**/bar", "foox/y/bar", true},
    {"foo**/bar", "foo/bar", true},
    {"/foo**", "foo/x/y", true},
    {"/foo**", "foox", true},
    {"/foo**//", "foo/", true},
    {"fo?**/bar", "foox/y/bar", false},
    // odd ends
    {"foo\\", "foo\\", false},
    {"foo\\", "foo", false},
    {"\\foo", "foo", true},
    {"[f]oo", "foo", true},
    {"[foo", "[foo", false},
    {"!", "!", false},
    {"\\!", "!", true},
};

TEST(PatternFile, MatchesAsDocumented) {
  for (const LineRow& row : kLineRows) {
    const std::string pattern = row.pattern;
    SCOPED_TRACE(pattern + " against " + row.path);
    EXPECT_EQ(Line(pattern + "\n", row.path) != 0, row.matches);
    // Through the index, too.
    EXPECT_EQ(Line("\r\n\r\n\r\n\r\n" + pattern + "\n\r\n\r\n", row.path) != 0,
              row.matches);
  }
}

TEST(PatternFile, FoldsCaseWhenTold) {
  EXPECT_EQ(Line("foo\n", "FOO", true), 1u);
  EXPECT_EQ(Line("*.O\n", "a.o", true), 1u);
  EXPECT_EQ(Line("/A/b\n", "a/B", true), 1u);
  EXPECT_EQ(Line("F?o\n", "foO", true), 1u);
  EXPECT_EQ(Line("A/*b\n", "a/xB", true), 1u);
  EXPECT_EQ(Line("\xc3\x89\n", "\xc3\xa9", true), 0u);  // ASCII only, as git
  EXPECT_EQ(Line("foo\n", "FOO", false), 0u);
}

TEST(PatternFile, AListIsReadByPosition) {
  const PatternFile list =
      PatternFile::FromList("exclude", {"# no", "a\nb", " ", "", "*.o ", "!x/"});
  std::vector<std::string> lines;
  for (const Pattern& p : list.patterns())
    lines.push_back(std::to_string(p.line) + ":" + list.PatternText(p));
  EXPECT_THAT(lines, ElementsAre("2:a\nb", "3:", "5:*.o", "6:!x/"));
}

// The index finds what comparing one by one finds.
TEST(PatternFile, IndexEqualsAskingOneByOne) {
  SeededRandom random(TestSeed(21));
  const std::vector<std::string> pieces = {"a", "b", "A",    ".o",  ".c",  "/",  "*",
                                           "?", "a", "[ab]", "\\a", "**/", "foo"};
  const std::vector<std::string> names = {"a", "b", "A", ".o", ".c", "foo", "ab"};
  auto text = [&](const std::vector<std::string>& from, uint64_t most) {
    std::string out;
    for (uint64_t n = 1 + random.Below(most); n > 0; --n)
      out += from[static_cast<size_t>(random.Below(from.size()))];
    return out;
  };
  int matched = 0;
  for (int round = 0; round < 400; ++round) {
    const bool fold = random.Below(2) == 0;
    std::string bytes;
    std::vector<PatternFile> single;
    for (uint64_t n = 5 + random.Below(60); n > 0; --n) {
      std::string line = text(pieces, 4);
      if (random.Below(5) == 0) line = "!" + line;
      if (random.Below(6) == 0) line += "/";
      single.push_back(PatternFile::Parse("one", line, fold));
      bytes += line + "\n";
    }
    const PatternFile all = PatternFile::Parse("all", bytes, fold);
    for (int question = 0; question < 50; ++question) {
      std::string path = text(names, 3);
      for (uint64_t n = random.Below(3); n > 0; --n) path += "/" + text(names, 3);
      const bool is_dir = random.Below(3) == 0;
      uint32_t expected = 0;
      for (uint32_t i = 0; i < single.size(); ++i)
        if (single[i].LastMatch(path, is_dir) != nullptr) expected = i + 1;
      const Pattern* found = all.LastMatch(path, is_dir);
      ASSERT_EQ(found == nullptr ? 0 : found->line, expected) << bytes << path;
      matched += expected != 0;
    }
  }
  EXPECT_GT(matched, 5000);
}

TEST(PatternFile, CouldMatchBelowLooksAtTheStartOfAnchoredPatterns) {
  auto could = [](std::vector<std::string> patterns, std::string_view dir) {
    return PatternFile::FromList("protect", std::move(patterns)).CouldMatchBelow(dir);
  };
  EXPECT_TRUE(could({"*.db"}, "any/where"));
  EXPECT_TRUE(could({"/data/local.db"}, "data"));
  EXPECT_TRUE(could({"/data/x/local.db"}, "data/x"));
  EXPECT_FALSE(could({"/data/local.db"}, "data/x"));
  EXPECT_FALSE(could({"/data/local.db"}, "dat"));
  EXPECT_FALSE(could({"/data/local.db"}, "database"));
  EXPECT_FALSE(could({"/data"}, "data"));  // matches it, not something below
  EXPECT_TRUE(could({"a/*/c"}, "a"));
  EXPECT_TRUE(could({"a/*/c"}, "a/b"));
  EXPECT_FALSE(could({"a/*/c"}, "a/b/d"));
  EXPECT_FALSE(could({"a/*/c"}, "b"));
  EXPECT_TRUE(could({"a/**"}, "a/b/c"));
  EXPECT_TRUE(could({"**/x/y"}, "a/b/c"));
  EXPECT_TRUE(could({"a/[bc]/*.db"}, "a/b"));
  EXPECT_FALSE(could({"a/[bc]/*.db"}, "a/d"));
  EXPECT_TRUE(could({"foo**/bar"}, "foox/y"));
  EXPECT_FALSE(could({"!*.db"}, "a"));
  EXPECT_FALSE(could({"# x", "", "/"}, "a"));
}

TEST(PatternFile, KeepsItsBytes) {
  const std::string bytes = "\xef\xbb\xbf# x\r\na \n";
  EXPECT_EQ(PatternFile::Parse("f", bytes, false).bytes(), bytes);
  EXPECT_EQ(PatternFile::Parse("f", bytes, false).name(), "f");
}

}  // namespace
}  // namespace belay::test
