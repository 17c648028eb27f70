#include "base/escape.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace belay {
namespace {

TEST(Escape, Table) {
  struct Row {
    std::string bytes;
    std::string want;
  };
  for (const Row& row : {
           Row{"", ""},
           Row{"plain name.txt", "plain name.txt"},
           Row{"a\nb\rc\td", "a\\nb\\rc\\td"},
           Row{"back\\slash", "back\\\\slash"},
           Row{"\x1b[31mred", "\\x1b[31mred"},
           Row{std::string("nul\0", 4), "nul\\x00"},
           Row{"\x7f", "\\x7f"},
           Row{"h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80",
               "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80"},
           Row{"\xc2\x9b", "\\xc2\\x9b"},                    // C1 control: CSI
           Row{"\xe2\x80\xae", "\\xe2\\x80\\xae"},           // right-to-left override
           Row{"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},           // isolate
           Row{"\xe2\x80\x8b", "\\xe2\\x80\\x8b"},           // zero width space
           Row{"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},           // byte order mark
           Row{"\xf3\xa0\x80\x81", "\\xf3\\xa0\\x80\\x81"},  // tag character
           Row{"\xff", "\\xff"},
           Row{"\xc3", "\\xc3"},                             // cut short
           Row{"\xc3z", "\\xc3z"},                           // no continuation
           Row{"\xc0\xaf", "\\xc0\\xaf"},                    // overlong slash
           Row{"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},           // overlong slash
           Row{"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // surrogate
           Row{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // above U+10FFFF
       })
    EXPECT_EQ(EscapeForDisplay(row.bytes), row.want);
}

TEST(Escape, NoByteStringGivesAControlCharacter) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      std::string bytes = {static_cast<char>(a), static_cast<char>(b)};
      std::string shown = EscapeForDisplay(bytes);
      EXPECT_TRUE(IsValidUtf8(shown)) << a << " " << b;
      for (char c : shown) {
        EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)
            << a << " " << b;
      }
    }
  }
}

TEST(Escape, DifferentNamesAreShownDifferently) {
  EXPECT_NE(EscapeForDisplay("\\n"), EscapeForDisplay("\n"));
  EXPECT_NE(EscapeForDisplay("\\xff"), EscapeForDisplay("\xff"));
}

TEST(Escape, TextKeepsABackslashThatCannotBeMisread) {
  struct Row {
    std::string bytes;
    std::string want;
  };
  for (const Row& row : {
           Row{"", ""},
           Row{"\\", "\\"},
           Row{"\\d+\\.(ts|js)\\", "\\d+\\.(ts|js)\\"},
           Row{"C:\\Users\\me", "C:\\Users\\me"},
           Row{"h\\\xc3\xa9llo", "h\\\xc3\xa9llo"},
           Row{"C:\\new", "C:\\\\new"},  // not a line that ends
           Row{"C:\\temp\\x41\\r", "C:\\\\temp\\\\x41\\\\r"},
           Row{"\\\\", "\\\\\\"},
           Row{"a\nb\x1b[31m", "a\\nb\\x1b[31m"},
           Row{"\\\n", "\\\\\\n"},
           Row{"\\\xff", "\\\\\\xff"},
       })
    EXPECT_EQ(EscapeText(row.bytes), row.want);
}

TEST(Escape, NoTwoTextsAreShownAlike) {
  std::map<std::string, std::string> shown;
  const std::string alphabet = "\\nx0a\n\xff";
  std::vector<std::string> all = {""};
  for (size_t at = 0; at < all.size(); ++at) {
    const std::string text = all[at];
    auto [other, fresh] = shown.emplace(EscapeText(text), text);
    EXPECT_TRUE(fresh) << other->first;
    for (char c : other->first) EXPECT_TRUE(c >= 0x20 && c != 0x7f);
    if (text.size() < 5)
      for (char c : alphabet) all.push_back(text + c);
  }
}

TEST(Escape, AShellReadsAWordBack) {
  EXPECT_EQ(ShellWord("/home/me/a-b_c.d"), "/home/me/a-b_c.d");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("a\\b"), "$'a\\\\b'");
  EXPECT_EQ(ShellWord("a\n'b"), "$'a\\n\\'b'");
}

TEST(Escape, Utf8Lengths) {
  char32_t c = 0;
  EXPECT_EQ(DecodeUtf8("", c), 0u);
  EXPECT_EQ(DecodeUtf8("a", c), 1u);
  EXPECT_EQ(c, U'a');
  EXPECT_EQ(DecodeUtf8("\xc3\xa9x", c), 2u);
  EXPECT_EQ(c, char32_t{0xe9});
  EXPECT_EQ(DecodeUtf8("\xe2\x82\xac", c), 3u);
  EXPECT_EQ(c, char32_t{0x20ac});
  EXPECT_EQ(DecodeUtf8("\xf4\x8f\xbf\xbf", c), 4u);
  EXPECT_EQ(c, char32_t{0x10ffff});
  EXPECT_TRUE(IsValidUtf8("a\xc3\xa9"));
  EXPECT_FALSE(IsValidUtf8("a\xc3"));
}

}  // namespace
}  // namespace belay
