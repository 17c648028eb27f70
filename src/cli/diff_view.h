#pragma once

// How `belay diff` looks: a patch, word by word, side by side, a table.
//
// On a terminal control characters of names and contents are escaped; elsewhere a patch
// is byte for byte what git apply and patch want.

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "diff/patch.h"

namespace belay {

// Lines of a patch to standard output.
PatchSink PatchTo(Terminal& term);

// "[-old-]{+new+}" instead of whole lines; by colour alone where there are colours.
// What a text itself may look like: kPorcelain, as git's --word-diff=porcelain, has a
// piece a line behind ' ', '-' or '+', and '~' where a line ended.
class WordWriter final : public PatchWriter {
 public:
  enum class Form { kPlain, kPorcelain };
  WordWriter(Terminal& term, Form form)
      : PatchWriter(PatchTo(term)), term_(term), form_(form) {}

 private:
  void Hunks(std::string_view a, std::string_view b,
             std::span<const LineEdit> edits) override;
  void Changed(std::string_view a, std::string_view b);
  void Pieces(char op, std::string_view text);
  Terminal& term_;
  const Form form_;
};

// Old and new in two columns. `|` changed, `<` only old, `>` only new.
class ColumnWriter final : public PatchWriter {
 public:
  explicit ColumnWriter(Terminal& term) : PatchWriter(PatchTo(term)), term_(term) {}

 private:
  void Hunks(std::string_view a, std::string_view b,
             std::span<const LineEdit> edits) override;
  void Row(std::string_view left, char mark, std::string_view right);
  Terminal& term_;
};

// A line a file with a bar, and a sum; as wide as the terminal, at most 80 columns
// elsewhere.
class StatTable {
 public:
  void Add(const PathDiff& diff, const FileDiff& file);
  std::string Text(const Terminal& term) const;

 private:
  struct Row {
    std::string name;
    std::string words;  // instead of counts
    LineCounts counts;
  };
  std::vector<Row> rows_;
};

// Lines that `file` has more and less, whatever its status.
LineCounts CountsFor(const PathDiff& diff, const FileDiff& file);

}  // namespace belay
