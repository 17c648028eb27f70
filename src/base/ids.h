#pragma once

// Random 128-bit ids of things that are not content: roots, checkpoints, operations,
// sessions, packs, the store itself.
//
// Shown to people as 26 lower-case letters and digits that start with a letter, so that
// an id is never mistaken for a list number (cli.md, "Checkpoint references"): the
// first character carries 3 bits (letters a-h), the other 25 carry 5 bits each, in the
// alphabet abcdefghijkmnpqrstuvwxyz23456789 (no l, o, 0, 1).

#include <array>
#include <compare>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace belay {

struct Id128 {
  std::array<std::byte, 16> bytes{};

  bool is_zero() const { return *this == Id128{}; }
  ByteSpan span() const { return bytes; }
  std::string text() const;
  static std::optional<Id128> FromText(std::string_view text);
  static Id128 FromSpan(ByteSpan exactly_16);
  auto operator<=>(const Id128&) const = default;
};

// Ids that must not be mixed up are distinct types over Id128.
template <class Tag>
struct TypedId : Id128 {
  TypedId() = default;
  explicit TypedId(const Id128& id) : Id128(id) {}
};
using StoreId = TypedId<struct StoreIdTag>;
using PackId = TypedId<struct PackIdTag>;
using RootId = TypedId<struct RootIdTag>;
using RecordId = TypedId<struct RecordIdTag>;  // a checkpoint, operation, session ...

}  // namespace belay

template <>
struct std::hash<belay::Id128> {
  size_t operator()(const belay::Id128& id) const noexcept {
    size_t value = 0;
    std::memcpy(&value, id.bytes.data(), sizeof value);
    return value;
  }
};
template <class Tag>
struct std::hash<belay::TypedId<Tag>> : std::hash<belay::Id128> {};
