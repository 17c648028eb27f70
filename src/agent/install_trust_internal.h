#pragma once

// Codex runs a hook only when its config.toml holds the hook's hash. Stamping it there
// takes a question away that Codex would ask, so it is done only on an explicit word.
//
// Pure: text in, text out. A file in which the stamps cannot be told apart from the
// rest, or that would mean something else afterwards, is refused.

#include <string>
#include <string_view>
#include <vector>

#include "agent/install_hooks_internal.h"

namespace belay {

struct TrustStamp {
  std::string key;   // "/home/u/.codex/hooks.json:pre_tool_use:0:0"
  std::string hash;  // "sha256:..."
  bool operator==(const TrustStamp&) const = default;
};

// The hash of one command hook as Codex 0.166 computes it.
std::string CodexHookHash(const RegisteredHook& hook);
// Of our hooks in `doc`, which Codex knows by `file`.
std::vector<TrustStamp> TrustStampsOf(const std::vector<RegisteredHook>& hooks,
                                      const AbsPath& file);

// How many of the stamps the text has. Errors name `shown` and the line.
Result<size_t> CountTrusted(std::string_view toml, std::string_view shown,
                            const std::vector<TrustStamp>& stamps);
Result<std::string> AddTrust(std::string_view toml, std::string_view shown,
                             const std::vector<TrustStamp>& stamps);
// Takes those out that are there with just that hash.
Result<std::string> RemoveTrust(std::string_view toml, std::string_view shown,
                                const std::vector<TrustStamp>& stamps);

}  // namespace belay
