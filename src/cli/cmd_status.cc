#include "base/escape.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"

namespace belay {

namespace {

void WriteJson(const RootStatus& status, JsonWriter& json) {
  json.BeginObject();
  json.Key("root").PathValue(status.root.bytes());
  json.Key("protected").Bool(status.is_protected);
  json.Key("last");
  if (status.last_json.empty()) {
    json.Null();
  } else {
    json.Raw(status.last_json);
  }
  json.Key("recovered");
  if (status.recovered) {
    json.String(*status.recovered);
  } else {
    json.Null();
  }
  json.Key("watching").Bool(status.watching);
  json.Key("failures").BeginArray();
  for (const RootStatus::Failure& failure : status.failures) {
    json.BeginObject();
    json.Key("at").String(failure.at);
    json.Key("what").String(failure.what);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

ExitCode CmdStatus(CommandContext& ctx) {
  auto status = FindRoot(ctx);
  if (!status.ok()) return FailOnStore(ctx, status.error());
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(*status, json);
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  std::string root = EscapeForDisplay(status->root.bytes());
  if (!status->is_protected) {
    ctx.term.Out(
        StrCat(ctx.term.Paint(Style::kYellow, "not protected"), ": ", root, "\n"));
    ctx.term.Say(status->hint.empty()
                     ? "Nothing here can be taken back yet. Start with: belay on"
                     : status->hint);
    return ExitCode::kOk;
  }
  ctx.term.Out(StrCat(ctx.term.Paint(Style::kGreen, "protected"), ": ", root, "\n"));
  ctx.term.Say(status->last_text.empty()
                   ? "No checkpoint yet."
                   : StrCat("Last checkpoint: ", status->last_text));
  if (status->recovered) ctx.term.Say(StrCat("Recovered: ", *status->recovered));
  for (const RootStatus::Failure& failure : status->failures)
    ctx.term.Say(StrCat("Failed at ", failure.at, ": ", failure.what));
  return ExitCode::kOk;
}

}  // namespace belay
