#include "restore/chosen.h"

#include <algorithm>

#include "base/escape.h"

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

Result<std::vector<NotHeld>> CheckSelection(Store& store, Looker& looker,
                                            const StateView& target,
                                            Selection& selection) {
  std::vector<NotHeld> out;
  for (const std::string& named : selection.Unused()) {
    if (named.empty()) continue;  // the root
    if (auto path = RelPath::Parse(named); path.ok()) {
      auto then = FindInTree(target.state.tree, *path, TreesOf(store));
      if (then.ok() && *then) continue;  // as it was
      auto there = looker.Stat(named);
      if (there.ok() ? there->has_value() : there.error().code == Errc::kRefused) {
        const bool is_dir = there.ok() && (*there)->type == FileType::kDirectory;
        out.push_back({.path = named, .is_dir = is_dir});
        continue;
      }
      const std::vector<SkippedPath> skipped = target.Skipped();
      auto left = std::ranges::find(skipped, named, &SkippedPath::path);
      if (left != skipped.end()) {
        out.push_back({.path = named, .left_out = left->why});
        continue;
      }
    }
    if (Selection::IsGlob(named)) {
      // It may match what is the same in both; that is in the target.
      Status walked =
          WalkTree(target.state.tree, "", TreesOf(store),
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
  return out;
}

}  // namespace belay
