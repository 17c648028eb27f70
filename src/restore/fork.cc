#include "restore/fork.h"

#include <algorithm>

#include "base/escape.h"
#include "base/fast_hash.h"
#include "base/mutant.h"
#include "core/purged.h"
#include "core/state_view.h"
#include "restore/fork_internal.h"
#include "restore/mover.h"
#include "restore/paths_internal.h"
#include "restore/publication.h"
#include "restore/remove_all.h"
#include "scan/tree_diff.h"
#include "store/batch_writer.h"

namespace belay {

namespace {

constexpr std::string_view kForkMagic = "BLYFORK1", kForkMagicChat = "BLYFORK2";
constexpr size_t kMaxNote = size_t{1} << 20;
// A block: less takes no less room, and is written as quickly.
constexpr uint64_t kNotWorthSharing = 4096;

Name ForksName() { return Name::Literal("forks"); }
std::string StageOf(const RootId& id) { return ".belay-fork-" + id.text(); }

// What the store remembers of a fork that is being made.
struct DirForkNote {
  RootId id;           // that the root will have; also the name of the note
  std::string parent;  // the directory that holds both
  std::string name;    // of the directory in it
  // Empty until all is there, durable and verified; then what is recorded.
  std::vector<LogRecord> records = {};
  uint64_t dev = 0, ino = 0;  // of what was made
  RecordId target;            // which keeps its content
  std::optional<PublicationPlace> chat = {};
};

Bytes Encode(const DirForkNote& note) {
  Bytes out;
  ByteWriter writer(out);
  writer.Raw(note.chat ? kForkMagicChat : kForkMagic);
  writer.Raw(AsText(note.id.span()));
  writer.Sized(note.parent);
  writer.Sized(note.name);
  writer.U64(note.dev);
  writer.U64(note.ino);
  writer.Raw(AsText(note.target.span()));
  writer.Varint(note.records.size());
  for (const LogRecord& record : note.records)
    writer.Sized(AsText(EncodeLogRecord(record)));
  if (note.chat) {
    writer.Sized(note.chat->dir);
    writer.U64(note.chat->ino);
    writer.Sized(note.chat->name);
    writer.Varint(note.chat->folder ? 1 : 0);
  }
  writer.U64(Check64(out));
  return out;
}

Result<DirForkNote> Decode(ByteSpan bytes) {
  const Error bad(Errc::kCorrupt, "the note of a fork makes no sense");
  if (bytes.size() < kForkMagic.size() + 8) return bad;
  const ByteSpan body = bytes.first(bytes.size() - 8);
  if (LoadU64(bytes.data() + body.size()) != Check64(body)) return bad;
  ByteReader in(body);
  const std::string_view magic = AsText(in.Raw(kForkMagic.size()));
  if (magic != kForkMagic && magic != kForkMagicChat) return bad;
  DirForkNote note;
  note.id = RootId(Id128::FromSpan(in.Raw(16)));
  note.parent = std::string(AsText(in.Sized()));
  note.name = std::string(AsText(in.Sized()));
  note.dev = in.U64();
  note.ino = in.U64();
  note.target = RecordId(Id128::FromSpan(in.Raw(16)));
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left) {
    BELAY_TRY(LogRecord record, DecodeLogRecord(in.Sized()));
    note.records.push_back(std::move(record));
  }
  if (magic == kForkMagicChat) {
    note.chat.emplace();
    note.chat->dir = std::string(AsText(in.Sized()));
    note.chat->ino = in.U64();
    note.chat->name = std::string(AsText(in.Sized()));
    note.chat->folder = in.Varint() != 0;
    if (!AbsPath::Parse(note.chat->dir).ok() || !Name::Parse(note.chat->name).ok())
      return bad;
  }
  if (!in.done() || !AbsPath::Parse(note.parent).ok() || !Name::Parse(note.name).ok())
    return bad;
  return note;
}

Status WriteNote(Store& store, const DirForkNote& note) {
  Fs& fs = store.fs();
  Status made = fs.MakeDir(store.dir(), ForksName(), 0700);
  if (made.ok()) made = fs.Sync(store.dir());
  if (!made.ok() && made.error().code != Errc::kExists) return made;
  BELAY_TRY(Fd dir, fs.Open(store.dir(), ForksName(), OpenMode::Directory()));
  return ReplaceFile(fs, dir, Name::Literal(note.id.text()), Encode(note));
}

Status RemoveNote(Store& store, const RootId& id) {
  Fs& fs = store.fs();
  BELAY_TRY(Fd dir, fs.Open(store.dir(), ForksName(), OpenMode::Directory()));
  Status gone = fs.Unlink(dir, Name::Literal(id.text()));
  if (!gone.ok() && gone.error().code != Errc::kNotFound) return gone;
  return fs.Sync(dir);
}

Result<bool> IsEmptyDir(Fs& fs, const Fd& parent, const Name& name) {
  BELAY_TRY(Fd dir, fs.Open(parent, name, OpenMode::Directory()));
  BELAY_TRY(auto listed, fs.List(dir));
  return listed.empty();
}

// What stands there may give way: nothing, or a directory with nothing in it.
Status CheckFree(Fs& fs, const Fd& parent, const Name& name, const AbsPath& dir) {
  auto stat = fs.StatAt(parent, name);
  if (!stat.ok() && stat.error().code == Errc::kNotFound) return Ok();
  if (!stat.ok()) return std::move(stat).error();
  if (stat->type == FileType::kDirectory) {
    BELAY_TRY(const bool empty, IsEmptyDir(fs, parent, name));
    if (empty || BELAY_MUTANT("fork-into-anything")) return Ok();
  }
  return Error(Errc::kExists,
               EscapeForDisplay(dir.bytes()) + (stat->type == FileType::kDirectory
                                                    ? " is not empty"
                                                    : " is not a directory"))
      .WithHint("a fork needs a directory that is not there yet, or an empty one");
}

class Forker {
 public:
  Forker(Store& store, Catalog& catalog, const DirForkRequest& request)
      : store_(store),
        fs_(store.fs()),
        catalog_(catalog),
        request_(request),
        name_(RelPath::Literal(std::string_view(request.dir.bytes()).substr(1))
                  .basename()) {}

