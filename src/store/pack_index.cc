#include "store/pack_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "store/pack_format.h"

namespace belay {

namespace {
constexpr std::string_view kMagic = "BELAYIX\n";
constexpr size_t kHeaderSize = 64;
constexpr size_t kSlotSize = 16;
constexpr uint32_t kMinLog2 = 8;
constexpr uint32_t kMaxLog2 = 32;
constexpr size_t kProbeRun = 16;  // slots read at once
constexpr uint64_t kShortTable = uint64_t{32} << 10;

struct Header {
  PackId pack;
  uint32_t log2_slots = 0;
  uint64_t entries = 0;
  uint64_t covered = 0;
  uint64_t slots() const { return uint64_t{1} << log2_slots; }
};

std::array<std::byte, kHeaderSize> EncodeHeader(const Header& h) {
  std::array<std::byte, kHeaderSize> out{};
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  std::memcpy(&out[8], h.pack.bytes.data(), 16);
  StoreU32(&out[24], h.log2_slots);
  StoreU64(&out[32], h.entries);
  StoreU64(&out[40], h.covered);
  StoreU64(&out[56], Check64(ByteSpan(out).first(56)));
  return out;
}

std::optional<Header> DecodeHeader(ByteSpan bytes, const PackId& pack) {
  if (bytes.size() != kHeaderSize || AsText(bytes.first(8)) != kMagic ||
      LoadU64(&bytes[56]) != Check64(bytes.first(56)))
    return std::nullopt;
  Header h;
  h.pack = PackId(Id128::FromSpan(bytes.subspan(8, 16)));
  h.log2_slots = LoadU32(&bytes[24]);
  h.entries = LoadU64(&bytes[32]);
  h.covered = LoadU64(&bytes[40]);
  if (h.pack != pack || h.log2_slots < kMinLog2 || h.log2_slots > kMaxLog2)
    return std::nullopt;
  return h;
}

uint64_t SlotKey(const ObjectKey& key) {
  return LoadU64(key.id.bytes.data()) ^ static_cast<uint64_t>(key.type);
}
uint64_t FirstSlot(uint64_t slot_key, uint32_t log2_slots) {
  return (slot_key * 0x9e3779b97f4a7c15) >> (64 - log2_slots);
}
bool TooFull(uint64_t entries, uint64_t slots) { return entries > slots - slots / 8; }

// Puts `entry` into the first free slot of its run; false when there is none.
bool Place(const IndexEntry& entry, uint32_t log2_slots, std::span<std::byte> table) {
  const uint64_t slots = uint64_t{1} << log2_slots;
  const uint64_t slot_key = SlotKey(entry.key);
  uint64_t slot = FirstSlot(slot_key, log2_slots);
  for (uint64_t seen = 0; seen < slots; ++seen, slot = (slot + 1) % slots) {
    std::byte* at = table.data() + slot * kSlotSize;
    if (LoadU64(at + 8) != 0) continue;
    StoreU64(at, slot_key);
    StoreU64(at + 8, entry.offset);
    return true;
  }
  return false;
}

// The same in the file itself; false also when the file is cut short.
Result<bool> PlaceInFile(Fs& fs, const Fd& file, const IndexEntry& entry,
                         const Header& h) {
  const uint64_t slot_key = SlotKey(entry.key);
  uint64_t slot = FirstSlot(slot_key, h.log2_slots);
  for (uint64_t seen = 0; seen < h.slots();) {
    std::byte raw[kProbeRun * kSlotSize];
    size_t run = static_cast<size_t>(std::min<uint64_t>(kProbeRun, h.slots() - slot));
    BELAY_TRY(size_t got, ReadFull(fs, file, kHeaderSize + slot * kSlotSize,
                                   std::span(raw).first(run * kSlotSize)));
    if (got < run * kSlotSize) return false;
    for (size_t i = 0; i < run; ++i) {
      if (LoadU64(raw + i * kSlotSize + 8) != 0) continue;
      std::byte cell[kSlotSize];
      StoreU64(cell, slot_key);
      StoreU64(cell + 8, entry.offset);
      BELAY_OK(WriteFull(fs, file, kHeaderSize + (slot + i) * kSlotSize, cell));
      return true;
    }
    seen += run;
    slot = (slot + run) % h.slots();
  }
  return false;
}

Name TempName(const PackId& id) { return Name::Literal(id.text() + ".idx.new"); }

Result<Header> ReadHeader(Fs& fs, const Fd& file, const PackId& id) {
  std::byte raw[kHeaderSize];
  BELAY_TRY(size_t got, ReadFull(fs, file, 0, raw));
  auto header = DecodeHeader(ByteSpan(raw).first(got), id);
  if (!header) return Error(Errc::kCorrupt, "index header is damaged");
  return *header;
}
}  // namespace

Result<std::vector<IndexEntry>> ObjectsIn(const PackFile& file, uint64_t from,
                                          uint64_t limit) {
  BELAY_TRY(auto records, file.ReadableRecords(from, limit));
  std::vector<IndexEntry> entries;
  entries.reserve(records.size());
  for (const RecordAt& r : records)
    if (r.header.type != ObjectType::kLog)
      entries.push_back({r.header.key(), r.offset});
  return entries;
}

Name PackIndex::FileName(const PackId& id) { return Name::Literal(id.text() + ".idx"); }

Result<PackIndex> PackIndex::Load(Fs& fs, const Fd& packs_dir, const PackId& id) {
  PackIndex index;
  index.fs_ = &fs;
  index.covered_ = kPackHeaderSize;
  // Whatever is wrong with it, it is a hint. Only when the process has no room for one
  // more file may another try do better.
  auto ours_to_lack = [](const Error& e) {
    return e.sys == EMFILE || e.sys == ENFILE || e.sys == ENOMEM;
  };
  auto file = fs.Open(packs_dir, FileName(id), OpenMode::Read());
  if (!file.ok()) {
    if (!ours_to_lack(file.error())) return index;
    return std::move(file).error();
  }
  auto header = ReadHeader(fs, *file, id);
  if (!header.ok()) return index;
  index.file_ = std::move(*file);
  index.log2_slots_ = header->log2_slots;
  index.covered_ = std::max<uint64_t>(header->covered, kPackHeaderSize);
  return index;
}

void PackIndex::AddInMemory(const std::vector<IndexEntry>& entries, uint64_t covered) {
  for (const IndexEntry& e : entries) memory_.emplace(e.key, e.offset);
  covered_ = std::max(covered_, covered);
}

Result<std::vector<uint64_t>> PackIndex::Candidates(const ObjectKey& key) const {
  std::vector<uint64_t> found;
  auto [begin, end] = memory_.equal_range(key);
  for (auto at = begin; at != end; ++at) found.push_back(at->second);
  if (!file_.is_open()) return found;

  const uint64_t slots = uint64_t{1} << log2_slots_;
  const uint64_t wanted = SlotKey(key);
  uint64_t slot = FirstSlot(wanted, log2_slots_);
  std::byte raw[kProbeRun * kSlotSize];
  for (uint64_t seen = 0; seen < slots;) {
    size_t run = static_cast<size_t>(std::min<uint64_t>(kProbeRun, slots - slot));
    auto got = ReadFull(*fs_, file_, kHeaderSize + slot * kSlotSize,
                        std::span(raw).first(run * kSlotSize));
    // Unreadable or cut short: as good as a miss.
    if (!got.ok() || *got < run * kSlotSize) return found;
    for (size_t i = 0; i < run; ++i) {
      uint64_t offset = LoadU64(raw + i * kSlotSize + 8);
      if (offset == 0) return found;
      if (LoadU64(raw + i * kSlotSize) == wanted) found.push_back(offset);
    }
    seen += run;
    slot = (slot + run) % slots;
  }
  return found;
}

Status PackIndex::WriteWhole(Fs& fs, const Fd& packs_dir, const PackId& id,
                             const std::vector<IndexEntry>& entries, uint64_t covered) {
  Header h;
  h.pack = id;
  h.log2_slots = kMinLog2;
  h.entries = entries.size();
  h.covered = covered;
  while (TooFull(h.entries * 2, h.slots())) ++h.log2_slots;  // room to grow
  Bytes table(kHeaderSize + static_cast<size_t>(h.slots()) * kSlotSize);
  auto header = EncodeHeader(h);
  std::memcpy(table.data(), header.data(), header.size());
  for (const IndexEntry& e : entries)
    BELAY_CHECK(Place(e, h.log2_slots, std::span(table).subspan(kHeaderSize)));
  const Name temp = TempName(id);
  BELAY_TRY(Fd file, fs.Open(packs_dir, temp,
                             OpenMode{.access = OpenMode::Access::kReadWrite,
                                      .create = true,
                                      .truncate = true}));
  Status written = WriteFull(fs, file, 0, table);
  if (written.ok()) written = file.Close();
  if (written.ok())
    written = fs.Rename(packs_dir, temp, packs_dir, FileName(id), RenameHow::kReplace);
  if (!written.ok()) (void)fs.Unlink(packs_dir, temp);
  return written;
}

Status PackIndex::Write(Fs& fs, const Fd& packs_dir, const PackId& id,
                        const std::vector<IndexEntry>& entries, uint64_t from,
                        uint64_t covered,
                        const std::function<Result<std::vector<IndexEntry>>()>& all) {
  auto rebuild = [&]() -> Status {
    BELAY_TRY(std::vector<IndexEntry> every, all());
    return WriteWhole(fs, packs_dir, id, every, covered);
  };
  auto file = fs.Open(packs_dir, FileName(id), OpenMode::ReadWrite());
  if (!file.ok()) {
    if (file.error().code != Errc::kNotFound) return std::move(file).error();
    return from == kPackHeaderSize ? WriteWhole(fs, packs_dir, id, entries, covered)
                                   : rebuild();
  }
  auto loaded = ReadHeader(fs, *file, id);
  if (!loaded.ok()) return rebuild();
  Header h = *loaded;
  // A gap means that somebody was killed before this line: fill it by a scan.
  if (h.covered < from || TooFull(h.entries + entries.size(), h.slots()))
    return rebuild();

  // Slots first, then the header that says they are there. A short table is read and
  // written in one piece: two calls instead of two for each entry.
  const uint64_t table_size = h.slots() * kSlotSize;
  if (table_size <= kShortTable) {
    Bytes table(static_cast<size_t>(table_size));
    BELAY_TRY(size_t got, ReadFull(fs, *file, kHeaderSize, table));
    if (got < table.size()) return rebuild();
    for (const IndexEntry& e : entries) {
      if (!Place(e, h.log2_slots, table)) return rebuild();
      ++h.entries;
    }
    BELAY_OK(WriteFull(fs, *file, kHeaderSize, table));
  } else {
    for (const IndexEntry& e : entries) {
      BELAY_TRY(bool placed, PlaceInFile(fs, *file, e, h));
      if (!placed) return rebuild();
      ++h.entries;
    }
  }
  h.covered = covered;
  BELAY_OK(WriteFull(fs, *file, 0, EncodeHeader(h)));
  return file->Close();
}

}  // namespace belay
