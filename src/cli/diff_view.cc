#include "cli/diff_view.h"

#include <algorithm>

#include "base/escape.h"
#include "cli/text.h"
#include "diff/word_diff.h"

namespace belay {

namespace {

// A line of somebody's file: tabs stay, all else that could move a cursor does not.
std::string Safe(std::string_view line) {
  std::string out;
  for (;;) {
    const size_t tab = line.find('\t');
    out += Scrub(line.substr(0, tab));
    if (tab == std::string_view::npos) return out;
    out += '\t';
    line.remove_prefix(tab + 1);
  }
}

std::string_view WithoutEnd(std::string_view line) {
  return line.ends_with('\n') ? line.substr(0, line.size() - 1) : line;
}

Style StyleOf(PatchLine kind) {
  switch (kind) {
    case PatchLine::kHead:
      return Style::kBold;
    case PatchLine::kRange:
      return Style::kCyan;
    case PatchLine::kOld:
      return Style::kRed;
    case PatchLine::kNew:
      return Style::kGreen;
    case PatchLine::kNote:
      return Style::kYellow;
    case PatchLine::kSame:
    case PatchLine::kNoEnd:
      break;
  }
  return Style::kPlain;
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < text.size(); at += lines.back().size())
    lines.push_back(LineAt(text, at));
  return lines;
}

// Blanks instead of tabs, as columns need it.
std::string Spread(std::string_view line) {
  std::string out;
  size_t column = 0;
  while (!line.empty()) {
    const size_t tab = line.find('\t');
    const std::string part = Scrub(line.substr(0, tab));
    out += part;
    column += ColumnsOf(part);
    if (tab == std::string_view::npos) break;
    const size_t fill = 8 - column % 8;
    out.append(fill, ' ');
    column += fill;
    line.remove_prefix(tab + 1);
  }
  return out;
}

std::string KindText(const TreeEntry& entry) {
  return entry.kind == EntryKind::kSymlink ? "symlink" : "file";
}

}  // namespace

PatchSink PatchTo(Terminal& term) {
  return [&term](PatchLine kind, std::string_view line) {
    if (term.out_failed()) return;
    if (term.out_is_terminal())
      term.Out(term.Paint(StyleOf(kind), Safe(line)));
    else
      term.Out(line);
    term.Out("\n");
  };
}

// --- words ---------------------------------------------------------------------------

void WordWriter::Hunks(std::string_view a, std::string_view b,
                       std::span<const LineEdit> edits) {
  for (const Hunk& hunk : HunksOf(a, b, edits)) {
    Line(PatchLine::kRange, HunkRange(hunk));
    ForEachStretch(a, hunk, [&](std::string_view same, const LineEdit* edit) {
      if (edit != nullptr)
        return Changed(a.substr(edit->a.offset, edit->a.length),
                       b.substr(edit->b.offset, edit->b.length));
      if (form_ == Form::kPorcelain) return Pieces(' ', same);
      for (std::string_view line : LinesOf(same))
        Line(PatchLine::kSame, WithoutEnd(line));
    });
  }
}

void WordWriter::Pieces(char op, std::string_view text) {
  std::string out;
  for (std::string_view line : LinesOf(text)) {
    const std::string_view raw = line.substr(0, line.size() - line.ends_with('\n'));
    if (!raw.empty()) {
      out += op;
      out += term_.out_is_terminal() ? Safe(raw) : std::string(raw);
      out += '\n';
    }
    if (line.ends_with('\n')) out += "~\n";
  }
  term_.Out(out);
}

void WordWriter::Changed(std::string_view a, std::string_view b) {
  if (term_.out_failed()) return;
  if (form_ == Form::kPorcelain) {
    for (const WordPiece& piece : DiffWords(a, b)) Pieces(piece.op, piece.text);
    return;
  }
  const bool painted = term_.Paint(Style::kRed, "x") != "x";
  std::string out;
  for (const WordPiece& piece : DiffWords(a, b)) {
    // What spans lines is marked on each of them.
    for (std::string_view line : LinesOf(piece.text)) {
      const std::string_view raw = WithoutEnd(line);
      const std::string text = term_.out_is_terminal() ? Safe(raw) : std::string(raw);
      if (piece.op == ' ' || text.empty())
        out += text;
      else if (painted)
        out += term_.Paint(piece.op == '-' ? Style::kRed : Style::kGreen, text);
      else
        out += piece.op == '-' ? StrCat("[-", text, "-]") : StrCat("{+", text, "+}");
      if (line.ends_with('\n')) out += '\n';
    }
  }
  if (!out.empty() && out.back() != '\n') out += '\n';
  term_.Out(out);
}

// --- columns -------------------------------------------------------------------------

void ColumnWriter::Hunks(std::string_view a, std::string_view b,
                         std::span<const LineEdit> edits) {
  for (const Hunk& hunk : HunksOf(a, b, edits)) {
    Line(PatchLine::kRange, HunkRange(hunk));
    ForEachStretch(a, hunk, [&](std::string_view same, const LineEdit* edit) {
      if (edit == nullptr) {
        for (std::string_view line : LinesOf(same)) Row(line, ' ', line);
        return;
      }
      const auto left = LinesOf(a.substr(edit->a.offset, edit->a.length));
      const auto right = LinesOf(b.substr(edit->b.offset, edit->b.length));
      for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
        const bool has_left = i < left.size(), has_right = i < right.size();
        Row(has_left ? left[i] : std::string_view(),
            has_left && has_right ? '|'
            : has_left            ? '<'
                                  : '>',
            has_right ? right[i] : std::string_view());
      }
    });
  }
}

