#include "diff/line_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diff/hunks.h"
#include "diff/patch.h"
#include "diff/text_maker.h"
#include "diff/word_diff.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;

// `a` with the edits made; the ranges are checked against the texts.
std::string Applied(std::string_view a, std::string_view b,
                    const std::vector<LineEdit>& edits) {
  std::string out;
  uint32_t at = 0, line = 0, b_at = 0, b_line = 0;
  for (const LineEdit& edit : edits) {
    EXPECT_GE(edit.a.offset, at);
    const std::string_view same = a.substr(at, edit.a.offset - at);
    EXPECT_EQ(same, b.substr(b_at, edit.b.offset - b_at));
    const auto lines =
        static_cast<uint32_t>(std::count(same.begin(), same.end(), '\n'));
    EXPECT_EQ(edit.a.line, line + lines);
    EXPECT_EQ(edit.b.line, b_line + lines);
    out += same;
    out += b.substr(edit.b.offset, edit.b.length);
    at = edit.a.end_offset(), line = edit.a.end_line();
    b_at = edit.b.end_offset(), b_line = edit.b.end_line();
    for (auto [text, range] : {std::pair(a, edit.a), std::pair(b, edit.b)}) {
      const std::string_view part = text.substr(range.offset, range.length);
      size_t count = static_cast<size_t>(std::count(part.begin(), part.end(), '\n'));
      if (!part.empty() && part.back() != '\n') ++count;
      EXPECT_EQ(count, range.count);
    }
  }
  return out + std::string(a.substr(at));
}

size_t Changed(const std::vector<LineEdit>& edits) {
  const LineCounts counts = CountsOf(edits);
  return counts.added + counts.deleted;
}

// The least number of lines that must go and come, by the textbook.
size_t Least(std::string_view a, std::string_view b) {
  auto lines = [](std::string_view text) {
    std::vector<std::string_view> out;
    for (size_t at = 0; at < text.size(); at += out.back().size())
      out.push_back(LineAt(text, at));
    return out;
  };
  const auto x = lines(a), y = lines(b);
  std::vector<size_t> row(y.size() + 1), next(y.size() + 1);
  for (size_t i = 1; i <= x.size(); ++i) {
    for (size_t j = 1; j <= y.size(); ++j)
      next[j] = x[i - 1] == y[j - 1] ? row[j - 1] + 1 : std::max(row[j], next[j - 1]);
    std::swap(row, next);
  }
  return x.size() + y.size() - 2 * row[y.size()];
}

std::string Unified(std::string_view a, std::string_view b) {
  std::string out;
  const auto edits = DiffLines(a, b);
  for (const Hunk& hunk : HunksOf(a, b, edits)) {
    out += HunkRange(hunk) + "\n";
    ForEachLine(a, b, hunk, [&](char op, std::string_view line) {
      out += op;
      out += line;
      if (!line.ends_with('\n')) out += "$\n";
    });
  }
  return out;
}

TEST(LineDiff, LeadsFromOneTextToTheOtherAndIsShortest) {
  TextMaker maker(7);
  for (int i = 0; i < 3000; ++i) {
    auto [a, b] = maker.Pair();
    const auto edits = DiffLines(a, b);
    ASSERT_EQ(Applied(a, b, edits), b) << i;
    if (a.size() + b.size() < 20'000) {
      ASSERT_EQ(Changed(edits), Least(a, b)) << i << "\n" << Unified(a, b);
    }
  }
}

TEST(LineDiff, OfTheSameIsNothing) {
  EXPECT_THAT(DiffLines("", ""), ElementsAre());
  EXPECT_THAT(DiffLines("a\nb", "a\nb"), ElementsAre());
}

TEST(LineDiff, ALineWithoutItsEndIsAnotherLine) {
  EXPECT_EQ(Unified("a\nb\n", "a\nb"), "@@ -1,2 +1,2 @@\n a\n-b\n+b$\n");
  EXPECT_EQ(Unified("", "b"), "@@ -0,0 +1 @@\n+b$\n");
  EXPECT_EQ(Unified("b\n", ""), "@@ -1 +0,0 @@\n-b\n");
  EXPECT_EQ(Unified("a", "a\nb"), "@@ -1 +1,2 @@\n-a$\n+a\n+b$\n");
}

