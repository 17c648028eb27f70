#include <algorithm>

#include "agent/resume.h"
#include "agent/summarize.h"
#include "base/escape.h"
#include "cli/chat_view.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/rollback_view.h"
#include "cli/take_chat_back.h"
#include "cli/text.h"
#include "core/chat.h"
#include "core/failures.h"
#include "core/refs.h"
#include "core/sessions.h"
#include "restore/publication.h"

namespace belay {

namespace {

struct ShownSummary {
  const ChatRecord& chat;
  std::string by;                           // "command" or "extract"
  std::optional<std::string> summary = {};  // not known: the command was not run
  std::optional<RecordId> operation = {};
  bool dry_run = false;
};

void WriteShown(const ShownSummary& shown, JsonWriter& json) {
  json.BeginObject();
  json.Key("session").PathValue(shown.chat.session);
  json.Key("dry_run").Bool(shown.dry_run);
  json.Key("operation");
  if (shown.operation)
    json.String(shown.operation->text());
  else
    json.Null();
  json.Key("by").String(shown.by);
  json.Key("summary");
  if (shown.summary)
    json.String(*shown.summary);
  else
    json.Null();
  json.Key("chat");
  WriteChat(shown.chat, shown.dry_run, json);
  json.EndObject();
}

std::string MessagesOf(const ChatRecord& chat) {
  return StrCat(CountText(chat.taken.value_or(0), "message"), " (",
                TurnsText(chat.summary->first, chat.summary->last), ") of session ",
                EscapeText(chat.session));
}

Result<SummarizeRequest> Wanted(CommandContext& ctx, const std::string& session,
                                const AbsPath& root) {
  SummarizeRequest out{.session = session, .root = root};
  if (const auto from = ctx.args.value("--from")) {
    BELAY_TRY(out.from, TurnNumber(*from));
  }
  if (const auto to = ctx.args.value("--to")) {
    BELAY_TRY(out.until, TurnNumber(*to));
  }
  if (out.from && out.until && *out.from >= *out.until)
    return Error(Errc::kInvalid, "--to is not behind --from");
  return out;
}

// The user's own command; nothing: an extract.
Result<std::optional<Argv>> CommandOf(CommandContext& ctx, const Settings& settings) {
  if (settings.summarize.empty()) return std::optional<Argv>();
  if (settings.summarize.size() > 1)
    return Error(Errc::kRefused, "hooks.summarize takes one command");
  const std::string inside = StrCat(kUserHookVariable, "=");
  if (std::ranges::any_of(ctx.env.all, [&](const std::string& variable) {
        return variable.starts_with(inside);
      }))
    return Error(Errc::kRefused, "a command that belay runs may not summarize")
        .WithHint("nothing was changed");
  return std::optional(settings.summarize[0]);
}

void Say(CommandContext& ctx, const ChatRecord& chat, const std::string& summary) {
  Terminal& term = ctx.term;
  const Resumption resumption = ResumptionOf(chat);
  term.Say(StrCat("a summary stands for ", MessagesOf(chat)));
  term.Say("  in a copy; the original is kept, and `belay undo` makes it go on again");
  term.Say(StrCat("  it goes on as session ", EscapeText(chat.forked)));
  term.Say(StrCat("  go on with: ", ResumeText(resumption, ctx.env.cwd)));
  term.Say(StrCat("         or: ", BelayResume(chat.session)));
  term.Say("  a session that is open in a terminal does not read its file again:");
  term.Say("  leave it first");
  term.Say("  the summary:");
  term.Out(ShownText(summary));
}

}  // namespace

ExitCode CmdSummarize(CommandContext& ctx) {
  if (!ctx.args.value("--from") && !ctx.args.value("--to"))
    return ctx.term.FailUsage("which part is to be summarized?",
                              "belay summarize SESSION --to turn:9");
  for (const std::string_view flag : {"--from", "--to"})
    if (ctx.args.values(flag).size() > 1)
      return ctx.term.FailUsage(StrCat(flag, " is given twice"));
  auto root = OpenRootOfSession(ctx, NeedsRoot::kRecorded, ctx.args.positional()[0]);
  if (!root.ok()) return ctx.term.Fail(root.error());
  auto session = FindSessionHere(*root, ctx.args.positional()[0]);
  if (!session.ok()) return ctx.term.Fail(session.error());
  auto wanted = Wanted(ctx, *session, root->path);
  if (!wanted.ok()) return ctx.term.FailUsage(wanted.error().what, wanted.error().hint);
  const RescueSettings settings = LoadSettingsToRescue(ctx, root->path);
  auto command = CommandOf(ctx, settings.settings);
  if (!command.ok()) return ctx.term.Fail(command.error());
  Store& store = root->store();
  auto plan = PlanSummary(store, *root->catalog, *wanted);
  if (!plan.ok()) return ctx.term.Fail(plan.error());
  if (Status place = CheckOutside(ctx.fs, root->path, plan->place->path); !place.ok())
    return ctx.term.Fail(place.error());
  const bool dry = ctx.args.has("--dry-run");
  ShownSummary shown{.chat = plan->chat.record,
                     .by = *command ? "command" : "extract",
                     .dry_run = dry};
  // MessagesOf a command would say is known when it is run, and a dry run runs nothing.
  if (!dry || !*command) {
    auto summary = MakeSummary(ctx.fs, *plan, *command,
                               {.directory = root->path,
                                .environment = ctx.env.all,
                                .exec_path = ctx.env.exec_path,
                                .timeout_ms = kSummaryTimeoutMs},
                               root->root.path);
    if (!summary.ok()) return ctx.term.Fail(summary.error());
    shown.summary = std::move(*summary);
  }
  auto write = [&] {
    JsonWriter json;
    WriteShown(shown, json);
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  };
  if (dry) {
    if (ctx.term.json()) return write();
    ctx.term.Out(StrCat("a summary would stand for ", MessagesOf(plan->chat.record),
                        shown.summary ? ":\n" : "\n",
                        shown.summary ? ShownText(*shown.summary) : ""));
    return ExitCode::kOk;
  }
  if (Status made = MakeSummarizedFork(store, *shown.summary, *plan); !made.ok())
    return ctx.term.Fail(made.error());
  RollbackRequest request = RequestFor(ctx, *root, settings.settings);
  request.chat = &plan->chat;
  StopOnSignal signals;
  auto done = Rewind(store, request, std::nullopt);
  if (!done.ok()) {
    NoteFailure(store, root->root.id, "summarize", done.error());
    return ctx.term.Fail(done.error());
  }
  ctx.term.WorkIsDone();
  if (done->operation) shown.operation = done->operation->id;
  if (ctx.term.json()) return write();
  WarnAbout(ctx.term, *done);
  Say(ctx, plan->chat.record, *shown.summary);
  return ExitCode::kOk;
}

}  // namespace belay