  Result<DirFork> Run() {
    BELAY_OK(Check());
    // Nobody takes away what is read meanwhile.
    BELAY_TRY(auto hold, store_.HoldForReading());
    BELAY_TRY(StateView view, LoadState(store_, request_.target.state));
    BELAY_OK(CollectChanges(view));
    if (request_.chat != nullptr) {
      BELAY_TRY(const AbsPath source, AbsPath::Parse(request_.source.path));
      BELAY_TRY(note_.chat, PlaceOf(fs_, source, *request_.chat));
    }
    // 1. The note is durable before anything of it is made.
    BELAY_OK(WriteNote(store_, note_));
    Status made = Make(view);
    if (made.ok()) made = PrepareChat();
    if (!made.ok()) return GiveUp(std::move(made).error());
    // 2. All is there, verified and durable; from here on it is finished.
    if (Status noted = WriteNote(store_, note_); !noted.ok())
      return GiveUp(noted.error());
    // 3. One rename, one more for the conversation, 4. one batch, 5. the note goes.
    if (Status placed = PlaceStage(fs_, note_); !placed.ok()) {
      auto stage = fs_.StatAt(parent_, Name::Literal(StageOf(note_.id)));
      if (stage.ok()) return GiveUp(std::move(placed).error());
      // It has its name, which may not be durable: only the note knows.
      return NotFinished(std::move(placed).error());
    }
    if (Status published = PlaceChat(fs_, note_); !published.ok())
      return NotFinished(std::move(published).error());
    if (Status published = Publish(store_, note_); !published.ok())
      return NotFinished(std::move(published).error());
    (void)RemoveNote(store_, note_.id);
    return std::move(out_);
  }

