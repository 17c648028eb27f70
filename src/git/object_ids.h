#pragma once

// Many of git's names of objects, of one repository, in no more memory than they have
// bytes: half a million of them are 10 MB with SHA-1.

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "git/index.h"

namespace belay {

class GitIds {
 public:
  explicit GitIds(GitHash hash);

  void Reserve(size_t count);
  void Add(ByteSpan id);  // as long as the hash
  void Clear();
  // Each once, rising.
  void SortOnce();
  // Those stay of which it is true; their order too.
  void Keep(const std::vector<bool>& which);

  size_t size() const;
  bool empty() const { return size() == 0; }
  ByteSpan operator[](size_t at) const;
  std::string Hex(size_t at) const { return ToHex((*this)[at]); }
  // Where it is, if it is; after SortOnce. One of another length is not.
  std::optional<size_t> Find(ByteSpan id) const;

 private:
  template <size_t kSize>
  using List = std::vector<std::array<std::byte, kSize>>;
  std::variant<List<20>, List<32>> list_;
};

}  // namespace belay
