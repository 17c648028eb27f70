#include "store/pack_index.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "store/pack_format.h"
#include "store/stray_pack.h"

namespace belay {

namespace {
constexpr std::string_view kIndexMagic = "BELAYI2\n";
constexpr size_t kHeaderSize = 64;
constexpr size_t kSlotSize = 16;
constexpr size_t kRecentSlots = 252;
constexpr size_t kTableAt = kHeaderSize + kRecentSlots * kSlotSize;
static_assert(kTableAt == 4096);
constexpr uint32_t kMinLog2 = 8;
constexpr uint32_t kMaxLog2 = 32;
constexpr size_t kProbeRun = 16;  // slots read at once
// A table is read whole, by whoever searches it often, up to this size. One search is a
// read of 256 bytes; a page of the table costs about as much, most of it for memory.
constexpr uint64_t kShortTable = uint64_t{1} << 20;
constexpr uint64_t kManySearches = 64;
constexpr uint64_t kPage = 4096;
// Placing a single entry is one read and one write, about as much as copying this
// many bytes of the table.
constexpr uint64_t kBytesPerEntry = uint64_t{4} << 10;
constexpr uint64_t kWrittenWhole = uint64_t{32} << 10;

struct Header {
  PackId pack;
  uint32_t log2_slots = 0;
  uint32_t recent = 0;   // entries behind the header
  uint64_t entries = 0;  // and in the table
  uint64_t covered = 0;
  uint64_t flushed = 0;
  uint64_t slots() const { return uint64_t{1} << log2_slots; }
};

struct Slot {
  uint64_t key = 0;
  uint64_t offset = 0;
};

std::array<std::byte, kHeaderSize> EncodeHeader(const Header& h) {
  std::array<std::byte, kHeaderSize> out{};
  std::memcpy(out.data(), kIndexMagic.data(), kIndexMagic.size());
  std::memcpy(&out[8], h.pack.bytes.data(), 16);
  StoreU32(&out[24], h.log2_slots);
  StoreU32(&out[28], h.recent);
  StoreU64(&out[32], h.entries);
  StoreU64(&out[40], h.covered);
  StoreU64(&out[48], h.flushed);
  StoreU64(&out[56], Check64(ByteSpan(out).first(56)));
  return out;
}

std::optional<Header> DecodeHeader(ByteSpan bytes, const PackId& pack) {
  if (bytes.size() != kHeaderSize || AsText(bytes.first(8)) != kIndexMagic ||
      LoadU64(&bytes[56]) != Check64(bytes.first(56)))
    return std::nullopt;
  Header h;
  h.pack = PackId(Id128::FromSpan(bytes.subspan(8, 16)));
  h.log2_slots = LoadU32(&bytes[24]);
  h.recent = LoadU32(&bytes[28]);
  h.entries = LoadU64(&bytes[32]);
  h.covered = LoadU64(&bytes[40]);
  h.flushed = LoadU64(&bytes[48]);
  if (h.pack != pack || h.log2_slots < kMinLog2 || h.log2_slots > kMaxLog2 ||
      h.recent > kRecentSlots)
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

Slot SlotOf(const IndexEntry& e) { return {SlotKey(e.key), e.offset}; }
Slot LoadSlot(const std::byte* at) { return {LoadU64(at), LoadU64(at + 8)}; }
void StoreSlot(std::byte* at, const Slot& slot) {
  StoreU64(at, slot.key);
  StoreU64(at + 8, slot.offset);
}

// Puts `entry` into the first free slot of its run; false when there is none.
bool Place(const Slot& entry, uint32_t log2_slots, std::span<std::byte> table) {
  const uint64_t slots = uint64_t{1} << log2_slots;
  uint64_t slot = FirstSlot(entry.key, log2_slots);
  for (uint64_t seen = 0; seen < slots; ++seen, slot = (slot + 1) % slots) {
    std::byte* at = table.data() + slot * kSlotSize;
    if (LoadU64(at + 8) != 0) continue;
    StoreSlot(at, entry);
    return true;
  }
  return false;
}

// The same in the file itself; false also when the file is cut short.
Result<bool> PlaceInFile(Fs& fs, const Fd& file, const Slot& entry, const Header& h) {
  uint64_t slot = FirstSlot(entry.key, h.log2_slots);
  for (uint64_t seen = 0; seen < h.slots();) {
    std::byte raw[kProbeRun * kSlotSize];
    size_t run = static_cast<size_t>(std::min<uint64_t>(kProbeRun, h.slots() - slot));
    BELAY_TRY(size_t got, ReadFull(fs, file, kTableAt + slot * kSlotSize,
                                   std::span(raw).first(run * kSlotSize)));
    if (got < run * kSlotSize) return false;
    for (size_t i = 0; i < run; ++i) {
      if (LoadU64(raw + i * kSlotSize + 8) != 0) continue;
      std::byte cell[kSlotSize];
      StoreSlot(cell, entry);
      BELAY_OK(WriteFull(fs, file, kTableAt + (slot + i) * kSlotSize, cell));
      return true;
    }
    seen += run;
    slot = (slot + run) % h.slots();
  }
  return false;
}

Name TempName(const PackId& id) { return Name::Literal(id.text() + ".idx.new"); }

// The first block: header and newest entries.
struct Head {
  Header header;
  std::vector<Slot> recent;
};
Result<Head> ReadHead(Fs& fs, const Fd& file, const PackId& id) {
  std::byte raw[kTableAt];
  BELAY_TRY(size_t got, ReadFull(fs, file, 0, raw));
  auto header = DecodeHeader(ByteSpan(raw).first(std::min(got, kHeaderSize)), id);
  if (!header || got < kHeaderSize + header->recent * kSlotSize)
    return Error(Errc::kCorrupt, "index header is damaged");
  Head head{*header, {}};
  for (size_t i = 0; i < header->recent; ++i)
    head.recent.push_back(LoadSlot(raw + kHeaderSize + i * kSlotSize));
  return head;
}

Status WriteHead(Fs& fs, const Fd& file, const Head& head) {
  Bytes raw(kHeaderSize + head.recent.size() * kSlotSize);
  auto header = EncodeHeader(head.header);
  std::memcpy(raw.data(), header.data(), header.size());
  for (size_t i = 0; i < head.recent.size(); ++i)
    StoreSlot(raw.data() + kHeaderSize + i * kSlotSize, head.recent[i]);
  return WriteFull(fs, file, 0, raw);
}

// A new file with `slots` in its table takes the place of the old one.
Status WriteNew(Fs& fs, const Fd& packs_dir, const PackId& id,
                const std::vector<Slot>& slots, uint64_t covered, uint64_t flushed) {
  Header h;
  h.pack = id;
  h.log2_slots = kMinLog2;
  h.entries = slots.size();
  h.covered = covered;
  h.flushed = flushed;
  // Room to grow. Twice as many would make it 33 MB at 500,000 objects, not 17.
  while (TooFull(h.entries + h.entries / 2, h.slots())) ++h.log2_slots;
  Bytes bytes(kTableAt + static_cast<size_t>(h.slots()) * kSlotSize);
  auto header = EncodeHeader(h);
  std::memcpy(bytes.data(), header.data(), header.size());
  for (const Slot& slot : slots)
    BELAY_CHECK(Place(slot, h.log2_slots, std::span(bytes).subspan(kTableAt)));
  const Name temp = TempName(id);
  BELAY_TRY(Fd file, fs.Open(packs_dir, temp,
                             OpenMode{.access = OpenMode::Access::kReadWrite,
                                      .create = true,
                                      .truncate = true}));
  Status written = WriteFull(fs, file, 0, bytes);
  if (written.ok()) written = file.Close();
  if (written.ok())
    written = fs.Rename(packs_dir, temp, packs_dir, PackIndex::FileName(id),
                        RenameHow::kReplace);
  if (!written.ok()) (void)fs.Unlink(packs_dir, temp);
  return written;
}
}  // namespace

namespace {
// A short range is looked at in memory, after one read.
constexpr uint64_t kShortRange = uint64_t{256} << 10;

// The objects of the batches in `bytes`, which stand at `start`; empty when anything is
// not as it should be.
std::optional<std::vector<IndexEntry>> WholeObjects(ByteSpan bytes, uint64_t start,
                                                    const PackId& id) {
  std::vector<IndexEntry> entries;
  for (size_t at = 0; at < bytes.size();) {
    auto batch = DecodeBatchHeader(bytes.subspan(at), id, start + at);
    if (!batch || batch->total_length() > bytes.size() - at) return std::nullopt;
    const size_t body = at + kBatchHeaderSize;
    const size_t log = body + static_cast<size_t>(batch->log_offset);
    uint64_t objects = 0;
    for (size_t record = body; record < log; ++objects) {
      auto header = DecodeRecordHeader(bytes.first(log).subspan(record));
      if (!header || header->total_length() > log - record) return std::nullopt;
      if (header->type != ObjectType::kLog)
        entries.push_back({header->key(), start + record});
      record += static_cast<size_t>(header->total_length());
    }
    if (objects != batch->object_count) return std::nullopt;
    at += static_cast<size_t>(batch->total_length());
  }
  return entries;
}
}  // namespace

Result<std::vector<IndexEntry>> ObjectsIn(const PackFile& file, uint64_t from,
                                          uint64_t limit) {
  if (from < limit && limit - from <= kShortRange) {
    Bytes bytes(static_cast<size_t>(limit - from));
    BELAY_TRY(size_t got, file.ReadBytes(from, bytes));
    auto entries = WholeObjects(ByteSpan(bytes).first(got), from, file.id());
    if (entries && got == bytes.size()) return std::move(*entries);
  }
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
  index.file_covered_ = index.state_->covered = kPackHeaderSize;
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
  auto head = ReadHead(fs, *file, id);
  // Once more: a reader may meet the writer half-way.
  if (!head.ok()) head = ReadHead(fs, *file, id);
  if (!head.ok()) return index;
  index.file_ = std::move(*file);
  index.log2_slots_ = head->header.log2_slots;
  for (const Slot& slot : head->recent)
    index.recent_.emplace_back(slot.key, slot.offset);
  index.file_covered_ = index.state_->covered =
      std::max<uint64_t>(head->header.covered, kPackHeaderSize);
  if (head->header.flushed <= head->header.covered)
    index.flushed_ = head->header.flushed;
  return index;
}

uint64_t PackIndex::covered() const {
  std::lock_guard guard(state_->mutex);
  return state_->covered;
}

size_t PackIndex::entries_in_memory() const {
  std::lock_guard guard(state_->mutex);
  return state_->memory.size();
}

void PackIndex::AddInMemory(const std::vector<IndexEntry>& entries, uint64_t from,
                            uint64_t to) {
  std::lock_guard guard(state_->mutex);
  if (state_->covered != from) return;  // another thread has, or there is a gap
  for (const IndexEntry& e : entries) state_->memory.emplace(e.key, e.offset);
  state_->covered = to;
}

// The table in memory, once it pays; null until then. What is added to the file
// meanwhile is in `memory` or not covered, so an old copy is as good as a new one.
std::shared_ptr<const std::byte[]> PackIndex::Table() const {
  const uint64_t size = kSlotSize << log2_slots_;
  {
    std::lock_guard guard(state_->mutex);
    if (state_->table || size > kShortTable ||
        ++state_->searches < std::max(kManySearches, size / kPage))
      return state_->table;
  }
  auto table = std::make_shared_for_overwrite<std::byte[]>(static_cast<size_t>(size));
  auto got = ReadFull(*fs_, file_, kTableAt,
                      std::span(table.get(), static_cast<size_t>(size)));
  if (!got.ok() || *got < size) return nullptr;
  std::lock_guard guard(state_->mutex);
  state_->table = table;
  return table;
}

Result<std::vector<uint64_t>> PackIndex::Candidates(const ObjectKey& key) const {
  std::vector<uint64_t> found;
  {
    std::lock_guard guard(state_->mutex);
    auto [begin, end] = state_->memory.equal_range(key);
    for (auto at = begin; at != end; ++at) found.push_back(at->second);
  }
  if (!file_.is_open()) return found;

  const uint64_t wanted = SlotKey(key);
  for (const auto& [slot_key, offset] : recent_)
    if (slot_key == wanted) found.push_back(offset);
  const std::shared_ptr<const std::byte[]> table = Table();
  const uint64_t slots = uint64_t{1} << log2_slots_;
  uint64_t slot = FirstSlot(wanted, log2_slots_);
  std::byte raw[kProbeRun * kSlotSize];
  for (uint64_t seen = 0; seen < slots;) {
    size_t run = static_cast<size_t>(std::min<uint64_t>(kProbeRun, slots - slot));
    const std::byte* at = raw;
    if (table) {
      at = table.get() + slot * kSlotSize;
    } else {
      auto got = ReadFull(*fs_, file_, kTableAt + slot * kSlotSize,
                          std::span(raw).first(run * kSlotSize));
      // Unreadable or cut short: as good as a miss.
      if (!got.ok() || *got < run * kSlotSize) return found;
    }
    for (size_t i = 0; i < run; ++i) {
      uint64_t offset = LoadU64(at + i * kSlotSize + 8);
      if (offset == 0) return found;
      if (LoadU64(at + i * kSlotSize) == wanted) found.push_back(offset);
    }
    seen += run;
    slot = (slot + run) % slots;
  }
  return found;
}

Status PackIndex::WriteWhole(Fs& fs, const Fd& packs_dir, const PackId& id,
                             const std::vector<IndexEntry>& entries, uint64_t covered,
                             uint64_t flushed) {
  std::vector<Slot> slots;
  slots.reserve(entries.size());
  for (const IndexEntry& e : entries) slots.push_back(SlotOf(e));
  return WriteNew(fs, packs_dir, id, slots, covered, flushed);
}

Status PackIndex::Write(Fs& fs, const Fd& packs_dir, const PackId& id,
                        std::vector<IndexEntry> entries, uint64_t from, uint64_t to,
                        const Scan& scan, uint64_t flushed) {
  auto rebuild = [&]() -> Status {
    if (from > kPackHeaderSize) {
      BELAY_TRY(auto before, scan(kPackHeaderSize, from));
      entries.insert(entries.end(), before.begin(), before.end());
    }
    return WriteWhole(fs, packs_dir, id, entries, to, flushed);
  };
  auto file = fs.Open(packs_dir, FileName(id), OpenMode::ReadWrite());
  if (!file.ok()) {
    if (file.error().code != Errc::kNotFound) return std::move(file).error();
    return rebuild();
  }
  auto loaded = ReadHead(fs, *file, id);
  if (!loaded.ok()) {
    BELAY_TRY([[maybe_unused]] bool kept, KeepPack(fs, packs_dir, FileName(id)));
    return rebuild();
  }
  Head head = std::move(*loaded);
  Header& h = head.header;
  // One that covers what was only written now is about bytes that were cut off since.
  if (h.covered > from) return rebuild();
  if (h.covered < from) {  // somebody was killed before this line
    BELAY_TRY(auto missing, scan(h.covered, from));
    entries.insert(entries.begin(), missing.begin(), missing.end());
    from = h.covered;
  }
  h.covered = to;
  h.flushed = flushed;
  for (const IndexEntry& e : entries) head.recent.push_back(SlotOf(e));
  if (head.recent.size() <= kRecentSlots) {
    h.recent = static_cast<uint32_t>(head.recent.size());
    BELAY_OK(WriteHead(fs, *file, head));
    return file->Close();
  }

  // The table takes them. Slots first, then the header that says they are there: a kill
  // between the two leaves some of them twice. A table that is not much larger than its
  // news is read and written in one piece, and so is one that must grow.
  const uint64_t table_size = h.slots() * kSlotSize;
  const bool grows = TooFull(h.entries + head.recent.size(), h.slots());
  if (grows ||
      table_size <= std::max(head.recent.size() * kBytesPerEntry, kWrittenWhole)) {
    Bytes table(static_cast<size_t>(table_size));
    BELAY_TRY(size_t got, ReadFull(fs, *file, kTableAt, table));
    if (got < table.size()) return rebuild();
    if (grows) {
      head.recent.reserve(head.recent.size() +
                          static_cast<size_t>(std::min(h.entries, h.slots())));
      for (size_t at = 0; at < table.size(); at += kSlotSize)
        if (Slot slot = LoadSlot(table.data() + at); slot.offset != 0)
          head.recent.push_back(slot);
      table = Bytes();  // may be as large as half of the new one
      return WriteNew(fs, packs_dir, id, head.recent, to, flushed);
    }
    for (const Slot& slot : head.recent)
      if (!Place(slot, h.log2_slots, table)) return rebuild();
    BELAY_OK(WriteFull(fs, *file, kTableAt, table));
  } else {
    for (const Slot& slot : head.recent) {
      BELAY_TRY(bool placed, PlaceInFile(fs, *file, slot, h));
      if (!placed) return rebuild();
    }
  }
  h.entries += head.recent.size();
  h.recent = 0;
  head.recent.clear();
  BELAY_OK(WriteHead(fs, *file, head));
  return file->Close();
}

}  // namespace belay