  // The stage is complete and may take its place.
  static Status PlaceStage(Fs& fs, const DirForkNote& note) {
    BELAY_TRY(const AbsPath above, AbsPath::Parse(note.parent));
    BELAY_TRY(const Name name, Name::Parse(note.name));
    BELAY_TRY(Fd parent, fs.OpenDir(above));
    BELAY_OK(CheckFree(fs, parent, name, above.Join(name)));
    // Over an empty directory; one that is not empty any more is refused by the kernel.
    const bool there = fs.StatAt(parent, name).ok();
    BELAY_OK(fs.Rename(parent, Name::Literal(StageOf(note.id)), parent, name,
                       there ? RenameHow::kReplace : RenameHow::kNoReplace));
    return fs.Sync(parent);
  }

  // The conversation is beside its place, complete, or there already.
  static Status PlaceChat(Fs& fs, const DirForkNote& note) {
    if (!note.chat || BELAY_MUTANT("fork-leaves-the-chat-behind")) return Ok();
    Publication publication(fs, *note.chat, StageOf(note.id));
    BELAY_TRY(const bool there, publication.Open());
    if (!there)
      return Error(Errc::kNotFound, "the directory of the conversation is gone: " +
                                        EscapeForDisplay(note.chat->dir));
    BELAY_OK(publication.Publish());
    return publication.Tidy();
  }
  // Nothing is left of it.
  static Status RemoveChat(Fs& fs, const DirForkNote& note) {
    if (!note.chat) return Ok();
    Publication publication(fs, *note.chat, StageOf(note.id));
    BELAY_TRY(const bool there, publication.Open());
    return there ? publication.Tidy() : Ok();
  }

  static Status Publish(Store& store, const DirForkNote& note) {
    BELAY_TRY(auto writer, store.Begin());
    for (const LogRecord& record : note.records) writer->Add(record);
    BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
    return Ok();
  }

 private:
  Status Check() {
    BELAY_TRY(parent_, fs_.OpenDir(request_.dir.parent()));
    BELAY_OK(CheckFree(fs_, parent_, name_, request_.dir));
    BELAY_TRY(auto around, catalog_.InnermostRoot(request_.dir));
    if (around && !around->root.off && around->root.path != request_.dir.bytes())
      return Error(Errc::kRefused, EscapeForDisplay(request_.dir.bytes()) +
                                       " is in the protected directory " +
                                       EscapeForDisplay(around->root.path))
          .WithHint("a fork goes beside it");
    BELAY_TRY(auto known, FindRootAt(catalog_, request_.dir));
    note_.id = known ? known->root.id : RootId(store_.random().NewId());
    note_.parent = request_.dir.parent().bytes();
    note_.name = name_.bytes();
    note_.target = request_.target.id;
    out_.root = {.id = note_.id, .path = request_.dir.bytes()};
    // Two of them at once, or one and its recovery: one.
    BELAY_TRY(lock_, store_.locks().AcquireRoot(note_.id, 0));
    return Ok();
  }

