#include "core/interrupted.h"

namespace belay {

RelPath JournalPath(const RootId& root) {
  return RelPath(Name::Literal("journal")).Join(RelPath(Name::Literal(root.text())));
}

Result<bool> HasJournal(Store& store, const RootId& root) {
  auto file = store.fs().OpenBeneath(store.dir(), JournalPath(root),
                                     {.access = OpenMode::Access::kPath});
  if (file.ok()) return true;
  if (file.error().code == Errc::kNotFound) return false;
  return std::move(file).error();
}

}  // namespace belay
