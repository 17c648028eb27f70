#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/operations.h"
#include "restore/change.h"

namespace belay {

namespace {

struct Row {
  Operation operation;
  std::string_view state;          // "", "undone", "next undo", "next redo"
  std::vector<std::string> paths;  // of those asked for
};

std::string_view StateOf(const Operation& operation, const UndoStacks& stacks) {
  if (!stacks.undo.empty() && stacks.undo.back().id == operation.id) return "next undo";
  if (!stacks.redo.empty() && stacks.redo.back().id == operation.id) return "next redo";
  for (const Operation& o : stacks.redo)
    if (o.id == operation.id) return "undone";
  return "";
}

std::string Title(const Operation& operation) {
  const std::string label = StrCat("'", EscapeForDisplay(operation.label), "'");
  if (operation.kind == OperationKind::kRollback)
    return StrCat("rollback to ", label, operation.paths_only ? " (some paths)" : "");
  return StrCat(OperationName(operation.kind), " of rollback to ", label);
}

// The changes of an operation below the paths asked for; all without any.
Result<std::vector<std::string>> PathsOf(Store& store, const Operation& operation,
                                         const std::vector<std::string>& asked) {
  BELAY_TRY(Bytes bytes, store.Get({ObjectType::kNode, operation.changes}));
  BELAY_TRY(Node node, DecodeNode(bytes));
  BELAY_TRY(auto changes, DecodeChanges(node));
  std::vector<std::string> out;
  for (const PathChange& change : changes)
    for (const std::string& path : asked)
      if (path.empty() || change.path == path ||
          (change.path.starts_with(path) && change.path[path.size()] == '/')) {
        out.push_back(change.path);
        break;
      }
  return out;
}

}  // namespace

ExitCode CmdLog(CommandContext& ctx) {
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return ctx.term.Fail(root.error());
  auto operations = ListOperations(*root->catalog, root->root.id);
  if (!operations.ok()) return ctx.term.Fail(operations.error());
  const UndoStacks stacks = StacksOf(*operations);
  std::vector<std::string> asked;
  for (std::string_view given : ctx.args.rest()) {
    auto below = FindBelow(ctx, root->path, given);
    if (!below.ok()) return ctx.term.Fail(below.error());
    if (!*below)
      return ctx.term.FailUsage(StrCat(EscapeForDisplay(given), " is not in ",
                                       EscapeForDisplay(root->root.path)));
    asked.push_back((*below)->path);
  }
  std::vector<Row> rows;
  for (size_t i = operations->size(); i-- > 0;) {
    Row row{(*operations)[i], StateOf((*operations)[i], stacks), {}};
    if (!asked.empty()) {
      auto paths = PathsOf(root->store(), row.operation, asked);
      if (!paths.ok()) return ctx.term.Fail(paths.error());
      if (paths->empty()) continue;
      row.paths = std::move(*paths);
    }
    rows.push_back(std::move(row));
  }
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("root").PathValue(root->root.path);
    json.Key("operations").BeginArray();
    for (const Row& row : rows) {
      const Operation& o = row.operation;
      auto id = [&](std::string_view key, const std::optional<RecordId>& value) {
        json.Key(key);
        if (value)
          json.String(value->text());
        else
          json.Null();
      };
      json.BeginObject();
      json.Key("id").String(o.id.text());
      json.Key("seq").Uint(o.seq);
      json.Key("name").String(OperationName(o.kind));
      json.Key("at").String(FormatUtcMillis(o.made_ms));
      id("target", o.target);
      id("safety", o.safety);
      id("of", o.of);
      json.Key("label").String(o.label);
      json.Key("paths").Uint(o.paths);
      json.Key("some_paths").Bool(o.paths_only);
      json.Key("recovered").Bool(o.recovered);
      json.Key("state");
      if (row.state.empty())
        json.Null();
      else
        json.String(row.state);
      json.Key("took_ms").Double(static_cast<double>(o.took_us) / 1000.0);
      json.Key("changed_paths").BeginArray();
      for (const std::string& path : row.paths) json.PathValue(path);
      json.EndArray();
      json.EndObject();
    }
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  if (rows.empty()) {
    ctx.term.Say(asked.empty() ? "Nothing was rolled back here yet."
                               : "No operation touched that.");
    return ExitCode::kOk;
  }
  for (const Row& row : rows) {
    const Operation& o = row.operation;
    std::string line =
        StrCat(o.id.text().substr(0, 7), "  ", LocalMinute(o.made_ms), "  ");
    const std::string end =
        StrCat("  (", CountText(o.paths, "path"), ")", row.state.empty() ? "" : "  ",
               row.state, o.recovered ? "  recovered" : "");
    const size_t used = ColumnsOf(line) + ColumnsOf(end);
    ctx.term.Out(StrCat(line, Fit(Title(o), used < 77 ? 80 - used : 3), end, "\n"));
    for (const std::string& path : row.paths)
      ctx.term.Out(StrCat("    ", EscapeForDisplay(path), "\n"));
  }
  return ExitCode::kOk;
}

}  // namespace belay
