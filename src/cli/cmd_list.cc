#include <algorithm>
#include <charconv>
#include <map>

#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/operations.h"

namespace belay {

namespace {

constexpr size_t kColumns = 80;

// One line of the list: a checkpoint, or a turn by its first one.
struct Row {
  CatalogEntry entry;
  uint64_t number = 0;
  uint64_t folded = 1;   // checkpoints of the turn
  uint64_t changed = 0;  // by all of them
  std::optional<RecordId> taken_back = {};
};

uint64_t Changed(const Checkpoint& c) { return c.added + c.modified + c.deleted; }

// Newest first, as they came, but with the automatic ones of one turn folded into the
// turn's first: that is the one to go back to.
std::vector<Row> Fold(std::vector<Row> rows) {
  std::map<std::pair<std::string, uint64_t>, size_t> turns;  // place in `out`
  std::vector<Row> out;
  for (size_t i = rows.size(); i-- > 0;) {  // oldest first
    Row& row = rows[i];
    const Checkpoint& c = row.entry.checkpoint;
    if (c.kind == CheckpointKind::kAuto && c.session && c.turn) {
      auto [at, is_new] = turns.try_emplace({*c.session, *c.turn}, out.size());
      if (!is_new) {
        ++out[at->second].folded;
        out[at->second].changed += row.changed;
        continue;
      }
    }
    out.push_back(std::move(row));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Result<std::vector<Row>> Collect(CommandContext& ctx, OpenedRoot& root,
                                 std::optional<uint64_t> limit, uint64_t& hidden) {
  const Args& args = ctx.args;
  std::optional<CheckpointKind> kind;
  if (auto named = args.value("--kind"))
    kind = *named == "auto"     ? CheckpointKind::kAuto
           : *named == "manual" ? CheckpointKind::kManual
                                : CheckpointKind::kSafety;
  auto session = args.value("--session");
  CheckpointFilter filter{.root = root.root.id};
  BELAY_TRY(auto operations, ListOperations(*root.catalog, root.root.id));
  // Numbers count every checkpoint: only a plain beginning of the list needs no more.
  if (limit && args.has("--tools") && !kind && !session && operations.empty())
    filter.limit = static_cast<size_t>(*limit);
  BELAY_TRY(auto entries, root.catalog->ListCheckpoints(filter));
  std::unordered_map<RecordId, RecordId> taken;
  if (!operations.empty()) taken = TakenBack(entries, operations);
  std::vector<Row> rows;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Checkpoint& c = entries[i].checkpoint;
    if ((kind && c.kind != *kind) || (session && c.session != *session)) continue;
    const uint64_t changed = Changed(c);
    auto left = taken.find(c.id);
    std::optional<RecordId> by;
    if (left != taken.end()) by = left->second;
    rows.push_back({.entry = std::move(entries[i]),
                    .number = i + 1,
                    .changed = changed,
                    .taken_back = by});
  }
  if (!args.has("--tools")) rows = Fold(std::move(rows));
  // What was taken back is still there, and out of the way; JSON has it all.
  if (!ctx.term.json() && !args.has("--all"))
    hidden = std::erase_if(rows, [](const Row& row) { return bool{row.taken_back}; });
  if (limit && rows.size() > *limit) rows.resize(static_cast<size_t>(*limit));
  return rows;
}

std::string Line(const Row& row, size_t digits, bool graph) {
  const Checkpoint& c = row.entry.checkpoint;
  std::string number = StrCat(std::to_string(row.number), ".");
  if (number.size() < digits + 1) number.insert(0, digits + 1 - number.size(), ' ');
  std::string line = StrCat(graph ? "* " : "", number, " ", c.id.text().substr(0, 7),
                            "  ", LocalMinute(c.made_ms), "  ");
  std::string marks;
  if (row.entry.pinned) marks += " pinned";
  if (row.entry.health) marks += *row.entry.health == Health::kPass ? " good" : " bad";
  if (c.partial) marks += " partial";
  if (row.taken_back) marks += " taken back";
  std::string end = StrCat(
      "  (", CountText(row.changed, "file"), " changed",
      row.folded > 1 ? StrCat(", ", std::to_string(row.folded), " checkpoints") : "",
      ")", marks);
  std::string title = CheckpointTitle(c);
  if (row.folded > 1 && c.prompt && !c.name)
    title = StrCat("turn ", std::to_string(*c.turn), ": ", *c.prompt);
  const size_t used = ColumnsOf(line) + ColumnsOf(end);
  return line + Fit(EscapeForDisplay(title), kColumns > used ? kColumns - used : 3) +
         end;
}

}  // namespace

ExitCode CmdList(CommandContext& ctx) {
  std::optional<uint64_t> limit;
  if (auto given = ctx.args.value("--number")) {
    uint64_t value = 0;
    auto [end, problem] =
        std::from_chars(given->data(), given->data() + given->size(), value);
    if (problem != std::errc() || end != given->data() + given->size() || value == 0)
      return ctx.term.FailUsage(
          StrCat("-n wants a number from 1 on, not '", EscapeForDisplay(*given), "'"));
    limit = value;
  }
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  uint64_t hidden = 0;
  auto rows = Collect(ctx, *root, limit, hidden);
  if (!rows.ok()) return ctx.term.Fail(rows.error());
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("root").PathValue(root->root.path);
    json.Key("checkpoints").BeginArray();
    for (const Row& row : *rows) {
      auto state = root->store().GetState(row.entry.checkpoint.state);
      WriteCheckpoint(
          row.entry, row.number, root->root.path, state.ok() ? state->tree : ObjectId(),
          {}, json, [&](JsonWriter& more) { more.Key("folded").Uint(row.folded); },
          row.taken_back);
    }
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  if (rows->empty() && hidden == 0) {
    const bool chosen = ctx.args.has("--kind") || ctx.args.has("--session");
    ctx.term.Say(chosen ? "No such checkpoint."
                        : "No checkpoint yet. Make one with: belay checkpoint");
    return ExitCode::kOk;
  }
  size_t digits = 1;
  for (const Row& row : *rows)
    digits = std::max(digits, std::to_string(row.number).size());
  for (const Row& row : *rows)
    ctx.term.Out(StrCat(Line(row, digits, ctx.args.has("--graph")), "\n"));
  if (hidden > 0)
    ctx.term.Out(
        StrCat("   (", std::to_string(hidden),
               " taken back by a rollback; see them with: belay list --all)\n"));
  if (rows->empty()) return ExitCode::kOk;
  const CommandSpec* rollback = FindCommand("rollback");
  const std::string first = std::to_string(rows->front().number);
  ctx.term.Say(rollback != nullptr && rollback->available()
                   ? StrCat("Look at one: belay show ", first,
                            "    Go back to it: belay rollback ", first)
                   : StrCat("Look at one: belay show ", first,
                            "    Its files: belay ls ", first));
  return ExitCode::kOk;
}

}  // namespace belay
