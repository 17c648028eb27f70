#pragma once

// A git work tree inside a root that the root's rules leave out: one that an agent made
// for itself (.claude/worktrees/x), or a clone in an ignored directory. What is changed
// there is in no checkpoint of the root, although somebody at work in it stands in a
// protected directory.

#include <optional>
#include <span>
#include <string>

#include "base/path.h"
#include "core/settings.h"
#include "scan/work_trees.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

struct LeftOutTree {
  AbsPath dir;
  std::string rule;  // "source:line:pattern" that leaves it out, raw; empty: none does
};

// The outermost one of `root` that holds `place`, a real path. Only a directory with a
// `.git` of its own that git would follow is one: who stands in node_modules stands in
// the root. Nothing is looked at where `place` is the root itself, and without such a
// `.git` on the way nothing but names.
Result<std::optional<LeftOutTree>> FindLeftOutTree(
    Store& store, std::span<const RootEntry> roots, const Root& root,
    const Settings& settings, const GitPlaces& git, const AbsPath& place);

}  // namespace belay
