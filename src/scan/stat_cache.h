#pragma once

// StatCache remembers what a root's directories held at its last checkpoint, so that
// the next one reads only what changed.
//
// Guarantees
//   * It is a hint. Whatever is missing, damaged, torn by a kill or a power cut, or
//     written under another store generation is not used; the scan then looks at the
//     disk. Every block carries a hash of itself, since one flipped bit in a content id
//     would silently make a wrong tree.
//   * It is written only after the batch that its ids rely on was acknowledged.
//   * A checkpoint after ten edits rewrites the blocks of the directories they touched,
//     in place; a block that grew goes to the end, and the file is written anew when
//     half of it is such remains.
//
// One block a directory: a head, its entries rising by name, their strings. A scan
// reads the file in one go: at 100,000 files 9 MB, 2 ms beside 200 ms of statx; mapping
// it would not go through Fs. Bytes are the machine's own: the file never leaves it.
// Layout: docs/format.md, "cache/".
//
// Processes: whoever saves holds the root's lock (core/root_lock.h). Threads: Find from
// any.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.h"
#include "base/ids.h"
#include "base/sha256.h"
#include "store/batch_place.h"
#include "store/relied_on.h"

namespace belay {

// Why a path is not covered; the words are those of `belay why --json`.
enum class Skip : uint8_t {
  kNone = 0,
  kTooLarge = 1,
  kSpecial = 2,
  kUnreadable = 3,
  kGitDir = 4,
  kOtherMount = 5,
  kOtherRoot = 6,     // a protected root of its own
  kReserved = 7,      // a name that would be taken for .git elsewhere
  kChanging = 8,      // covered, but it changed each time it was read
  kIgnored = 9,       // kept here only because its content decides about others
  kSecret = 10,       // secrets = "skip"
  kChangedLate = 11,  // changed after whoever waited for the scan was let go
  kReplaced = 12,     // it became something else while it was read
  kPurged = 13,       // it was purged, and is no longer to be stored
  // A directory that is covered, but its extended attributes could not be read. The
  // tree has those that were known last, or none.
  kNoAttributes = 14,
};
std::string_view SkipName(Skip why);  // "too_large"
// Something of it is in the tree all the same.
constexpr bool IsHeld(Skip why) {
  return why == Skip::kChanging || why == Skip::kNoAttributes;
}

enum class CacheKind : uint8_t { kNone = 0, kFile = 1, kSymlink = 2, kDirectory = 3 };

struct CacheEntry {
  static constexpr uint8_t kRacy = 1;        // may have changed within the clock's tick
  static constexpr uint8_t kRuleFile = 2;    // .gitignore, .belayignore, .git
  static constexpr uint8_t kRestricted = 4;  // entered only for tracked or protected

  uint64_t print = 0;  // Fingerprint() of the file; of a directory: 0
  uint64_t size = 0;   // of a directory: where its block is, 0 = nowhere
  ObjectId id;         // content, or the tree it had
  uint32_t name_at = 0;
  uint32_t aux_at = 0;  // target of a symlink, id of the xattrs; within the strings
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint16_t mode = 0;
  uint16_t aux_length = 0;
  uint8_t name_length = 0;
  CacheKind kind = CacheKind::kNone;
  uint8_t flags = 0;
  Skip why = Skip::kNone;

  bool covered() const { return kind != CacheKind::kNone; }
  bool has(uint8_t flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(CacheEntry) == 72);

struct BlockHead {
  static constexpr uint32_t kMagic = 0x72694442;  // "BDir"
  static constexpr uint32_t kRacy = 1;            // the directory itself
  static constexpr uint32_t kHasRuleFiles = 2;
  static constexpr uint32_t kWorkTreeTop = 4;
  static constexpr uint32_t kHasSkipped = 8;
  static constexpr uint32_t kIndexRacy = 16;
  // A rule file changed between being obeyed and being recorded: decide anew.
  static constexpr uint32_t kRulesRacy = 32;

  uint32_t magic = kMagic;
  uint32_t room = 0;  // bytes of the block on disk; a multiple of 8
  uint64_t check = 0;
  uint64_t generation = 0;
  uint64_t print = 0;  // Fingerprint() of the directory
  uint32_t entry_count = 0;
  uint32_t strings_length = 0;
  uint32_t flags = 0;
  uint32_t unused = 0;
  uint64_t files = 0;  // of this directory alone
  uint64_t bytes = 0;
  ObjectId tree;
  // Of a work tree's top: what git's side of the rules and the set of tracked names
  // looked like.
  uint64_t git_key = 0;
  uint64_t index_print = 0;
  uint64_t index_names = 0;
};
static_assert(sizeof(BlockHead) == 120);

// One directory, borrowed: from the cache file or from a DirDraft.
struct DirView {
  const BlockHead* head = nullptr;
  std::span<const CacheEntry> entries;
  std::string_view strings;

