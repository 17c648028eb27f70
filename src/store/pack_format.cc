#include "store/pack_format.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace belay {

namespace {
constexpr std::string_view kBatchMagic = "BtCh";
constexpr std::string_view kTrailerMagic = "EndB";
constexpr std::string_view kTailMagic = "BELAYTL\n";

void Put(std::byte* at, ByteSpan bytes) { std::memcpy(at, bytes.data(), bytes.size()); }
bool StartsWith(ByteSpan bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}
bool CheckedAt(ByteSpan bytes, size_t at) {
  return LoadU64(bytes.data() + at) == Check64(bytes.first(at));
}
bool AllZero(ByteSpan bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte b) { return b == std::byte{}; });
}
}  // namespace

std::array<std::byte, kPackHeaderSize> Encode(const PackHeader& h) {
  std::array<std::byte, kPackHeaderSize> out{};
  Put(out.data(), AsBytes(kPackMagic));
  StoreU32(&out[8], h.version);
  StoreU32(&out[12], h.flags);
  Put(&out[16], h.pack.span());
  Put(&out[32], h.store.span());
  StoreU64(&out[48], static_cast<uint64_t>(h.created_ms));
  StoreU64(&out[56], Check64(ByteSpan(out).first(56)));
  return out;
}

Result<PackHeader> DecodePackHeader(ByteSpan bytes) {
  if (bytes.size() < kPackHeaderSize || !StartsWith(bytes, kPackMagic) ||
      !CheckedAt(bytes, 56))
    return Error(Errc::kCorrupt, "pack header is damaged");
  PackHeader h;
  h.version = LoadU32(&bytes[8]);
  if (h.version > kFormatVersion)
    return Error(Errc::kUnsupported, "pack was written by a newer Belay (format " +
                                         std::to_string(h.version) + ")")
        .WithHint("update belay; nothing was changed");
  h.flags = LoadU32(&bytes[12]);
  h.pack = PackId(Id128::FromSpan(bytes.subspan(16, 16)));
  h.store = StoreId(Id128::FromSpan(bytes.subspan(32, 16)));
  h.created_ms = static_cast<int64_t>(LoadU64(&bytes[48]));
  return h;
}

std::array<std::byte, kBatchHeaderSize> Encode(const BatchHeader& h) {
  std::array<std::byte, kBatchHeaderSize> out{};
  Put(out.data(), AsBytes(kBatchMagic));
  StoreU32(&out[4], h.flags);
  StoreU64(&out[8], h.offset);
  Put(&out[16], h.pack.span());
  StoreU64(&out[32], h.body_length);
  StoreU64(&out[40], h.log_offset);
  StoreU32(&out[48], h.object_count);
  StoreU32(&out[52], h.log_count);
  StoreU64(&out[56], h.first_seq);
  StoreU64(&out[64], static_cast<uint64_t>(h.written_ms));
  Put(&out[72], h.body_hash.span());
  StoreU64(&out[104], h.flushed_mark);
  StoreU64(&out[120], Check64(ByteSpan(out).first(120)));
  return out;
}

std::optional<BatchHeader> DecodeBatchHeader(ByteSpan bytes, const PackId& pack,
                                             uint64_t offset) {
  if (bytes.size() < kBatchHeaderSize || !StartsWith(bytes, kBatchMagic) ||
      !CheckedAt(bytes, 120) || !AllZero(bytes.subspan(112, 8)))
    return std::nullopt;
  BatchHeader h;
  h.flags = LoadU32(&bytes[4]);
  h.offset = LoadU64(&bytes[8]);
  h.pack = PackId(Id128::FromSpan(bytes.subspan(16, 16)));
  h.body_length = LoadU64(&bytes[32]);
  h.log_offset = LoadU64(&bytes[40]);
  h.object_count = LoadU32(&bytes[48]);
  h.log_count = LoadU32(&bytes[52]);
  h.first_seq = LoadU64(&bytes[56]);
  h.written_ms = static_cast<int64_t>(LoadU64(&bytes[64]));
  h.body_hash = Hash256::FromSpan(bytes.subspan(72, 32));
  h.flushed_mark = LoadU64(&bytes[104]);
  constexpr uint64_t kMaxBody = uint64_t{1} << 40;
  if (h.pack != pack || h.offset != offset || h.body_length > kMaxBody ||
      h.log_offset > h.body_length || h.flushed_mark > offset || h.first_seq > kMaxSeq)
    return std::nullopt;
  return h;
}

