// After an interruption: what was there before can be given back, or nobody says so.

#include <algorithm>

#include "base/mutant.h"
#include "restore/runner_internal.h"

namespace belay {

// What was purged since stays away.
Result<Purged> Runner::PurgedSinceSafety() {
  Purged purged;
  BELAY_TRY(auto catalog, Catalog::Open(store_));
  BELAY_TRY(purged.contents, PurgedSet::Load(*catalog));
  if (!journal_.operation.safety) return purged;
  auto safety =
      catalog->FindById(journal_.operation.root, journal_.operation.safety->text());
  if (safety.ok()) purged.seq = safety->checkpoint.seq;
  return purged;
}

Result<bool> Runner::StoreListsAgain(const Operation& recorded, BatchWriter& writer) {
  bool stored = false;
  auto list = [&](const ObjectId& id, std::vector<PathChange> changes) -> Status {
    if (id.is_zero() || store_.Get({ObjectType::kNode, id}).ok() ||
        BELAY_MUTANT("tidied-with-an-old-list"))
      return Ok();
    std::erase_if(changes, [](const PathChange& change) {
      return SameState(change.before, change.after);
    });
    writer.StoreAnew(true);
    // Another one, where others changed something: then it is of no use, and no harm.
    auto put = writer.PutObject(ObjectType::kNode, EncodeNode(EncodeChanges(changes)));
    writer.StoreAnew(false);
    stored = stored || put.ok();
    return put.ok() ? Ok() : Status(put.error());
  };
  BELAY_OK(list(recorded.changes, journal_.changes));
  BELAY_OK(list(recorded.external, ChangesIn(journal_.external)));
  return stored;
}

// The safety checkpoint was whole when it was made. Since then a disk may have failed,
// and what is still in the directory, or was displaced, is all that is left of it.
Status Runner::Secure(const Operation* recorded) {
  secured_ = {};
  if (BELAY_MUTANT("recovery-trusts-the-store")) return Ok();
  auto failed = [](Error error, const std::string& path) {
    return Context(std::move(error),
                   "the store cannot give back " + path +
                       " as it was, and it could not be stored again");
  };
  std::vector<std::pair<Mover*, std::string>> movers = {{&mover_, ""}};
  // What cannot be opened holds nothing of ours, or nothing is moved.
  if (OpenGit().ok())
    for (auto& part : git_)
      movers.emplace_back(part->mover.get(), part->move->whole ? "" : ".git/");
  if (OpenExternal().ok())
    for (auto& part : external_)
      movers.emplace_back(part->mover.get(), part->move->dir + "/");
  std::unique_ptr<BatchWriter> writer;
  Purged purged;
  for (auto& [mover, prefix] : movers) {
    BELAY_TRY(auto unreadable, mover->FindUnreadable());
    if (unreadable.empty()) continue;
    if (writer == nullptr) {
      BELAY_TRY(purged, PurgedSinceSafety());
      BELAY_TRY(writer, store_.Begin());
    }
    std::erase_if(unreadable, [&](const auto& one) { return purged.Lacks(one.id); });
    BELAY_TRY(auto lost, mover->StoreAgain(unreadable, *writer, recorded == nullptr));
    for (const Mover::Unreadable& one : unreadable) {
      const bool is_lost = std::ranges::find(lost, one) != lost.end();
      auto& paths = is_lost ? secured_.lost : secured_.again;
      const std::string path = prefix + ShownPath(mover->PathOf(one.index));
      if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    }
  }
  bool lists = false;
  if (recorded != nullptr) {
    if (writer == nullptr) {
      BELAY_TRY(writer, store_.Begin());
    }
    BELAY_TRY(lists, StoreListsAgain(*recorded, *writer));
  }
  if (secured_.again.empty() && !lists) return Ok();
  auto published = writer->Commit();
  if (published.ok()) return Ok();
  return failed(std::move(published).error(),
                secured_.again.empty() ? "what was done" : secured_.again.front());
}

}  // namespace belay
