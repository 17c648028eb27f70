#include "core/purged.h"

#include <algorithm>

#include "base/mutant.h"

namespace belay {

bool IsAtOrBelow(std::string_view path, std::string_view top) {
  return path == top ||
         (path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/');
}

Result<PurgedSet> PurgedSet::Load(Catalog& catalog) {
  PurgedSet set;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kPurge}));
  for (const LogRecord& record : records) {
    if (!WasErased(record)) continue;  // lost, which is another matter
    for (const ObjectKey& key : PurgedBy(record)) {
      uint64_t& seq = set.seqs_[key.id];
      seq = std::max(seq, record.seq);
    }
  }
  return set;
}

bool PurgedSet::Has(const ObjectId& content, uint64_t seq) const {
  auto found = seqs_.find(content);
  return found != seqs_.end() && found->second > seq &&
         !BELAY_MUTANT("bring-back-what-was-purged");
}

bool Purged::LeavesAlone(std::string_view path) const {
  return std::ranges::any_of(
      paths, [&](const std::string& top) { return IsAtOrBelow(path, top); });
}

Result<Purged> PurgedSince(Store& store, const Heads& heads, const Root& root,
                           uint64_t seq) {
  Purged purged;
  purged.seq = seq;
  purged.paths = root.purged;
  for (const RootEntry& entry : heads.roots())
    if (entry.root.path == root.path) purged.paths = entry.root.purged;
  if (heads.last_purge() <= seq) return purged;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(purged.contents, PurgedSet::Load(*catalog));
  return purged;
}

}  // namespace belay
