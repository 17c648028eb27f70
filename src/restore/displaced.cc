#include "restore/displaced.h"

#include <atomic>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "restore/both.h"
#include "restore/look.h"
#include "store/batch_writer.h"

namespace belay {

namespace {

// Its content, or its attributes, are in the way of what comes.
struct Displaced {
  const PathChange* change = nullptr;
  ObjectId id;
};

std::vector<Displaced> NotStoredNow(const Plan& plan, BatchWriter& writer) {
  std::vector<Displaced> out;
  std::unordered_set<ObjectId> seen;
  auto add = [&](const PathChange& change, const ObjectId& id) {
    if (!id.is_zero() && seen.insert(id).second && !writer.IsMine(id))
      out.push_back({&change, id});
  };
  for (const PathChange& change : plan.changes) {
    const DisplacedIds ids = DisplacedBy(change);
    add(change, ids.content);
    add(change, ids.xattrs);
  }
  return out;
}

}  // namespace

DisplacedIds DisplacedBy(const PathChange& change) {
  DisplacedIds out;
  if (!change.before) return out;
  const bool moves = !change.after || !SameContent(*change.before, *change.after);
  if (moves && change.before->kind == EntryKind::kFile) out.content = change.before->id;
  if (moves || change.before->xattrs != change.after->xattrs)
    out.xattrs = change.before->xattrs;
  return out;
}

bool IsNoMore(const Error& error) {
  return error.code == Errc::kCorrupt || error.code == Errc::kNotFound ||
         error.code == Errc::kPurged || IsUnreadable(error);
}

Result<std::vector<std::string>> SecureDisplaced(Store& store, const Fd& root,
                                                 const Plan& plan, Draft& draft,
                                                 const std::function<bool()>& stop) {
  std::vector<std::string> again;
  if (BELAY_MUTANT("displace-unread")) return again;
  const std::vector<Displaced> displaced = NotStoredNow(plan, draft.writer);
  std::vector<std::optional<Error>> trouble(displaced.size());
  std::atomic<bool> stopped{false};
  OnBothThreads(displaced.size(), [&](size_t thread, size_t i) {
    Status read = store.ReadContent(displaced[i].id, [&](ByteSpan) -> Status {
      if (thread == 0 && stop && stop()) stopped = true;
      return stopped ? Status(Error(Errc::kRefused, "stopped")) : Ok();
    });
    if (!read.ok()) trouble[i] = std::move(read).error();
    return !stopped;
  });
  if (stopped) return Error(Errc::kRefused, "stopped").WithHint("nothing was changed");
  Looker looker(store.fs(), root);
  for (size_t i = 0; i < displaced.size(); ++i) {
    if (!trouble[i]) continue;
    const PathChange& change = *displaced[i].change;
    draft.writer.StoreAnew(true);
    auto looked = looker.Look(change.path, draft.sink);
    draft.writer.StoreAnew(false);
    if (!looked.ok()) return std::move(looked).error();
    if (!*looked || (*looked)->special ||
        !SameState(StateOf((*looked)->state), *change.before))
      return Error(Errc::kConflict,
                   EscapeForDisplay(change.path) + " changes meanwhile");
    if (!draft.writer.IsMine(displaced[i].id)) return std::move(*trouble[i]);
    again.push_back(change.path);
  }
  return again;
}

}  // namespace belay
