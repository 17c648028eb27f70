#include "base/escape.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "restore/journal.h"
#include "store/lost_records.h"
#include "store/verify.h"

namespace belay {

namespace {

std::string Title(const Checkpoint& c) {
  std::string id = c.id.text().substr(0, 7);
  return c.name ? StrCat("'", EscapeText(*c.name), "' (", id, ")") : id;
}

std::string_view KindName(RecordKind kind) {
  switch (kind) {
    case RecordKind::kRoot:
      return "root";
    case RecordKind::kCheckpoint:
      return "checkpoint";
    case RecordKind::kAnnotation:
      return "annotation";
    case RecordKind::kSession:
      return "session";
    case RecordKind::kTurn:
      return "turn";
    case RecordKind::kOperation:
      return "operation";
    case RecordKind::kDrop:
      return "drop";
    case RecordKind::kPurge:
      return "purge";
    case RecordKind::kRelease:
      return "release";
    case RecordKind::kTranscript:
      return "transcript";
  }
  return "unknown";
}

void WriteJson(const VerifyReport& report, JsonWriter& json) {
  json.BeginObject();
  json.Key("clean").Bool(report.clean());
  json.Key("data_read").Bool(report.data_read);
  json.Key("packs").Uint(report.packs);
  json.Key("batches").Uint(report.batches);
  json.Key("objects").Uint(report.objects);
  json.Key("records").Uint(report.records);
  json.Key("bytes").Uint(report.bytes);
  json.Key("damage").BeginArray();
  for (const std::string& d : report.damage) json.String(d);
  json.EndArray();
  json.Key("checkpoints").BeginArray();
  for (const HitCheckpoint& hit : report.hit) {
    json.BeginObject();
    json.Key("id").String(hit.checkpoint.id.text());
    json.Key("seq").Uint(hit.checkpoint.seq);
    json.Key("name");
    if (hit.checkpoint.name)
      json.PathValue(*hit.checkpoint.name);
    else
      json.Null();
    json.Key("paths").BeginArray();
    for (const std::string& path : hit.paths) json.PathValue(path);
    json.EndArray();
    json.Key("more_paths").Uint(hit.more_paths);
    json.Key("record_lost").Bool(hit.record_lost);
    json.Key("in_no_list").Bool(hit.in_no_list);
    json.EndObject();
  }
  json.EndArray();
  json.Key("lost_records").BeginArray();
  for (const LogRecord& r : report.lost_records) {
    json.BeginObject();
    json.Key("kind").String(KindName(r.kind));
    json.Key("id").String(r.id.text());
    json.Key("seq").Uint(r.seq);
    json.Key("title").PathValue(RecordTitle(r));
    json.EndObject();
  }
  json.EndArray();
  json.Key("unknown_records").Uint(report.unknown_records);
  json.Key("uncounted_records").Bool(report.uncounted_records);
  json.Key("notes").BeginArray();
  for (const std::string& n : report.notes) json.String(n);
  json.EndArray().EndObject();
}

void Show(const VerifyReport& report, bool read_data, Terminal& term) {
  for (const std::string& d : report.damage)
    term.Out(StrCat(term.Paint(Style::kRed, "damaged"), ": ", Scrub(d), "\n"));
  for (const HitCheckpoint& hit : report.hit) {
    if (hit.in_no_list) {
      term.Out(StrCat("checkpoint ", Title(hit.checkpoint),
                      " is in no list; belay repair brings it back\n"));
      continue;
    }
    if (hit.record_lost && hit.paths.empty()) {
      term.Out(StrCat("checkpoint ", Title(hit.checkpoint),
                      " lost its record; all its files are there\n"));
      continue;
    }
    term.Out(StrCat("checkpoint ", Title(hit.checkpoint),
                    hit.record_lost ? " lost its record, and" : "",
                    " cannot be restored whole:\n"));
    for (const std::string& path : hit.paths)
      term.Out(StrCat("  ", path == "." ? "all of it" : EscapeForDisplay(path), "\n"));
    if (hit.more_paths > 0)
      term.Out(StrCat("  and ", std::to_string(hit.more_paths), " more\n"));
  }
  for (const LogRecord& r : report.lost_records)
    if (r.kind != RecordKind::kCheckpoint)
      term.Out(StrCat("lost, but remembered by the catalogue: ", Scrub(RecordTitle(r)),
                      "\n"));
  if (report.unknown_records > 0)
    term.Out(StrCat(UnknownRecordsText(report),
                    " of the log cannot be read, and nobody remembers them: perhaps "
                    "checkpoints (the catalogue knows those that a list, a search or "
                    "upkeep saw before)\n"));
  for (const std::string& n : report.notes) term.Say(StrCat("note: ", n));
  std::string counted =
      StrCat(CountText(report.packs, "pack"), ", ", CountText(report.objects, "object"),
             ", ", CountText(report.records, "record"), ", ", SizeText(report.bytes));
  if (report.clean()) {
    term.Out(StrCat(term.Paint(Style::kGreen, "whole"), ": ", counted,
                    read_data ? ", every byte read\n" : "\n"));
    if (!read_data) term.Say("To check every byte: belay verify --read-data");
  } else {
    term.Out(StrCat(CountText(report.damage.size(), "problem"), " in ", counted, "; ",
                    CountText(report.hit.size(), "checkpoint"), " hit\n"));
    term.Say(
        StrCat(report.unknown_records > 0
                   ? "Every other checkpoint that is still listed can be restored. "
                   : "Everything else can be restored. ",
               report.lost_records.empty()
                   ? "To put right what can be put right: belay repair"
                   : "To bring back what the catalogue remembers: belay repair"));
  }
}

Result<VerifyReport> Check(CommandContext& ctx, OpenedStore& opened, bool read_data) {
  Progress progress(ctx.term, opened.clock, "checking the store");
  VerifyOptions options;
  options.read_data = read_data;
  options.progress = [&](uint64_t done, uint64_t total) {
    progress.Update(done, total);
  };
  BELAY_TRY(auto catalog, Catalog::Open(*opened.store));
  options.remembered = catalog->Remembered(opened.store->manifest().generation);
  BELAY_TRY(VerifyReport report, VerifyStore(*opened.store, options));
  auto problems = catalog->Check();
  if (!problems.ok()) {
    if (problems.error().code != Errc::kCorrupt) {
      // The packs were checked, and they are what counts.
      report.notes.push_back("the catalogue was not checked (" + problems.error().what +
                             "); belay repair rebuilds it");
      return report;
    }
    report.damage.push_back(problems.error().what);
    return report;
  }
  for (const std::string& p : *problems) report.damage.push_back(p);
  return report;
}

// The journals of what is under way: one that cannot be read cannot be finished. One of
// a newer Belay is not damage; what it is comes back as an error.
std::optional<Error> CheckJournals(Store& store, VerifyReport& report) {
  std::optional<Error> newer;
  auto dir =
      store.fs().Open(store.dir(), Name::Literal("journal"), OpenMode::Directory());
  if (!dir.ok()) return newer;
  auto entries = store.fs().List(*dir);
  if (!entries.ok()) {
    report.damage.push_back("journal: " + entries.error().what);
    return newer;
  }
  for (const DirEntry& e : *entries) {
    auto id = Id128::FromText(e.name);
    if (!id) continue;
    auto journal = JournalFile::Load(store, RootId(*id));
    if (journal.ok()) continue;  // whole, or finished meanwhile
    if (journal.error().code == Errc::kUnsupported)
      newer = Context(journal.error(), "journal/" + e.name);
    else
      report.damage.push_back("journal/" + e.name + ": " + journal.error().what +
                              "; the rollback it was of cannot be finished, belay "
                              "status says how to go back");
  }
  return newer;
}

// The store cannot even be opened: what the catalogue knows of it.
void TellWhatWasThere(CommandContext& ctx) {
  auto at = PrepareStore(ctx);
  if (!at.ok() || ctx.term.json()) return;
  auto dir = ctx.fs.OpenDir((*at)->dir);
  if (!dir.ok()) return;
  StoreLocks locks(ctx.fs, (*at)->clock, *dir, (*at)->options.lock_wait_ms);
  auto catalog =
      Catalog::Open({ctx.fs, (*at)->clock, (*at)->random, locks, *dir}, nullptr);
  if (!catalog.ok()) return;
  uint64_t count = 0;
  constexpr uint64_t kShown = 20;
  for (const auto& [record, sure] : (*catalog)->Remembered(0)) {
    if (record.kind != RecordKind::kCheckpoint) continue;
    if (++count <= kShown)
      ctx.term.Out(StrCat("stored until then: ", Scrub(RecordTitle(record)), "\n"));
  }
  if (count > kShown)
    ctx.term.Out(StrCat("and ", CountText(count - kShown, "more checkpoint"), "\n"));
}

}  // namespace

ExitCode CmdVerify(CommandContext& ctx) {
  const bool read_data = ctx.args.has("--read-data");
  VerifyReport report;
  std::optional<Error> newer;
  const std::optional<std::string> modes = LooseModes(ctx);
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (opened.ok()) {
    auto checked = Check(ctx, **opened, read_data);
    if (!checked.ok()) return FailOnStore(ctx, checked.error());
    report = std::move(*checked);
    if (modes) report.notes.push_back(*modes);
    newer = CheckJournals(*(*opened)->store, report);
  } else if (opened.error().code != Errc::kNotFound) {
    if (opened.error().code == Errc::kCorrupt) TellWhatWasThere(ctx);
    return FailOnStore(ctx, opened.error());
  }
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(report, json);
    ctx.term.OutJson(json);
  } else if (!opened.ok()) {
    ctx.term.Out("nothing stored yet\n");
  } else {
    Show(report, read_data, ctx.term);
  }
  if (newer && report.clean()) return ctx.term.Fail(*newer);
  return report.clean() ? ExitCode::kOk : ExitCode::kDamaged;
}

}  // namespace belay
