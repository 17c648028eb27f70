#pragma once

// Checkpoints as refs of the user's repository (`git.refs`), as the commands have it.

#include "cli/context.h"
#include "core/git_record.h"
#include "core/settings.h"
#include "store/catalog.h"

namespace belay {

// Called when a checkpoint was made and everything is said: starts `belay __anchor` for
// the root where `git.refs` is on, and does not wait for it.
void StartAnchoring(const Settings& settings, const Root& root);

// Called when checkpoints or content went: their anchors go too, and that is said.
// False when some could not be taken away, which is said as well.
bool DropAnchors(CommandContext& ctx, Store& store, Catalog& catalog,
                 const std::vector<std::string>& also = {});

}  // namespace belay
