#include "cli/commands.h"
#include "cli/export_bundle.h"
#include "cli/export_git.h"
#include "cli/export_notes.h"

namespace belay {

ExitCode CmdExport(CommandContext& ctx) {
  if (ctx.args.has("--git")) return ExportGit(ctx);
  if (ctx.args.has("--notes")) return ExportNotes(ctx);
  return ExportBundle(ctx);
}

}  // namespace belay
