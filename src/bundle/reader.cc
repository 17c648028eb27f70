#include "bundle/reader.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/mutant.h"
#include "bundle/format.h"
#include "core/refs.h"
#include "scan/rules_record.h"
#include "store/codec.h"
#include "store/pack_format.h"

namespace belay {

namespace {

// Of attributes: Linux allows 64 KiB each, and few names.
constexpr uint64_t kMaxXattrs = uint64_t{16} << 20;
constexpr uint64_t kMetaTag = 21;                  // of a checkpoint
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;  // of a checkpoint's files

Error Bad(std::string what) { return Error(Errc::kCorrupt, std::move(what)); }
Error Lie() { return Bad("it is damaged or was tampered with: a hash does not match"); }

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
      return Bad("it ends early");
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(),
                out.begin());
    return Ok();
  }

 private:
  ByteSpan bytes_;
};

// Many small reads of a file, as few large ones. For going forward.
class Window {
 public:
  explicit Window(BundleSource& source) : source_(source) {}

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

struct BundleReader::Impl {
  explicit Impl(BundleSource& from) : source(from), window(from) {}

  BundleSource& source;
  Window window;
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

  Located* Find(const ObjectKey& key) {
    auto found = at.find(key);
    return found == at.end() ? nullptr : &items[found->second];
  }
  Located* FindContent(const ObjectId& id) {
    Located* found = Find({ObjectType::kBlob, id});
    return found != nullptr ? found : Find({ObjectType::kChunks, id});
  }

