#pragma once

// Operations: what rollbacks, undos and redos did to a root, in the order they were
// done, and what follows from it: which one `belay undo` and `belay redo` would take,
// and which checkpoints were taken back.
//
// Record layout: docs/format.md, "operation".

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/catalog.h"
#include "store/log_record.h"

namespace belay {

enum class OperationKind : uint8_t { kRollback, kUndo, kRedo };
std::string_view OperationName(OperationKind kind);  // "rollback"

// A conversation that an operation took back, too (core/chat.h).
struct ChatRecord {
  std::string agent;                  // as checkpoints name it: "claude"
  std::string session;                // whose conversation it is
  std::string forked = {};            // the session that goes on; empty: see GoesOn()
  bool hosted = false;                // a host keeps it: the session itself goes on
  std::optional<uint64_t> turn = {};  // taken back: this one, and all after it
  bool inside = false;  // ... and of the one before it, `inherited`, its end
  // The first message that was taken back: the agent's own id, and its place.
  std::optional<std::string> message = {};
  std::optional<uint64_t> message_index = {};
  std::optional<uint64_t> taken = {}, kept = {};  // messages, where they were counted
  uint64_t inherited = 0;                         // turns that the fork has, too
  std::string prompt = {};                        // that was taken back
  std::string path = {};  // of the file that goes on; empty: the agent's program has it
  std::string cwd = {};   // where the agent worked
  bool alone = false;     // no file was to be moved
  // Nothing was taken back: in the fork a summary stands for these turns.
  struct Summary {
    uint64_t first = 0, last = 0;
    bool operator==(const Summary&) const = default;
  };
  std::optional<Summary> summary = {};
  bool operator==(const ChatRecord&) const = default;
};

struct Operation {
  RecordId id;
  uint64_t seq = 0;
  RootId root;
  int64_t made_ms = 0;
  OperationKind kind = OperationKind::kRollback;
  ObjectId changes;                     // the node with what was before and after
  std::optional<RecordId> target = {};  // the checkpoint that was gone back to
  std::optional<RecordId> safety = {};  // made before anything moved
  std::optional<RecordId> of = {};      // the operation that was undone or redone
  bool paths_only = false;              // of a rollback: not the whole tree
  bool out_of_order = false;            // an undo of one that was not the newest
  bool recovered = false;               // finished after an interruption
  bool keeps_times = false;  // --preserve-times: files got the time of the checkpoint
  // The repositories that moved along, as they were and as they were left (git record
  // nodes); zero: none did.
  ObjectId git_before = {}, git_after = {};
  // The same as `changes`, of files outside of the root; zero: none moved.
  ObjectId external = {};
  uint64_t paths = 0;      // how many it changed
  std::string label = {};  // of the target, for people
  // Whose checkpoint the target was: the label may be words of it, and the checkpoint
  // gone before them.
  std::optional<std::string> session = {};
  uint64_t took_us = 0;
  bool released = false;  // beyond the horizon: it can no longer be undone
  std::optional<ChatRecord> chat = {};  // of an undo or redo: what it is about
  bool operator==(const Operation&) const = default;
};
LogRecord ToRecord(const Operation& operation);
Result<Operation> ToOperation(const LogRecord& record);

// What moved files, oldest first. Other kinds (core/annotate.h has some), and those
// that a newer version wrote, are left out.
Result<std::vector<Operation>> ListOperations(Catalog& catalog, const RootId& root);

// What `undo` and `redo` would take, newest last. A rollback drops what could be
// redone; so does an undo out of order, which can itself be undone like a rollback.
struct UndoStacks {
  std::vector<Operation> undo;
  std::vector<Operation> redo;
};
UndoStacks StacksOf(const std::vector<Operation>& oldest_first);
// Those that were not taken back, oldest first; also beyond the horizon.
std::vector<Operation> InEffect(const std::vector<Operation>& oldest_first);

// Where a checkpoint stands in the order of things. One that was deleted still has a
// place when an operation went there.
struct HistoryPoint {
  RecordId id;
  uint64_t seq = 0;
};

// The history as a tree: each checkpoint grows from where the root stood when it was
// made, and an operation moves to another place in it.
struct History {
  static constexpr size_t kNone = SIZE_MAX;
  std::vector<HistoryPoint> points;  // by sequence number
  std::vector<size_t> parent;        // of each: which one it grew from, or kNone
  std::vector<RecordId> by;          // of each: what took it back; zero: nothing did
  size_t here = kNone;               // where the root stands now

  // The place of a checkpoint among the points; kNone when it is not there.
  size_t Find(uint64_t seq) const;
  std::optional<RecordId> TakenBackBy(uint64_t seq) const;
};
// In any order. An operation that went to a place that is not among them takes nothing
// back: better shown than hidden.
History TraceHistory(std::vector<HistoryPoint> points,
                     const std::vector<Operation>& oldest_first);

// The checkpoints that are not part of how the root came to be as it is, each with the
// operation that took it back. Rollbacks of single paths take back none.
std::unordered_map<RecordId, RecordId> TakenBack(
    const std::vector<CatalogEntry>& newest_first,
    const std::vector<Operation>& oldest_first);

}  // namespace belay
