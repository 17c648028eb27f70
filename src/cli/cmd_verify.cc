#include "base/escape.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "store/verify.h"

namespace belay {

namespace {

std::string Title(const Checkpoint& c) {
  std::string id = c.id.text().substr(0, 7);
  return c.name ? StrCat("'", EscapeForDisplay(*c.name), "' (", id, ")") : id;
}

void WriteJson(const VerifyReport& report, JsonWriter& json) {
  json.BeginObject();
  json.Key("clean").Bool(report.clean());
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
      json.String(*hit.checkpoint.name);
    else
      json.Null();
    json.Key("paths").BeginArray();
    for (const std::string& path : hit.paths) json.PathValue(path);
    json.EndArray();
    json.Key("more_paths").Uint(hit.more_paths);
    json.EndObject();
  }
  json.EndArray();
  json.Key("notes").BeginArray();
  for (const std::string& n : report.notes) json.String(n);
  json.EndArray().EndObject();
}

void Show(const VerifyReport& report, bool read_data, Terminal& term) {
  for (const std::string& d : report.damage)
    term.Out(StrCat(term.Paint(Style::kRed, "damaged"), ": ", Scrub(d), "\n"));
  for (const HitCheckpoint& hit : report.hit) {
    term.Out(
        StrCat("checkpoint ", Title(hit.checkpoint), " cannot be restored whole:\n"));
    for (const std::string& path : hit.paths)
      term.Out(StrCat("  ", EscapeForDisplay(path), "\n"));
    if (hit.more_paths > 0)
      term.Out(StrCat("  and ", std::to_string(hit.more_paths), " more\n"));
  }
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
        "Everything else can still be restored. To rebuild what can be rebuilt: "
        "belay repair");
  }
}

Result<VerifyReport> Check(CommandContext& ctx, OpenedStore& opened, bool read_data) {
  Progress progress(ctx.term, opened.clock, "checking the store");
  VerifyOptions options;
  options.read_data = read_data;
  options.progress = [&](uint64_t done, uint64_t total) {
    progress.Update(done, total);
  };
  BELAY_TRY(VerifyReport report, VerifyStore(*opened.store, options));
  BELAY_TRY(auto catalog, Catalog::Open(*opened.store));
  auto problems = catalog->Check();
  if (!problems.ok()) {
    if (problems.error().code != Errc::kCorrupt) {
      // A read-only or full disk: the packs were checked, and they are what counts.
      report.notes.push_back("the catalogue was not checked: " + problems.error().what);
      return report;
    }
    report.damage.push_back("catalogue: " + problems.error().what);
    return report;
  }
  for (const std::string& p : *problems) report.damage.push_back("catalogue: " + p);
  return report;
}

}  // namespace

ExitCode CmdVerify(CommandContext& ctx) {
  const bool read_data = ctx.args.has("--read-data");
  VerifyReport report;
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (opened.ok()) {
    auto checked = Check(ctx, **opened, read_data);
    if (!checked.ok()) return ctx.term.Fail(checked.error());
    report = std::move(*checked);
  } else if (opened.error().code != Errc::kNotFound) {
    return ctx.term.Fail(opened.error());
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
  return report.clean() ? ExitCode::kOk : ExitCode::kDamaged;
}

}  // namespace belay
