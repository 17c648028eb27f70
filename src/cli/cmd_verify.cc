#include "cli/commands.h"

namespace belay {

ExitCode CmdVerify(CommandContext& ctx) { return NotInThisVersion(ctx); }

}  // namespace belay
