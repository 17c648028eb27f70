#pragma once

// Checkpoint references: how people and scripts name a checkpoint (cli.md, "REF").

#include <optional>
#include <string>
#include <string_view>

#include "store/catalog.h"

namespace belay {

class Live;

// A name somebody may give: not a reserved word, not digits only, not beginning like
// another kind of reference. kInvalid says which.
Status CheckName(std::string_view name);
// The same for one that is given now: blanks alone are refused too. (Older checkpoints
// and bundles may have such names.)
Status CheckNewName(std::string_view name);

struct RefContext {
  RootId root;
  std::optional<std::string> session = {};  // for turn:, tool:; else:
  std::optional<std::string> active = {};   // the same, and others are found, too; else
                                            // ActiveSession()
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

// The number in "turn:3". kInvalid says what is wrong with it.
Result<uint64_t> TurnNumber(std::string_view ref);

// The session that was heard of last: by what was recorded, or with `live` also of an
// event that changed nothing.
Result<std::optional<std::string>> ActiveSession(Catalog& catalog, const RootId& root,
                                                 const Live* live = nullptr);

}  // namespace belay
