#pragma once

// What a BundleReader holds while it is open. reader_check.cc fills it and believes
// nothing; reader.cc gives away what was found to be right.

#include <unordered_map>
#include <unordered_set>

#include "bundle/format.h"
#include "bundle/reader.h"
#include "store/codec.h"
#include "store/pack_format.h"

namespace belay {

inline Error BadBundle(std::string what) {
  return Error(Errc::kCorrupt, std::move(what));
}

// Many small reads of a file, as few large ones. For going forward.
class BundleWindow {
 public:
  explicit BundleWindow(BundleSource& source) : source_(source) {}

  // Valid until the next call. [offset, offset + length) lies within the source.
  Result<ByteSpan> At(uint64_t offset, size_t length) {
    if (offset < from_ || offset + length > from_ + bytes_.size()) {
      const uint64_t most = source_.size() - offset;
      bytes_.resize(
          static_cast<size_t>(std::min<uint64_t>(std::max(length, kSize), most)));
      from_ = offset;
      BELAY_OK(source_.Read(offset, bytes_));
    }
    return ByteSpan(bytes_).subspan(static_cast<size_t>(offset - from_), length);
  }

 private:
  static constexpr size_t kSize = size_t{256} << 10;
  BundleSource& source_;
  uint64_t from_ = 0;
  Bytes bytes_;
};

struct BundleReader::Impl {
  struct Located {
    ObjectKey key;
    uint64_t offset = 0;  // of the stored bytes
    uint32_t stored = 0;
    uint32_t raw = 0;
    CodecId codec = CodecId::kRaw;
    bool used = false;        // something refers to it
    bool as_content = false;  // a blob that is not only a chunk of something
    uint64_t length = 0;      // of content: how long it is
  };

  // A directory and all below it.
  struct Below {
    uint64_t paths = 0, files = 0, bytes = 0, longest = 0;
  };

  explicit Impl(BundleSource& from) : source(from), window(from) {}

  BundleSource& source;
  BundleWindow window;
  Codec codec;
  std::vector<Located> items;  // in the order of the file
  std::unordered_map<ObjectKey, size_t> at;
  std::vector<CatalogEntry> checkpoints;

  // --- while checking ----------------------------------------------------------------
  std::unordered_map<ObjectId, Below> trees;
  std::unordered_set<ObjectId> good_xattrs, good_rules;
  std::unordered_map<ObjectId, ObjectId> tree_of;  // of each state
  std::unordered_set<RecordId> ids;
  BundleTrailer trailer;
  BundleTrailer seen;
  uint64_t decoded = 0;  // against MaxDecoded()
  uint64_t log_bytes = 0;
  bool annotated = true;  // the last checkpoint may have no (further) annotation

  Located* Find(const ObjectKey& key);
  Located* FindContent(const ObjectId& id);

  // The decoded bytes of an object that was met; hashed again unless the caller does.
  Result<Bytes> ReadItem(const Located& item, bool check);
  // Content piece by piece; the whole is hashed.
  Status ReadContent(const Located& item, const std::function<Status(ByteSpan)>& sink);
  Result<Bytes> ContentBytes(const ObjectId& id, uint64_t limit);

  Status Spend(uint64_t bytes);

  // Places of what an object refers to.
  Result<std::vector<size_t>> RefsOf(const Located& item);
  // Of each object, whether these checkpoints need it.
  Result<std::vector<bool>> Needed(const std::vector<size_t>& wanted);

  Status Check(const ProgressFn& progress);
  Status CheckRecord(const RecordHeader& header, uint64_t offset, ByteSpan stored);
  Status CheckChunks(Located& item, ByteSpan raw);
  Status CheckTree(const ObjectId& id, ByteSpan raw);
  Status CheckXattrs(const ObjectId& id);
  Status CheckNode(ByteSpan raw);
  Status CheckState(const ObjectId& id, ByteSpan raw);
  Status CheckRules(const ObjectId& id);
  Status CheckLog(ByteSpan raw);
  Status CheckCheckpoint(const LogRecord& record);
  Status CheckAnnotation(const LogRecord& record);
};

}  // namespace belay
