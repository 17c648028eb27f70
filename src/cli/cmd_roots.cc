#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/annotate.h"
#include "core/roots.h"

namespace belay {

namespace {

struct RootRow {
  Root root;
  std::string_view state;  // "protected", "missing", "unreadable", "moved", "off"
  uint64_t checkpoints = 0;
  std::optional<CatalogEntry> last;
  ObjectId tree;
  std::vector<SkippedPath> skipped;
  GitRecord git;
  std::optional<RecordId> taken_back_by = {};
};

std::string_view StateName(RootPlace place) {
  switch (place) {
    case RootPlace::kThere:
      return "protected";
    case RootPlace::kLinked:
      return "moved";
    case RootPlace::kUnreadable:
      return "unreadable";
    case RootPlace::kGone:
      break;
  }
  return "missing";
}

Result<std::vector<RootRow>> Collect(CommandContext& ctx, Store& store, bool all,
                                     size_t& hidden) {
  // A store that lost a pack must not look like one that never had anything.
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto damage, SeenDamage(store, *catalog));
  if (damage) return std::move(*damage);
  BELAY_TRY(auto roots, catalog->Roots());
  std::vector<RootRow> rows;
  StateFacts facts(store);
  for (RootEntry& entry : roots) {
    if (entry.root.off && !all) {
      ++hidden;
      continue;
    }
    RootRow row{.root = entry.root,
                .state = "protected",
                .last = {},
                .tree = {},
                .skipped = {},
                .git = {}};
    auto path = AbsPath::Parse(entry.root.path);
    if (entry.root.off)
      row.state = "off";
    else if (!path.ok())
      row.state = "missing";
    else
      row.state = StateName(LookAtPlace(ctx.fs, *path));
    BELAY_TRY(row.checkpoints, catalog->Count(entry.root.id));
    BELAY_TRY(row.last, catalog->LastCheckpoint(entry.root.id));
    if (row.last && ctx.term.json()) {
      const StateParts state = facts.Of(row.last->checkpoint.state);
      row.tree = state.tree;
      row.skipped.assign(state.skipped.begin(), state.skipped.end());
      if (state.git != nullptr) row.git = *state.git;
      BELAY_TRY(row.taken_back_by,
                TakenBackBy(*catalog, entry.root.id, row.last->checkpoint.seq));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void WriteJson(const std::vector<RootRow>& rows, JsonWriter& json) {
  json.BeginObject().Key("roots").BeginArray();
  for (const RootRow& row : rows) {
    json.BeginObject();
    json.Key("root").PathValue(row.root.path);
    json.Key("id").String(row.root.id.text());
    json.Key("state").String(row.state);
    json.Key("protected").Bool(!row.root.off);
    json.Key("checkpoints").Uint(row.checkpoints);
    json.Key("files").Uint(row.last ? row.last->checkpoint.files : 0);
    json.Key("bytes").Uint(row.last ? row.last->checkpoint.bytes : 0);
    json.Key("last");
    if (row.last)
      WriteCheckpoint(*row.last, 1, row.root.path, {row.tree, row.skipped, &row.git},
                      json, {}, row.taken_back_by);
    else
      json.Null();
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

ExitCode CmdRoots(CommandContext& ctx) {
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  std::vector<RootRow> rows;
  size_t hidden = 0;
  if (opened.ok()) {
    auto found = Collect(ctx, *(*opened)->store, ctx.args.has("--all"), hidden);
    if (!found.ok()) return FailOnStore(ctx, found.error());
    rows = std::move(*found);
  } else if (opened.error().code != Errc::kNotFound) {
    return FailOnStore(ctx, opened.error());
  }
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(rows, json);
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  if (rows.empty()) ctx.term.Say("Nothing is protected yet. Start with: belay on");
  for (const RootRow& row : rows) {
    std::string state;
    if (row.state == "missing") state = "  (the directory is gone)";
    if (row.state == "unreadable") state = "  (the directory may not be read)";
    if (row.state == "moved") state = "  (a symlink is there now)";
    if (row.state == "off") state = "  (no longer protected)";
    ctx.term.Out(StrCat(EscapeForDisplay(row.root.path),
                        ctx.term.Paint(Style::kYellow, state), "\n"));
    if (!row.last) {
      ctx.term.Out("  no checkpoint yet\n");
      continue;
    }
    const Checkpoint& c = row.last->checkpoint;
    ctx.term.Out(StrCat("  ", CountText(row.checkpoints, "checkpoint"), ", the last ",
                        LocalMinute(c.made_ms), "; ", CountText(c.files, "file"), ", ",
                        SizeText(c.bytes), "\n"));
  }
  if (hidden > 0)
    ctx.term.Say(StrCat("And the history of ", std::to_string(hidden),
                        " no longer protected: belay roots --all"));
  return ExitCode::kOk;
}

}  // namespace belay
