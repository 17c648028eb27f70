#include <sys/resource.h>
#include <unistd.h>

#include "base/escape.h"
#include "cli/anchoring.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/retention.h"
#include "core/settings.h"
#include "core/space.h"

namespace belay {

namespace {

void WriteJson(const PruneReport& report, const RetentionLimits& limits, bool dry_run,
               uint64_t freed, JsonWriter& json) {
  json.BeginObject();
  json.Key("dry_run").Bool(dry_run);
  json.Key("checkpoints").Uint(report.checkpoints);
  json.Key("operations").Uint(report.operations);
  json.Key("transcripts").Uint(report.transcripts.size());
  json.Key("freed").Uint(freed);
  json.Key("roots").BeginArray();
  for (const PrunedRoot& root : report.roots) {
    json.BeginObject();
    json.Key("root").PathValue(root.root.root.path);
    json.Key("checkpoints").BeginArray();
    for (const Doomed& doomed : root.plan.checkpoints) {
      const Checkpoint& c = doomed.entry.checkpoint;
      json.BeginObject();
      json.Key("id").String(c.id.text());
      json.Key("created_at").String(FormatUtcMillis(c.made_ms));
      json.Key("description").PathValue(c.description);
      json.Key("why").String(WhyPrunedText(doomed.why, limits));
      json.EndObject();
    }
    json.EndArray();
    json.Key("operations").BeginArray();
    for (const Operation& operation : root.plan.released)
      json.String(operation.id.text());
    json.EndArray();
    json.Key("notes").BeginArray();
    for (const std::string& note : root.notes) json.String(note);
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
}

void Show(Terminal& term, const PruneReport& report, const RetentionLimits& limits,
          bool dry_run) {
  for (const PrunedRoot& root : report.roots) {
    const std::string name = EscapeForDisplay(root.root.root.path);
    for (const std::string& note : root.notes)
      term.Say(StrCat(name, ": ", EscapeText(note)));
    if (root.plan.empty()) continue;
    term.Out(StrCat(name, ": ", CountText(root.plan.checkpoints.size(), "checkpoint"),
                    dry_run ? " would go\n" : " let go\n"));
    for (const Doomed& doomed : root.plan.checkpoints) {
      const Checkpoint& c = doomed.entry.checkpoint;
      term.Say(StrCat("  ", c.id.text().substr(0, 7), "  ", LocalMinute(c.made_ms),
                      "  ", EscapeText(c.description), "  (",
                      WhyPrunedText(doomed.why, limits), ")"));
    }
    if (!root.plan.released.empty())
      term.Out(StrCat("  ", CountText(root.plan.released.size(), "operation"),
                      dry_run ? " could" : " can", " no longer be undone (more than ",
                      std::to_string(limits.undo), " since)\n"));
  }
}

void ShowTranscripts(Terminal& term, const PruneReport& report, bool dry_run) {
  if (report.transcripts.empty()) return;
  term.Out(StrCat(report.transcripts.size() == 1
                      ? std::string("a copy")
                      : StrCat(std::to_string(report.transcripts.size()), " copies"),
                  " of a conversation whose session has no checkpoint any more",
                  dry_run ? " would go\n" : " let go\n"));
}

// What is due anyway, beside everybody else and in nobody's way.
ExitCode InBackground(CommandContext& ctx) {
  setpriority(PRIO_PROCESS, 0, 15);
  auto opened = OpenStore(ctx, Store::Mode::kWriteExisting);
  if (!opened.ok()) return ExitCode::kProblem;
  Store& store = *(*opened)->store;
  auto file = ctx.env.UserSettingsFile();
  if (!file.ok()) return ExitCode::kProblem;
  auto settings = LoadSettings(ctx.fs, *file, std::nullopt);
  auto catalog = Catalog::Open(store);
  if (!settings.ok() || !catalog.ok()) return ExitCode::kProblem;
  (void)!chdir("/");  // in nobody's way who wants to unmount
  auto pruned = Prune(store, **catalog, RetentionLimits::Of(*settings), false);
  if (!pruned.ok()) return ExitCode::kProblem;
  (void)DropAnchors(ctx, store, **catalog);
  auto space = Space::Of(store, *settings, /*exact=*/true);
  if (!space.ok()) return ExitCode::kProblem;
  if (space->IsTight())
    (void)MakeRoom(store, *settings, 0, 0);
  else
    (void)CollectWithinCap(store, *settings, {});
  (void)(*catalog)->CatchUp();
  return ExitCode::kOk;
}

}  // namespace

ExitCode CmdPrune(CommandContext& ctx) {
  if (ctx.args.has("--background")) return InBackground(ctx);
  const bool dry_run = ctx.args.has("--dry-run");
  auto opened =
      OpenStore(ctx, dry_run ? Store::Mode::kRead : Store::Mode::kWriteExisting);
  PruneReport report;
  RetentionLimits limits;
  uint64_t freed = 0;
  ExitCode code = ExitCode::kOk;
  if (opened.ok()) {
    Store& store = *(*opened)->store;
    auto file = ctx.env.UserSettingsFile();
    if (!file.ok()) return ctx.term.Fail(file.error());
    auto settings = LoadSettings(ctx.fs, *file, std::nullopt);
    if (!settings.ok()) return ctx.term.Fail(settings.error());
    limits = RetentionLimits::Of(*settings);
    auto catalog = Catalog::Open(store);
    if (!catalog.ok()) return FailOnStore(ctx, catalog.error());
    auto pruned = Prune(store, **catalog, limits, dry_run);
    if (!pruned.ok()) return FailOnStore(ctx, pruned.error());
    report = std::move(*pruned);
    if (!dry_run) {
      ctx.term.WorkIsDone();
      (void)DropAnchors(ctx, store, **catalog);
      auto collected = CollectWithinCap(store, *settings, {});
      // What went is gone either way; its room comes back when it can.
      if (!collected.ok() && collected.error().code == Errc::kCorrupt)
        code = ExitCode::kDamaged;
      if (!collected.ok())
        ctx.term.Warn(StrCat("the room was not given back: ", collected.error().what,
                             "; try belay gc"));
      else if (collected->bytes_before > collected->bytes_after)
        freed = collected->bytes_before - collected->bytes_after;
      if (collected.ok() && collected->generation_changed) (void)(*catalog)->CatchUp();
    }
  } else if (opened.error().code != Errc::kNotFound) {
    return FailOnStore(ctx, opened.error());
  }
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(report, limits, dry_run, freed, json);
    ctx.term.OutJson(json);
    return code;
  }
  Show(ctx.term, report, limits, dry_run);
  ShowTranscripts(ctx.term, report, dry_run);
  if (!opened.ok())
    ctx.term.Out("nothing stored yet\n");
  else if (report.checkpoints == 0 && report.operations == 0 &&
           report.transcripts.empty())
    ctx.term.Out("nothing to let go\n");
  else if (dry_run)
    ctx.term.Say("To do it: belay prune");
  else if (freed > 0)
    ctx.term.Say(StrCat("gave back ", SizeText(freed)));
  return code;
}

}  // namespace belay
