#pragma once

// RestoreScene is a rollback, undo, redo or recovery to be broken: a generated tree
// with everything in it that is hard to bring back, a checkpoint of it, a day's worth
// of edits, and the operation. Whoever breaks it (power cut, kill, failing call, full
// disk) then asks Check() whether the promises of restore/rollback.h held.
//
// Every tree holds ignored, secret, over-cap, hard-linked, read-only and setuid files,
// symlinks, empty directories, extended attributes, names that are no UTF-8, files of 0
// bytes to more than a MiB (every third seed), and each change of kind between file,
// directory and symlink. Even seeds change all of it, odd ones a part.
//
// What is the same in every run of one scene: all of it (FakeClock, SeededRandom), so
// that a sweep can number the calls.

#include <string>

#include "base/mem_fs.h"
#include "support/crash_harness.h"
#include "support/restore_world.h"

namespace belay::test {

// The tree and its top directory: kind, mode, owner, extended attributes, content or
// target. (base/tree_text.h leaves owners and attributes out.)
Result<std::string> WholeTreeText(Fs& fs, const AbsPath& dir);

struct SceneOptions {
  std::string op = "rollback";  // "undo", "redo", "recovery", "rewind"
  uint64_t seed = 1;
  uint32_t uid = 1000;   // owns the store; a real one: getuid()
  bool as_user = false;  // plans like somebody who is not root
  // "recovery" is of a rollback interrupted at this call, on MemFs by a power cut. 0:
  // in the middle of what it moves.
  uint64_t interrupt = 0;
  CrashPolicy crash = CrashPolicy::KeepAll();
  // Instead of the generated tree and its edits.
  std::function<Status(Fs&fs, const Fd&root)> make = {}, edit = {};
  // A conversation that goes back with the rollback, or alone ("rewind"), in TalkDir():
  // what is there before it, and the plan, which holds what it is read from.
  std::function<Status(RestoreWorld& world)> said = {};
  std::function<Result<std::shared_ptr<const ChatPlan>>(RestoreWorld& world)> chat = {};
};

class RestoreScene {
 public:
  explicit RestoreScene(SceneOptions options) : options_(std::move(options)) {}

  // Lets it happen once in `top`, which must exist and be empty, and remembers both
  // sides. Comes first.
  Status Learn(Fs& fs, const AbsPath& top);
  // Everything up to the operation.
  Status Setup(Fs& fs, const AbsPath& top) const;
  Status Operate(Fs& fs, const AbsPath& top, Acks& acks) const;
  // On a disk that works again: the tree is the old or the new one after Recover(), and
  // everything else that was promised. `failed` is for a run that was broken by a
  // failing call: its error must have been true.
  Status Check(Fs& fs, const AbsPath& top, const SweepRun& run,
               bool failed = false) const;

  // Calls of the operation, and of a rollback those before the first path is touched.
  uint64_t calls() const { return calls_; }
  uint64_t calls_before() const { return calls_before_; }
  const std::vector<FsCall>& log() const { return log_; }
  const std::string& old_tree() const { return old_; }
  const std::string& new_tree() const { return new_; }
  SceneOptions& options() { return options_; }

 private:
  RestoreWorld WorldAt(Fs& fs, const AbsPath& top, uint64_t step) const;
  Status MakeStart(Fs& fs, const Fd& top, const Fd& root) const;
  Status UpToOperation(Fs& fs, const AbsPath& top) const;
  Result<Outcome> RollBack(RestoreWorld& world) const;
  Result<std::string> TalkText(Fs& fs, const AbsPath& top) const;
  Status CheckTree(const std::string& tree, const SweepRun& run) const;
  Status CheckSafety(RestoreWorld::Opened& opened, const Operation& operation,
                     const std::string& tree) const;

  SceneOptions options_;
  std::string old_, new_, outside_;
  std::string old_talk_, new_talk_;
  Files old_files_;
  uint64_t calls_ = 0, calls_before_ = 0;
  std::vector<FsCall> log_;
};

}  // namespace belay::test
