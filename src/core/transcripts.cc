#include "core/transcripts.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/mutant.h"
#include "core/sessions.h"
#include "core/space.h"
#include "scan/stat_cache.h"
#include "store/batch_writer.h"
#include "store/chunker.h"

namespace belay {

namespace {

constexpr uint64_t kLengths = 1;  // of the node: of each piece, as varints

struct Pieces {
  std::vector<Chunk> list;
  uint64_t total = 0;
  void Add(const ObjectId& id, size_t length) {
    list.push_back({id, static_cast<uint32_t>(length)});
    total += length;
  }
};

Node NodeOf(const Pieces& pieces) {
  Node node;
  Bytes lengths;
  ByteWriter out(lengths);
  for (const Chunk& piece : pieces.list) {
    node.refs.push_back({ObjectType::kBlob, piece.id});
    out.Varint(piece.length);
  }
  node.fields.Add(kLengths, lengths);
  return node;
}

Result<Pieces> PiecesOf(ByteSpan encoded) {
  BELAY_TRY(const Node node, DecodeNode(encoded));
  Pieces pieces;
  const auto lengths = node.fields.All(kLengths);
  ByteReader in(lengths.empty() ? ByteSpan() : lengths[0]);
  for (const ObjectKey& ref : node.refs) {
    const uint64_t length = in.Varint();
    if (in.failed() || ref.type != ObjectType::kBlob || length == 0 ||
        length > kMaxChunk)
      return Error(Errc::kCorrupt, "the list of a transcript's pieces is damaged");
    pieces.Add(ref.id, static_cast<size_t>(length));
  }
  if (!in.done())
    return Error(Errc::kCorrupt, "the list of a transcript's pieces is damaged");
  return pieces;
}

Result<Pieces> LoadPieces(Store& store, const ObjectId& content) {
  BELAY_TRY(const Bytes encoded, store.Get({ObjectType::kNode, content}));
  return PiecesOf(encoded);
}

// One at a time keeps the transcripts of a session: a byte of its own.
RootId LockOf(const std::string& session) {
  const Hash256 hash = Sha256::Of(AsBytes("belay transcript " + session));
  Id128 id;
  std::copy_n(hash.bytes.begin(), id.bytes.size(), id.bytes.begin());
  return RootId(id);
}

class Keeper {
 public:
  Keeper(Store& store, const KeepRequest& request)
      : store_(store), fs_(store.fs()), request_(request) {}

  Result<KeptNow> Run() {
    BELAY_TRY(file_, OpenTranscript(fs_, request_.path));
    BELAY_TRY(HeldLock alone, store_.locks().AcquireRoot(LockOf(request_.session),
                                                         request_.lock_wait_ms));
    // Only now: who was before us may have kept more than there was when we came.
    BELAY_TRY(stat_, fs_.Stat(file_));
    if (stat_.size > request_.settings->max_file_size.bytes)
      return Error(Errc::kInvalid, "a transcript is longer than max_file_size");
    if (stat_.size == 0) return done_;
    BELAY_OK(CheckBeginning());
    BELAY_OK(FindBefore());
    return Keep();
  }

 private:
  Status CheckBeginning() {
    if (!request_.is_json) return Ok();
    Bytes head(256);
    BELAY_TRY(const size_t got, ReadFull(fs_, file_, 0, head));
    const std::string_view text = AsText(ByteSpan(head).first(got));
    const size_t at = text.find_first_not_of(" \t\r\n");
    if (at == std::string_view::npos || text[at] == '{' || text[at] == '[') return Ok();
    return Error(Errc::kInvalid, "a transcript does not begin like one");
  }

  Status FindBefore() {
    BELAY_TRY(auto catalog, Catalog::Open(store_));
    BELAY_TRY(auto copies, ListTranscripts(*catalog, request_.session));
    for (TranscriptCopy& copy : copies) {
      if (copy.record.path != request_.path.bytes()) continue;
      if (before_)
        older_.push_back(std::move(copy));
      else
        before_ = std::move(copy);
    }
    if (!before_) return Ok();
    // One that cannot be read is damage for `belay verify` to name; here it is none.
    auto pieces = LoadPieces(store_, before_->record.content);
    if (pieces.ok()) old_ = std::move(*pieces);
    return Ok();
  }

