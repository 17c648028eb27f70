#include "agent/resume.h"
#include "base/escape.h"
#include "cli/anchoring.h"
#include "cli/chat_view.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/rollback_hooks.h"
#include "cli/rollback_view.h"
#include "cli/text.h"
#include "core/failures.h"

namespace belay {

namespace {

// An operation by its id or a beginning of it.
Result<RecordId> FindOperation(Catalog& catalog, const RootId& root,
                               std::string_view text) {
  BELAY_TRY(auto operations, ListOperations(catalog, root));
  std::optional<RecordId> found;
  for (const Operation& operation : operations) {
    if (!operation.id.text().starts_with(text)) continue;
    if (found)
      return Error(Errc::kInvalid,
                   StrCat("several operations begin with ", EscapeForDisplay(text)))
          .WithHint("give more of the id; see: belay log");
    found = operation.id;
  }
  if (!found || text.size() < 4)
    return Error(Errc::kNotFound,
                 StrCat("no operation is called ", EscapeForDisplay(text)))
        .WithHint("see what was done with: belay log");
  return *found;
}

// "undo", or "undo abc1234" when that was asked for.
std::string Again(CommandContext& ctx, std::string_view command) {
  std::string words(command);
  for (std::string_view word : ctx.args.positional()) words += StrCat(" ", word);
  return words;
}

ExitCode Tell(CommandContext& ctx, OpenedRoot& root, Result<Outcome> done,
              std::string_view command, RollbackHooks& hooks) {
  if (!done.ok()) {
    NoteFailure(root.store(), root.root.id, command, done.error());
    return ctx.term.Fail(done.error());
  }
  if (done->operation) ctx.term.WorkIsDone();
  if (done->operation && done->chat && done->stands)
    if (Status there = CheckResumable(root.store().fs(), *root.catalog,
                                      ResumptionOf(*done->chat, *done->stands));
        !there.ok())
      done->warnings.push_back(there.error().what);
  const std::optional<RecordId> target =
      done->operation ? done->operation->target : std::optional<RecordId>();
  const bool fine = hooks.After(*done, target);
  const ExitCode code = done->conflicts.empty() && !IsIncomplete(done->plan) && fine
                            ? ExitCode::kOk
                            : ExitCode::kProblem;
  if (ctx.term.json()) {
    JsonWriter json;
    WriteOutcome(*done, target, json, hooks.runs());
    ctx.term.OutJson(json);
    return code;
  }
  WarnAbout(ctx.term, *done);
  if (!done->conflicts.empty()) {
    ctx.term.Warn(StrCat("nothing was changed: ",
                         CountText(done->conflicts.size(), "path"), " changed since"));
    std::vector<std::string> lines;
    for (const Conflict& conflict : done->conflicts)
      lines.push_back(
          StrCat("  ", EscapeForDisplay(conflict.path), " ", conflict.what));
    for (const std::string& line : FirstOf(std::move(lines), ctx.term.verbose()))
      ctx.term.Warn(line);
    if (!ctx.args.has("--exact"))
      ctx.term.Warn(
          StrCat(command == "undo" ? "take them back too" : "go forward over them",
                 " (they are stored first): belay ", Again(ctx, command), " --exact"));
    else
      ctx.term.Warn("move what is in the way elsewhere, then try again");
    return code;
  }
  const bool can_redo =
      done->operation->kind == OperationKind::kUndo && !done->operation->out_of_order;
  if (done->chat && done->chat->alone) {
    ctx.term.Say(StrCat(command == "undo" ? "took back " : "did again ", done->undone,
                        "; ",
                        can_redo ? "go forward again with `belay redo`"
                                 : "take it back with `belay undo`"));
    SayChatAgain(ctx, *done->chat, *done->stands);
    return code;
  }
  ctx.term.Say(StrCat(command == "undo" ? "took back " : "did again ", done->undone,
                      ": ",
                      !done->plan.moves_nothing() ? AffectedText(done->plan)
                      : done->plan.kept.empty()   ? "all was so already"
                                                  : "nothing could be moved",
                      "; ",
                      can_redo ? "go forward again with `belay redo`"
                               : "take it back with `belay undo`"));
  for (const std::string& line : GitPlanText(done->plan.git))
    ctx.term.Say(StrCat("  ", line));
  if (done->chat) SayChatAgain(ctx, *done->chat, *done->stands);
  ctx.term.Out(ExternalText(done->plan));
  for (const KeptPath& kept : done->plan.kept)
    ctx.term.Say(StrCat("  ", EscapeForDisplay(kept.path),
                        kept.missing ? " was not brought back (" : " stayed (",
                        ReasonText(kept.why), ")"));
  return code;
}

}  // namespace

ExitCode CmdUndo(CommandContext& ctx) {
  auto root = OpenRoot(ctx, NeedsRoot::kRecorded);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  if (Status there = CheckRootIsThere(ctx, root->path, /*may_be_gone=*/true);
      !there.ok())
    return ctx.term.Fail(there.error());
  auto loaded = LoadSettingsToRollBack(ctx, root->path);
  if (!loaded.ok()) return ctx.term.Fail(loaded.error());
  const RescueSettings& settings = *loaded;
  std::optional<RecordId> which;
  if (!ctx.args.positional().empty()) {
    auto found = FindOperation(*root->catalog, root->root.id, ctx.args.positional()[0]);
    if (!found.ok()) return ctx.term.Fail(found.error());
    which = *found;
  }
  RollbackRequest request = RequestFor(ctx, *root, settings.settings);
  request.plan.skip_damaged = ctx.args.has("--skip-damaged");
  RollbackHooks hooks(ctx, *root, settings.settings, "undo");
  if (Status asked = hooks.Before(nullptr, std::nullopt); !asked.ok())
    return ctx.term.Fail(asked.error());
  StopOnSignal signals;
  auto done =
      Undo(root->store(), *root->catalog, request, which, ctx.args.has("--exact"));
  if (done.ok() && done->operation) StartAnchoring(settings.settings, root->root);
  return Tell(ctx, *root, std::move(done), "undo", hooks);
}

ExitCode CmdRedo(CommandContext& ctx) {
  auto root = OpenRoot(ctx, NeedsRoot::kRecorded);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  if (Status there = CheckRootIsThere(ctx, root->path, /*may_be_gone=*/true);
      !there.ok())
    return ctx.term.Fail(there.error());
  auto loaded = LoadSettingsToRollBack(ctx, root->path);
  if (!loaded.ok()) return ctx.term.Fail(loaded.error());
  const RescueSettings& settings = *loaded;
  RollbackRequest request = RequestFor(ctx, *root, settings.settings);
  request.plan.skip_damaged = ctx.args.has("--skip-damaged");
  RollbackHooks hooks(ctx, *root, settings.settings, "redo");
  if (Status asked = hooks.Before(nullptr, std::nullopt); !asked.ok())
    return ctx.term.Fail(asked.error());
  StopOnSignal signals;
  auto done = Redo(root->store(), *root->catalog, request, ctx.args.has("--exact"));
  if (done.ok() && done->operation) StartAnchoring(settings.settings, root->root);
  return Tell(ctx, *root, std::move(done), "redo", hooks);
}

}  // namespace belay
