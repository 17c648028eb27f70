#pragma once

// Files outside of the root that an edit tool named: kept with the checkpoint that is
// made before the call, and brought back only when somebody asks for it
// (--external-files).
//
// Guarantees
//   * Paths are real: no symlink is followed on the way, neither when a file is kept
//     nor when it is brought back. Of a symlink that was named, the link and what it
//     leads to are kept.
//   * Never: what is in a protected directory (which has checkpoints of its own), in
//     the store, of git's own, devices and what the kernel makes up.
//   * What a file was at a checkpoint is what the first one at or after it kept: until
//     then no tool had named it.
//   * Directories are neither made nor removed.
//   * Brought back like all else: stored first, journalled, all or nothing, undone by
//     `belay undo`.
//
// Threads: one.

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "core/capture.h"
#include "core/purged.h"
#include "restore/plan.h"
#include "restore/rollback.h"

namespace belay {

struct ToKeep {
  std::vector<AbsPath> named;                         // as the tool wrote them
  std::string session;                                // whose call it is
  const std::atomic<int64_t>* released_ns = nullptr;  // as CaptureRequest has it
};
// Into the draft of the checkpoint. What cannot be kept is said in its place; an error
// only when there is no room.
Status KeepExternal(Store& store, const Root& root, const Settings& settings,
                    const ToKeep& keep, Draft& draft);

struct ExternalPlanInput {
  Store& store;
  const RollbackRequest& request;
  std::span<const RootEntry> roots;
  ScanSink& sink;
  const Purged& purged;
  bool dry = false;
};
// To what it was at `target`. Without request.external_files only a warning that names
// them. kRefused: others changed one of them since, and nobody said what becomes of it.
Status PlanExternal(const ExternalPlanInput& input, const Checkpoint& target,
                    Plan& plan);
// Of an undo or redo: `wanted` again, where it is as it was left. Else a conflict,
// unless `exact`.
Status ReplayExternal(const ExternalPlanInput& input, std::vector<PathChange> wanted,
                      bool exact, Plan& plan, std::vector<Conflict>& conflicts);

// The directory itself, whatever symlinks there are by now.
Result<Fd> OpenRealDir(Fs& fs, const AbsPath& dir);
// It is outside of every protected directory, and may be a file that somebody edits.
Result<bool> MayBeExternal(Store& store, const Root& root,
                           std::span<const RootEntry> roots, const AbsPath& path);

}  // namespace belay
