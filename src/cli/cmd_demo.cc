#include "cli/commands.h"

namespace belay {

ExitCode CmdDemo(CommandContext& ctx) { return NotInThisVersion(ctx); }

}  // namespace belay
