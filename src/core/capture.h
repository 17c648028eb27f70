#pragma once

// CaptureCheckpoint: the one way a checkpoint is made, whoever asks for it.
//
// Guarantees
//   * When it returns, the checkpoint would survive a power cut. When it fails, there
//   is
//     none, and nothing in the directory was touched either way.
//   * One at a time per root: a second one waits, then is kBusy.
//   * The tree is complete, except for what Captured::skipped names.
//   * The store's cap and floor hold: when it would cross them, old checkpoints that
//   may
//     go are let go first (core/retention.h), and said; when none may, it is refused
//     with kNoSpace before it is published. A safety checkpoint ignores both.
//
// Walk through it: ARCHITECTURE.md, "How a checkpoint is made".

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/git_record.h"
#include "core/live.h"
#include "core/settings.h"
#include "scan/scan.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// A capture that somebody looks at before it is published: a rollback plans by it, and
// adds what it will touch besides.
struct Draft {
  BatchWriter& writer;
  ScanSink& sink;
  const ScanSummary& scan;
  Scan::TreeReader trees;                   // those of the scan, published or not
  ObjectId tree;                            // may be replaced by one with more in it
  const GitRecord& git;                     // as it is now
  std::vector<ObjectKey> more_refs = {};    // kept alive by the checkpoint
  std::vector<ExternalFile> external = {};  // by path; their content is in the sink
  bool publish = true;                      // false: there is no checkpoint, no error
};

struct CaptureRequest {
  Root root;
  const Settings* settings = nullptr;
  GitPlaces git = {};
  CheckpointKind kind = CheckpointKind::kManual;
  std::string description = {};  // empty: made from what changed
  std::optional<std::string> name = {}, note = {};
  std::optional<std::string> session = {}, agent = {}, subagent = {}, prompt = {},
                             message_id = {}, tool_name = {}, tool_use_id = {};
  std::optional<uint64_t> turn = {}, message_index = {};
  // Without a session: the root's active one (core/live.h), its turn and message.
  bool of_active_session = false;
  std::map<std::string, std::string> meta = {};
  unsigned threads = 2;
  int64_t lock_wait_ms = 10'000;
  bool holds_root_lock = false;  // the caller does
  // As ScanRequest::released_ns: what changed later makes a partial checkpoint.
  const std::atomic<int64_t>* released_ns = nullptr;
  // The event that this capture is made for, if any.
  LiveStep* step = nullptr;
  std::function<Status(Draft&)> amend = {};
  std::function<void(const ScanProgress&)> progress = {};
};

struct Captured {
  Checkpoint checkpoint;
  ObjectId tree;
  bool same_state = false;  // as the checkpoint before
  bool published = true;
  std::vector<SkippedPath> skipped;
  std::vector<std::string> warnings;  // what git's files could not tell us
  GitRecord git;
  ScanSummary scan;
};

// Does without the catalogue unless a session is named: see store/heads.h. What kept it
// from being made, other than somebody at work, is remembered (core/last_failure.h).
Result<Captured> CaptureCheckpoint(Store& store, const CaptureRequest& request);

// Whether the cap and the floor leave room for anything at all: kNoSpace, with what to
// do. What a checkpoint would find out, for people who ask before.
Status CheckRoom(Store& store, const Settings& settings);

// The path, or a directory above it, is among what was left out (by path): it is not in
// the tree, and was not deleted.
bool IsLeftOut(const std::vector<SkippedPath>& skipped, std::string_view path);

// The rules of the settings, as a scan wants them.
std::shared_ptr<const RuleConfig> RulesFrom(const Settings& settings);
// The scan that a checkpoint of `root` would make; `settings` and `git` must outlive
// it.
Result<ScanRequest> ScanRequestFor(Store& store, std::span<const RootEntry> roots,
                                   const Root& root, const Settings& settings,
                                   const GitPlaces& git);
Result<ScanRequest> ScanRequestFor(Store& store, Catalog& catalog, const Root& root,
                                   const Settings& settings, const GitPlaces& git);

}  // namespace belay
