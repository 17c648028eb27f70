#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/mem_disk_internal.h"

namespace belay::mem {

MemDisk::MemDisk() {
  Meta meta;
  meta.mode = 0755;
  Ino root = NewInode(FileType::kDirectory, meta, 0);
  BELAY_CHECK(root == kRoot);
  At(root).parent = root;
}

MemDisk::MemDisk(const MemDisk& other)
    : unsynced_names_(other.unsynced_names_), next_ino_(other.next_ino_) {
  for (const auto& [ino, node] : other.inodes_) {
    node.data_is_own = false;  // both now share it
    Inode& copy = inodes_.emplace_hint(inodes_.end(), ino, node)->second;
    copy.opens = 0;
    copy.locks.clear();
  }
  Recount();
}

Inode* MemDisk::Find(Ino ino) {
  auto it = inodes_.find(ino);
  return it == inodes_.end() ? nullptr : &it->second;
}

Inode& MemDisk::At(Ino ino) {
  Inode* node = Find(ino);
  BELAY_CHECK(node != nullptr);
  return *node;
}

Ino MemDisk::Lookup(const Inode& dir, std::string_view name) const {
  auto it = dir.entries.find(name);
  return it == dir.entries.end() ? 0 : it->second;
}

Ino MemDisk::NewInode(FileType type, const Meta& meta, int64_t now) {
  Ino ino = next_ino_++;
  Inode& node = inodes_[ino];
  node.type = type;
  node.meta = meta;
  node.durable_meta = meta;
  node.ctime_ns = now;
  node.nlink = type == FileType::kDirectory ? 2 : 1;
  if (type == FileType::kRegular) {
    node.data = std::make_shared<Bytes>();
    node.durable_data = node.data;
  }
  ++used_inodes_;
  return ino;
}

// --- namespace -----------------------------------------------------------------------

void MemDisk::Assign(Entries Inode::*which, const Assignment& to) {
  Inode* dir = Find(to.dir);
  if (dir == nullptr) return;  // a directory that is gone for good
  if (to.ino == 0)
    (dir->*which).erase(to.name);
  else
    (dir->*which)[to.name] = to.ino;
}

void MemDisk::ApplyTo(Entries Inode::*which, const NameOp& op) {
  Assign(which, op.first);
  if (op.second.dir != 0) Assign(which, op.second);
}

void MemDisk::Apply(NameOp op) {
  ApplyTo(&Inode::entries, op);
  unsynced_names_.push_back(std::move(op));
}

void MemDisk::SyncDir(Ino dir) {
  // Backwards, so that a rename taken along pulls in what came before it in its other
  // directory.
  std::set<Ino> needed = {dir};
  std::vector<bool> taken(unsynced_names_.size());
  for (size_t i = unsynced_names_.size(); i-- > 0;) {
    const NameOp& op = unsynced_names_[i];
    if (!needed.contains(op.first.dir) && !needed.contains(op.second.dir)) continue;
    taken[i] = true;
    needed.insert(op.first.dir);
    if (op.second.dir != 0) needed.insert(op.second.dir);
  }
  std::vector<NameOp> left;
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i])
      ApplyTo(&Inode::durable_entries, unsynced_names_[i]);
    else
      left.push_back(std::move(unsynced_names_[i]));
  }
  unsynced_names_ = std::move(left);
}

// --- bytes ---------------------------------------------------------------------------

Bytes& MemDisk::OwnData(Inode& file) {
  if (!file.data_is_own) {
    file.data = std::make_shared<Bytes>(*file.data);
    file.data_is_own = true;
  }
  return *file.data;
}

void MemDisk::Write(Inode& file, uint64_t offset, ByteSpan bytes) {
  Bytes& data = OwnData(file);
  size_t end = static_cast<size_t>(offset) + bytes.size();
  if (end > data.size()) {
    used_bytes_ += end - data.size();
    data.resize(end);
  }
  std::copy(bytes.begin(), bytes.end(), data.begin() + static_cast<ptrdiff_t>(offset));
  file.unsynced.push_back(
      {false, offset, std::make_shared<const Bytes>(bytes.begin(), bytes.end())});
}

void MemDisk::Truncate(Inode& file, uint64_t size) {
  Bytes& data = OwnData(file);
  used_bytes_ += size;
  used_bytes_ -= data.size();
  data.resize(static_cast<size_t>(size));
  file.unsynced.push_back({true, size, nullptr});
}

void MemDisk::SyncData(Inode& node) {
  if (node.type != FileType::kRegular) return;
  node.durable_data = node.data;
  node.data_is_own = false;
  node.unsynced.clear();
}

void MemDisk::SyncMeta(Inode& node) { node.durable_meta = node.meta; }

void MemDisk::SyncAll() {
  for (auto& [ino, node] : inodes_) {
    SyncData(node);
    SyncMeta(node);
  }
  for (auto& [ino, node] : inodes_)
    if (node.is_dir()) SyncDir(ino);
}

// --- space ---------------------------------------------------------------------------

void MemDisk::MaybeRelease(Ino ino) {
  Inode& node = At(ino);
  if (node.nlink > 0 || node.opens > 0) return;
  --used_inodes_;
  if (node.type == FileType::kRegular) used_bytes_ -= node.size();
  // The inode itself stays: a power cut may bring its name back.
  constexpr size_t kCollectAfter = 256;
  if (++orphans_ > kCollectAfter) Collect();
}

