#include "core/last_failure.h"

#include <algorithm>

#include "base/sha256.h"
#include "scan/stat_cache.h"

namespace belay {

namespace {

constexpr std::string_view kMagic = "BELAYFL1";
constexpr size_t kMaxFile = size_t{1} << 16, kMaxText = 4000;

Name FileName(const RootId& root) { return Name::Literal(root.text() + ".failed"); }

}  // namespace

void RememberFailure(Store& store, const RootId& root, const LastFailure& failure) {
  Bytes bytes;
  ByteWriter out(bytes);
  out.Raw(kMagic);
  out.U64(static_cast<uint64_t>(failure.at_ms));
  out.Raw(failure.after.bytes);
  out.Sized(std::string_view(failure.what).substr(0, kMaxText));
  out.U64(Check64(bytes));
  Fs& fs = store.fs();
  auto dir = fs.Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return;
  OpenMode mode = OpenMode::OpenOrCreate();
  mode.truncate = true;
  auto file = fs.Open(*dir, FileName(root), mode);
  // One that is torn does not count.
  if (file.ok()) (void)WriteFull(fs, *file, 0, bytes);
}

std::optional<LastFailure> ReadFailure(Store& store, const RootId& root) {
  Fs& fs = store.fs();
  auto dir = fs.Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return std::nullopt;
  auto bytes = ReadSmallFile(fs, *dir, FileName(root), kMaxFile);
  if (!bytes.ok() || bytes->size() < kMagic.size() + 8) return std::nullopt;
  const ByteSpan body = ByteSpan(*bytes).first(bytes->size() - 8);
  if (LoadU64(bytes->data() + body.size()) != Check64(body)) return std::nullopt;
  ByteReader in(body);
  LastFailure failure;
  if (AsText(in.Raw(kMagic.size())) != kMagic) return std::nullopt;
  failure.at_ms = static_cast<int64_t>(in.U64());
  const ByteSpan after = in.Raw(failure.after.bytes.size());
  failure.what = AsText(in.Sized());
  if (!in.done()) return std::nullopt;
  std::copy(after.begin(), after.end(), failure.after.bytes.begin());
  return failure;
}

void ForgetFailure(Store& store, const RootId& root) {
  auto dir = store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (dir.ok()) (void)store.fs().Unlink(*dir, FileName(root));
}

}  // namespace belay
