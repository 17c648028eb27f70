#pragma once

// DiffTokens: which pieces of one text are not pieces of another, in order. What a
// piece is (a line, a word, a run of lines) is the caller's choice.
//
// Myers' algorithm in linear space over numbered tokens, after tokens that only one
// side has were taken out. The result always leads from one text to the other; it is
// the shortest such way unless that would cost too much.
//
// Guarantees
//   * Time is bounded by about kMaxWork comparisons and the length of the texts,
//     whatever they are; beyond the bound the edits are longer than need be.
//   * Memory is at most some 40 bytes a token.
//
// Threads: any; nothing is shared.

#include <cstdint>
#include <string_view>
#include <vector>

namespace belay {

// A text of less than 4 GiB cut into pieces, none empty.
struct Tokens {
  std::string_view text;
  std::vector<uint32_t> starts;  // of each piece, then the end of the text

  uint32_t size() const { return static_cast<uint32_t>(starts.size() - 1); }
  std::string_view operator[](size_t i) const {
    return text.substr(starts[i], starts[i + 1] - starts[i]);
  }
};

// The tokens [a_begin, a_end) were replaced by [b_begin, b_end); one may be empty.
struct TokenEdit {
  uint32_t a_begin = 0, a_end = 0, b_begin = 0, b_end = 0;
  bool operator==(const TokenEdit&) const = default;
};

// In rising order; between any two there is at least one token that both have.
std::vector<TokenEdit> DiffTokens(const Tokens& a, const Tokens& b);

// Of one piece, all bits alike; anybody can make texts that collide.
uint64_t TokenHash(std::string_view token);

// Steps of the search before it is content with less than the shortest way.
inline constexpr uint64_t kMaxWork = uint64_t{1} << 28;

}  // namespace belay