  // The decoded bytes of an object that was met; hashed again unless the caller does.
  Result<Bytes> ReadItem(const Located& item, bool check) {
    Bytes stored(item.stored);
    BELAY_OK(source.Read(item.offset, stored));
    BELAY_TRY(Bytes raw, codec.Decode(item.codec, stored, item.raw));
    if (check && item.key.type != ObjectType::kChunks && Sha256::Of(raw) != item.key.id)
      return Error(Errc::kConflict, "the bundle changed while it was read");
    return raw;
  }
  // Content piece by piece; the whole is hashed.
  Status ReadContent(const Located& item, const std::function<Status(ByteSpan)>& sink) {
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
  Result<Bytes> ContentBytes(const ObjectId& id, uint64_t limit) {
    const Located* item = FindContent(id);
    if (item == nullptr) return Bad("it refers to content that is not there");
    if (item->length > limit) return Bad("content that is too long for what it is");
    Bytes all;
    BELAY_OK(ReadContent(*item, [&](ByteSpan piece) -> Status {
      all.insert(all.end(), piece.begin(), piece.end());
      return Ok();
    }));
    return all;
  }

  Status Spend(uint64_t bytes) {
    decoded = bytes > UINT64_MAX - decoded ? UINT64_MAX : decoded + bytes;
    if (decoded > MaxDecoded(source.size()))
      return Bad("it claims to hold more than a bundle of its size may");
    return Ok();
  }

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

Status BundleReader::Impl::CheckChunks(Located& item, ByteSpan raw) {
  BELAY_TRY(ChunkList list, DecodeChunks(raw));
  if (list.total <= kMaxBlob) return Bad("chunks: content that needs none");
  BELAY_OK(Spend(list.total));
  // Every chunk is there before any is read.
  for (const Chunk& chunk : list.chunks) {
    Located* blob = Find({ObjectType::kBlob, chunk.id});
    if (blob == nullptr) return Bad("chunks: a chunk is missing");
    if (blob->raw != chunk.length) return Bad("chunks: a length is a lie");
    blob->used = true;
  }
  Sha256 whole;
  for (const Chunk& chunk : list.chunks) {
    BELAY_TRY(Bytes bytes, ReadItem(*Find({ObjectType::kBlob, chunk.id}), false));
    whole.Update(bytes);
  }
  if (whole.Finish() != item.key.id && !BELAY_MUTANT("bundle-trusts-chunks"))
    return Lie();
  item.length = list.total;
  return Ok();
}

Status BundleReader::Impl::CheckXattrs(const ObjectId& id) {
  if (good_xattrs.contains(id)) return Ok();
  BELAY_TRY(Bytes bytes, ContentBytes(id, kMaxXattrs));
  BELAY_OK(Spend(bytes.size()));
  BELAY_TRY([[maybe_unused]] auto decoded_xattrs, DecodeXattrs(bytes));
  good_xattrs.insert(id);
  return Ok();
}

Status BundleReader::Impl::CheckTree(const ObjectId& id, ByteSpan raw) {
  // Before anything is made of it.
  ByteReader head(raw);
  (void)head.U8();
  if (head.Varint() > kMaxBundleTreeEntries) return Bad("tree: too many entries");
  BELAY_TRY(Tree tree, DecodeTree(raw));
  Below all;
  for (const TreeEntry& entry : tree.entries) {
    ++all.paths;
    uint64_t longest = entry.name.size();
    if (entry.kind == EntryKind::kFile) {
      Located* content = FindContent(entry.id);
      if (content == nullptr) return Bad("tree: the content of a file is missing");
      if (content->length != entry.size && !BELAY_MUTANT("bundle-trusts-sizes"))
        return Bad("tree: the size of a file is a lie");
      content->used = content->as_content = true;
      if (entry.size > kMaxBytes) return Bad("tree: a size that cannot be");
      all.bytes += entry.size;
    }
    if (entry.kind == EntryKind::kDirectory) {
      Located* below = Find({ObjectType::kTree, entry.id});
      if (below == nullptr) return Bad("tree: a directory in it is missing");
      below->used = true;
      const Below& inner = trees.at(entry.id);
      all.paths += inner.paths;
      all.files += inner.files;
      all.bytes += inner.bytes;
      longest += 1 + inner.longest;
    } else {
      ++all.files;
    }
    if (!entry.xattrs.is_zero()) {
      Located* content = FindContent(entry.xattrs);
      if (content == nullptr) return Bad("tree: attributes are missing");
      content->used = content->as_content = true;
      BELAY_OK(CheckXattrs(entry.xattrs));
    }
    all.longest = std::max(all.longest, longest);
    // Checked entry by entry: no sum of two of these overflows.
    if ((all.paths > kMaxBundlePaths && !BELAY_MUTANT("bundle-tree-bomb")) ||
        all.bytes > kMaxBytes)
      return Bad("tree: it unfolds to more than a checkpoint may hold");
    if (all.longest > kMaxBundlePath) return Bad("tree: a path that is too long");
  }
  trees.emplace(id, all);
  return Ok();
}

Status BundleReader::Impl::CheckNode(ByteSpan raw) {
  BELAY_TRY(Node node, DecodeNode(raw));
  for (const ObjectKey& ref : node.refs) {
    Located* item = nullptr;
    if (ref.type == ObjectType::kBlob)
      item = FindContent(ref.id);
    else if (ref.type == ObjectType::kNode)
      item = Find(ref);
    else
      return Bad("node: it refers to what a node in a bundle may not");
    if (item == nullptr) return Bad("node: what it refers to is missing");
    item->used = true;
    if (ref.type == ObjectType::kBlob) item->as_content = true;
  }
  return Ok();
}

Status BundleReader::Impl::CheckRules(const ObjectId& id) {
  if (good_rules.contains(id)) return Ok();
  const Located* item = Find({ObjectType::kNode, id});
  BELAY_TRY(Bytes bytes, ReadItem(*item, true));
  BELAY_TRY(Node node, DecodeNode(bytes));
  const std::unordered_set<ObjectKey> kept(node.refs.begin(), node.refs.end());
  uint64_t left = kMaxRuleBytes;
  BELAY_TRY([[maybe_unused]] RulesRecord rules,
            DecodeRules(node, [&](const ObjectId& content) -> Result<Bytes> {
              // What it does not refer to would be taken away by the next collection.
              if (!kept.contains({ObjectType::kBlob, content}))
                return Bad("a rules record that does not keep what it names");
              BELAY_TRY(Bytes text, ContentBytes(content, left));
              left -= text.size();
              BELAY_OK(Spend(text.size()));
              return text;
            }));
  good_rules.insert(id);
  return Ok();
}

Status BundleReader::Impl::CheckState(const ObjectId& id, ByteSpan raw) {
  BELAY_TRY(State state, DecodeState(raw));
  Located* tree = Find({ObjectType::kTree, state.tree});
  if (tree == nullptr) return Bad("state: its tree is missing");
  tree->used = true;
  if (!state.git.is_zero() && !BELAY_MUTANT("bundle-brings-git"))
    return Bad("state: git's state of another machine");
  if (!state.rules.is_zero()) {
    Located* item = Find({ObjectType::kNode, state.rules});
    if (item == nullptr) return Bad("state: its rules are missing");
    item->used = true;
    BELAY_OK(CheckRules(state.rules));
  }
  tree_of.emplace(id, state.tree);
  return Ok();
}

Status BundleReader::Impl::CheckCheckpoint(const LogRecord& record) {
  if (record.seq != 0 || !record.root.is_zero() || record.id.is_zero())
    return Bad("checkpoint: it claims a place of its own");
  if (record.refs.size() != 1 || record.refs[0].type != ObjectType::kState)
    return Bad("checkpoint: it refers to something else than a state");
  if (!ids.insert(record.id).second) return Bad("checkpoint: it is there twice");
  Located* state = Find(record.refs[0]);
  if (state == nullptr) return Bad("checkpoint: its state is missing");
  state->used = true;
  if (record.made_ms < 0 || record.made_ms > kLastBundleMillis)
    return Bad("checkpoint: a time that cannot be");
  uint64_t metas = 0;
  for (const Fields::Field& field : record.fields.items())
    metas += field.tag == kMetaTag;
  if (metas > kMaxBundleMeta) return Bad("checkpoint: too much meta");
  CatalogEntry entry;
  BELAY_TRY(entry.checkpoint, ToCheckpoint(record));
  const Checkpoint& c = entry.checkpoint;
  if (c.name)
    if (Status name = CheckName(*c.name); !name.ok())
      return Bad("checkpoint: " + name.error().what);
  const Below& below = trees.at(tree_of.at(c.state));
  if (c.files != below.files || c.bytes != below.bytes)
    return Bad("checkpoint: the size it claims is a lie");
  auto seq = c.meta.find(std::string(kOriginSeq));
  uint64_t number = 0;
  if (!c.meta.contains(std::string(kOriginStore)) || seq == c.meta.end() ||
      std::from_chars(seq->second.data(), seq->second.data() + seq->second.size(),
                      number)
              .ptr != seq->second.data() + seq->second.size() ||
      seq->second.empty())
    return Bad("checkpoint: it does not say where it comes from");
  ++seen.checkpoints;
  annotated = false;
  checkpoints.push_back(std::move(entry));
  return Ok();
}

Status BundleReader::Impl::CheckAnnotation(const LogRecord& record) {
  if (record.seq != 0 || !record.root.is_zero() || !record.id.is_zero() ||
      record.made_ms != 0 || !record.refs.empty() || annotated ||
      AnnotationTarget(record) != checkpoints.back().checkpoint.id)
    return Bad("annotation: it is about nothing here");
  annotated = true;
  CatalogEntry& entry = checkpoints.back();
  uint64_t last = 0;
  for (const Fields::Field& field : record.fields.items()) {
    auto value = record.fields.Number(field.tag);
    if (field.tag == last) return Bad("annotation: a field is there twice");
    last = field.tag;
    if (field.tag == kAnnotationTarget) continue;
    if (field.tag == kAnnotationPinned && value == 1)
      entry.pinned = true;
    else if (field.tag == kAnnotationHealth && (value == 1 || value == 2))
      entry.health = static_cast<Health>(*value);
    else
      return Bad("annotation: a field that cannot be");
  }
  if (!entry.pinned && !entry.health) return Bad("annotation: it says nothing");
  return Ok();
}

Status BundleReader::Impl::CheckLog(ByteSpan raw) {
  log_bytes += raw.size();
  if (log_bytes > kMaxBundleLog) return Bad("too much is said of its checkpoints");
  BELAY_TRY(LogRecord record, DecodeLogRecord(raw));
  if (record.kind == RecordKind::kCheckpoint) return CheckCheckpoint(record);
  if (record.kind == RecordKind::kAnnotation) return CheckAnnotation(record);
  return Bad("a kind of record that a bundle does not hold");
}

Status BundleReader::Impl::CheckRecord(const RecordHeader& header, uint64_t offset,
                                       ByteSpan stored) {
  const bool is_log = header.type == ObjectType::kLog;
  BELAY_TRY(Bytes raw, codec.Decode(header.codec, stored, header.raw_length));
  if (header.type != ObjectType::kChunks && Sha256::Of(raw) != header.id &&
      !BELAY_MUTANT("bundle-trusts-ids"))
    return Lie();
  if (is_log) return CheckLog(raw);
  if (seen.checkpoints > 0) return Bad("an object behind the records");
  Located item{.key = header.key(),
               .offset = offset,
               .stored = header.stored_length,
               .raw = header.raw_length,
               .codec = header.codec,
               .length = header.raw_length};
  if (at.contains(item.key)) return Bad("an object is there twice");
  // Before it can be found: nothing may refer to itself.
  switch (header.type) {
    case ObjectType::kChunks:
      BELAY_OK(CheckChunks(item, raw));
      break;
    case ObjectType::kTree:
      BELAY_OK(CheckTree(header.id, raw));
      break;
    case ObjectType::kNode:
      BELAY_OK(CheckNode(raw));
      break;
    case ObjectType::kState:
      BELAY_OK(CheckState(header.id, raw));
      break;
    default:
      break;
  }
  ++seen.objects;
  at.emplace(item.key, items.size());
  items.push_back(item);
  return Ok();
}

Status BundleReader::Impl::Check(const ProgressFn& progress) {
  const uint64_t size = source.size();
  Bytes head(static_cast<size_t>(std::min<uint64_t>(size, kBundleHeaderSize)));
  BELAY_OK(source.Read(0, head));
  BELAY_OK(CheckBundleHeader(head));
  if (size < kBundleHeaderSize + kBundleTrailerSize) return Bad("it ends early");
  const uint64_t end = size - kBundleTrailerSize;
  Bytes tail(kBundleTrailerSize);
  BELAY_OK(source.Read(end, tail));
  auto last = DecodeBundleTrailer(tail);
  if (!last) return Bad("it ends early, or its end is damaged");
  trailer = *last;
  if (trailer.length != size) return Bad("it is not as long as it says");
  if (trailer.objects > end / kRecordHeaderSize ||
      trailer.checkpoints > end / kRecordHeaderSize ||
      trailer.raw_bytes > MaxDecoded(size))
    return Bad("it claims to hold more than a bundle of its size may");

  Sha256 whole;
  whole.Update(head);
  uint64_t offset = kBundleHeaderSize;
  for (uint64_t number = 1; offset < end; ++number) {
    auto one = [&]() -> Status {
      if (end - offset < kRecordHeaderSize) return Bad("it is cut short");
      BELAY_TRY(ByteSpan head_bytes, window.At(offset, kRecordHeaderSize));
      auto header = DecodeRecordHeader(head_bytes);
      if (!header) return Bad("its header is damaged");
      const uint64_t most = MaxInBundle(header->type);
      if (most == 0) return Bad("a type that a bundle does not hold");
      if (header->raw_length > most)
        return Bad("a " + ObjectTypeName(header->type) + " that is too large");
      const bool raw = header->codec == CodecId::kRaw;
      if ((!raw && header->codec != CodecId::kZstd) || header->chain != 0 ||
          (raw ? header->stored_length != header->raw_length
               : header->stored_length >= header->raw_length))
        return Bad("a length that is a lie");
      if (header->stored_length > end - offset - kRecordHeaderSize)
        return Bad("it is cut short");
      BELAY_OK(Spend(header->raw_length));
      seen.raw_bytes += header->raw_length;
      BELAY_TRY(ByteSpan bytes,
                window.At(offset, kRecordHeaderSize + header->stored_length));
      whole.Update(bytes);
      // What is checked may read elsewhere, but not through the window.
      BELAY_OK(CheckRecord(*header, offset + kRecordHeaderSize,
                           bytes.subspan(kRecordHeaderSize)));
      offset += header->total_length();
      return Ok();
    };
    if (Status checked = one(); !checked.ok())
      return Context(checked.error(), "record " + std::to_string(number));
    if (progress) progress(offset, size);
  }
  whole.Update(ByteSpan(tail).first(kBundleHashAt));
  if (whole.Finish() != trailer.hash && !BELAY_MUTANT("bundle-skip-hash")) return Lie();
  if (seen.objects != trailer.objects || seen.checkpoints != trailer.checkpoints ||
      seen.raw_bytes != trailer.raw_bytes)
    return Bad("it does not hold what it says at its end");
  if (seen.checkpoints == 0) return Bad("it holds no checkpoint");
  for (const Located& item : items)
    if (!item.used && !BELAY_MUTANT("bundle-takes-strays"))
      return Bad("it holds a " + ObjectTypeName(item.key.type) +
                 " that nothing refers to");
  trees = {};
  good_xattrs = {};
  good_rules = {};
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
                             [&](const Located& item) { return is_one(item.key); });
}

Result<BundleReader::Lack> BundleReader::FindLack(const std::vector<size_t>& wanted,
                                                  const KeyFn& is_gone) {
  Impl& in = *impl_;
  Lack lack;
  BELAY_TRY(std::vector<bool> needed, in.Needed(wanted));
  // In the order of the file: what an object refers to comes before it.
  std::vector<bool> some(in.items.size()), all(in.items.size());
  for (size_t i = 0; i < in.items.size(); ++i) {
    const Located& item = in.items[i];
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
    const Located& item = in.items[i];
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
          const Located* blob = in.Find({ObjectType::kBlob, list.chunks[next].id});
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
