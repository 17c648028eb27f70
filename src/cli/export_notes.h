#pragma once

// `belay export --notes`: what people and hosts wrote on checkpoints (names, notes,
// pins, health, meta), as JSON or Markdown.

#include "cli/context.h"

namespace belay {

ExitCode ExportNotes(CommandContext& ctx);

}  // namespace belay
