#pragma once

// The journal of a root: what an operation that is under way will have done. While the
// file is there, the operation is not finished; any command on the root finishes it or
// takes it back (Recover(), restore/rollback.h).
//
// Guarantees
//   * Write() returns after the journal would survive a power cut; only then may the
//     first byte of the tree move.
//   * Remove() comes last, after the operation was recorded, or everything was taken
//     back.
//   * It is complete in itself: paths, what was there and what comes. Content is in the
//     store, kept by the safety checkpoint it names.
//
// One file a root, journal/<root id> in the store. Layout: docs/format.md, "journal/".

#include <optional>
#include <string>
#include <vector>

#include "core/operations.h"
#include "restore/plan.h"
#include "restore/publication.h"
#include "store/store.h"

namespace belay {

struct Journal {
  Operation operation;  // as it will be recorded
  std::string stage;    // name of the staging directory in the root
  std::vector<PathChange> changes;
  std::vector<Plan::Locked> locked;
  std::optional<int64_t> times_ns = {};  // what files that come back are stamped with
  std::vector<GitMove> git = {};         // repositories that move along
  std::vector<ExternalMove> external = {};  // files outside of the root that do
  // New files outside of the root: what a conversation goes on with.
  std::optional<PublicationPlace> publication = {};
  // Of one of them, as Mover gets it: nothing is written in place, since git may be
  // reading it, and the index keeps its time.
  const GitMove* is_git = nullptr;
  // Inode of the root, 0 = not known: another directory may stand there when the disk
  // is not mounted.
  uint64_t root_ino = 0;
};

Bytes EncodeJournal(const Journal& journal);
Result<Journal> DecodeJournal(ByteSpan bytes);

// Names of staging directories: ".belay-stage-" and an id.
std::string StageName(const RecordId& operation);
bool IsStageName(std::string_view name);
// Of the same operation others, where several may be in one directory; 0 is the first.
std::string FurtherStageName(const RecordId& operation, size_t number);

class JournalFile {
 public:
  // kConflict, and nothing is written, when Load() would refuse it.
  static Status Write(Store& store, const Journal& journal);
  // One call when there is none.
  static Result<bool> Exists(Store& store, const RootId& root);
  // Nothing when there is none. kCorrupt when it makes no sense: then nothing was moved
  // by it (it was never durable), or the disk is at fault.
  static Result<std::optional<Journal>> Load(Store& store, const RootId& root);
  static Status Remove(Store& store, const RootId& root);
  // Moves one that makes no sense out of the way; the name it got.
  static Result<std::string> PutAside(Store& store, const RootId& root);
};

// Who is at work on a root, for those who have to wait: beside the journal, a hint
// only.
struct AtWork {
  std::string what;  // "rollback"
  int64_t pid = 0;
};
void NoteAtWork(Store& store, const RootId& root, const AtWork& who);
void ForgetAtWork(Store& store, const RootId& root);
std::optional<AtWork> WhoIsAtWork(Store& store, const RootId& root);

}  // namespace belay
