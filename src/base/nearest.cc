#include "base/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace belay {

namespace {
constexpr size_t kLongest = 64;  // nothing we know is longer; bounds the work

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Optimal string alignment distance, three rows of it.
size_t Distance(std::string_view a, std::string_view b) {
  std::array<std::array<size_t, kLongest + 1>, 3> rows{};
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i - 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      row[j] =
          std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1]))
        row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}
}  // namespace

std::string_view NearestWord(std::string_view word,
                             std::span<const std::string_view> known) {
  if (word.empty() || word.size() > kLongest) return {};
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (std::string_view candidate : known) {
    if (candidate.size() > kLongest) continue;
    size_t distance = Distance(word, candidate);
    // Two edits turn any two letters into any other two: not a likeness.
    if (distance >= std::max(word.size(), candidate.size())) continue;
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace belay
