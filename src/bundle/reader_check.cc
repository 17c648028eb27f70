// A bundle is read once from the beginning, and nothing in it is believed.

#include <algorithm>
#include <charconv>

#include "base/mutant.h"
#include "bundle/reader_internal.h"
#include "core/refs.h"
#include "scan/rules_record.h"

namespace belay {

namespace {

// Of attributes: Linux allows 64 KiB each, and few names.
constexpr uint64_t kMaxXattrs = uint64_t{16} << 20;
constexpr uint64_t kMetaTag = 21;                  // of a checkpoint
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;  // of a checkpoint's files

Error Lie() {
  return BadBundle("it is damaged or was tampered with: a hash does not match");
}

}  // namespace

Status BundleReader::Impl::CheckChunks(Located& item, ByteSpan raw) {
  BELAY_TRY(ChunkList list, DecodeChunks(raw));
  if (list.total <= kMaxBlob) return BadBundle("chunks: content that needs none");
  BELAY_OK(Spend(list.total));
  // Every chunk is there before any is read.
  for (const Chunk& chunk : list.chunks) {
    Located* blob = Find({ObjectType::kBlob, chunk.id});
    if (blob == nullptr) return BadBundle("chunks: a chunk is missing");
    if (blob->raw != chunk.length) return BadBundle("chunks: a length is a lie");
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
  if (head.Varint() > kMaxBundleTreeEntries) return BadBundle("tree: too many entries");
  BELAY_TRY(Tree tree, DecodeTree(raw));
  Below all;
  for (const TreeEntry& entry : tree.entries) {
    ++all.paths;
    uint64_t longest = entry.name.size();
    if (entry.kind == EntryKind::kFile) {
      Located* content = FindContent(entry.id);
      if (content == nullptr)
        return BadBundle("tree: the content of a file is missing");
      if (content->length != entry.size && !BELAY_MUTANT("bundle-trusts-sizes"))
        return BadBundle("tree: the size of a file is a lie");
      content->used = content->as_content = true;
      if (entry.size > kMaxBytes) return BadBundle("tree: a size that cannot be");
      all.bytes += entry.size;
    }
    if (entry.kind == EntryKind::kDirectory) {
      Located* below = Find({ObjectType::kTree, entry.id});
      if (below == nullptr) return BadBundle("tree: a directory in it is missing");
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
      if (content == nullptr) return BadBundle("tree: attributes are missing");
      content->used = content->as_content = true;
      BELAY_OK(CheckXattrs(entry.xattrs));
    }
    all.longest = std::max(all.longest, longest);
    // Checked entry by entry: no sum of two of these overflows.
    if ((all.paths > kMaxBundlePaths && !BELAY_MUTANT("bundle-tree-bomb")) ||
        all.bytes > kMaxBytes)
      return BadBundle("tree: it unfolds to more than a checkpoint may hold");
    if (all.longest > kMaxBundlePath) return BadBundle("tree: a path that is too long");
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
      return BadBundle("node: it refers to what a node in a bundle may not");
    if (item == nullptr) return BadBundle("node: what it refers to is missing");
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
                return BadBundle("a rules record that does not keep what it names");
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
  if (tree == nullptr) return BadBundle("state: its tree is missing");
  tree->used = true;
  if (!state.git.is_zero() && !BELAY_MUTANT("bundle-brings-git"))
    return BadBundle("state: git's state of another machine");
  if (!state.rules.is_zero()) {
    Located* item = Find({ObjectType::kNode, state.rules});
    if (item == nullptr) return BadBundle("state: its rules are missing");
    item->used = true;
    BELAY_OK(CheckRules(state.rules));
  }
  tree_of.emplace(id, state.tree);
  return Ok();
}

Status BundleReader::Impl::CheckCheckpoint(const LogRecord& record) {
  if (record.seq != 0 || !record.root.is_zero() || record.id.is_zero())
    return BadBundle("checkpoint: it claims a place of its own");
  if (record.refs.size() != 1 || record.refs[0].type != ObjectType::kState)
    return BadBundle("checkpoint: it refers to something else than a state");
  if (!ids.insert(record.id).second) return BadBundle("checkpoint: it is there twice");
  Located* state = Find(record.refs[0]);
  if (state == nullptr) return BadBundle("checkpoint: its state is missing");
  state->used = true;
  if (record.made_ms < 0 || record.made_ms > kLastBundleMillis)
    return BadBundle("checkpoint: a time that cannot be");
  if (!ExternalIn(record).empty() && !BELAY_MUTANT("bundle-brings-external-files"))
    return BadBundle("checkpoint: files outside of the directory");
  uint64_t metas = 0;
  for (const Fields::Field& field : record.fields.items())
    metas += field.tag == kMetaTag;
  if (metas > kMaxBundleMeta) return BadBundle("checkpoint: too much meta");
  CatalogEntry entry;
  BELAY_TRY(entry.checkpoint, ToCheckpoint(record));
  const Checkpoint& c = entry.checkpoint;
  if (c.name)
    if (Status name = CheckName(*c.name); !name.ok())
      return BadBundle("checkpoint: " + name.error().what);
  const Below& below = trees.at(tree_of.at(c.state));
  if (c.files != below.files || c.bytes != below.bytes)
    return BadBundle("checkpoint: the size it claims is a lie");
  auto seq = c.meta.find(std::string(kOriginSeq));
  uint64_t number = 0;
  if (!c.meta.contains(std::string(kOriginStore)) || seq == c.meta.end() ||
      std::from_chars(seq->second.data(), seq->second.data() + seq->second.size(),
                      number)
              .ptr != seq->second.data() + seq->second.size() ||
      seq->second.empty())
    return BadBundle("checkpoint: it does not say where it comes from");
  ++seen.checkpoints;
  annotated = false;
  checkpoints.push_back(std::move(entry));
  return Ok();
}

Status BundleReader::Impl::CheckAnnotation(const LogRecord& record) {
  if (record.seq != 0 || !record.root.is_zero() || !record.id.is_zero() ||
      record.made_ms != 0 || !record.refs.empty() || annotated ||
      AnnotationTarget(record) != checkpoints.back().checkpoint.id)
    return BadBundle("annotation: it is about nothing here");
  annotated = true;
  CatalogEntry& entry = checkpoints.back();
  uint64_t last = 0;
  for (const Fields::Field& field : record.fields.items()) {
    auto value = record.fields.Number(field.tag);
    if (field.tag == last) return BadBundle("annotation: a field is there twice");
    last = field.tag;
    if (field.tag == kAnnotationTarget) continue;
    if (field.tag == kAnnotationPinned && value == 1)
      entry.pinned = true;
    else if (field.tag == kAnnotationHealth && (value == 1 || value == 2))
      entry.health = static_cast<Health>(*value);
    else
      return BadBundle("annotation: a field that cannot be");
  }
  if (!entry.pinned && !entry.health) return BadBundle("annotation: it says nothing");
  return Ok();
}

Status BundleReader::Impl::CheckLog(ByteSpan raw) {
  log_bytes += raw.size();
  if (log_bytes > kMaxBundleLog)
    return BadBundle("too much is said of its checkpoints");
  BELAY_TRY(LogRecord record, DecodeLogRecord(raw));
  if (record.kind == RecordKind::kCheckpoint) return CheckCheckpoint(record);
  if (record.kind == RecordKind::kAnnotation) return CheckAnnotation(record);
  return BadBundle("a kind of record that a bundle does not hold");
}

Status BundleReader::Impl::CheckRecord(const RecordHeader& header, uint64_t offset,
                                       ByteSpan stored) {
  const bool is_log = header.type == ObjectType::kLog;
  BELAY_TRY(Bytes raw, codec.Decode(header.codec, stored, header.raw_length));
  if (header.type != ObjectType::kChunks && Sha256::Of(raw) != header.id &&
      !BELAY_MUTANT("bundle-trusts-ids"))
    return Lie();
  if (is_log) return CheckLog(raw);
  if (seen.checkpoints > 0) return BadBundle("an object behind the records");
  Located item{.key = header.key(),
               .offset = offset,
               .stored = header.stored_length,
               .raw = header.raw_length,
               .codec = header.codec,
               .length = header.raw_length};
  if (at.contains(item.key)) return BadBundle("an object is there twice");
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
  if (size < kBundleHeaderSize + kBundleTrailerSize) return BadBundle("it ends early");
  const uint64_t end = size - kBundleTrailerSize;
  Bytes tail(kBundleTrailerSize);
  BELAY_OK(source.Read(end, tail));
  auto last = DecodeBundleTrailer(tail);
  if (!last) return BadBundle("it ends early, or its end is damaged");
  trailer = *last;
  if (trailer.length != size) return BadBundle("it is not as long as it says");
  if (trailer.objects > end / kRecordHeaderSize ||
      trailer.checkpoints > end / kRecordHeaderSize ||
      trailer.raw_bytes > MaxDecoded(size))
    return BadBundle("it claims to hold more than a bundle of its size may");

  Sha256 whole;
  whole.Update(head);
  uint64_t offset = kBundleHeaderSize;
  for (uint64_t number = 1; offset < end; ++number) {
    auto one = [&]() -> Status {
      if (end - offset < kRecordHeaderSize) return BadBundle("it is cut short");
      BELAY_TRY(ByteSpan head_bytes, window.At(offset, kRecordHeaderSize));
      auto header = DecodeRecordHeader(head_bytes);
      if (!header) return BadBundle("its header is damaged");
      const uint64_t most = MaxInBundle(header->type);
      if (most == 0) return BadBundle("a type that a bundle does not hold");
      if (header->raw_length > most)
        return BadBundle("a " + ObjectTypeName(header->type) + " that is too large");
      const bool raw = header->codec == CodecId::kRaw;
      if ((!raw && header->codec != CodecId::kZstd) || header->chain != 0 ||
          (raw ? header->stored_length != header->raw_length
               : header->stored_length >= header->raw_length))
        return BadBundle("a length that is a lie");
      if (header->stored_length > end - offset - kRecordHeaderSize)
        return BadBundle("it is cut short");
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
    return BadBundle("it does not hold what it says at its end");
  if (seen.checkpoints == 0) return BadBundle("it holds no checkpoint");
  for (const Located& item : items)
    if (!item.used && !BELAY_MUTANT("bundle-takes-strays"))
      return BadBundle("it holds a " + ObjectTypeName(item.key.type) +
                       " that nothing refers to");
  trees = {};
  good_xattrs = {};
  good_rules = {};
  return Ok();
}

}  // namespace belay
