#pragma once

// Args: the words of one command, sorted into flags, arguments and what stands behind
// `--`, as the command table says. Views into argv, which outlives everything.
//
//   --flag value, --flag=value, -m value, -mvalue, -qv      `--` ends the flags

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command_table.h"

namespace belay {

class Args {
 public:
  bool has(std::string_view flag) const;
  // The last one given.
  std::optional<std::string_view> value(std::string_view flag) const;
  std::vector<std::string_view> values(std::string_view flag) const;
  const std::vector<std::string_view>& positional() const { return positional_; }
  // What stands behind `--`, for a command that has a use for it.
  const std::vector<std::string_view>& rest() const { return rest_; }

 private:
  friend Result<Args> ParseArgs(const CommandSpec&, std::span<const std::string_view>);
  struct Given {
    const FlagSpec* flag;
    std::string_view value;
  };
  std::vector<Given> given_;
  std::vector<std::string_view> positional_;
  std::vector<std::string_view> rest_;
};

// Every error is wrong usage, except kUnsupported: a flag of a later version.
Result<Args> ParseArgs(const CommandSpec& command,
                       std::span<const std::string_view> words);

// True when `flag` (or its letter) is among the words before `--`. For what has to be
// known before the words can be parsed: --json, --help.
bool MentionsFlag(std::span<const std::string_view> words, const FlagSpec& flag);

}  // namespace belay
