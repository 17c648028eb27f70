#include "diff/line_diff.h"

#include <algorithm>
#include <cstring>

#include "base/result.h"

namespace belay {

std::string_view LineAt(std::string_view text, size_t at) {
  const size_t end = text.find('\n', at);
  return text.substr(at, end == std::string_view::npos ? end : end + 1 - at);
}

size_t LineBefore(std::string_view text, size_t end) {
  if (end < 2) return 0;
  const void* found = memrchr(text.data(), '\n', end - 1);
  return found == nullptr
             ? 0
             : static_cast<size_t>(static_cast<const char*>(found) - text.data()) + 1;
}

namespace {

// Of a run of lines: about this many, cut where the content says, so that the same
// lines make the same runs wherever they stand.
constexpr uint64_t kRunMask = 63;
constexpr size_t kMaxRun = 1024;
constexpr uint32_t kMaxSlide = 200;

uint32_t CountLines(std::string_view text) {
  auto count = static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n'));
  if (!text.empty() && text.back() != '\n') ++count;
  return count;
}

Tokens LinesOf(std::string_view text, size_t count) {
  Tokens out{text, {}};
  out.starts.reserve(count + 1);
  for (size_t at = 0; at < text.size(); at += LineAt(text, at).size())
    out.starts.push_back(static_cast<uint32_t>(at));
  out.starts.push_back(static_cast<uint32_t>(text.size()));
  return out;
}

Tokens RunsOf(std::string_view text) {
  Tokens out{text, {}};
  size_t lines = 0;
  for (size_t at = 0; at < text.size();) {
    if (lines == 0) out.starts.push_back(static_cast<uint32_t>(at));
    const std::string_view line = LineAt(text, at);
    at += line.size();
    const bool cut = (TokenHash(line) & kRunMask) == 0;
    lines = cut || lines + 1 == kMaxRun ? 0 : lines + 1;
  }
  out.starts.push_back(static_cast<uint32_t>(text.size()));
  return out;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t at = 0;
  constexpr size_t kStep = 4096;
  while (at + kStep <= most && std::memcmp(a.data() + at, b.data() + at, kStep) == 0)
    at += kStep;
  while (at < most && a[at] == b[at]) ++at;
  return at;
}

size_t CommonSuffix(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t count = 0;
  constexpr size_t kStep = 4096;
  while (count + kStep <= most &&
         std::memcmp(a.data() + a.size() - count - kStep,
                     b.data() + b.size() - count - kStep, kStep) == 0)
    count += kStep;
  while (count < most && a[a.size() - count - 1] == b[b.size() - count - 1]) ++count;
  return count;
}

class LineDiffer {
 public:
  LineDiffer(std::string_view a, std::string_view b) : a_(a), b_(b) {}

  std::vector<LineEdit> Run() {
    Compare({{0, CountLines(a_), 0, static_cast<uint32_t>(a_.size())},
             {0, CountLines(b_), 0, static_cast<uint32_t>(b_.size())}},
            true);
    Join();
    for (size_t i = 0; i < edits_.size(); ++i) Slide(i);
    return std::move(edits_);
  }

 private:
  // Whole lines on both sides. `coarse`: may be cut into runs.
  void Compare(LineEdit part, bool coarse) {
    Trim(part);
    if (part.a.length == 0 && part.b.length == 0) return;
    const bool huge = part.a.count > kMaxLines || part.b.count > kMaxLines;
    if (part.a.length == 0 || part.b.length == 0 || (huge && !coarse) ||
        edits_.size() >= kMaxEdits) {
      edits_.push_back(part);
      return;
    }
    const std::string_view a = a_.substr(part.a.offset, part.a.length);
    const std::string_view b = b_.substr(part.b.offset, part.b.length);
    const Tokens of_a = huge ? RunsOf(a) : LinesOf(a, part.a.count);
    const Tokens of_b = huge ? RunsOf(b) : LinesOf(b, part.b.count);
    const std::vector<TokenEdit> found = DiffTokens(of_a, of_b);
    // Between edits both sides have the same, so lines are counted on one of them.
    uint32_t line_a = part.a.line, line_b = part.b.line;
    uint32_t at_a = 0;
    for (const TokenEdit& edit : found) {
      const uint32_t a0 = of_a.starts[edit.a_begin], a1 = of_a.starts[edit.a_end];
      const uint32_t b0 = of_b.starts[edit.b_begin], b1 = of_b.starts[edit.b_end];
      const uint32_t same = CountLines(a.substr(at_a, a0 - at_a));
      LineEdit next{{line_a + same, 0, part.a.offset + a0, a1 - a0},
                    {line_b + same, 0, part.b.offset + b0, b1 - b0}};
      next.a.count =
          huge ? CountLines(a.substr(a0, a1 - a0)) : edit.a_end - edit.a_begin;
      next.b.count =
          huge ? CountLines(b.substr(b0, b1 - b0)) : edit.b_end - edit.b_begin;
      line_a = next.a.end_line();
      line_b = next.b.end_line();
      at_a = a1;
      if (huge)
        Compare(next, false);
      else
        edits_.push_back(next);
    }
  }

