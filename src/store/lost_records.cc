#include "store/lost_records.h"

#include <algorithm>
#include <set>

#include "base/escape.h"
#include "base/mutant.h"
#include "store/batch_writer.h"

namespace belay {

namespace {
// What the record says, whatever its number.
Hash256 ContentOf(LogRecord record) {
  record.seq = 0;
  return Sha256::Of(EncodeLogRecord(record));
}
}  // namespace

std::vector<LogRecord> LostRecords(Store& store, const LogView& log,
                                   const std::vector<RememberedRecord>& remembered) {
  if (log.whole && !BELAY_MUTANT("catalogue-is-the-truth")) return {};
  return LackingRecords(log, remembered, [&store](const ObjectKey& key) {
    auto object = store.Get(key);
    return object.ok() || (object.error().code != Errc::kNotFound &&
                           object.error().code != Errc::kPurged);
  });
}

std::vector<LogRecord> LackingRecords(
    const LogView& log, const std::vector<RememberedRecord>& remembered,
    const std::function<bool(const ObjectKey&)>& is_there) {
  std::vector<LogRecord> lost;
  std::unordered_set<Hash256> there;
  for (const LogRecord& r : log.records) there.insert(ContentOf(r));
  // By number and id: of a checkpoint that was annotated a collection keeps less text.
  std::set<std::pair<uint64_t, RecordId>> numbered;
  for (const LogRecord& r : log.records) numbered.emplace(r.seq, r.id);
  // Drops and annotations that were lost too still take away what they name or replace.
  LogView all = log;
  for (const RememberedRecord& r : remembered) {
    for (const RecordId& id : DroppedBy(r.record)) all.dropped.insert(id);
    all.records.push_back(r.record);
  }
  all.NoteAnnotations();
  for (const auto& [record, sure] : remembered) {
    if (!all.IsWanted(record) || numbered.contains({record.seq, record.id})) continue;
    if (!there.insert(ContentOf(record)).second) continue;
    // A collection may have taken it away: then what it needs is not there either.
    if (!sure && !record.refs.empty() && !is_there(record.refs[0])) continue;
    lost.push_back(record);
  }
  std::sort(lost.begin(), lost.end(),
            [](const LogRecord& a, const LogRecord& b) { return a.seq < b.seq; });
  return lost;
}

Status BringBack(Store& store, const std::vector<LogRecord>& lost,
                 const std::function<Status(BatchWriter&)>& before) {
  if (lost.empty()) return Ok();
  std::unordered_set<uint64_t> taken;
  uint64_t highest = 0;
  {
    BELAY_TRY(HeldLock use, store.HoldForReading());
    LogView log;
    BELAY_OK(ReadOn(store, log));
    for (const LogRecord& r : log.records) taken.insert(r.seq);
  }
  for (const LogRecord& r : lost) highest = std::max(highest, r.seq);
  {
    // Nobody may be given a number again that one of these has.
    BELAY_TRY(HeldLock append,
              store.locks().Acquire(StoreLock::kAppend, LockMode::kExclusive));
    BELAY_TRY(Manifest manifest, store.LoadManifest());
    if (manifest.next_seq <= highest) {
      manifest.next_seq = highest + 1;
      BELAY_OK(store.WriteManifest(manifest));
    }
  }
  BELAY_TRY(auto writer, store.Begin());
  if (before) BELAY_OK(before(*writer));
  for (LogRecord record : lost) {
    if (!taken.insert(record.seq).second) record.seq = 0;
    writer->Add(std::move(record));
  }
  BELAY_TRY(auto published, writer->Commit());
  (void)published;
  return Ok();
}

namespace {
// What a root or a session is comes from the latest record about it: an older one with
// a new number would take that back. What takes others away stays what it is, too.
bool IsSaidLater(const LogView& log, const LogRecord& record) {
  const auto subject = [](const LogRecord& r) -> std::optional<std::string> {
    if (auto root = ToRoot(r); root.ok()) return root->id.text();
    auto session = ToSession(r);
    return session.ok() ? std::optional(session->session) : std::nullopt;
  };
  switch (record.kind) {
    case RecordKind::kDrop:
    case RecordKind::kPurge:
    case RecordKind::kRelease:
      return true;
    case RecordKind::kRoot:
    case RecordKind::kSession:
      return std::ranges::any_of(log.records, [&](const LogRecord& r) {
        return r.kind == record.kind && r.seq >= record.seq && r != record &&
               subject(r) == subject(record);
      });
    default:
      return false;
  }
}

// Of a conversation the copy with the highest number is the latest: one that came after
// a hidden one has to come after it again.
std::vector<LogRecord> LaterCopies(const LogView& log,
                                   const std::vector<LogRecord>& hidden) {
  std::map<std::pair<std::string, std::string>, uint64_t> shown_anew;
  for (const LogRecord& record : hidden)
    if (auto copy = ToTranscript(record); copy.ok())
      shown_anew[{copy->session, copy->path}] = record.seq;
  std::map<std::pair<std::string, std::string>, LogRecord> latest;
  if (shown_anew.empty() || BELAY_MUTANT("an-older-copy-is-the-latest")) return {};
  for (const LogRecord& record : log.records) {  // by number
    auto copy = ToTranscript(record);
    if (!copy.ok() || !log.IsWanted(record)) continue;
    const auto at = shown_anew.find({copy->session, copy->path});
    if (at != shown_anew.end() && record.seq > at->second) latest[at->first] = record;
  }
  std::vector<LogRecord> out;
  for (auto& [what, record] : latest) out.push_back(std::move(record));
  return out;
}
}  // namespace

std::vector<LogRecord> HiddenRecords(const LogView& log) {
  std::vector<LogRecord> hidden;
  std::vector<const LogRecord*> shown;
  for (auto at = log.records.begin(); at != log.records.end();) {
    // As CatalogDb::Apply() has it.
    const LogRecord* first = &*at;
    auto end = std::next(at);
    for (; end != log.records.end() && end->seq == at->seq; ++end)
      if (std::ranges::lexicographical_compare(EncodeLogRecord(*first),
                                               EncodeLogRecord(*end)))
        first = &*end;
    for (; at != end; ++at)
      if (&*at != first && log.IsWanted(*at)) hidden.push_back(log.Kept(*at));
    shown.push_back(first);
  }
  if (hidden.empty() || BELAY_MUTANT("records-hide-each-other")) return {};
  std::unordered_set<Hash256> said;
  for (const LogRecord* record : shown) said.insert(ContentOf(log.Kept(*record)));
  std::erase_if(hidden, [&](const LogRecord& record) {
    return IsSaidLater(log, record) || !said.insert(ContentOf(record)).second;
  });
  return hidden;
}

Status ShowHidden(Store& store, std::vector<std::string>& done) {
  LogView log;
  {
    BELAY_TRY(HeldLock use, store.HoldForReading());
    BELAY_OK(ReadOn(store, log));
  }
  const std::vector<LogRecord> hidden = HiddenRecords(log);
  std::vector<LogRecord> anew = hidden;
  for (LogRecord& copy : LaterCopies(log, hidden)) anew.push_back(std::move(copy));
  BELAY_OK(BringBack(store, anew));
  for (const LogRecord& record : hidden)
    done.push_back("gave a number of its own to " + RecordTitle(record) +
                   ", which was in no list");
  return Ok();
}

std::map<RootId, uint64_t> RootsWithoutRecord(const LogView& log) {
  std::map<RootId, uint64_t> without;
  std::set<RootId> with;
  for (const LogRecord& r : log.records) {
    if (auto root = ToRoot(r); root.ok() && log.IsWanted(r)) with.insert(root->id);
    if (r.kind == RecordKind::kCheckpoint && !r.root.is_zero() && log.IsWanted(r))
      ++without[r.root];
  }
  for (const RootId& id : with) without.erase(id);
  return without;
}

Status BringBackRoots(Store& store, const std::vector<Root>& known,
                      std::vector<std::string>& done) {
  BELAY_TRY(auto writer, store.Begin());
  LogView log;
  BELAY_OK(ReadOn(store, log));
  std::vector<std::string> lines;
  for (const auto& [id, checkpoints] : RootsWithoutRecord(log)) {
    const auto at = std::ranges::find(known, id, &Root::id);
    Root root = at != known.end() ? *at : Root{id, "/belay-lost-root/" + id.text()};
    const std::string path = EscapeForDisplay(root.path);
    writer->Add(ToRecord(root, RecordId(id), store.clock().WallMillis()));
    lines.push_back(
        at != known.end()
            ? "brought back the record of the root " + path
            : "the record of a root with " + Counted(checkpoints, "checkpoint") +
                  " is lost, and where it was: they are listed under " + path +
                  "; to go on with them where the directory is: belay on "
                  "DIR --moved-from " +
                  path);
  }
  if (lines.empty()) return Ok();
  BELAY_TRY(auto published, writer->Commit());
  (void)published;
  done.insert(done.end(), lines.begin(), lines.end());
  return Ok();
}

std::string RecordTitle(const LogRecord& record) {
  if (auto c = ToCheckpoint(record); c.ok()) {
    std::string id = c->id.text().substr(0, 7);
    return "checkpoint " +
           (c->name ? "'" + EscapeText(*c->name) + "' (" + id + ")" : id);
  }
  if (auto root = ToRoot(record); root.ok())
    return "the root " + EscapeForDisplay(root->path);
  switch (record.kind) {
    case RecordKind::kAnnotation:
      return "an annotation";
    case RecordKind::kSession:
      return "a session";
    case RecordKind::kTurn:
      return "a turn";
    case RecordKind::kOperation:
      return "an operation";
    case RecordKind::kDrop:
      return "a deletion";
    case RecordKind::kPurge:
      return "a purge";
    case RecordKind::kRelease:
      return "a release";
    case RecordKind::kTranscript:
      return "a copy of a transcript";
    default:
      return "a record";
  }
}

}  // namespace belay
