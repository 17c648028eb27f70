#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/list_fold.h"
#include "cli/list_graph.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "commits/anchors.h"
#include "core/annotate.h"
#include "core/lineage.h"
#include "core/operations.h"
#include "core/roots.h"
#include "core/sessions.h"

namespace belay {

namespace {

struct Listing {
  std::vector<CheckpointRow> outline;
  std::vector<Operation> operations;
  History history;
  std::vector<ListRow> rows;
  uint64_t hidden = 0;  // taken back, and not among the rows
};

// Everything is counted, folded and drawn by the outline; only what is shown is read.
Result<Listing> Collect(CommandContext& ctx, OpenedRoot& root,
                        std::optional<uint64_t> limit) {
  const Args& args = ctx.args;
  std::optional<CheckpointKind> kind;
  if (auto named = args.value("--kind"))
    kind = *named == "auto"     ? CheckpointKind::kAuto
           : *named == "manual" ? CheckpointKind::kManual
                                : CheckpointKind::kSafety;
  auto session = args.value("--session");
  Listing out;
  BELAY_TRY(out.operations, ListOperations(*root.catalog, root.root.id));
  BELAY_TRY(out.outline, root.catalog->Outline(root.root.id));
  BELAY_TRY(out.history,
            LoadHistory(*root.catalog, root.root.id, out.outline, out.operations));
  Lineage lineage;
  if (session) {
    BELAY_TRY(lineage, Lineage::Of(*root.catalog, std::string(*session)));
  }
  std::vector<ListRow> rows;
  rows.reserve(out.outline.size());
  auto later = out.operations.rbegin();  // the newest that is not after the checkpoint
  for (size_t i = 0; i < out.outline.size(); ++i) {
    const CheckpointRow& c = out.outline[i];
    const uint64_t before = i + 1 == out.outline.size() ? 0 : out.outline[i + 1].seq;
    while (later != out.operations.rend() && later->seq > c.seq) ++later;
    uint64_t moved = 0;
    // With files outside it is not told how many were inside.
    for (; later != out.operations.rend() && later->seq > before; ++later)
      if (later->external.is_zero()) moved += later->paths;
    if ((kind && c.kind != *kind) ||
        (session && !lineage.Has(c.session, c.turn, c.seq)))
      continue;
    ListRow& row = rows.emplace_back();
    row.row = &c;
    row.number = i + 1;
    row.changed = c.changed;
    row.changed_dirs = c.changed_dirs;
    row.moved = moved;
    if (!out.operations.empty()) row.taken_back = out.history.TakenBackBy(c.seq);
  }
  if (!args.has("--tools")) {
    BELAY_TRY(rows, FoldTurns(*root.catalog, std::move(rows)));
  }
  // What was taken back is still there, and out of the way; JSON has it all, and the
  // graph folds it.
  if (!ctx.term.json() && !args.has("--all") && !args.has("--graph"))
    out.hidden =
        std::erase_if(rows, [](const ListRow& row) { return bool{row.taken_back}; });
  if (limit && rows.size() > *limit) rows.resize(static_cast<size_t>(*limit));
  BELAY_OK(CountOwnChanges(*root.catalog, out.outline, rows));
  out.rows = std::move(rows);
  return out;
}

// The checkpoints of the rows, some at a time: all of thousands at once took longer to
// find memory for than to read.
class Entries {
 public:
  Entries(Catalog& catalog, const std::vector<ListRow>& rows)
      : catalog_(catalog), rows_(rows) {}

  // Of row `i`, until the next call.
  Result<const CatalogEntry*> At(size_t i) {
    if (i >= first_ && i < first_ + loaded_.size()) return &loaded_[i - first_];
    constexpr size_t kAtOnce = 256;
    std::vector<uint64_t> seqs;
    for (size_t at = i; at < rows_.size() && seqs.size() < kAtOnce; ++at)
      seqs.push_back(rows_[at].row->seq);
    BELAY_TRY(loaded_, catalog_.Load(seqs));
    first_ = i;
    for (size_t at = 0; at < loaded_.size(); ++at) {
      const Checkpoint& c = loaded_[at].checkpoint;
      const CheckpointRow& row = *rows_[i + at].row;
      if (c.id != row.id || c.kind != row.kind || c.session != row.session)
        return Error(Errc::kCorrupt, "catalogue: a row disagrees with its record")
            .WithHint("run: belay repair");
    }
    return &loaded_[0];
  }

