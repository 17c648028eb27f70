#pragma once

// Mover brings a tree from one side of a journal to the other: forward, or back. It is
// the only code that writes inside a user's tree.
//
// How one path moves
//   * A file whose content alone changes is written in place, under an exclusive lease,
//     after its content was found to be what the plan says: nobody else has it open or
//     mapped, and who opens it meanwhile waits. (1000 files of 7 KB: 22 ms; each by a
//     new file and a rename: 220 to 440 ms. See docs/decisions.) Not when it has other
//     hard links, is in use, is run, or cannot be leased.
//   * Everything else: a new file, link or nothing is made ready in the staging
//     directory with its final mode and owner, and changes places with what is there
//     (RENAME_EXCHANGE), or goes where nothing is (RENAME_NOREPLACE). What was
//     displaced stays in the staging directory until all is over.
//
// Guarantees
//   * Run any number of times, in any direction, interrupted anywhere: each path is
//     looked at before it is touched. After a run that succeeded the tree is that side.
//   * Nothing is lost to a writer that races us: what was displaced and is neither of
//     the two sides is found by Settle() and stored before it is removed.
//   * What we half wrote is never taken for somebody's edit. After an interruption that
//     is a judgement: bytes that are all from one of the sides, or zero, at their place
//     are half written. Settle() gives them all the same, and says so.
//   * On the way back what was displaced is taken from the staging directory where the
//     store cannot give it.
//   * Every open is beneath the root and follows no symlink.
//
// Threads: one, which has another help it where there are many files (restore/both.h).

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "restore/journal.h"
#include "restore/look.h"

namespace belay {

enum class Way { kForward, kBack };

class Mover {
 public:
  // Everything must outlive this. `known`: content that was read already.
  Mover(Store& store, const Fd& root, const Journal& journal,
        std::shared_ptr<const HeldContents> known = nullptr);
  ~Mover();

  // Another way for a new file to get its content, tried before the store's: fills
  // `file`, which is empty, with what `wanted` says and has checked that; or leaves it
  // empty and says false.
  using Filler = std::function<Result<bool>(const std::string& path,
                                            const PathState& wanted, const Fd& file)>;
  void FillBy(Filler filler) { filler_ = std::move(filler); }

  // `stop`, asked between two paths, ends it with kRefused.
  Status Move(Way way, const std::function<bool()>& stop = {});
  // Everything in the tree is durable after this.
  Status Flush();

  struct Verified {
    std::vector<std::string> changed;     // by somebody else after we wrote
    std::vector<std::string> attributes;  // mode, owner or xattrs are not as wanted
  };
  // Content, mode, owner and kind of every path. kIo when one is wrong and it was us.
  // `stop` as above.
  Result<Verified> Verify(Way way, const std::function<bool()>& stop = {});
  // Both; side by side where there is much to do.
  Result<Verified> FlushAndVerify(Way way, const std::function<bool()>& stop = {});

  // After an interruption, before anything else moves: content and attributes of the
  // side before that the store cannot give (any more). All of it is read. An error says
  // nothing of them.
  struct Unreadable {
    size_t index;  // into the journal's changes
    ObjectId id;
    bool operator==(const Unreadable&) const = default;
  };
  Result<std::vector<Unreadable>> FindUnreadable();
  // Stores those again of which the staging directory or, with `in_tree`, the tree has
  // what is missing: what was displaced is then all there is of it. The others are
  // returned. Whoever publishes `writer` may go on.
  Result<std::vector<Unreadable>> StoreAgain(const std::vector<Unreadable>& unreadable,
                                             BatchWriter& writer, bool in_tree);

  const std::string& PathOf(size_t index) const;

  // What was found in the staging directory that is neither side: now in `sink`.
  struct Found {
    size_t index;  // into the journal's changes
    PathState state;
    bool half_written = false;  // before the interruption; not an edit
  };
  Result<std::vector<Found>> Settle(ScanSink& sink);
  // Displaced files that another program still has open for writing.
  const std::vector<std::string>& held_open() const { return held_open_; }
  // Directories that could not go because something new is in them.
  const std::vector<std::string>& left() const { return left_; }
  // Of the way back: paths where others are in the way. Theirs stays; what was there is
  // in the safety checkpoint.
  const std::vector<std::string>& theirs() const { return theirs_; }
  // Of Settle() and RemoveStage(): where directories of others are now that had come
  // into the staging directory.
  const std::vector<std::string>& given_back() const { return given_back_; }

