#pragma once

// Numbers that people and files write.

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace belay {

inline bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return c >= '0' && c <= '9'; });
}

// All of `text`, in decimal; nothing when there is more or it does not fit.
template <class T>
std::optional<T> Number(std::string_view text) {
  T value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace belay
