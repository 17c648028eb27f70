#include "store/heads.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "store/stray_pack.h"

namespace belay {

namespace {

constexpr std::string_view kHeadsMagic = "BELAYHD2";
constexpr size_t kMaxFile = size_t{16} << 20;
// The log that may lie between the file and the end: reading it takes less time than
// writing the file at every checkpoint would.
constexpr uint64_t kMaxBehind = uint64_t{256} << 10;
constexpr uint64_t kMaxRecordsBehind = 32;

Name CacheName() { return Name::Literal("cache"); }
Name FileName() { return Name::Literal("heads"); }

template <class Id>
Id ReadId(ByteReader& in) {
  Id id;
  ByteSpan bytes = in.Raw(id.bytes.size());
  if (!in.failed()) std::copy(bytes.begin(), bytes.end(), id.bytes.begin());
  return id;
}

}  // namespace

std::optional<Heads::Last> Heads::LastOf(const RootId& root) const {
  auto at =
      std::ranges::find(entries_, root, [](const Entry& e) { return e.root.root.id; });
  if (at == entries_.end()) return std::nullopt;
  std::optional<Last> last;
  for (const Entry& e : entries_)
    if (e.root.root.path == at->root.root.path && e.last &&
        (!last || last->seq < e.last->seq))
      last = e.last;
  return last;
}

Result<Heads> Heads::Read(Store& store) {
  std::unique_ptr<LogSource> log = MakeStoreLog(store);
  BELAY_TRY(HeldLock held, log->Hold());
  BELAY_OK(store.Refresh());
  if (std::optional<Heads> heads = Load(store, *log)) {
    auto up_to_date = heads->CatchUp(*log);
    if (!up_to_date.ok()) return std::move(up_to_date).error();
    if (*up_to_date) {
      heads->Finish();
      const bool far = heads->position_.pack != heads->saved_.pack ||
                       heads->position_.offset > heads->saved_.offset + kMaxBehind ||
                       heads->records_behind_ > kMaxRecordsBehind;
      if (far) (void)heads->Save(store, *log);
      return std::move(*heads);
    }
  }
  Heads heads;
  BELAY_OK(heads.ReadAll(*log));
  heads.Finish();
  (void)heads.Save(store, *log);
  return heads;
}

Result<bool> Heads::IsLatest(Store& store, const RootId& root) const {
  bool same = true;
  auto read =
      MakeStoreLog(store)->Read(position_, [&](const LogRecord& record) -> Status {
        if (record.kind == RecordKind::kRoot && record.root == root) same = false;
        for (const RecordId& id : DroppedBy(record))
          for (const RootEntry& entry : roots_)
            if (entry.root.id == root && entry.record == id) same = false;
        return Ok();
      });
  if (!read.ok()) return std::move(read).error();
  return same && read->whole && read->generation == position_.generation;
}

void Heads::Finish() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.root.root.path, a.root.seq) <
           std::tie(b.root.root.path, b.root.seq);
  });
  roots_.clear();
  // Of those that share a path the newest, which comes last.
  for (const Entry& e : entries_) {
    if (!roots_.empty() && roots_.back().root.path == e.root.root.path)
      roots_.back() = e.root;
    else
      roots_.push_back(e.root);
  }
}

// False when what was dropped takes more than the log's end to know.
Result<bool> Heads::CatchUp(LogSource& log) {
  bool clear = true;
  auto read = log.Read(position_, [&](const LogRecord& record) -> Status {
    ++records_behind_;
    if (record.kind == RecordKind::kRoot) {
      auto root = ToRoot(record);
      if (!root.ok()) return Ok();
      auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
        return e.root.root.id == root->id;
      });
      if (at == entries_.end()) {
        // A checkpoint of it may stand before its record, after a forget and an import.
        clear = false;
        return Ok();
      }
      if (record.seq >= at->root.seq)
        at->root = {std::move(*root), record.id, record.seq, record.made_ms};
    } else if (record.kind == RecordKind::kCheckpoint) {
      auto checkpoint = ToCheckpoint(record);
      if (!checkpoint.ok()) return Ok();
      for (Entry& e : entries_) {
        if (e.root.root.id != record.root) continue;
        if (!e.last || e.last->seq <= record.seq)
          e.last = Last{record.id, record.seq, checkpoint->state};
      }
    } else if (record.kind == RecordKind::kPurge) {
      last_purge_ = std::max(last_purge_, record.seq);
    } else if (record.kind == RecordKind::kDrop) {
      for (const RecordId& id : DroppedBy(record))
        for (const Entry& e : entries_)
          if (e.root.record == id || (e.last && e.last->id == id)) clear = false;
    }
    return Ok();
  });
  if (!read.ok()) return std::move(read).error();
  if (!read->whole) clear = false;
  position_ = *read;
  return clear;
}

