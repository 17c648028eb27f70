#include "core/partial.h"

#include <algorithm>

#include "base/mutant.h"

namespace belay {

namespace {

bool IsOfStart(const Checkpoint& c) {
  return c.session && !c.tool_name &&
         std::ranges::find(kStartTexts, c.description) != kStartTexts.end();
}

}  // namespace

Result<std::optional<PartialOnes>> FindPartial(Catalog& catalog, const RootId& root) {
  constexpr size_t kMostSafety = 100, kMost = 10'000;
  std::optional<PartialOnes> none;
  BELAY_TRY(const auto newest,
            catalog.ListCheckpoints({.root = root, .limit = kMostSafety}));
  const auto at = std::ranges::find_if(newest, [](const CatalogEntry& entry) {
    return entry.checkpoint.kind != CheckpointKind::kSafety;
  });
  if (at == newest.end() || BELAY_MUTANT("partial-checkpoints-are-whole")) return none;
  std::vector<CatalogEntry> all{*at};
  if (at->checkpoint.session) {
    BELAY_TRY(all,
              catalog.ListCheckpoints(
                  {.root = root, .session = at->checkpoint.session, .limit = kMost}));
  }
  PartialOnes out;
  for (const CatalogEntry& entry : all) {
    const Checkpoint& c = entry.checkpoint;
    const bool is_newest = c.id == at->checkpoint.id, is_start = IsOfStart(c);
    if (!c.partial || c.imported || (is_start && !is_newest)) continue;
    if (out.count++ > 0) continue;
    out.last = entry;
    out.is_newest = is_newest;
    out.is_start = is_start;
  }
  return out.count == 0 ? none : std::optional(std::move(out));
}

}  // namespace belay
