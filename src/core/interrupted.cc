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
  if (file.error().sys == ENOTDIR)
    return Error(Errc::kCorrupt, "journal in " + store.path().bytes() +
                                     " is not the directory that it should be")
        .WithHint("it is moved aside by: belay repair");
  return std::move(file).error();
}

}  // namespace belay
