#include "base/escape.h"
#include "cli/context.h"
#include "cli/text.h"

namespace belay {

// No version so far can register a root, so there is none to find, and the store is not
// opened for it.
Result<std::optional<RootStatus>> LookUpRoot(CommandContext&, const AbsPath&) {
  return std::optional<RootStatus>();
}

Result<RootStatus> FindRoot(CommandContext& ctx) {
  std::optional<std::string_view> named = ctx.args.value("--root");
  BELAY_TRY(AbsPath dir, ctx.env.Resolve(named ? *named : "."));
  auto real = ctx.fs.RealPath(dir);
  if (real.ok()) {
    dir = std::move(real).value();
    // A root is a directory; a file here would only fail later, with less to say.
    BELAY_TRY([[maybe_unused]] Fd opened, ctx.fs.OpenDir(dir));
  } else if (real.error().code != Errc::kNotFound) {
    return std::move(real).error();
  }
  BELAY_TRY(std::optional<RootStatus> found, LookUpRoot(ctx, dir));
  if (found) return std::move(*found);
  if (!real.ok()) {
    return Error(Errc::kNotFound, StrCat(named ? "no such directory: "
                                               : "the current directory was deleted: ",
                                         EscapeForDisplay(dir.bytes())));
  }
  return RootStatus{.root = std::move(dir)};
}

Result<Settings> LoadSettingsFor(CommandContext& ctx, const AbsPath& root) {
  BELAY_TRY(AbsPath file, ctx.env.UserSettingsFile());
  BELAY_TRY(Settings settings, LoadSettings(ctx.fs, file, root));
  for (const std::string& warning : settings.warnings) ctx.term.Warn(warning);
  return settings;
}

}  // namespace belay
