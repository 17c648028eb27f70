#include "bundle/export.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "base/escape.h"
#include "base/mutant.h"
#include "bundle/format.h"
#include "core/refs.h"
#include "core/settings.h"
#include "core/state_view.h"
#include "ignore/rules.h"
#include "store/codec.h"
#include "store/key_set.h"
#include "store/pack_format.h"

namespace belay {

namespace {

constexpr size_t kBuffer = size_t{256} << 10;
constexpr int kMaxNodeDepth = 64;
// Of a rules record: docs/format.md.
constexpr uint64_t kSkippedTag = 11, kSkippedPath = 1, kSkippedWhy = 2;

Error TooLarge(const std::string& what) {
  return Error(Errc::kUnsupported, what + " is too large for a bundle");
}

// --- order ---------------------------------------------------------------------------

struct Item {
  CatalogEntry entry;
  std::string store;  // where it was made
  uint64_t seq = 0;   // there
};

std::optional<uint64_t> NumberIn(const std::string& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Of one origin as they were made there; several origins merged by time.
std::vector<Item> InOrder(Store& store, const ExportRequest& request) {
  const std::string here = OriginStore(store.manifest().store);
  std::map<std::string, std::vector<Item>> by_store;
  std::unordered_set<RecordId> seen;
  for (const CatalogEntry& entry : request.checkpoints) {
    if (!seen.insert(entry.checkpoint.id).second) continue;
    Item item{.entry = entry, .store = here, .seq = entry.checkpoint.seq};
    auto& meta = item.entry.checkpoint.meta;
    auto from = meta.find(std::string(kOriginStore));
    auto seq = meta.find(std::string(kOriginSeq));
    // Anybody may have written that: what makes no sense is not believed.
    const auto number = seq == meta.end() ? std::nullopt : NumberIn(seq->second);
    if (from != meta.end() && number) {
      item.store = from->second;
      item.seq = *number;
    } else {
      meta[std::string(kOriginStore)] = here;
      meta[std::string(kOriginSeq)] = std::to_string(item.seq);
      meta[std::string(kOriginPath)] = EscapeForDisplay(request.root_path);
    }
    by_store[item.store].push_back(std::move(item));
  }
  for (auto& [name, items] : by_store)
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
      return std::pair(a.seq, a.entry.checkpoint.id) <
             std::pair(b.seq, b.entry.checkpoint.id);
    });
  std::vector<Item> out;
  std::map<std::string, size_t> next;
  for (;;) {
    std::vector<Item>* earliest = nullptr;
    size_t* at = nullptr;
    for (auto& [name, items] : by_store) {
      size_t& i = next[name];
      if (i == items.size()) continue;
      if (earliest == nullptr || items[i].entry.checkpoint.made_ms <
                                     (*earliest)[*at].entry.checkpoint.made_ms) {
        earliest = &items;
        at = &i;
      }
    }
    if (earliest == nullptr) return out;
    out.push_back(std::move((*earliest)[(*at)++]));
  }
}

// --- what is left out ----------------------------------------------------------------

DirRules::Ptr SecretsOf(const std::vector<std::string>& patterns) {
  RuleLists lists;
  lists.secret_patterns = patterns;
  return DirRules::Root(std::make_shared<const RuleConfig>(std::move(lists)),
                        std::make_shared<const WorkTree>(WorkTreeInput()), {});
}

// The rules record with `left_out` among the paths that are not in the tree.
Result<Node> AddSkipped(const Node& node, const std::vector<SkippedPath>& left_out) {
  std::map<std::string, Bytes> skipped;
  Node out;
  out.refs = node.refs;
  for (const Fields::Field& field : node.fields.items()) {
    if (field.tag != kSkippedTag) continue;
    ByteReader in(field.value);
    BELAY_TRY(Fields fields, Fields::Decode(in));
    skipped[fields.Text(kSkippedPath).value_or("")] = field.value;
  }
  for (const SkippedPath& path : left_out) {
    Fields fields;
    fields.Add(kSkippedPath, path.path);
    fields.AddNumber(kSkippedWhy, static_cast<uint64_t>(path.why));
    Bytes value;
    ByteWriter writer(value);
    fields.Encode(writer);
    skipped[path.path] = std::move(value);
  }
  bool added = false;
  auto add_all = [&] {
    if (added) return;
    added = true;
    for (const auto& [path, value] : skipped) out.fields.Add(kSkippedTag, value);
  };
  for (const Fields::Field& field : node.fields.items()) {
    if (field.tag >= kSkippedTag) add_all();
    if (field.tag != kSkippedTag) out.fields.Add(field.tag, field.value);
  }
  add_all();
  return out;
}

// --- the stream ----------------------------------------------------------------------

class Stream {
 public:
  explicit Stream(const BundleSink& sink) : sink_(sink) { buffer_.reserve(kBuffer); }

