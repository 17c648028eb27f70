#pragma once

// KeySet remembers which objects a writer has put: a table of ids, 45 bytes each where
// std::unordered_set takes 90. A first checkpoint of a million files holds them all.
//
// Not for ids that anybody chose: they are hashes, and the table uses them as such.
// Threads: none of its own.

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "store/object.h"

namespace belay {

class KeySet {
 public:
  bool contains(const ObjectKey& key) const {
    const Cell cell = CellOf(key);
    const Part& part = parts_[PartOf(cell)];
    return !part.cells.empty() && !IsEmpty(part.cells[Place(part, cell)]);
  }
  struct Inserted {
    bool second = false;  // as of the standard's sets: it is new
  };
  Inserted insert(const ObjectKey& key) {
    const Cell cell = CellOf(key);
    Part& part = parts_[PartOf(cell)];
    if ((part.count + 1) * 8 > part.cells.size() * 7) Grow(part);
    Cell& at = part.cells[Place(part, cell)];
    if (!IsEmpty(at)) return {};
    at = cell;
    ++part.count;
    return {.second = true};
  }
  void clear() { parts_ = {}; }

 private:
  using Cell = std::array<uint64_t, 4>;
  // In parts, so that growing copies a little at a time.
  struct Part {
    std::vector<Cell> cells;
    size_t count = 0;
  };

  // Two objects of different types have the same cell only when their hashes differ in
  // nothing but the type: as likely as two hashes being equal.
  static Cell CellOf(const ObjectKey& key) {
    Cell cell;
    std::memcpy(cell.data(), key.id.bytes.data(), sizeof cell);
    cell[3] ^= static_cast<uint64_t>(key.type) + 1;
    return cell;
  }
  static bool IsEmpty(const Cell& c) { return (c[0] | c[1] | c[2] | c[3]) == 0; }
  static size_t PartOf(const Cell& cell) { return cell[1] % kParts; }
  // Where it is, or the free cell where it would go.
  static size_t Place(const Part& part, const Cell& cell) {
    size_t at = static_cast<size_t>(
        (static_cast<unsigned __int128>(cell[0]) * part.cells.size()) >> 64);
    while (!IsEmpty(part.cells[at]) &&
           (part.cells[at][0] != cell[0] || part.cells[at] != cell))
      at = at + 1 == part.cells.size() ? 0 : at + 1;
    return at;
  }
  static void Grow(Part& part) {
    Part larger;
    larger.cells.resize(std::max<size_t>(8, part.cells.size() + part.cells.size() / 2));
    for (const Cell& cell : part.cells)
      if (!IsEmpty(cell)) larger.cells[Place(larger, cell)] = cell;
    larger.count = part.count;
    part = std::move(larger);
  }

  static constexpr size_t kParts = 64;
  std::array<Part, kParts> parts_;
};

}  // namespace belay
