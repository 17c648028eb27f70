#pragma once

// The fixed-size pieces of packs, as values: pack header, batch header and trailer,
// record header, index header, tail. Encoding and checking only; no file is touched
// here. Layout: docs/format.md.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "store/codec.h"
#include "store/object.h"

namespace belay {

inline constexpr uint32_t kFormatVersion = 2;  // of manifest and packs
inline constexpr std::string_view kPackMagic = "BELAYPK\n";
inline constexpr size_t kPackHeaderSize = 64;
inline constexpr size_t kBatchHeaderSize = 128;
inline constexpr size_t kBatchTrailerSize = 48;
inline constexpr size_t kRecordHeaderSize = 48;
inline constexpr size_t kTailSize = 64;
// So many deltas at most before a record that is whole. Every further one makes reading
// slower and saves less: docs/decisions/0009.
inline constexpr uint32_t kMaxDeltaChain = 8;
// No writer gives a higher sequence number: one that is found is damage, and is never
// counted on from, for what would get such numbers no catalogue could list.
inline constexpr uint64_t kMaxSeq = uint64_t{1} << 62;

struct PackHeader {
  uint32_t version = kFormatVersion;
  static constexpr uint32_t kCopies = 1;  // written by GC
  uint32_t flags = 0;
  PackId pack;
  StoreId store;
  int64_t created_ms = 0;
};
std::array<std::byte, kPackHeaderSize> Encode(const PackHeader& header);
// kUnsupported for a newer version, kCorrupt otherwise.
Result<PackHeader> DecodePackHeader(ByteSpan bytes);

struct BatchHeader {
  static constexpr uint32_t kCopied = 1;
  uint32_t flags = 0;
  uint64_t offset = 0;
  PackId pack;
  uint64_t body_length = 0;
  uint64_t log_offset = 0;
  uint32_t object_count = 0;
  uint32_t log_count = 0;
  uint64_t first_seq = 0;
  int64_t written_ms = 0;
  Hash256 body_hash;
  uint64_t flushed_mark = 0;  // bytes before this were flushed when it was written

  uint64_t total_length() const {
    return kBatchHeaderSize + body_length + kBatchTrailerSize;
  }
  uint64_t body_offset() const { return offset + kBatchHeaderSize; }
  uint64_t end() const { return offset + total_length(); }
};
std::array<std::byte, kBatchHeaderSize> Encode(const BatchHeader& header);
// Empty unless the header is whole, checked, and stands where it says it stands.
std::optional<BatchHeader> DecodeBatchHeader(ByteSpan bytes, const PackId& pack,
                                             uint64_t offset);
std::array<std::byte, kBatchTrailerSize> MakeTrailer(ByteSpan encoded_header,
                                                     uint64_t total_length);
bool TrailerMatches(ByteSpan trailer, ByteSpan encoded_header, uint64_t total_length);

// What tells one batch from every other: the first half of the digest in its trailer,
// which is over its header, and so over its place, number, time and content. Zeros tell
// nothing.
using BatchMark = std::array<std::byte, 16>;
// Empty where these are no trailer's bytes.
struct TrailerSays {
  uint64_t total_length = 0;
  BatchMark mark{};
};
std::optional<TrailerSays> ReadTrailer(ByteSpan bytes);

struct RecordHeader {
  ObjectType type = ObjectType::kBlob;
  CodecId codec = CodecId::kRaw;
  uint8_t chain = 0;  // of a delta: deltas down to a whole record, itself included
  uint32_t stored_length = 0;
  uint32_t raw_length = 0;
  ObjectId id;

  ObjectKey key() const { return {type, id}; }
  uint64_t total_length() const { return kRecordHeaderSize + stored_length; }
};
std::array<std::byte, kRecordHeaderSize> Encode(const RecordHeader& header);
std::optional<RecordHeader> DecodeRecordHeader(ByteSpan bytes);
// What a delta's stored bytes begin with: where in the pack its base is.
struct DeltaBase {
  uint64_t offset = 0;
  size_t length = 0;  // of this; the frame follows
};
Bytes EncodeDeltaBase(uint64_t offset);
// Empty when there is none.
std::optional<DeltaBase> DecodeDeltaBase(ByteSpan stored);
inline constexpr size_t kMaxDeltaBase = 10;

struct Tail {
  PackId pack;
  uint64_t flushed = 0;
  uint64_t next_seq = 1;
  BatchMark last{};  // of the batch that ends at `flushed`
  bool operator==(const Tail&) const = default;
};
std::array<std::byte, kTailSize> Encode(const Tail& tail);
std::optional<Tail> DecodeTail(ByteSpan bytes);

// The manifest, whole: docs/format.md "manifest".
struct Manifest {
  struct Pack {
    PackId id;
    std::optional<uint64_t> sealed = {};  // final length; absent = open
    bool cut =
        false;  // there because a flush failed: nobody was told of what is behind
  };
  StoreId store;
  uint64_t generation = 1;
  uint64_t next_seq = 1;
  std::vector<Pack> packs;  // oldest first; only the last may be open

  const Pack* open_pack() const {
    return !packs.empty() && !packs.back().sealed ? &packs.back() : nullptr;
  }
  const Pack* Find(const PackId& id) const;
};
Bytes EncodeManifest(const Manifest& manifest);
Result<Manifest> DecodeManifest(ByteSpan bytes);

}  // namespace belay
