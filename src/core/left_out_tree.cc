#include "core/left_out_tree.h"

#include <vector>

#include "core/capture.h"
#include "git/repository.h"
#include "scan/explain.h"

namespace belay {

namespace {

// The directories from the root on that lead to `place` and have something called
// `.git`, the innermost first.
Result<std::vector<std::string>> WithDotGit(Fs& fs, const AbsPath& root,
                                            std::string below) {
  std::vector<std::string> out;
  auto top = fs.OpenDir(root);
  if (!top.ok()) return out;  // a root that is gone holds none
  for (;;) {
    auto entry = RelPath::Parse(below + "/.git");
    if (entry.ok() && fs.OpenBeneath(*top, *entry, OpenMode::Path()).ok())
      out.push_back(below);
    const size_t slash = below.rfind('/');
    if (slash == std::string::npos) return out;
    below.resize(slash);
  }
}

}  // namespace

Result<std::optional<LeftOutTree>> FindLeftOutTree(
    Store& store, std::span<const RootEntry> roots, const Root& root,
    const Settings& settings, const GitPlaces& git, const AbsPath& place) {
  std::optional<LeftOutTree> none;
  BELAY_TRY(AbsPath top, AbsPath::Parse(root.path));
  const auto below = place.Below(top);
  if (!below || below->empty()) return none;
  Fs& fs = store.fs();
  BELAY_TRY(std::vector<std::string> found, WithDotGit(fs, top, *below));
  if (found.empty()) return none;
  BELAY_TRY(ScanRequest request, ScanRequestFor(store, roots, root, settings, git));
  // Who works in a submodule asks at every call: an index is read where it matters.
  BELAY_TRY(auto explainer, Explainer::Open(fs, store.clock(), request,
                                            Explainer::ReadIndex::kWhenAsked));
  for (auto tree = found.rbegin(); tree != found.rend(); ++tree) {
    BELAY_TRY(RelPath path, RelPath::Parse(*tree));
    AbsPath dir = top.Join(path);
    BELAY_TRY(Explanation is, explainer->Explain(*tree, /*as_directory=*/true));
    if (is.covered) continue;
    BELAY_TRY(auto repository, OpenRepositoryAt(fs, dir, git.user));
    if (!repository || repository->work_tree != dir) continue;
    return std::optional(LeftOutTree{std::move(dir), std::move(is.rule)});
  }
  return none;
}

}  // namespace belay
