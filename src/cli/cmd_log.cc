#include <algorithm>
#include <map>

#include "base/escape.h"
#include "cli/chat_view.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/annotate.h"
#include "core/chat.h"
#include "core/operations.h"
#include "core/path_history.h"
#include "core/state_view.h"

namespace belay {

namespace {

struct LogRow {
  Operation operation;
  std::string_view state;          // "", "undone", "next undo", "next redo"
  std::vector<std::string> paths;  // of those asked for
  // What moved no file: its name, and how many checkpoints it was about.
  std::string deed = {};
  uint64_t checkpoints = 0;
};

LogRow RowOf(const Deed& deed) {
  LogRow row;
  row.operation.id = deed.id;
  row.operation.seq = deed.seq;
  row.operation.made_ms = deed.made_ms;
  row.operation.target = deed.target;
  row.operation.label = deed.label;
  row.deed = deed.name;
  row.checkpoints = deed.count;
  return row;
}

std::string DeedTitle(const LogRow& row) {
  if (row.deed == "purge")
    return StrCat("purge of ", EscapeForDisplay(row.operation.label), " (",
                  // A session may have had prompts alone.
                  row.checkpoints == 0 && row.operation.label != "a session"
                      ? "no checkpoint lost anything"
                      : CountText(row.checkpoints, "checkpoint"),
                  ")");
  return StrCat(row.deed, " '", EscapeText(row.operation.label), "'",
                row.checkpoints > 1
                    ? StrCat(" and ", std::to_string(row.checkpoints - 1), " more")
                    : "");
}

std::string_view StateOf(const Operation& operation, const UndoStacks& stacks) {
  if (!stacks.undo.empty() && stacks.undo.back().id == operation.id) return "next undo";
  if (!stacks.redo.empty() && stacks.redo.back().id == operation.id) return "next redo";
  for (const Operation& o : stacks.redo)
    if (o.id == operation.id) return "undone";
  return "";
}

std::string Title(const Operation& operation) {
  const std::string label = operation.label.empty()
                                ? "a checkpoint that was purged"
                                : StrCat("'", EscapeText(operation.label), "'");
  if (operation.chat && operation.chat->alone) {
    // The session by its beginning, which `belay show` takes: what was done has room.
    const std::string what = ChatTitle(*operation.chat, /*brief=*/true);
    return operation.kind == OperationKind::kRollback
               ? what
               : StrCat(OperationName(operation.kind), " of ", what);
  }
  if (operation.kind == OperationKind::kRollback)
    return StrCat("rollback to ", label, operation.paths_only ? " (some paths)" : "");
  return StrCat(OperationName(operation.kind), " of rollback to ", label);
}

std::string_view Verb(Change change) {
  return change == Change::kAdded     ? "added"
         : change == Change::kDeleted ? "deleted"
                                      : "modified";
}

std::string AuthorText(const Author& author) {
  if (author.kind == Author::Kind::kOutside) return "outside";
  if (author.kind == Author::Kind::kRun) return "belay run";
  if (author.kind == Author::Kind::kUnknown) return "unknown (let go)";
  std::string text = author.agent ? *author.agent + ", " : std::string();
  text += StrCat("session ", author.session.value_or("?"));
  if (author.subagent) text += StrCat(", ", *author.subagent);
  if (author.turn) text += StrCat(", turn ", std::to_string(*author.turn));
  if (author.tool_name) text += StrCat(", ", *author.tool_name);
  return text;
}

// "outside", "belay run", "claude, session 12ab, turn 3, Bash", or several of them.
std::string AuthorText(const std::vector<Author>& authors) {
  if (authors.size() == 1) return AuthorText(authors[0]);
  std::string text = "shared:";
  for (const Author& author : authors)
    text += StrCat(&author == authors.data() ? " " : "; ", AuthorText(author));
  return text;
}

std::string_view KindName(Author::Kind kind) {
  return kind == Author::Kind::kOutside   ? "outside"
         : kind == Author::Kind::kRun     ? "run"
         : kind == Author::Kind::kUnknown ? "unknown"
                                          : "session";
}

void WriteAuthor(const Author& author, std::string_view kind, JsonWriter& json) {
  auto text = [&](std::string_view key, const std::optional<std::string>& value) {
    WriteTextOrNull(json, key, value);
  };
  json.Key("kind").String(kind);
  text("session", author.session);
  text("agent", author.agent);
  text("subagent", author.subagent);
  json.Key("turn");
  if (author.turn)
    json.Uint(*author.turn);
  else
    json.Null();
  text("tool", author.tool_name);
  text("tool_id", author.tool_use_id);
}

// Of several the kind is "shared", and "among" names them.
void WriteAuthors(const PathHistoryRow& row, std::string_view path, JsonWriter& json) {
  json.BeginObject();
  if (row.checkpoint == nullptr) {
    WriteAuthor({}, OperationName(row.operation->kind), json);
  } else if (const auto authors = AuthorsIn(row, path); authors.size() == 1) {
    WriteAuthor(authors[0], KindName(authors[0].kind), json);
  } else {
    WriteAuthor({}, "shared", json);
    json.Key("among").BeginArray();
    for (const Author& author : authors) {
      json.BeginObject();
      WriteAuthor(author, KindName(author.kind), json);
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
}

// One object per path and moment, newest first.
void WriteChanges(const PathHistory& history, JsonWriter& json) {
  json.BeginArray();
  for (const PathHistoryRow& row : history.rows)
    for (const PathHistoryRow::Changed& changed : row.paths) {
      const Checkpoint* c = row.checkpoint;
      json.BeginObject();
      json.Key("path").PathValue(changed.path);
      json.Key("change").String(Verb(changed.change));
      json.Key("at").String(
          FormatUtcMillis(c != nullptr ? c->made_ms : row.operation->made_ms));
      json.Key("seq").Uint(c != nullptr ? c->seq : row.operation->seq);
      json.Key("checkpoint");
      if (c != nullptr)
        json.String(c->id.text());
      else
        json.Null();
      json.Key("operation");
      if (c == nullptr)
        json.String(row.operation->id.text());
      else
        json.Null();
      json.Key("title").PathValue(c != nullptr ? CheckpointTitle(*c)
                                               : row.operation->label);
      json.Key("author");
      WriteAuthors(row, changed.path, json);
      json.EndObject();
    }
  json.EndArray();
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
  PathHistory history;
  std::vector<CatalogEntry> checkpoints;
  if (!asked.empty()) {
    auto listed = root->catalog->ListCheckpoints({.root = root->root.id});
    if (!listed.ok()) return ctx.term.Fail(listed.error());
    checkpoints = std::move(*listed);
    // A name that is there, or was when somebody looked last, is that name.
    auto exists = [&](const RelPath& path) {
      if (auto dir = ctx.fs.OpenDir(root->path);
          dir.ok() &&
          ctx.fs.OpenBeneath(*dir, path, {.access = OpenMode::Access::kPath}).ok())
        return true;
      if (checkpoints.empty()) return false;
      auto newest = root->store().GetState(checkpoints.front().checkpoint.state);
      if (!newest.ok()) return false;
      auto found = FindInTree(newest->tree, path, TreesOf(root->store()));
      return found.ok() && found->has_value();
    };
    auto made = HistoryOf(root->store(), TreesOf(root->store()), checkpoints,
                          *operations, asked, exists);
    if (!made.ok()) return ctx.term.Fail(made.error());
    history = std::move(*made);
    for (const RecordId& id : history.unreadable)
      ctx.term.Warn(StrCat(id.text().substr(0, 7),
                           " cannot be read; what it changed is not shown"));
  }
  std::vector<LogRow> rows;
  auto add = [&](const Operation& operation) -> LogRow& {
    rows.push_back({operation, StateOf(operation, stacks), {}});
    return rows.back();
  };
  if (asked.empty()) {
    for (size_t i = operations->size(); i-- > 0;) add((*operations)[i]);
  } else {
    for (const PathHistoryRow& changed : history.rows) {
      if (changed.operation == nullptr) continue;
      LogRow& row = add(*changed.operation);
      for (const PathHistoryRow::Changed& one : changed.paths)
        row.paths.push_back(one.path);
    }
  }
  if (asked.empty()) {
    auto deeds = ListDeeds(*root->catalog, root->root.id);
    if (!deeds.ok()) return ctx.term.Fail(deeds.error());
    for (const Deed& deed : *deeds) rows.push_back(RowOf(deed));
    std::stable_sort(rows.begin(), rows.end(), [](const LogRow& a, const LogRow& b) {
      return a.operation.seq > b.operation.seq;
    });
  }
  if (ctx.term.json()) {
    auto chats = ChatLog::Read(*root->catalog);
    if (!chats.ok()) return ctx.term.Fail(chats.error());
    JsonWriter json;
    json.BeginObject();
    json.Key("root").PathValue(root->root.path);
    json.Key("operations").BeginArray();
    for (const LogRow& row : rows) {
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
      json.Key("name").String(row.deed.empty() ? OperationName(o.kind) : row.deed);
      json.Key("at").String(FormatUtcMillis(o.made_ms));
      id("target", o.target);
      id("safety", o.safety);
      id("of", o.of);
      json.Key("label").PathValue(o.label);
      json.Key("paths").Uint(o.paths);
      json.Key("some_paths").Bool(o.paths_only);
      json.Key("chat");
      if (o.kind != OperationKind::kRollback && o.chat)
        WriteChatAgain(*o.chat, Chats(*chats, o.seq).After(o), json);
      else
        WriteChat(o.chat, false, json);
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
    json.EndArray();
    json.Key("changes");
    WriteChanges(history, json);
    json.EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  if (asked.empty() ? rows.empty() : history.rows.empty()) {
    ctx.term.Say(asked.empty()
                     ? "Nothing was done here yet."
                     : "No checkpoint and no operation shows a change of that.");
    return ExitCode::kOk;
  }
  auto show = [&](const RecordId& id, int64_t made_ms, const std::string& title,
                  const std::string& end) {
    std::string line = StrCat(id.text().substr(0, 7), "  ", LocalMinute(made_ms), "  ");
    const size_t used = ColumnsOf(line) + ColumnsOf(end);
    const size_t columns = ctx.term.columns();
    ctx.term.Out(
        StrCat(line, Fit(title, used + 3 < columns ? columns - used : 3), end, "\n"));
  };
  auto show_operation = [&](const Operation& o) {
    const std::string_view state = StateOf(o, stacks);
    show(o.id, o.made_ms, Title(o),
         StrCat(o.chat && o.chat->alone ? std::string()
                                        : StrCat("  (", CountText(o.paths, "path"),
                                                 o.chat ? ", conversation)" : ")"),
                state.empty() ? "" : "  ", state, o.recovered ? "  recovered" : ""));
  };
  for (const LogRow& row : rows) {
    if (!row.deed.empty())
      show(row.operation.id, row.operation.made_ms, DeedTitle(row), "");
    else if (asked.empty())
      show_operation(row.operation);
  }
  for (const PathHistoryRow& row : history.rows) {
    // One that shows the doings of several is told of each.
    std::map<std::string, std::vector<const PathHistoryRow::Changed*>> by;
    for (const PathHistoryRow::Changed& changed : row.paths)
      by[row.checkpoint == nullptr ? std::string()
                                   : AuthorText(AuthorsIn(row, changed.path))]
          .push_back(&changed);
    for (const auto& [authors, paths] : by) {
      if (row.operation != nullptr)
        show_operation(*row.operation);
      else
        show(row.checkpoint->id, row.checkpoint->made_ms,
             EscapeText(CheckpointTitle(*row.checkpoint)),
             StrCat("  by ", EscapeText(authors)));
      for (const PathHistoryRow::Changed* changed : paths)
        ctx.term.Out(StrCat("    ", Pad(Verb(changed->change), 8), "  ",
                            EscapeForDisplay(changed->path), "\n"));
    }
  }
  return ExitCode::kOk;
}

}  // namespace belay
