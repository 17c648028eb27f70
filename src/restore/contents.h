#pragma once

// Content that was read from the store, checked against its id, and is kept for who
// needs it next: the plan reads all that a rollback will write, the move writes it.
//
// Bounded: beyond kLimit bytes nothing more is kept, and it is read again.
//
// Threads: Add from any thread; Find once all adding is over.

#include <mutex>
#include <unordered_map>

#include "base/bytes.h"
#include "store/object.h"

namespace belay {

class HeldContents {
 public:
  static constexpr size_t kLimit = size_t{64} << 20;

  // Nothing happens when there is no room.
  void Add(const ObjectId& id, Bytes bytes) {
    std::lock_guard lock(mutex_);
    if (size_ + bytes.size() > kLimit) return;
    size_ += bytes.size();
    held_.emplace(id, std::move(bytes));
  }
  // How many bytes of it come back as holes (restore/holes.h).
  void SetHoles(const ObjectId& id, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    holes_.emplace(id, bytes);
  }
  bool HasRead(const ObjectId& id) const { return holes_.contains(id); }
  uint64_t Holes(const ObjectId& id) const {
    auto at = holes_.find(id);
    return at == holes_.end() ? 0 : at->second;
  }
  const Bytes* Find(const ObjectId& id) const {
    auto at = held_.find(id);
    return at == held_.end() ? nullptr : &at->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<ObjectId, Bytes> held_;
  std::unordered_map<ObjectId, uint64_t> holes_;  // of all that was read
  size_t size_ = 0;
};

}  // namespace belay
