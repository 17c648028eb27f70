#include "store/unlisted.h"

#include <algorithm>
#include <charconv>

#include "base/mutant.h"
#include "store/lost_records.h"
#include "store/store_files.h"
#include "store/stray_pack.h"

namespace belay {

namespace {

constexpr std::string_view kFirstLine = "belay replaced 1\n";
constexpr size_t kCheckLine = 6 + 64 + 1;
constexpr uint64_t kMaxFile = uint64_t{16} << 20;

std::string CheckOf(std::string_view text) {
  return "check " + Sha256::Of(AsBytes(text)).hex() + "\n";
}

std::optional<PackHeader> HeaderOf(Fs& fs, const Fd& packs_dir, const PackId& id) {
  auto file = fs.Open(packs_dir, PackFile::FileName(id), OpenMode::Read());
  if (!file.ok()) return std::nullopt;
  std::byte raw[kPackHeaderSize];
  auto got = ReadFull(fs, *file, 0, raw);
  if (!got.ok()) return std::nullopt;
  auto header = DecodePackHeader(ByteSpan(raw).first(*got));
  if (!header.ok()) return std::nullopt;
  return *header;
}

// Records that can be read, and whether that was all that may have been acknowledged.
Result<bool> RecordsOf(Store& store, const PackId& id, bool copies,
                       std::vector<LogRecord>& out) {
  auto file = PackFile::Open(store.fs(), store.packs_dir(), id, store.manifest().store,
                             OpenMode::Read());
  if (!file.ok()) {
    // No pack, or one that was begun and never filled; or it cannot be read now.
    if (file.error().code == Errc::kCorrupt) return file.error().sys == 0;
    if (file.error().code == Errc::kNotFound) return true;
    if (file.error().code == Errc::kUnsupported) return false;  // of a newer Belay
    return std::move(file).error();
  }
  BELAY_TRY(uint64_t size, file->Size());
  BELAY_TRY(bool whole, ReadRecords(*file, kPackHeaderSize, size,
                                    [&out](const LogRecord& r) -> Status {
                                      out.push_back(r);
                                      return Ok();
                                    }));
  // Copies that no manifest came to name may be torn anywhere.
  return whole || copies;
}

// What stands behind the end of packs that the manifest names.
Status LookBehindTheEnds(Store& store, const Manifest& manifest, Unlisted& out,
                         std::vector<RememberedRecord>& records) {
  for (const Manifest::Pack& p : manifest.packs) {
    if (!p.sealed || p.cut || BELAY_MUTANT("nothing-is-behind-the-end")) continue;
    auto stat = store.fs().StatAt(store.packs_dir(), PackFile::FileName(p.id));
    if (!stat.ok() || stat->type != FileType::kRegular || stat->size <= *p.sealed)
      continue;
    auto file = PackFile::Open(store.fs(), store.packs_dir(), p.id, manifest.store,
                               OpenMode::Read());
    if (!file.ok()) continue;  // verify says what is wrong with it
    bool any = false;
    BELAY_OK(file->ForEachBatch(
        kPackHeaderSize, stat->size, [&](const BatchHeader& b, bool damaged) -> Status {
          if (damaged || b.end() <= *p.sealed) return Ok();
          BELAY_TRY(const bool whole, file->IsWhole(b));
          if (!whole) return Ok();
          any = true;
          auto read =
              ReadRecords(*file, b.offset, b.end(), [&](const LogRecord& r) -> Status {
                records.push_back({r, true});
                return Ok();
              });
          return read.ok() ? Ok() : Status(std::move(read).error());
        }));
    if (any) out.longer.push_back(p.id);
  }
  return Ok();
}

// Of those that are gone: more would cost more than it tells.
constexpr size_t kMaxGone = 256;

// "ID" or "ID LENGTH MARK". A line that makes no sense names none.
void ReadReplaced(std::string_view line, uint32_t gone, ReplacedMap& packs) {
  const size_t id_end = std::min(line.find(' '), line.size());
  const auto id = Id128::FromText(line.substr(0, id_end));
  if (!id) return;
  ReplacedPack what;
  what.gone = gone;
  if (id_end < line.size()) {
    line.remove_prefix(id_end + 1);
    uint64_t length = 0;
    const auto [end, error] =
        std::from_chars(line.data(), line.data() + line.size(), length);
    if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return;
    line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
    if (!FromHex(line, what.last)) return;
    what.length = length;
  }
  packs.emplace(PackId(*id), what);
}

// Whether the pack is still what was replaced, or what a write that failed left behind
// that. A copy of the store in which the pack lived on may have been laid over it.
Result<bool> IsAsReplaced(Store& store, const PackId& id, const ReplacedPack& what) {
  if (!what.length || BELAY_MUTANT("replaced-by-name-alone")) return true;
  auto file = PackFile::Open(store.fs(), store.packs_dir(), id, store.manifest().store,
                             OpenMode::Read());
  if (!file.ok()) return true;
  BELAY_TRY(const uint64_t size, file->Size());
  if (size < *what.length) return false;
  BELAY_TRY(const BatchMark last, file->MarkAt(*what.length));
  if (last != what.last) return false;
  bool goes_on = false;
  BELAY_OK(file->ForEachBatch(*what.length, size,
                              [&](const BatchHeader& b, bool damaged) -> Status {
                                if (damaged) return Ok();
                                BELAY_TRY(const bool whole, file->IsWhole(b));
                                goes_on |= whole;
                                return Ok();
                              }));
  return !goes_on;
}

// Those that are not listed, without those that were replaced.
Result<std::vector<PackId>> NotReplaced(Store& store) {
  BELAY_TRY(auto packs, UnlistedPacks(store));
  const auto replaced =
      ReplacedPacks(store.fs(), store.dir(), store.manifest().generation);
  std::vector<PackId> out;
  for (const PackId& id : packs) {
    const auto known = replaced.find(id);
    bool gone = known != replaced.end();
    if (gone) {
      BELAY_TRY(gone, IsAsReplaced(store, id, known->second));
    }
    if (!gone) out.push_back(id);
  }
  return out;
}

bool IsErased(const LogView& log, LogRecord record) {
  for (int i = 0; i < 2; ++i) {
    if (log.purged.contains({ObjectType::kLog, Sha256::Of(EncodeLogRecord(record))}))
      return true;
    record.seq = 0;  // as it stands where the batch gives the number
  }
  return false;
}

}  // namespace

ReplacedMap ReplacedPacks(Fs& fs, const Fd& home, uint64_t generation, Unnamed which) {
  ReplacedMap packs;
  auto bytes = ReadSmallFile(fs, home, ReplacedName(), kMaxFile);
  if (!bytes.ok() || bytes->size() < kFirstLine.size() + kCheckLine) return packs;
  std::string_view text = AsText(*bytes);
  const std::string_view body = text.substr(0, text.size() - kCheckLine);
  if (!body.starts_with(kFirstLine) || text.substr(body.size()) != CheckOf(body))
    return packs;
  text = body.substr(kFirstLine.size());
  uint64_t written = 0;
  uint32_t gone = 0;
  constexpr std::string_view kGeneration = "generation ", kPack = "pack ",
                             kGone = "gone ";
  constexpr std::string_view kGivenUp = "given up ";
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(kGeneration)) {
      const std::string_view number = line.substr(kGeneration.size());
      (void)std::from_chars(number.data(), number.data() + number.size(), written);
    } else if (line.starts_with(kPack)) {
      ReadReplaced(line.substr(kPack.size()), 0, packs);
    } else if (which == Unnamed::kAll && line.starts_with(kGone)) {
      ReadReplaced(line.substr(kGone.size()), ++gone, packs);
    } else if (which == Unnamed::kAll && line.starts_with(kGivenUp)) {
      if (auto id = Id128::FromText(line.substr(kGivenUp.size())))
        packs.emplace(PackId(*id), ReplacedPack());
    }
  }
  // Of a collection that came to no manifest: it replaced nothing.
  if (written == 0 ||
      (written > generation && !BELAY_MUTANT("replaced-before-its-time")))
    packs.clear();
  return packs;
}

