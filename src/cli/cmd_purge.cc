#include "base/escape.h"
#include "base/mutant.h"
#include "cli/anchoring.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "core/purged.h"
#include "core/space.h"
#include "history/purge.h"

namespace belay {

namespace {

constexpr size_t kPurgedShown = 10;

void WriteJson(const PurgeRequest& request, const PurgeReport& report, bool dry_run,
               JsonWriter& json) {
  const PurgePlan& plan = report.plan;
  json.BeginObject();
  json.Key("dry_run").Bool(dry_run);
  json.Key("root");
  if (request.path)
    json.PathValue(request.root.path);
  else
    json.Null();
  json.Key("path");
  if (request.path)
    json.PathValue(*request.path);
  else
    json.Null();
  json.Key("session");
  if (request.session)
    json.PathValue(*request.session);
  else
    json.Null();
  json.Key("paths").BeginArray();
  for (const std::string& path : plan.paths) json.PathValue(path);
  json.EndArray();
  json.Key("versions").Uint(plan.versions);
  json.Key("bytes").Uint(plan.bytes);
  json.Key("checkpoints").Uint(plan.checkpoints);
  json.Key("pinned").Uint(plan.pinned);
  json.Key("operations").Uint(plan.operations);
  json.Key("transcripts").Uint(plan.transcripts);
  json.Key("grew_out_of_it").BeginArray();
  for (const std::string& session : plan.grew_out_of_it) json.PathValue(session);
  json.EndArray();
  json.Key("kept_by").BeginArray();
  for (const KeepsOfSession& keeps : plan.kept_by) {
    json.BeginObject();
    json.Key("id").String(keeps.id.text());
    json.Key("root").PathValue(keeps.root);
    json.Key("title").PathValue(keeps.title);
    json.EndObject();
  }
  json.EndArray();
  json.Key("retitled").Uint(plan.retitled);
  for (const bool before : {false, true}) {
    json.Key(before ? "purged_before" : "shared").BeginArray();
    for (const SharedContent& shared : before ? plan.purged_before : plan.shared) {
      json.BeginObject();
      json.Key("path").PathValue(shared.path);
      json.Key("root").PathValue(shared.root);
      json.Key("also").PathValue(shared.also);
      if (!before) json.Key("kept").Bool(!request.everywhere);
      json.Key("part").Bool(shared.part);
      json.EndObject();
    }
    json.EndArray();
  }
  json.Key("on_disk").Bool(plan.on_disk);
  json.Key("git_copies").Bool(plan.git_copies);
  json.Key("git_files").Uint(plan.git_files);
  json.Key("git_may_hold").Bool(plan.git_may_hold);
  auto list = [&](std::string_view key, const std::vector<std::string>& names) {
    json.Key(key).BeginArray();
    for (const std::string& name : names) json.PathValue(name);
    json.EndArray();
  };
  list("left_out", report.left_out);
  json.Key("freed").Uint(report.freed);
  json.Key("stored_again").Uint(report.again);
  list("may_still_hold", report.stays);
  json.EndObject();
}

// "copy in /other/project", the second part where it is another directory.
std::string Whose(const PurgeRequest& request, const SharedContent& shared) {
  return StrCat(shared.also.empty() ? std::string("a file of rules")
                                    : EscapeForDisplay(shared.also),
                shared.root == request.root.path
                    ? std::string()
                    : StrCat(" in ", EscapeForDisplay(shared.root)));
}

void ShowPlan(Terminal& term, const PurgeRequest& request, const PurgePlan& plan) {
  auto more = [&](size_t count, std::string_view what) {
    if (count > kPurgedShown)
      term.Say(
          StrCat("  ... and ", std::to_string(count - kPurgedShown), " more ", what));
  };
  for (size_t i = 0; i < plan.paths.size() && i < kPurgedShown; ++i)
    term.Say(StrCat("  ", EscapeForDisplay(plan.paths[i])));
  more(plan.paths.size(), "paths");
  if (plan.git_copies)
    term.Say(
        "  the copies of .git that git.protect keeps go too, since they may hold it; "
        "none "
        "are made here from then on");
  for (size_t i = 0; i < plan.shared.size() && i < kPurgedShown; ++i) {
    const SharedContent& shared = plan.shared[i];
    term.Say(StrCat(
        request.everywhere ? "  erased there too: " : "  kept, because of ",
        Whose(request, shared),
        shared.part ? " (a part of it is the same as in " : " (the same content as ",
        EscapeForDisplay(shared.path), ")"));
  }
  more(plan.shared.size(), "places that have the same content");
  for (size_t i = 0; i < plan.purged_before.size() && i < kPurgedShown; ++i)
    term.Say(StrCat("  erased there too: ", Whose(request, plan.purged_before[i]),
                    ", which was purged before and kept until now (",
                    plan.purged_before[i].part ? "a part of it is the same as in "
                                               : "the same content as ",
                    EscapeForDisplay(plan.purged_before[i].path), ")"));
  more(plan.purged_before.size(), "places that were purged before");
  for (size_t i = 0; i < plan.kept_by.size() && i < kPurgedShown; ++i) {
    const KeepsOfSession& keeps = plan.kept_by[i];
    term.Say(StrCat("  stays in ", keeps.id.text().substr(0, 7), " '",
                    EscapeText(keeps.title), "': content that came with the session"));
  }
  more(plan.kept_by.size(), "checkpoints that keep something of it");
  if (plan.retitled > 0)
    term.Say(StrCat("  the name of one of its checkpoints goes from ",
                    CountText(plan.retitled, "other record"), " too"));
  if (plan.pinned > 0)
    term.Say(StrCat("  ", CountText(plan.pinned, "checkpoint"), " of them pinned"));
  if (plan.operations > 0)
    term.Say(StrCat("  ", CountText(plan.operations, "rollback"),
                    " to them can no longer be undone"));
  if (plan.transcripts > 0)
    term.Say(StrCat("  with it ", plan.transcripts == 1 ? "goes " : "go ",
                    plan.transcripts == 1
                        ? std::string("a copy")
                        : StrCat(std::to_string(plan.transcripts), " copies"),
                    " of its transcript; the agent's own file stays where it is"));
  for (size_t i = 0; i < plan.grew_out_of_it.size() && i < kPurgedShown; ++i)
    term.Say(StrCat("  session ", EscapeText(plan.grew_out_of_it[i]),
                    " was forked from it, and its transcript may hold what was said "
                    "until then"));
  more(plan.grew_out_of_it.size(), "sessions that were forked from it");
  if (plan.links)
    term.Say("  where it was a symlink, its target stays in the checkpoints");
}

// "3 versions of .env (14 KiB) from 12 checkpoints"
std::string WhatGoes(const PurgeRequest& request, const PurgePlan& plan) {
  if (request.session)
    return StrCat("session ", EscapeText(*request.session), " with ",
                  CountText(plan.checkpoints, "checkpoint"), " (", SizeText(plan.bytes),
                  ")");
  std::string what;
  if (plan.versions > 0 || plan.git_files == 0)
    what = StrCat(CountText(plan.versions, "version"), " of ",
                  EscapeForDisplay(*request.path));
  if (plan.git_files > 0)
    what += StrCat(what.empty() ? "" : " and ", CountText(plan.git_files, "file"),
                   " of copies of .git");
  return StrCat(what, " (", SizeText(plan.bytes), ") from ",
                CountText(plan.checkpoints, "checkpoint"));
}

ExitCode Allow(CommandContext& ctx, OpenedRoot& root, const PurgeRequest& request) {
  Status allowed = AllowAgain(root.store(), root.root, *request.path,
                              root.opened->options.lock_wait_ms);
  if (!allowed.ok()) return FailOnStore(ctx, allowed.error());
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject().Key("allowed").PathValue(*request.path);
    json.EndObject();
    ctx.term.OutJson(json);
  } else {
    ctx.term.Out(
        StrCat("checkpoints may hold ", EscapeForDisplay(*request.path), " again\n"));
  }
  return ExitCode::kOk;
}

// Nothing when the answer is yes.
std::optional<ExitCode> Ask(CommandContext& ctx, const PurgeRequest& request,
                            const PurgePlan& plan) {
  if (ctx.args.has("--yes") || BELAY_MUTANT("purge-without-asking"))
    return std::nullopt;
  const std::string what = WhatGoes(request, plan);
  if (!ctx.term.CanAsk() || ctx.term.json())
    return ctx.term.Fail(
        Error(Errc::kRefused,
              StrCat("this erases ", what, " for good, and nobody can be asked here"))
            .WithHint("give --yes if that is what you want"));
  if (!ctx.term.Confirm(StrCat("Erase ", what, "? This cannot be undone.")))
    return ctx.term.Fail(Error(Errc::kRefused, "nothing was erased"));
  return std::nullopt;
}

void Tell(CommandContext& ctx, const PurgeRequest& request, const PurgeReport& report) {
  Terminal& term = ctx.term;
  const PurgePlan& plan = report.plan;
  if (plan.empty() && !plan.keeps_all() && !plan.found_nothing())
    term.Out(StrCat("nothing of ", EscapeForDisplay(*request.path), " is stored\n"));
  if (!plan.empty())
    term.Out(StrCat("erased ", WhatGoes(request, plan), "; ", SizeText(report.freed),
                    " given back\n"));
  if (!plan.kept_by.empty())
    term.Warn(StrCat(CountText(plan.kept_by.size(), "checkpoint"),
                     " that others made or rollbacks left still hold",
                     plan.kept_by.size() == 1 ? "s" : "",
                     " something of the session; to erase that too: belay delete REF, "
                     "then belay gc --everything"));
  if (!plan.grew_out_of_it.empty())
    term.Warn(StrCat("what was said in it may be in ",
                     CountText(plan.grew_out_of_it.size(), "session"),
                     " that grew out of it; to erase that too: belay purge --session ",
                     ShellWord(plan.grew_out_of_it[0])));
  for (const std::string& path : report.left_out)
    term.Out(StrCat(EscapeForDisplay(path),
                    " is still there; checkpoints leave it out from now on\n"));
  if (!report.left_out.empty())
    term.Say("To have one covered again: belay purge --allow PATH");
  if (!plan.empty() && !plan.shared.empty() && !request.everywhere)
    term.Say("To erase it under the other paths too: --everywhere");
}

void TellGitMayHold(Terminal& term, const PurgePlan& plan) {
  if (!plan.git_may_hold) return;
  term.Warn(
      "copies of .git are kept here (git.protect), and may hold it if it was ever "
      "committed, staged or stashed");
  term.Note("To erase these copies: belay purge .git");
}

// A typo must not look like a secret that is gone.
ExitCode TellNothingFound(Terminal& term, const std::string& path,
                          const PurgePlan& plan) {
  if (plan.git_may_hold) {
    term.Warn(StrCat("no checkpoint has ", EscapeForDisplay(path),
                     ", and nothing is there under that name"));
    TellGitMayHold(term, plan);
    return ExitCode::kProblem;
  }
  term.Warn(StrCat("nothing of ", EscapeForDisplay(path),
                   " is stored, and nothing is there under that name"));
  term.Note(path.find_first_of("*?[") == std::string::npos
                ? "A file or directory is named as belay ls REF lists it"
                : "A PATH means itself here, not a pattern: purge each file, or the "
                  "directory they are in");
  return ExitCode::kProblem;
}

// A purge that leaves all as it is was not what somebody asked for.
void TellAllStays(Terminal& term, const PurgeRequest& request, const PurgePlan& plan) {
  const std::string path = EscapeForDisplay(*request.path);
  if (plan.shared.empty()) {
    term.Warn(StrCat("nothing was erased: ", path,
                     " was a symlink, and its target is part of the checkpoints"));
    return;
  }
  term.Warn(StrCat("nothing was erased: all that is stored of ", path,
                   " is kept because of ",
                   plan.shared.size() == 1
                       ? Whose(request, plan.shared[0])
                       : StrCat(std::to_string(plan.shared.size()), " other places")));
  term.Note("To erase it there too: --everywhere, or purge those paths as well");
}

// A path outside of the root of which checkpoints keep something: what edit tools named
// (restore/external.h), or a directory of such files.
Result<std::optional<std::string>> FindExternal(CommandContext& ctx, OpenedRoot& root,
                                                std::string_view word) {
  std::optional<std::string> none;
  auto path = ctx.env.Resolve(word);
  if (!path.ok()) return none;
  BELAY_TRY(auto all, root.catalog->ListCheckpoints({.root = root.root.id}));
  for (const CatalogEntry& entry : all)
    for (const ExternalFile& file : entry.checkpoint.external)
      if (IsAtOrBelow(file.path, path->bytes())) return std::optional(path->bytes());
  return none;
}

}  // namespace

