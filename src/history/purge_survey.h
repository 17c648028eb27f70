#pragma once

// PurgeSurvey: which content a path of a root had in all of its history, and who else
// has it. Trees that hold none of it are looked at once; depth costs memory, no stack.
//
// Threads: one. Packs are kept from being taken away by the caller.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "history/purge.h"
#include "store/inventory.h"

namespace belay {

class PurgeSurvey {
 public:
  // A path that was purged before, by the record with the number `seq`: what older
  // records have under it is no reason to keep anything.
  struct PurgedPath {
    std::string path;
    uint64_t seq = 0;
  };
  using PurgedPaths = std::unordered_map<RootId, std::vector<PurgedPath>>;

  // `log` must outlive it and may be read on.
  PurgeSurvey(Store& store, const LogView& log, std::string path,
              std::unordered_set<RootId> roots, PurgedPaths purged_before)
      : store_(store),
        log_(log),
        path_(std::move(path)),
        roots_(std::move(roots)),
        purged_before_(std::move(purged_before)) {}

  // All records of the log; what cannot be read stops it.
  Status Run();
  // One more, that somebody else published since: false when it has content of ours.
  Result<bool> LookAtOther(const LogRecord& record);

  struct Content {
    std::string path;  // one under which it was
    uint64_t size = 0;
    std::vector<ObjectId> chunks = {};
  };
  struct Place {
    RootId root;
    std::string path;
    bool purged = false;  // before, and only records older than that have it there
    auto operator<=>(const Place&) const = default;
  };
  const std::map<ObjectId, Content>& mine() const { return mine_; }
  // Of content that went with an earlier purge: the chunks that stayed for the sake of
  // others, and are there. `size` is theirs.
  const std::map<ObjectId, Content>& remains() const { return remains_; }
  // Who else has a content, or a chunk of one.
  const std::map<ObjectId, std::set<Place>>& others() const { return others_; }
  // Contents of others that are made of a chunk of ours.
  const std::map<ObjectId, std::set<ObjectId>>& wholes() const { return wholes_; }
  const std::set<std::string>& paths() const { return paths_; }
  // None of what is not kept as chunks.
  Result<std::vector<ObjectId>> ChunksOf(const ObjectId& id);
  // Of all roots: that have any of these contents, which are ours or made of ours.
  Result<uint64_t> CountCheckpoints(const std::unordered_set<ObjectId>& contents);
  bool links() const { return links_; }
  // Git directories that are covered whole (git.protect) may hold it, in objects that
  // cannot be told apart: all of them are ours.
  bool git_copies() const { return !git_mine_.empty(); }
  // Content that is mine because a copy of a git directory holds it.
  const std::unordered_set<ObjectId>& git_mine() const { return git_mine_; }
  // The same, and they stay: nothing else is known of the path.
  bool git_may_hold() const { return git_may_hold_; }
  // Where these git directories are, from the root on.
  std::set<std::string> git_paths() const;

 private:
  // The record that is looked at no longer has it: it was purged since.
  bool IsGone(const ObjectId& content) const;
  bool IsOurs(const RootId& root, std::string_view path) const;
  // The path is absolute: of files outside of the root that edit tools named.
  bool IsOutside() const { return path_.starts_with('/'); }
  bool WasPurged(const RootId& root, std::string_view path) const;
  Status FindMine(const LogRecord& record);
  Status MineInState(const ObjectId& state);
  Status MineBelow(const ObjectId& tree, const std::string& path);
  Status MineInEntry(const TreeEntry& entry, const std::string& path);
  Status AddMine(const ObjectId& id, const std::string& path, uint64_t size);
  Status AddRemains(const ObjectId& id, const std::string& path);
  Status MineInChanges(const ObjectId& node);
  Status MineInRules(const ObjectId& node);
  Status MineInGit(const ObjectId& node);
  Status MineInGitDirs();

  // The contents and chunks of ours that a file with this content has.
  static constexpr uint64_t kUnknownSize = UINT64_MAX;
  Result<std::vector<ObjectId>> Common(const ObjectId& id, uint64_t size);
  Result<bool> HasAny(const ObjectId& tree);
  using Memo = std::unordered_map<ObjectId, bool>;  // by tree
  using EntryTest = std::function<Result<bool>(const TreeEntry&)>;
  Result<bool> AnyBelow(const ObjectId& tree, Memo& memo, const EntryTest& has);
  Result<bool> HasOneOf(const ObjectId& tree,
                        const std::unordered_set<ObjectId>& contents, Memo& memo);
  Status OthersInRecord(const LogRecord& record);
  Status OthersInTree(const RootId& root, const ObjectId& tree);
  Status OthersInEntry(const RootId& root, const TreeEntry& entry,
                       const std::string& path);
  Status OthersInNode(const RootId& root, const ObjectId& node);
  void AddOther(const ObjectId& id, const RootId& root, const std::string& path) {
    if (roots_.contains(root) && git_mine_.contains(id)) return;
    if (!IsGone(id)) others_[id].insert({root, path, WasPurged(root, path)});
  }

  Store& store_;
  const LogView& log_;
  uint64_t seq_ = 0;  // of the record that is looked at
  const std::string path_;
  const std::unordered_set<RootId> roots_;
  const PurgedPaths purged_before_;
  std::map<ObjectId, Content> mine_;
  std::map<ObjectId, Content> remains_;
  std::unordered_set<ObjectId> chunks_;  // of all of ours
  // By content: what purges wrote down.
  std::unordered_map<ObjectId, std::set<ObjectId>> kept_chunks_;
  std::map<ObjectId, std::set<Place>> others_;
  std::map<ObjectId, std::set<ObjectId>> wholes_;
  std::set<std::string> paths_;
  bool links_ = false;

  std::unordered_set<ObjectId> states_looked_at_;
  std::unordered_set<ObjectId> git_looked_at_;
  // Trees of git directories, with their paths; and the objects in them.
  std::set<std::pair<ObjectId, std::string>> git_dirs_;
  std::unordered_set<ObjectId> git_mine_;
  bool git_may_hold_ = false;
  std::set<std::pair<ObjectId, std::string>> walked_mine_;
  Memo has_any_;
  std::unordered_map<ObjectId, std::vector<ObjectId>> common_;
  std::set<std::tuple<RootId, ObjectId, std::string>> walked_;  // only trees that have
  std::set<std::pair<RootId, ObjectId>> nodes_;
};

}  // namespace belay