 private:
  Catalog& catalog_;
  const std::vector<ListRow>& rows_;
  std::vector<CatalogEntry> loaded_;
  size_t first_ = 0;
};

// The rows as a tree: each grows from the nearest one below it that is shown.
struct ListTree {
  std::vector<GraphNode> nodes;
  std::optional<RecordId> here;
};

ListTree TreeOf(const Listing& listing) {
  const std::vector<ListRow>& rows = listing.rows;
  const History& history = listing.history;
  // Of each point: the nearest that is shown, itself included. Parents come first.
  std::vector<size_t> nearest(history.points.size(), History::kNone);
  for (const ListRow& row : rows)
    if (size_t at = history.Find(row.row->seq); at != History::kNone) nearest[at] = at;
  for (size_t i = 0; i < nearest.size(); ++i)
    if (nearest[i] == History::kNone && history.parent[i] != History::kNone)
      nearest[i] = nearest[history.parent[i]];
  auto shown = [&](size_t point) -> std::optional<RecordId> {
    if (point == History::kNone || nearest[point] == History::kNone)
      return std::nullopt;
    return history.points[nearest[point]].id;
  };
  ListTree tree;
  tree.nodes.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    GraphNode& node = tree.nodes.emplace_back();
    node.id = rows[i].row->id;
    node.taken_back = bool{rows[i].taken_back};
    if (size_t at = history.Find(rows[i].row->seq); at != History::kNone)
      node.parent = shown(history.parent[at]);
    else if (i + 1 < rows.size())  // nothing ever moved: one line
      node.parent = rows[i + 1].row->id;
  }
  if (!history.points.empty())
    tree.here = shown(history.here);
  else if (!rows.empty())
    tree.here = rows[0].row->id;
  return tree;
}

// Blanks for line ends and tabs.
std::string InOneLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  return out;
}

// Of a turn: "3 files, +11", the checkpoints besides its first; what it asked for says
// more.
std::string TurnCounts(const ListRow& row) {
  std::string text;
  if (row.changed > 0) {
    const bool files = row.changed_dirs < row.changed;
    const uint64_t count = files ? row.changed - row.changed_dirs : row.changed;
    text = StrCat(files        ? CountText(count, "file")
                  : count == 1 ? std::string("1 directory")
                               : StrCat(std::to_string(count), " directories"),
                  ", ");
  }
  return StrCat(text, "+", std::to_string(row.folded - 1));
}

std::string Line(const ListRow& row, const CatalogEntry& entry, size_t digits,
                 std::string_view lanes, size_t columns) {
  const Checkpoint& c = entry.checkpoint;
  std::string number = StrCat(std::to_string(row.number), ".");
  if (number.size() < digits + 1) number.insert(0, digits + 1 - number.size(), ' ');
  std::string line =
      StrCat(lanes, lanes.empty() ? "" : " ", number, " ", c.id.text().substr(0, 7),
             "  ", LocalMinute(c.made_ms), "  ");
  std::string marks;
  if (entry.pinned) marks += " pinned";
  if (entry.health) marks += *entry.health == Health::kPass ? " good" : " bad";
  if (c.partial) marks += " partial";
  if (entry.lost > 0) marks += " incomplete";
  if (row.taken_back) marks += " taken back";
  const bool turn = row.folded > 1;
  std::string end =
      StrCat(turn ? " (" : "  (",
             turn ? TurnCounts(row) : ChangedBriefly(row.changed, row.changed_dirs),
             ")", marks);
  std::string title = CheckpointTitle(c);
  // What is left of a turn is not what was there before it.
  if (turn && !LooksLikeStart(c))
    title += StrCat(", within turn ", std::to_string(*c.turn));
  else if (turn && c.prompt && !c.name)
    title = StrCat("turn ", std::to_string(*c.turn), ": ", InOneLine(*c.prompt));
  const size_t used = ColumnsOf(line) + ColumnsOf(end);
  return line + Fit(EscapeText(title), columns > used + 3 ? columns - used : 3) + end;
}