  Status CollectChanges(const StateView& view) {
    BELAY_TRY(PurgedSet purged, PurgedSet::Load(catalog_));
    uint64_t lacking = 0, set_id = 0;
    journal_.operation.id = RecordId(store_.random().NewId());
    journal_.stage = StageName(journal_.operation.id);
    BELAY_OK(WalkTree(view.state.tree, "", TreesOf(store_),
                      [&](const std::string& path, const TreeEntry& entry) -> Status {
                        PathState after = StateOf(entry);
                        if (entry.kind == EntryKind::kFile &&
                            purged.Has(entry.id, request_.target.seq)) {
                          ++lacking;
                          return Ok();
                        }
                        if (entry.kind == EntryKind::kFile &&
                            (after.mode & kSetId) != 0) {
                          ++set_id;
                          after.mode &= ~kSetId;
                        }
                        if (request_.uid != 0) {
                          after.uid = request_.uid;
                          after.gid = request_.gid;
                        }
                        if (entry.kind == EntryKind::kFile) {
                          ++out_.files;
                          out_.bytes += entry.size;
                        }
                        journal_.changes.push_back(
                            {.path = path, .before = {}, .after = std::move(after)});
                        return Ok();
                      }));
    std::ranges::sort(journal_.changes, {}, &PathChange::path);
    if (lacking > 0)
      Warn(std::to_string(lacking) + " of its files were purged, and are not there");
    if (set_id > 0)
      Warn(std::to_string(set_id) + " files are there without setuid/setgid");
    if (request_.target.partial)
      Warn("the checkpoint is partial: it does not hold everything");
    if (!view.trouble.empty()) Warn("the rules of this state: " + view.trouble);
    return Ok();
  }

  Status Make(const StateView& view) {
    const Name stage = Name::Literal(StageOf(note_.id));
    BELAY_OK(fs_.MakeDir(parent_, stage, 0700));
    BELAY_OK(fs_.Sync(parent_));
    BELAY_TRY(Fd dir, fs_.Open(parent_, stage, OpenMode::Directory()));
    if (!journal_.changes.empty()) {
      Mover mover(store_, dir, journal_);
      OfferSource(mover);
      BELAY_OK(mover.Move(Way::kForward, request_.stop));
      BELAY_TRY(auto verified, mover.FlushAndVerify(Way::kForward));
      if (!verified.changed.empty())
        return Error(Errc::kConflict, EscapeForDisplay(verified.changed[0]) +
                                          " was changed while the fork was made");
      if (!verified.attributes.empty())
        Warn("attributes could not be set of " +
             EscapeForDisplay(verified.attributes[0]) +
             (verified.attributes.size() > 1
                  ? " and " + std::to_string(verified.attributes.size() - 1) + " more"
                  : ""));
      BELAY_OK(mover.RemoveStage());
    }
    BELAY_OK(MakeRepositories(view, request_.dir.parent().Join(stage), dir));
    BELAY_OK(fs_.SetMode(
        dir, view.rules && view.rules->mode != 0 ? view.rules->mode & 0777 : 0755));
    BELAY_OK(fs_.SyncAll(dir));
    BELAY_TRY(FileStat stat, fs_.Stat(dir));
    note_.dev = out_.root.dev = stat.dev;
    note_.ino = out_.root.ino = stat.ino;
    MakeRecords();
    return Ok();
  }

  // Files that the source still has: no room and no writes, where blocks can be shared.
  void OfferSource(Mover& mover) {
    auto source = AbsPath::Parse(request_.source.path);
    if (!source.ok()) return;
    auto dir = fs_.OpenDir(*source);
    if (!dir.ok()) return;  // it may be gone
    source_ = std::move(*dir);
    mover.FillBy(
        [this](const std::string& path, const PathState& wanted, const Fd& file) {
          return ShareWithSource(path, wanted, file);
        });
  }
  // Whatever is in the way: then the store has the content.
  Result<bool> ShareWithSource(const std::string& path, const PathState& wanted,
                               const Fd& file) {
    if (!shares_ || wanted.size <= kNotWorthSharing) return false;
    auto beneath = RelPath::Parse(path);
    if (!beneath.ok()) return false;
    auto theirs = fs_.OpenBeneath(source_, *beneath, OpenMode::Read());
    if (!theirs.ok()) return false;
    auto stat = fs_.Stat(*theirs);
    if (!stat.ok() || stat->type != FileType::kRegular || stat->size != wanted.size)
      return false;
    if (Status shared = fs_.ShareBlocks(*theirs, file); !shared.ok()) {
      shares_ = false;
      return false;
    }
    // By now it may have been another's edit that we took.
    HashSink sink;
    auto looked = LookAtFile(fs_, file, sink);
    if ((looked.ok() && looked->state.id == wanted.id) ||
        BELAY_MUTANT("fork-takes-what-the-source-has")) {
      out_.shared += wanted.size;
      return true;
    }
    BELAY_OK(fs_.Truncate(file, 0));
    return false;
  }

