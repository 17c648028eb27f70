#pragma once

// What is written otherwise in a copy of a conversation: ids and paths, in JSON that
// passes by.
//
// Guarantees
//   * What was JSON stays JSON, whatever characters a path has.
//   * A path is found however its writer spelled it (a line feed as \n or \u000a, a
//     letter as itself or as \u00e4, / as \/), also in JSON that is a string of JSON
//     (the arguments of a call), and is written there as it has to be. It is one only
//     where it begins and ends as a path.
//   * Of several paths that begin at one place the longest is meant, and what is
//   written
//     there is not looked at again.
//   * An id is swapped by its place: what somebody said is not touched, whatever it is.
//   * Everything else is byte for byte what it was; so is what is no JSON.
//   * Bounded memory, however long a line or a string is.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/path.h"
#include "base/result.h"

namespace belay {

// `from` and `to` are UTF-8.
struct TranscriptSwap {
  enum class Kind : uint8_t {
    kString,  // a JSON string that is this and no more, wherever it is
    // The same where an agent writes down whose conversation it is: members that are
    // called so (sessionId, payload.thread_id, ...), not what messages hold.
    kId,
    kPath,  // the path of a directory, anywhere, also as the beginning of another
  };
  Kind kind = Kind::kString;
  std::string from, to;
};

// Of a directory that had all of these paths, to where it is now.
std::vector<TranscriptSwap> PathSwaps(const std::vector<AbsPath>& from,
                                      const AbsPath& to);

using TranscriptSink = std::function<Status(ByteSpan)>;

// What `text` says to the sink that it is given goes to `sink`, swapped. A line is one
// JSON value, or a part of one that ends between its tokens.
Status SwapInto(const std::vector<TranscriptSwap>& swaps, const TranscriptSink& sink,
                const std::function<Status(const TranscriptSink&)>& text);

// The same of a small file of YAML: lines of a key and a value.
std::string SwapInYaml(std::string_view text, const std::vector<TranscriptSwap>& swaps);

}  // namespace belay
