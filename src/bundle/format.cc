#include "bundle/format.h"

#include <algorithm>

#include "base/sha256.h"

namespace belay {

namespace {

constexpr std::string_view kMagic = "BELAYBN\n", kEndMagic = "BELAYBE\n";

template <size_t N>
std::array<std::byte, N> ToArray(const Bytes& bytes) {
  BELAY_CHECK(bytes.size() == N);
  std::array<std::byte, N> out;
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

}  // namespace

std::array<std::byte, kBundleHeaderSize> EncodeBundleHeader() {
  Bytes out;
  ByteWriter w(out);
  w.Raw(kMagic);
  w.U32(kBundleVersion);
  w.U32(0);
  w.Zeros(40);
  w.U64(Check64(out));
  return ToArray<kBundleHeaderSize>(out);
}

Status CheckBundleHeader(ByteSpan bytes) {
  if (bytes.size() < kMagic.size() || AsText(bytes.first(kMagic.size())) != kMagic)
    return Error(Errc::kInvalid, "this is no bundle of checkpoints")
        .WithHint("belay export REF -o FILE writes one");
  if (bytes.size() < kBundleHeaderSize)
    return Error(Errc::kCorrupt, "the bundle ends early");
  if (LoadU64(bytes.data() + 56) != Check64(bytes.first(56)))
    return Error(Errc::kCorrupt, "the bundle's header is damaged");
  const uint32_t version = LoadU32(bytes.data() + 8);
  if (version > kBundleVersion)
    return Error(Errc::kUnsupported,
                 "the bundle was written by a newer Belay (format " +
                     std::to_string(version) + ")");
  const auto ours = EncodeBundleHeader();
  if (!std::equal(ours.begin(), ours.end(), bytes.begin()))
    return Error(Errc::kCorrupt, "the bundle's header makes no sense");
  return Ok();
}

std::array<std::byte, kBundleTrailerSize> Encode(const BundleTrailer& trailer) {
  Bytes out;
  ByteWriter w(out);
  w.Raw(kEndMagic);
  w.U64(trailer.objects);
  w.U64(trailer.checkpoints);
  w.U64(trailer.raw_bytes);
  w.U64(trailer.length);
  w.Raw(trailer.hash.span());
  w.U64(Check64(out));
  return ToArray<kBundleTrailerSize>(out);
}

std::optional<BundleTrailer> DecodeBundleTrailer(ByteSpan bytes) {
  if (bytes.size() != kBundleTrailerSize ||
      AsText(bytes.first(kEndMagic.size())) != kEndMagic ||
      LoadU64(bytes.data() + 72) != Check64(bytes.first(72)))
    return std::nullopt;
  BundleTrailer trailer;
  trailer.objects = LoadU64(bytes.data() + 8);
  trailer.checkpoints = LoadU64(bytes.data() + 16);
  trailer.raw_bytes = LoadU64(bytes.data() + 24);
  trailer.length = LoadU64(bytes.data() + 32);
  trailer.hash = Hash256::FromSpan(bytes.subspan(kBundleHashAt, 32));
  return trailer;
}

uint64_t MaxInBundle(ObjectType type) {
  switch (type) {
    case ObjectType::kBlob:
      return kMaxBlob;
    case ObjectType::kChunks:
      return uint64_t{64} << 20;
    case ObjectType::kTree:
      return uint64_t{96} << 20;
    case ObjectType::kState:
      return 97;
    case ObjectType::kNode:
      return uint64_t{8} << 20;
    case ObjectType::kLog:
      return uint64_t{4} << 20;
  }
  return 0;
}

std::string OriginStore(const StoreId& store) {
  Sha256 hash;
  hash.Update(AsBytes("belay origin"));
  hash.Update(store.span());
  return Id128::FromSpan(hash.Finish().span().first(16)).text();
}

std::string OriginState(const StoreId& store, const ObjectId& state) {
  Sha256 hash;
  hash.Update(AsBytes("belay origin state"));
  hash.Update(store.span());
  hash.Update(state.span());
  return hash.Finish().hex();
}

RecordId ImportedId(const RecordId& id, const RootId& root, uint32_t n) {
  Bytes number;
  ByteWriter(number).U32(n);
  Sha256 hash;
  hash.Update(AsBytes("belay import"));
  hash.Update(id.span());
  hash.Update(root.span());
  hash.Update(number);
  return RecordId(Id128::FromSpan(hash.Finish().span().first(16)));
}

}  // namespace belay