  Status Write(ByteSpan bytes) {
    hash_.Update(bytes);
    return Unhashed(bytes);
  }
  Hash256 HashSoFar() { return hash_.Finish(); }
  Status Unhashed(ByteSpan bytes) {
    length_ += bytes.size();
    if (buffer_.size() + bytes.size() > kBuffer) BELAY_OK(Flush());
    if (bytes.size() > kBuffer) return sink_(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return Ok();
  }
  Status Flush() {
    if (buffer_.empty()) return Ok();
    Status written = sink_(buffer_);
    buffer_.clear();
    return written;
  }
  uint64_t length() const { return length_; }

 private:
  const BundleSink& sink_;
  Bytes buffer_;
  Sha256 hash_;
  uint64_t length_ = 0;
};

class Exporter {
 public:
  Exporter(Store& store, const ExportRequest& request, const BundleSink& sink)
      : store_(store), request_(request), out_(sink) {}

  Result<ExportReport> Run();

 private:
  // A directory as it goes into the bundle.
  struct Done {
    ObjectId tree;
    uint64_t files = 0, bytes = 0, paths = 0;
    std::vector<SkippedPath> left_out;
  };
  struct Frame {
    ObjectId id;
    Hash256 key;
    Tree tree;
    size_t next = 0;
    size_t path_length = 0;  // of path_, when this directory is the one at work
    DirRules::Ptr own, now;  // what is secret by the state's and by today's patterns
    Tree out;
    Done done;
  };

  Status Put(ObjectType type, const ObjectId& id, ByteSpan raw);
  Status PutOnce(const ObjectKey& key, ByteSpan raw);
  // False: it was erased on purpose.
  Result<bool> EmitContent(const ObjectId& id, std::optional<uint64_t> size);
  Result<bool> EmitChunked(const ObjectId& id, const Bytes& encoded,
                           std::optional<uint64_t> size);
  Status EmitNode(const ObjectId& id, int depth);
  Status EmitRefs(const Node& node, int depth);
  Result<Done> RewriteTree(const ObjectId& root, const StateView& view);
  Result<bool> Enter(const ObjectId& id, DirRules::Ptr own, DirRules::Ptr now);
  // One entry of the innermost directory; one that is a directory may be entered.
  Status Step(const TreeEntry& entry);
  void Leave(const TreeEntry& entry, Skip why);
  void Take(TreeEntry entry, const Done& done);
  Status EmitCheckpoint(Item item, ExportReport& report);
  Status PutLog(const LogRecord& record);

  Store& store_;
  const ExportRequest& request_;
  Stream out_;
  Codec codec_;
  KeySet emitted_;
  BundleTrailer trailer_;
  uint64_t chunked_ = 0;  // bytes of chunked content, as a reader will hash them
  uint64_t log_bytes_ = 0;
  std::vector<std::pair<LogRecord, std::optional<LogRecord>>> records_;