std::array<std::byte, kBatchTrailerSize> MakeTrailer(ByteSpan encoded_header,
                                                     uint64_t total_length) {
  std::array<std::byte, kBatchTrailerSize> out{};
  Put(out.data(), AsBytes(kTrailerMagic));
  StoreU64(&out[8], total_length);
  Put(&out[16], Sha256::Of(encoded_header).span());
  return out;
}

bool TrailerMatches(ByteSpan trailer, ByteSpan encoded_header, uint64_t total_length) {
  auto expected = MakeTrailer(encoded_header, total_length);
  return trailer.size() >= expected.size() &&
         std::memcmp(trailer.data(), expected.data(), expected.size()) == 0;
}

std::optional<TrailerSays> ReadTrailer(ByteSpan bytes) {
  if (bytes.size() != kBatchTrailerSize || !StartsWith(bytes, kTrailerMagic))
    return std::nullopt;
  TrailerSays says{.total_length = LoadU64(&bytes[8])};
  std::memcpy(says.mark.data(), &bytes[16], says.mark.size());
  return says;
}

namespace {
uint32_t RecordCheck(ByteSpan header) {
  Sha256 hasher;
  hasher.Update(header.first(4));
  hasher.Update(header.subspan(8, 40));
  return LoadU32(hasher.Finish().bytes.data());
}
}  // namespace

std::array<std::byte, kRecordHeaderSize> Encode(const RecordHeader& h) {
  std::array<std::byte, kRecordHeaderSize> out{};
  out[0] = static_cast<std::byte>(h.type);
  out[1] = static_cast<std::byte>(h.codec);
  out[2] = static_cast<std::byte>(h.chain);
  StoreU32(&out[8], h.stored_length);
  StoreU32(&out[12], h.raw_length);
  Put(&out[16], h.id.span());
  StoreU32(&out[4], RecordCheck(out));
  return out;
}

std::optional<RecordHeader> DecodeRecordHeader(ByteSpan bytes) {
  if (bytes.size() < kRecordHeaderSize || bytes[3] != std::byte{} ||
      LoadU32(&bytes[4]) != RecordCheck(bytes))
    return std::nullopt;
  RecordHeader h;
  h.type = static_cast<ObjectType>(bytes[0]);
  h.codec = static_cast<CodecId>(bytes[1]);
  h.chain = static_cast<uint8_t>(bytes[2]);
  h.stored_length = LoadU32(&bytes[8]);
  h.raw_length = LoadU32(&bytes[12]);
  h.id = Hash256::FromSpan(bytes.subspan(16, 32));
  if (h.chain > kMaxDeltaChain || (h.chain != 0) != (h.codec == CodecId::kDelta))
    return std::nullopt;
  if (h.raw_length > kMaxObject) return std::nullopt;
  if (h.type == ObjectType::kBlob && h.raw_length > kMaxBlob) return std::nullopt;
  return h;
}

Bytes EncodeDeltaBase(uint64_t offset) {
  Bytes out;
  ByteWriter(out).Varint(offset);
  return out;
}

std::optional<DeltaBase> DecodeDeltaBase(ByteSpan stored) {
  ByteReader in(stored.first(std::min(stored.size(), kMaxDeltaBase)));
  DeltaBase base;
  base.offset = in.Varint();
  if (in.failed() || base.offset < kPackHeaderSize) return std::nullopt;
  base.length = in.pos();
  return base;
}

std::array<std::byte, kTailSize> Encode(const Tail& t) {
  std::array<std::byte, kTailSize> out{};
  Put(out.data(), AsBytes(kTailMagic));
  Put(&out[8], t.pack.span());
  StoreU64(&out[24], t.flushed);
  StoreU64(&out[32], t.next_seq);
  Put(&out[40], t.last);
  StoreU64(&out[56], Check64(ByteSpan(out).first(56)));
  return out;
}

std::optional<Tail> DecodeTail(ByteSpan bytes) {
  if (bytes.size() != kTailSize || !StartsWith(bytes, kTailMagic) ||
      !CheckedAt(bytes, 56))
    return std::nullopt;
  Tail t;
  t.pack = PackId(Id128::FromSpan(bytes.subspan(8, 16)));
  t.flushed = LoadU64(&bytes[24]);
  t.next_seq = LoadU64(&bytes[32]);
  if (t.next_seq > kMaxSeq) return std::nullopt;
  std::memcpy(t.last.data(), &bytes[40], t.last.size());
  return t;
}

