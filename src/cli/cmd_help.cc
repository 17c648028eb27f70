#include "base/escape.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/text.h"

namespace belay {

ExitCode CmdHelp(CommandContext& ctx) {
  if (ctx.args.positional().empty()) {
    ctx.term.OutText("help", OverviewHelp());
    return ExitCode::kOk;
  }
  std::string_view name = ctx.args.positional()[0];
  const CommandSpec* command = FindCommand(name);
  if (command == nullptr) {
    std::string_view nearest = NearestCommand(name);
    return ctx.term.FailUsage(
        StrCat("unknown command '", EscapeForDisplay(name.substr(0, 100)), "'"),
        nearest.empty() ? "see belay --help" : StrCat("did you mean ", nearest, "?"));
  }
  ctx.term.OutText("help", CommandHelp(*command));
  return ExitCode::kOk;
}

namespace {

// Not synced: a build writes these, and a build can write them again.
Status WritePage(Fs& fs, const Fd& dir, std::string_view name, std::string_view text) {
  OpenMode mode{.access = OpenMode::Access::kWrite,
                .create = true,
                .truncate = true,
                .mode = 0644};
  BELAY_TRY(Fd file, fs.Open(dir, Name::Literal(name), mode));
  BELAY_OK(WriteFull(fs, file, 0, AsBytes(text)));
  return file.Close();
}

}  // namespace

ExitCode CmdMan(CommandContext& ctx) {
  auto path = ctx.env.Resolve(ctx.args.positional()[0]);
  if (!path.ok()) return ctx.term.Fail(path.error());
  auto dir = ctx.fs.OpenDir(*path);
  if (!dir.ok()) return ctx.term.Fail(dir.error());
  JsonWriter json;
  json.BeginObject().Key("pages").BeginArray();
  auto write = [&](const std::string& name, const std::string& text) {
    json.String(name);
    return WritePage(ctx.fs, *dir, name, text);
  };
  Status written = write("belay.1", OverviewManPage());
  for (const CommandGroup& group : CommandGroups()) {
    for (const CommandSpec& command : group.commands) {
      if (command.hidden || !written.ok()) continue;
      written = write(StrCat("belay-", command.name, ".1"), CommandManPage(command));
    }
  }
  if (!written.ok()) return ctx.term.Fail(written.error());
  json.EndArray().EndObject();
  if (ctx.term.json()) ctx.term.OutJson(json);
  return ExitCode::kOk;
}

}  // namespace belay
