#pragma once

// The two halves of a split index put together (gitformat-index(5), "Split index"): a
// shared file that does not change, and in the index itself what differs from it.

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace belay::git_internal {

// The extension "link".
struct LinkExtension {
  std::string base;  // hex, names the shared file; empty when there is none
  std::vector<uint32_t> deleted;   // entries of the shared file that are no more
  std::vector<uint32_t> replaced;  // those that have a nameless entry in the index
};

// Without limit on the bits a hostile bitmap could ask for memory that no file backs.
inline constexpr uint32_t kMaxSplitEntries = 1u << 24;

Result<LinkExtension> ParseLink(ByteSpan bytes, size_t hash_size);

struct RawEntry {
  std::string name;  // empty: in place of an entry of the shared file
  uint32_t mode = 0;
  unsigned stage = 0;
  std::string tree;  // of a sparse directory; or the object of any, where one asks
  uint8_t flags = 0;
};

// What the digest of an index has of one entry. `flags`: as in NamedEntry.
void DescribeEntry(std::string_view name, uint32_t mode, ByteSpan object,
                   unsigned stage, uint8_t flags, Bytes& out);

// The entries of the whole index, in its order.
Result<std::vector<RawEntry>> MergeSplit(const LinkExtension& link,
                                         std::vector<RawEntry> base,
                                         std::vector<RawEntry> own);

}  // namespace belay::git_internal
