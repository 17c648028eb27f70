#pragma once

// Purger: what a purge would do, and doing it. Made for one look; who must look again
// makes another.
//
// purge.cc: locks and publishing; purge_path.cc: the plan for a path;
// purge_session.cc: the plan for a session.

#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "history/purge.h"
#include "history/purge_survey.h"
#include "store/batch_writer.h"
#include "store/inventory.h"

namespace belay {

// A root as its latest record has it.
struct KnownRoot {
  Root root;
  uint64_t seq = 0;
};
using KnownRoots = std::unordered_map<RootId, KnownRoot>;

// A record of `belay log` that says so.
bool IsPurgeOperation(const LogRecord& record);
// Tags of an operation record; docs/format.md.
inline constexpr uint64_t kPurgeOperationName = 1, kPurgeOperationLabel = 8,
                          kPurgeOperationCount = 11, kPurgeOperationPath = 12;
inline constexpr std::string_view kPurgeName = "purge", kSessionLabel = "a session";

// Published alone or not at all, by whoever holds the locks.
class Purger {
 public:
  Purger(Store& store, const PurgeRequest& request)
      : store_(store), request_(request) {}

  // With `use` held.
  Status Look();

  const PurgePlan& plan() const { return plan_; }
  PurgePlan TakePlan() { return std::move(plan_); }

  // Roots besides the request's own whose content goes.
  std::set<RootId> OtherRoots() const;

  // The locks of the roots are held. Says no (kConflict) when somebody stored the same
  // content under another path by then: plan again.
  Status Publish(std::vector<std::string>& left_out);

 private:
  Status PlanPath();
  // A session: its records go, with what only they lead to.
  Status PlanSession();
  // It, and the sessions of its subagents.
  void FindSubagents();
  bool IsOfSession(const std::optional<std::string>& session) const;
  // A session that grew out of what goes has turns of those before that, too: it is
  // told anew as grown out of the nearest that stays.
  std::vector<LogRecord> HeirsToldAnew();
  // Which checkpoints go on holding what came with the session.
  Status FindWhoKeeps(const std::unordered_set<ObjectId>& came);
  // Who quotes the name of one of its checkpoints, had now or before: what a rollback
  // to it made, and whatever went to that in turn. A checkpoint without a name is
  // quoted by its description, which others may have as well: there only what is known
  // to belong to such a rollback counts.
  void FindWhoQuotes();
  // Each tree once, from the leaves up; what cannot be read has nothing. Content, or a
  // chunk of it.
  Result<bool> HasAnyOf(const ObjectId& top, const std::unordered_set<ObjectId>& ids,
                        std::unordered_map<ObjectId, bool>& known);
  // Of each root, what is there now and must not be stored again.
  std::map<RootId, std::vector<std::string>> ToLeaveOut();
  // For `belay log`. Of a session nothing but that it went.
  void AddToTheLog(BatchWriter& writer, int64_t now);
  // Under `append`: nobody publishes meanwhile.
  Status StillTrue();
  static Error Changed();

  Store& store_;
  const PurgeRequest& request_;
  LogView log_;
  KnownRoots roots_;
  std::unique_ptr<PurgeSurvey> survey_;
  bool was_purged_ = false;
  PurgePlan plan_;
  std::unordered_set<std::string> sessions_;
  std::unordered_set<RecordId> dropped_;
  // What checkpoints are described as from now on; of operations, nothing.
  std::unordered_map<RecordId, std::string> retitled_;
};

}  // namespace belay
