// Every answer comes from a database that holds all that was published: the file,
// brought up to date, or where that is in the way one in memory.

#include "base/mutant.h"
#include "store/catalog_impl_internal.h"

namespace belay {

namespace {

// The file is at fault, not the question: ask without it.
bool IsTrouble(Errc code) {
  switch (code) {
    case Errc::kNoSpace:
    case Errc::kRefused:
    case Errc::kUnsupported:
    case Errc::kConflict:
    case Errc::kIo:
      return true;
    default:
      return false;
  }
}

}  // namespace

template <class Answer>
Result<Answer> Catalog::Impl::ReadFile(
    const std::function<Result<Answer>(CatalogDb&)>& ask) {
  asked = false;
  {
    BELAY_TRY(HeldLock lock,
              place.locks.Acquire(StoreLock::kCatalog, LockMode::kShared));
    BELAY_TRY(bool there, Connect());
    if (there) {
      auto freshness = db->Compare(*log);
      if (freshness.ok() && *freshness == CatalogDb::Freshness::kCurrent) {
        auto answer = ask(*db);
        if (answer.ok() || answer.error().code != Errc::kCorrupt) {
          asked = true;
          return answer;
        }
        db.reset();  // asked again below, alone
      } else if (!freshness.ok()) {
        db.reset();
        if (freshness.error().code != Errc::kCorrupt)
          return std::move(freshness).error();
      }
    }
  }
  BELAY_TRY(HeldLock lock,
            place.locks.Acquire(StoreLock::kCatalog, LockMode::kExclusive));
  BELAY_OK(Update());
  auto answer = ask(*db);
  // Only the question came upon the damage: the pages that say how far the file goes
  // are whole. Once; what a new file says is the answer.
  if (!answer.ok() && answer.error().code == Errc::kCorrupt &&
      !BELAY_MUTANT("catalogue-stays-damaged")) {
    BELAY_OK(BuildNew());
    answer = ask(*db);
  }
  asked = true;
  return answer;
}

template <class Answer>
Result<Answer> Catalog::Impl::ReadMemory(
    const std::function<Result<Answer>(CatalogDb&)>& ask) {
  if (memory) {
    auto freshness = memory->Compare(*log);
    bool behind = freshness.ok() && *freshness == CatalogDb::Freshness::kBehind;
    bool current = freshness.ok() && *freshness == CatalogDb::Freshness::kCurrent;
    if (behind) current = memory->CatchUp(*log).ok();
    if (!current) memory.reset();
  }
  if (!memory) {
    BELAY_TRY(auto fresh, CatalogDb::InMemory());
    BELAY_OK(fresh->CatchUp(*log));
    memory = std::move(fresh);
  }
  return ask(*memory);
}

template <class Answer>
Result<Answer> Catalog::Impl::Read(
    const std::function<Result<Answer>(CatalogDb&)>& ask) {
  BELAY_TRY(HeldLock held, log->Hold());
  auto answer = ReadFile(ask);
  trouble.reset();
  const bool in_the_way = !answer.ok() && !asked && answer.error().code != Errc::kBusy;
  if (answer.ok() || !(in_the_way || IsTrouble(answer.error().code))) {
    memory.reset();
    return answer;
  }
  db.reset();
  trouble = answer.error();
  return ReadMemory(ask);
}

Result<std::vector<CatalogEntry>> Catalog::ListCheckpoints(
    const CheckpointFilter& filter) {
  return impl_->Read<std::vector<CatalogEntry>>(
      [&](CatalogDb& db) { return db.ListCheckpoints(filter); });
}

Result<std::optional<CatalogEntry>> Catalog::LastCheckpoint(const RootId& root) {
  CheckpointFilter filter;
  filter.root = root;
  filter.limit = 1;
  BELAY_TRY(auto found, ListCheckpoints(filter));
  if (found.empty()) return std::optional<CatalogEntry>();
  return std::optional(std::move(found[0]));
}

Result<std::vector<CheckpointRow>> Catalog::Outline(const RootId& root) {
  return impl_->Read<std::vector<CheckpointRow>>(
      [&](CatalogDb& db) { return db.Outline(root); });
}

Result<std::vector<CatalogEntry>> Catalog::Load(const std::vector<uint64_t>& seqs) {
  return impl_->Read<std::vector<CatalogEntry>>(
      [&](CatalogDb& db) { return db.LoadEntries(seqs); });
}

Result<uint64_t> Catalog::Count(const std::optional<RootId>& root) {
  return impl_->Read<uint64_t>([&](CatalogDb& db) { return db.Count(root); });
}

Result<uint64_t> Catalog::NumberOf(const RootId& root, uint64_t seq) {
  return impl_->Read<uint64_t>([&](CatalogDb& db) { return db.NumberOf(root, seq); });
}

Result<NamedCheckpoint> Catalog::FindByName(const std::optional<RootId>& root,
                                            std::string_view name) {
  return impl_->Read<NamedCheckpoint>(
      [&](CatalogDb& db) { return db.FindByName(root, name); });
}

Result<CatalogEntry> Catalog::FindById(const std::optional<RootId>& root,
                                       std::string_view id_or_prefix) {
  return impl_->Read<CatalogEntry>(
      [&](CatalogDb& db) { return db.FindById(root, id_or_prefix); });
}

Result<NamedCheckpoint> Catalog::Find(const std::optional<RootId>& root,
                                      std::string_view ref) {
  return impl_->Read<NamedCheckpoint>([&](CatalogDb& db) -> Result<NamedCheckpoint> {
    auto named = db.FindByName(root, ref);
    if (named.ok() || named.error().code != Errc::kNotFound) return named;
    BELAY_TRY(CatalogEntry entry, db.FindById(root, ref));
    return NamedCheckpoint{std::move(entry), 0};
  });
}

Result<std::vector<CatalogEntry>> Catalog::Search(
    const std::optional<RootId>& root, std::string_view words, size_t limit,
    const std::optional<std::string>& session) {
  return impl_->Read<std::vector<CatalogEntry>>(
      [&](CatalogDb& db) { return db.Search(root, words, limit, session); });
}

Result<std::vector<RootEntry>> Catalog::Roots() {
  return impl_->Read<std::vector<RootEntry>>([](CatalogDb& db) { return db.Roots(); });
}

Result<bool> Catalog::LogIsWhole() {
  auto ask = [](CatalogDb& db) { return db.LogIsWhole(); };
  BELAY_TRY(bool whole, impl_->Read<bool>(ask));
  if (whole || BELAY_MUTANT("doubt-for-ever")) return whole;
  // What could not be read then may be back: a pack that was away, a mode put right.
  {
    BELAY_TRY(HeldLock held, impl_->log->Hold());
    BELAY_TRY(LogPosition end,
              impl_->log->Read(std::nullopt, [](const LogRecord&) { return Ok(); }));
    if (!end.whole) return false;
  }
  if (!Rebuild().ok()) return false;
  return impl_->Read<bool>(ask);
}

Result<std::optional<RootEntry>> Catalog::InnermostRoot(const AbsPath& path) {
  BELAY_TRY(auto roots, Roots());
  std::optional<RootEntry> best;
  for (RootEntry& entry : roots) {
    auto at = AbsPath::Parse(entry.root.path);
    if (!at.ok() || !path.IsWithin(*at)) continue;
    // Roots that hold one path are prefixes of it: the longest is the deepest.
    if (!best || entry.root.path.size() > best->root.path.size() ||
        (entry.root.path == best->root.path && entry.seq > best->seq))
      best = std::move(entry);
  }
  return best;
}

Result<std::vector<LogRecord>> Catalog::ListRecords(const RecordFilter& filter) {
  return impl_->Read<std::vector<LogRecord>>(
      [&](CatalogDb& db) { return db.ListRecords(filter); });
}

Result<std::vector<LogRecord>> Catalog::Annotations(const RecordId& target) {
  return impl_->Read<std::vector<LogRecord>>(
      [&](CatalogDb& db) { return db.Annotations(target); });
}

}  // namespace belay
