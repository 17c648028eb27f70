#pragma once

// Scan looks at a directory and makes its tree: the content of what changed goes to the
// sink, everything else is taken over from the stat cache.
//
// Guarantees
//   * Nothing in the directory is written, and no symlink is followed.
//   * The tree is what a scan without a cache would make of the same files
//     (tests/scan/random_edits), as far as the kernel's time stamps tell changes:
//     stores through a mapping of a page that is dirty already change no time stamp.
//   * What is not covered is not in the tree. Where that is not a rule's doing (too
//     large, unreadable, special, another mount ...) it is listed with the reason; an
//     unreadable file is never taken for an absent one.
//   * What changed at or after the release (ScanRequest::released_ns), by its time
//     stamps or because it is gone from a directory that did, is not in the tree: it is
//     listed as `changed_late`, and the whole is `late`.
//   * A file that changes while it is read is read again, then kept as read last and
//     listed as `changing`.
//
// Steps: Walk (two threads; stat everything known, list directories that changed,
// decide about new names), Capture (two threads; read what changed), Build (trees from
// the leaves up). SaveCache() comes after the batch was acknowledged.
// A few dozen changed files of known directories are read while walking; if it was all
// of them, neither the limit on files nor the time still needed would be known before
// content is stored.
//
// Threads: a Scan is used by one; it starts its own.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "ignore/rules.h"
#include "scan/sink.h"
#include "scan/stat_cache.h"
#include "scan/work_trees.h"
#include "store/object.h"

namespace belay {

struct ScanProgress {
  enum class Step { kWalk, kCapture, kBuild };
  Step step = Step::kWalk;
  uint64_t files = 0;        // seen; of kCapture: read
  uint64_t bytes = 0;        // of kCapture: read
  uint64_t total_files = 0;  // 0 while not known
  uint64_t total_bytes = 0;
};

struct ScanRequest {
  AbsPath root;
  RootId root_id;
  std::shared_ptr<const RuleConfig> rules;
  GitPlaces git;
  // Never entered: protected roots inside this one, and the store itself.
  std::vector<AbsPath> other_roots = {};
  std::optional<AbsPath> store_dir = {};
  // Neither: what was purged and is still there. From the root on, rising.
  std::vector<std::string> purged = {};
  uint64_t max_file_size = uint64_t{512} << 20;
  uint64_t max_files = 2'000'000;
  unsigned threads = 2;
  // Cached content ids count only when they were written under this generation; others
  // are looked up.
  uint64_t generation = 0;
  const Fd* cache_dir = nullptr;  // none: no cache
  // The root is a git directory, and covered with those that lie in it.
  bool gits_own = false;
  // Of capturing git's state, not of the scan: git directories are covered whole.
  bool protect_git = false;
  // Attributes of a directory that cannot be read are an error, not none: what a
  // rollback takes away must be known.
  bool strict = false;
  // Whether the store still has what it had at a batch; otherwise too ids are looked
  // up. None: it has.
  std::function<bool(const BatchPlace&)> still_has = {};
  // When whoever waited for this scan was let go (wall clock, ns); 0: not yet. What has
  // changed since is not the state they wait for: it is left out (kChangedLate).
  const std::atomic<int64_t>* released_ns = nullptr;
  std::function<void(const ScanProgress&)> progress = {};  // called from one thread
};

struct SkippedPath {
  std::string path;
  Skip why = Skip::kNone;
  bool operator==(const SkippedPath&) const = default;
};

struct ScanSummary {
  ObjectId tree;
  uint64_t files = 0;  // regular files and symlinks covered
  uint64_t bytes = 0;
  uint64_t read_files = 0;  // content that was read this time
  uint64_t read_bytes = 0;
  uint64_t listed_dirs = 0;
  uint64_t dirs = 0;
  std::vector<SkippedPath> skipped;  // by path
  // Rule files that are not in the tree themselves, by path, with their content.
  std::vector<RuleBytes> loose_rules;
  // The work tree around the root (path ""), and those nested in it, by path.
  struct AtPath {
    std::string path;
    WorkTreeFacts facts;
  };
  std::vector<AtPath> work_trees;
  // Something changed after the release: this is a part of the state.
  bool late = false;
  // Of the root directory itself; it has no entry in a tree.
  uint32_t mode = 0, uid = 0, gid = 0;
  uint64_t dev = 0, ino = 0;
};

enum class Change : uint8_t { kAdded, kModified, kDeleted };
struct ChangeCounts {
  uint64_t added = 0, modified = 0, deleted = 0;
  uint64_t directories = 0;  // of all of these: empty ones, and changed attributes
  void Add(Change change, bool directory) {
    ++(change == Change::kAdded      ? added
       : change == Change::kModified ? modified
                                     : deleted);
    directories += directory ? 1 : 0;
  }
  uint64_t total() const { return added + modified + deleted; }
  bool operator==(const ChangeCounts&) const = default;
};
using ChangeVisitor = std::function<void(std::string_view path, Change change)>;

class Scan {
 public:
  // kNotFound when the root is gone; kRefused with the largest directories named when
  // there are more files than allowed.
  static Result<std::unique_ptr<Scan>> Run(Fs& fs, Clock& clock, Random& random,
                                           const ScanRequest& request, ScanSink& sink);
  ~Scan();

