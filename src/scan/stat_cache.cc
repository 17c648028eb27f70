#include "scan/stat_cache.h"

#include <algorithm>
#include <cstring>

#include "base/fast_hash.h"
#include "base/mutant.h"
#include "store/stray_pack.h"

namespace belay {

namespace {

constexpr uint64_t kMaxCacheFile = uint64_t{4} << 30;

size_t Aligned(size_t size) { return (size + 7) & ~size_t{7}; }

// The hash covers everything behind itself; its place keeps a block that was moved from
// counting elsewhere.
uint64_t CheckOf(ByteSpan block, uint64_t key, uint64_t offset) {
  constexpr size_t kBehind = offsetof(BlockHead, check) + sizeof(uint64_t);
  return FastHash(block.subspan(kBehind), key ^ (offset * FastMixer::kSeed));
}

template <class T>
void Append(std::vector<std::byte>& out, std::span<const T> items) {
  auto raw = std::as_bytes(items);
  out.insert(out.end(), raw.begin(), raw.end());
}

// `room` is at least what it needs; the rest is zeros.
void EncodeBlock(const DirView& dir, uint64_t generation, uint64_t key, uint64_t offset,
                 size_t room, Bytes& out) {
  const size_t start = out.size();
  // Of a large one exactly: growing by doubling would hold it three times for a moment.
  constexpr size_t kLarge = size_t{1} << 20;
  if (room > kLarge) out.reserve(start + room);
  BlockHead head = *dir.head;
  head.magic = BlockHead::kMagic;
  head.room = static_cast<uint32_t>(room);
  head.generation = generation;
  head.entry_count = static_cast<uint32_t>(dir.entries.size());
  head.strings_length = static_cast<uint32_t>(dir.strings.size());
  head.check = 0;
  Append(out, std::span<const BlockHead>(&head, 1));
  Append(out, dir.entries);
  Append(out, std::span<const char>(dir.strings));
  out.resize(start + room);
  const uint64_t check = CheckOf(ByteSpan(out).subspan(start), key, offset);
  std::memcpy(out.data() + start + offsetof(BlockHead, check), &check, sizeof check);
}

size_t SizeOf(const DirView& dir) {
  return Aligned(sizeof(BlockHead) + dir.entries.size() * sizeof(CacheEntry) +
                 dir.strings.size());
}

Name TemporaryName(const RootId& root) {
  return Name::Literal(root.text() + ".scan.tmp");
}

}  // namespace

std::string_view SkipName(Skip why) {
  switch (why) {
    case Skip::kNone:
      return "covered";
    case Skip::kTooLarge:
      return "too_large";
    case Skip::kSpecial:
      return "special";
    case Skip::kUnreadable:
      return "unreadable";
    case Skip::kGitDir:
      return "git_dir";
    case Skip::kOtherMount:
      return "other_mount";
    case Skip::kOtherRoot:
      return "other_root";
    case Skip::kReserved:
      return "reserved_name";
    case Skip::kChanging:
      return "changing";
    case Skip::kIgnored:
      return "ignored";
    case Skip::kSecret:
      return "secret";
    case Skip::kChangedLate:
      return "changed_late";
    case Skip::kReplaced:
      return "replaced";
    case Skip::kPurged:
      return "purged";
    case Skip::kNoAttributes:
      return "attributes_unknown";
  }
  return "unknown";
}

const CacheEntry* DirView::Find(std::string_view name) const {
  auto at = std::lower_bound(
      entries.begin(), entries.end(), name,
      [this](const CacheEntry& e, std::string_view n) { return NameOf(e) < n; });
  if (at == entries.end() || NameOf(*at) != name) return nullptr;
  return &*at;
}

DirDraft DirDraft::Copy(const DirView& view) {
  DirDraft draft;
  draft.head = *view.head;
  draft.entries.assign(view.entries.begin(), view.entries.end());
  draft.strings = view.strings;
  return draft;
}

void DirDraft::Add(CacheEntry entry, std::string_view name, std::string_view aux) {
  entry.name_at = static_cast<uint32_t>(strings.size());
  entry.name_length = static_cast<uint8_t>(name.size());
  strings.append(name);
  strings.push_back('\0');
  entry.aux_at = 0;
  entry.aux_length = 0;
  SetAux(entry, aux);
  entries.push_back(entry);
}

void DirDraft::SetAux(CacheEntry& entry, std::string_view aux) {
  // The same length again takes the same place: what was there is of no more use.
  if (aux.size() != entry.aux_length) entry.aux_at = 0;
  if (entry.aux_at != 0) {
    strings.replace(entry.aux_at, aux.size(), aux);
    return;
  }
  entry.aux_length = static_cast<uint16_t>(aux.size());
  if (aux.empty()) return;
  entry.aux_at = static_cast<uint32_t>(strings.size());
  strings.append(aux);
}

size_t DirDraft::encoded_size() const { return SizeOf(view()); }

Name StatCache::FileName(const RootId& root) {
  return Name::Literal(root.text() + ".scan");
}

BatchPlace StatCache::place() const {
  return {PackId(Id128{head_.pack}), head_.batch, head_.body_hash};
}

void StatCache::Put(const BatchPlace& place, Head& head) {
  head.pack = place.pack.bytes;
  head.batch = place.offset;
  head.body_hash = place.body_hash;
}

void StatCache::Seal(Head& head) const {
  head.check = FastHash(std::as_bytes(std::span(&head, 1)).first(offsetof(Head, check)),
                        head.key);
}

StatCache StatCache::Load(Fs& fs, const Fd& dir, const RootId& root) {
  StatCache none;
  auto file = fs.Open(dir, FileName(root), OpenMode::Read());
  if (!file.ok()) return none;
  auto stat = fs.Stat(*file);
  if (!stat.ok() || stat->type != FileType::kRegular || stat->size < sizeof(Head) ||
      stat->size > kMaxCacheFile)
    return none;
  StatCache cache;
  const size_t words = static_cast<size_t>(stat->size) / sizeof(uint64_t);
  // Not zeroed: at 10,000 files that would be half a millisecond of page faults.
  cache.data_ = std::make_unique_for_overwrite<uint64_t[]>(words);
  cache.size_ = words * sizeof(uint64_t);
  auto got = ReadFull(fs, *file, 0,
                      std::as_writable_bytes(std::span(cache.data_.get(), words)));
  if (!got.ok() || *got != cache.size_) return none;
  Head head;
  std::memcpy(static_cast<void*>(&head), cache.data_.get(), sizeof head);
  Head want;
  want.key = head.key;
  if (std::memcmp(head.magic, want.magic, sizeof want.magic) != 0 ||
      head.order != want.order || head.root != root.bytes)
    return none;
  Head sealed = head;
  cache.Seal(sealed);
  if (sealed.check != head.check) return none;
  cache.head_ = head;
  return cache;
}

std::optional<DirView> StatCache::Find(uint64_t offset) const {
  const uint64_t size = this->size();
  if (offset < sizeof(Head) || offset % 8 != 0 || offset > size ||
      size - offset < sizeof(BlockHead))
    return std::nullopt;
  const std::byte* at = bytes().data() + offset;
  const auto* head = reinterpret_cast<const BlockHead*>(at);
  if (head->magic != BlockHead::kMagic || head->room > size - offset ||
      head->room < sizeof(BlockHead))
    return std::nullopt;
  const uint64_t entries = uint64_t{head->entry_count} * sizeof(CacheEntry);
  if (sizeof(BlockHead) + entries + head->strings_length > head->room)
    return std::nullopt;
  if (CheckOf({at, head->room}, head_.key, offset) != head->check &&
      !BELAY_MUTANT("trust-any-cache-block"))
    return std::nullopt;
  DirView view;
  view.head = head;
  view.entries = {reinterpret_cast<const CacheEntry*>(at + sizeof(BlockHead)),
                  head->entry_count};
  view.strings = {reinterpret_cast<const char*>(at + sizeof(BlockHead) + entries),
                  head->strings_length};
  // The hash can be forged; reading beyond the block must not follow from that.
  for (const CacheEntry& e : view.entries) {
    const uint64_t name_end = uint64_t{e.name_at} + e.name_length;
    if (name_end >= view.strings.size() || view.strings[name_end] != '\0' ||
        uint64_t{e.aux_at} + e.aux_length > view.strings.size())
      return std::nullopt;
  }
  return view;
}

Status StatCache::Save(Fs& fs, const Fd& dir, const About& about,
                       std::vector<Dir>& dirs) {
  uint64_t changed = 0;
  for (const Dir& d : dirs) changed += d.draft != nullptr ? 1 : 0;
  const bool patch = !empty() && about.key == head_.key && changed * 4 <= dirs.size() &&
                     size() <= 2 * head_.live + (uint64_t{64} << 10);
  return patch ? SaveInPlace(fs, dir, about, dirs) : SaveWhole(fs, dir, about, dirs);
}

Status StatCache::SaveInPlace(Fs& fs, const Fd& dir, const About& about,
                              std::vector<Dir>& dirs) {
  BELAY_TRY(Fd file, fs.Open(dir, FileName(about.root), OpenMode::ReadWrite()));
  uint64_t end = size();
  Head head = head_;
  // A block that moves must be named by its parent, which may not have changed
  // otherwise.
  std::vector<DirDraft> forced;
  forced.reserve(dirs.size());  // addresses must stay
  // Children come after their parents: from the back every child has its place before
  // its parent is written.
  for (size_t i = dirs.size(); i-- > 0;) {
    Dir& d = dirs[i];
    if (d.draft == nullptr) continue;
    auto old = Find(d.block);
    size_t need = d.draft->encoded_size();
    uint64_t at = d.block;
    size_t room = old ? old->head->room : 0;
    if (!old || room < need) {
      if (old) head.live -= std::min<uint64_t>(head.live, room);
      at = end;
      room = Aligned(need + need / 8);  // a little room to grow
      end += room;
      head.live += room;
    }
    Bytes block;
    EncodeBlock(d.draft->view(), about.generation, head_.key, at, room, block);
    BELAY_OK(WriteFull(fs, file, at, block));
    if (at == d.block) continue;
    d.block = at;
    if (i == 0) {
      head.root_block = at;
      continue;
    }
    Dir& parent = dirs[d.parent];
    if (parent.draft == nullptr) {
      auto view = Find(parent.block);
      if (!view) return Error(Errc::kCorrupt, "the cache's parent block is gone");
      forced.push_back(DirDraft::Copy(*view));
      parent.draft = &forced.back();
    }
    parent.draft->entries[d.entry].size = at;
  }
  head.config_key = about.config_key;
  head.tree = about.tree;
  Put(about.place, head);
  Seal(head);
  return WriteFull(fs, file, 0, std::as_bytes(std::span(&head, 1)));
}

Status StatCache::SaveWhole(Fs& fs, const Fd& dir, const About& about,
                            std::vector<Dir>& dirs) {
  // Places first: a parent names its children's. Entries of parents that have no draft
  // are put right in a copy when they are written.
  uint64_t end = Aligned(sizeof(Head));
  std::vector<uint64_t> place(dirs.size());
  std::vector<std::vector<std::pair<uint32_t, uint64_t>>> moved(dirs.size());
  for (size_t i = 0; i < dirs.size(); ++i) {
    place[i] = end;
    if (dirs[i].draft != nullptr) {
      end += dirs[i].draft->encoded_size();
    } else if (auto view = Find(dirs[i].block)) {
      end += SizeOf(*view);
    } else {
      return Error(Errc::kCorrupt, "the cache's block is gone");
    }
    if (i != 0) moved[dirs[i].parent].push_back({dirs[i].entry, place[i]});
  }
  Head head;
  head.root = about.root.bytes;
  head.key = about.key;
  head.config_key = about.config_key;
  head.tree = about.tree;
  Put(about.place, head);
  head.root_block = dirs.empty() ? 0 : place[0];
  head.live = end;
  Seal(head);

  const Name temporary = TemporaryName(about.root);
  BELAY_TRY(Fd file, fs.Open(dir, temporary,
                             {.access = OpenMode::Access::kReadWrite,
                              .create = true,
                              .truncate = true,
                              .mode = 0600}));
  constexpr size_t kPiece = size_t{1} << 20;
  Bytes out;
  uint64_t written = 0;
  Append(out, std::span<const Head>(&head, 1));
  out.resize(Aligned(sizeof(Head)));
  for (size_t i = 0; i < dirs.size(); ++i) {
    DirDraft copy;
    DirDraft* draft = dirs[i].draft;
    if (draft == nullptr) {
      copy = DirDraft::Copy(*Find(dirs[i].block));
      draft = &copy;
    }
    for (const auto& [entry, at] : moved[i]) draft->entries[entry].size = at;
    EncodeBlock(draft->view(), about.generation, about.key, place[i],
                draft->encoded_size(), out);
    if (out.size() >= kPiece) {
      BELAY_OK(WriteFull(fs, file, written, out));
      written += out.size();
      out.clear();
    }
  }
  BELAY_OK(WriteFull(fs, file, written, out));
  BELAY_OK(file.Close());
  // What was there is none of ours, if anything.
  if (empty()) {
    BELAY_TRY([[maybe_unused]] bool kept, KeepPack(fs, dir, FileName(about.root)));
  }
  return fs.Rename(dir, temporary, dir, FileName(about.root), RenameHow::kReplace);
}

uint64_t Fingerprint(const FileStat& stat, uint64_t key) {
  FastMixer mix(key);
  mix.Add(stat.dev, stat.ino);
  mix.Add(static_cast<uint64_t>(stat.mtime_ns),
          BELAY_MUTANT("fingerprint-without-ctime")
              ? 0
              : static_cast<uint64_t>(stat.ctime_ns));
  mix.Add(stat.size, static_cast<uint64_t>(stat.type) << 16 | stat.mode);
  mix.Add(uint64_t{stat.uid} << 32 | stat.gid, stat.mount_root ? 1 : 0);
  return mix.Done();
}

bool IsRacy(const FileStat& stat, int64_t now_ns) {
  if (BELAY_MUTANT("trust-racy-times")) return false;
  constexpr int64_t kSecond = 1'000'000'000;
  // Two ticks of the slowest kernel clock (HZ=100), or of the slowest file system.
  const bool coarse = stat.mtime_ns % kSecond == 0 && stat.ctime_ns % kSecond == 0;
  const int64_t slack = coarse ? 4 * kSecond : 20'000'000;
  return std::max(stat.mtime_ns, stat.ctime_ns) >= now_ns - slack;
}

}  // namespace belay