Status Heads::ReadAll(LogSource& log) {
  std::vector<RootEntry> all;
  struct Seen {
    Last last;
    RootId root;
  };
  std::vector<Seen> checkpoints;
  std::unordered_set<RecordId> dropped;
  auto read = log.Read(std::nullopt, [&](const LogRecord& record) -> Status {
    if (record.kind == RecordKind::kRoot) {
      auto root = ToRoot(record);
      if (root.ok())
        all.push_back({std::move(*root), record.id, record.seq, record.made_ms});
    } else if (record.kind == RecordKind::kCheckpoint) {
      auto checkpoint = ToCheckpoint(record);
      if (checkpoint.ok())
        checkpoints.push_back(
            {{record.id, record.seq, checkpoint->state}, record.root});
    } else if (record.kind == RecordKind::kPurge) {
      last_purge_ = std::max(last_purge_, record.seq);
    } else {
      for (const RecordId& id : DroppedBy(record)) dropped.insert(id);
    }
    return Ok();
  });
  if (!read.ok()) return std::move(read).error();
  position_ = *read;
  std::unordered_map<RootId, size_t> place;
  for (RootEntry& root : all) {
    if (dropped.contains(root.record)) continue;
    auto [at, fresh] = place.try_emplace(root.root.id, entries_.size());
    if (fresh)
      entries_.push_back({std::move(root), std::nullopt});
    else if (entries_[at->second].root.seq <= root.seq)
      entries_[at->second].root = std::move(root);
  }
  for (const Seen& seen : checkpoints) {
    auto at = place.find(seen.root);
    if (at == place.end() || dropped.contains(seen.last.id)) continue;
    Entry& e = entries_[at->second];
    if (!e.last || e.last->seq <= seen.last.seq) e.last = seen.last;
  }
  return Ok();
}

struct Heads::Saved {
  Heads heads;
  Hash256 mark;
};

std::optional<Heads::Saved> Heads::Decode(Fs& fs, const Fd& store_dir) {
  auto dir = fs.Open(store_dir, CacheName(), OpenMode::Directory());
  if (!dir.ok()) return std::nullopt;
  auto bytes = ReadSmallFile(fs, *dir, FileName(), kMaxFile);
  if (!bytes.ok() || bytes->size() < kHeadsMagic.size() + 8) return std::nullopt;
  ByteSpan body = ByteSpan(*bytes).first(bytes->size() - 8);
  if (Check64(body) != LoadU64(bytes->data() + body.size())) return std::nullopt;
  ByteReader in(body);
  if (AsText(in.Raw(kHeadsMagic.size())) != kHeadsMagic) return std::nullopt;
  Heads heads;
  heads.position_.generation = in.U64();
  heads.position_.pack = ReadId<PackId>(in);
  heads.position_.offset = in.U64();
  Hash256 mark = ReadId<Hash256>(in);
  heads.last_purge_ = in.U64();
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left) {
    Entry e;
    e.root.root.id = ReadId<RootId>(in);
    e.root.record = ReadId<RecordId>(in);
    e.root.seq = in.U64();
    e.root.made_ms = static_cast<int64_t>(in.U64());
    const uint8_t flags = in.U8();
    e.root.root.off = (flags & 1) != 0;
    e.root.root.dev = in.U64();
    e.root.root.ino = in.U64();
    e.root.root.path = AsText(in.Sized());
    for (uint64_t more = in.Varint(); more > 0 && !in.failed(); --more)
      e.root.root.purged.emplace_back(AsText(in.Sized()));
    if ((flags & 2) != 0) {
      Last last;
      last.id = ReadId<RecordId>(in);
      last.seq = in.U64();
      last.state = ReadId<ObjectId>(in);
      e.last = last;
    }
    heads.entries_.push_back(std::move(e));
  }
  if (!in.done()) return std::nullopt;
  return Saved{std::move(heads), mark};
}

