#pragma once

// Names, notes, pins and meta of checkpoints, and deleting checkpoints.
//
// Guarantees
//   * Each of these is one batch: killed or without power at any instruction it is
//   there
//     or it is not, and when the function returned it is.
//   * The last annotation wins, field by field; what it replaced goes with a
//   collection,
//     also from the checkpoint's own record.
//   * A pinned checkpoint is not deleted. Deleting one takes nothing away that undo or
//     redo needs: an operation itself keeps the content of every path it changed.
//
// Record layout: docs/format.md, "annotation", "operation", "drop".

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/operations.h"
#include "core/settings.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// What is absent stays as it is.
struct Annotation {
  std::optional<std::string> name = {}, note = {};  // empty: taken away
  std::optional<bool> pinned = {};
  std::optional<Health> health = {};
  std::map<std::string, std::optional<std::string>> meta = {};  // without value: away
  bool empty() const { return !name && !note && !pinned && !health && meta.empty(); }
};

// The checkpoint as it is afterwards. Writes nothing when that changes nothing.
// `room`: text obeys the cap and the floor as checkpoints do: room is made first, and
// when there is none it is kNoSpace. Taking something away, and pins, always go.
struct AnnotationRoom {
  const Settings& settings;
  uint64_t let_go = 0;  // checkpoints that went for it
};
Result<CatalogEntry> Annotate(Store& store, const CatalogEntry& entry,
                              const Annotation& annotation,
                              AnnotationRoom* room = nullptr);

// Takes checkpoints of one root away, together with what was annotated to them; the
// space comes back with the next GC. `why` is "delete" or "prune", for the log.
// `hand_on`: what those beside them need of it (core/hand_on.h) is kept.
// kRefused when one is pinned, kNotFound when one is no longer there: nothing is
// deleted then.
struct Deleted {
  RecordId operation;
  std::vector<CatalogEntry> checkpoints;
};
Result<Deleted> DeleteCheckpoints(Store& store, Catalog& catalog, const Root& root,
                                  const std::vector<RecordId>& ids,
                                  std::string_view why = "delete", bool hand_on = true);

// The record of such an operation, for whoever publishes it in a batch of its own.
// `operations` are the root's: places they lead to are kept in it.
LogRecord DeletionRecord(const RecordId& id, const Root& root, int64_t made_ms,
                         const std::vector<CatalogEntry>& gone,
                         const std::vector<Operation>& operations,
                         std::string_view why);

// The places of deleted checkpoints that operations of this root went to or came from:
// TraceHistory() wants them besides those that are there.
Result<std::vector<HistoryPoint>> DeletedPlaces(Catalog& catalog, const RootId& root);

// The history of a root, deleted places included; empty when no operation moved
// anything. `outline` is Catalog::Outline()'s.
Result<History> LoadHistory(Catalog& catalog, const RootId& root,
                            const std::vector<CheckpointRow>& outline,
                            const std::vector<Operation>& operations);
// The operation that took the checkpoint `seq` back.
Result<std::optional<RecordId>> TakenBackBy(Catalog& catalog, const RootId& root,
                                            uint64_t seq);

// What was done to a root that moved no file, for `belay log`.
struct Deed {
  RecordId id;
  uint64_t seq = 0;
  int64_t made_ms = 0;
  std::string
      name;  // "delete", "prune", "purge", "note", "rename", "pin", "unpin", "annotate"
  std::optional<RecordId> target = {};  // the checkpoint; of several the first
  std::string label = {};               // what that is or was called
  uint64_t count = 1;                   // checkpoints
};
// Newest first.
Result<std::vector<Deed>> ListDeeds(Catalog& catalog, const RootId& root);

}  // namespace belay
