#pragma once

// PostLoopback: one HTTP request to a server on this machine, 127.0.0.1, and its
// answer. For programs of agents that can be asked in no other way; nothing leaves the
// machine.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belay {

struct HttpAnswer {
  int status = 0;
  std::string body;  // at most kLongestAnswer
};
inline constexpr size_t kLongestAnswer = 8 << 20;

// kBusy at the deadline, kIo when nobody answers, kInvalid for what is no answer.
// `path` is used as it is: callers encode it (UrlEncoded).
Result<HttpAnswer> PostLoopback(uint16_t port, std::string_view path,
                                std::string_view json, int64_t timeout_ms);

// Everything but letters, digits and "-._~" as %XX.
// `also`: what else stays as it is.
std::string UrlEncoded(std::string_view text, std::string_view also = {});

// The answer in all the bytes of a connection.
Result<HttpAnswer> ParseHttpAnswer(std::string_view bytes);

}  // namespace belay
