#include "cli/commands.h"

namespace belay {

ExitCode CmdRepair(CommandContext& ctx) { return NotInThisVersion(ctx); }

}  // namespace belay
