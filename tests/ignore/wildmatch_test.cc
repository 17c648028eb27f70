#include "ignore/wildmatch.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/crash_harness.h"

namespace belay::test {
namespace {

struct MatchRow {
  bool plain;   // `*` crosses slashes: how a last component is compared
  bool path;    // how a whole path is compared
  bool folded;  // as `path`, letters of either case
  const char* pattern;
  const char* text;
};

// The oddities are git's (2.39); differential_test.cc holds us to them.
const MatchRow kMatchRows[] = {
    // plain bytes
    {1, 1, 1, "foo", "foo"},
    {0, 0, 0, "foo", "bar"},
    {0, 0, 0, "foo", "foobar"},
    {0, 0, 0, "foobar", "foo"},
    {0, 0, 1, "foo", "FOO"},
    {0, 0, 1, "FOO", "foo"},
    {1, 1, 1, "", ""},
    {0, 0, 0, "", "a"},
    // ? and *
    {1, 1, 1, "???", "foo"},
    {0, 0, 0, "??", "foo"},
    {1, 0, 0, "a?b", "a/b"},
    {1, 1, 1, "*", "foo"},
    {1, 1, 1, "*", ""},
    {1, 1, 1, "f*", "foo"},
    {0, 0, 0, "*f", "foo"},
    {1, 1, 1, "*foo*", "foo"},
    {1, 1, 1, "*ob*a*r*", "foobar"},
    {1, 1, 1, "*ab", "aaaaaaabababab"},
    {1, 0, 0, "*", "foo/bar"},
    {1, 0, 0, "*b", "a/b"},
    {1, 0, 0, "f*r", "foo/bar"},
    {1, 1, 1, "*/*", "foo/bar"},
    {1, 0, 0, "*/*", "foo/bar/baz"},
    {1, 1, 1, "*/bar", "foo/bar"},
    {0, 0, 0, "*/bar", "bar"},
    {1, 1, 1, "a*/b*", "ax/by"},
    // ** fills a component
    {1, 1, 1, "**", "foo/bar"},
    {1, 1, 1, "**/foo", "a/b/foo"},
    {0, 1, 1, "**/foo", "foo"},
    {1, 1, 1, "foo/**", "foo/a/b"},
    {0, 0, 0, "foo/**", "foo"},
    {1, 1, 1, "foo/**/bar", "foo/a/b/bar"},
    {0, 1, 1, "foo/**/bar", "foo/bar"},
    {0, 1, 1, "foo/**/**/bar", "foo/bar"},
    {1, 1, 1, "foo/**/**/bar", "foo/b/a/z/bar"},
    {0, 0, 0, "foo/**/bar", "foobar"},
    {0, 0, 0, "foo/**/bar", "foo/xbar"},
    {1, 1, 1, "**/a/**/b/c", "x/a/y/a/b/c"},
    {0, 0, 0, "**/a/b", "a/a/c/b"},
    {1, 1, 1, "**/*.o", "a/b/c.o"},
    {0, 1, 1, "**/*.o", "c.o"},
    {1, 1, 1, "**/*a*/x", "ba/x/ca/x"},
    {1, 1, 1, "***/foo", "a/foo"},
    {1, 1, 1, "foo/***", "foo/a/b"},
    // ... and does not cross slashes where it is only a part of one
    {1, 0, 0, "foo**bar", "foo/x/bar"},
    {1, 1, 1, "foo**bar", "fooxbar"},
    {1, 0, 0, "foo/**bar", "foo/a/bar"},
    {1, 0, 0, "foo**/bar", "foo/a/b/bar"},
    {1, 1, 1, "foo**/bar", "foox/bar"},
    // an escaped slash after ** is not nothing
    {0, 0, 0, "a/**\\/b", "a/b"},
    {1, 1, 1, "a/**\\/b", "a/x/b"},
    // escapes
    {1, 1, 1, "\\*", "*"},
    {0, 0, 0, "\\*", "a"},
    {1, 1, 1, "\\?", "?"},
    {1, 1, 1, "\\[ab]", "[ab]"},
    {1, 1, 1, "\\a", "a"},
    {1, 1, 1, "\\\\", "\\"},
    {0, 0, 0, "a\\", "a\\"},
    {0, 0, 0, "a\\", "a"},
    {1, 1, 0, "\\A", "A"},  // git does not fold what is escaped
    {1, 1, 1, "a\\/b", "a/b"},
    // sets
    {1, 1, 1, "t[ea]n", "ten"},
    {0, 0, 0, "t[!ea]n", "ten"},
    {1, 1, 1, "t[!ea]n", "tin"},
    {1, 1, 1, "t[^ea]n", "tin"},
    {1, 1, 1, "[a-c]b", "bb"},
    {0, 0, 0, "[a-c]b", "db"},
    {0, 0, 0, "[z-a]", "m"},
    {1, 1, 1, "a[]]b", "a]b"},
    {1, 1, 1, "a[]-]b", "a-b"},
    {1, 1, 1, "a[]-]b", "a]b"},
    {1, 1, 1, "a[!]]b", "axb"},
    {0, 0, 0, "a[!]]b", "a]b"},
    {1, 1, 1, "[-a]", "-"},
    {1, 1, 1, "[a-]", "-"},
    {1, 1, 1, "[\\]]", "]"},
    {1, 1, 1, "[\\-a]", "-"},
    {1, 1, 1, "[a-\\z]", "m"},
    {1, 1, 1, "[,-.]", "-"},
    {1, 1, 1, "[a-c-e]", "-"},
    {0, 0, 0, "[a-c-e]", "d"},
    {1, 1, 1, "[[]", "["},
    {1, 1, 1, "[[a]", "a"},
    {0, 0, 0, "[a", "[a"},
    {0, 0, 0, "[", "["},
    {0, 0, 0, "[]", "[]"},
    {0, 0, 0, "[!]", "x"},
    {0, 0, 0, "*[a", "[a"},
    {0, 0, 0, "[a\\", "a"},
    {1, 0, 0, "a[/]b", "a/b"},
    {1, 0, 0, "a[!x]b", "a/b"},
    {1, 1, 1, "a[/x]b", "axb"},
    {1, 1, 1, "[A-Z]", "B"},
    {0, 0, 1, "[A-Z]", "b"},
    {0, 0, 1, "[a-z]", "B"},
    {1, 1, 0, "[A]", "A"},  // nor a single member of a set
    {0, 0, 1, "[a]", "A"},
    {1, 1, 1, "[\x80-\xff]", "\xc3"},
    // classes
    {1, 1, 1, "[[:alpha:]]", "a"},
    {0, 0, 0, "[[:alpha:]]", "1"},
    {0, 0, 0, "[[:alpha:]]", "\xe9"},
    {1, 1, 1, "[[:alpha:][:digit:]]", "1"},
    {0, 0, 0, "[![:alpha:]]", "a"},
    {1, 1, 1, "[[:digit:]-z]", "-"},
    {1, 1, 1, "[[:upper:]]", "A"},
    {0, 0, 1, "[[:upper:]]", "a"},
    {1, 1, 1, "[[:space:]]", " "},
    {1, 1, 1, "[[:space:]]", "\t"},
    {0, 0, 0, "[[:space:]]", "\v"},  // git's own table: no vertical tab, no form feed
    {0, 0, 0, "[[:space:]]", "\f"},
    {1, 1, 1, "[[:blank:]]", "\t"},
    {1, 1, 1, "[[:cntrl:]]", "\x7f"},
    {1, 1, 1, "[[:punct:]]", "~"},
    {1, 1, 1, "[[:punct:]]", "$"},
    {1, 1, 1, "[[:print:]]", " "},
    {0, 0, 0, "[[:graph:]]", " "},
    {1, 1, 1, "[[:graph:]]", "!"},
    {1, 1, 1, "[[:xdigit:]]", "f"},
    {0, 0, 0, "[[:xdigit:]]", "g"},
    {1, 1, 1, "[[:lower:]]", "a"},
    {1, 1, 1, "[[:alnum:]]", "0"},
    {0, 0, 0, "[[:foo:]]", "a"},
    {0, 0, 0, "[[:ALPHA:]]", "a"},
    {0, 0, 0, "[[:foo:]a]", "a"},
    {0, 0, 0, "*[[:foo:]]", "a"},
    {0, 0, 0, "[[:alpha:", "a"},
    {1, 1, 1, "[[:]", ":"},
    {1, 1, 1, "[[:]", "["},
    {1, 1, 1, "[[:alpha]]", "a]"},
    {1, 1, 1, "[[.a.]]", "a]"},
};

TEST(Wildmatch, AnswersAsGitDoes) {
  for (const MatchRow& row : kMatchRows) {
    SCOPED_TRACE(std::string("'") + row.pattern + "' against '" + row.text + "'");
    EXPECT_EQ(Wildmatch(row.pattern, row.text, {}), row.plain) << "plain";
    EXPECT_EQ(Wildmatch(row.pattern, row.text, {.path = true}), row.path) << "path";
    EXPECT_EQ(Wildmatch(row.pattern, row.text, {.path = true, .fold_case = true}),
              row.folded)
        << "folded";
  }
}

std::string Repeat(std::string_view piece, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += piece;
  return out;
}

// Each would take longer than the universe by trying everything.
TEST(Wildmatch, TakesNoExponentialTime) {
  const std::string name(255, 'a');
  EXPECT_FALSE(Wildmatch(Repeat("*a", 120) + "*b", name, {}));
  EXPECT_FALSE(Wildmatch(Repeat("*a", 120) + "*b", name, {.path = true}));
  EXPECT_TRUE(Wildmatch(Repeat("*a", 120) + "*", name, {.path = true}));
  const std::string path = Repeat("aaaaaaaaaa/", 380) + "a";
  EXPECT_FALSE(Wildmatch(Repeat("**/*a*/", 100) + "b", path, {.path = true}));
  EXPECT_FALSE(Wildmatch(Repeat("**/", 1000) + "b", path, {.path = true}));
  EXPECT_FALSE(Wildmatch(Repeat("*a*/", 300) + "b", path, {.path = true}));
  EXPECT_FALSE(Wildmatch(Repeat("*a", 2000) + "*b", path, {}));
  EXPECT_FALSE(Wildmatch("*[" + Repeat("[:", 20'000) + "]b", name, {}));
  EXPECT_FALSE(Wildmatch(Repeat("?", 100'000), name, {}));
  EXPECT_TRUE(WildmatchCouldGoOn(Repeat("**/*a*/", 100) + "b", path, {.path = true}));
}

// --- the plainest matcher there is, for short texts ----------------------------------

// What the documentation of gitignore says, by trying everything; sets by Wildmatch
// itself, one byte at a time.
bool Slow(std::string_view pattern, size_t p, std::string_view text) {
  if (p == pattern.size()) return text.empty();
  if (pattern[p] == '*') {
    size_t end = p;
    while (end < pattern.size() && pattern[end] == '*') ++end;
    const bool deep = end - p >= 2 && (p == 0 || pattern[p - 1] == '/') &&
                      (end == pattern.size() || pattern[end] == '/');
    if (deep && end < pattern.size() && Slow(pattern, end + 1, text)) return true;
    for (size_t take = 0; take <= text.size(); ++take) {
      if (Slow(pattern, end, text.substr(take))) return true;
      if (!deep && take < text.size() && text[take] == '/') return false;
    }
    return false;
  }
  if (text.empty()) return false;
  size_t end = p + 1;
  if (pattern[p] == '[') end = pattern.find(']', p + 2) + 1;
  return Wildmatch(pattern.substr(p, end - p), text.substr(0, 1), {.path = true}) &&
         Slow(pattern, end, text.substr(1));
}

std::string FromPieces(Random& random, const std::vector<std::string>& pieces,
                       uint64_t most) {
  std::string out;
  for (uint64_t n = random.Below(most + 1); n > 0; --n)
    out += pieces[static_cast<size_t>(random.Below(pieces.size()))];
  return out;
}

const std::vector<std::string> kPieces = {"a", "b", "/",   "*",    "**",  "?",
                                          "/", "a", "**/", "[ab]", "[!a]"};

TEST(Wildmatch, EqualsTryingEverything) {
  SeededRandom random(TestSeed(11));
  int matched = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string pattern = FromPieces(random, kPieces, 9);
    const std::string text = FromPieces(random, {"a", "b", "/"}, 8);
    const bool slow = Slow(pattern, 0, text);
    matched += slow;
    ASSERT_EQ(Wildmatch(pattern, text, {.path = true}), slow)
        << "'" << pattern << "' against '" << text << "'";
  }
  EXPECT_GT(matched, 5000);
}

TEST(Wildmatch, CouldGoOnNeverRulesOutAMatch) {
  SeededRandom random(TestSeed(12));
  int ruled_out = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string pattern = FromPieces(random, kPieces, 9);
    const std::string text = FromPieces(random, {"a", "b", "/"}, 8);
    const WildFlags flags{.path = random.Below(2) == 0, .fold_case = false};
    const bool matches = Wildmatch(pattern, text, flags);
    for (size_t cut = 0; cut < text.size(); ++cut) {
      const bool could = WildmatchCouldGoOn(pattern, text.substr(0, cut), flags);
      ruled_out += !could;
      ASSERT_TRUE(could || !matches)
          << "'" << pattern << "' at '" << text << "' cut to " << cut;
    }
  }
  EXPECT_GT(ruled_out, 5000);  // or it says yes to everything
}

TEST(Wildmatch, CouldGoOnSaysNoWhereNothingCanFollow) {
  const WildFlags path{.path = true};
  EXPECT_TRUE(WildmatchCouldGoOn("a/b", "a/", path));
  EXPECT_FALSE(WildmatchCouldGoOn("a/b", "a/b", path));
  EXPECT_FALSE(WildmatchCouldGoOn("a/b", "c/", path));
  EXPECT_FALSE(WildmatchCouldGoOn("*/b", "a/c/", path));
  EXPECT_TRUE(WildmatchCouldGoOn("**/b", "a/c/", path));
  EXPECT_TRUE(WildmatchCouldGoOn("*/*/b", "a/c/", path));
  EXPECT_FALSE(WildmatchCouldGoOn("", "", path));
}

}  // namespace
}  // namespace belay::test
