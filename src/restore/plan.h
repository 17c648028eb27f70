#pragma once

// MakePlan says what a rollback would do: the changes from the tree as it is to the
// target state, what stays and why, and what a person should know before saying yes.
// It writes nothing (content of what is not covered now goes to the sink it is given).
//
// Guarantees
//   * A path is deleted only if it is covered today, the target's own rules covered it,
//     and the target does not have it. Everything else stays, and is named.
//   * A path that the target has is brought back whatever today's rules say.
//   * A directory with something in it that stays, stays.
//   * Everything the changes need from the store was read and found right: damage
//     refuses the plan before anything moves, or is left out on request.
//
// Threads: one, which may have another help it to read.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/change.h"
#include "core/purged.h"
#include "core/state_view.h"
#include "restore/contents.h"
#include "restore/git_plan.h"
#include "restore/look.h"

namespace belay {

struct PlanOptions {
  // Paths and globs from the root; empty: everything. A directory means all below it.
  std::vector<std::string> select = {};
  bool delete_ignored = false;  // also what only today's rules protect
  bool skip_damaged = false;
  bool partial = false;  // the target holds a part: nothing is deleted
  // Today's rules are not all known: nothing is deleted, since nothing is known to be
  // covered today.
  bool settings_unknown = false;
  // Changed by others since: these stay as they are.
  std::vector<std::string> keep = {};
  // A plan that is only shown: what keeps it from being done is in Plan::refused.
  bool dry = false;
  std::function<bool()> stop = {};  // asked between two paths: kRefused, "stopped"
  uint32_t uid = 0;                 // who we are: nobody but root gives files away
  std::vector<uint32_t> groups = {};
};

struct KeptPath {
  std::string path;
  std::string why;
  bool wanted = false;   // the target has it, and it could not be brought back
  bool missing = false;  // nothing is there: it does not stay, it is not had
  bool operator==(const KeptPath&) const = default;
};

// Files outside of the root, of one directory.
struct ExternalMove {
  std::string dir;  // a valid AbsPath, without symlinks on the way
  uint64_t ino = 0;
  std::vector<PathChange> changes;  // by name; files and symlinks
  bool operator==(const ExternalMove&) const = default;
};
// With their absolute paths, by path.
std::vector<PathChange> ChangesIn(const std::vector<ExternalMove>& external);

struct Plan {
  std::vector<PathChange> changes;  // by path
  std::vector<KeptPath> kept;       // by path
  std::vector<std::string> warnings;
  // Existing directories whose mode must be widened while things move in them, with the
  // mode they have; "" is the root.
  struct Locked {
    std::string path;
    uint32_t mode = 0;
  };
  std::vector<Locked> locked;
  // Of the changes whose `before` is not part of the tree as it is now: what the safety
  // checkpoint must hold besides.
  std::vector<PathChange> uncovered;
  // At most, while it is done. Long runs of zeros come back as holes and count nothing.
  uint64_t bytes_needed = 0, inodes_needed = 0;
  // Why it would be refused: only of a plan that is `dry`, others are not made then.
  std::optional<Error> refused = {};
  // The repositories, where git is to come back too.
  std::vector<GitPlan> git;
  // Git is not as the target has it, and a warning says why it is left so.
  bool git_stays = false;
  ObjectId git_before, git_after;  // as Operation has them
  // Files outside of the root, where they are to come back too (restore/external.h).
  std::vector<ExternalMove> external;
  // Of the changes: paths that others changed since the target (restore/foreign.h).
  std::vector<std::string> outside;
  bool moves_nothing() const;
  // What CheckContent() read, as far as there was room.
  std::shared_ptr<HeldContents> contents = {};
};

struct PlanInput {
  Store& store;
  const Fd& root;
  ObjectId now_tree;
  Scan::TreeReader now_trees;
  const ScanSummary& now;
  const RuleLists& now_rules;
  const StateView& target;
  ScanSink& sink;
  AbsPath root_path;
  // Protected roots inside this one, there or not: theirs alone.
  std::vector<AbsPath> other_roots = {};
  // Since the target. What is left alone stays as it is, and so does a path whose
  // content the target no longer has.
  Purged purged = {};
};

Result<Plan> MakePlan(const PlanInput& input, const PlanOptions& options);

// The words of the command line's JSON: "create", "write", "delete", "mkdir", "rmdir",
// "symlink", "chmod". A change of kind is two steps.
struct Step {
  std::string_view op;
  const PathChange* change;
};
std::vector<Step> StepsOf(const std::vector<PathChange>& changes);

}  // namespace belay
