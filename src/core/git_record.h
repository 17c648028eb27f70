#pragma once

// The git record of a state: what each repository of a root needs so that branch,
// commits and the split into staged and unstaged come back exactly.
//
// One entry a repository: the one whose work tree is the root, and those nested in it.
// Of each: HEAD, the index as it is (with its time, by which git tells what it must
// look at again), the files of an operation under way, branches, tags and stash, and
// the content that only the index names. Layout: docs/format.md, "Git record".
//
// Guarantees
//   * Capturing reads files; nothing in a git directory changes and no lock is taken.
//     Git is asked (hardened) in one case: for packed content that only the index may
//     name, in a root's first checkpoint, and when something of that kind was staged
//     while HEAD stayed.
//   * Two records are equal when nothing differs that people see: an index that was
//     only refreshed, refs that were only packed, keep the record.
//   * What the rules leave out of a tree (purged paths, secrets that are skipped, what
//   is
//     too large) is not taken from the index either.
//   * A repository that cannot be read in full is in the record all the same, with the
//     reason (`trouble`); it is never taken for one without changes.

#include <optional>
#include <string>
#include <vector>

#include "core/git_whole.h"
#include "git/index_entries.h"
#include "git/object_ids.h"
#include "git/state_files.h"
#include "scan/scan.h"
#include "store/heads.h"

namespace belay {

// A file of git's, by its name in the git directory.
struct GitKept {
  std::string name;
  ObjectId id;
  uint64_t size = 0;
  uint32_t mode = 0;
  bool operator==(const GitKept&) const = default;
};

struct GitRepoRecord {
  std::string path;  // of the work tree, from the root on; "": the root itself
  GitHash hash = GitHash::kSha1;
  bool linked = false;  // a linked work tree: refs and stash are shared
  bool above = false;   // the top of the work tree is above the root
  // The common git directory where it lies outside of the root; empty as a rule.
  std::string elsewhere;
  std::string head_ref;     // "refs/heads/main"; empty: detached
  std::string head;         // commit, hex; empty: none yet
  std::string in_progress;  // "merge", "rebase", ...
  // Of a detached HEAD: where its log says that it came to, "COMMIT NAME"; git tells
  // people "detached from NAME" by it.
  std::string detached;
  std::vector<GitKept> own;  // in the git directory, by name; HEAD among them
  std::optional<GitKept> index;
  int64_t index_mtime_ns = 0;
  Hash256 index_digest;  // IndexEntries::digest
  Hash256 unmerged;      // of those entries that are; zero: none
  std::optional<GitKept> stash_log;
  ObjectId refs;     // content: RefsText(); zero: none
  ObjectId objects;  // a tree whose names are git's objects, in hex; zero: none
  std::string trouble;
  // Of an operation's record: there was no repository, and `whole` is what was at its
  // place.
  bool absent = false;
  GitWhole whole;  // with git.protect
  bool operator==(const GitRepoRecord&) const = default;
};

struct GitRecord {
  std::vector<GitRepoRecord> repositories;  // by path
  const GitRepoRecord* Find(std::string_view path) const;
  bool operator==(const GitRecord&) const = default;
};

Node EncodeGitRecord(const GitRecord& record);
Result<GitRecord> DecodeGitRecord(const Node& node);

// Of a state; empty when it has none (no repository, or made before there were any).
Result<GitRecord> LoadGitRecord(Store& store, const ObjectId& git);
Result<GitRefs> LoadGitRefs(Store& store, const GitRepoRecord& record);
// Named by git's object in hex, rising: its content.
Result<Tree> LoadGitObjects(Store& store, const GitRepoRecord& record);

// What the index of a record names, shared part included; of a split one in no order.
Result<std::vector<NamedEntry>> LoadGitIndex(Store& store, const GitRepoRecord& record);

// The objects that the index of a record names, in no order, some of them often. It is
// read in pieces, but for a split one. After an error some were named.
Status VisitGitIndexIds(Store& store, const GitRepoRecord& record,
                        const std::function<void(ByteSpan)>& each);

// What a person would say changed in git from one to the other: "main moved to
// abc1234"; empty when nothing did.
std::string DescribeGitChange(const GitRecord& before, const GitRecord& now);

// Reads what the repositories that a scan met are like now.
class GitCapture {
 public:
  // `request`: of the scan; what it leaves out (purged paths, secrets that are skipped,
  // what is too large) is not kept from the index either. Everything must outlive it.
  GitCapture(Store& store, const ScanRequest& request)
      : store_(store),
        request_(request),
        wholes_(store.fs(), store.clock(), store.random(), request) {}

  // The record's id, its bytes and all it refers to being in `writer` or stored; zero
  // when there is no repository. `last`: the checkpoint before, whose record is built
  // upon. Without a writer, for whoever only looks, `sink` may only hash.
  Result<ObjectId> Run(const ScanSummary& scan, BatchWriter* writer, ScanSink& sink,
                       const std::optional<Heads::Last>& last, int64_t released_ns);
  // After the batch was acknowledged. Failing costs the next one time only.
  void SaveCache(const BatchPlace& place);

  const GitRecord& record() const { return record_; }

 private:
  struct Cached {
    Hash256 print;
    Bytes node;
  };
  std::optional<Cached> LoadCache();
  Result<GitRepoRecord> Capture(const std::string& path,
                                const GitRepository& repository, const GitLook& look,
                                bool above, const GitRepoRecord* before,
                                ScanSink& sink);

  Hash256 RulesPrint() const;
  // `blobs`: sorted. `tree`: IndexEntries::tree. `now`: HEAD and the index are known.
  Result<ObjectId> KeepObjects(const GitRepository& repository, GitIds blobs,
                               const std::string& tree, const GitRepoRecord& now,
                               const GitRepoRecord* before, ScanSink& sink);

  Store& store_;
  // Leaves it as `before` has it when nothing else changed: what is named is there.
  Status TakeWhole(const GitRepository& repository, const GitRepoRecord* before,
                   BatchWriter& writer, ScanSink& sink, GitRepoRecord& repo);

  const ScanRequest& request_;
  GitWholeCapture wholes_;
  GitRecord record_;
  std::optional<Cached> fresh_;  // to be saved
};

}  // namespace belay
