#include "cli/commands.h"

namespace belay {

ExitCode CmdDu(CommandContext& ctx) { return NotInThisVersion(ctx); }

}  // namespace belay
