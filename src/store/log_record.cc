#include "store/log_record.h"

#include <algorithm>

#include "base/mutant.h"
#include "base/path.h"

namespace belay {

namespace {
constexpr uint8_t kVersion = 1;

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
};
constexpr uint64_t kMetaKey = 1, kMetaValue = 2;
// Of one entry of kBy, and of an author in it.
constexpr uint64_t kByAuthor = 1, kByPath = 2;
constexpr uint64_t kAuthorKind = 1, kAuthorSession = 2, kAuthorAgent = 3,
                   kAuthorSubagent = 4, kAuthorTurn = 5, kAuthorTool = 6,
                   kAuthorToolUse = 7;
// Of one entry of kExternal.
constexpr uint64_t kExternalPath = 1, kExternalKind = 2, kExternalMode = 3,
                   kExternalUid = 4, kExternalGid = 5, kExternalSize = 6,
                   kExternalContent = 7, kExternalTarget = 8, kExternalXattrs = 9,
                   kExternalLeftOut = 10, kExternalSession = 11;
// Of a session's record, a turn's, and that of a copy of a transcript.
constexpr uint64_t kSessionId = 1, kSessionAgent = 2, kSessionParent = 3,
                   kSessionInherited = 5, kSessionPath = 6, kSessionEnded = 8,
                   kSessionCwd = 9, kSessionIsSubagent = 10, kSessionSubagentType = 11,
                   kSessionBy = 12;
constexpr uint64_t kTurnSession = 1, kTurnNumber = 2, kTurnPrompt = 3, kTurnAnchor = 4;
constexpr uint64_t kTranscriptSession = 1, kTranscriptAgent = 2, kTranscriptPath = 3,
                   kTranscriptBytes = 4, kTranscriptSubagent = 5, kTranscriptDev = 6,
                   kTranscriptIno = 7, kTranscriptWhole = 8;
constexpr uint64_t kRootPath = 1, kRootOff = 2, kRootDev = 3, kRootIno = 4,
                   kRootPurged = 5, kAboutRecord = 1, kPurgeObject = 1, kPurgeWhy = 2,
                   kPurgeErased = 3, kPurgeKept = 4;

Error Bad(std::string_view why) {
  return Error(Errc::kCorrupt, "record: " + std::string(why));
}
}  // namespace

