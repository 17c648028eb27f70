// Two texts of any bytes: the edits lead from one to the other, in lines that are
// there, and so do the words.

#include <algorithm>
#include <string>
#include <string_view>

#include "base/result.h"
#include "diff/hunks.h"
#include "diff/word_diff.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belay;
  if (size < 2) return 0;
  // The first two bytes say where the first text ends; few kinds of lines find more.
  const size_t cut = (size_t{data[0]} << 8 | data[1]) % (size - 1);
  const std::string_view all(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string_view a = all.substr(0, cut),
                         b = all.substr(std::min(cut, all.size()));
  const std::vector<LineEdit> edits = DiffLines(a, b);
  std::string made;
  uint32_t at = 0, b_at = 0;
  for (const LineEdit& edit : edits) {
    BELAY_CHECK(edit.a.offset >= at && edit.a.end_offset() <= a.size());
    BELAY_CHECK(edit.b.offset >= b_at && edit.b.end_offset() <= b.size());
    BELAY_CHECK(edit.a.length > 0 || edit.b.length > 0);
    for (auto [text, offset] :
         {std::pair(a, edit.a.offset), std::pair(b, edit.b.offset)})
      BELAY_CHECK(offset == 0 || text[offset - 1] == '\n');
    made += a.substr(at, edit.a.offset - at);
    made += b.substr(edit.b.offset, edit.b.length);
    at = edit.a.end_offset(), b_at = edit.b.end_offset();
  }
  made += a.substr(at);
  BELAY_CHECK(made == b);
  // Hunks hold every edit once, and their lines are those of the texts.
  size_t lines_a = 0, lines_b = 0, held = 0;
  for (const Hunk& hunk : HunksOf(a, b, edits)) {
    held += hunk.edits.size();
    (void)HunkHeading(a, hunk);
    lines_a = lines_b = 0;
    ForEachLine(a, b, hunk, [&](char op, std::string_view line) {
      BELAY_CHECK(!line.empty());
      if (op != '+') ++lines_a;
      if (op != '-') ++lines_b;
    });
    BELAY_CHECK(lines_a == hunk.a.count && lines_b == hunk.b.count);
  }
  BELAY_CHECK(held == edits.size());
  std::string old_text, new_text;
  for (const WordPiece& piece : DiffWords(a, b)) {
    if (piece.op != '+') old_text += piece.text;
    if (piece.op != '-') new_text += piece.text;
  }
  BELAY_CHECK(old_text == a && new_text == b);
  return 0;
}
