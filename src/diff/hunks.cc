#include "diff/hunks.h"

#include <algorithm>
#include <cctype>

#include "base/mutant.h"

namespace belay {

namespace {

// The lines before `hunk` grow by one.
bool ExtendUp(std::string_view a, Hunk& hunk, uint32_t first_line) {
  if (hunk.a.line <= first_line) return false;
  const size_t begins = LineBefore(a, hunk.a.offset);
  const auto bytes = static_cast<uint32_t>(hunk.a.offset - begins);
  for (LineRange* range : {&hunk.a, &hunk.b}) {
    range->line -= 1, range->count += 1;
    range->offset -= bytes, range->length += bytes;
  }
  return true;
}

bool ExtendDown(std::string_view a, Hunk& hunk) {
  if (hunk.a.end_offset() >= a.size()) return false;
  const auto bytes = static_cast<uint32_t>(LineAt(a, hunk.a.end_offset()).size());
  for (LineRange* range : {&hunk.a, &hunk.b}) range->count += 1, range->length += bytes;
  return true;
}

void Include(LineRange& all, const LineRange& next) {
  all.count = next.end_line() - all.line;
  all.length = next.end_offset() - all.offset;
}

}  // namespace

std::vector<Hunk> HunksOf(std::string_view a, std::string_view b,
                          std::span<const LineEdit> edits, uint32_t context) {
  (void)b;  // as `a`, wherever both are the same
  std::vector<Hunk> hunks;
  for (size_t i = 0; i < edits.size();) {
    size_t end = i + 1;
    while (end < edits.size() &&
           edits[end].a.line - edits[end - 1].a.end_line() <= 2 * context)
      ++end;
    Hunk hunk{edits[i].a, edits[i].b, edits.subspan(i, end - i)};
    Include(hunk.a, edits[end - 1].a);
    Include(hunk.b, edits[end - 1].b);
    for (uint32_t n = 0; n < context && ExtendUp(a, hunk, 0); ++n) continue;
    for (uint32_t n = 0; n < context && ExtendDown(a, hunk); ++n) continue;
    hunks.push_back(hunk);
    i = end;
  }
  return hunks;
}

void ForEachStretch(std::string_view a, const Hunk& hunk, const StretchVisitor& visit) {
  uint32_t at = hunk.a.offset;
  for (const LineEdit& edit : hunk.edits) {
    if (edit.a.offset > at) visit(a.substr(at, edit.a.offset - at), nullptr);
    visit({}, &edit);
    at = edit.a.end_offset();
  }
  if (hunk.a.end_offset() > at) visit(a.substr(at, hunk.a.end_offset() - at), nullptr);
}

void ForEachLine(std::string_view a, std::string_view b, const Hunk& hunk,
                 const LineVisitor& visit) {
  auto all = [&](char op, std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const std::string_view line = LineAt(text, at);
      visit(op, line);
      at += line.size();
    }
  };
  ForEachStretch(a, hunk, [&](std::string_view same, const LineEdit* edit) {
    if (edit == nullptr) return all(' ', same);
    all('-', a.substr(edit->a.offset, edit->a.length));
    all('+', b.substr(edit->b.offset, edit->b.length));
  });
}

std::string HunkRange(const Hunk& hunk) {
  auto range = [](const LineRange& r) {
    // Nothing stands behind the line it would follow.
    std::string text = std::to_string(r.count == 0 ? r.line : r.line + 1);
    if (r.count != 1) text += "," + std::to_string(r.count);
    return text;
  };
  if (BELAY_MUTANT("diff-empty-range-start") && hunk.a.count == 0) {
    Hunk wrong = hunk;
    wrong.a.line += 1;
    return "@@ -" + range(wrong.a) + " +" + range(wrong.b) + " @@";
  }
  return "@@ -" + range(hunk.a) + " +" + range(hunk.b) + " @@";
}

std::string_view HunkHeading(std::string_view a, const Hunk& hunk) {
  constexpr size_t kFar = size_t{64} << 10, kLong = 80;
  const size_t nearest = hunk.a.offset > kFar ? hunk.a.offset - kFar : 0;
  for (size_t end = hunk.a.offset; end > nearest;) {
    const size_t begin = LineBefore(a, end);
    const auto c = static_cast<unsigned char>(a[begin]);
    if (std::isalpha(c) != 0 || c == '_' || c == '$') {
      std::string_view line = a.substr(begin, std::min(end - begin, kLong));
      // Half a character would be none.
      while (line.size() == kLong && !line.empty() &&
             (static_cast<unsigned char>(line.back()) & 0x80) != 0)
        line.remove_suffix(1);
      for (size_t i = 0; i < line.size(); ++i)
        if (static_cast<unsigned char>(line[i]) < ' ' && line[i] != '\t')
          return line.substr(0, i);
      return line;
    }
    end = begin;
  }
  return {};
}

LineCounts CountsOf(std::span<const LineEdit> edits) {
  LineCounts counts;
  for (const LineEdit& edit : edits) {
    counts.deleted += edit.a.count;
    counts.added += edit.b.count;
  }
  return counts;
}

}  // namespace belay