namespace {

void AddText(Fields& fields, uint64_t tag, const std::optional<std::string>& text) {
  if (text) fields.Add(tag, *text);
}

Fields EncodeAuthorship(const Authorship& by) {
  Fields out;
  for (const Author& author : by.authors) {
    Fields f;
    f.AddNumber(kAuthorKind, static_cast<uint64_t>(author.kind));
    AddText(f, kAuthorSession, author.session);
    AddText(f, kAuthorAgent, author.agent);
    AddText(f, kAuthorSubagent, author.subagent);
    if (author.turn) f.AddNumber(kAuthorTurn, *author.turn);
    AddText(f, kAuthorTool, author.tool_name);
    AddText(f, kAuthorToolUse, author.tool_use_id);
    out.AddNested(kByAuthor, f);
  }
  for (const std::string& path : by.paths) out.Add(kByPath, path);
  return out;
}

Result<Authorship> DecodeAuthorship(ByteSpan bytes) {
  ByteReader r(bytes);
  BELAY_TRY(Fields fields, Fields::Decode(r));
  Authorship out;
  for (ByteSpan raw : fields.All(kByAuthor)) {
    ByteReader in(raw);
    BELAY_TRY(Fields f, Fields::Decode(in));
    const uint64_t kind = f.Number(kAuthorKind).value_or(0);
    // One that a newer version knows is nobody whom this one does.
    Author author{
        .kind = kind > 3 ? Author::Kind::kOutside : static_cast<Author::Kind>(kind),
        .session = f.Text(kAuthorSession),
        .agent = f.Text(kAuthorAgent),
        .subagent = f.Text(kAuthorSubagent),
        .tool_name = f.Text(kAuthorTool),
        .tool_use_id = f.Text(kAuthorToolUse),
        .turn = f.Number(kAuthorTurn)};
    out.authors.push_back(std::move(author));
  }
  for (ByteSpan path : fields.All(kByPath)) out.paths.emplace_back(AsText(path));
  return out;
}

Fields EncodeExternal(const ExternalFile& file) {
  Fields f;
  f.Add(kExternalPath, file.path);
  if (file.left_out != 0) f.AddNumber(kExternalLeftOut, file.left_out);
  AddText(f, kExternalSession, file.session);
  if (!file.state) return f;
  const TreeEntry& state = *file.state;
  f.AddNumber(kExternalKind, static_cast<uint64_t>(state.kind));
  f.AddNumber(kExternalMode, state.mode);
  f.AddNumber(kExternalUid, state.uid);
  f.AddNumber(kExternalGid, state.gid);
  if (state.kind == EntryKind::kFile) {
    f.AddNumber(kExternalSize, state.size);
    f.Add(kExternalContent, state.id.span());
  } else {
    f.Add(kExternalTarget, state.target);
  }
  if (!state.xattrs.is_zero()) f.Add(kExternalXattrs, state.xattrs.span());
  return f;
}

// Nothing for what no Belay writes: a path that leads to git's own files, a directory,
// a mode that cannot be.
std::optional<ExternalFile> DecodeExternal(ByteSpan bytes) {
  ByteReader r(bytes);
  auto f = Fields::Decode(r);
  if (!f.ok()) return std::nullopt;
  ExternalFile out;
  out.path = f->Text(kExternalPath).value_or("");
  if (!IsExternalPath(out.path) && !BELAY_MUTANT("external-path-is-believed"))
    return std::nullopt;
  const uint64_t left_out = f->Number(kExternalLeftOut).value_or(0);
  if (left_out > 255) return std::nullopt;
  out.left_out = static_cast<uint8_t>(left_out);
  out.session = f->Text(kExternalSession);
  const auto kind = f->Number(kExternalKind);
  if (!kind || out.left_out != 0) return out;
  TreeEntry state;
  const uint64_t mode = f->Number(kExternalMode).value_or(UINT64_MAX),
                 uid = f->Number(kExternalUid).value_or(UINT64_MAX),
                 gid = f->Number(kExternalGid).value_or(UINT64_MAX);
  if (mode > 07777 || uid > UINT32_MAX - 1 || gid > UINT32_MAX - 1) return std::nullopt;
  state.mode = static_cast<uint32_t>(mode);
  state.uid = static_cast<uint32_t>(uid);
  state.gid = static_cast<uint32_t>(gid);
  auto id_at = [&](uint64_t tag) {
    auto ids = f->All(tag);
    return ids.size() == 1 && ids[0].size() == 32 ? ObjectId::FromSpan(ids[0])
                                                  : ObjectId();
  };
  if (*kind == static_cast<uint64_t>(EntryKind::kFile)) {
    state.kind = EntryKind::kFile;
    state.size = f->Number(kExternalSize).value_or(0);
    state.id = id_at(kExternalContent);
    if (state.id.is_zero()) return std::nullopt;
  } else if (*kind == static_cast<uint64_t>(EntryKind::kSymlink)) {
    state.kind = EntryKind::kSymlink;
    state.target = f->Text(kExternalTarget).value_or("");
    if (state.target.empty() || state.target.size() > 4095 ||
        state.target.find('\0') != std::string::npos)
      return std::nullopt;
  } else {
    return std::nullopt;
  }
  state.xattrs = id_at(kExternalXattrs);
  out.state = std::move(state);
  return out;
}

std::vector<ExternalFile> DecodeExternals(const std::vector<ByteSpan>& all) {
  std::vector<ExternalFile> out;
  for (ByteSpan raw : all) {
    auto file = DecodeExternal(raw);
    if (!file || out.size() >= kMaxExternal) continue;
    if (!out.empty() && !(out.back().path < file->path)) continue;
    out.push_back(std::move(*file));
  }
  return out;
}

}  // namespace

bool IsExternalPath(std::string_view path) {
  auto parsed = AbsPath::Parse(path);
  if (!parsed.ok() || parsed->is_root() || path.size() > 4095) return false;
  for (const char* top : {"/proc", "/sys", "/dev"})
    if (parsed->IsWithin(AbsPath::Literal(top))) return false;
  auto below = RelPath::Parse(path.substr(1));
  if (!below.ok()) return false;
  // What a rollback makes ready beside the files is nobody's to name.
  constexpr std::string_view kStage = ".belay-stage-";
  for (std::string_view name : below->Components())
    if (IsGitAlias(name) || name.starts_with(kStage)) return false;
  return true;
}

std::vector<ExternalFile> ExternalIn(const LogRecord& record) {
  if (record.kind == RecordKind::kCheckpoint)
    return DecodeExternals(record.fields.All(kExternal));
  if (record.kind == RecordKind::kAnnotation)
    return DecodeExternals(record.fields.All(kAnnotationExternal));
  return {};
}

std::vector<ObjectKey> RefsOf(const std::vector<ExternalFile>& external) {
  std::vector<ObjectKey> out;
  for (const ExternalFile& file : external) {
    if (!file.state) continue;
    if (file.state->kind == EntryKind::kFile)
      out.push_back({ObjectType::kBlob, file.state->id});
    if (!file.state->xattrs.is_zero())
      out.push_back({ObjectType::kBlob, file.state->xattrs});
  }
  return out;
}