  Status PrepareChat() {
    if (!note_.chat) return Ok();
    Publication publication(fs_, *note_.chat, StageOf(note_.id));
    BELAY_TRY(const bool there, publication.Open());
    if (!there)
      return Error(Errc::kNotFound, "the directory of the conversation is gone");
    return publication.Prepare(*request_.chat, request_.uid);
  }

  Status MakeRepositories(const StateView& view, const AbsPath& path, const Fd& dir) {
    BELAY_TRY(const AbsPath source, AbsPath::Parse(request_.source.path));
    auto git = LoadGitRecord(store_, view.state.git);
    if (!git.ok()) {
      Warn("the state of git cannot be read, there is no repository: " +
           git.error().what);
      return Ok();
    }
    for (const GitRepoRecord& repo : git->repositories) {
      if (!repo.path.empty()) {
        Warn("the nested repository " + EscapeForDisplay(repo.path) +
             " comes as files alone");
      } else if (repo.above) {
        Warn("the repository begins above the directory: the fork has none");
      } else {
        BELAY_TRY(out_.repository,
                  MakeForkedRepository(store_, source, request_.git, repo, path, dir,
                                       out_.warnings));
      }
    }
    return Ok();
  }

  void MakeRecords() {
    const int64_t now_ms = store_.clock().WallMillis();
    note_.records.push_back(
        ToRecord(out_.root, RecordId(store_.random().NewId()), now_ms));
    const Checkpoint& target = request_.target;
    Checkpoint& first = out_.checkpoint;
    first.id = RecordId(store_.random().NewId());
    first.root = out_.root.id;
    first.made_ms = now_ms;
    first.state = target.state;
    first.kind = CheckpointKind::kManual;
    first.description =
        "fork of " + target.id.text().substr(0, 7) + " in " + request_.source.path;
    first.files = target.files;
    first.bytes = target.bytes;
    first.partial = target.partial;
    first.meta["fork_of"] = target.id.text();
    note_.records.push_back(ToRecord(first));
    if (request_.chat == nullptr) return;
    const ChatRecord& chat = request_.chat->record;
    note_.records.push_back(ToRecord(SessionRecord{.session = chat.forked,
                                                   .agent = chat.agent,
                                                   .parent = chat.session,
                                                   .inherited_turns = chat.inherited,
                                                   .transcript_path = chat.path,
                                                   .cwd = chat.cwd},
                                     RecordId(store_.random().NewId()), out_.root.id,
                                     now_ms));
  }

  static Error NotFinished(Error why) {
    if (why.hint.empty()) why.hint = "all is there; the next belay fork finishes it";
    return why;
  }

  // Nothing is left of it; if that fails too, the note leads to it.
  Error GiveUp(Error why) {
    Status gone = RemoveChat(fs_, note_);
    if (gone.ok()) gone = RemoveAll(fs_, parent_, Name::Literal(StageOf(note_.id)));
    if (gone.ok()) gone = fs_.Sync(parent_);
    if (gone.ok()) (void)RemoveNote(store_, note_.id);
    if (why.hint.empty())
      why.hint = gone.ok() ? "nothing was left behind"
                           : "what is left of it goes with the next belay fork";
    return why;
  }

  void Warn(std::string text) { out_.warnings.push_back(std::move(text)); }

