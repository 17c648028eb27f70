#pragma once

// ReadSaid: what one record of a transcript says, as a summary needs it: words, calls
// of tools, what came back. Records that say nothing to anybody (bookkeeping, contexts
// that the agent adds itself, subagents) are passed over.

#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "agent/json.h"

namespace belay {

class SaidListener {
 public:
  virtual ~SaidListener() = default;
  virtual void Words(bool by_user, std::string text) = 0;
  // `input` may be an object, or a text as it is.
  virtual void Call(const std::string& tool, const Json& input) = 0;
  virtual void Answer(std::string text) = 0;  // of a tool
};

// Longest text that is given on; what is longer is cut.
inline constexpr size_t kLongestSaid = 64 << 10;

void ReadSaid(AgentKind agent, const Json& record, SaidListener& to);

// What a call is about: the files that an edit tool writes, or the command of a shell.
struct CallIsAbout {
  std::vector<std::string> files = {};
  std::string command = {};
};
CallIsAbout WhatCallIsAbout(const std::string& tool, const Json& input);

}  // namespace belay
