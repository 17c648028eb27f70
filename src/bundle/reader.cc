#include "bundle/reader.h"

#include <algorithm>

#include "bundle/reader_internal.h"

namespace belay {

namespace {

class FileSource final : public BundleSource {
 public:
  FileSource(Fs& fs, Fd file, uint64_t size)
      : fs_(fs), file_(std::move(file)), size_(size) {}
  uint64_t size() const override { return size_; }
  Status Read(uint64_t offset, std::span<std::byte> out) override {
    return ReadExact(fs_, file_, offset, out);
  }

 private:
  Fs& fs_;
  Fd file_;
  uint64_t size_;
};

class MemorySource final : public BundleSource {
 public:
  explicit MemorySource(ByteSpan bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Status Read(uint64_t offset, std::span<std::byte> out) override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset)
      return BadBundle("it ends early");
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(),
                out.begin());
    return Ok();
  }

 private:
  ByteSpan bytes_;
};

}  // namespace

Result<std::unique_ptr<BundleSource>> OpenBundleFile(Fs& fs, Fd file) {
  BELAY_TRY(FileStat stat, fs.Stat(file));
  if (stat.type != FileType::kRegular)
    return Error(Errc::kInvalid, "it is " + std::string(FileTypeName(stat.type)) +
                                     "; a bundle is read from a file");
  return std::unique_ptr<BundleSource>(new FileSource(fs, std::move(file), stat.size));
}

std::unique_ptr<BundleSource> BundleInMemory(ByteSpan bytes) {
  return std::make_unique<MemorySource>(bytes);
}

BundleReader::Impl::Located* BundleReader::Impl::Find(const ObjectKey& key) {
  auto found = at.find(key);
  return found == at.end() ? nullptr : &items[found->second];
}

BundleReader::Impl::Located* BundleReader::Impl::FindContent(const ObjectId& id) {
  Located* found = Find({ObjectType::kBlob, id});
  return found != nullptr ? found : Find({ObjectType::kChunks, id});
}

Result<Bytes> BundleReader::Impl::ReadItem(const Located& item, bool check) {
  Bytes stored(item.stored);
  BELAY_OK(source.Read(item.offset, stored));
  BELAY_TRY(Bytes raw, codec.Decode(item.codec, stored, item.raw));
  if (check && item.key.type != ObjectType::kChunks && Sha256::Of(raw) != item.key.id)
    return Error(Errc::kConflict, "the bundle changed while it was read");
  return raw;
}

Status BundleReader::Impl::ReadContent(const Located& item,
                                       const std::function<Status(ByteSpan)>& sink) {
  if (item.key.type == ObjectType::kBlob) {
    BELAY_TRY(Bytes raw, ReadItem(item, true));
    return sink(raw);
  }
  BELAY_TRY(Bytes encoded, ReadItem(item, false));
  BELAY_TRY(ChunkList list, DecodeChunks(encoded));
  Sha256 whole;
  for (const Chunk& chunk : list.chunks) {
    const Located* blob = Find({ObjectType::kBlob, chunk.id});
    if (blob == nullptr || blob->raw != chunk.length)
      return Error(Errc::kConflict, "the bundle changed while it was read");
    BELAY_TRY(Bytes raw, ReadItem(*blob, false));
    whole.Update(raw);
    BELAY_OK(sink(raw));
  }
  if (whole.Finish() != item.key.id)
    return Error(Errc::kConflict, "the bundle changed while it was read");
  return Ok();
}

Result<Bytes> BundleReader::Impl::ContentBytes(const ObjectId& id, uint64_t limit) {
  const Located* item = FindContent(id);
  if (item == nullptr) return BadBundle("it refers to content that is not there");
  if (item->length > limit) return BadBundle("content that is too long for what it is");
  Bytes all;
  BELAY_OK(ReadContent(*item, [&](ByteSpan piece) -> Status {
    all.insert(all.end(), piece.begin(), piece.end());
    return Ok();
  }));
  return all;
}

Status BundleReader::Impl::Spend(uint64_t bytes) {
  decoded = bytes > UINT64_MAX - decoded ? UINT64_MAX : decoded + bytes;
  if (decoded > MaxDecoded(source.size()))
    return BadBundle("it claims to hold more than a bundle of its size may");
  return Ok();
}

BundleReader::BundleReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BundleReader::~BundleReader() = default;

Result<std::unique_ptr<BundleReader>> BundleReader::Open(BundleSource& source,
                                                         const ProgressFn& progress) {
  auto impl = std::make_unique<Impl>(source);
  BELAY_OK(impl->Check(progress));
  return std::unique_ptr<BundleReader>(new BundleReader(std::move(impl)));
}

const std::vector<CatalogEntry>& BundleReader::checkpoints() const {
  return impl_->checkpoints;
}
uint64_t BundleReader::objects() const { return impl_->items.size(); }

Result<std::vector<bool>> BundleReader::Impl::Needed(
    const std::vector<size_t>& wanted) {
  std::vector<bool> needed(items.size(), wanted.size() == checkpoints.size());
  if (wanted.size() == checkpoints.size()) return needed;
  // From the end: whatever refers to an object comes behind it.
  for (size_t i : wanted)
    needed[at.at({ObjectType::kState, checkpoints[i].checkpoint.state})] = true;
  for (size_t i = items.size(); i-- > 0;) {
    if (!needed[i] || items[i].key.type == ObjectType::kBlob) continue;
    BELAY_TRY(auto refs, RefsOf(items[i]));
    for (size_t ref : refs) needed[ref] = true;
  }
  return needed;
}

