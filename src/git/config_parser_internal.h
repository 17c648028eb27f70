#pragma once

// The syntax of git's settings files (git-config(1), "Syntax"), byte for byte as git
// 2.39 reads it: one entry after the other until the end or the first mistake.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace belay::git_internal {

// Calls `entry(key, value)` for each; false when line `bad_line` could not be read,
// what was before it has been given.
bool ParseGitConfig(
    std::string_view text,
    const std::function<void(std::string key, std::optional<std::string> value)>& entry,
    size_t& bad_line);

}  // namespace belay::git_internal
