#include "cli/export_notes.h"

namespace belay {

ExitCode ExportNotes(CommandContext& ctx) {
  return ctx.term.NotYet("belay export --notes");
}

}  // namespace belay