Result<std::vector<size_t>> BundleReader::Impl::RefsOf(const Located& item) {
  std::vector<size_t> out;
  BELAY_TRY(Bytes raw, ReadItem(item, true));
  BELAY_TRY(auto refs, ReferencesOf(item.key.type, raw));
  for (const ObjectKey& ref : refs) {
    auto found = at.find(ref);
    if (found == at.end() && ref.type == ObjectType::kBlob)
      found = at.find({ObjectType::kChunks, ref.id});
    if (found == at.end())
      return Error(Errc::kConflict, "the bundle changed while it was read");
    out.push_back(found->second);
  }
  return out;
}

bool BundleReader::HasAny(const KeyFn& is_one) const {
  return std::ranges::any_of(impl_->items,
                             [&](const auto& item) { return is_one(item.key); });
}

Result<BundleReader::Lack> BundleReader::FindLack(const std::vector<size_t>& wanted,
                                                  const KeyFn& is_gone) {
  Impl& in = *impl_;
  Lack lack;
  BELAY_TRY(std::vector<bool> needed, in.Needed(wanted));
  // In the order of the file: what an object refers to comes before it.
  std::vector<bool> some(in.items.size()), all(in.items.size());
  for (size_t i = 0; i < in.items.size(); ++i) {
    const auto& item = in.items[i];
    if (!needed[i]) continue;
    const bool content =
        item.key.type == ObjectType::kBlob || item.key.type == ObjectType::kChunks;
    const bool gone = is_gone(item.key) && item.length > 0;
    (content ? some : all)[i] = gone;
    if (item.key.type == ObjectType::kBlob) {
      if (gone && item.as_content) lack.contents.insert(item.key.id);
      continue;
    }
    BELAY_TRY(auto refs, in.RefsOf(item));
    for (size_t ref : refs) {
      if (some[ref]) some[i] = true;
      if (all[ref]) all[i] = true;
    }
    if (content && some[i]) lack.contents.insert(item.key.id);
  }
  for (const CatalogEntry& entry : in.checkpoints) {
    const size_t state = in.at.at({ObjectType::kState, entry.checkpoint.state});
    lack.some.push_back(some[state]);
    lack.all.push_back(all[state]);
  }
  return lack;
}

Result<uint64_t> BundleReader::BytesOf(const std::vector<size_t>& wanted,
                                       const KeyFn& there) {
  Impl& in = *impl_;
  BELAY_TRY(std::vector<bool> needed, in.Needed(wanted));
  uint64_t bytes = 0;
  for (size_t i = 0; i < in.items.size(); ++i)
    if (needed[i] && !there(in.items[i].key))
      bytes += kRecordHeaderSize + in.items[i].stored;
  return bytes;
}

Status BundleReader::CopyInto(BatchWriter& writer, const std::vector<size_t>& wanted,
                              const std::function<Status()>& check,
                              const ProgressFn& progress,
                              const std::unordered_set<ObjectId>& without) {
  Impl& in = *impl_;
  BELAY_TRY(std::vector<bool> needed, in.Needed(wanted));
  for (size_t i = 0; i < in.items.size(); ++i) {
    const auto& item = in.items[i];
    if (progress) progress(item.offset, in.source.size());
    if (!needed[i]) continue;
    if ((item.key.type == ObjectType::kBlob || item.key.type == ObjectType::kChunks) &&
        without.contains(item.key.id))
      continue;
    ObjectId put;
    if (item.key.type == ObjectType::kBlob) {
      if (!item.as_content) continue;  // comes with what it is a chunk of
      BELAY_TRY(Bytes raw, in.ReadItem(item, true));
      BELAY_TRY(put, writer.PutContent(raw));
    } else if (item.key.type == ObjectType::kChunks) {
      // Cut anew: whoever made the bundle may have cut it another way.
      BELAY_TRY(Bytes encoded, in.ReadItem(item, false));
      BELAY_TRY(ChunkList list, DecodeChunks(encoded));
      size_t next = 0, used = 0;
      Bytes piece;
      BELAY_TRY(put, writer.PutStream([&](std::span<std::byte> out) -> Result<size_t> {
        if (check) BELAY_OK(check());
        while (used == piece.size()) {
          if (next == list.chunks.size()) return size_t{0};
          const auto* blob = in.Find({ObjectType::kBlob, list.chunks[next].id});
          if (blob == nullptr)
            return Error(Errc::kConflict, "the bundle changed while it was read");
          BELAY_TRY(piece, in.ReadItem(*blob, false));
          ++next;
          used = 0;
        }
        const size_t count = std::min(out.size(), piece.size() - used);
        std::copy_n(piece.begin() + static_cast<ptrdiff_t>(used), count, out.begin());
        used += count;
        return count;
      }));
    } else {
      BELAY_TRY(Bytes raw, in.ReadItem(item, true));
      BELAY_TRY(put, writer.PutObject(item.key.type, raw));
    }
    if (put != item.key.id)
      return Error(Errc::kConflict, "the bundle changed while it was read");
    if (check) BELAY_OK(check());
  }
  return Ok();
}

}  // namespace belay
