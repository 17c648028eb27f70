#include "cli/commands.h"
#include "cli/export_notes.h"

namespace belay {

ExitCode CmdExport(CommandContext& ctx) {
  if (ctx.args.has("--notes")) return ExportNotes(ctx);
  return NotInThisVersion(ctx);
}

}  // namespace belay