void AddAuthors(Fields& annotation, const std::vector<Authorship>& by,
                const RecordId& since) {
  for (const Authorship& one : by)
    annotation.AddNested(kAnnotationBy, EncodeAuthorship(one));
  annotation.Add(kAnnotationSince, since.span());
}

void AddExternal(LogRecord& annotation, const std::vector<ExternalFile>& external) {
  for (const ExternalFile& file : external)
    annotation.fields.AddNested(kAnnotationExternal, EncodeExternal(file));
  for (const ObjectKey& key : RefsOf(external)) annotation.refs.push_back(key);
}

void ApplyHandedOn(const Fields& annotation, Checkpoint& checkpoint) {
  if (auto since = annotation.All(kAnnotationSince);
      since.size() == 1 && since[0].size() == 16) {
    std::vector<Authorship> by;
    bool whole = true;
    for (ByteSpan raw : annotation.All(kAnnotationBy)) {
      auto one = DecodeAuthorship(raw);
      whole = whole && one.ok();
      if (one.ok()) by.push_back(std::move(*one));
    }
    if (whole) {
      checkpoint.by = std::move(by);
      checkpoint.since = RecordId(Id128::FromSpan(since[0]));
    }
  }
  if (auto external = annotation.All(kAnnotationExternal); !external.empty())
    checkpoint.external = DecodeExternals(external);
}

Bytes EncodeLogRecord(const LogRecord& record) {
  Bytes out;
  ByteWriter w(out);
  w.U8(kVersion);
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
  if (r.U8() != kVersion) return Bad("unknown version");
  LogRecord record;
  record.kind = static_cast<RecordKind>(r.U16());
  record.seq = r.U64();
  ByteSpan id = r.Raw(16);
  ByteSpan root = r.Raw(16);
  record.made_ms = static_cast<int64_t>(r.U64());
  uint64_t count = r.Varint();
  if (r.failed()) return Bad("cut short");
  if (count > r.remaining() / 33) return Bad("impossible reference count");
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
  return record;
}

Result<Checkpoint> ToCheckpoint(const LogRecord& record) {
  if (record.kind != RecordKind::kCheckpoint || record.refs.empty() ||
      record.refs[0].type != ObjectType::kState)
    return Bad("not a checkpoint");
  Checkpoint c;
  c.id = record.id;
  c.seq = record.seq;
  c.root = record.root;
  c.made_ms = record.made_ms;
  c.state = record.refs[0].id;
  c.more_refs.assign(record.refs.begin() + 1, record.refs.end());
  const Fields& f = record.fields;
  uint64_t kind = f.Number(kKind).value_or(0);
  if (kind > 2) return Bad("unknown kind of checkpoint");
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
  return c;
}

namespace {

// Of a checkpoint that does not say who was at work.
Author AuthorByFields(const Checkpoint& c) {
  // What differs before a program, a tool or a rollback is at work came from elsewhere.
  if (c.kind == CheckpointKind::kSafety ||
      (c.kind == CheckpointKind::kAuto && c.description.starts_with("before ")))
    return {};
  if (!c.session && !c.tool_name) return {};
  return {.kind = c.session ? Author::Kind::kSession : Author::Kind::kRun,
          .session = c.session,
          .agent = c.agent,
          .subagent = c.subagent,
          .tool_name = c.tool_name,
          .tool_use_id = c.tool_use_id,
          .turn = c.turn};
}

}  // namespace

std::vector<Author> AuthorsOf(const Checkpoint& checkpoint, std::string_view path) {
  const Authorship* rest = nullptr;
  for (const Authorship& by : checkpoint.by) {
    if (by.authors.empty()) continue;
    if (std::find(by.paths.begin(), by.paths.end(), path) != by.paths.end())
      return by.authors;
    if (by.paths.empty()) rest = &by;
  }
  if (rest != nullptr) return rest->authors;
  return {checkpoint.by.empty() ? AuthorByFields(checkpoint) : Author()};
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
    return Bad("not a root");
  Root root{.id = record.root,
            .path = *path,
            .off = record.fields.Number(kRootOff).value_or(0) != 0,
            .dev = record.fields.Number(kRootDev).value_or(0),
            .ino = record.fields.Number(kRootIno).value_or(0)};
  for (ByteSpan purged : record.fields.All(kRootPurged))
    root.purged.emplace_back(AsText(purged));
  return root;
}

