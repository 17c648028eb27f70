#pragma once

// `belay export REF... -o FILE`: checkpoints as one file.

#include "cli/context.h"

namespace belay {

ExitCode ExportBundle(CommandContext& ctx);

}  // namespace belay
