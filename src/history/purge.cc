#include "history/purge.h"

#include <algorithm>
#include <cerrno>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/lineage.h"
#include "core/live.h"
#include "core/transcripts.h"
#include "history/purge_internal.h"
#include "history/purger_internal.h"
#include "restore/journal.h"
#include "store/gc.h"
#include "store/heads.h"

namespace belay {

namespace {

// Objects that one purge record names at most.
constexpr size_t kObjectsInRecord = 16'384;

// A record of a long file stays short: several of them name all its chunks.
std::vector<std::vector<KeptChunks>> InRecords(const std::vector<KeptChunks>& kept) {
  std::vector<std::vector<KeptChunks>> records;
  size_t room = 0;
  for (const KeptChunks& one : kept)
    for (size_t at = 0; at < one.chunks.size();) {
      if (room == 0) {
        records.emplace_back();
        room = kObjectsInRecord;
      }
      const size_t count = std::min(room, one.chunks.size() - at);
      const auto from = one.chunks.begin() + static_cast<ptrdiff_t>(at);
      records.back().push_back(
          {one.content, {from, from + static_cast<ptrdiff_t>(count)}});
      at += count;
      room -= count;
    }
  return records;
}

Status RefuseInterrupted(Store& store, const RootId& root) {
  BELAY_TRY(bool interrupted, JournalFile::Exists(store, root));
  if (!interrupted) return Ok();
  return Error(Errc::kRefused, "a rollback of this directory was interrupted")
      .WithHint("finish it first: belay status; nothing was purged");
}

Status ForgetWithSubagents(Store& store, const std::string& session,
                           int64_t lock_wait_ms) {
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(const auto sessions, WithSubagents(*catalog, session));
  for (const std::string& one : sessions)
    BELAY_OK(ForgetSession(store, one, lock_wait_ms));
  return Ok();
}

bool IsShown(const PurgePlan& shown, const SharedContent& shared) {
  return std::ranges::find(shown.shared, shared) != shown.shared.end();
}

}  // namespace

bool IsPurgeOperation(const LogRecord& record) {
  return record.kind == RecordKind::kOperation &&
         record.fields.Text(kPurgeOperationName) == kPurgeName;
}

std::set<RootId> Purger::OtherRoots() const {
  std::set<RootId> others;
  if (request_.everywhere)
    for (const SharedContent& shared : plan_.shared) others.insert(shared.root_id);
  for (const SharedContent& shared : plan_.purged_before) others.insert(shared.root_id);
  for (const LogRecord& record : log_.records)
    if (!record.root.is_zero() && dropped_.contains(record.id))
      others.insert(record.root);
  others.erase(request_.root.id);
  return others;
}

Status Purger::Publish(std::vector<std::string>& left_out) {
  const int64_t now = store_.clock().WallMillis();
  auto new_id = [&] { return RecordId(store_.random().NewId()); };
  BELAY_TRY(auto writer, store_.Begin());
  for (size_t at = 0; at < plan_.objects.size(); at += kObjectsInRecord) {
    const size_t end = std::min(at + kObjectsInRecord, plan_.objects.size());
    writer->Add(MakePurge(new_id(), now,
                          {plan_.objects.begin() + static_cast<ptrdiff_t>(at),
                           plan_.objects.begin() + static_cast<ptrdiff_t>(end)},
                          request_.session ? "session" : "path", /*erased=*/true));
  }
  for (const std::vector<KeptChunks>& kept : InRecords(plan_.kept_chunks))
    writer->Add(MakePurge(new_id(), now, {}, "path", /*erased=*/true, kept));
  if (!plan_.records.empty()) writer->Add(MakeDrop(new_id(), now, plan_.records));
  for (LogRecord& heir : HeirsToldAnew()) writer->Add(std::move(heir));
  for (const LogRecord& record : log_.records) {
    auto text = retitled_.find(record.id);
    if (text == retitled_.end()) continue;
    LogRecord annotation;
    annotation.kind = RecordKind::kAnnotation;
    annotation.id = new_id();
    annotation.root = record.root;
    annotation.made_ms = now;
    annotation.fields.Add(kAnnotationTarget, record.id.span());
    annotation.fields.Add(kAnnotationDescription, text->second);
    writer->Add(std::move(annotation));
  }
  for (auto& [root, paths] : ToLeaveOut()) {
    Root next = roots_.at(root).root;
    bool more = false;
    for (const std::string& path : paths) {
      if (std::ranges::find(next.purged, path) != next.purged.end()) continue;
      next.purged.push_back(path);
      more = true;
    }
    std::ranges::sort(next.purged);
    for (const std::string& path : paths)
      left_out.push_back(path.starts_with('/') ? path : next.path + "/" + path);
    if (more) writer->Add(ToRecord(next, new_id(), now));
  }
  std::ranges::sort(left_out);
  // Also when all of it stays, because of another path: the purge of that one then
  // knows that this one is no reason.
  const bool log = !plan_.empty() || !plan_.shared.empty();
  if (log) AddToTheLog(*writer, now);
  if (!log && left_out.empty()) return Ok();
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit([&] {
    return BELAY_MUTANT("purge-trusts-its-look") ? Ok() : StillTrue();
  }));
  return Ok();
}

