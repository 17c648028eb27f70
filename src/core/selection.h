#pragma once

// Selection: the paths and globs that somebody asked for, from the root on.
//
// A path means itself and all below it; so does whatever a glob matches. `*` spans
// directories, as in git's pathspecs. What exists under its literal name is meant
// literally, whatever characters it has (Resolve).
//
// Threads: one.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"

namespace belay {

class Selection {
 public:
  // Empty: everything. An empty path is the root.
  explicit Selection(std::vector<std::string> given);

  static bool IsGlob(std::string_view text) {
    return text.find_first_of("*?[") != std::string_view::npos;
  }
  // Globs that something is called are no globs.
  void Resolve(const std::function<bool(const RelPath&)>& exists);

  bool everything() const { return given_.empty(); }
  // Remembers which of the given ones matched.
  bool Has(const std::string& path);
  // The root directory itself, which no glob stands for.
  bool HasRoot() const;
  // Something at or below the directory `path` may be selected: never a wrong no.
  bool MayHaveBelow(const std::string& path) const;
  // Those that named nothing at all so far.
  std::vector<std::string> Unused() const;

 private:
  bool Matches(size_t index, const std::string& path) const;

  std::vector<std::string> given_;
  std::vector<bool> used_, literal_;
};

}  // namespace belay
