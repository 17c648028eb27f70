#pragma once

// `belay import --git REV`: a git commit as a checkpoint.

#include "cli/context.h"

namespace belay {

ExitCode ImportGit(CommandContext& ctx);

}  // namespace belay
