#include "core/operations.h"

#include <algorithm>
#include <unordered_set>

namespace belay {

namespace {

constexpr uint64_t kName = 1, kTarget = 2, kChanges = 3, kSafety = 4, kOf = 5,
                   kFlags = 6, kPaths = 7, kLabel = 8, kTookUs = 9, kGitBefore = 13,
                   kGitAfter = 14, kExternal = 15, kChat = 16, kSession = 17;
constexpr uint64_t kChatAgent = 1, kChatSession = 2, kChatForked = 3, kChatTurn = 4,
                   kChatMessage = 5, kChatIndex = 6, kChatTaken = 7, kChatKept = 8,
                   kChatInherited = 9, kChatPrompt = 10, kChatPath = 11, kChatCwd = 12,
                   kChatFlags = 13, kChatFirst = 14, kChatLast = 15;
constexpr uint64_t kChatHosted = 1, kChatAlone = 2, kChatInside = 4;
constexpr uint64_t kPathsOnly = 1, kOutOfOrder = 2, kRecovered = 4, kKeepsTimes = 8;

Error BadOperation(std::string_view what) {
  return {Errc::kCorrupt, "operation record: " + std::string(what)};
}

std::optional<RecordId> IdAt(const Fields& fields, uint64_t tag) {
  auto values = fields.All(tag);
  if (values.size() != 1 || values[0].size() != 16) return std::nullopt;
  return RecordId(Id128::FromSpan(values[0]));
}

Fields EncodeChat(const ChatRecord& chat) {
  Fields f;
  auto text = [&](uint64_t tag, const std::string& value) {
    if (!value.empty()) f.Add(tag, value);
  };
  auto number = [&](uint64_t tag, const std::optional<uint64_t>& value) {
    if (value) f.AddNumber(tag, *value);
  };
  f.Add(kChatAgent, chat.agent);
  f.Add(kChatSession, chat.session);
  text(kChatForked, chat.forked);
  number(kChatTurn, chat.turn);
  text(kChatMessage, chat.message.value_or(""));
  number(kChatIndex, chat.message_index);
  number(kChatTaken, chat.taken);
  number(kChatKept, chat.kept);
  if (chat.inherited > 0) f.AddNumber(kChatInherited, chat.inherited);
  text(kChatPrompt, chat.prompt);
  text(kChatPath, chat.path);
  text(kChatCwd, chat.cwd);
  const uint64_t flags = (chat.hosted ? kChatHosted : 0) |
                         (chat.alone ? kChatAlone : 0) |
                         (chat.inside ? kChatInside : 0);
  if (flags != 0) f.AddNumber(kChatFlags, flags);
  if (chat.summary) {
    f.AddNumber(kChatFirst, chat.summary->first);
    f.AddNumber(kChatLast, chat.summary->last);
  }
  return f;
}

std::optional<ChatRecord> ChatAt(const Fields& fields) {
  auto values = fields.All(kChat);
  if (values.size() != 1) return std::nullopt;
  ByteReader in(values[0]);
  auto f = Fields::Decode(in);
  if (!f.ok() || !f->Text(kChatSession)) return std::nullopt;
  const uint64_t flags = f->Number(kChatFlags).value_or(0);
  std::optional<ChatRecord::Summary> summary;
  if (const auto first = f->Number(kChatFirst))
    summary = {.first = *first, .last = f->Number(kChatLast).value_or(*first)};
  return ChatRecord{.agent = f->Text(kChatAgent).value_or(""),
                    .session = *f->Text(kChatSession),
                    .forked = f->Text(kChatForked).value_or(""),
                    .hosted = (flags & kChatHosted) != 0,
                    .turn = f->Number(kChatTurn),
                    .inside = (flags & kChatInside) != 0,
                    .message = f->Text(kChatMessage),
                    .message_index = f->Number(kChatIndex),
                    .taken = f->Number(kChatTaken),
                    .kept = f->Number(kChatKept),
                    .inherited = f->Number(kChatInherited).value_or(0),
                    .prompt = f->Text(kChatPrompt).value_or(""),
                    .path = f->Text(kChatPath).value_or(""),
                    .cwd = f->Text(kChatCwd).value_or(""),
                    .alone = (flags & kChatAlone) != 0,
                    .summary = summary};
}

}  // namespace

std::string_view OperationName(OperationKind kind) {
  switch (kind) {
    case OperationKind::kRollback:
      return "rollback";
    case OperationKind::kUndo:
      return "undo";
    case OperationKind::kRedo:
      return "redo";
  }
  return "?";
}

LogRecord ToRecord(const Operation& operation) {
  LogRecord record;
  record.kind = RecordKind::kOperation;
  record.id = operation.id;
  record.root = operation.root;
  record.made_ms = operation.made_ms;
  record.refs.push_back({ObjectType::kNode, operation.changes});
  Fields& f = record.fields;
  f.Add(kName, OperationName(operation.kind));
  if (operation.target) f.Add(kTarget, operation.target->span());
  f.Add(kChanges, operation.changes.span());
  if (operation.safety) f.Add(kSafety, operation.safety->span());
  if (operation.of) f.Add(kOf, operation.of->span());
  const uint64_t flags = (operation.paths_only ? kPathsOnly : 0) |
                         (operation.out_of_order ? kOutOfOrder : 0) |
                         (operation.recovered ? kRecovered : 0) |
                         (operation.keeps_times ? kKeepsTimes : 0);
  if (flags != 0) f.AddNumber(kFlags, flags);
  f.AddNumber(kPaths, operation.paths);
  if (!operation.label.empty()) f.Add(kLabel, operation.label);
  f.AddNumber(kTookUs, operation.took_us);
  if (!operation.git_after.is_zero()) {
    f.Add(kGitBefore, operation.git_before.span());
    f.Add(kGitAfter, operation.git_after.span());
    record.refs.push_back({ObjectType::kNode, operation.git_before});
    record.refs.push_back({ObjectType::kNode, operation.git_after});
  }
  if (!operation.external.is_zero()) {
    f.Add(kExternal, operation.external.span());
    record.refs.push_back({ObjectType::kNode, operation.external});
  }
  if (operation.chat) f.AddNested(kChat, EncodeChat(*operation.chat));
  if (operation.session) f.Add(kSession, *operation.session);
  return record;
}

Result<Operation> ToOperation(const LogRecord& record) {
  if (record.kind != RecordKind::kOperation) return BadOperation("not an operation");
  Operation out;
  out.id = record.id;
  out.seq = record.seq;
  out.root = record.root;
  out.made_ms = record.made_ms;
  const std::string name = record.fields.Text(kName).value_or("");
  bool known = false;
  for (OperationKind kind :
       {OperationKind::kRollback, OperationKind::kUndo, OperationKind::kRedo}) {
    if (name != OperationName(kind)) continue;
    out.kind = kind;
    known = true;
  }
  if (!known) return Error(Errc::kUnsupported, "an operation that moved no files");
  if (record.refs.empty() || record.refs[0].type != ObjectType::kNode)
    return BadOperation("without its changes");
  out.changes = record.refs[0].id;
  out.target = IdAt(record.fields, kTarget);
  out.safety = IdAt(record.fields, kSafety);
  out.of = IdAt(record.fields, kOf);
  const uint64_t flags = record.fields.Number(kFlags).value_or(0);
  out.paths_only = (flags & kPathsOnly) != 0;
  out.out_of_order = (flags & kOutOfOrder) != 0;
  out.recovered = (flags & kRecovered) != 0;
  out.keeps_times = (flags & kKeepsTimes) != 0;
  out.paths = record.fields.Number(kPaths).value_or(0);
  out.label = record.fields.Text(kLabel).value_or("");
  out.took_us = record.fields.Number(kTookUs).value_or(0);
  for (auto [tag, into] :
       {std::pair(kGitBefore, &out.git_before), std::pair(kGitAfter, &out.git_after),
        std::pair(kExternal, &out.external)})
    if (auto ids = record.fields.All(tag); ids.size() == 1 && ids[0].size() == 32)
      *into = ObjectId::FromSpan(ids[0]);
  out.chat = ChatAt(record.fields);
  out.session = record.fields.Text(kSession);
  return out;
}

Result<std::vector<Operation>> ListOperations(Catalog& catalog, const RootId& root) {
  BELAY_TRY(auto records,
            catalog.ListRecords({.kind = RecordKind::kOperation, .root = root}));
  std::vector<Operation> out;
  for (const LogRecord& record : records) {
    auto operation = ToOperation(record);
    if (operation.ok())
      out.push_back(std::move(*operation));
    else if (operation.error().code != Errc::kUnsupported)
      return std::move(operation).error();
  }
  std::reverse(out.begin(), out.end());
  BELAY_TRY(auto releases,
            catalog.ListRecords({.kind = RecordKind::kRelease, .root = root}));
  std::unordered_set<RecordId> released;
  for (const LogRecord& release : releases)
    for (const RecordId& id : ReleasedBy(release)) released.insert(id);
  for (Operation& operation : out) operation.released = released.contains(operation.id);
  return out;
}

namespace {

// Those beyond the horizon, too.
UndoStacks WholeStacksOf(const std::vector<Operation>& oldest_first) {
  UndoStacks stacks;
  // By the undo out of order that took them: what and from which place. They come back
  // when that one is undone, and go again when it is redone.
  struct Taken {
    Operation operation;
    size_t at = 0;
  };
  std::unordered_map<RecordId, Taken> taken;
  auto take = [](std::vector<Operation>& from,
                 const std::optional<RecordId>& id) -> std::optional<Taken> {
    for (size_t i = from.size(); i-- > 0;) {
      if (!id || from[i].id != *id) continue;
      Taken found{std::move(from[i]), i};
      from.erase(from.begin() + static_cast<ptrdiff_t>(i));
      return found;
    }
    return std::nullopt;
  };
  auto take_out_of_order = [&](const Operation& operation) {
    if (auto found = take(stacks.undo, operation.of))
      taken.insert_or_assign(operation.id, std::move(*found));
  };
  for (const Operation& operation : oldest_first) {
    if (operation.kind == OperationKind::kUndo && !operation.out_of_order) {
      auto undone = take(stacks.undo, operation.of);
      if (!undone) continue;
      if (auto back = taken.find(undone->operation.id); back != taken.end()) {
        const size_t at = std::min(back->second.at, stacks.undo.size());
        stacks.undo.insert(stacks.undo.begin() + static_cast<ptrdiff_t>(at),
                           std::move(back->second.operation));
        taken.erase(back);
      }
      stacks.redo.push_back(std::move(undone->operation));
    } else if (operation.kind == OperationKind::kRedo) {
      auto redone = take(stacks.redo, operation.of);
      if (!redone) continue;
      if (redone->operation.out_of_order) take_out_of_order(redone->operation);
      stacks.undo.push_back(std::move(redone->operation));
    } else {
      if (operation.out_of_order) take_out_of_order(operation);
      stacks.undo.push_back(operation);
      stacks.redo.clear();
    }
  }
  return stacks;
}

}  // namespace

UndoStacks StacksOf(const std::vector<Operation>& oldest_first) {
  UndoStacks stacks = WholeStacksOf(oldest_first);
  // What they kept is let go. They are the oldest, so nothing above them needs them.
  std::erase_if(stacks.undo, [](const Operation& o) { return o.released; });
  std::erase_if(stacks.redo, [](const Operation& o) { return o.released; });
  return stacks;
}

std::vector<Operation> InEffect(const std::vector<Operation>& oldest_first) {
  std::vector<Operation> out = WholeStacksOf(oldest_first).undo;
  // An undo that was not of the newest took another away, and that is all it did.
  std::erase_if(out,
                [](const Operation& o) { return o.kind != OperationKind::kRollback; });
  return out;
}

size_t History::Find(uint64_t seq) const {
  auto at = std::lower_bound(
      points.begin(), points.end(), seq,
      [](const HistoryPoint& point, uint64_t s) { return point.seq < s; });
  if (at == points.end() || at->seq != seq) return kNone;
  return static_cast<size_t>(at - points.begin());
}

std::optional<RecordId> History::TakenBackBy(uint64_t seq) const {
  const size_t at = Find(seq);
  if (at == kNone || by[at].is_zero()) return std::nullopt;
  return by[at];
}

namespace {

bool MovesTree(const Operation& operation) {
  return !operation.paths_only && !(operation.chat && operation.chat->alone);
}

}  // namespace

History TraceHistory(std::vector<HistoryPoint> given,
                     const std::vector<Operation>& oldest_first) {
  History out;
  out.points = std::move(given);
  std::vector<HistoryPoint>& points = out.points;
  std::sort(points.begin(), points.end(),
            [](const HistoryPoint& a, const HistoryPoint& b) { return a.seq < b.seq; });
  out.parent.assign(points.size(), History::kNone);
  out.by.assign(points.size(), RecordId());
  // Few of many thousand places are ever gone to.
  std::unordered_map<RecordId, size_t> place;
  for (const Operation& operation : oldest_first)
    for (const auto& id : {operation.target, operation.safety})
      if (id) place.emplace(*id, History::kNone);
  for (size_t i = 0; i < points.size() && !place.empty(); ++i)
    if (auto found = place.find(points[i].id); found != place.end()) found->second = i;
  std::unordered_map<RecordId, const Operation*> known;
  size_t& at = out.here;
  // What lies on the way from the old place down to where both ways meet was taken
  // back. Nothing on the way from `at` down ever is, so the rest need not be looked at;
  // and a parent always comes before what grew from it.
  auto move = [&](const std::optional<RecordId>& id, const Operation& operation) {
    auto found = id ? place.find(*id) : place.end();
    if (found == place.end() || found->second == History::kNone) return;
    size_t to = found->second;
    for (size_t left = at; left != to;) {
      if (to == History::kNone || (left != History::kNone && left > to)) {
        out.by[left] = operation.id;
        left = out.parent[left];
      } else {
        out.by[to] = RecordId();
        to = out.parent[to];
      }
    }
    at = found->second;
  };
  size_t next = 0;
  auto operations_before = [&](uint64_t seq) {
    for (; next < oldest_first.size() && oldest_first[next].seq < seq; ++next) {
      const Operation& operation = oldest_first[next];
      known[operation.id] = &operation;
      if (operation.kind == OperationKind::kRollback) {
        if (MovesTree(operation)) move(operation.target, operation);
        continue;
      }
      auto of = operation.of ? known.find(*operation.of) : known.end();
      if (of == known.end() || !MovesTree(*of->second)) continue;
      move(operation.kind == OperationKind::kUndo ? of->second->safety
                                                  : of->second->target,
           operation);
    }
  };
  for (size_t i = 0; i < points.size(); ++i) {
    operations_before(points[i].seq);
    out.parent[i] = at;
    at = i;
  }
  operations_before(UINT64_MAX);
  return out;
}

std::unordered_map<RecordId, RecordId> TakenBack(
    const std::vector<CatalogEntry>& newest_first,
    const std::vector<Operation>& oldest_first) {
  std::vector<HistoryPoint> points;
  points.reserve(newest_first.size());
  for (const CatalogEntry& entry : newest_first)
    points.push_back({entry.checkpoint.id, entry.checkpoint.seq});
  const History history = TraceHistory(std::move(points), oldest_first);
  std::unordered_map<RecordId, RecordId> out;
  for (size_t i = 0; i < history.points.size(); ++i)
    if (!history.by[i].is_zero()) out.emplace(history.points[i].id, history.by[i]);
  return out;
}

}  // namespace belay