void Purger::AddToTheLog(BatchWriter& writer, int64_t now) {
  auto record = [&](const RootId& root, std::string_view label, uint64_t count,
                    const std::optional<std::string>& path) {
    LogRecord operation;
    operation.kind = RecordKind::kOperation;
    operation.id = RecordId(store_.random().NewId());
    operation.root = root;
    operation.made_ms = now;
    operation.fields.Add(kPurgeOperationName, kPurgeName);
    operation.fields.Add(kPurgeOperationLabel, label);
    operation.fields.AddNumber(kPurgeOperationCount, count);
    if (path) operation.fields.Add(kPurgeOperationPath, *path);
    writer.Add(std::move(operation));
  };
  if (request_.path) {
    record(request_.root.id, *request_.path, plan_.checkpoints, request_.path);
    return;
  }
  std::map<RootId, uint64_t> counts;
  for (const LogRecord& r : log_.records)
    if (!r.root.is_zero() && dropped_.contains(r.id))
      counts[r.root] += r.kind == RecordKind::kCheckpoint ? 1 : 0;
  for (const auto& [root, count] : counts) record(root, kSessionLabel, count, {});
}

Status Purger::StillTrue() {
  std::unordered_set<RecordId> known;
  for (const LogRecord& record : log_.records) known.insert(record.id);
  const size_t before = log_.records.size();
  BELAY_OK(ReadOn(store_, log_));
  if (log_.records.size() == before) return Ok();
  for (const LogRecord& record : log_.records) {
    if (known.contains(record.id) || !log_.Holds(record)) continue;
    // What we keep because of a path is kept no longer when that is purged.
    if (IsPurgeOperation(record)) return Changed();
    if (record.refs.empty()) continue;
    if (request_.session) return Changed();
    BELAY_TRY(bool same, survey_->LookAtOther(record));
    if (!same) return Changed();
  }
  return Ok();
}

Error Purger::Changed() {
  return Error(Errc::kConflict, "others have stored the same content meanwhile")
      .WithHint("nothing was erased; try again");
}

Result<PurgePlan> PlanPurge(Store& store, const PurgeRequest& request) {
  BELAY_TRY(HeldLock use, store.HoldForReading());
  Purger purger(store, request);
  BELAY_OK(purger.Look());
  return purger.TakePlan();
}

Result<PurgeReport> Purge(Store& store, const PurgeRequest& request) {
  PurgeReport report;
  if (request.session) RemoveWrittenTranscripts(store);
  {
    // What would keep the packs from being written anew is said before anything is
    // published.
    GcOptions options;
    options.dry_run = true;
    auto possible = CollectGarbage(store, options);
    if (!possible.ok() && possible.error().code != Errc::kBusy) {
      Error error = std::move(possible).error();
      if (error.code == Errc::kCorrupt)
        error.hint = "nothing was purged; run: belay repair";
      else if (error.sys == EROFS)
        error.what = "the disk of the store " + store.path().bytes() +
                     " is read-only, so nothing can be erased";
      return error;
    }
  }
  // What goes on is known anew from the log: nothing is lost if this is all that is
  // done.
  if (request.session)
    BELAY_OK(ForgetWithSubagents(store, *request.session, request.lock_wait_ms));
  {
    // 1. Alone on the root: no checkpoint or rollback of it is under way, and the next
    //    one knows what is left out.
    HeldLock alone;
    if (!request.session) {
      BELAY_TRY(alone,
                store.locks().AcquireRoot(request.root.id, request.lock_wait_ms));
      BELAY_OK(RefuseInterrupted(store, request.root.id));
    }
    const int64_t deadline =
        store.clock().SteadyNanos() + request.lock_wait_ms * 1'000'000;
    for (;;) {
      Purger purger(store, request);
      {
        BELAY_TRY(HeldLock use, store.HoldForReading());
        BELAY_OK(purger.Look());
      }
      if (request.shown && request.everywhere)
        for (const SharedContent& shared : purger.plan().shared)
          if (!IsShown(*request.shown, shared))
            return Error(Errc::kConflict, "by now " + EscapeForDisplay(shared.also) +
                                              " in " + EscapeForDisplay(shared.root) +
                                              " has the same content too")
                .WithHint("nothing was erased; look again with --dry-run");
      // 2. The same for others, without waiting: nobody waits for a second one.
      std::vector<HeldLock> held;
      bool busy = false;
      for (const RootId& root : purger.OtherRoots()) {
        auto lock = store.locks().AcquireRoot(root, 0);
        busy = !lock.ok() && lock.error().code == Errc::kBusy &&
               store.clock().SteadyNanos() < deadline;
        if (busy) break;
        if (!lock.ok()) return std::move(lock).error();
        held.push_back(std::move(*lock));
        BELAY_OK(RefuseInterrupted(store, root));
      }
      if (busy) {
        held.clear();
        store.clock().SleepNanos(20'000'000);
        continue;
      }
      // 3. One batch: from here on nobody brings it back, and it is finished by
      //    whoever comes next.
      report.left_out.clear();
      Status published = purger.Publish(report.left_out);
      if (published.ok()) {
        report.plan = purger.TakePlan();
        break;
      }
      if (published.error().code != Errc::kConflict ||
          store.clock().SteadyNanos() >= deadline)
        return std::move(published).error();
    }
  }
  // 4. Beside everybody else.
  BELAY_OK(Erase(store, request, report));
  return report;
}

Status AllowAgain(Store& store, const Root& root, const std::string& path,
                  int64_t lock_wait_ms) {
  BELAY_TRY(HeldLock alone, store.locks().AcquireRoot(root.id, lock_wait_ms));
  BELAY_TRY(Heads heads, Heads::Read(store));
  Root next = root;
  for (const RootEntry& entry : heads.roots())
    if (entry.root.path == root.path) next = entry.root;
  if (std::erase(next.purged, path) == 0)
    return Error(Errc::kNotFound,
                 EscapeForDisplay(path) + " is not left out by a purge")
        .WithHint("why it is covered or not: belay why PATH");
  BELAY_TRY(auto writer, store.Begin());
  writer->Add(
      ToRecord(next, RecordId(store.random().NewId()), store.clock().WallMillis()));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return Ok();
}

}  // namespace belay