bool IsOfReplaced(Fs& fs, const Fd& home, uint64_t generation, const Tail& tail) {
  const ReplacedMap known = ReplacedPacks(fs, home, generation, Unnamed::kAll);
  const auto at = known.find(tail.pack);
  return at != known.end() &&
         (at->second.gone == 0 || !at->second.length ||
          tail.flushed <= *at->second.length || BELAY_MUTANT("gone-by-name-alone"));
}

Status WriteReplaced(Fs& fs, const Fd& home, uint64_t generation,
                     const ReplacedMap& packs, const std::set<PackId>& given_up) {
  std::string text(kFirstLine);
  text += "generation " + std::to_string(generation) + "\n";
  std::vector<std::pair<PackId, ReplacedPack>> lines(packs.begin(), packs.end());
  std::ranges::stable_sort(lines, {},
                           [](const auto& line) { return line.second.gone; });
  size_t gone = 0;
  for (const auto& [id, what] : lines) {
    if (what.gone != 0 && ++gone > kMaxGone) break;
    text += (what.gone != 0 ? "gone " : "pack ") + id.text();
    if (what.length)
      text += " " + std::to_string(*what.length) + " " + ToHex(what.last);
    text += "\n";
  }
  for (const PackId& id : given_up) text += "given up " + id.text() + "\n";
  text += CheckOf(text);
  BELAY_TRY([[maybe_unused]] bool kept, KeepPack(fs, home, ReplacedName()));
  return ReplaceFile(fs, home, ReplacedName(), ToBytes(text));
}