const Manifest::Pack* Manifest::Find(const PackId& id) const {
  for (const Pack& p : packs)
    if (p.id == id) return &p;
  return nullptr;
}

namespace {
constexpr std::string_view kCut = " cut";
}

Bytes EncodeManifest(const Manifest& m) {
  std::string text = "belay store " + std::to_string(kFormatVersion) + "\n";
  text += "store " + m.store.text() + "\n";
  text += "generation " + std::to_string(m.generation) + "\n";
  text += "next_seq " + std::to_string(m.next_seq) + "\n";
  for (const Manifest::Pack& p : m.packs)
    text += "pack " + p.id.text() + " " +
            (p.sealed ? std::to_string(*p.sealed) : std::string("open")) +
            (p.cut ? " cut\n" : "\n");
  text += "check " + Sha256::Of(AsBytes(text)).hex() + "\n";
  return ToBytes(text);
}

namespace {
// Takes one line "key value" off `rest`; false when it is not there.
bool TakeLine(std::string_view& rest, std::string_view key, std::string_view& value) {
  size_t end = rest.find('\n');
  if (end == std::string_view::npos || !rest.starts_with(key) || end < key.size())
    return false;
  value = rest.substr(key.size(), end - key.size());
  rest.remove_prefix(end + 1);
  return true;
}
bool ParseNumber(std::string_view text, uint64_t& value) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}
}  // namespace

Result<Manifest> DecodeManifest(ByteSpan bytes) {
  auto bad = [](std::string_view why) {
    return Error(Errc::kCorrupt, "manifest: " + std::string(why));
  };
  std::string_view rest = AsText(bytes);
  std::string_view value;
  uint64_t version = 0;
  if (!TakeLine(rest, "belay store ", value) || !ParseNumber(value, version))
    return bad("not a Belay manifest");
  // The check line is the last and has a fixed length, in every version: so a flipped
  // bit in the number is damage, and not a newer Belay that nobody can get.
  constexpr size_t kCheckLine = 6 + 64 + 1;
  if (bytes.size() < kCheckLine) return bad("cut short");
  std::string_view check = AsText(bytes.last(kCheckLine));
  if (!check.starts_with("check ") || check.back() != '\n' ||
      check.substr(6, 64) != Sha256::Of(bytes.first(bytes.size() - kCheckLine)).hex())
    return bad("check does not match");
  if (version > kFormatVersion)
    return Error(Errc::kUnsupported, "the store was written by a newer Belay (format " +
                                         std::to_string(version) +
                                         ", this program reads " +
                                         std::to_string(kFormatVersion) + ")")
        .WithHint("update belay; nothing was changed");

  Manifest m;
  rest.remove_suffix(kCheckLine);
  if (!TakeLine(rest, "store ", value)) return bad("no store id");
  auto store = Id128::FromText(value);
  if (!store) return bad("no store id");
  m.store = StoreId(*store);
  if (!TakeLine(rest, "generation ", value) || !ParseNumber(value, m.generation))
    return bad("no generation");
  if (!TakeLine(rest, "next_seq ", value) || !ParseNumber(value, m.next_seq) ||
      m.next_seq > kMaxSeq)
    return bad("no next_seq");
  while (!rest.empty()) {
    if (!TakeLine(rest, "pack ", value)) return bad("an unknown line");
    if (!m.packs.empty() && !m.packs.back().sealed) return bad("two open packs");
    size_t space = value.find(' ');
    if (space == std::string_view::npos) return bad("a bad pack line");
    auto id = Id128::FromText(value.substr(0, space));
    value.remove_prefix(space + 1);
    uint64_t length = 0;
    bool open = value == "open";
    const bool cut = value.ends_with(kCut);
    if (cut) value.remove_suffix(kCut.size());
    if (!id || (!open && !ParseNumber(value, length))) return bad("a bad pack line");
    if (m.Find(PackId(*id))) return bad("a pack named twice");
    m.packs.push_back({PackId(*id), open ? std::nullopt : std::optional(length), cut});
  }
  return m;
}

}  // namespace belay
