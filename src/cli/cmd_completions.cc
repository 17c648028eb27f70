#include "cli/commands.h"
#include "cli/help.h"

namespace belay {

ExitCode CmdCompletions(CommandContext& ctx) {
  ctx.term.OutText("script", CompletionScript(ctx.args.positional()[0]));
  return ExitCode::kOk;
}

}  // namespace belay
