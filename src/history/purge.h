#pragma once

// Purge: content that must not stay in the store is erased from every file of it.
//
// Guarantees
//   * When Purge() returned without an error, what it erased is in no pack, no index,
//     not in the catalogue, its WAL or its full text; `stays` and `again` of the report
//     name what may still hold it and why. The packs were looked at to say so.
//   * Content that another path has as well is named, and kept unless `everywhere`,
//     whoever stores it meanwhile. Nothing else is lost: every wanted object that the
//     purge does not name stays. A path that was purged itself is no reason to keep
//     anything: what was kept because of each other goes with the last of them.
//   * Checkpoints stay, and say `purged` in its place (core/purged.h). The name, size
//     and hash of what was there stay in their trees: docs/erasing.md.
//   * What is purged and still in a directory is left out of its checkpoints from then
//     on (Root::purged), published together with the purge.
//   * Killed at any instruction it has not happened, or it is published and is
//     finished by the next purge or collection.
//   * A root with an interrupted rollback is refused: recovery may need the content.
// It does not look for copies inside other content, nor outside the store.
//
// Locks: the byte of the root, waiting; those of other roots that it takes content
// from, without waiting; then those of the store.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/roots.h"
#include "core/settings.h"
#include "store/store.h"

namespace belay {

struct PurgePlan;

struct PurgeRequest {
  // One of the two.
  std::optional<std::string> path = {};  // from the root on; what is below it too
  std::optional<std::string> session =
      {};                   // its checkpoints, prompts, notes; all roots
  Root root = {};           // of the path
  bool everywhere = false;  // of a path: also where others have it
  int64_t lock_wait_ms = 10'000;
  // Whose cap is kept to while packs are written anew; null: there is none.
  const Settings* settings = nullptr;
  // What somebody said yes to: when content of more places would be erased by now,
  // nothing is (kConflict).
  const PurgePlan* shown = nullptr;
  std::function<void(uint64_t done, uint64_t total)> progress = {};
};

// Somebody else who has the same content, or a part of it.
struct SharedContent {
  std::string path;  // the one that is purged
  RootId root_id;
  std::string root;   // where else
  std::string also;   // empty: not under a path (a file of rules)
  bool part = false;  // of a long file: not all of it is the same
  bool operator==(const SharedContent&) const = default;
};

// A checkpoint that stays, and with it content that came with a session that is purged.
struct KeepsOfSession {
  RecordId id;
  std::string root;   // its path
  std::string title;  // what a list calls it
};

struct PurgePlan {
  std::vector<ObjectKey> objects;  // that will be erased
  // Of those, what stays in part: a later purge must find it.
  std::vector<KeptChunks> kept_chunks;
  std::vector<RecordId> records;      // that will be dropped (of a session)
  std::vector<std::string> paths;     // under which something is stored, rising
  std::vector<SharedContent> shared;  // kept, or with `everywhere` erased there too
  std::vector<SharedContent> purged_before;  // erased there too: it was kept then
  uint64_t versions = 0;                     // contents that will be erased
  uint64_t bytes = 0;                        // of those, as files
  uint64_t checkpoints = 0;                  // that lose any of it, under whatever path
  uint64_t pinned = 0;                       // of a session: of them
  std::vector<KeepsOfSession> kept_by;       // of a session: newest first
  uint64_t operations = 0;   // of a session: that can no longer be undone
  uint64_t transcripts = 0;  // of a session: copies of its conversation
  // Of a session: those that were forked from it, whose transcripts hold what was said
  // until then too.
  std::vector<std::string> grew_out_of_it;
  // Of a session: checkpoints and operations that quote the name of one of its
  // checkpoints, and will no longer.
  uint64_t retitled = 0;
  bool on_disk = false;  // the path is there: it will be left out
  // Copies of git directories (git.protect) go, too; and none are made from then on.
  bool git_copies = false;
  uint64_t git_files = 0;  // files of those
  // They stay, and may hold it: nothing else is known of the path.
  bool git_may_hold = false;
  bool was_purged = false;  // it, or a directory above it, was purged before
  bool links = false;  // a symlink was there: its target stays in its directory's tree
  bool empty() const { return objects.empty() && records.empty(); }
  // Neither now nor, as far as is known, before there was anything of the path.
  bool found_nothing() const {
    return empty() && !keeps_all() && !on_disk && !was_purged;
  }
  // Something of the path is stored, and all of it stays.
  bool keeps_all() const { return empty() && (!shared.empty() || links); }
};

// Changes nothing.
Result<PurgePlan> PlanPurge(Store& store, const PurgeRequest& request);

struct PurgeReport {
  PurgePlan plan;                     // what was done
  uint64_t freed = 0;                 // bytes of packs
  std::vector<std::string> left_out;  // absolute paths, that are left out from now on
  std::vector<std::string> stays;     // files that repair kept and that may hold it
  uint64_t again = 0;                 // objects that somebody stored meanwhile
};
// Also when there is nothing to erase: it finishes what was begun before.
Result<PurgeReport> Purge(Store& store, const PurgeRequest& request);

// Checkpoints may hold the path again. kNotFound when it is not left out.
Status AllowAgain(Store& store, const Root& root, const std::string& path,
                  int64_t lock_wait_ms);

}  // namespace belay