TEST(LineDiff, HunksJoinWhenTheirSurroundingsMeet) {
  std::string a, near, far;
  for (int i = 0; i < 30; ++i) {
    const std::string line = std::to_string(i) + "\n";
    a += line;
    near += i == 10 || i == 17 ? "x\n" : line;
    far += i == 10 || i == 18 ? "x\n" : line;
  }
  EXPECT_EQ(HunksOf(a, near, DiffLines(a, near)).size(), 1u);
  EXPECT_EQ(HunksOf(a, far, DiffLines(a, far)).size(), 2u);
}

TEST(LineDiff, AnInsertionStandsWhereItReadsBest) {
  const std::string a = "int f() {\n  return 1;\n}\n\nint h() {\n  return 3;\n}\n";
  const std::string b =
      "int f() {\n  return 1;\n}\n\nint g() {\n  return 2;\n}\n\nint h() {\n  return "
      "3;\n}\n";
  EXPECT_EQ(
      Unified(a, b),
      "@@ -2,6 +2,10 @@\n   return 1;\n }\n \n+int g() {\n+  return 2;\n+}\n+\n int "
      "h() {\n   return 3;\n }\n");
}

// Texts made to be slow: they end, and the result leads to the other side.
TEST(LineDiff, WhateverTheTextsItEndsSoon) {
  std::mt19937_64 random(3);
  auto text = [&](size_t lines, uint64_t kinds) {
    std::string out;
    for (size_t i = 0; i < lines; ++i)
      out += static_cast<char>('a' + random() % kinds), out += '\n';
    return out;
  };
  std::string up, down, saw, teeth;
  for (int i = 0; i < 100'000; ++i) {
    up += std::to_string(i) + "\n";
    down += std::to_string(99'999 - i) + "\n";
    saw += i % 2 == 0 ? "a\n" : "b\n";
    teeth += i % 3 == 0 ? "a\n" : "b\n";
  }
  const std::pair<std::string, std::string> pairs[] = {
      {text(200'000, 2), text(200'000, 2)},
      {text(200'000, 20), text(150'000, 20)},
      {up, down},
      {saw, teeth}};
  // Line by line it would be hours, and the time limit of a test ends it.
  for (const auto& [a, b] : pairs) EXPECT_EQ(Applied(a, b, DiffLines(a, b)), b);
}

TEST(LineDiff, OfMoreLinesThanAreComparedOneByOneFindsTheChangedOnes) {
  std::string a, b;
  const size_t count = kMaxLines + kMaxLines / 2;
  for (size_t i = 0; i < count; ++i) {
    const std::string line = std::to_string(i * 7919 % 1'000'003) + "\n";
    a += line;
    if (i == 10 || i == count / 2 || i == count - 10)
      b += "changed\n";
    else if (i != count / 3)
      b += line;
  }
  const auto edits = DiffLines(a, b);
  EXPECT_TRUE(Applied(a, b, edits) == b);
  EXPECT_EQ(Changed(edits), 7u);
  // Nothing but line ends: no content to cut at.
  const std::string empty(count, '\n'), other = empty + "x\n" + empty;
  const auto more = DiffLines("y\n" + empty + "z\n", other);
  EXPECT_TRUE(Applied("y\n" + empty + "z\n", other, more) == other);
}

TEST(WordDiff, FindsTheWordsThatChanged) {
  using P = WordPiece;
  EXPECT_THAT(DiffWords("return old_name + 1;\n", "return new_name + 1;\n"),
              ElementsAre(P{' ', "return "}, P{'-', "old_name"}, P{'+', "new_name"},
                          P{' ', " + 1;\n"}));
  TextMaker maker(11);
  for (int i = 0; i < 500; ++i) {
    auto [a, b] = maker.Pair();
    std::string old_text, new_text;
    for (const WordPiece& piece : DiffWords(a, b)) {
      if (piece.op != '+') old_text += piece.text;
      if (piece.op != '-') new_text += piece.text;
    }
    ASSERT_EQ(old_text, a);
    ASSERT_EQ(new_text, b);
  }
}

TEST(Patch, QuotesNamesAsGitDoes) {
  EXPECT_EQ(QuoteForPatch("a/plain name"), "a/plain name");
  EXPECT_EQ(QuoteForPatch("a/t\tq\"b\\n\n\x7f\xc3\xa4\x1b"),
            "\"a/t\\tq\\\"b\\\\n\\n\\177\\303\\244\\033\"");
}

}  // namespace
}  // namespace belay::test
