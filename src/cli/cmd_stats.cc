#include <cstdio>

#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "core/stats.h"

namespace belay {

namespace {

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100.0);
  return text;
}

std::string TimingText(const Timing& timing) {
  if (timing.samples == 0) return "none yet";
  if (!timing.p50_us)
    return StrCat("too few to say (", std::to_string(timing.samples), ")");
  std::string text = StrCat("p50 ", Milliseconds(*timing.p50_us));
  text += timing.p95_us
              ? StrCat(", p95 ", Milliseconds(*timing.p95_us), " (of ",
                       std::to_string(timing.samples), ")")
              : StrCat("; too few for a p95 (", std::to_string(timing.samples), ")");
  return text;
}

void WriteTiming(JsonWriter& json, std::string_view key, const Timing& timing) {
  auto number = [&](std::string_view name, const std::optional<uint64_t>& micros) {
    json.Key(name);
    if (micros)
      json.Double(static_cast<double>(*micros) / 1000.0);
    else
      json.Null();
  };
  json.Key(key).BeginObject();
  json.Key("samples").Uint(timing.samples);
  number("p50_ms", timing.p50_us);
  number("p95_ms", timing.p95_us);
  json.EndObject();
}

void Share(JsonWriter& json, std::string_view key, const std::optional<double>& share) {
  json.Key(key);
  if (share)
    json.Double(*share);
  else
    json.Null();
}

void WriteJson(JsonWriter& json, const Stats& s,
               const std::optional<std::string>& root) {
  json.BeginObject();
  json.Key("root");
  if (root)
    json.PathValue(*root);
  else
    json.Null();
  json.Key("roots").Uint(s.roots);
  json.Key("since");
  if (s.since_ms)
    json.String(FormatUtcMillis(*s.since_ms));
  else
    json.Null();
  json.Key("checkpoints").BeginObject();
  json.Key("auto").Uint(s.automatic);
  json.Key("manual").Uint(s.manual);
  json.Key("safety").Uint(s.safety);
  json.Key("failed").Uint(s.failed_checkpoints);
  json.EndObject();
  json.Key("operations").BeginObject();
  json.Key("rollback").Uint(s.rollbacks);
  json.Key("undo").Uint(s.undos);
  json.Key("redo").Uint(s.redos);
  json.Key("recovered").Uint(s.recovered);
  json.Key("failed").Uint(s.failed_rollbacks);
  json.EndObject();
  Share(json, "rollback_success_rate", s.SuccessRate());
  json.Key("sessions").BeginObject();
  json.Key("total").Uint(s.sessions);
  json.Key("with_rollback").Uint(s.with_rollback);
  json.Key("with_manual_checkpoint").Uint(s.with_manual);
  json.Key("with_either").Uint(s.with_either);
  Share(json, "share", s.SessionShare());
  json.EndObject();
  WriteTiming(json, "create", s.create);
  WriteTiming(json, "rollback", s.rollback);
  json.EndObject();
}

}  // namespace

ExitCode CmdStats(CommandContext& ctx) {
  const bool all = ctx.args.has("--all");
  std::vector<Root> wanted;
  std::unique_ptr<OpenedStore> opened;
  std::unique_ptr<Catalog> catalog;
  std::optional<std::string> shown;
  if (all) {
    auto store = OpenStore(ctx, Store::Mode::kRead);
    if (store.ok()) {
      opened = std::move(*store);
      auto made = Catalog::Open(*opened->store);
      if (!made.ok()) return ctx.term.Fail(made.error());
      catalog = std::move(*made);
      auto roots = catalog->Roots();
      if (!roots.ok()) return ctx.term.Fail(roots.error());
      for (const RootEntry& entry : *roots) wanted.push_back(entry.root);
    } else if (store.error().code != Errc::kNotFound) {
      return FailOnStore(ctx, store.error());
    }
  } else {
    auto root = OpenRoot(ctx, NeedsRoot::kKnown);
    if (!root.ok()) return FailOnStore(ctx, root.error());
    wanted.push_back(root->root);
    shown = root->root.path;
    opened = std::move(root->opened);
    catalog = std::move(root->catalog);
  }
  std::vector<RootFigures> figures;
  for (const Root& root : wanted) {
    RootFigures& one = figures.emplace_back();
    auto outline = catalog->Outline(root.id);
    if (!outline.ok()) return ctx.term.Fail(outline.error());
    one.checkpoints = std::move(*outline);
    auto operations = ListOperations(*catalog, root.id);
    if (!operations.ok()) return ctx.term.Fail(operations.error());
    one.operations = std::move(*operations);
    one.failures = ReadFailures(*opened->store, root.id);
  }
  const Stats s = StatsOf(figures);
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(json, s, shown);
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  auto line = [&](std::string_view label, std::string_view value) {
    ctx.term.Out(StrCat("  ", Pad(label, 22), value, "\n"));
  };
  ctx.term.Out(StrCat(shown ? EscapeForDisplay(*shown) : CountText(s.roots, "root"),
                      s.since_ms ? StrCat(", since ", LocalMinute(*s.since_ms)) : "",
                      "\n"));
  line("checkpoints",
       StrCat(std::to_string(s.automatic + s.manual + s.safety), " (",
              std::to_string(s.manual), " manual, ", std::to_string(s.automatic),
              " automatic, ", std::to_string(s.safety), " before rollbacks)"));
  line("making one", TimingText(s.create));
  if (s.failed_checkpoints > 0)
    line("that failed", std::to_string(s.failed_checkpoints));
  line("rollbacks", StrCat(std::to_string(s.rollbacks), ", ",
                           CountText(s.undos, "undo"), ", ", CountText(s.redos, "redo"),
                           s.recovered > 0 ? StrCat("; ", std::to_string(s.recovered),
                                                    " finished after an interruption")
                                           : ""));
  line("rolling back", TimingText(s.rollback));
  const uint64_t tried = s.rollbacks + s.undos + s.redos + s.failed_rollbacks;
  line("success", s.SuccessRate() ? StrCat(Percent(*s.SuccessRate()), " (",
                                           std::to_string(tried - s.failed_rollbacks),
                                           " of ", std::to_string(tried), ")")
                                  : "nothing was rolled back yet");
  line("sessions", s.SessionShare() ? StrCat(std::to_string(s.sessions), "; ",
                                             std::to_string(s.with_either), " (",
                                             Percent(*s.SessionShare()),
                                             ") with a rollback or a manual checkpoint")
                                    : "none yet");
  ctx.term.Say(
      "Counted from what the store still holds; failures of late only. Sent nowhere.");
  return ExitCode::kOk;
}

}  // namespace belay