void ColumnWriter::Row(std::string_view left, char mark, std::string_view right) {
  if (term_.out_failed()) return;
  const size_t width = std::max<size_t>(term_.width(), 20);
  const size_t half = (width - 3) / 2;
  auto cell = [&](std::string_view line) {
    // Far more than can be seen need not be looked at.
    return Fit(Spread(WithoutEnd(line).substr(0, 8 * width)), half);
  };
  const std::string old_text = cell(left), new_text = cell(right);
  const bool same = mark == ' ';
  std::string out = term_.Paint(same ? Style::kPlain : Style::kRed, old_text);
  out.append(half - std::min(half, ColumnsOf(old_text)), ' ');
  out += StrCat(" ", std::string_view(&mark, 1), " ");
  out += term_.Paint(same ? Style::kPlain : Style::kGreen, new_text);
  while (out.ends_with(' ')) out.pop_back();
  term_.Out(out + "\n");
}

// --- table ---------------------------------------------------------------------------

LineCounts CountsFor(const PathDiff& diff, const FileDiff& file) {
  if (file.shape != FileDiff::Shape::kText || file.trouble) return {};
  if (diff.status != DiffStatus::kTypeChanged) return CountsOf(file.edits);
  return {LinesOf(file.new_text()).size(), LinesOf(file.old_text()).size()};
}

void StatTable::Add(const PathDiff& diff, const FileDiff& file) {
  Row row;
  row.name = EscapeForDisplay(diff.path);
  if (!diff.old_path.empty())
    row.name = StrCat(EscapeForDisplay(diff.old_path), " => ", row.name);
  const bool dir =
      (diff.after ? diff.after : diff.before)->kind == EntryKind::kDirectory;
  auto size = [](const std::optional<TreeEntry>& entry) {
    return std::to_string(entry ? entry->size : 0);
  };
  if (dir) row.name += '/';
  if (diff.status == DiffStatus::kUnknown)
    row.words = StrCat("? ", UnknownText(diff));
  else if (dir)
    row.words = !diff.before  ? "new directory"
                : !diff.after ? "deleted directory"
                              : "attributes";
  else if (diff.secret && !diff.SameContent())
    row.words =
        StrCat("secret ", size(diff.before), " -> ", size(diff.after), " bytes");
  else if (file.trouble)
    row.words = StrCat("cannot be shown: ", Scrub(file.trouble->what));
  else if (file.shape == FileDiff::Shape::kBinary)
    row.words = StrCat("Bin ", size(diff.before), " -> ", size(diff.after), " bytes");
  else if (file.shape == FileDiff::Shape::kTooLarge)
    row.words =
        StrCat("too large ", size(diff.before), " -> ", size(diff.after), " bytes");
  else if (diff.status == DiffStatus::kTypeChanged)
    row.words = StrCat(KindText(*diff.before), " -> ", KindText(*diff.after));
  row.counts = CountsFor(diff, file);
  rows_.push_back(std::move(row));
}

std::string StatTable::Text(const Terminal& term) const {
  const size_t width =
      term.out_is_terminal() ? term.width() : std::min<size_t>(term.width(), 80);
  size_t names = 0, digits = 1;
  uint64_t most = 0;
  LineCounts all;
  for (const Row& row : rows_) {
    names = std::max(names, ColumnsOf(row.name));
    const uint64_t lines = row.counts.added + row.counts.deleted;
    most = std::max(most, lines);
    digits = std::max(digits, std::to_string(lines).size());
    all.added += row.counts.added;
    all.deleted += row.counts.deleted;
  }
  // " name | 12 ++--": names give way first, a bar of some length is always there.
  const size_t fixed = 1 + 3 + digits + 1;
  const size_t bar_wanted = std::min<uint64_t>(most, 40);
  if (names + fixed + bar_wanted > width)
    names = width > fixed + bar_wanted + 10 ? width - fixed - bar_wanted : 10;
  const size_t bar =
      std::max<size_t>(width > names + fixed ? width - names - fixed : 1, 1);
  std::string out;
  for (const Row& row : rows_) {
    out += StrCat(" ", Pad(FitPath(row.name, names), names), " | ");
    if (!row.words.empty()) {
      out += StrCat(Fit(row.words, width > names + 4 ? width - names - 4 : 20), "\n");
      continue;
    }
    const uint64_t lines = row.counts.added + row.counts.deleted;
    const std::string count = std::to_string(lines);
    out += StrCat(std::string(digits - count.size(), ' '), count);
    if (lines > 0) {
      auto scaled = [&](uint64_t n) -> size_t {
        if (n == 0 || most <= bar) return n;
        return std::max<size_t>(1, n * bar / most);
      };
      size_t plus = scaled(row.counts.added), minus = scaled(row.counts.deleted);
      while (plus + minus > bar && plus + minus > 1) --(plus > minus ? plus : minus);
      out += StrCat(" ", term.Paint(Style::kGreen, std::string(plus, '+')),
                    term.Paint(Style::kRed, std::string(minus, '-')));
    }
    out += '\n';
  }
  return StrCat(out, " ", Counted(rows_.size(), "path"), " changed, ",
                Counted(all.added, "line"), " added, ", std::to_string(all.deleted),
                " deleted\n");
}

}  // namespace belay
