// After an interruption: what the store cannot give any more, and is there yet.

#include "base/mutant.h"
#include "restore/displaced.h"
#include "restore/mover.h"
#include "restore/paths_internal.h"
#include "store/batch_writer.h"

namespace belay {

Result<std::vector<Mover::Unreadable>> Mover::FindUnreadable() {
  std::vector<Unreadable> out;
  std::unordered_map<ObjectId, bool> readable;
  auto ask = [&](size_t index, const ObjectId& id) -> Status {
    if (id.is_zero()) return Ok();
    auto [known, is_new] = readable.emplace(id, true);
    if (is_new) {
      Status read = store_.ReadContent(id, [](ByteSpan) { return Ok(); });
      // Anything else passes, and tells nothing of what is stored.
      if (!read.ok() && !IsNoMore(read.error())) return read;
      known->second = read.ok();
    }
    if (known->second) return Ok();
    unreadable_.insert(id);
    out.push_back({index, id});
    return Ok();
  };
  for (size_t i = 0; i < journal_.changes.size(); ++i) {
    const DisplacedIds ids = DisplacedBy(journal_.changes[i]);
    BELAY_OK(ask(i, ids.content));
    BELAY_OK(ask(i, ids.xattrs));
  }
  return out;
}

// Whether what is at `path` has it, so that it is in the batch now.
Result<bool> Mover::PutIfItIs(const ObjectId& id, Looker& looker,
                              const std::string& path, BatchWriter& writer) {
  HashSink hash;
  BELAY_TRY(auto looked, looker.Look(path, hash));
  if (!looked || looked->special ||
      (looked->state.id != id && looked->state.xattrs != id))
    return false;
  BatchSink sink(writer);
  writer.StoreAnew(true);
  auto stored = looker.Look(path, sink);
  writer.StoreAnew(false);
  if (!stored.ok()) return std::move(stored).error();
  return writer.IsMine(id);
}

Result<std::vector<Mover::Unreadable>> Mover::StoreAgain(
    const std::vector<Unreadable>& unreadable, BatchWriter& writer, bool in_tree) {
  std::vector<Unreadable> lost;
  // What may not be looked into now is widened as for a move, which narrows it again.
  for (const Plan::Locked& locked : journal_.locked)
    if (in_tree || locked.path.empty())
      BELAY_OK(SetModeOf(locked.path, locked.mode | 0700));
  BELAY_OK(OpenStage(false));
  auto put = [&](const Unreadable& one) -> Result<bool> {
    if (writer.IsMine(one.id)) return true;  // another path had it, too
    auto [begin, end] = slots_.equal_range(one.index);
    for (auto at = begin; at != end; ++at) {
      Looker looker(fs_, stage_);
      BELAY_TRY(bool is, PutIfItIs(one.id, looker, at->second.bytes(), writer));
      if (is) return true;
    }
    if (!in_tree || BELAY_MUTANT("stored-again-from-the-stage-alone")) return false;
    return PutIfItIs(one.id, looker_, PathOf(one.index), writer);
  };
  for (const Unreadable& one : unreadable) {
    auto is = put(one);
    if (!is.ok())
      return Context(std::move(is).error(),
                     "the store cannot give back " + PathOf(one.index) +
                         " as it was, and it could not be stored again");
    if (!*is) lost.push_back(one);
  }
  // The same content may have been found at a later path.
  std::erase_if(lost, [&](const Unreadable& one) { return writer.IsMine(one.id); });
  return lost;
}

}  // namespace belay
