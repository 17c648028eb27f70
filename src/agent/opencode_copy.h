#pragma once

// A copy of a conversation of opencode's for another directory, made by its own
// program: its fork of a session stays in the directory of that. Exported, rewritten
// (agent/opencode_export.h), imported where the copy is to belong.
//
// Guarantees
//   * opencode is run in the directory of the copy only. The original is only read.
//   * Before it is asked to make anything a note names the copy (restore/fork_note.h).
//     The note is the caller's to remove, when the copy is recorded or given up.
//   * The file that it imports is for nobody but us, in the store, and gone afterwards;
//     after an interruption with the note.

#include <vector>

#include "agent/rewind.h"
#include "store/store.h"

namespace belay {

struct OpencodeMove {
  std::string session;        // whose conversation
  std::string message = {};   // nothing from this one on; empty: all of it
  std::vector<AbsPath> from;  // all paths that the directory had ...
  AbsPath to;                 // ... lead to this one
  std::string cwd = {};       // where the copy belongs
};

struct MovedCopy {
  std::string session;  // the copy; empty: nothing is left of the conversation
  uint64_t kept = 0, taken = 0;
};

// `whose` is the session that the note says is copied. A failure after which opencode
// may have made it names the copy.
Result<MovedCopy> MakeOpencodeCopy(const ForkMaker& maker, const OpencodeMove& move,
                                   const std::string& whose);
// What is said of one that nothing uses.
Error NamingCopy(Error error, const std::string& session);

}  // namespace belay