  // Whether the file still has this piece there.
  Result<bool> StillHas(uint64_t offset, const Chunk& piece) {
    Bytes bytes(piece.length);
    BELAY_TRY(const size_t got, ReadFull(fs_, file_, offset, bytes));
    done_.read += got;
    return got == bytes.size() && Sha256::Of(bytes) == piece.id;
  }
  uint64_t LastOffset() const { return old_.total - old_.list.back().length; }

  // How many of the pieces need not be read again.
  Result<size_t> CountKnown() {
    if (old_.list.size() < 2 || !before_) return size_t{0};
    const TranscriptRecord& before = before_->record;
    if (stat_.size <= kAlwaysWhole || stat_.size < old_.total ||
        stat_.dev != before.dev || stat_.ino != before.ino ||
        stat_.size / 2 >= before.whole)
      return size_t{0};
    if (BELAY_MUTANT("transcript-trusts-length")) return old_.list.size() - 1;
    BELAY_TRY(const bool first, StillHas(0, old_.list.front()));
    if (!first) return size_t{0};
    BELAY_TRY(const bool last, StillHas(LastOffset(), old_.list.back()));
    return last ? old_.list.size() - 1 : size_t{0};
  }

  // Whether what was read now begins with all that was read before.
  Result<bool> GoesOn(const Pieces& now) {
    if (old_.list.empty() || now.total < old_.total) return false;
    const size_t whole = old_.list.size() - 1;
    if (now.list.size() < whole ||
        !std::equal(old_.list.begin(),
                    old_.list.begin() + static_cast<ptrdiff_t>(whole),
                    now.list.begin()))
      return false;
    if (now.list.size() > whole && now.list[whole] == old_.list[whole]) return true;
    return StillHas(LastOffset(), old_.list.back());
  }

  // From `now.total` on, to where the file ended when it was opened.
  Status Cut(BatchWriter& writer, Pieces& now) {
    Bytes buffer(2 * kMaxChunk);
    size_t have = 0;
    uint64_t at = now.total;
    while (true) {
      while (have < buffer.size() && at < stat_.size) {
        const size_t want = static_cast<size_t>(
            std::min<uint64_t>(buffer.size() - have, stat_.size - at));
        BELAY_TRY(const size_t got,
                  fs_.Read(file_, at, std::span(buffer).subspan(have, want)));
        if (got == 0) stat_.size = at;  // somebody cut it off meanwhile
        have += got;
        at += got;
        done_.read += got;
      }
      if (have == 0) return Ok();
      const size_t length = NextChunk(ByteSpan(buffer).first(have));
      const size_t place = now.list.size();
      BELAY_TRY(const ObjectId id,
                writer.PutContent(
                    ByteSpan(buffer).first(length),
                    place < old_.list.size() ? old_.list[place].id : ObjectId()));
      now.Add(id, length);
      std::copy(buffer.begin() + static_cast<ptrdiff_t>(length),
                buffer.begin() + static_cast<ptrdiff_t>(have), buffer.begin());
      have -= length;
    }
  }

