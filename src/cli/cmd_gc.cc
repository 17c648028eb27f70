#include "cli/commands.h"

namespace belay {

ExitCode CmdGc(CommandContext& ctx) { return NotInThisVersion(ctx); }

}  // namespace belay
