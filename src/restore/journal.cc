#include "restore/journal.h"

#include <cerrno>
#include <charconv>

#include "base/mutant.h"
#include "core/interrupted.h"

namespace belay {

namespace {

constexpr std::string_view kJournalMagic = "BELAYJN1";
constexpr std::string_view kJournalMagicGit = "BELAYJN2";  // repositories move along
constexpr std::string_view kJournalMagicExternal =
    "BELAYJN3";  // files outside of the root do
constexpr std::string_view kJournalMagicChat = "BELAYJN4";  // a conversation does
constexpr uint64_t kOperation = 1, kStage = 2, kChanges = 3, kLocked = 4, kTimes = 5,
                   kRootIno = 6, kGit = 7, kExternal = 8, kPublication = 9;
constexpr uint64_t kPublicationDir = 1, kPublicationIno = 2, kPublicationName = 3,
                   kPublicationFolder = 4;
constexpr uint64_t kExternalDir = 1, kExternalIno = 2, kExternalChanges = 3;
constexpr uint64_t kGitDir = 1, kGitIno = 2, kGitChanges = 3, kGitIndex = 4,
                   kGitBefore = 5, kGitAfter = 6, kGitLock = 7, kGitObject = 8,
                   kGitSha256 = 9, kGitWhole = 10;
constexpr uint64_t kLockedPath = 1, kLockedMode = 2;
constexpr size_t kMaxJournal = size_t{1} << 30;

Name JournalDir() { return Name::Literal("journal"); }
Name JournalName(const RootId& root) { return Name::Literal(root.text()); }
Name AtWorkName(const RootId& root) { return Name::Literal(root.text() + ".at-work"); }

Error Bad(std::string_view what) {
  return {Errc::kCorrupt, "journal: " + std::string(what)};
}

Result<Fd> OpenJournals(Store& store) {
  return store.fs().Open(store.dir(), JournalDir(), OpenMode::Directory());
}

Result<Fd> MakeJournals(Store& store) {
  auto dir = OpenJournals(store);
  if (dir.ok() || dir.error().code != Errc::kNotFound) return dir;
  Status made = store.fs().MakeDir(store.dir(), JournalDir(), 0700);
  if (!made.ok() && made.error().code != Errc::kExists) return std::move(made).error();
  BELAY_OK(store.fs().Sync(store.dir()));
  return OpenJournals(store);
}

Fields EncodeGitMove(const GitMove& move) {
  Fields f;
  f.Add(kGitDir, move.dir);
  f.AddNumber(kGitIno, move.ino);
  f.Add(kGitChanges, EncodeNode(EncodeChanges(move.changes)));
  if (!move.index.empty()) {
    f.Add(kGitIndex, move.index);
    f.AddNumber(kGitBefore, static_cast<uint64_t>(move.index_before_ns));
    f.AddNumber(kGitAfter, static_cast<uint64_t>(move.index_after_ns));
  }
  for (const std::string& lock : move.locks) f.Add(kGitLock, lock);
  for (const GitMove::Object& object : move.objects) {
    Bytes one;
    ByteWriter out(one);
    out.Raw(object.content.span());
    out.Raw(object.hex);
    f.Add(kGitObject, one);
  }
  if (move.hash == GitHash::kSha256) f.AddNumber(kGitSha256, 1);
  if (move.whole) f.AddNumber(kGitWhole, 1);
  return f;
}

Fields EncodeExternalMove(const ExternalMove& move) {
  Fields f;
  f.Add(kExternalDir, move.dir);
  f.AddNumber(kExternalIno, move.ino);
  f.Add(kExternalChanges, EncodeNode(EncodeChanges(ChangesIn({move}))));
  return f;
}

// The changes have absolute paths, all of them in the directory.
Result<ExternalMove> DecodeExternalMove(ByteSpan bytes) {
  ByteReader in(bytes);
  BELAY_TRY(Fields f, Fields::Decode(in));
  ExternalMove out;
  out.dir = f.Text(kExternalDir).value_or("");
  auto dir = AbsPath::Parse(out.dir);
  if (!dir.ok()) return Bad("no directory outside of the root");
  out.ino = f.Number(kExternalIno).value_or(0);
  auto changes = f.All(kExternalChanges);
  if (changes.size() != 1) return Bad("no changes outside of the root");
  BELAY_TRY(Node node, DecodeNode(changes[0]));
  BELAY_TRY(out.changes, DecodeExternalChanges(node));
  for (PathChange& change : out.changes) {
    BELAY_TRY(AbsPath path, AbsPath::Parse(change.path));
    if (path.parent() != *dir) return Bad("a file of another directory");
    change.path.erase(0, change.path.rfind('/') + 1);
  }
  return out;
}

Fields EncodePublication(const PublicationPlace& place) {
  Fields f;
  f.Add(kPublicationDir, place.dir);
  f.AddNumber(kPublicationIno, place.ino);
  f.Add(kPublicationName, place.name);
  if (place.folder) f.AddNumber(kPublicationFolder, 1);
  return f;
}

Result<PublicationPlace> DecodePublication(ByteSpan bytes) {
  ByteReader in(bytes);
  BELAY_TRY(Fields f, Fields::Decode(in));
  PublicationPlace out{.dir = f.Text(kPublicationDir).value_or(""),
                       .ino = f.Number(kPublicationIno).value_or(0),
                       .name = f.Text(kPublicationName).value_or(""),
                       .folder = f.has(kPublicationFolder)};
  if (!Name::Parse(out.name).ok() || !IsExternalPath(out.dir + "/" + out.name))
    return Bad("a conversation that cannot be there");
  return out;
}

Result<GitMove> DecodeGitMove(ByteSpan bytes) {
  ByteReader in(bytes);
  BELAY_TRY(Fields f, Fields::Decode(in));
  GitMove out;
  out.dir = f.Text(kGitDir).value_or("");
  if (!AbsPath::Parse(out.dir).ok()) return Bad("no git directory");
  out.ino = f.Number(kGitIno).value_or(0);
  auto changes = f.All(kGitChanges);
  if (changes.size() != 1) return Bad("no changes of git's");
  BELAY_TRY(Node node, DecodeNode(changes[0]));
  out.whole = f.has(kGitWhole);
  BELAY_TRY(out.changes, out.whole ? DecodeGitDirChanges(node) : DecodeChanges(node));
  out.index = f.Text(kGitIndex).value_or("");
  out.index_before_ns = static_cast<int64_t>(f.Number(kGitBefore).value_or(0));
  out.index_after_ns = static_cast<int64_t>(f.Number(kGitAfter).value_or(0));
  for (ByteSpan lock : f.All(kGitLock)) {
    std::string path(AsText(lock));
    BELAY_OK(CheckPath(path));
    if (!path.ends_with(".lock")) return Bad("a lock that is none");
    out.locks.push_back(std::move(path));
  }
  out.hash = f.has(kGitSha256) ? GitHash::kSha256 : GitHash::kSha1;
  for (ByteSpan one : f.All(kGitObject)) {
    if (one.size() < 32) return Bad("an object without a name");
    GitMove::Object object{std::string(AsText(one.subspan(32))),
                           ObjectId::FromSpan(one.first(32))};
    if (!IsGitHex(object.hex, out.hash)) return Bad("an object without a name");
    out.objects.push_back(std::move(object));
  }
  return out;
}

}  // namespace

std::string StageName(const RecordId& operation) {
  return std::string(kStagePrefix) + operation.text();
}

std::string FurtherStageName(const RecordId& operation, size_t number) {
  RecordId other = operation;
  for (auto at = other.bytes.rbegin(); number > 0; ++at, number >>= 8)
    *at ^= static_cast<std::byte>(number & 0xff);
  return StageName(other);
}

bool IsStageName(std::string_view name) {
  return name.starts_with(kStagePrefix) &&
         Id128::FromText(name.substr(kStagePrefix.size())).has_value();
}

Bytes EncodeJournal(const Journal& journal) {
  Fields f;
  f.Add(kOperation, EncodeLogRecord(ToRecord(journal.operation)));
  f.Add(kStage, journal.stage);
  f.Add(kChanges, EncodeNode(EncodeChanges(journal.changes)));
  for (const Plan::Locked& locked : journal.locked) {
    Fields one;
    one.Add(kLockedPath, locked.path);
    one.AddNumber(kLockedMode, locked.mode);
    f.AddNested(kLocked, one);
  }
  if (journal.times_ns) f.AddNumber(kTimes, static_cast<uint64_t>(*journal.times_ns));
  if (journal.root_ino != 0) f.AddNumber(kRootIno, journal.root_ino);
  for (const GitMove& move : journal.git) f.AddNested(kGit, EncodeGitMove(move));
  for (const ExternalMove& move : journal.external)
    f.AddNested(kExternal, EncodeExternalMove(move));
  if (journal.publication)
    f.AddNested(kPublication, EncodePublication(*journal.publication));
  Bytes out;
  ByteWriter w(out);
  w.Raw(journal.publication         ? kJournalMagicChat
        : !journal.external.empty() ? kJournalMagicExternal
        : journal.git.empty()       ? kJournalMagic
                                    : kJournalMagicGit);
  f.Encode(w);
  w.Raw(Sha256::Of(out).span());
  return out;
}

Result<Journal> DecodeJournal(ByteSpan bytes) {
  if (bytes.size() < kJournalMagic.size() + 32) return Bad("ends early");
  const ByteSpan body = bytes.first(bytes.size() - 32);
  if (Sha256::Of(body) != Hash256::FromSpan(bytes.subspan(body.size())))
    return Bad("torn or damaged");
  if (const std::string_view magic = AsText(body.first(kJournalMagic.size()));
      magic != kJournalMagic && magic != kJournalMagicGit &&
      magic != kJournalMagicExternal && magic != kJournalMagicChat)
    return Error(Errc::kUnsupported, "the journal was written by a newer Belay");
  ByteReader in(body.subspan(kJournalMagic.size()));
  BELAY_TRY(Fields f, Fields::Decode(in));
  Journal out;
  auto records = f.All(kOperation);
  if (records.size() != 1) return Bad("no operation");
  BELAY_TRY(LogRecord record, DecodeLogRecord(records[0]));
  BELAY_TRY(out.operation, ToOperation(record));
  out.stage = f.Text(kStage).value_or("");
  if (!IsStageName(out.stage)) return Bad("no staging directory");
  auto changes = f.All(kChanges);
  if (changes.size() != 1) return Bad("no changes");
  BELAY_TRY(Node node, DecodeNode(changes[0]));
  BELAY_TRY(out.changes, DecodeChanges(node));
  for (ByteSpan raw : f.All(kLocked)) {
    ByteReader one(raw);
    BELAY_TRY(Fields fields, Fields::Decode(one));
    Plan::Locked locked;
    locked.path = fields.Text(kLockedPath).value_or("");
    const uint64_t mode = fields.Number(kLockedMode).value_or(UINT64_MAX);
    if (mode > 07777) return Bad("impossible mode");
    locked.mode = static_cast<uint32_t>(mode);
    if (!locked.path.empty()) BELAY_OK(CheckPath(locked.path));
    out.locked.push_back(std::move(locked));
  }
  for (ByteSpan one : f.All(kGit)) {
    BELAY_TRY(GitMove move, DecodeGitMove(one));
    out.git.push_back(std::move(move));
  }
  for (ByteSpan one : f.All(kExternal)) {
    BELAY_TRY(ExternalMove move, DecodeExternalMove(one));
    out.external.push_back(std::move(move));
  }
  if (const auto places = f.All(kPublication); places.size() == 1) {
    BELAY_TRY(out.publication, DecodePublication(places[0]));
  }
  out.root_ino = f.Number(kRootIno).value_or(0);
  if (auto times = f.Number(kTimes)) out.times_ns = static_cast<int64_t>(*times);
  return out;
}

Status JournalFile::Write(Store& store, const Journal& journal) {
  BELAY_TRY(Fd dir, MakeJournals(store));
  // Whoever made it may have failed to flush that: without the directory there would be
  // no journal either. Of a directory that is flushed already it costs nothing.
  if (!BELAY_MUTANT("journals-not-flushed")) BELAY_OK(store.fs().Sync(store.dir()));
  const Bytes bytes = EncodeJournal(journal);
  // Where things change places while they are looked at, the changes may not fit
  // together: such a journal would lead to neither tree, or be refused when it is
  // needed.
  if (Status fits = CheckFits(journal.changes);
      !fits.ok() && !BELAY_MUTANT("journal-that-nobody-reads"))
    return Error(Errc::kConflict, "the files change while they are looked at (" +
                                      fits.error().what + ")");
  if (bytes.size() > kMaxJournal)
    return Error(Errc::kRefused, "more would change than can be done at once");
  const Name name = JournalName(journal.operation.root);
  if (BELAY_MUTANT("journal-not-durable")) {
    BELAY_TRY(Fd file, store.fs().Open(dir, name, OpenMode::OpenOrCreate()));
    BELAY_OK(WriteFull(store.fs(), file, 0, bytes));
    return file.Close();
  }
  return ReplaceFile(store.fs(), dir, name, bytes);
}

Result<bool> JournalFile::Exists(Store& store, const RootId& root) {
  return HasJournal(store, root);
}

Result<std::optional<Journal>> JournalFile::Load(Store& store, const RootId& root) {
  auto dir = OpenJournals(store);
  if (!dir.ok()) {
    if (dir.error().code == Errc::kNotFound) return std::optional<Journal>();
    return std::move(dir).error();
  }
  auto bytes = ReadSmallFile(store.fs(), *dir, JournalName(root), kMaxJournal);
  if (!bytes.ok()) {
    if (bytes.error().code == Errc::kNotFound) return std::optional<Journal>();
    // Whatever else has its name was not written by us, and is not read.
    auto stat = store.fs().StatAt(*dir, JournalName(root));
    if (stat.ok() && stat->type != FileType::kRegular &&
        !BELAY_MUTANT("stop-at-strange-journal"))
      return Bad("is " + std::string(FileTypeName(stat->type)));
    if (stat.ok() && stat->size > kMaxJournal) return Bad("is longer than any");
    return std::move(bytes).error();
  }
  BELAY_TRY(Journal journal, DecodeJournal(*bytes));
  if (journal.operation.root != root) return Bad("about another root");
  return std::optional(std::move(journal));
}

Status JournalFile::Remove(Store& store, const RootId& root) {
  auto dir = OpenJournals(store);
  if (!dir.ok() && dir.error().code == Errc::kNotFound) return Ok();
  if (!dir.ok()) return std::move(dir).error();
  Status gone = store.fs().Unlink(*dir, JournalName(root));
  if (!gone.ok() && gone.error().code != Errc::kNotFound)
    return std::move(gone).error();
  return store.fs().Sync(*dir);
}

Result<std::string> JournalFile::PutAside(Store& store, const RootId& root) {
  BELAY_TRY(Fd dir, OpenJournals(store));
  const std::string name =
      root.text() + "." + store.random().NewId().text().substr(0, 8) + ".aside";
  BELAY_OK(store.fs().Rename(dir, JournalName(root), dir, Name::Literal(name),
                             RenameHow::kNoReplace));
  BELAY_OK(store.fs().Sync(dir));
  return "journal/" + name;
}

void NoteAtWork(Store& store, const RootId& root, const AtWork& who) {
  auto dir = MakeJournals(store);
  if (!dir.ok()) return;
  OpenMode mode = OpenMode::OpenOrCreate();
  mode.truncate = true;
  auto file = store.fs().Open(*dir, AtWorkName(root), mode);
  if (!file.ok()) return;
  (void)WriteFull(store.fs(), *file, 0,
                  AsBytes(std::to_string(who.pid) + " " + who.what + "\n"));
}

void ForgetAtWork(Store& store, const RootId& root) {
  auto dir = OpenJournals(store);
  if (dir.ok()) (void)store.fs().Unlink(*dir, AtWorkName(root));
}

std::optional<AtWork> WhoIsAtWork(Store& store, const RootId& root) {
  auto dir = OpenJournals(store);
  if (!dir.ok()) return std::nullopt;
  auto bytes = ReadSmallFile(store.fs(), *dir, AtWorkName(root), 256);
  if (!bytes.ok()) return std::nullopt;
  std::string_view text = AsText(*bytes);
  AtWork out;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.pid);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ')
    return std::nullopt;
  out.what = std::string(end + 1, text.data() + text.size());
  if (!out.what.empty() && out.what.back() == '\n') out.what.pop_back();
  return out;
}

}  // namespace belay