// What was asked for says more on a wide terminal; a file and a pipe are not wide.
size_t WidthOf(const CommandContext& ctx) {
  return ctx.term.out_is_terminal() ? std::max(ctx.term.columns(), ctx.term.width())
                                    : ctx.term.columns();
}

// "the rollback to 'x'", of the operation that took something back.
std::string OperationText(const Listing& listing, const RecordId& id) {
  for (const Operation& o : listing.operations) {
    if (o.id != id) continue;
    if (o.kind != OperationKind::kRollback)
      return StrCat("the ", OperationName(o.kind), " at ", LocalMinute(o.made_ms));
    return StrCat("the rollback to '", EscapeText(o.label), "'");
  }
  return "a rollback";
}

// All of it before any is printed: it may have to be put together again.
struct ListText {
  std::string text;
  bool folds = false;  // what was taken back
};

Result<ListText> GraphText(CommandContext& ctx, OpenedRoot& root,
                           const Listing& listing, size_t digits) {
  ListText out;
  Entries entries(*root.catalog, listing.rows);
  const ListTree tree = TreeOf(listing);
  for (const GraphLine& line :
       DrawGraph(tree.nodes, tree.here, !ctx.args.has("--all"))) {
    std::string text = line.lanes;
    if (line.here) {
      text +=
          StrCat(" here, after ", OperationText(listing, listing.operations.back().id));
    } else if (line.folded > 0) {
      const ListRow& first = listing.rows[*line.node];
      const ListRow& last = listing.rows[*line.node + line.folded - 1];
      text += StrCat(" ", std::to_string(first.number));
      if (line.folded > 1) text += StrCat("-", std::to_string(last.number));
      text += StrCat(" (", CountText(line.folded, "checkpoint"), ") taken back by ",
                     OperationText(listing, *first.taken_back));
      out.folds = true;
    } else if (line.node) {
      BELAY_TRY(const CatalogEntry* entry, entries.At(*line.node));
      text = Line(listing.rows[*line.node], *entry, digits, line.lanes, WidthOf(ctx));
    }
    out.text += Fit(text, line.node && line.folded == 0 ? 200 : ctx.term.columns());
    out.text += '\n';
  }
  return out;
}

Result<ListText> PlainText(CommandContext& ctx, OpenedRoot& root,
                           const Listing& listing) {
  const std::vector<ListRow>& rows = listing.rows;
  size_t digits = 1;
  for (const ListRow& row : rows)
    digits = std::max(digits, std::to_string(row.number).size());
  if (ctx.args.has("--graph")) return GraphText(ctx, root, listing, digits);
  Entries entries(*root.catalog, rows);
  ListText out;
  for (size_t i = 0; i < rows.size(); ++i) {
    BELAY_TRY(const CatalogEntry* entry, entries.At(i));
    out.text += Line(rows[i], *entry, digits, "", WidthOf(ctx));
    out.text += '\n';
  }
  return out;
}

struct ListJson {
  JsonWriter json;
  uint64_t unreadable = 0;  // checkpoints of which nobody knows what they hold
};

Result<ListJson> JsonOf(CommandContext& ctx, OpenedRoot& root, const Listing& listing) {
  Entries entries(*root.catalog, listing.rows);
  const bool graph = ctx.args.has("--graph");
  ListJson out;
  JsonWriter& json = out.json;
  json.BeginObject();
  json.Key("root").PathValue(root.root.path);
  ListTree tree;
  if (graph) tree = TreeOf(listing);
  auto id = [](JsonWriter& to, std::string_view key,
               const std::optional<RecordId>& value) {
    to.Key(key);
    if (value)
      to.String(value->text());
    else
      to.Null();
  };
  if (graph) id(json, "here", tree.here);
  json.Key("checkpoints").BeginArray();
  StateFacts facts(root.store(), AnchoredIn(ctx.fs, root.path, GitPlacesOf(ctx.env)));
  for (size_t i = 0; i < listing.rows.size(); ++i) {
    const ListRow& row = listing.rows[i];
    BELAY_TRY(const CatalogEntry* entry, entries.At(i));
    const StateParts state = facts.Of(entry->checkpoint.state);
    out.unreadable += state.tree.is_zero() ? 1 : 0;
    WriteCheckpoint(
        *entry, row.number, root.root.path, state, json,
        [&](JsonWriter& more) {
          more.Key("folded").Uint(row.folded);
          if (graph) id(more, "parent", tree.nodes[i].parent);
        },
        row.taken_back);
  }
  json.EndArray().EndObject();
  return out;
}