  Result<KeptNow> Keep() {
    BELAY_TRY(const size_t known, CountKnown());
    Pieces now;
    for (size_t i = 0; i < known; ++i) now.Add(old_.list[i].id, old_.list[i].length);
    BELAY_TRY(const Space space, Space::Of(store_, *request_.settings, false));
    BELAY_OK(space.Check(stat_.size - now.total));
    store_.LimitPacks(Space::PackTarget(space.cap()));
    BELAY_TRY(auto writer, store_.Begin());
    BELAY_OK(Cut(*writer, now));
    done_.bytes = now.total;
    if (now.total == 0) return done_;
    BELAY_TRY(const bool goes_on, known > 0 ? Result<bool>(true) : GoesOn(now));
    TranscriptRecord record{.session = request_.session,
                            .agent = request_.agent,
                            .subagent = request_.subagent,
                            .path = request_.path.bytes(),
                            .bytes = now.total,
                            .dev = stat_.dev,
                            .ino = stat_.ino,
                            .whole = known > 0 ? before_->record.whole : now.total};
    BELAY_TRY(record.content,
              writer->PutObject(ObjectType::kNode, EncodeNode(NodeOf(now)),
                                before_ ? before_->record.content : ObjectId()));
    const bool same = before_ && record.content == before_->record.content;
    if (same && before_->record.dev == record.dev && before_->record.ino == record.ino)
      return done_;
    auto new_id = [&] { return RecordId(store_.random().NewId()); };
    const int64_t made = store_.clock().WallMillis();
    writer->Add(ToRecord(record, new_id(), request_.root, made));
    done_.grew = same || goes_on;
    if (std::vector<RecordId> gone = Replaced(now.total); !gone.empty())
      writer->Add(MakeDrop(new_id(), made, gone));
    BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
    done_.published = true;
    return done_;
  }

  // What the new copy has, and what is one too many.
  std::vector<RecordId> Replaced(uint64_t total) const {
    std::vector<RecordId> gone;
    if (!before_) return gone;
    const bool replaced = done_.grew ||
                          (!request_.appended && total >= before_->record.bytes) ||
                          BELAY_MUTANT("transcript-forgets-before");
    if (replaced) gone.push_back(before_->id);
    const size_t room = kMostBefore - (replaced ? 0 : 1);
    for (size_t i = room; i < older_.size(); ++i) gone.push_back(older_[i].id);
    return gone;
  }

  Store& store_;
  Fs& fs_;
  const KeepRequest& request_;
  Fd file_;
  FileStat stat_;
  std::optional<TranscriptCopy> before_;  // the newest of this file
  Pieces old_;                            // of that; none when it cannot be read
  std::vector<TranscriptCopy> older_;     // newest first
  KeptNow done_;
};

}  // namespace

Result<Fd> OpenTranscript(Fs& fs, const AbsPath& path) {
  BELAY_TRY(const AbsPath real, fs.RealPath(path));
  if (real.is_root()) return Error(Errc::kInvalid, "a transcript is no directory");
  BELAY_TRY(Fd dir, fs.OpenDir(real.parent()));
  BELAY_TRY(
      const Name name,
      Name::Parse(std::string_view(real.bytes()).substr(real.bytes().rfind('/') + 1)));
  BELAY_TRY(Fd file, fs.Open(dir, name, OpenMode::Read()));
  BELAY_TRY(const FileStat stat, fs.Stat(file));
  if (stat.type != FileType::kRegular)
    return Error(Errc::kInvalid,
                 "a transcript is " + std::string(FileTypeName(stat.type)));
  return file;
}

Result<KeptNow> KeepTranscript(Store& store, const KeepRequest& request) {
  return Keeper(store, request).Run();
}

Result<KeptNow> AppendTranscript(Store& store, const AppendRequest& request,
                                 std::string_view lines) {
  KeptNow done;
  if (lines.empty()) return done;
  BELAY_TRY(HeldLock alone,
            store.locks().AcquireRoot(LockOf(request.session), request.lock_wait_ms));
  std::optional<TranscriptCopy> before;
  Pieces now;
  Bytes end;  // of what there is: the last piece, cut anew
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto copies, ListTranscripts(*catalog, request.session));
  for (TranscriptCopy& copy : copies)
    if (!before && copy.record.path.empty()) before = std::move(copy);
  if (before) {
    // One that cannot be read is left where it is, for `belay verify` to name.
    BELAY_TRY(const Pieces old, LoadPieces(store, before->record.content));
    for (size_t i = 0; i + 1 < old.list.size(); ++i)
      now.Add(old.list[i].id, old.list[i].length);
    BELAY_TRY(end, store.Get({ObjectType::kBlob, old.list.back().id}));
    if (AsText(end).ends_with(lines)) return done;
  }
  const uint64_t length = now.total + end.size() + lines.size();
  if (length > request.settings->max_file_size.bytes)
    return Error(Errc::kInvalid, "what a host tells is longer than max_file_size");
  const ByteSpan told = AsBytes(lines);
  end.insert(end.end(), told.begin(), told.end());
  BELAY_TRY(const Space space, Space::Of(store, *request.settings, false));
  BELAY_OK(space.Check(end.size()));
  store.LimitPacks(Space::PackTarget(space.cap()));
  BELAY_TRY(auto writer, store.Begin());
  for (ByteSpan rest(end); !rest.empty();) {
    const size_t size = NextChunk(rest);
    BELAY_TRY(const ObjectId id, writer->PutContent(rest.first(size), ObjectId()));
    now.Add(id, size);
    rest = rest.subspan(size);
  }
  TranscriptRecord record{.session = request.session,
                          .agent = request.agent,
                          .bytes = now.total,
                          .whole = now.total};
  BELAY_TRY(record.content,
            writer->PutObject(ObjectType::kNode, EncodeNode(NodeOf(now)),
                              before ? before->record.content : ObjectId()));
  auto new_id = [&] { return RecordId(store.random().NewId()); };
  const int64_t made = store.clock().WallMillis();
  writer->Add(ToRecord(record, new_id(), request.root, made));
  if (before) writer->Add(MakeDrop(new_id(), made, std::vector{before->id}));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  done.published = done.grew = true;
  done.bytes = now.total;
  return done;
}