LogRecord ToRecord(const SessionRecord& session, const RecordId& id, const RootId& root,
                   int64_t made_ms) {
  LogRecord record;
  record.kind = RecordKind::kSession;
  record.id = id;
  record.root = root;
  record.made_ms = made_ms;
  Fields& f = record.fields;
  f.Add(kSessionId, session.session);
  AddText(f, kSessionAgent, session.agent);
  AddText(f, kSessionParent, session.parent);
  if (session.inherited_turns != 0)
    f.AddNumber(kSessionInherited, session.inherited_turns);
  AddText(f, kSessionPath, session.transcript_path);
  if (session.ended) f.AddNumber(kSessionEnded, 1);
  if (!session.cwd.empty()) f.Add(kSessionCwd, session.cwd);
  if (session.subagent) f.AddNumber(kSessionIsSubagent, 1);
  AddText(f, kSessionSubagentType, session.subagent_type);
  if (session.by != SessionRecord::By::kNone)
    f.AddNumber(kSessionBy, static_cast<uint64_t>(session.by));
  return record;
}

Result<SessionRecord> ToSession(const LogRecord& record) {
  auto id = record.fields.Text(kSessionId);
  if (record.kind != RecordKind::kSession || !id) return Bad("not a session");
  const Fields& f = record.fields;
  const uint64_t by = f.Number(kSessionBy).value_or(0);
  return SessionRecord{
      .session = *id,
      .agent = f.Text(kSessionAgent),
      .parent = f.Text(kSessionParent),
      .inherited_turns = f.Number(kSessionInherited).value_or(0),
      .transcript_path = f.Text(kSessionPath),
      .ended = f.Number(kSessionEnded).value_or(0) != 0,
      .cwd = f.Text(kSessionCwd).value_or(""),
      .subagent = f.Number(kSessionIsSubagent).value_or(0) != 0,
      .subagent_type = f.Text(kSessionSubagentType),
      .by = by > 2 ? SessionRecord::By::kNone : static_cast<SessionRecord::By>(by)};
}

LogRecord ToRecord(const TurnRecord& turn, const RecordId& id, const RootId& root,
                   int64_t made_ms) {
  LogRecord record;
  record.kind = RecordKind::kTurn;
  record.id = id;
  record.root = root;
  record.made_ms = made_ms;
  record.fields.Add(kTurnSession, turn.session);
  record.fields.AddNumber(kTurnNumber, turn.turn);
  record.fields.Add(kTurnPrompt, turn.prompt);
  AddText(record.fields, kTurnAnchor, turn.anchor);
  return record;
}

Result<TurnRecord> ToTurn(const LogRecord& record) {
  auto session = record.fields.Text(kTurnSession);
  if (record.kind != RecordKind::kTurn || !session) return Bad("not a turn");
  return TurnRecord{.session = *session,
                    .turn = record.fields.Number(kTurnNumber).value_or(0),
                    .prompt = record.fields.Text(kTurnPrompt).value_or(""),
                    .anchor = record.fields.Text(kTurnAnchor)};
}

LogRecord ToRecord(const TranscriptRecord& transcript, const RecordId& id,
                   const RootId& root, int64_t made_ms) {
  LogRecord record;
  record.kind = RecordKind::kTranscript;
  record.id = id;
  record.root = root;
  record.made_ms = made_ms;
  record.refs.push_back({ObjectType::kNode, transcript.content});
  Fields& f = record.fields;
  f.Add(kTranscriptSession, transcript.session);
  AddText(f, kTranscriptAgent, transcript.agent);
  f.Add(kTranscriptPath, transcript.path);
  f.AddNumber(kTranscriptBytes, transcript.bytes);
  AddText(f, kTranscriptSubagent, transcript.subagent);
  f.AddNumber(kTranscriptDev, transcript.dev);
  f.AddNumber(kTranscriptIno, transcript.ino);
  f.AddNumber(kTranscriptWhole, transcript.whole);
  return record;
}

Result<TranscriptRecord> ToTranscript(const LogRecord& record) {
  const Fields& f = record.fields;
  auto session = f.Text(kTranscriptSession);
  if (record.kind != RecordKind::kTranscript || !session || record.refs.empty() ||
      record.refs[0].type != ObjectType::kNode)
    return Bad("not a transcript");
  return TranscriptRecord{.session = *session,
                          .agent = f.Text(kTranscriptAgent),
                          .subagent = f.Text(kTranscriptSubagent),
                          .path = f.Text(kTranscriptPath).value_or(""),
                          .content = record.refs[0].id,
                          .bytes = f.Number(kTranscriptBytes).value_or(0),
                          .dev = f.Number(kTranscriptDev).value_or(0),
                          .ino = f.Number(kTranscriptIno).value_or(0),
                          .whole = f.Number(kTranscriptWhole).value_or(0)};
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
