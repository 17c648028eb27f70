// Of checkpoints, and of annotations that hand it on: whose doing changes were, and the
// files outside of the root.

#include <algorithm>

#include "base/mutant.h"
#include "base/path.h"
#include "store/log_record_internal.h"

namespace belay {

namespace {
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
}  // namespace

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

namespace {

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

}  // namespace

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

}  // namespace belay