Result<std::vector<TranscriptCopy>> ListTranscripts(
    Catalog& catalog, const std::optional<std::string>& session) {
  std::vector<TranscriptCopy> out;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kTranscript}));
  std::set<std::pair<std::string, std::string>> seen;
  for (const LogRecord& record : records) {
    auto one = ToTranscript(record);
    if (!one.ok() || (session && one->session != *session)) continue;
    const bool latest = seen.emplace(one->session, one->path).second;
    out.push_back({.id = record.id,
                   .seq = record.seq,
                   .root = record.root,
                   .kept_ms = record.made_ms,
                   .record = std::move(*one),
                   .latest = latest});
  }
  return out;
}

Result<KeptTranscript> KeptTranscript::Open(Store& store, const TranscriptCopy& copy) {
  BELAY_TRY(const Pieces pieces, LoadPieces(store, copy.record.content));
  KeptTranscript out(store);
  for (const Chunk& piece : pieces.list) {
    out.pieces_.push_back({out.size_, piece.id});
    out.size_ += piece.length;
  }
  return out;
}

Result<size_t> KeptTranscript::Read(uint64_t offset, std::span<std::byte> out) {
  if (offset >= size_ || out.empty()) return size_t{0};
  auto after = std::upper_bound(
      pieces_.begin(), pieces_.end(), offset,
      [](uint64_t at, const Piece& piece) { return at < piece.offset; });
  const size_t index = static_cast<size_t>(after - pieces_.begin()) - 1;
  if (loaded_ != index) {
    loaded_.reset();
    BELAY_TRY(bytes_, store_->Get({ObjectType::kBlob, pieces_[index].id}));
    loaded_ = index;
  }
  const size_t from = static_cast<size_t>(offset - pieces_[index].offset);
  if (from >= bytes_.size())
    return Error(Errc::kCorrupt,
                 "a piece of a transcript is shorter than it should be");
  const size_t count = std::min(out.size(), bytes_.size() - from);
  std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(from), count, out.begin());
  return count;
}

Status ReadTranscriptCopy(Store& store, const TranscriptCopy& copy,
                          const std::function<Status(ByteSpan)>& sink) {
  BELAY_TRY(KeptTranscript kept, KeptTranscript::Open(store, copy));
  Bytes buffer(kMaxChunk);
  for (uint64_t at = 0; at < kept.size();) {
    BELAY_TRY(const size_t got, kept.Read(at, buffer));
    BELAY_OK(sink(ByteSpan(buffer).first(got)));
    at += got;
  }
  return Ok();
}

