#pragma once

// The fixed pieces of a bundle and its limits: header, trailer, and what a record of
// each type may take. Encoding and checking only. Layout: docs/format.md, "Bundle".

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/ids.h"
#include "store/log_record.h"
#include "store/object.h"

namespace belay {

inline constexpr uint32_t kBundleVersion = 1;
inline constexpr size_t kBundleHeaderSize = 64;
inline constexpr size_t kBundleTrailerSize = 80;
inline constexpr size_t kBundleHashAt = 40;  // in the trailer: what is hashed ends here

struct BundleTrailer {
  uint64_t objects = 0;
  uint64_t checkpoints = 0;
  uint64_t raw_bytes = 0;  // of all records, decoded
  uint64_t length = 0;     // of the file
  Hash256 hash;
};

std::array<std::byte, kBundleHeaderSize> EncodeBundleHeader();
// kUnsupported for a newer version, kInvalid for what is no bundle, kCorrupt otherwise.
Status CheckBundleHeader(ByteSpan bytes);
std::array<std::byte, kBundleTrailerSize> Encode(const BundleTrailer& trailer);
std::optional<BundleTrailer> DecodeBundleTrailer(ByteSpan bytes);

// What a reader takes, and a writer therefore stays within. Memory for a hostile file
// is bounded by these: one record and what it decodes to at a time, and about 250 bytes
// for each record, which takes at least 49 in the file.
inline constexpr uint64_t kMaxBundleTreeEntries = 1'000'000;
inline constexpr uint64_t kMaxBundlePaths = 20'000'000;  // of a checkpoint
inline constexpr uint64_t kMaxBundlePath = uint64_t{1} << 20;
inline constexpr uint64_t kMaxBundleLog = uint64_t{256} << 20;  // all log records
inline constexpr uint64_t kMaxBundleMeta = 1000;                // of one checkpoint
inline constexpr uint64_t kMaxRuleBytes = uint64_t{128} << 20;  // files of one record
inline constexpr int64_t kLastBundleMillis = 253'402'300'799'999;  // the year 9999
// Decoded length of one record; 0 for a type that cannot be in a bundle.
uint64_t MaxInBundle(ObjectType type);
// Of all records and chunked content of a file of `length` bytes together. It bounds
// the time that a small file can take; sparse files make it much more than 1.
inline uint64_t MaxDecoded(uint64_t length) {
  constexpr uint64_t kBase = uint64_t{16} << 30;
  return length > (UINT64_MAX - kBase) / 64 ? UINT64_MAX : kBase + 64 * length;
}

// Where a checkpoint comes from, as its meta says.
inline constexpr std::string_view kOriginStore = "origin.store",
                                  kOriginSeq = "origin.seq",
                                  kOriginPath = "origin.path",
                                  kOriginState = "origin.state";
std::string OriginStore(const StoreId& store);
std::string OriginState(const StoreId& store, const ObjectId& state);
// The id of an imported checkpoint whose own is taken.
RecordId ImportedId(const RecordId& id, const RootId& root, uint32_t n);

}  // namespace belay
