#include "core/last_failure.h"

#include <algorithm>

#include "base/mutant.h"
#include "base/sha256.h"
#include "core/operations.h"
#include "scan/stat_cache.h"

namespace belay {

namespace {

constexpr std::string_view kFailureMagic = "BELAYFL1";
constexpr size_t kMaxFailureFile = size_t{1} << 16, kMaxText = 4000;
constexpr uint64_t kLookedAt = 1000;

Name FileName(const RootId& root, FailureOf of) {
  return Name::Literal(root.text() + (of == FailureOf::kCheckpoint  ? ".failed"
                                      : of == FailureOf::kBeforeRun ? ".before"
                                      : of == FailureOf::kAnchor    ? ".anchor"
                                                                    : ".mixed"));
}

std::optional<LastFailure> Load(Store& store, const RootId& root, FailureOf of) {
  Fs& fs = store.fs();
  auto dir = fs.Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return std::nullopt;
  auto bytes = ReadSmallFile(fs, *dir, FileName(root, of), kMaxFailureFile);
  if (!bytes.ok() || bytes->size() < kFailureMagic.size() + 8) return std::nullopt;
  const ByteSpan body = ByteSpan(*bytes).first(bytes->size() - 8);
  if (LoadU64(bytes->data() + body.size()) != Check64(body)) return std::nullopt;
  ByteReader in(body);
  LastFailure failure;
  failure.of = of;
  if (AsText(in.Raw(kFailureMagic.size())) != kFailureMagic) return std::nullopt;
  failure.at_ms = static_cast<int64_t>(in.U64());
  const ByteSpan after = in.Raw(failure.after.bytes.size());
  failure.what = AsText(in.Sized());
  if (!in.done()) return std::nullopt;
  std::copy(after.begin(), after.end(), failure.after.bytes.begin());
  return failure;
}

// Whether a person has gone on since: by a checkpoint of their own, or by a rollback.
Result<bool> WentOn(Catalog& catalog, const RootId& root, const LastFailure& failure) {
  BELAY_TRY(auto newest, catalog.ListCheckpoints({.root = root, .limit = kLookedAt}));
  auto before = std::ranges::find(
      newest, failure.after, [](const CatalogEntry& e) { return e.checkpoint.id; });
  if (before == newest.end() && !failure.after.is_zero()) return true;  // long ago
  if (std::any_of(newest.begin(), before, [](const CatalogEntry& e) {
        return e.checkpoint.kind == CheckpointKind::kManual;
      }))
    return true;
  BELAY_TRY(auto operations, ListOperations(catalog, root));
  return !operations.empty() && operations.back().made_ms >= failure.at_ms;
}

}  // namespace

void RememberFailure(Store& store, const RootId& root, const LastFailure& failure) {
  Bytes bytes;
  ByteWriter out(bytes);
  out.Raw(kFailureMagic);
  out.U64(static_cast<uint64_t>(failure.at_ms));
  out.Raw(failure.after.bytes);
  out.Sized(std::string_view(failure.what).substr(0, kMaxText));
  out.U64(Check64(bytes));
  Fs& fs = store.fs();
  auto dir = fs.Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return;
  OpenMode mode = OpenMode::OpenOrCreate();
  mode.truncate = true;
  auto file = fs.Open(*dir, FileName(root, failure.of), mode);
  // One that is torn does not count.
  if (file.ok()) (void)WriteFull(fs, *file, 0, bytes);
}

Result<std::optional<LastFailure>> ReadFailure(Store& store, Catalog& catalog,
                                               const RootId& root, FailureOf of) {
  std::optional<LastFailure> failure = Load(store, root, of);
  if (!failure || of == FailureOf::kAnchor) return failure;
  BELAY_TRY(auto last, catalog.LastCheckpoint(root));
  const bool newest = failure->after == (last ? last->checkpoint.id : RecordId());
  if (newest) return failure;
  if (of == FailureOf::kCheckpoint || BELAY_MUTANT("mix-is-forgotten"))
    return std::optional<LastFailure>();
  BELAY_TRY(bool went_on, WentOn(catalog, root, *failure));
  return went_on ? std::optional<LastFailure>() : failure;
}

void ForgetFailure(Store& store, const RootId& root, FailureOf of) {
  auto dir = store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (dir.ok()) (void)store.fs().Unlink(*dir, FileName(root, of));
}

void ForgetFailures(Store& store, const RootId& root) {
  auto dir = store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return;
  for (FailureOf of : {FailureOf::kCheckpoint, FailureOf::kBeforeRun,
                       FailureOf::kRollback, FailureOf::kAnchor})
    (void)store.fs().Unlink(*dir, FileName(root, of));
}

}  // namespace belay
