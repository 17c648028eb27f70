#include "base/escape.h"
#include "base/mutant.h"
#include "cli/anchoring.h"
#include "cli/chat_view.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/progress.h"
#include "cli/rollback_hooks.h"
#include "cli/rollback_view.h"
#include "cli/take_chat_back.h"
#include "cli/text.h"
#include "core/chat.h"
#include "core/failures.h"
#include "core/lineage.h"
#include "core/refs.h"
#include "restore/foreign.h"

namespace belay {

namespace {

constexpr std::string_view kSayYes = "nothing was changed; to go ahead: --yes";

// "'before refactor' (2026-03-09 21:15, abc1234)"
std::string TargetText(const Checkpoint& target) {
  return StrCat("'", EscapeText(CheckpointTitle(target)), "' (",
                LocalMinute(target.made_ms), ", ", target.id.text().substr(0, 7), ")");
}

// One rule, whatever else there was to do: what the target has and cannot be brought
// back is a problem that was found.
ExitCode CodeFor(const Plan& plan) {
  return IsIncomplete(plan) ? ExitCode::kProblem : ExitCode::kOk;
}

// What stays is nothing of the target's.
bool HoldsNoneOf(const Plan& plan) {
  return std::none_of(plan.kept.begin(), plan.kept.end(), [](const KeptPath& kept) {
    return kept.wanted || kept.why == "setid_not_given" || kept.why == "purged" ||
           kept.why == "attributes_unknown";
  });
}

// `.git`, or something in one.
bool IsGits(std::string_view path) {
  const std::string whole = StrCat("/", path, "/");
  return whole.find("/.git/") != std::string::npos;
}

// Nothing had to be done, or nothing could be.
ExitCode NothingDone(CommandContext& ctx, const Outcome& outcome,
                     const Checkpoint& target, bool of_paths) {
  const Plan& plan = outcome.plan;
  if (IsIncomplete(plan))
    ctx.term.Say(StrCat("Nothing was changed; not all is as in ", TargetText(target)));
  else if (of_paths && !plan.kept.empty())
    ctx.term.Say(
        StrCat("Nothing was changed; not all of it is held by ", TargetText(target)));
  else if (plan.git_stays)
    ctx.term.Say(StrCat("Nothing was changed: the files are as in ", TargetText(target),
                        ", and git is left as it is"));
  else
    ctx.term.Say(StrCat("Nothing to do: everything ",
                        plan.kept.empty()   ? ""
                        : HoldsNoneOf(plan) ? "it holds "
                                            : "else ",
                        "is as in ", TargetText(target)));
  if (!plan.kept.empty() && !ctx.term.quiet())
    ctx.term.Out(PlanText(plan, ctx.term.verbose()));
  return CodeFor(plan);
}

ExitCode Show(CommandContext& ctx, const Outcome& outcome, const Checkpoint& target,
              ExitCode code, const std::vector<UserHookRun>& hooks = {}) {
  JsonWriter json;
  WriteOutcome(outcome, target.id, json, hooks);
  ctx.term.OutJson(json);
  return code;
}

// Nobody saw a plan (--yes): what is gone is named now.
void SayDeleted(Terminal& term, const Plan& plan) {
  constexpr size_t kShown = 8;
  std::vector<std::string> paths;
  const std::vector<PathChange> outside = ChangesIn(plan.external);
  for (const auto* changes : {&plan.changes, &outside})
    for (const Step& step : StepsOf(*changes))
      if (step.op == "delete" && !step.change->after)
        paths.push_back(step.change->path);
  if (paths.empty()) return;
  std::string text = StrCat("  deleted ", CountText(paths.size(), "file"), ":");
  const size_t shown = term.verbose() ? paths.size() : std::min(kShown, paths.size());
  for (size_t i = 0; i < shown; ++i)
    text += StrCat(i == 0 ? " " : ", ", EscapeForDisplay(paths[i]));
  if (shown < paths.size())
    text += StrCat(" and ", std::to_string(paths.size() - shown), " more (-v)");
  term.Say(text);
}

// What others did since, where it would be taken back too.
void SayOutside(Terminal& term, const Plan& plan) {
  if (plan.outside.empty()) return;
  std::vector<std::string> lines;
  for (const std::string& path : plan.outside)
    lines.push_back(StrCat("    ", EscapeForDisplay(path)));
  term.Out(StrCat("  changed by others since: ", CountText(plan.outside.size(), "path"),
                  "\n"));
  for (const std::string& line : FirstOf(std::move(lines), term.verbose()))
    term.Out(StrCat(line, "\n"));
}

std::optional<OnOutside> AskOutside(Terminal& term, const Plan& plan) {
  const std::string what = CountText(plan.outside.size(), "path");
  if (term.Confirm(StrCat("Take back what others did (", what, ") too?")))
    return OnOutside::kExact;
  if (term.Confirm("Leave that as it is, and roll back the rest?"))
    return OnOutside::kKeep;
  return std::nullopt;
}

// The user's own commands, before anything is done: with what somebody agreed to, or
// with what would be done now. Nothing to do: nobody is asked. What they do to the
// directory is theirs: it is seen by a look before and one behind them, is no change of
// others, and is agreed to where all else was.
Status AskHooks(OpenedRoot& root, RollbackRequest& request, const Checkpoint& target,
                std::optional<Plan>& agreed, RollbackHooks& hooks, Progress& progress) {
  auto look = [&](OnOutside outside) -> Result<Outcome> {
    RollbackRequest asked = request;
    asked.outside = outside;
    auto seen = PreviewRollback(root.store(), asked, target);
    progress.Done();
    return seen;
  };
  Outcome plan;
  plan.dry_run = true;
  std::optional<Outcome> before;
  if (hooks.wants_before()) {
    BELAY_TRY(before, look(request.outside));
    if (!agreed && before->plan.moves_nothing() && request.chat == nullptr) return Ok();
    if (!agreed) plan = *before;
  }
  if (agreed) plan.plan = *agreed;
  if (request.chat != nullptr) plan.chat = request.chat->record;
  if (!before) return hooks.Before(&plan, target.id);
  const bool keeps = request.outside == OnOutside::kKeep;
  std::optional<Outcome> all_before;
  if (keeps) {
    BELAY_TRY(all_before, look(OnOutside::kAsk));
  }
  BELAY_OK(hooks.Before(&plan, target.id));
  BELAY_TRY(Outcome after, look(OnOutside::kAsk));
  request.by_hook = ChangedBetween((keeps ? *all_before : *before).plan, after.plan);
  if (!agreed || !StepsBeyond(*agreed, before->plan).empty()) return Ok();
  if (keeps) {
    BELAY_TRY(after, look(request.outside));
  }
  agreed = std::move(after.plan);
  return Ok();
}

Result<Outcome> Attempt(OpenedRoot& root, RollbackRequest& request,
                        const Checkpoint& target, const std::optional<Plan>& agreed,
                        Progress& progress) {
  request.shown = agreed ? &*agreed : nullptr;
  StopOnSignal signals;
  auto done = Rollback(root.store(), request, target);
  progress.Done();
  return done;
}

// What will be refused, before the agent's own program makes a fork that nobody would
// use.
Status CheckBeforeFork(OpenedRoot& root, const RollbackRequest& request,
                       const Checkpoint& target, Progress& progress) {
  auto seen = PreviewRollback(root.store(), request, target);
  progress.Done();
  if (!seen.ok()) return seen.error();
  if (seen->plan.refused) return *seen->plan.refused;
  if (request.outside == OnOutside::kAsk && !seen->plan.outside.empty())
    return ChangedByOthers(seen->plan.outside);
  return Ok();
}

// What is about files means nothing to a conversation, which goes back as a whole.
Status CheckScope(const Args& args) {
  constexpr std::string_view kOfFiles[] = {
      "--exact",          "--keep-outside",   "--switch",
      "--git-nested",     "--delete-ignored", "--skip-damaged",
      "--preserve-times", "--external-files", "--hunks"};
  const bool chat = args.has("--chat"), both = args.has("--both");
  if ((!chat && !both) || BELAY_MUTANT("files-are-swallowed-with-the-chat"))
    return Ok();
  if (!args.rest().empty())
    return Error(
               Errc::kInvalid,
               StrCat("a conversation is taken back as a whole: paths do not go with ",
                      chat ? "--chat" : "--both"))
        .WithHint("these files alone: leave it out, or say --code");
  auto refuse = [](std::string_view flag) {
    return Error(Errc::kInvalid, StrCat("--chat leaves the files as they are: ", flag,
                                        " does not go with it"))
        .WithHint("files and conversation: --both");
  };
  if (!chat) return Ok();
  for (const std::string_view flag : kOfFiles)
    if (args.has(flag)) return refuse(flag);
  // To keep git as it is is what --chat does.
  if (const auto git = args.value("--git"); git && *git != "keep")
    return refuse(StrCat("--git ", *git));
  return Ok();
}

// With --both, code that can go back does, where the conversation never can.
Result<std::optional<RewindPlan>> PlanTalk(CommandContext& ctx, OpenedRoot& root,
                                           const Settings& settings,
                                           const Checkpoint& target, bool both,
                                           std::vector<std::string>& warnings) {
  auto plan = PlanChatOf(ctx, root, settings, target);
  if (plan.ok() && !*plan && both)
    warnings.emplace_back("nothing was said since: the conversation stays as it is");
  if (plan.ok()) return plan;
  if (both && plan.error().code == Errc::kUnsupported) {
    warnings.push_back(StrCat(plan.error().what, "; the files alone are rolled back"));
    return std::optional<RewindPlan>();
  }
  Error error = std::move(plan).error();
  if (error.hint.find("--code") == std::string::npos)
    error.hint += StrCat(error.hint.empty() ? "nothing was changed; " : "; ",
                         "the files alone: --code");
  return error;
}

// What is said of the conversation, before what is said of the files.
void AddWarnings(const std::vector<std::string>& warnings, Outcome& outcome) {
  outcome.warnings.insert(outcome.warnings.begin(), warnings.begin(), warnings.end());
}

ExitCode RollBackChat(CommandContext& ctx, OpenedRoot& root, const Settings& settings,
                      const Checkpoint& target, std::optional<RewindPlan>& talk) {
  if (!talk)
    return ctx.term.Fail(
        Error(Errc::kRefused, "nothing was said since: there is nothing to take back"));
  if (ctx.args.has("--dry-run") || ctx.args.has("--yes"))
    return TakeChatBack(ctx, root, settings, target, *talk, ctx.args.has("--dry-run"));
  (void)TakeChatBack(ctx, root, settings, target, *talk, /*dry=*/true);
  if (!ctx.term.CanAsk() || ctx.term.json()) {
    ctx.term.Warn(kSayYes);
    return ExitCode::kProblem;
  }
  if (!ctx.term.Confirm("Take the conversation back?")) {
    ctx.term.Say("Nothing was changed.");
    return ExitCode::kProblem;
  }
  return TakeChatBack(ctx, root, settings, target, *talk, /*dry=*/false);
}

// The conversation of a turn does not need its checkpoint: by the turn itself it can be
// taken back when that is gone.
Error WithoutItsCheckpoint(CommandContext& ctx, OpenedRoot& root, Error error) {
  const std::string_view ref = ctx.args.positional()[0];
  if (error.code != Errc::kNotFound || !ref.starts_with("turn:")) return error;
  std::optional<std::string> session;
  if (auto named = ctx.args.value("--session"))
    session = std::string(*named);
  else if (auto at_work = SessionAtWork(ctx, root); at_work.ok())
    session = std::move(*at_work);
  const auto turn = TurnNumber(ref);
  if (!session || !turn.ok()) return error;
  const auto turns = TurnsOf(*root.catalog, *session);
  if (!turns.ok() || std::ranges::none_of(*turns, [&](const TurnOf& one) {
        return one.turn.turn == *turn;
      }))
    return error;
  return Error(error.code, error.what)
      .WithHint(StrCat("the conversation alone: belay rewind ", ShellWord(*session),
                       " --to ", ref));
}

// For whom the checkpoint goes back: the session that was named, or asks, or in which
// the turn was looked for. A number or an id of what the session at work inherited may
// be meant for that or for the one it is of.
Result<std::vector<std::string>> WhoTakesBack(CommandContext& ctx, OpenedRoot& root,
                                              std::string_view ref,
                                              const Checkpoint& target) {
  std::vector<std::string> out;
  if (!target.session) return out;
  std::optional<std::string> asks;
  const auto named = ctx.args.value("--session");
  if (named) {
    asks = std::string(*named);
  } else {
    BELAY_TRY(asks, SessionAtWork(ctx, root));
  }
  if (!asks || *asks == *target.session) return out;
  BELAY_TRY(const Lineage lineage, Lineage::Of(*root.catalog, *asks));
  if (!lineage.Has(target.session, target.turn, target.seq)) return out;
  out.push_back(std::move(*asks));
  if (!named && ctx.env.asked_by.empty() && !ref.starts_with("turn:") &&
      !ref.starts_with("tool:"))
    out.push_back(*target.session);
  return out;
}

}  // namespace

ExitCode CmdRollback(CommandContext& ctx) {
  GitChoice git{.switch_branch = ctx.args.has("--switch"),
                .nested = ctx.args.has("--git-nested")};
  const auto action = ctx.args.value("--git");
  if (action && *action != "reset" && *action != "revert" && *action != "keep")
    return ctx.term.FailUsage(
        StrCat("--git takes reset, revert or keep, not ", EscapeForDisplay(*action)));
  if (ctx.args.has("--exact") && ctx.args.has("--keep-outside"))
    return ctx.term.FailUsage("--exact and --keep-outside exclude each other");
  const bool chat = ctx.args.has("--chat"), both = ctx.args.has("--both");
  if (chat + both + ctx.args.has("--code") > 1)
    return ctx.term.FailUsage("--code, --chat and --both exclude each other");
  if (Status fine = CheckScope(ctx.args); !fine.ok())
    return ctx.term.FailUsage(fine.error().what, fine.error().hint);
  if (IsNow(ctx.args.positional()[0]))
    return ctx.term.FailUsage("`now` is where you are already",
                              "see the checkpoints with: belay list");
  auto root = OpenRoot(ctx, NeedsRoot::kRecorded);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  if (Status there = CheckRootIsThere(ctx, root->path, /*may_be_gone=*/true);
      !there.ok())
    return ctx.term.Fail(there.error());
  auto target = FindCheckpoint(ctx, *root, ctx.args.positional()[0]);
  if (!target.ok())
    return ctx.term.Fail(chat ? WithoutItsCheckpoint(ctx, *root, target.error())
                              : target.error());
  const Checkpoint& checkpoint = target->entry.checkpoint;
  // A file of settings that makes no sense does not stand between a user and a rescue;
  // but then nothing is deleted, which such a line may have excluded.
  auto loaded = LoadSettingsToRollBack(ctx, root->path);
  if (!loaded.ok()) return ctx.term.Fail(loaded.error());
  const RescueSettings& settings = *loaded;
  auto selected = SelectedPaths(ctx, root->path);
  if (!selected.ok())
    return ctx.term.FailUsage(selected.error().what, selected.error().hint);

  for (const std::string& path : *selected)
    if (IsGits(path))
      return ctx.term.FailUsage(
          StrCat(EscapeForDisplay(path),
                 " is git's own, and a rollback of given paths leaves git alone"),
          "without paths git goes back with the files: see --git in belay help "
          "rollback");

  std::optional<RewindPlan> talk;
  std::vector<std::string> warnings;
  if (chat || both) {
    auto planned = PlanTalk(ctx, *root, settings.settings, checkpoint, both, warnings);
    if (!planned.ok()) return ctx.term.Fail(planned.error());
    talk = std::move(*planned);
    if (auto said = both && talk ? FromACopy(ctx.fs, *talk) : std::nullopt)
      warnings.push_back(std::move(*said));
  }
  if (chat) return RollBackChat(ctx, *root, settings.settings, checkpoint, talk);

  RollbackRequest request = RequestFor(ctx, *root, settings.settings);
  if (talk) request.chat = &talk->chat;
  request.plan.settings_unknown = !settings.complete;
  request.plan.select = std::move(*selected);
  const bool of_paths = !request.plan.select.empty();
  request.external_files = ctx.args.has("--external-files");
  if (of_paths && request.external_files)
    return ctx.term.FailUsage(
        "--external-files goes with a rollback of all, not with "
        "-- PATH",
        "leave the paths out");
  request.plan.delete_ignored = ctx.args.has("--delete-ignored");
  request.plan.skip_damaged = ctx.args.has("--skip-damaged");
  git.action = !action               ? settings.settings.git_action
               : *action == "reset"  ? GitAction::kReset
               : *action == "revert" ? GitAction::kRevert
                                     : GitAction::kKeep;
  request.git_choice = git;
  request.outside = ctx.args.has("--exact")          ? OnOutside::kExact
                    : ctx.args.has("--keep-outside") ? OnOutside::kKeep
                                                     : settings.settings.on_outside;
  auto asking = WhoTakesBack(ctx, *root, ctx.args.positional()[0], checkpoint);
  if (!asking.ok()) return ctx.term.Fail(asking.error());
  request.asking = std::move(*asking);
  request.force = ctx.args.has("--force");
  request.preserve_times = ctx.args.has("--preserve-times");
  Progress progress(ctx.term, root->opened->clock, "looking");
  request.progress = [&](const ScanProgress& p) {
    if (p.step == ScanProgress::Step::kCapture)
      progress.Update(p.bytes, p.total_bytes);
    else
      progress.Count(p.files, "files");
  };

  // What somebody said yes to; more than that is not done without asking again.
  std::optional<Plan> agreed;
  const bool dry = ctx.args.has("--dry-run");
  const bool sure = ctx.args.has("--yes") && !dry;
  // Where a yes leads on, the preview names refs by the id that the rollback will have.
  if (!sure && !dry && ctx.term.CanAsk() && !ctx.term.json())
    request.operation = RecordId(root->store().random().NewId());
  if (!sure) {
    auto preview = PreviewRollback(root->store(), request, checkpoint);
    progress.Done();
    if (!preview.ok()) return ctx.term.Fail(preview.error());
    if (talk) preview->chat = talk->chat.record;
    AddWarnings(warnings, *preview);
    const bool nothing = preview->plan.moves_nothing() && !talk;
    const bool ask = !dry && ctx.term.CanAsk() && !ctx.term.json();
    const std::optional<Error> refused = preview->plan.refused;
    if (ctx.term.json()) {
      if (refused)
        ctx.term.Warn(refused->what);
      else if (!dry && !nothing)
        ctx.term.Warn(kSayYes);
      return Show(ctx, *preview, checkpoint,
                  refused          ? ExitCodeFor(refused->code)
                  : dry || nothing ? CodeFor(preview->plan)
                                   : ExitCode::kProblem);
    }
    WarnAbout(ctx.term, *preview);
    WarnAboutMissing(ctx.term, *preview, checkpoint);
    if (nothing) return NothingDone(ctx, *preview, checkpoint, of_paths);
    ctx.term.Out(StrCat("To ", TargetText(checkpoint), ": ",
                        AffectedText(preview->plan), "\n",
                        PlanText(preview->plan, ctx.term.verbose())));
    SayOutside(ctx.term, preview->plan);
    if (talk)
      ctx.term.Out(StrCat("  the conversation: ", TakenText(talk->chat.record), "\n",
                          NothingIsLeft(*talk)
                              ? "  nothing would be left of it: the agent begins anew\n"
                              : ""));
    if (refused) return ctx.term.Fail(*refused);
    if (dry) return CodeFor(preview->plan);
    if (!ask) {
      ctx.term.Warn(kSayYes);
      return ExitCode::kProblem;
    }
    if (request.outside == OnOutside::kAsk && !preview->plan.outside.empty()) {
      const std::optional<OnOutside> answer = AskOutside(ctx.term, preview->plan);
      if (!answer) {
        ctx.term.Say("Nothing was changed.");
        return ExitCode::kProblem;
      }
      request.outside = *answer;
      if (*answer == OnOutside::kKeep) {
        preview = PreviewRollback(root->store(), request, checkpoint);
        progress.Done();
        if (!preview.ok()) return ctx.term.Fail(preview.error());
        if (preview->plan.moves_nothing() && !talk)
          return NothingDone(ctx, *preview, checkpoint, of_paths);
      }
    }
    if (!ctx.term.Confirm(StrCat("Roll back ", AffectedText(preview->plan),
                                 talk ? " and the conversation?" : "?"))) {
      ctx.term.Say("Nothing was changed.");
      return ExitCode::kProblem;
    }
    agreed = std::move(preview->plan);
  }
  RollbackHooks hooks(ctx, *root, settings.settings, "rollback");
  if (Status asked = AskHooks(*root, request, checkpoint, agreed, hooks, progress);
      !asked.ok())
    return ctx.term.Fail(asked.error());
  std::vector<std::string> of_fork;
  if (talk) {
    Status made = talk->native ? CheckBeforeFork(*root, request, checkpoint, progress)
                               : Status(Ok());
    if (made.ok()) made = MakeForkFirst(ctx, *root, *talk, of_fork);
    if (!made.ok()) {
      NoteFailure(root->store(), root->root.id, "rollback", made.error());
      return ctx.term.Fail(made.error());
    }
  }
  Result<Outcome> done = Attempt(*root, request, checkpoint, agreed, progress);
  while (done.ok() && !done->unshown.empty()) {
    ctx.term.Say("The directory changed since you were asked. It would also:");
    std::vector<std::string> steps;
    for (const std::string& step : done->unshown)
      steps.push_back(StrCat("    ", EscapeForDisplay(step)));
    for (const std::string& line : FirstOf(std::move(steps), ctx.term.verbose()))
      ctx.term.Say(line);
    if (!ctx.term.Confirm(
            StrCat("Roll back ", AffectedText(done->plan), " all the same?"))) {
      ctx.term.Say("Nothing was changed.");
      if (talk) ForkIsNotUsed(ctx, *root, *talk);
      return ExitCode::kProblem;
    }
    agreed = std::move(done->plan);
    done = Attempt(*root, request, checkpoint, agreed, progress);
  }
  if (!done.ok()) {
    NoteFailure(root->store(), root->root.id, "rollback", done.error());
    if (talk) ForkIsNotUsed(ctx, *root, *talk);
    return ctx.term.Fail(done.error());
  }
  if (talk) ForkIsUsed(*root, *talk);
  done->warnings.insert(done->warnings.end(), of_fork.begin(), of_fork.end());
  if (!agreed) AddWarnings(warnings, *done);
  if (done->operation) {
    ctx.term.WorkIsDone();
    StartAnchoring(settings.settings, root->root);
  }
  const ExitCode code =
      hooks.After(*done, checkpoint.id) ? CodeFor(done->plan) : ExitCode::kProblem;
  if (ctx.term.json()) return Show(ctx, *done, checkpoint, code, hooks.runs());
  WarnAbout(ctx.term, *done);
  WarnAboutMissing(ctx.term, *done, checkpoint);
  if (!done->operation) return NothingDone(ctx, *done, checkpoint, of_paths);
  ctx.term.Say(StrCat("rolled back ", AffectedText(done->plan), " to ",
                      TargetText(checkpoint), "; undo with `belay undo`"));
  if (!agreed) SayDeleted(ctx.term, done->plan);
  for (const std::string& line : GitPlanText(done->plan.git))
    ctx.term.Say(StrCat("  ", line));
  if (!agreed) ctx.term.Out(ExternalText(done->plan));
  if (!done->plan.kept.empty() && !ctx.term.quiet())
    ctx.term.Out(KeptText(done->plan, ctx.term.verbose()));
  if (done->chat) SayChat(ctx, *done->chat, talk->prompt);
  return code;
}

}  // namespace belay
