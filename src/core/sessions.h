#pragma once

// Sessions: the conversations that checkpoints belong to, and deleting one.
//
// A session is known by its checkpoints, and by the records that agents leave of it
// (docs/format.md, "session", "turn"). It may have worked in several roots.
//
// A subagent has a record as a session has, which names its parent. One whose calls
// are told as the parent's has no checkpoints, and is listed with the parent.
//
// Guarantees
//   * Deleting one, with its subagents and the copies of its transcript, takes its
//     checkpoints along, but for those that are pinned and those that are shared: a
//     session that grew out of it (a fork, a resumed one) has them in its history. Then
//     what is told of the session, and the turns that the other has, stay, too; its
//     other turns go, and so do the copies of its transcript where the other does
//     without. With what is pinned stay its turn and the copies.
//   * Of each root it is one batch, with an entry in the operation log; the space comes
//     back by a later collection. Erasing for good is another matter: history/purge.h.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/catalog.h"
#include "store/store.h"

namespace belay {

struct SessionSummary {
  std::string id;
  std::optional<std::string> agent = {}, parent = {};
  std::vector<std::string> roots = {};  // paths, rising; where it is known of
  int64_t first_ms = 0, last_ms = 0;
  uint64_t last_seq = 0;
  uint64_t checkpoints = 0, pinned = 0;
  uint64_t turns = 0;      // its own
  uint64_t inherited = 0;  // turns of its parent that are its own too
  bool is_subagent = false;
  // That were started by it and have no checkpoints of their own.
  struct Subagent {
    std::string id;
    std::optional<std::string> type = {};
  };
  std::vector<Subagent> subagents = {};
  uint64_t transcript_bytes = 0;  // that are kept of its files
  // The agent's own, as it was told last, and how large that is now.
  std::optional<std::string> transcript_path = {};
  std::optional<uint64_t> file_bytes = {};
  // When its agent said that it is over, and nothing was recorded of it since.
  std::optional<int64_t> ended_ms = {};
};

// The most recently active first; of one root when it is given. Without `file_bytes`.
Result<std::vector<SessionSummary>> ListSessions(Catalog& catalog,
                                                 const std::optional<RootId>& root);
// Looks for the agents' own files.
void MeasureConversations(Fs& fs, std::vector<SessionSummary>& sessions);

// kNotFound, with a hint, when nothing was ever recorded of the session in that root.
Status CheckSession(Catalog& catalog, const RootId& root, std::string_view session);

struct SessionDeletion {
  std::string session;
  struct OfRoot {
    RootEntry root;
    std::vector<RecordId> checkpoints;
  };
  std::vector<OfRoot> roots;  // those with anything to delete
  // Told of the session itself, its turns, copies of its transcript: those that go.
  std::vector<RecordId> records;
  std::vector<CatalogEntry> pinned;    // that stay
  std::vector<std::string> shared_by;  // sessions that grew out of it
  std::vector<CatalogEntry> shared;    // that stay: they are in the history of those
  uint64_t checkpoints = 0;            // that go
  // That stay for the sessions that grew out of it, or with what is pinned.
  uint64_t kept_turns = 0, kept_copies = 0;
};
// Whether a session that grew out of another has its conversation by itself. Where it
// has not, the copies of the other's stay.
using HasItsOwn = std::function<Result<bool>(const std::string& session)>;
// kNotFound when nobody knows the session. Without `has_its_own` nobody has.
Result<SessionDeletion> PlanSessionDeletion(Catalog& catalog,
                                            const std::string& session,
                                            const HasItsOwn& has_its_own = {});
// The number of checkpoints that went. kRefused when all that there is belongs to
// sessions that grew out of it, too.
Result<uint64_t> DeleteSession(Store& store, Catalog& catalog,
                               const SessionDeletion& plan);

}  // namespace belay