// The listing and what is shown of it are several questions to the catalogue. Where a
// checkpoint is deleted in between, one of them does not find it: no damage, which is
// found every time.
template <typename Attempt>
auto UntilItHolds(const Attempt& attempt) {
  auto done = attempt();
  for (int left = 5; left > 0 && !done.ok() && done.error().code == Errc::kCorrupt &&
                     !BELAY_MUTANT("what-is-deleted-meanwhile-is-damage");
       --left)
    done = attempt();
  return done;
}

struct Listed {
  Listing listing;
  ListText text;
  ListJson json;  // instead of text, with --json
};

Result<Listed> List(CommandContext& ctx, OpenedRoot& root,
                    std::optional<uint64_t> limit) {
  Listed out;
  BELAY_TRY(out.listing, Collect(ctx, root, limit));
  if (ctx.term.json()) {
    BELAY_TRY(out.json, JsonOf(ctx, root, out.listing));
  } else {
    BELAY_TRY(out.text, PlainText(ctx, root, out.listing));
  }
  return out;
}

}  // namespace

ExitCode CmdList(CommandContext& ctx) {
  auto limit = LimitOf(ctx.args);
  if (!limit.ok()) return ctx.term.FailUsage(limit.error().what);
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  auto listed = UntilItHolds([&] { return List(ctx, *root, *limit); });
  if (!listed.ok()) return ctx.term.Fail(listed.error());
  const Listing& listing = listed->listing;
  const std::vector<ListRow>& rows = listing.rows;
  if (rows.empty() && listing.hidden == 0) {
    // Not a list that never had anything.
    auto damage = SeenDamage(root->store(), *root->catalog);
    if (!damage.ok()) return FailOnStore(ctx, damage.error());
    if (*damage && ctx.term.json()) return ctx.term.Fail(**damage);
    if (*damage) {  // which OpenRoot() has said
      ctx.term.Say("No checkpoint can be read. To put right what can be: belay repair");
      return ExitCode::kDamaged;
    }
    if (auto session = ctx.args.value("--session"))
      if (Status known = CheckSession(*root->catalog, root->root.id, *session);
          !known.ok())
        return ctx.term.Fail(known.error());
  }
  if (ctx.term.json()) {
    ctx.term.OutJson(listed->json.json);
    if (listed->json.unreadable > 0)
      ctx.term.Warn(StrCat("the store is damaged: of ",
                           CountText(listed->json.unreadable, "checkpoint"),
                           " nobody can read what it holds; run: belay verify"));
    return ExitCode::kOk;
  }
  if (rows.empty() && listing.hidden == 0) {
    const bool chosen = ctx.args.has("--kind") || ctx.args.has("--session");
    ctx.term.Say(chosen ? "No such checkpoint."
                        : "No checkpoint yet. Make one with: belay checkpoint");
    return ExitCode::kOk;
  }
  ctx.term.Out(listed->text.text);
  if (listed->text.folds)
    ctx.term.Say("See what was taken back: belay list --graph --all");
  if (listing.hidden > 0)
    ctx.term.Out(
        StrCat("   (", std::to_string(listing.hidden),
               " taken back by a rollback; see them with: belay list --all)\n"));
  if (rows.empty()) return ExitCode::kOk;
  if (std::ranges::any_of(rows, [](const ListRow& row) { return row.folded > 1; }))
    ctx.term.Say("+N: more checkpoints within that turn; see them: belay list --tools");
  const std::string first = std::to_string(rows.front().number);
  ctx.term.Say(StrCat("Look at one: belay show ", first,
                      "    Go back to it: belay rollback ", first));
  return ExitCode::kOk;
}

}  // namespace belay
