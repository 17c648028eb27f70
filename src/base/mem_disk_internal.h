#pragma once

// MemDisk is what MemFs keeps: inodes, and for each what would survive a power cut.
//
// Two histories are kept because the kernel keeps two. The bytes of a file become
// durable by a sync of that file; the entries of a directory by a sync of that
// directory. Both are a durable state plus the ordered operations since, so that
// Crash() can choose which of those reached the platter.
//
// Copying is cheap: file content is shared between copies until one of them writes.
//
// Threads: none of its own; MemFs locks.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fs.h"
#include "base/random.h"

namespace belay::mem {

using Ino = uint64_t;
inline constexpr Ino kRoot = 1;

struct DataOp {
  bool truncate = false;
  uint64_t at = 0;                     // offset of a write, size of a truncation
  std::shared_ptr<const Bytes> bytes;  // shared with copies of the disk
};

struct Meta {
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  int64_t mtime_ns = 0;
  std::map<std::string, Bytes> xattrs;
};

struct LockHolder {
  const void* owner = nullptr;  // the open file description; compared, never followed
  LockMode mode = LockMode::kShared;
};

using Entries = std::map<std::string, Ino, std::less<>>;

struct Inode {
  FileType type = FileType::kRegular;
  Meta meta;
  Meta durable_meta;
  int64_t ctime_ns = 0;
  uint32_t nlink = 0;  // of a directory: 2 while it exists, else 0
  uint32_t opens = 0;
  bool mount_root = false;
  bool immutable = false;

  // Regular files. `data` is written in place only when `data_is_own`.
  std::shared_ptr<Bytes> data;
  std::shared_ptr<Bytes> durable_data;
  mutable bool data_is_own = false;
  std::vector<DataOp> unsynced;

  std::string target;  // symlinks

  Entries entries;  // directories
  Entries durable_entries;
  Ino parent = 0;

  std::map<uint64_t, std::vector<LockHolder>> locks;

  bool is_dir() const { return type == FileType::kDirectory; }
  uint64_t size() const {
    return type == FileType::kSymlink ? target.size() : data ? data->size() : 0;
  }
};

// One entry of one directory set to an inode, or removed (0).
struct Assignment {
  Ino dir = 0;
  std::string name;
  Ino ino = 0;
};

// One atomic change of the namespace: one assignment, or the two of a rename.
struct NameOp {
  Assignment first;
  Assignment second;  // dir 0: none
};

enum class CrashKind { kKeepAll, kDropUnsynced, kTear };

class MemDisk {
 public:
  MemDisk();
  // A copy without handles and locks; shares file content with this one.
  MemDisk(const MemDisk& other);
  MemDisk& operator=(const MemDisk&) = delete;

  Inode* Find(Ino ino);
  Inode& At(Ino ino);                                         // must exist
  Ino Lookup(const Inode& dir, std::string_view name) const;  // 0: absent

  Ino NewInode(FileType type, const Meta& meta, int64_t now);
  // Performs a change of the namespace; it stays unsynced until SyncDir. Link counts
  // are the caller's.
  void Apply(NameOp op);
  void Write(Inode& file, uint64_t offset, ByteSpan bytes);
  void Truncate(Inode& file, uint64_t size);

  void SyncData(Inode& node);
  void SyncMeta(Inode& node);
  // Everything that happened to this directory, and what must have happened before it:
  // a rename between two directories is durable in both or in none.
  void SyncDir(Ino dir);
  // All of the above, for all there is.
  void SyncAll();

  void Crash(CrashKind kind, uint64_t seed);
  // Forgets inodes that neither a name, nor a durable name, nor a handle can reach.
  void Collect();

  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t used_inodes() const { return used_inodes_; }
  // Called when a name or handle of `ino` went away: frees its space when it was the
  // last.
  void MaybeRelease(Ino ino);

 private:
  void Assign(Entries Inode::*which, const Assignment& to);
  void ApplyTo(Entries Inode::*which, const NameOp& op);
  Bytes& OwnData(Inode& file);
  static void TearData(Inode& file, Random& random);
  void TearNames(Random& random);
  void Recount();

  std::map<Ino, Inode> inodes_;
  std::vector<NameOp> unsynced_names_;
  Ino next_ino_ = kRoot;
  uint64_t used_bytes_ = 0;
  uint64_t used_inodes_ = 0;
  size_t orphans_ = 0;
};

}  // namespace belay::mem