Result<ReplacedPack> ToReplace(Store& store, const Manifest::Pack& pack) {
  ReplacedPack out;
  // What a power cut brings back behind the end of one that is cut counts for nobody.
  if (!pack.sealed || pack.cut) return out;
  auto file = PackFile::Open(store.fs(), store.packs_dir(), pack.id,
                             store.manifest().store, OpenMode::Read());
  if (!file.ok()) return out;
  BELAY_TRY(out.last, file->MarkAt(*pack.sealed));
  if (out.last != BatchMark()) out.length = pack.sealed;
  return out;
}

Result<Unlisted> LookAtUnlisted(Store& store) {
  Unlisted out;
  BELAY_TRY(auto packs, NotReplaced(store));
  const Manifest manifest = store.manifest();
  std::vector<PackId> ours;
  std::vector<RememberedRecord> records;
  BELAY_OK(LookBehindTheEnds(store, manifest, out, records));
  bool unsure = false;
  for (const PackId& id : packs) {
    const auto header = HeaderOf(store.fs(), store.packs_dir(), id);
    if (header && header->store != manifest.store) {
      out.foreign.push_back(id);
      continue;
    }
    std::vector<LogRecord> found;
    const bool copies = header && (header->flags & PackHeader::kCopies) != 0;
    BELAY_TRY(const bool all, RecordsOf(store, id, copies, found));
    unsure |= !all;
    ours.push_back(id);
    for (LogRecord& r : found) records.push_back({std::move(r), true});
  }
  if ((ours.empty() && out.longer.empty()) || BELAY_MUTANT("unlisted-is-garbage"))
    return out;
  LogView log;
  BELAY_OK(ReadOn(store, log));
  std::erase_if(records, [&](const RememberedRecord& r) {
    return IsErased(log, r.record) && !BELAY_MUTANT("erased-records-come-back");
  });
  out.lacking = LackingRecords(log, records, [](const ObjectKey&) { return true; });
  // What a record needs may lie in another one of them.
  if (!out.lacking.empty() || unsure) out.kept = std::move(ours);
  if (out.lacking.empty()) out.longer.clear();
  return out;
}

Result<std::map<PackId, uint64_t>> LongerPacks(Store& store) {
  std::map<PackId, uint64_t> longer;
  BELAY_OK(store.Refresh());
  for (const Manifest::Pack& p : store.manifest().packs) {
    if (!p.sealed || p.cut) continue;
    auto stat = store.fs().StatAt(store.packs_dir(), PackFile::FileName(p.id));
    if (stat.ok() && stat->type == FileType::kRegular && stat->size > *p.sealed)
      longer.emplace(p.id, stat->size);
  }
  return longer;
}

Result<bool> CutAtItsEnd(Store& store, const Manifest::Pack& pack, uint64_t length) {
  if (!pack.sealed || pack.cut || BELAY_MUTANT("gc-leaves-what-is-behind"))
    return false;
  BELAY_TRY(PackFile file, PackFile::Open(store.fs(), store.packs_dir(), pack.id,
                                          store.manifest().store, OpenMode::Read()));
  BELAY_TRY(const uint64_t size, file.Size());
  if (size != length || size <= *pack.sealed) return false;
  // A write that was not finished is behind all others.
  bool broken = false, damaged = false;
  BELAY_OK(file.ForEachBatch(*pack.sealed, size,
                             [&](const BatchHeader& b, bool unreadable) -> Status {
                               damaged |= broken;
                               bool whole = false;
                               if (!unreadable) {
                                 BELAY_TRY(whole, file.IsWhole(b));
                               }
                               broken |= !whole;
                               return Ok();
                             }));
  if (damaged || file.has_unreadable()) return false;
  BELAY_TRY(Fd to_cut, store.fs().Open(store.packs_dir(), PackFile::FileName(pack.id),
                                       OpenMode::ReadWrite()));
  BELAY_OK(store.fs().Truncate(to_cut, *pack.sealed));
  BELAY_OK(store.fs().SyncData(to_cut));
  return true;
}

Result<bool> MissesUnlisted(Store& store) {
  BELAY_TRY(auto packs, NotReplaced(store));
  BELAY_TRY(auto longer, LongerPacks(store));
  if (BELAY_MUTANT("unlisted-only-by-name")) longer.clear();
  if ((packs.empty() && longer.empty()) || BELAY_MUTANT("unlisted-only-by-the-tail"))
    return false;
  BELAY_TRY(HeldLock use, store.HoldForReading());
  BELAY_TRY(Unlisted others, LookAtUnlisted(store));
  return !others.lacking.empty();
}

}  // namespace belay
