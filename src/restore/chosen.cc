#include "restore/chosen.h"

#include <algorithm>

#include "base/escape.h"
#include "core/state_view.h"

namespace belay {

void ResolveSelection(Store& store, Looker& looker, const ObjectId& target,
                      Selection& selection) {
  selection.Resolve([&](const RelPath& path) {
    auto there = looker.Stat(path.bytes());
    if (there.ok() && *there) return true;
    auto then = FindInTree(target, path, TreesOf(store));
    return then.ok() && *then;
  });
}

Status CheckSelection(Store& store, Looker& looker, const ObjectId& target,
                      Selection& selection) {
  for (const std::string& named : selection.Unused()) {
    if (!Selection::IsGlob(named)) {
      auto there = looker.Stat(named);
      auto path = RelPath::Parse(named);
      if (there.ok() && *there) continue;  // as it was
      if (path.ok()) {
        auto then = FindInTree(target, *path, TreesOf(store));
        if (then.ok() && *then) continue;
      }
    } else {
      // It may match what is the same in both; that is in the target.
      Status walked =
          WalkTree(target, "", TreesOf(store),
                   [&](const std::string& path, const TreeEntry&) -> Status {
                     if (selection.Has(path)) return Error(Errc::kExists, "found");
                     return Ok();
                   });
      const auto unused = selection.Unused();
      if (std::find(unused.begin(), unused.end(), named) == unused.end()) continue;
      if (!walked.ok() && walked.error().code != Errc::kExists) continue;
    }
    return Error(Errc::kInvalid, "neither the checkpoint nor the directory has " +
                                     EscapeForDisplay(named));
  }
  return Ok();
}

}  // namespace belay
