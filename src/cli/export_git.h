#pragma once

// `belay export --git NAME REF`: a checkpoint as a git commit.

#include "cli/context.h"

namespace belay {

ExitCode ExportGit(CommandContext& ctx);

}  // namespace belay
