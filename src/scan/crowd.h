#pragma once

// Crowd counts the files of directories and tells which hold most of them, for somebody
// who has too many.
//
// Threads: one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belay {

class Crowd {
 public:
  static constexpr size_t kRoot = 0;

  Crowd() : dirs_(1) {}
  // A directory in one that is known; what to call it from now on.
  size_t Add(size_t parent, std::string_view name);
  void AddFile(size_t dir) { ++dirs_[dir].files; }

  struct Place {
    std::string path;
    uint64_t files = 0;  // in it and below
    bool operator==(const Place&) const = default;
  };
  // At most `most`, largest first: not the root, not what is only the way to one
  // directory below, and nothing that holds less than a twentieth of all.
  std::vector<Place> Largest(size_t most) const;
  // "3000 in z/, 200 in a/b/"; empty when no directory stands out.
  std::string Text(size_t most = 3) const;
  uint64_t total() const;

 private:
  struct Dir {
    size_t parent = 0;
    std::string name;
    uint64_t files = 0;
  };
  std::string PathOf(size_t dir) const;
  std::vector<Dir> dirs_;  // parents before children
};

}  // namespace belay