ExitCode CmdPurge(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  PurgeRequest request;
  if (auto session = ctx.args.value("--session")) request.session = *session;
  if (words.empty() == !request.session)
    return ctx.term.FailUsage("what is to be erased? A PATH, or --session ID");
  request.everywhere = ctx.args.has("--everywhere");
  if (request.session && (request.everywhere || ctx.args.has("--allow")))
    return ctx.term.FailUsage(
        StrCat(request.everywhere ? "--everywhere" : "--allow", " goes with a PATH"),
        "a session is erased in every directory; what others have too stays");
  auto root = OpenRoot(ctx, NeedsRoot::kRecorded);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  request.root = root->root;
  request.lock_wait_ms = root->opened->options.lock_wait_ms;
  if (!request.session) {
    auto below = FindBelow(ctx, root->path, words[0]);
    if (!below.ok()) return ctx.term.Fail(below.error());
    auto external = FindExternal(ctx, *root, words[0]);
    if (!external.ok()) return ctx.term.Fail(external.error());
    if (!*below && *external)
      request.path = **external;
    else if (!*below || (*below)->path.empty())
      return ctx.term.Fail(
          Error(Errc::kInvalid, StrCat(EscapeForDisplay(words[0]), " is not below ",
                                       EscapeForDisplay(root->root.path)))
              .WithHint("to forget all of a directory: belay off --forget"));
    else
      request.path = (*below)->path;
  }
  if (ctx.args.has("--allow")) return Allow(ctx, *root, request);

  PurgeReport report;
  auto plan = PlanPurge(root->store(), request);
  if (!plan.ok()) return FailOnStore(ctx, plan.error());
  if (request.session && plan->empty())
    return ctx.term.Fail(
        Error(Errc::kNotFound,
              StrCat("there is no session ", EscapeText(*request.session)))
            .WithHint(
                "see them with: belay sessions; what was deleted before is erased "
                "by: belay gc --everything"));
  const bool dry_run = ctx.args.has("--dry-run");
  if (dry_run) {
    report.plan = std::move(*plan);
    if (ctx.term.json()) {
      JsonWriter json;
      WriteJson(request, report, true, json);
      ctx.term.OutJson(json);
      return report.plan.found_nothing()
                 ? TellNothingFound(ctx.term, *request.path, report.plan)
                 : ExitCode::kOk;
    }
    if (report.plan.found_nothing())
      return TellNothingFound(ctx.term, *request.path, report.plan);
    ctx.term.Out(StrCat("would erase ", WhatGoes(request, report.plan), "\n"));
    ShowPlan(ctx.term, request, report.plan);
    if (report.plan.on_disk)
      ctx.term.Say(StrCat(EscapeForDisplay(*request.path),
                          " is in the directory; checkpoints would leave it out"));
    return ExitCode::kOk;
  }
  if (!plan->empty()) {
    if (!ctx.term.json()) ShowPlan(ctx.term, request, *plan);
    if (auto no = Ask(ctx, request, *plan)) return *no;
  }
  request.shown = &*plan;
  // Settings that cannot be read are no reason to leave something there.
  std::optional<Settings> settings;
  if (auto file = ctx.env.UserSettingsFile(); file.ok())
    if (auto loaded = LoadSettings(ctx.fs, *file, std::nullopt); loaded.ok())
      settings = std::move(*loaded);
  if (settings) request.settings = &*settings;
  Progress progress(ctx.term, root->opened->clock, "erasing");
  request.progress = [&](uint64_t done, uint64_t total) {
    progress.Update(done, total);
  };
  auto done = Purge(root->store(), request);
  progress.Done();
  if (!done.ok()) return FailOnStore(ctx, done.error());
  report = std::move(*done);
  ctx.term.WorkIsDone();
  const bool anchors_gone = DropAnchors(ctx, root->store(), *root->catalog);
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(request, report, false, json);
    ctx.term.OutJson(json);
  } else {
    Tell(ctx, request, report);
    if (plan->empty()) ShowPlan(ctx.term, request, report.plan);
  }
  for (const std::string& name : report.stays)
    ctx.term.Warn(StrCat(EscapeForDisplay(name),
                         " in the store was kept by belay repair and may still hold "
                         "it: remove that file"));
  if (report.again > 0)
    ctx.term.Warn(
        "somebody stored the same content while it was being erased, and has it now");
  if (report.plan.found_nothing())
    return TellNothingFound(ctx.term, *request.path, report.plan);
  if (report.plan.keeps_all()) {
    TellAllStays(ctx.term, request, report.plan);
    return ExitCode::kProblem;
  }
  if (report.plan.git_may_hold) {
    TellGitMayHold(ctx.term, report.plan);
    return ExitCode::kProblem;
  }
  return report.stays.empty() && report.again == 0 && anchors_gone ? ExitCode::kOk
                                                                   : ExitCode::kProblem;
}

}  // namespace belay
