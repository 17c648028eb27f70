#include "base/escape.h"
#include "base/mutant.h"
#include "cli/anchoring.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "core/sessions.h"

namespace belay {

namespace {

void WriteSession(const SessionSummary& session, JsonWriter& json) {
  auto text = [&](std::string_view key, const std::optional<std::string>& value) {
    WriteTextOrNull(json, key, value);
  };
  json.BeginObject();
  json.Key("id").PathValue(session.id);
  text("agent", session.agent);
  text("parent", session.parent);
  json.Key("roots").BeginArray();
  for (const std::string& root : session.roots) json.PathValue(root);
  json.EndArray();
  json.Key("first_at").String(FormatUtcMillis(session.first_ms));
  json.Key("last_at").String(FormatUtcMillis(session.last_ms));
  json.Key("checkpoints").Uint(session.checkpoints);
  json.Key("pinned").Uint(session.pinned);
  json.Key("turns").Uint(session.turns);
  json.EndObject();
}

ExitCode List(CommandContext& ctx, OpenedRoot& root) {
  std::optional<RootId> only;
  if (!ctx.args.has("--all")) only = root.root.id;
  auto sessions = ListSessions(*root.catalog, only);
  if (!sessions.ok()) return FailOnStore(ctx, sessions.error());
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("root");
    if (only)
      json.PathValue(root.root.path);
    else
      json.Null();
    json.Key("sessions").BeginArray();
    for (const SessionSummary& session : *sessions) WriteSession(session, json);
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  for (const SessionSummary& session : *sessions) {
    std::string line =
        StrCat(EscapeText(session.id), "  ", LocalMinute(session.last_ms), "  ",
               CountText(session.checkpoints, "checkpoint"));
    if (session.pinned > 0)
      line += StrCat(" (", std::to_string(session.pinned), " pinned)");
    if (session.turns > 0) line += StrCat(", ", CountText(session.turns, "turn"));
    if (session.agent) line += StrCat("  ", EscapeText(*session.agent));
    if (!only)
      for (const std::string& path : session.roots)
        line += StrCat("  ", EscapeForDisplay(path));
    ctx.term.Out(line + "\n");
  }
  if (sessions->empty()) ctx.term.Out("no sessions yet\n");
  return ExitCode::kOk;
}

ExitCode Delete(CommandContext& ctx, OpenedRoot& root, const std::string& session) {
  auto plan = PlanSessionDeletion(*root.catalog, session);
  if (!plan.ok()) return FailOnStore(ctx, plan.error());
  if (plan->shared_by.empty() && !ctx.args.has("--yes") &&
      !BELAY_MUTANT("delete-session-without-asking")) {
    const std::string what = StrCat("session ", EscapeText(session), " with ",
                                    CountText(plan->checkpoints, "checkpoint"));
    if (!ctx.term.json())
      for (const SessionDeletion::OfRoot& here : plan->roots)
        ctx.term.Say(StrCat("  ", EscapeForDisplay(here.root.root.path), ": ",
                            CountText(here.checkpoints.size(), "checkpoint")));
    if (!ctx.term.CanAsk() || ctx.term.json())
      return ctx.term.Fail(
          Error(Errc::kRefused, StrCat("this deletes ", what,
                                       " for good, and nobody can be asked here"))
              .WithHint("give --yes if that is what you want"));
    if (!ctx.term.Confirm(StrCat("Delete ", what, "? This cannot be undone.")))
      return ctx.term.Fail(Error(Errc::kRefused, "nothing was deleted"));
  }
  auto gone = DeleteSession(root.store(), *root.catalog, *plan);
  if (!gone.ok()) return FailOnStore(ctx, gone.error());
  ctx.term.WorkIsDone();
  (void)DropAnchors(ctx, root.store(), *root.catalog);
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("session").PathValue(session);
    json.Key("deleted").Uint(*gone);
    json.Key("pinned").BeginArray();
    for (const CatalogEntry& entry : plan->pinned)
      json.String(entry.checkpoint.id.text());
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  ctx.term.Out(StrCat("deleted session ", EscapeText(session), ": ",
                      CountText(*gone, "checkpoint"), "\n"));
  for (const CatalogEntry& entry : plan->pinned)
    ctx.term.Out(StrCat("pinned, and kept: ", CheckpointLine(entry, 60), "\n"));
  ctx.term.Say(
      "The space comes back by itself. So that what was said and stored is in no file "
      "any more: belay gc --everything");
  return ExitCode::kOk;
}

}  // namespace

ExitCode CmdSessions(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  if (!words.empty() && words[0] != "delete")
    return ctx.term.FailUsage(
        StrCat("'", EscapeForDisplay(words[0]), "' is not something to do"),
        "belay sessions delete ID");
  const bool deletes = !words.empty();
  if (deletes && words.size() < 2) return ctx.term.FailUsage("delete needs ID");
  if (deletes ? ctx.args.has("--all") : ctx.args.has("--yes"))
    return ctx.term.FailUsage(deletes ? "a session is deleted in every directory"
                                      : "--yes goes with delete");
  auto root = OpenRoot(ctx, deletes ? NeedsRoot::kRecorded : NeedsRoot::kKnown);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  return deletes ? Delete(ctx, *root, std::string(words[1])) : List(ctx, *root);
}

}  // namespace belay
