#pragma once

// ContentStream: content of a store by pieces, for whoever asks for the next one.
//
// Every piece was hashed; the last is handed out only after the hash of the whole was
// found right, too. Memory: two chunks and the list of them.
// Threads: one at a time.

#include "base/sha256.h"
#include "store/store.h"

namespace belay {

class ContentStream {
 public:
  // kNotFound, kPurged, kCorrupt as Store::Get. `store` must outlive it.
  static Result<ContentStream> Open(Store& store, const ObjectId& id);

  // Nothing at its end. Content without a byte is one empty piece.
  Result<std::optional<Bytes>> Next();
  // As much of what comes as fits; 0 at its end. Not together with Next().
  Result<size_t> Read(std::span<std::byte> out);

 private:
  ContentStream(Store& store, const ObjectId& id) : store_(&store), id_(id) {}

  Store* store_;
  ObjectId id_;
  ChunkList list_;
  size_t next_ = 0;  // of the list
  Sha256 whole_;
  std::optional<Bytes> held_;  // one behind, so that the last waits for the verdict
  Bytes piece_;                // of Read()
  size_t at_ = 0;
};

}  // namespace belay
