#include "store/search_fold.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <map>

namespace belay {
namespace {

std::string Utf8(char32_t c) {
  std::string out;
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800)
    return {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
  return {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)),
          static_cast<char>(0x80 | (c & 0x3f))};
}

// What FTS5 makes of each text: its words.
class FullText {
 public:
  FullText() {
    sqlite3_open(":memory:", &db_);
    Run("CREATE VIRTUAL TABLE s USING fts5(t, tokenize='unicode61 remove_diacritics "
        "2')");
    Run("CREATE VIRTUAL TABLE v USING fts5vocab(s, 'instance')");
  }
  ~FullText() { sqlite3_close(db_); }
  void Add(int64_t id, const std::string& text) {
    sqlite3_stmt* put = nullptr;
    sqlite3_prepare_v2(db_, "INSERT INTO s(rowid, t) VALUES(?, ?)", -1, &put, nullptr);
    sqlite3_bind_int64(put, 1, id);
    sqlite3_bind_text(put, 2, text.c_str(), -1, SQLITE_TRANSIENT);
    EXPECT_EQ(sqlite3_step(put), SQLITE_DONE);
    sqlite3_finalize(put);
  }
  std::map<int64_t, std::string> Words() {
    std::map<int64_t, std::string> words;
    sqlite3_stmt* get = nullptr;
    sqlite3_prepare_v2(db_, "SELECT doc, term FROM v", -1, &get, nullptr);
    while (sqlite3_step(get) == SQLITE_ROW)
      words[sqlite3_column_int64(get, 0)] +=
          reinterpret_cast<const char*>(sqlite3_column_text(get, 1));
    sqlite3_finalize(get);
    return words;
  }

 private:
  void Run(const char* sql) {
    EXPECT_EQ(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  }
  sqlite3* db_ = nullptr;
};

// A letter before it, so that an accent alone has something to stand on.
TEST(SearchFold, IsWhatFullTextDoes) {
  FullText full_text;
  auto each = [](const auto& visit) {
    for (char32_t c = 'A'; c < 0x590; ++c) visit(c);
    for (char32_t c = 0x1e00; c < 0x1f00; ++c) visit(c);
  };
  each([&](char32_t c) { full_text.Add(c, "x" + Utf8(c)); });
  const auto words = full_text.Words();
  int letters = 0;
  each([&](char32_t c) {
    const std::string folded = FoldForSearch("x" + Utf8(c)), word = words.at(c);
    // What is no letter ends the word; what becomes of it here does not matter.
    if (word == "x" && folded == "x" + Utf8(c)) return;
    EXPECT_EQ(folded, word) << "U+" << std::hex << static_cast<uint32_t>(c);
    ++letters;
  });
  EXPECT_GT(letters, 1200);
}

TEST(SearchFold, LeavesAloneWhatIsNoText) {
  EXPECT_EQ(FoldForSearch("A\xff\xc3"), "a\xff\xc3");
  EXPECT_EQ(FoldForSearch("cafe\u0301s \u65e5\u672c"), "cafes \u65e5\u672c");
}

}  // namespace
}  // namespace belay
