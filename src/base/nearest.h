#pragma once

// "Did you mean": the known word nearest to a mistyped one.

#include <span>
#include <string_view>

namespace belay {

// The word of `known` that takes the fewest single edits (insert, delete, change, swap
// of neighbours) to become `word`; empty when even that one is too far off to be meant
// (more than a third of the letters, and more than two). Case does not count.
std::string_view NearestWord(std::string_view word,
                             std::span<const std::string_view> known);

}  // namespace belay
