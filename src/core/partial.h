#pragma once

// Partial checkpoints that a person should hear of: those that were not complete when
// the agent went on. `belay status` says so while what is at work, or was last, has
// such a checkpoint, and no longer: the newest one of the root, and those of the
// session that it is of. That of a session's start, which nobody waits for, only while
// it is the newest.

#include <array>
#include <optional>
#include <string_view>

#include "store/catalog.h"

namespace belay {

// How checkpoints at a session's start are described, by what it is: the first, one of
// a session that goes on, or after a part of the conversation was let go.
inline constexpr std::string_view kStarted = "session started",
                                  kResumed = "session resumed",
                                  kCleared = "the conversation was cleared",
                                  kShortened = "the conversation was shortened";
inline constexpr std::array kStartTexts{kStarted, kResumed, kCleared, kShortened};

struct PartialOnes {
  size_t count = 0;
  CatalogEntry last;       // the newest of them
  bool is_newest = false;  // of all there are
  bool is_start = false;   // of its session
};
// Nothing when there is none. A safety checkpoint says nothing of who is at work, and
// what was imported was never to be complete.
Result<std::optional<PartialOnes>> FindPartial(Catalog& catalog, const RootId& root);

}  // namespace belay
