#include "store/log_record.h"

#include "store/log_record_internal.h"

namespace belay {

namespace {
constexpr uint8_t kRecordVersion = 1;

enum CheckpointTag : uint64_t {
  kKind = 1,
  kName,
  kNote,
  kDescription,
  kSession,
  kAgent,
  kTurn,
  kPrompt,
  kMessageId,
  kMessageIndex,
  kToolName,
  kToolUseId,
  kFiles,
  kBytes,
  kAdded,
  kModified,
  kDeleted,
  kStoredBytes,
  kTookUs,
  kPartial,
  kMeta,
  kSubagent,
  kPath,
  kBy,
  kSince,
  kChangedDirs,
  kExternal,
  kImported,
};
constexpr uint64_t kMetaKey = 1, kMetaValue = 2;
constexpr uint64_t kRootPath = 1, kRootOff = 2, kRootDev = 3, kRootIno = 4,
                   kRootPurged = 5, kAboutRecord = 1, kPurgeObject = 1, kPurgeWhy = 2,
                   kPurgeErased = 3, kPurgeKept = 4;

}  // namespace

std::vector<ExternalFile> ExternalIn(const LogRecord& record) {
  if (record.kind == RecordKind::kCheckpoint)
    return DecodeExternals(record.fields.All(kExternal));
  if (record.kind == RecordKind::kAnnotation)
    return DecodeExternals(record.fields.All(kAnnotationExternal));
  return {};
}

Bytes EncodeLogRecord(const LogRecord& record) {
  Bytes out;
  ByteWriter w(out);
  w.U8(kRecordVersion);
  w.U16(static_cast<uint16_t>(record.kind));
  w.U64(record.seq);
  w.Raw(record.id.span());
  w.Raw(record.root.span());
  w.U64(static_cast<uint64_t>(record.made_ms));
  w.Varint(record.refs.size());
  for (const ObjectKey& ref : record.refs) {
    w.U8(static_cast<uint8_t>(ref.type));
    w.Raw(ref.id.span());
  }
  record.fields.Encode(w);
  return out;
}

Result<LogRecord> DecodeLogRecord(ByteSpan bytes) {
  ByteReader r(bytes);
  if (r.U8() != kRecordVersion) return BadRecord("unknown version");
  LogRecord record;
  record.kind = static_cast<RecordKind>(r.U16());
  record.seq = r.U64();
  ByteSpan id = r.Raw(16);
  ByteSpan root = r.Raw(16);
  record.made_ms = static_cast<int64_t>(r.U64());
  uint64_t count = r.Varint();
  if (r.failed()) return BadRecord("cut short");
  if (count > r.remaining() / 33) return BadRecord("impossible reference count");
  record.id = RecordId(Id128::FromSpan(id));
  record.root = RootId(Id128::FromSpan(root));
  for (uint64_t i = 0; i < count; ++i) {
    ObjectType type = static_cast<ObjectType>(r.U8());
    record.refs.push_back({type, Hash256::FromSpan(r.Raw(32))});
  }
  BELAY_TRY(record.fields, Fields::Decode(r));
  return record;
}

LogRecord ToRecord(const Checkpoint& c) {
  LogRecord record;
  record.kind = RecordKind::kCheckpoint;
  record.id = c.id;
  record.seq = c.seq;
  record.root = c.root;
  record.made_ms = c.made_ms;
  record.refs.push_back({ObjectType::kState, c.state});
  record.refs.insert(record.refs.end(), c.more_refs.begin(), c.more_refs.end());

  Fields& f = record.fields;
  auto text = [&f](uint64_t tag, const std::optional<std::string>& value) {
    if (value) f.Add(tag, *value);
  };
  auto number = [&f](uint64_t tag, uint64_t value) {
    if (value != 0) f.AddNumber(tag, value);
  };
  f.AddNumber(kKind, static_cast<uint64_t>(c.kind));
  text(kName, c.name);
  text(kNote, c.note);
  f.Add(kDescription, c.description);
  text(kSession, c.session);
  text(kAgent, c.agent);
  text(kSubagent, c.subagent);
  text(kPrompt, c.prompt);
  text(kMessageId, c.message_id);
  text(kToolName, c.tool_name);
  text(kToolUseId, c.tool_use_id);
  if (c.turn) f.AddNumber(kTurn, *c.turn);
  if (c.message_index) f.AddNumber(kMessageIndex, *c.message_index);
  number(kFiles, c.files);
  number(kBytes, c.bytes);
  number(kAdded, c.added);
  number(kModified, c.modified);
  number(kDeleted, c.deleted);
  number(kChangedDirs, c.changed_dirs);
  number(kStoredBytes, c.stored_bytes);
  number(kTookUs, c.took_us);
  number(kPartial, c.partial ? 1 : 0);
  for (const auto& [key, value] : c.meta) {
    Fields pair;
    pair.Add(kMetaKey, key);
    pair.Add(kMetaValue, value);
    f.AddNested(kMeta, pair);
  }
  for (const std::string& path : c.paths) f.Add(kPath, path);
  for (const Authorship& by : c.by) f.AddNested(kBy, EncodeAuthorship(by));
  if (!c.since.is_zero()) f.Add(kSince, c.since.span());
  for (const ExternalFile& file : c.external)
    f.AddNested(kExternal, EncodeExternal(file));
  number(kImported, c.imported ? 1 : 0);
  return record;
}

Result<Checkpoint> ToCheckpoint(const LogRecord& record) {
  if (record.kind != RecordKind::kCheckpoint || record.refs.empty() ||
      record.refs[0].type != ObjectType::kState)
    return BadRecord("not a checkpoint");
  Checkpoint c;
  c.id = record.id;
  c.seq = record.seq;
  c.root = record.root;
  c.made_ms = record.made_ms;
  c.state = record.refs[0].id;
  c.more_refs.assign(record.refs.begin() + 1, record.refs.end());
  const Fields& f = record.fields;
  uint64_t kind = f.Number(kKind).value_or(0);
  if (kind > 2) return BadRecord("unknown kind of checkpoint");
  c.kind = static_cast<CheckpointKind>(kind);
  c.name = f.Text(kName);
  c.note = f.Text(kNote);
  c.description = f.Text(kDescription).value_or("");
  c.session = f.Text(kSession);
  c.agent = f.Text(kAgent);
  c.subagent = f.Text(kSubagent);
  c.prompt = f.Text(kPrompt);
  c.message_id = f.Text(kMessageId);
  c.tool_name = f.Text(kToolName);
  c.tool_use_id = f.Text(kToolUseId);
  c.turn = f.Number(kTurn);
  c.message_index = f.Number(kMessageIndex);
  c.files = f.Number(kFiles).value_or(0);
  c.bytes = f.Number(kBytes).value_or(0);
  c.added = f.Number(kAdded).value_or(0);
  c.modified = f.Number(kModified).value_or(0);
  c.deleted = f.Number(kDeleted).value_or(0);
  c.changed_dirs = f.Number(kChangedDirs).value_or(0);
  c.stored_bytes = f.Number(kStoredBytes).value_or(0);
  c.took_us = f.Number(kTookUs).value_or(0);
  c.partial = f.Number(kPartial).value_or(0) != 0;
  for (ByteSpan raw : f.All(kMeta)) {
    ByteReader r(raw);
    BELAY_TRY(Fields pair, Fields::Decode(r));
    c.meta[pair.Text(kMetaKey).value_or("")] = pair.Text(kMetaValue).value_or("");
  }
  for (ByteSpan path : f.All(kPath)) c.paths.emplace_back(AsText(path));
  for (ByteSpan raw : f.All(kBy)) {
    BELAY_TRY(Authorship by, DecodeAuthorship(raw));
    c.by.push_back(std::move(by));
  }
  if (auto since = f.All(kSince); !since.empty() && since[0].size() == 16)
    c.since = RecordId(Id128::FromSpan(since[0]));
  c.external = DecodeExternals(f.All(kExternal));
  c.imported = f.Number(kImported).value_or(0) == 1;
  return c;
}

LogRecord ToRecord(const Root& root, const RecordId& id, int64_t made_ms) {
  LogRecord record;
  record.kind = RecordKind::kRoot;
  record.id = id;
  record.root = root.id;
  record.made_ms = made_ms;
  record.fields.Add(kRootPath, root.path);
  if (root.off) record.fields.AddNumber(kRootOff, 1);
  if (root.ino != 0) {
    record.fields.AddNumber(kRootDev, root.dev);
    record.fields.AddNumber(kRootIno, root.ino);
  }
  for (const std::string& path : root.purged) record.fields.Add(kRootPurged, path);
  return record;
}

Result<Root> ToRoot(const LogRecord& record) {
  auto path = record.fields.Text(kRootPath);
  if (record.kind != RecordKind::kRoot || record.root.is_zero() || !path)
    return BadRecord("not a root");
  Root root{.id = record.root,
            .path = *path,
            .off = record.fields.Number(kRootOff).value_or(0) != 0,
            .dev = record.fields.Number(kRootDev).value_or(0),
            .ino = record.fields.Number(kRootIno).value_or(0)};
  for (ByteSpan purged : record.fields.All(kRootPurged))
    root.purged.emplace_back(AsText(purged));
  return root;
}

namespace {
// A record that says something about others: it holds their ids, and nothing else.
LogRecord MakeAbout(RecordKind kind, const RecordId& id, int64_t made_ms,
                    const std::vector<RecordId>& about) {
  LogRecord record;
  record.kind = kind;
  record.id = id;
  record.made_ms = made_ms;
  for (const RecordId& one : about) record.fields.Add(kAboutRecord, one.span());
  return record;
}

std::vector<RecordId> AboutWhich(RecordKind kind, const LogRecord& record) {
  std::vector<RecordId> out;
  if (record.kind != kind) return out;
  for (ByteSpan raw : record.fields.All(kAboutRecord))
    if (raw.size() == 16) out.emplace_back(Id128::FromSpan(raw));
  return out;
}
}  // namespace

LogRecord MakeDrop(const RecordId& id, int64_t made_ms,
                   const std::vector<RecordId>& dropped) {
  return MakeAbout(RecordKind::kDrop, id, made_ms, dropped);
}

std::vector<RecordId> DroppedBy(const LogRecord& record) {
  return AboutWhich(RecordKind::kDrop, record);
}

LogRecord MakeRelease(const RecordId& id, const RootId& root, int64_t made_ms,
                      const std::vector<RecordId>& released) {
  LogRecord record = MakeAbout(RecordKind::kRelease, id, made_ms, released);
  record.root = root;
  return record;
}

std::vector<RecordId> ReleasedBy(const LogRecord& record) {
  return AboutWhich(RecordKind::kRelease, record);
}

LogRecord MakePurge(const RecordId& id, int64_t made_ms,
                    const std::vector<ObjectKey>& purged, std::string_view why,
                    bool erased, const std::vector<KeptChunks>& kept) {
  LogRecord record;
  record.kind = RecordKind::kPurge;
  record.id = id;
  record.made_ms = made_ms;
  for (const ObjectKey& key : purged) {
    Bytes raw;
    ByteWriter w(raw);
    w.U8(static_cast<uint8_t>(key.type));
    w.Raw(key.id.span());
    record.fields.Add(kPurgeObject, raw);
  }
  record.fields.Add(kPurgeWhy, why);
  if (erased) record.fields.AddNumber(kPurgeErased, 1);
  for (const KeptChunks& one : kept) {
    Bytes raw;
    ByteWriter w(raw);
    w.Raw(one.content.span());
    for (const ObjectId& chunk : one.chunks) w.Raw(chunk.span());
    record.fields.Add(kPurgeKept, raw);
  }
  return record;
}

std::vector<KeptChunks> KeptBy(const LogRecord& record) {
  std::vector<KeptChunks> out;
  if (record.kind != RecordKind::kPurge) return out;
  constexpr size_t kId = 32;
  for (ByteSpan raw : record.fields.All(kPurgeKept)) {
    if (raw.size() < kId || raw.size() % kId != 0) continue;
    KeptChunks& one =
        out.emplace_back(KeptChunks{Hash256::FromSpan(raw.first(kId)), {}});
    for (size_t at = kId; at < raw.size(); at += kId)
      one.chunks.push_back(Hash256::FromSpan(raw.subspan(at, kId)));
  }
  return out;
}

bool WasErased(const LogRecord& record) {
  return record.kind == RecordKind::kPurge &&
         record.fields.Number(kPurgeErased).value_or(0) != 0;
}

std::vector<ObjectKey> PurgedBy(const LogRecord& record) {
  std::vector<ObjectKey> out;
  if (record.kind != RecordKind::kPurge) return out;
  for (ByteSpan raw : record.fields.All(kPurgeObject))
    if (raw.size() == 33)
      out.push_back(
          {static_cast<ObjectType>(raw[0]), Hash256::FromSpan(raw.subspan(1))});
  return out;
}

std::optional<RecordId> AnnotationTarget(const LogRecord& record) {
  if (record.kind != RecordKind::kAnnotation) return std::nullopt;
  auto values = record.fields.All(kAnnotationTarget);
  if (values.size() != 1 || values[0].size() != 16) return std::nullopt;
  return RecordId(Id128::FromSpan(values[0]));
}

}  // namespace belay
