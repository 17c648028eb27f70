#include "core/operations.h"

#include <algorithm>

namespace belay {

namespace {

constexpr uint64_t kName = 1, kTarget = 2, kChanges = 3, kSafety = 4, kOf = 5,
                   kFlags = 6, kPaths = 7, kLabel = 8, kTookUs = 9;
constexpr uint64_t kPathsOnly = 1, kOutOfOrder = 2, kRecovered = 4;

Error Bad(std::string_view what) {
  return {Errc::kCorrupt, "operation record: " + std::string(what)};
}

std::optional<RecordId> IdAt(const Fields& fields, uint64_t tag) {
  auto values = fields.All(tag);
  if (values.size() != 1 || values[0].size() != 16) return std::nullopt;
  return RecordId(Id128::FromSpan(values[0]));
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
                         (operation.recovered ? kRecovered : 0);
  if (flags != 0) f.AddNumber(kFlags, flags);
  f.AddNumber(kPaths, operation.paths);
  if (!operation.label.empty()) f.Add(kLabel, operation.label);
  f.AddNumber(kTookUs, operation.took_us);
  return record;
}

Result<Operation> ToOperation(const LogRecord& record) {
  if (record.kind != RecordKind::kOperation || record.refs.empty() ||
      record.refs[0].type != ObjectType::kNode)
    return Bad("not an operation");
  Operation out;
  out.id = record.id;
  out.seq = record.seq;
  out.root = record.root;
  out.made_ms = record.made_ms;
  out.changes = record.refs[0].id;
  const std::string name = record.fields.Text(kName).value_or("");
  bool known = false;
  for (OperationKind kind :
       {OperationKind::kRollback, OperationKind::kUndo, OperationKind::kRedo}) {
    if (name != OperationName(kind)) continue;
    out.kind = kind;
    known = true;
  }
  if (!known) return Error(Errc::kUnsupported, "an operation of a newer Belay");
  out.target = IdAt(record.fields, kTarget);
  out.safety = IdAt(record.fields, kSafety);
  out.of = IdAt(record.fields, kOf);
  const uint64_t flags = record.fields.Number(kFlags).value_or(0);
  out.paths_only = (flags & kPathsOnly) != 0;
  out.out_of_order = (flags & kOutOfOrder) != 0;
  out.recovered = (flags & kRecovered) != 0;
  out.paths = record.fields.Number(kPaths).value_or(0);
  out.label = record.fields.Text(kLabel).value_or("");
  out.took_us = record.fields.Number(kTookUs).value_or(0);
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
  return out;
}

UndoStacks StacksOf(const std::vector<Operation>& oldest_first) {
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

std::unordered_map<RecordId, RecordId> TakenBack(
    const std::vector<CatalogEntry>& newest_first,
    const std::vector<Operation>& oldest_first) {
  // The history is a tree: each checkpoint grows from where the root stood when it was
  // made. An operation moves to another place in it; what then lies on the way from the
  // old place down to where both ways meet was taken back.
  std::unordered_map<RecordId, RecordId> parent, by;
  std::unordered_map<RecordId, const Operation*> known;
  std::optional<RecordId> at;
  auto way = [&](std::optional<RecordId> from) {
    std::vector<RecordId> out;
    while (from) {
      out.push_back(*from);
      auto up = parent.find(*from);
      from = up == parent.end() ? std::nullopt : std::optional(up->second);
    }
    return out;
  };
  auto move = [&](const RecordId& to, const RecordId& operation) {
    if (at && *at == to) return;
    for (const RecordId& left : way(at)) by.insert_or_assign(left, operation);
    for (const RecordId& kept : way(to)) by.erase(kept);
    at = to;
  };
  size_t next = 0;
  auto operations_before = [&](uint64_t seq) {
    for (; next < oldest_first.size() && oldest_first[next].seq < seq; ++next) {
      const Operation& operation = oldest_first[next];
      known[operation.id] = &operation;
      if (operation.kind == OperationKind::kRollback) {
        if (operation.target && !operation.paths_only)
          move(*operation.target, operation.id);
        continue;
      }
      auto of = operation.of ? known.find(*operation.of) : known.end();
      if (of == known.end() || of->second->paths_only) continue;
      const std::optional<RecordId>& to = operation.kind == OperationKind::kUndo
                                              ? of->second->safety
                                              : of->second->target;
      if (to) move(*to, operation.id);
    }
  };
  for (size_t i = newest_first.size(); i-- > 0;) {
    const Checkpoint& checkpoint = newest_first[i].checkpoint;
    operations_before(checkpoint.seq);
    if (at) parent[checkpoint.id] = *at;
    at = checkpoint.id;
  }
  operations_before(UINT64_MAX);
  // Only those that are still there.
  std::unordered_map<RecordId, RecordId> out;
  for (const CatalogEntry& entry : newest_first)
    if (auto found = by.find(entry.checkpoint.id); found != by.end())
      out.insert(*found);
  return out;
}

}  // namespace belay
