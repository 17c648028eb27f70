#pragma once

// A difference as text in git's extended unified format.
//
// Guarantees
//   * What is written for text files, renames, modes, symlinks and new or deleted
//   files
//     applies with `git apply` and with `patch`, byte for byte.
//   * What cannot be applied stands outside of every section, where both programs pass
//     over it: binary files ("Binary files a/x and b/x differ", as diff(1) has it), and
//     lines that begin with "# " for secrets, directories, attributes that git does not
//     keep, and what is not known. git's own way, a section without content, makes
//     `git apply` refuse all of the patch.
//
// Threads: one per writer.

#include <functional>
#include <string>
#include <string_view>

#include "diff/file_diff.h"

namespace belay {

enum class PatchLine {
  kHead,   // diff --git, mode, rename, ---, +++
  kRange,  // @@
  kSame,   // with its mark, as the following two
  kOld,
  kNew,
  kNoEnd,  // "\ No newline at end of file"
  kNote,   // # ..., and Binary files
};
// Without the `\n` that ends each of them.
using PatchSink = std::function<void(PatchLine kind, std::string_view line)>;

class PatchWriter {
 public:
  explicit PatchWriter(PatchSink sink) : sink_(std::move(sink)) {}
  virtual ~PatchWriter() = default;
  void Write(const PathDiff& diff, const FileDiff& file);

 protected:
  // The lines of one text; override for another way to show them.
  virtual void Hunks(std::string_view a, std::string_view b,
                     std::span<const LineEdit> edits);
  void Line(PatchLine kind, std::string_view line) { sink_(kind, line); }

 private:
  void Note(const std::string& text);
  void Marker(const std::string& text);
  void Attributes(const PathDiff& diff);
  void Section(const PathDiff& diff, const FileDiff& file);
  void Body(const std::string& old_name, const std::string& new_name,
            std::string_view a, std::string_view b, std::span<const LineEdit> edits);

  PatchSink sink_;
  // The last section had no lines: "Binary files" right behind it would be taken for
  // its content.
  bool bare_ = false;
};

// "a/na me", or "\"a/n\\303\\244me\"" where git would quote (core.quotePath).
std::string QuoteForPatch(std::string_view name);
// 100644, 100755, 120000.
std::string_view GitMode(const TreeEntry& entry);
// "sha256 e3b0... (12 bytes)": all there is to see of a secret.
std::string SecretText(const TreeEntry& entry);
// What is known of a path that one side may not have had: "not covered by ...".
std::string UnknownText(const PathDiff& diff);

}  // namespace belay
