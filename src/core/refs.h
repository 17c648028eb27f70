#pragma once

// Checkpoint references: how people and scripts name a checkpoint (cli.md, "REF").

#include <optional>
#include <string>
#include <string_view>

#include "store/catalog.h"

namespace belay {

// A name somebody may give: not a reserved word, not digits only, not beginning like
// another kind of reference. kInvalid says which.
Status CheckName(std::string_view name);
// The same for one that is given now: blanks alone are refused too. (Older checkpoints
// and bundles may have such names.)
Status CheckNewName(std::string_view name);

struct RefContext {
  RootId root;
  std::optional<std::string> session = {};  // for turn:, tool:; else the latest one
  int64_t now_ms = 0;                       // for @{5 minutes ago}
};

struct FoundRef {
  CatalogEntry entry;
  uint64_t number = 0;    // in `belay list`, 1 = newest
  std::string note = {};  // what should be said: "2 older ones have the same name"
};

// Tried in this order: latest, last-good; turn:N, tool:ID, session:ID; @{time}; digits;
// an exact name; an id or a unique prefix of at least 4. kNotFound or kInvalid with a
// hint. turn:, tool: and session: name the oldest checkpoint there is of it: the state
// it began with. `now` is no checkpoint: who takes it asks IsNow() first.
Result<FoundRef> ResolveRef(Catalog& catalog, const RefContext& context,
                            std::string_view ref);
inline bool IsNow(std::string_view ref) { return ref == "now"; }

// The session that something was recorded of last.
Result<std::optional<std::string>> ActiveSession(Catalog& catalog, const RootId& root);

// Milliseconds, in local time unless a Z says otherwise; kInvalid when it is none of
//   5 minutes ago, an hour ago (seconds to weeks)
//   2026-03-09 21:15:30.123, 2026-03-09T21:15:30Z, and less of it down to the day
//   21:15 (the last time it was), today 9:00, yesterday [9:00], now
// A moment is the end of what was named: 21:15 is all of that minute, so the time that
// a list shows finds what it is shown for.
Result<int64_t> ParseTime(std::string_view text, int64_t now_ms);

}  // namespace belay
