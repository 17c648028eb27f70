#pragma once

// PlanGit says how the repositories of a root come back to what a git record has: which
// of git's own files change, and what a person should know before saying yes.
//
// Guarantees
//   * No commit is lost: those that a branch leaves are named, and a ref under
//     refs/belay/safety/ holds them; the same for entries of the stash.
//   * Nothing is written (content goes to the sink; a revert makes commit objects,
//   which
//     nothing names yet).
//   * No ref is moved but the branch that HEAD stood on; refs that are gone come back;
//     refs that are new stay. Where HEAD stands on another branch now, it is refused
//     unless somebody asked for it.
//   * A git directory that is gone comes back whole when the target covers it
//     (git.protect); an undo takes it away again, unless git was used since.
//   * What others moved since a checkpoint of a session goes back only when somebody
//     asked for it: else all of that repository's git stays.
//   * What cannot be put back exactly is left exactly as it is, and said.
//
// The changes are files beneath the common git directory, moved like any others
// (restore/mover.h), under git's own locks (restore/git_locks.h).

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/change.h"
#include "core/git_record.h"
#include "core/settings.h"

namespace belay {

// What the journal has of one repository.
struct GitMove {
  std::string dir;  // the common git directory: a valid AbsPath
  uint64_t ino = 0;
  std::vector<PathChange> changes;  // by path, from `dir` on
  std::string index;                // its path among them; empty: it does not change
  int64_t index_before_ns = 0, index_after_ns = 0;
  std::vector<std::string> locks;  // "index.lock", from `dir` on
  struct Object {
    std::string hex;
    ObjectId content;
    uint64_t size = 0;  // for the plan alone
  };
  std::vector<Object> objects;  // that must be there first
  // `.git` itself comes or goes: `dir` is the work tree, and every path `.git` or
  // below.
  bool whole = false;
  GitHash hash = GitHash::kSha1;
};

struct GitPlan {
  std::string path;  // of the work tree; "": the root
  GitAction action = GitAction::kKeep;
  bool none = true;  // there is nothing to do, or nothing to say of it
  std::string from, to;
  std::string branch;                // for people; empty: none
  std::vector<std::string> commits;  // taken back: `abc1234 "subject"`
  size_t commit_count = 0;           // of all of them
  // Refs that hold what is taken back. Of a preview whose operation has no id yet: with
  // `*` in its place.
  std::vector<std::string> safety_refs;
  std::vector<std::string> held_by;  // of an undo: refs that held what comes again
  std::vector<std::string> notes;    // "the stash comes back", one each
  GitMove move;
};

struct GitChoice {
  GitAction action = GitAction::kAuto;
  bool switch_branch = false;
  bool nested = false;
};

// Who moved something of git's since a checkpoint of a session: nobody but the session,
// others, too, or there is no telling.
enum class MovedBy : uint8_t { kSession, kOthers, kUnknown };
struct OthersMoves {
  // By the names of WhatMoved() (core/git_authors.h): what the session alone moved is
  // not in it.
  std::map<std::string, MovedBy, std::less<>> what;
  MovedBy all = MovedBy::kSession;  // of what is not known by name
  MovedBy Of(std::string_view name) const;
};

struct GitPlanInput {
  Store& store;
  const AbsPath& root;
  const ScanSummary& now;  // which repositories there are
  const GitRecord& is;
  const GitRecord& target;
  // Of an undo or redo: what the operation left. What is not so any more is a conflict.
  const GitRecord* expected = nullptr;
  bool exact = false;
  ScanSink& sink;
  const GitPlaces& places;
  RecordId operation;        // zero: not known yet, in a preview
  RecordId takes_back = {};  // of an undo
  std::string what;          // for the reflog: "rollback to 'x'"
  bool dry = false;          // not even a commit object is made
  // What becomes of the files, by path. A work tree that comes with them can have its
  // `.git` again.
  const std::vector<PathChange>* files = nullptr;
  // When the target was made: what was not touched since need not be read. 0: not
  // known.
  int64_t made_ms = 0;
  // Whether content was purged since the target was made: it does not come back, though
  // its bytes may be in the store still.
  std::function<bool(const ObjectId& content)> lacks = {};
  // Who moved it since. Nothing: there are no others.
  std::function<Result<OthersMoves>(const GitRepoRecord& is, const GitRefs& refs)>
      others = {};
  // Whether the safety refs of an operation must stay.
  std::function<bool(std::string_view operation)> keeps_safety = {};

  bool WasPurged(const ObjectId& content) const;
  bool MakesDirectory(const std::string& path) const;
  // The store has it, and may give it back.
  Result<bool> Has(const ObjectId& content) const;
};

struct GitPlans {
  std::vector<GitPlan> plans;
  std::vector<std::string> warnings;
  std::vector<Conflict> conflicts;
  // The repositories that move, before and after; for the operation's record.
  GitRecord before, after;
  bool moves() const;
};

Result<GitPlans> PlanGit(const GitPlanInput& input, const GitChoice& choice);

// What a person says yes to, one line each.
std::vector<std::string> GitPlanText(const std::vector<GitPlan>& plans);

}  // namespace belay