void MemDisk::Collect() {
  std::set<Ino> reachable = {kRoot};
  for (const auto& [ino, node] : inodes_) {
    if (node.opens > 0) reachable.insert(ino);
    for (const auto& [name, to] : node.entries) reachable.insert(to);
    for (const auto& [name, to] : node.durable_entries) reachable.insert(to);
  }
  for (const NameOp& op : unsynced_names_) {
    reachable.insert(op.first.ino);
    reachable.insert(op.second.ino);
  }
  std::erase_if(inodes_,
                [&](const auto& item) { return !reachable.contains(item.first); });
  orphans_ = 0;
}

// Link counts and space from the names there are.
void MemDisk::Recount() {
  used_bytes_ = 0;
  used_inodes_ = 0;
  orphans_ = 0;
  std::vector<Ino> todo = {kRoot};
  for (auto& [ino, node] : inodes_) node.nlink = 0;
  while (!todo.empty()) {
    Ino at = todo.back();
    todo.pop_back();
    Inode& dir = At(at);
    dir.nlink = 2;
    ++used_inodes_;
    for (const auto& [name, ino] : dir.entries) {
      Inode& node = At(ino);
      if (node.is_dir()) {
        node.parent = at;
        todo.push_back(ino);
      } else if (++node.nlink == 1) {
        ++used_inodes_;
        if (node.type == FileType::kRegular) used_bytes_ += node.size();
      }
    }
  }
}

// --- the power cut -------------------------------------------------------------------

namespace {

constexpr size_t kSector = 512;

void Put(Bytes& data, uint64_t offset, ByteSpan bytes) {
  if (bytes.empty()) return;
  size_t end = static_cast<size_t>(offset) + bytes.size();
  if (end > data.size()) data.resize(end);
  std::copy(bytes.begin(), bytes.end(), data.begin() + static_cast<ptrdiff_t>(offset));
}

// The whole sectors of a write that reached the platter, each by a coin: a device with
// a cache keeps no order inside one request.
void PutSectors(Bytes& data, uint64_t offset, ByteSpan bytes, Random& random) {
  while (!bytes.empty()) {
    size_t step =
        std::min(kSector - static_cast<size_t>(offset % kSector), bytes.size());
    if (random.Below(2) == 0) Put(data, offset, bytes.first(step));
    offset += step;
    bytes = bytes.subspan(step);
  }
}

void TearWrite(Bytes& data, const DataOp& op, Random& random) {
  ByteSpan bytes = *op.bytes;
  switch (random.Below(8)) {
    case 0:
    case 1:
      Put(data, op.at, bytes);
      return;
    case 2:
    case 3:
      return;  // lost
    case 4: {  // cut at a sector
      uint64_t end = op.at + random.Below(bytes.size() + 1);
      end = std::max(op.at, end / kSector * kSector);
      Put(data, op.at, bytes.first(static_cast<size_t>(end - op.at)));
      return;
    }
    case 5:  // cut anywhere
      Put(data, op.at,
          bytes.first(static_cast<size_t>(random.Below(bytes.size() + 1))));
      return;
    case 6:
      PutSectors(data, op.at, bytes, random);
      return;
    default:  // the size was written, the data not
      if (op.at + bytes.size() > data.size())
        data.resize(static_cast<size_t>(op.at) + bytes.size());
      return;
  }
}

}  // namespace

void MemDisk::TearData(Inode& file, Random& random) {
  auto data = std::make_shared<Bytes>(*file.durable_data);
  for (const DataOp& op : file.unsynced) {
    if (!op.truncate)
      TearWrite(*data, op, random);
    else if (random.Below(2) == 0)
      data->resize(static_cast<size_t>(op.at));
  }
  file.durable_data = std::move(data);
}

// A random prefix of what happened to each directory. A rename between two directories
// happens when both prefixes include it; when it does not, both end before it.
void MemDisk::TearNames(Random& random) {
  std::map<Ino, uint64_t> left;  // how many more operations this directory takes
  for (const NameOp& op : unsynced_names_) {
    ++left[op.first.dir];
    if (op.second.dir != 0 && op.second.dir != op.first.dir) ++left[op.second.dir];
  }
  for (auto& [dir, count] : left) count = random.Below(count + 1);
  for (const NameOp& op : unsynced_names_) {
    uint64_t& first = left[op.first.dir];
    uint64_t& second = op.second.dir != 0 ? left[op.second.dir] : first;
    if (first > 0 && second > 0) {
      ApplyTo(&Inode::durable_entries, op);
      --first;
      if (&second != &first) --second;
    } else {
      first = 0;
      second = 0;
    }
  }
}

void MemDisk::Crash(CrashKind kind, uint64_t seed) {
  SeededRandom random(seed);
  if (kind == CrashKind::kTear) TearNames(random);
  for (auto& [ino, node] : inodes_) {
    node.opens = 0;
    node.locks.clear();
    if (kind == CrashKind::kKeepAll) {
      node.durable_data = node.data;
      node.durable_entries = node.entries;
      node.durable_meta = node.meta;
      node.unsynced.clear();
      node.data_is_own = false;
      continue;
    }
    if (kind == CrashKind::kTear) {
      if (!node.unsynced.empty()) TearData(node, random);
      if (random.Below(2) == 0) node.durable_meta = node.meta;
    }
    node.data = node.durable_data;
    node.data_is_own = false;
    node.unsynced.clear();
    node.entries = node.durable_entries;
    node.meta = node.durable_meta;
  }
  unsynced_names_.clear();
  Recount();
  // What no name reaches any more, fsck removes.
  std::erase_if(inodes_, [](const auto& item) { return item.second.nlink == 0; });
}

}  // namespace belay::mem