RememberedEnd Heads::End() const {
  RememberedEnd end{position_, last_purge_ + 1};
  for (const Entry& e : entries_) {
    end.next_seq = std::max(end.next_seq, e.root.seq + 1);
    if (e.last) end.next_seq = std::max(end.next_seq, e.last->seq + 1);
  }
  return end;
}

std::vector<Root> Heads::SavedRoots(Fs& fs, const Fd& store_dir) {
  std::vector<Root> roots;
  if (auto saved = Decode(fs, store_dir))
    for (Entry& e : saved->heads.entries_) roots.push_back(std::move(e.root.root));
  return roots;
}

std::optional<RememberedEnd> Heads::SavedEnd(Fs& fs, const Fd& store_dir) {
  auto saved = Decode(fs, store_dir);
  if (!saved) return std::nullopt;
  const RememberedEnd end = saved->heads.End();
  if (end.next_seq > kMaxSeq) return std::nullopt;
  return end;
}

std::optional<Heads> Heads::Load(Store& store, LogSource& log) {
  auto saved = Decode(store.fs(), store.dir());
  if (!saved) return std::nullopt;
  Heads heads = std::move(saved->heads);
  if (heads.position_.generation != store.manifest().generation) return std::nullopt;
  log.Expect(heads.End());
  // The log before this place is still the one that was read?
  auto now = log.Mark(heads.position_);
  if (!now.ok() || !*now || **now != saved->mark) return std::nullopt;
  heads.saved_ = heads.position_;
  return heads;
}

// Not flushed, and replaced by rename: old, new or none.
Status Heads::Save(Store& store, LogSource& log) const {
  if (!position_.whole || position_.pack.is_zero()) return Ok();
  // What may still be cut off is read again; what is saved here was acknowledged, and a
  // pack that ends before it is damaged.
  if (!position_.flushed) return Ok();
  BELAY_TRY(auto mark, log.Mark(position_));
  if (!mark) return Ok();
  Bytes out;
  ByteWriter writer(out);
  writer.Raw(kHeadsMagic);
  writer.U64(position_.generation);
  writer.Raw(position_.pack.span());
  writer.U64(position_.offset);
  writer.Raw(mark->bytes);
  writer.U64(last_purge_);
  writer.Varint(entries_.size());
  for (const Entry& e : entries_) {
    writer.Raw(e.root.root.id.span());
    writer.Raw(e.root.record.span());
    writer.U64(e.root.seq);
    writer.U64(static_cast<uint64_t>(e.root.made_ms));
    writer.U8(static_cast<uint8_t>((e.root.root.off ? 1 : 0) | (e.last ? 2 : 0)));
    writer.U64(e.root.root.dev);
    writer.U64(e.root.root.ino);
    writer.Sized(e.root.root.path);
    writer.Varint(e.root.root.purged.size());
    for (const std::string& purged : e.root.root.purged) writer.Sized(purged);
    if (!e.last) continue;
    writer.Raw(e.last->id.span());
    writer.U64(e.last->seq);
    writer.Raw(e.last->state.bytes);
  }
  writer.U64(Check64(out));
  Status made = store.fs().MakeDir(store.dir(), CacheName(), 0700);
  if (!made.ok() && made.error().code != Errc::kExists) return made;
  BELAY_TRY(Fd dir, store.fs().Open(store.dir(), CacheName(), OpenMode::Directory()));
  // Two at once may write into one file: the check then fails, and the log is read.
  const Name temporary = Name::Literal("heads.tmp");
  BELAY_TRY(Fd file, store.fs().Open(dir, temporary,
                                     {.access = OpenMode::Access::kReadWrite,
                                      .create = true,
                                      .truncate = true,
                                      .mode = 0600}));
  Status written = WriteFull(store.fs(), file, 0, out);
  if (written.ok()) written = file.Close();
  if (written.ok()) {
    BELAY_TRY([[maybe_unused]] bool kept, KeepPack(store.fs(), dir, FileName()));
    written = store.fs().Rename(dir, temporary, dir, FileName(), RenameHow::kReplace);
  }
  return written;
}

}  // namespace belay