  // NUL-terminated.
  std::string_view NameOf(const CacheEntry& e) const {
    return strings.substr(e.name_at, e.name_length);
  }
  std::string_view AuxOf(const CacheEntry& e) const {
    return strings.substr(e.aux_at, e.aux_length);
  }
  const CacheEntry* Find(std::string_view name) const;
};

// One directory being made.
struct DirDraft {
  BlockHead head;
  std::vector<CacheEntry> entries;
  std::string strings;

  DirView view() const { return {&head, entries, strings}; }
  static DirDraft Copy(const DirView& view);
  // Puts `name` (and `aux`) into the strings and the entry at the end.
  void Add(CacheEntry entry, std::string_view name, std::string_view aux);
  void SetAux(CacheEntry& entry, std::string_view aux);
  size_t encoded_size() const;
};

class StatCache {
 public:
  // The file of `root` in `dir` (cache/ of the store); empty when there is none that
  // can be used. Never fails: a cache that cannot be read is no cache.
  static StatCache Load(Fs& fs, const Fd& dir, const RootId& root);
  static Name DirName() { return Name::Literal("cache"); }  // in the store
  static Name FileName(const RootId& root);

  bool empty() const { return head_.root_block == 0; }
  uint64_t root_block() const { return head_.root_block; }
  uint64_t config_key() const { return head_.config_key; }
  uint64_t key() const { return head_.key; }  // for fingerprints
  const ObjectId& tree() const { return head_.tree; }
  BatchPlace place() const;
  uint64_t size() const { return size_; }
  // Nothing when there is no whole block at `offset`.
  std::optional<DirView> Find(uint64_t offset) const;

  // What Save() is given: every directory of the scan, parents before children.
  struct Dir {
    uint64_t block = 0;         // where it is now; 0 = nowhere
    DirDraft* draft = nullptr;  // what is new; null: as it is
    uint32_t parent = 0;        // index in the list
    uint32_t entry = 0;         // of this directory in the parent's view
  };
  struct About {
    RootId root;
    uint64_t generation = 0;
    uint64_t config_key = 0;
    ObjectId tree;
    uint64_t key = 0;       // fingerprints were made with it
    BatchPlace place = {};  // the ids are in the store while this batch is
  };
  // Brings the file up to date. A failure leaves blocks that are old or not whole,
  // which costs the next scan time and nothing else.
  Status Save(Fs& fs, const Fd& dir, const About& about, std::vector<Dir>& dirs);

 private:
  struct Head {
    char magic[8] = {'B', 'E', 'L', 'A', 'Y', 'S', 'C', '2'};
    uint32_t order = 0x01020304;
    uint32_t unused = 0;
    std::array<std::byte, 16> root{};
    uint64_t key = 0;
    uint64_t root_block = 0;
    uint64_t config_key = 0;
    uint64_t live = 0;  // bytes of blocks in use, about
    ObjectId tree;
    std::array<std::byte, 16> pack{};
    uint64_t batch = 0;
    Hash256 body_hash{};
    uint64_t check = 0;
  };
  // The store looks for the batch where it has lost its tail: store/relied_on.h.
  static_assert(sizeof(Head) == kCacheHeadSize && offsetof(Head, key) == kCacheKeyAt &&
                offsetof(Head, pack) == kCachePackAt &&
                offsetof(Head, batch) == kCacheBatchAt &&
                offsetof(Head, body_hash) == kCacheBodyHashAt &&
                offsetof(Head, check) == kCacheCheckAt);
  static void Put(const BatchPlace& place, Head& head);

  Status SaveInPlace(Fs& fs, const Fd& dir, const About& about, std::vector<Dir>& dirs);
  Status SaveWhole(Fs& fs, const Fd& dir, const About& about, std::vector<Dir>& dirs);
  void Seal(Head& head) const;
  ByteSpan bytes() const {
    return {reinterpret_cast<const std::byte*>(data_.get()), size_};
  }

  Head head_;
  std::unique_ptr<uint64_t[]> data_;  // the file, aligned
  size_t size_ = 0;
};

// Everything stat tells that changes when a file is written, replaced, moved, or has
// its attributes changed. Keyed, so that no file can be made to fit another's.
uint64_t Fingerprint(const FileStat& stat, uint64_t key);

// True when a change after `stat` was taken might leave the very same times: they are
// not safely older than the moment `now_ns` at which it was taken. Kernels stamp files
// with a clock that moves every 1-10 ms; some file systems with one that moves every
// 1-2 s (their nanoseconds are always zero).
bool IsRacy(const FileStat& stat, int64_t now_ns);

}  // namespace belay
