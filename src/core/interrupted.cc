#include "core/interrupted.h"

#include <cerrno>

namespace belay {

RelPath JournalPath(const RootId& root) {
  return RelPath(Name::Literal("journal")).Join(RelPath(Name::Literal(root.text())));
}

Result<bool> HasJournal(Store& store, const RootId& root) {
  auto file = store.fs().OpenBeneath(store.dir(), JournalPath(root),
                                     {.access = OpenMode::Access::kPath});
  if (file.ok()) return true;
  if (file.error().code == Errc::kNotFound) return false;
  if (file.error().sys == ELOOP) return true;  // a symlink: what it is, Load() says
  return std::move(file).error();
}

}  // namespace belay
