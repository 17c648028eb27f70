#pragma once

// Runner takes one journal to its end: forward and recorded, or back and forgotten.
//
// Threads: one.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/purged.h"
#include "restore/git_locks.h"
#include "restore/journal.h"
#include "restore/mover.h"
#include "restore/publication.h"
#include "restore/rollback.h"

namespace belay {

// How the hint of an error begins when not all could be taken back.
inline constexpr std::string_view kOthersChanged = "others have changed ";

// An error about a file that is made ready beside the others is about the path that it
// is to become: nobody else knows of a staging directory.
Error InUsersWords(Error error, const Journal& journal);

// Neither done nor taken back: the journal is there, or may be.
Error Interrupted(const Error& why, const Error& back);

// The hint: in the tree; the safety checkpoint stays.
std::string NothingChanged(const std::optional<RecordId>& safety);

// The first path of the journal, or directory above one, on which something is mounted
// by now. There was nothing when it was planned: no plan touches what is mounted.
std::optional<std::string> MountedOver(Fs& fs, const Fd& root, const Journal& journal);

class Runner {
 public:
  // `store` and `root` must outlive it.
  // `path`: of the root.
  Runner(Store& store, const Fd& root, std::string path, Journal journal,
         std::shared_ptr<const HeldContents> known = nullptr);

  // An error leaves the tree as it was; kIo "interrupted" when not even that can be
  // done now.
  Status Forward(const std::function<bool()>& stop, Outcome& out);
  // Of a run that writes what is published; must outlive it. `uid`: who we are.
  void Bring(const ChatPlan* chat, uint32_t uid) {
    chat_ = chat;
    uid_ = uid;
  }
  // The operation is in the log, or was taken back: what is left is ours to remove.
  Status Tidy();
  // After an interruption, before anything moves or goes: all that was there before can
  // be read in the store, or is stored again while the directory, or what was
  // displaced, has it yet (Forward() does that by itself). `recorded`: the operation as
  // it is in the log, when nothing is to be moved any more.
  Status Secure(const Operation* recorded);
  struct Secured {
    std::vector<std::string> again;  // paths that were stored again
    std::vector<std::string> lost;   // that nothing can give back as they were before
  };
  const Secured& secured() const { return secured_; }

  const Journal& journal() const { return journal_; }
  // What is beneath a mount is passed over, and named.
  void GoAroundMounts() { around_mounts_ = true; }
  // For git's locks: no longer than that.
  void WaitAtMost(int64_t ms) { git_wait_ms_ = std::min(git_wait_ms_, ms); }

 private:
  Status TakeBack(Error why, Outcome& out);
  // What raced us goes into the log together with the operation.
  Status Record(Outcome& out);
  Status StoreFound(Outcome& out);
  struct FoundOutside {
    std::string path;
    PathState state;
    bool half_written = false;
  };
  // What was found and fits into one tree. Of a path that was found several times, or
  // beneath another, the newest is in the first of them.
  struct FoundTree {
    std::vector<Mover::Found> inside;
    std::vector<FoundOutside> outside;
  };
  std::vector<FoundTree> FitTogether(const std::vector<Mover::Found>& inside,
                                     const std::vector<FoundOutside>& outside) const;
  // For each a checkpoint of what was edited while we were at it: as the safety
  // checkpoint, with those paths as they were found. The first becomes `out.raced`.
  Status AddRaced(BatchWriter& writer, ScanSink& sink,
                  const std::vector<FoundTree>& found, Outcome& out);
  Result<Checkpoint> AddRacedOne(BatchWriter& writer, ScanSink& sink,
                                 const FoundTree& tree);

  // One repository that moves along.
  struct GitPart {
    const GitMove* move;
    Fd dir;
    // `.git` whose work tree itself comes or goes with the files: it comes after them
    // and goes before them. Its paths are from the root on, and begin with `top`.
    bool comes = false, goes = false;
    std::string top;
    GitMove from_root;
    Journal view;  // of what is in it, for the mover
    std::unique_ptr<GitLocks> locks;
    std::unique_ptr<Mover> mover;
    bool moved = false;  // this run began to
    bool left = false;   // on the way back: somebody used it since, and it stays so
  };
  // The lists that an undo of `recorded` goes by, where the store cannot give them.
  Result<bool> StoreListsAgain(const Operation& recorded, BatchWriter& writer);
  Result<Purged> PurgedSinceSafety();
  Result<bool> IsOfThisRoot(const AbsPath& git_dir);
  Status OpenGit();
  Result<std::unique_ptr<GitPart>> OpenPart(size_t number);
  std::unique_ptr<GitPart> TieToFiles(size_t number);
  Status LockGit();
  Status CheckGitSides();
  // All parts but those that the files wait for, or those alone.
  enum class When { kBeforeFiles, kAfterFiles };
  Status MoveGit(Way way, When when);
  Result<bool> IsUsedSince(const GitPart& part);
  Status VerifyGit(Way way, Outcome& out);
  Status SettleGit(ScanSink& sink, Outcome& out);
  Status TidyGit();

  // Files outside of the root, of one directory.
  struct ExternalPart {
    const ExternalMove* move;
    Fd dir;
    Journal view;  // of what is in it, for the mover
    std::unique_ptr<Mover> mover;
    bool moved = false;  // this run began to
  };
  Status OpenExternal();
  Status MoveExternal(Way way);
  Status VerifyExternal(Way way, Outcome& out);
  Result<std::vector<FoundOutside>> SettleExternal(ScanSink& sink, Outcome& out);
  Status TidyExternal();
  // What is published is complete beside its place before anything moves.
  Status PreparePublication();
  // Null: there is none, or its directory is gone.
  Result<Publication*> OpenPublication();
  // Of the way back: what others have changed, and is left so.
  std::vector<std::string> Theirs() const;

  Store& store_;
  const Fd& root_;
  const std::string path_;
  const Journal journal_;
  Mover mover_;
  std::vector<std::unique_ptr<GitPart>> git_;
  bool git_open_ = false;
  std::vector<std::unique_ptr<ExternalPart>> external_;
  bool external_open_ = false;
  bool external_right_ = true;
  std::optional<Publication> publication_;
  const ChatPlan* chat_ = nullptr;
  uint32_t uid_ = 0;
  const int64_t began_;
  Secured secured_;
  bool around_mounts_ = false;
  int64_t git_wait_ms_ = 2'000;
};

}  // namespace belay