  // Removes the staging directory and all in it but the directories of others, which
  // are put back into the tree.
  Status RemoveStage();

 private:
  struct Print {  // of what we wrote
    uint64_t ino = 0, size = 0;
    int64_t mtime_ns = 0;
    bool operator==(const Print&) const = default;
  };
  using Maybe = std::optional<PathState>;
  enum class Wrong : uint8_t { kNothing, kChanged, kAttributes };

  Status OpenStage(bool create);
  Result<Name> NewSlot(size_t index);
  Result<std::optional<Name>> FindSlot(size_t index, const PathState& wanted);
  Result<Name> Prepare(size_t index, const PathState& wanted);
  Status ReadWanted(const PathState& wanted,
                    const std::function<Status(ByteSpan)>& take);
  Status Overwrite(const Fd& file, const PathState& wanted);
  Status Fill(size_t index, const Fd& file, const PathState& wanted);
  bool MayHaveHoles(const PathState& wanted) const;
  Result<bool> IsHalfWritten(size_t index, const Looked& looked, const Fd& dir,
                             const Name& name);
  Result<bool> PutIfItIs(const ObjectId& id, Looker& looker, const std::string& path,
                         BatchWriter& writer);
  Result<bool> IsTheirs(size_t index, const std::optional<Looked>& there);
  Status SetXattrs(const Fd& file, const ObjectId& wanted);

  Status Displace(size_t index);
  Status CheckDisplaced(size_t index, const Name& slot, RenameHow back);
  void ForgetSlot(size_t index, const Name& slot);
  Status GiveBack(bool anywhere);
  Result<std::optional<std::string>> GiveBackOne(const Name& slot,
                                                 const std::string& path,
                                                 bool anywhere);
  Status RemoveDirectory(size_t index, const Maybe& to);
  Status MakeDirectory(size_t index);
  Status Place(size_t index, const PathState& wanted);
  Status Replace(size_t index, const PathState& from, const PathState& to);
  Result<bool> WriteInPlace(size_t index, const PathState& from, const PathState& to,
                            Looker& looker);
  Status WriteManyInPlace(const std::function<bool()>& stop);
  Status SetAttributes(const std::string& path, const PathState& wanted);
  Status SetModeOf(const std::string& path, uint32_t mode);
  Status SetRootAttributes(const PathState& wanted);
  const Plan::Locked* RootLock() const;
  uint32_t RootModeAtTheEnd() const;
  Result<Wrong> VerifyOne(size_t index, Way way, Looker& looker) const;
  Status LeaveTheirs(size_t index, Status step);
  Status Finish(Way way);
  Status StampDirectory(const std::string& path);

  const Maybe& From(size_t index, Way way) const;
  const Maybe& To(size_t index, Way way) const;
  // This run of ours is the only one there was of this journal, and went one way.
  bool IsFirstRun() const { return runs_ == 1 && !journal_.operation.recovered; }

  Store& store_;
  Fs& fs_;
  const Fd& root_;
  const Journal& journal_;
  Looker looker_;
  Way way_ = Way::kForward;
  Fd stage_;
  bool staged_ = false;  // there was a staging directory
  int runs_ = 0;
  uint64_t next_slot_ = 0;
  std::multimap<size_t, Name> slots_;
  std::mutex mutex_;  // of the next three, while files are written in place
  std::unordered_map<size_t, Print> written_;
  std::unordered_set<uint64_t> torn_;             // inodes that we half wrote
  std::unordered_set<size_t> in_place_;           // their directories are as they were
  std::unordered_map<ObjectId, Bytes> contents_;  // small ones that were read already
  std::unordered_set<ObjectId> unreadable_;       // when it was last asked for
  size_t contents_size_ = 0;
  std::shared_ptr<const HeldContents> known_;
  Filler filler_;
  std::vector<std::string> left_, theirs_, held_open_, given_back_;
};

}  // namespace belay