  // Takes what both begin and end with off, in whole lines.
  void Trim(LineEdit& part) {
    std::string_view a = a_.substr(part.a.offset, part.a.length);
    std::string_view b = b_.substr(part.b.offset, part.b.length);
    size_t prefix = CommonPrefix(a, b);
    if (prefix < a.size() || prefix < b.size()) {
      const size_t end = a.substr(0, prefix).rfind('\n');
      prefix = end == std::string_view::npos ? 0 : end + 1;
    }
    const uint32_t lines = CountLines(a.substr(0, prefix));
    for (LineRange* range : {&part.a, &part.b}) {
      range->line += lines;
      range->count -= lines;
      range->offset += static_cast<uint32_t>(prefix);
      range->length -= static_cast<uint32_t>(prefix);
    }
    a.remove_prefix(prefix);
    b.remove_prefix(prefix);
    size_t suffix = CommonSuffix(a, b);
    // It begins where a line begins, on both sides.
    auto begins = [](std::string_view text, size_t at) {
      return at == 0 || text[at - 1] == '\n';
    };
    if (!begins(a, a.size() - suffix) || !begins(b, b.size() - suffix)) {
      const size_t end = a.find('\n', a.size() - suffix);
      suffix = end == std::string_view::npos ? 0 : a.size() - end - 1;
    }
    const uint32_t after = CountLines(a.substr(a.size() - suffix));
    for (LineRange* range : {&part.a, &part.b}) {
      range->count -= after;
      range->length -= static_cast<uint32_t>(suffix);
    }
  }

  // Edits that touch, where two runs met, are one.
  void Join() {
    size_t kept = 0;
    for (const LineEdit& edit : edits_) {
      if (kept > 0 && edits_[kept - 1].a.end_line() == edit.a.line &&
          edits_[kept - 1].b.end_line() == edit.b.line) {
        LineEdit& last = edits_[kept - 1];
        last.a.count += edit.a.count, last.a.length += edit.a.length;
        last.b.count += edit.b.count, last.b.length += edit.b.length;
        continue;
      }
      edits_[kept++] = edit;
    }
    edits_.resize(kept);
  }

  // --- where an insertion or deletion stands best ------------------------------------

  static uint32_t Indent(std::string_view line) {
    uint32_t columns = 0;
    for (char c : line) {
      if (c == ' ')
        ++columns;
      else if (c == '\t')
        columns += 8 - columns % 8;
      else
        break;
      if (columns >= 200) break;
    }
    return columns;
  }
  static bool IsBlank(std::string_view line) {
    return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
  }
  // How badly a border before the line at `at` would look.
  static int Badness(std::string_view text, size_t at) {
    int bad = 0;
    if (at < text.size()) {
      const std::string_view line = LineAt(text, at);
      if (IsBlank(line))
        bad += 1;
      else
        bad += 2 * static_cast<int>(Indent(line));
    }
    if (at > 0) {
      const size_t before = LineBefore(text, at);
      if (IsBlank(text.substr(before, at - before))) bad -= 3;
    }
    return bad;
  }

  void Slide(size_t index) {
    LineEdit& edit = edits_[index];
    if ((edit.a.count == 0) == (edit.b.count == 0)) return;
    const bool deletes = edit.b.count == 0;
    const std::string_view text = deletes ? a_ : b_;
    LineRange& range = deletes ? edit.a : edit.b;
    LineRange& other = deletes ? edit.b : edit.a;
    // An edit keeps one line away from its neighbours.
    const LineRange* left =
        index == 0 ? nullptr : (deletes ? &edits_[index - 1].a : &edits_[index - 1].b);
    const LineRange* right =
        index + 1 == edits_.size()
            ? nullptr
            : (deletes ? &edits_[index + 1].a : &edits_[index + 1].b);
    const uint32_t first = left == nullptr ? 0 : left->end_line() + 1;
    auto up = [&]() {
      if (range.line <= first || range.offset == 0) return false;
      const size_t before = LineBefore(text, range.offset);
      const size_t last = LineBefore(text, range.end_offset());
      const std::string_view coming = text.substr(before, range.offset - before);
      if (coming != text.substr(last, range.end_offset() - last)) return false;
      Move(range, other, -static_cast<int64_t>(coming.size()));
      return true;
    };
    auto down = [&]() {
      if (range.end_offset() >= text.size()) return false;
      if (right != nullptr && range.end_line() + 1 >= right->line) return false;
      const std::string_view coming = LineAt(text, range.end_offset());
      if (coming != LineAt(text, range.offset)) return false;
      Move(range, other, static_cast<int64_t>(coming.size()));
      return true;
    };
    uint32_t moved = 0;
    while (moved < kMaxSlide && up()) ++moved;
    LineRange best_range = range, best_other = other;
    int best = INT32_MAX;
    for (moved = 0;; ++moved) {
      const int bad = Badness(text, range.offset) + Badness(text, range.end_offset());
      if (bad <= best) best = bad, best_range = range, best_other = other;
      if (moved == 2 * kMaxSlide || !down()) break;
    }
    range = best_range;
    other = best_other;
  }

  // By one line of that many bytes, which both sides have.
  static void Move(LineRange& range, LineRange& other, int64_t bytes) {
    const int64_t lines = bytes < 0 ? -1 : 1;
    for (LineRange* moved : {&range, &other}) {
      moved->line = static_cast<uint32_t>(moved->line + lines);
      moved->offset = static_cast<uint32_t>(moved->offset + bytes);
    }
  }

  const std::string_view a_, b_;
  std::vector<LineEdit> edits_;
};

}  // namespace

std::vector<LineEdit> DiffLines(std::string_view a, std::string_view b) {
  BELAY_CHECK(a.size() < UINT32_MAX && b.size() < UINT32_MAX);
  return LineDiffer(a, b).Run();
}

}  // namespace belay