namespace {

constexpr std::string_view kWritten = ".talk";

Result<Fd> CacheDir(Store& store) {
  Status made = store.fs().MakeDir(store.dir(), StatCache::DirName(), 0700);
  if (!made.ok() && made.error().code != Errc::kExists) return std::move(made).error();
  return store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
}

}  // namespace

Result<WrittenTranscript> WrittenTranscript::Write(Store& store,
                                                   const TranscriptCopy& copy) {
  BELAY_TRY(Fd dir, CacheDir(store));
  const Name name =
      Name::Literal(RecordId(store.random().NewId()).text() + std::string(kWritten));
  BELAY_TRY(Fd file, store.fs().Open(dir, name, OpenMode::CreateNew()));
  WrittenTranscript out(store, store.path().Join(StatCache::DirName()).Join(name));
  uint64_t at = 0;
  BELAY_OK(ReadTranscriptCopy(store, copy, [&](ByteSpan piece) {
    at += piece.size();
    return WriteFull(store.fs(), file, at - piece.size(), piece);
  }));
  BELAY_OK(file.Close());
  return out;
}

WrittenTranscript::WrittenTranscript(WrittenTranscript&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)), path_(other.path_) {}

WrittenTranscript& WrittenTranscript::operator=(WrittenTranscript&& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(path_, other.path_);
  return *this;
}

WrittenTranscript::~WrittenTranscript() {
  if (store_ == nullptr) return;
  auto dir = CacheDir(*store_);
  auto name =
      Name::Parse(std::string_view(path_.bytes()).substr(path_.bytes().rfind('/') + 1));
  if (dir.ok() && name.ok()) (void)store_->fs().Unlink(*dir, *name);
}

void RemoveWrittenTranscripts(Store& store) {
  auto dir = store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return;
  auto entries = store.fs().List(*dir);
  if (!entries.ok()) return;
  for (const DirEntry& entry : *entries)
    if (auto name = Name::Parse(entry.name);
        entry.name.ends_with(kWritten) && name.ok())
      (void)store.fs().Unlink(*dir, *name);
}

Result<std::vector<TranscriptCopy>> PrunableTranscripts(Catalog& catalog, int64_t days,
                                                        int64_t now_ms,
                                                        bool for_space) {
  BELAY_TRY(auto copies, ListTranscripts(catalog, std::nullopt));
  if (copies.empty()) return copies;
  BELAY_TRY(const auto sessions, ListSessions(catalog, std::nullopt));
  std::unordered_map<std::string, const SessionSummary*> known;
  for (const SessionSummary& session : sessions) known[session.id] = &session;
  // With a session that has checkpoints stay those it grew out of.
  std::unordered_set<std::string> stay;
  for (const SessionSummary& session : sessions) {
    if (session.checkpoints == 0) continue;
    for (const SessionSummary* at = &session; at && stay.insert(at->id).second;) {
      const auto parent = at->parent ? known.find(*at->parent) : known.end();
      at = parent == known.end() ? nullptr : parent->second;
    }
  }
  std::erase_if(copies, [&](const TranscriptCopy& copy) {
    int64_t heard = copy.kept_ms;
    const auto session = known.find(copy.record.session);
    if (session != known.end()) heard = std::max(heard, session->second->last_ms);
    if (now_ms - heard <= days * kDayMs) return true;
    return !for_space && stay.contains(copy.record.session) &&
           !BELAY_MUTANT("prune-takes-transcripts");
  });
  return copies;
}

Status DropTranscripts(Store& store, std::span<const TranscriptCopy> copies) {
  if (copies.empty()) return Ok();
  std::vector<RecordId> gone;
  for (const TranscriptCopy& copy : copies) gone.push_back(copy.id);
  BELAY_TRY(auto writer, store.Begin());
  writer->Add(
      MakeDrop(RecordId(store.random().NewId()), store.clock().WallMillis(), gone));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return Ok();
}

}  // namespace belay