  std::string path_;
  std::vector<Frame> frames_;
  Hash256 patterns_;  // of the state at work
  std::unordered_map<Hash256, Done> known_;
};

Status Exporter::Put(ObjectType type, const ObjectId& id, ByteSpan raw) {
  if (raw.size() > MaxInBundle(type))
    return TooLarge("a " + ObjectTypeName(type) + " of " + std::to_string(raw.size()) +
                    " bytes");
  RecordHeader header;
  Bytes stored;
  header.type = type;
  header.id = id;
  header.codec = codec_.Encode(raw, stored);
  header.raw_length = static_cast<uint32_t>(raw.size());
  header.stored_length = static_cast<uint32_t>(stored.size());
  BELAY_OK(out_.Write(Encode(header)));
  BELAY_OK(out_.Write(stored));
  trailer_.raw_bytes += raw.size();
  return Ok();
}

Status Exporter::PutOnce(const ObjectKey& key, ByteSpan raw) {
  if (!emitted_.insert(key).second) return Ok();
  ++trailer_.objects;
  if (request_.progress) request_.progress(trailer_.objects);
  return Put(key.type, key.id, raw);
}

Result<bool> Exporter::EmitContent(const ObjectId& id, std::optional<uint64_t> size) {
  const ObjectKey blob{ObjectType::kBlob, id}, chunks{ObjectType::kChunks, id};
  if (emitted_.contains(blob) || emitted_.contains(chunks)) return true;
  BELAY_TRY(auto chunked, store_.Find(chunks));
  if (!chunked) {
    auto bytes = store_.Get(blob);
    if (bytes.ok()) {
      if (size && *size != bytes->size())
        return Error(Errc::kCorrupt, "a tree is wrong about the size of its content");
      BELAY_OK(PutOnce(blob, *bytes));
      return true;
    }
    if (bytes.error().code == Errc::kPurged) return false;
    if (bytes.error().code != Errc::kNotFound) return std::move(bytes).error();
  }
  auto encoded = store_.Get(chunks);
  if (encoded.ok()) return EmitChunked(id, *encoded, size);
  if (encoded.error().code == Errc::kPurged) return false;
  if (encoded.error().code == Errc::kNotFound)
    return Error(Errc::kCorrupt, "content " + id.hex() + " is not in the store");
  return std::move(encoded).error();
}

Result<bool> Exporter::EmitChunked(const ObjectId& id, const Bytes& encoded,
                                   std::optional<uint64_t> size) {
  BELAY_TRY(ChunkList list, DecodeChunks(encoded));
  if (size && *size != list.total)
    return Error(Errc::kCorrupt, "a tree is wrong about the size of its content");
  // Nothing is written before all of it is known to be there: a chunk that no list
  // names would not be taken by who imports.
  for (const Chunk& chunk : list.chunks) {
    const ObjectKey key{ObjectType::kBlob, chunk.id};
    BELAY_TRY(auto found, store_.Find(key));
    if (found) continue;
    auto bytes = store_.Get(key);
    if (!bytes.ok() && bytes.error().code == Errc::kPurged) return false;
    if (!bytes.ok()) return std::move(bytes).error();
  }
  Sha256 whole;
  for (const Chunk& chunk : list.chunks) {
    const ObjectKey key{ObjectType::kBlob, chunk.id};
    BELAY_TRY(Bytes bytes, store_.Get(key));
    if (bytes.size() != chunk.length)
      return Error(Errc::kCorrupt, "chunk list of " + id.hex() + " is damaged");
    whole.Update(bytes);
    BELAY_OK(PutOnce(key, bytes));
  }
  if (whole.Finish() != id)
    return Error(Errc::kCorrupt, "content " + id.hex() + " does not match its hash");
  chunked_ += list.total;
  BELAY_OK(PutOnce({ObjectType::kChunks, id}, encoded));
  return true;
}

Status Exporter::EmitRefs(const Node& node, int depth) {
  for (const ObjectKey& ref : node.refs) {
    if (ref.type == ObjectType::kNode) {
      BELAY_OK(EmitNode(ref.id, depth + 1));
      continue;
    }
    if (ref.type != ObjectType::kBlob)
      return Error(Errc::kUnsupported, "a record refers to a " +
                                           ObjectTypeName(ref.type) +
                                           ", which a bundle cannot hold");
    BELAY_TRY(bool there, EmitContent(ref.id, {}));
    if (!there)
      return Error(Errc::kPurged, "what the checkpoint was decided by was purged");
  }
  return Ok();
}

Status Exporter::EmitNode(const ObjectId& id, int depth) {
  const ObjectKey key{ObjectType::kNode, id};
  if (id.is_zero() || emitted_.contains(key)) return Ok();
  if (depth > kMaxNodeDepth) return TooLarge("a record of records");
  BELAY_TRY(Bytes bytes, store_.Get(key));
  BELAY_TRY(Node node, DecodeNode(bytes));
  BELAY_OK(EmitRefs(node, depth));
  return PutOnce(key, bytes);
}

// --- trees ---------------------------------------------------------------------------

Result<bool> Exporter::Enter(const ObjectId& id, DirRules::Ptr own, DirRules::Ptr now) {
  auto tree = store_.GetTree(id);
  if (!tree.ok() && tree.error().code == Errc::kPurged && !frames_.empty())
    return false;
  if (!tree.ok()) return std::move(tree).error();
  if (tree->entries.size() > kMaxBundleTreeEntries)
    return TooLarge("a directory of " + std::to_string(tree->entries.size()) +
                    " entries");
  Sha256 key;
  key.Update(patterns_.span());
  key.Update(id.span());
  key.Update(AsBytes(path_));
  frames_.push_back({.id = id,
                     .key = key.Finish(),
                     .tree = std::move(*tree),
                     .path_length = path_.size(),
                     .own = std::move(own),
                     .now = std::move(now),
                     .out = {},
                     .done = {}});
  return true;
}

void Exporter::Leave(const TreeEntry& entry, Skip why) {
  frames_.back().done.left_out.push_back({path_ + entry.name, why});
}

void Exporter::Take(TreeEntry entry, const Done& below) {
  Done& done = frames_.back().done;
  done.paths += 1 + below.paths;
  done.files += below.files;
  done.bytes += below.bytes;
  if (entry.kind != EntryKind::kDirectory) ++done.files;
  if (entry.kind == EntryKind::kFile) done.bytes += entry.size;
  done.left_out.insert(done.left_out.end(), below.left_out.begin(),
                       below.left_out.end());
  frames_.back().out.entries.push_back(std::move(entry));
}

Status Exporter::Step(const TreeEntry& given) {
  Frame& frame = frames_.back();
  TreeEntry entry = given;
  if (path_.size() + entry.name.size() > kMaxBundlePath) return TooLarge("a path");
  if (entry.kind != EntryKind::kDirectory && !BELAY_MUTANT("bundle-keeps-secrets") &&
      (frame.own->Decide(entry.name, false).secret ||
       frame.now->Decide(entry.name, false).secret)) {
    Leave(entry, Skip::kSecret);
    return Ok();
  }
  if (entry.kind == EntryKind::kDirectory) {
    Sha256 hash;
    hash.Update(patterns_.span());
    hash.Update(entry.id.span());
    hash.Update(AsBytes(path_ + entry.name + "/"));
    if (auto found = known_.find(hash.Finish()); found == known_.end()) {
      DirRules::Ptr own = frame.own->Enter(entry.name, {});
      DirRules::Ptr now =
          frame.now == frame.own ? own : frame.now->Enter(entry.name, {});
      path_ += entry.name + "/";
      BELAY_TRY(bool entered, Enter(entry.id, std::move(own), std::move(now)));
      if (entered) return Ok();
      path_.resize(frames_.back().path_length);
      Leave(entry, Skip::kPurged);
      return Ok();
    } else {
      if (!entry.xattrs.is_zero()) {
        BELAY_TRY(bool there, EmitContent(entry.xattrs, {}));
        if (!there) entry.xattrs = {};
      }
      entry.id = found->second.tree;
      Take(std::move(entry), found->second);
      return Ok();
    }
  }
  if (entry.kind == EntryKind::kFile) {
    auto there = EmitContent(entry.id, entry.size);
    if (!there.ok())
      return Context(there.error(), EscapeForDisplay(path_ + entry.name));
    if (!*there) {
      Leave(entry, Skip::kPurged);
      return Ok();
    }
  }
  if (!entry.xattrs.is_zero()) {
    BELAY_TRY(bool there, EmitContent(entry.xattrs, {}));
    if (!there) entry.xattrs = {};
  }
  Take(std::move(entry), {});
  return Ok();
}

Result<Exporter::Done> Exporter::RewriteTree(const ObjectId& root,
                                             const StateView& view) {
  const std::vector<std::string> patterns = view.rules
                                                ? view.rules->lists.secret_patterns
                                                : Settings::DefaultSecretPatterns();
  Bytes digest;
  ByteWriter writer(digest);
  for (const auto* list : {&patterns, &request_.secret_patterns}) {
    writer.Varint(list->size());
    for (const std::string& pattern : *list) writer.Sized(pattern);
  }
  patterns_ = Sha256::Of(digest);
  path_.clear();
  DirRules::Ptr own = SecretsOf(patterns);
  DirRules::Ptr now =
      patterns == request_.secret_patterns ? own : SecretsOf(request_.secret_patterns);
  BELAY_TRY(bool entered, Enter(root, own, now));
  BELAY_CHECK(entered);
  for (;;) {
    Frame& frame = frames_.back();
    if (frame.next < frame.tree.entries.size()) {
      // Entering a directory moves the frames: nothing of `frame` is used after Step.
      const TreeEntry& entry = frame.tree.entries[frame.next++];
      const TreeEntry copy = entry;
      BELAY_OK(Step(copy));
      continue;
    }
    BELAY_TRY(Bytes encoding, EncodeTree(frame.out));
    frame.done.tree = Sha256::Of(encoding);
    if (frame.done.paths > kMaxBundlePaths) return TooLarge("a checkpoint");
    BELAY_OK(PutOnce({ObjectType::kTree, frame.done.tree}, encoding));
    Done done = std::move(frame.done);
    known_.emplace(frame.key, done);
    frames_.pop_back();
    if (frames_.empty()) return done;
    // The directory itself, which waits above for its tree.
    Frame& above = frames_.back();
    path_.resize(above.path_length);
    TreeEntry entry = above.tree.entries[above.next - 1];
    if (!entry.xattrs.is_zero()) {
      BELAY_TRY(bool there, EmitContent(entry.xattrs, {}));
      if (!there) entry.xattrs = {};
    }
    entry.id = done.tree;
    Take(std::move(entry), done);
  }
}

// --- checkpoints ---------------------------------------------------------------------

Status Exporter::EmitCheckpoint(Item item, ExportReport& report) {
  Checkpoint& c = item.entry.checkpoint;
  // What no reader would take is not written.
  if (c.name) BELAY_OK(CheckName(*c.name));
  if (c.made_ms < 0 || c.made_ms > kLastBundleMillis)
    return Error(Errc::kUnsupported,
                 "it was made when the clock was beyond the years 1970 to 9999")
        .WithHint(
            "to take its files along: belay fork REF DIR, then a checkpoint there");
  BELAY_TRY(StateView view, LoadState(store_, c.state));
  if (!view.trouble.empty())
    return Error(Errc::kCorrupt, "its rules cannot be read: " + view.trouble);
  frames_.clear();
  BELAY_TRY(Done done, RewriteTree(view.state.tree, view));
  std::sort(done.left_out.begin(), done.left_out.end(),
            [](const SkippedPath& a, const SkippedPath& b) { return a.path < b.path; });

  State state = view.state;
  state.tree = done.tree;
  // Git's state is of one repository on one machine, and holds what was only staged,
  // secrets among it.
  if (!BELAY_MUTANT("bundle-takes-git")) state.git = {};
  BELAY_OK(EmitNode(state.git, 0));
  if (!state.rules.is_zero() && !done.left_out.empty() &&
      !BELAY_MUTANT("bundle-forgets-skipped")) {
    BELAY_TRY(Bytes bytes, store_.Get({ObjectType::kNode, state.rules}));
    BELAY_TRY(Node node, DecodeNode(bytes));
    BELAY_TRY(Node rules, AddSkipped(node, done.left_out));
    BELAY_OK(EmitRefs(rules, 0));
    const Bytes encoding = EncodeNode(rules);
    state.rules = Sha256::Of(encoding);
    BELAY_OK(PutOnce({ObjectType::kNode, state.rules}, encoding));
  } else {
    BELAY_OK(EmitNode(state.rules, 0));
  }
  const Bytes encoding = EncodeState(state);
  const ObjectId before = c.state;
  c.state = Sha256::Of(encoding);
  BELAY_OK(PutOnce({ObjectType::kState, c.state}, encoding));

  if (c.state != before)
    c.meta.emplace(std::string(kOriginState),
                   OriginState(store_.manifest().store, before));
  if (c.meta.size() > kMaxBundleMeta) return TooLarge("its meta");
  c.root = RootId();
  c.seq = 0;
  c.more_refs.clear();
  c.imported = false;  // the same bytes wherever it is exported
  c.external.clear();  // files of one machine, which nobody put into the project
  c.files = done.files;
  c.bytes = done.bytes;
  std::optional<LogRecord> annotation;
  if (item.entry.pinned || item.entry.health) {
    annotation.emplace();
    annotation->kind = RecordKind::kAnnotation;
    annotation->fields.Add(kAnnotationTarget, c.id.span());
    if (item.entry.pinned) annotation->fields.AddNumber(kAnnotationPinned, 1);
    if (item.entry.health)
      annotation->fields.AddNumber(kAnnotationHealth,
                                   static_cast<uint64_t>(*item.entry.health));
  }
  records_.emplace_back(ToRecord(c), std::move(annotation));
  report.checkpoints.push_back({std::move(c), std::move(done.left_out)});
  return Ok();
}

Status Exporter::PutLog(const LogRecord& record) {
  const Bytes encoding = EncodeLogRecord(record);
  log_bytes_ += encoding.size();
  if (log_bytes_ > kMaxBundleLog) return TooLarge("what is known of the checkpoints");
  return Put(ObjectType::kLog, Sha256::Of(encoding), encoding);
}

Result<ExportReport> Exporter::Run() {
  BELAY_TRY(HeldLock hold, store_.HoldForReading());
  BELAY_OK(store_.Refresh());
  ExportReport report;
  BELAY_OK(out_.Write(EncodeBundleHeader()));
  for (Item& item : InOrder(store_, request_)) {
    const std::string id = item.entry.checkpoint.id.text().substr(0, 7);
    if (Status done = EmitCheckpoint(std::move(item), report); !done.ok())
      return Context(done.error(), "checkpoint " + id);
  }
  for (const auto& [checkpoint, annotation] : records_) {
    ++trailer_.checkpoints;
    BELAY_OK(PutLog(checkpoint));
    if (annotation) BELAY_OK(PutLog(*annotation));
  }
  trailer_.length = out_.length() + kBundleTrailerSize;
  if (trailer_.raw_bytes + chunked_ > MaxDecoded(trailer_.length))
    return TooLarge("what these checkpoints hold");
  auto end = Encode(trailer_);
  BELAY_OK(out_.Write(ByteSpan(end).first(kBundleHashAt)));
  trailer_.hash = out_.HashSoFar();
  end = Encode(trailer_);
  BELAY_OK(out_.Unhashed(ByteSpan(end).subspan(kBundleHashAt)));
  BELAY_OK(out_.Flush());
  report.objects = trailer_.objects;
  report.length = out_.length();
  return report;
}

}  // namespace

Result<ExportReport> WriteBundle(Store& store, const ExportRequest& request,
                                 const BundleSink& sink) {
  return Exporter(store, request, sink).Run();
}

}  // namespace belay
