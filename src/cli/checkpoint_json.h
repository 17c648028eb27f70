#pragma once

// The checkpoint object of the command-line contract, the same in every command.

#include <functional>
#include <map>
#include <set>

#include "base/json.h"
#include "cli/args.h"
#include "core/git_staged.h"
#include "scan/scan.h"
#include "store/catalog.h"

namespace belay {

// What of a checkpoint is only in its state.
struct StateParts {
  ObjectId tree;  // zero: the state cannot be read
  std::span<const SkippedPath> skipped = {};
  const GitRecord* git = nullptr;     // none: it is not known, or there is none
  const GitStaged* staged = nullptr;  // none: nobody worked it out
  // The checkpoints that are anchored as refs (commits/anchors.h); none: nobody looked.
  const std::set<std::string>* anchored = nullptr;
};

// `number` is the place in `belay list`, 1 = newest. `more` writes fields of its own at
// the end. `taken_back_by` is the operation that left it on a branch
// (core/operations.h).
void WriteCheckpoint(const CatalogEntry& entry, uint64_t number,
                     std::string_view root_path, const StateParts& parts,
                     JsonWriter& json,
                     const std::function<void(JsonWriter&)>& more = {},
                     const std::optional<RecordId>& taken_back_by = {});

// Neighbours mostly have the same rules and the same state of git, which are then read
// once.
class StateFacts {
 public:
  explicit StateFacts(Store& store, std::set<std::string> anchored = {})
      : store_(store), anchored_(std::move(anchored)) {}
  // Valid until the next call.
  StateParts Of(const ObjectId& state);

 private:
  Store& store_;
  const std::set<std::string> anchored_;
  ObjectId rules_, git_;
  std::vector<SkippedPath> skipped_;
  GitRecord record_;
};

// `"key":"value"`, or null; bytes that are not UTF-8 as JsonWriter::PathValue has them.
void WriteTextOrNull(JsonWriter& json, std::string_view key,
                     const std::optional<std::string>& value);

// `"meta":{...}`; a key of JSON is text, so entries whose key is not UTF-8 follow as
// `"meta_bytes":[{"key":...,"value":...}]`, when there are any.
void WriteMeta(JsonWriter& json, const std::map<std::string, std::string>& meta);

std::string_view CheckpointKindName(CheckpointKind kind);  // "auto", "manual", "safety"
// "2026-03-09 21:15", local time.
std::string LocalMinute(int64_t ms);
// The N of -n, from 1 on; nothing when it is not given.
Result<std::optional<uint64_t>> LimitOf(const Args& args);
// What a list calls it: its name, else its description.
const std::string& CheckpointTitle(const Checkpoint& checkpoint);
// "3 files changed", "6 files and 1 directory changed".
std::string ChangedText(const Checkpoint& checkpoint);
std::string ChangedText(uint64_t changed, uint64_t directories);
// The same where room is short: directories only when no file did.
std::string ChangedBriefly(uint64_t changed, uint64_t directories);
// "abc1234  2026-03-09 21:15  before Write src/app.ts": one line for a person, local
// time, at most `width` columns.
std::string CheckpointLine(const CatalogEntry& entry, size_t width = 80);

}  // namespace belay
