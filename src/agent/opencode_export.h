#pragma once

// A conversation as `opencode export` says it, and the copy of it that `opencode
// import` takes: cut, under new ids, for another directory.
//
// Guarantees
//   * What the program said is hostile until it was checked: what is not one export of
//     that session is refused (kInvalid), and no id in it is used that opencode could
//     not have made.
//   * The copy shares no id with the original: an import passes over messages whose id
//     is there already, and moves a session that is. New ids rise in the order of the
//     messages, as opencode's own do, and lie before those that it makes from now on.
//   * It holds what the conversation held before the cut, and nothing that opencode's
//     own `revert` had taken back.
//   * Snapshots that opencode keeps of the files of the source are not named in it: in
//     another directory it does not have them, and its revert deletes files whose
//     snapshot it does not find (seen in 1.18.33).
//   * Memory: the export, and one message of it.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/transcript_cut.h"
#include "base/random.h"

namespace belay {

struct OpencodeCopyRequest {
  std::string session;        // that was exported
  std::string message = {};   // nothing from this one on; empty: all of it
  std::vector<AbsPath> from;  // all paths that the directory had ...
  AbsPath to;                 // ... lead to this one
  std::string cwd = {};       // where the copy belongs
  int64_t now_ms = 0;
};

struct OpencodeCopy {
  std::string session;           // its new id
  uint64_t kept = 0, taken = 0;  // messages
  // Reads the export, which must outlive it.
  std::function<Status(const TranscriptSink&)> content;
};

// kNotFound when it has no such message.
Result<OpencodeCopy> PlanOpencodeCopy(std::string_view exported,
                                      const OpencodeCopyRequest& request,
                                      Random& random);

}  // namespace belay