  const ScanSummary& summary() const { return summary_; }
  // What differs from the tree `base`, which is read from `reader` only where it
  // differs. Zero `base`: everything is added. What is still there and no longer
  // covered is not deleted: nothing is said of it (one look at the disk for each).
  using TreeReader = std::function<Result<Tree>(const ObjectId&)>;
  Result<ChangeCounts> ChangesSince(const ObjectId& base, const TreeReader& read,
                                    const ChangeVisitor& visit = {}) const;
  // After the batch was acknowledged; failing costs the next scan time only.
  // `place`: of that batch.
  Status SaveCache(const BatchPlace& place = {});

 private:
  struct Node;
  struct Worker;
  struct Capture;
  Scan(Fs& fs, Clock& clock, Random& random, const ScanRequest& request,
       ScanSink& sink);

  Status Prepare();
  // --- walk
  Status Walk();
  void StartWalkers();
  void WalkLoop(Worker& worker);
  void WalkBelow(Worker& worker, Node& top);
  void Share(Worker& worker);
  void GiveAway(Worker& worker, size_t depth, size_t count);
  Status Visit(Worker& worker, Node& node, const Fd* above, Fd& own);
  Result<Fd> OpenByPath(const Node& node, const OpenMode& mode);
  Status VisitKnown(Worker& worker, Node& node, const Fd& dir);
  Status VisitListed(Worker& worker, Node& node, const Fd& dir);
  Result<bool> RuleFilesChanged(Node& node, const Fd& dir);
  Result<bool> IsGitsOwn(Node& node, const Fd& dir, const std::vector<DirEntry>& names);
  Status LoadWorkTree(Node& node);
  Status DirXattrs(Node& node, const Fd& dir);
  Result<bool> AttributesLost(const Node& node);
  Result<std::vector<const CacheEntry*>> TakenLate(const Node& node, const Fd& dir,
                                                   const std::vector<DirEntry>& names);
  static bool IsKnownDirectory(const Node& parent, const CacheEntry& entry);
  static void AddChild(Worker& worker, Node& parent, size_t entry, uint64_t block);
  Status AddFile(Worker& worker, Node& node, std::string_view name,
                 const CacheEntry* known, const FileStat& stat);
  DirDraft& DraftOf(Node& node);
  Result<DirRules::Ptr> RulesOf(Node& node);
  bool IsElsewhere(const Node& node, std::string_view name, Skip& why) const;
  bool TakesOver(const CacheEntry& entry, uint64_t print, const Node& node,
                 Status& failed);
  Error TooManyFiles();
  // --- capture
  Status CaptureAtOnce(Worker& worker, const Fd& dir, size_t first, uint64_t bytes);
  Status CaptureAll();
  void CaptureLoop(std::atomic<size_t>& next);
  Status CaptureOne(const Fd& dir, Capture& capture, Bytes& buffer);
  void LeaveOut(Capture& capture, const Error& error);
  Status CaptureFile(const Fd& dir, Capture& capture, Bytes& buffer, bool& again);
  Status CaptureLink(const Fd& dir, Capture& capture, bool& again);
  Result<std::string> CaptureXattrs(const Fd& file);
  // --- build
  Status Build();
  Status BuildNode(Node& node);
  void Report(ScanProgress::Step step);
  bool IsSinceRelease(int64_t time_ns) const;
  bool IsLate(const FileStat& stat);
  bool IsKnownLate(const FileStat& stat);
  bool IsAlone() const;  // nobody waits for it any longer
  bool IsReleased();
  bool IsMoved(const Node& node);
  void SetGone(Node& node);
  static void LeaveOut(CacheEntry& entry, Skip why);
  bool IsStillThere(const std::string& path, bool directory) const;
  void Fail(Error error);
  int64_t Now() { return clock_.WallMillis() * 1'000'000; }

  Fs& fs_;
  Clock& clock_;
  Random& random_;
  const ScanRequest& request_;
  ScanSink& sink_;

  StatCache cache_;
  bool cache_trusted_ = false;  // the store has what it names
  uint64_t key_ = 0;
  uint64_t config_key_ = 0;
  Fd root_fd_;
  uint64_t root_dev_ = 0;
  std::vector<std::string> elsewhere_;  // relative paths of other roots, sorted
  std::string store_below_;             // of the store, "" = not inside
  WorkTreeLoader loader_;

  std::vector<std::unique_ptr<Worker>> workers_;
  Node* root_ = nullptr;
  std::vector<Node*> order_;  // parents before children
  std::vector<Capture> captures_;

  std::mutex rules_mutex_;  // guards Node::rules being made
  std::mutex mutex_;        // guards failed_, and the queue
  struct Queue;
  std::unique_ptr<Queue> queue_;
  std::optional<Error> failed_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> too_many_{false};
  std::atomic<bool> late_{false};
  std::atomic<uint64_t> seen_{0};
  std::atomic<uint64_t> done_files_{0}, done_bytes_{0};
  uint64_t total_bytes_ = 0;
  int64_t reported_ = 0;  // of the thread that runs the scan, the only one to report
  const std::thread::id main_thread_ = std::this_thread::get_id();
  ScanSummary summary_;
};

// The encoding of extended attributes as a blob: sorted by name. Which are kept:
// everything but what the kernel or the machine's policy gives every file anew
// (security.selinux, security.ima, security.evm, system.nfs4_acl and the like).
Bytes EncodeXattrs(const std::vector<std::pair<std::string, Bytes>>& sorted);
Result<std::vector<std::pair<std::string, Bytes>>> DecodeXattrs(ByteSpan bytes);
bool KeepsXattr(std::string_view name);

}  // namespace belay