  Store& store_;
  Fs& fs_;
  Catalog& catalog_;
  const DirForkRequest& request_;
  const Name name_;
  Fd parent_;
  std::optional<HeldLock> lock_;
  DirForkNote note_;
  Journal journal_;
  Fd source_;
  bool shares_ = true;  // until it was tried in vain
  DirFork out_;
};

// One that was interrupted; what was done about it.
Result<std::string> EndOne(Store& store, Catalog& catalog, const DirForkNote& note) {
  Fs& fs = store.fs();
  BELAY_TRY(const AbsPath above, AbsPath::Parse(note.parent));
  BELAY_TRY(const Name name, Name::Parse(note.name));
  const Name stage = Name::Literal(StageOf(note.id));
  const std::string where = EscapeForDisplay(above.Join(name).bytes());
  auto parent = fs.OpenDir(above);
  if (!parent.ok() && parent.error().code != Errc::kNotFound)
    return std::move(parent).error();
  // The content is only sure while somebody else keeps it.
  const bool kept =
      !note.records.empty() && catalog.FindById(std::nullopt, note.target.text()).ok();
  const bool staged = parent.ok() && fs.StatAt(*parent, stage).ok();
  bool finished = false;
  if (staged && kept && Forker::PlaceStage(fs, note).ok()) {
    finished = true;
  } else if (staged) {
    BELAY_OK(RemoveAll(fs, *parent, stage));
    BELAY_OK(fs.Sync(*parent));
  } else if (kept && parent.ok() && !BELAY_MUTANT("fork-is-not-finished")) {
    auto there = fs.StatAt(*parent, name);
    finished = there.ok() && there->dev == note.dev && there->ino == note.ino;
  }
  bool with_chat = true;
  if (finished) {
    Status placed = Forker::PlaceChat(fs, note);
    // Where the agent kept conversations is gone: the directory is there without one.
    with_chat = placed.ok();
    if (!placed.ok() && placed.error().code != Errc::kNotFound) return placed.error();
  } else {
    BELAY_OK(Forker::RemoveChat(fs, note));
  }
  if (finished) {
    DirForkNote published = note;
    if (!with_chat) published.records.resize(2);
    auto first = ToCheckpoint(note.records[1]);
    if (first.ok() && !catalog.FindById(note.id, first->id.text()).ok())
      BELAY_OK(Forker::Publish(store, published));
  }
  BELAY_OK(RemoveNote(store, note.id));
  return (finished ? "finished the fork in " : "removed the fork in ") + where +
         " that was interrupted" + (with_chat ? "" : ", without its conversation");
}

}  // namespace

Result<DirFork> ForkDirectory(Store& store, Catalog& catalog,
                              const DirForkRequest& request) {
  return Forker(store, catalog, request).Run();
}

Result<std::vector<std::string>> EndForks(Store& store, Catalog& catalog) {
  Fs& fs = store.fs();
  std::vector<std::string> out;
  auto dir = fs.Open(store.dir(), ForksName(), OpenMode::Directory());
  if (!dir.ok()) {
    if (dir.error().code == Errc::kNotFound) return out;
    return std::move(dir).error();
  }
  BELAY_TRY(auto listed, fs.List(*dir));
  for (const DirEntry& entry : listed) {
    const auto id = Id128::FromText(entry.name);
    if (!id) continue;  // a temporary, which the next replacement removes
    // Whoever is making it holds this.
    auto lock = store.locks().AcquireRoot(RootId(*id), 0);
    if (!lock.ok()) {
      if (lock.error().code == Errc::kBusy) continue;
      return std::move(lock).error();
    }
    auto bytes = ReadSmallFile(fs, *dir, Name::Literal(entry.name), kMaxNote);
    if (!bytes.ok() && bytes.error().code == Errc::kNotFound) continue;
    if (!bytes.ok()) return std::move(bytes).error();
    auto note = Decode(*bytes);
    if (!note.ok()) {
      // It was never durable: nothing was made by it.
      BELAY_OK(RemoveNote(store, RootId(*id)));
      continue;
    }
    BELAY_TRY(std::string ended, EndOne(store, catalog, *note));
    out.push_back(std::move(ended));
  }
  return out;
}

}  // namespace belay
