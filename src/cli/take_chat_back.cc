#include "cli/take_chat_back.h"

#include <unistd.h>

#include "base/escape.h"
#include "cli/chat_view.h"
#include "cli/rollback_hooks.h"
#include "cli/rollback_view.h"
#include "cli/text.h"
#include "core/chat.h"
#include "core/failures.h"
#include "core/lineage.h"
#include "core/sessions.h"
#include "restore/fork_note.h"
#include "restore/publication.h"

namespace belay {

namespace {

Result<std::string> WhoseChat(CommandContext& ctx, OpenedRoot& root,
                              const Checkpoint& target) {
  if (auto named = ctx.args.value("--session")) return std::string(*named);
  BELAY_TRY(auto active, SessionAtWork(ctx, root));
  if (active) {
    BELAY_TRY(const Lineage lineage, Lineage::Of(*root.catalog, *active));
    if (lineage.Has(target.session, target.turn, target.seq)) return *active;
  }
  if (target.session) return WhoseSubagent(*root.catalog, *target.session);
  BELAY_TRY(auto along, CameAlong(*root.catalog, target));
  if (along) return std::move(*along);
  return Error(Errc::kRefused, "the checkpoint belongs to no conversation")
      .WithHint(
          "files alone: --code; a conversation alone: belay rewind SESSION --to "
          "turn:N");
}

}  // namespace

Result<std::optional<RewindPlan>> PlanChatOf(CommandContext& ctx, OpenedRoot& root,
                                             const Settings& settings,
                                             const Checkpoint& target) {
  BELAY_TRY(const std::string session, WhoseChat(ctx, root, target));
  // Also of agents that do not tell what is said.
  BELAY_OK(CheckRewind(*root.catalog, session));
  BELAY_TRY(const auto turn,
            TurnToTakeBack(root.store(), *root.catalog, session, target));
  if (!turn) return std::optional<RewindPlan>();
  auto plan = PlanRewind(
      root.store(), *root.catalog,
      {.session = session, .turn = turn, .settings = &settings, .root = root.path});
  // A summary may stand for the turn in the conversation that goes on.
  if (!plan.ok() && plan.error().code == Errc::kNotFound && target.session &&
      *target.session != session)
    return Error(plan.error().code, plan.error().what)
        .WithHint(StrCat("in the conversation it was said in: --session ",
                         ShellWord(*target.session)));
  if (!plan.ok()) return std::move(plan).error();
  BELAY_OK(CheckChatPlace(root, *plan));
  return std::optional(std::move(*plan));
}

std::optional<std::string> FromACopy(Fs& fs, const RewindPlan& plan) {
  if (!plan.place || !plan.place->copy) return std::nullopt;
  return StrCat("the agent's own file, ", EscapeForDisplay(plan.place->path.bytes()),
                ", ", WhatIsAt(fs, plan.place->path),
                ": what was said is from the copy that was kept of it");
}

Status CheckChatPlace(OpenedRoot& root, const RewindPlan& plan) {
  // Whoever makes the copy: the original goes back with the files.
  if (plan.place)
    BELAY_OK(CheckOutside(root.store().fs(), root.path, plan.place->path));
  // Where the agent's own program makes the copy, it decides.
  if (plan.native || plan.chat.files.empty()) return Ok();
  BELAY_TRY([[maybe_unused]] const PublicationPlace place,
            PlaceOf(root.store().fs(), root.path, plan.chat));
  return Ok();
}

std::optional<ForkChat> PlanChatAlong(CommandContext& ctx, OpenedRoot& root,
                                      const Checkpoint& target, const AbsPath& dir,
                                      std::vector<std::string>& warnings) {
  auto session = WhoseChat(ctx, root, target);
  if (!session.ok()) {
    // Where nobody ever talked, nobody expects one.
    auto any = ListSessions(*root.catalog, root.root.id);
    if (any.ok() && !any->empty())
      warnings.push_back(StrCat("no conversation goes along: ", session.error().what,
                                "; one that is to: --session ID"));
    return std::nullopt;
  }
  auto plan_of = [&](const std::string& of) -> Result<std::optional<ForkChat>> {
    BELAY_TRY(const auto turn, TurnToTakeBack(root.store(), *root.catalog, of, target));
    BELAY_TRY(
        auto plan,
        PlanForkChat(root.store(), *root.catalog,
                     {.session = of, .turn = turn, .from = root.path, .to = dir}));
    if (plan && plan->place)
      BELAY_OK(CheckOutside(root.store().fs(), root.path, plan->place->path));
    if (plan && !plan->chat.files.empty()) {
      BELAY_TRY([[maybe_unused]] const PublicationPlace place,
                PlaceOf(root.store().fs(), root.path, plan->chat));
    }
    return plan;
  };
  auto planned = plan_of(*session);
  // A summary may stand for the turn in the conversation that goes on; the one it was
  // said in has it.
  if (!planned.ok() && planned.error().code == Errc::kNotFound && target.session &&
      *target.session != *session)
    planned = plan_of(*target.session);
  if (!planned.ok()) {
    warnings.push_back(
        StrCat("the conversation does not go along: ", planned.error().what));
    return std::nullopt;
  }
  if (*planned)
    warnings.insert(warnings.end(), (*planned)->warnings.begin(),
                    (*planned)->warnings.end());
  else
    warnings.emplace_back(kNothingGoesAlong);
  return std::move(*planned);
}

Status MakeForkFirst(CommandContext& ctx, OpenedRoot& root, RewindPlan& plan,
                     std::vector<std::string>& warnings) {
  if (!plan.native) return Ok();
  ForkNote note{.agent = std::string(AgentName(plan.agent)),
                .session = plan.chat.record.session,
                .pid = getpid()};
  BELAY_OK(NoteFork(root.store(), root.root.id, note));
  const ForkMaker maker{.store = root.store(),
                        .root = root.root.id,
                        .store_dir = root.opened->dir,
                        .programs = ProgramsOf(ctx.env),
                        .pid = getpid()};
  if (FindProgram(note.agent, maker.programs.exec_path))
    ctx.term.Note(StrCat("waiting for ", note.agent, ", which makes the copy"));
  auto said = MakeNativeFork(maker, plan);
  note.forked = plan.chat.files.empty() ? plan.chat.record.forked : "";
  if (!said.ok() || note.forked.empty())
    ForgetFork(root.store(), root.root.id);
  else
    (void)NoteFork(root.store(), root.root.id, note);
  if (!said.ok()) return std::move(said).error();
  if (*said) warnings.push_back(StrCat(**said, "; a copy of its file is made instead"));
  return Ok();
}

void ForkIsUsed(OpenedRoot& root, const RewindPlan& plan) {
  if (plan.native) ForgetFork(root.store(), root.root.id);
}

void ForkIsNotUsed(CommandContext& ctx, OpenedRoot& root, const RewindPlan& plan) {
  if (!plan.native) return;
  ForgetFork(root.store(), root.root.id);
  if (plan.chat.files.empty())
    ctx.term.Warn(StrCat(AgentName(plan.agent), " made a copy of the conversation, ",
                         EscapeText(plan.chat.record.forked), ", that nothing uses"));
}

ExitCode TakeChatBack(CommandContext& ctx, OpenedRoot& root, const Settings& settings,
                      const std::optional<Checkpoint>& target, RewindPlan& plan,
                      bool dry) {
  RollbackHooks hooks(ctx, root, settings, "rewind");
  const std::optional<RecordId> to = target ? std::optional(target->id) : std::nullopt;
  auto show = [&](const Outcome& outcome) {
    JsonWriter json;
    WriteOutcome(outcome, to, json, hooks.runs());
    ctx.term.OutJson(json);
  };
  plan.chat.record.alone = true;
  Outcome shown;
  shown.dry_run = true;
  shown.chat = plan.chat.record;
  if (plan.among_calls)
    shown.warnings.push_back(
        StrCat("message ", EscapeText(*plan.among_calls),
               " is among calls and their answers, which stay or go together: taken ",
               "back from the message that made the calls"));
  if (plan.behind_thoughts)
    shown.warnings.push_back(
        StrCat("message ", EscapeText(*plan.behind_thoughts),
               " comes behind thoughts, which a conversation cannot end with: taken ",
               "back from those on"));
  if (auto said = FromACopy(ctx.fs, plan)) shown.warnings.push_back(std::move(*said));
  if (dry) {
    if (!plan.native && !plan.chat.files.empty())
      if (Status there = CheckRootIsThere(ctx, root.path); !there.ok())
        return ctx.term.Fail(there.error());
    if (ctx.term.json()) {
      show(shown);
    } else {
      WarnAbout(ctx.term, shown);
      ctx.term.Out(StrCat("would take back ", TakenText(plan.chat.record), "\n"));
      if (NothingIsLeft(plan))
        ctx.term.Out("  nothing would be left of it: the agent begins anew\n");
    }
    return ExitCode::kOk;
  }
  if (Status asked = hooks.Before(&shown, to); !asked.ok())
    return ctx.term.Fail(asked.error());
  if (Status made = MakeForkFirst(ctx, root, plan, shown.warnings); !made.ok())
    return ctx.term.Fail(made.error());
  RollbackRequest request = RequestFor(ctx, root, settings);
  request.chat = &plan.chat;
  StopOnSignal signals;
  auto done = Rewind(root.store(), request, target);
  if (!done.ok()) {
    NoteFailure(root.store(), root.root.id, "rewind", done.error());
    ForkIsNotUsed(ctx, root, plan);
    return ctx.term.Fail(done.error());
  }
  ForkIsUsed(root, plan);
  ctx.term.WorkIsDone();
  done->warnings.insert(done->warnings.end(), shown.warnings.begin(),
                        shown.warnings.end());
  const ExitCode code = hooks.After(*done, to) ? ExitCode::kOk : ExitCode::kProblem;
  if (ctx.term.json()) {
    show(*done);
    return code;
  }
  WarnAbout(ctx.term, *done);
  SayChat(ctx, *done->chat, plan.prompt);
  return code;
}

Result<std::string> FindSessionHere(OpenedRoot& root, std::string_view text) {
  BELAY_TRY(std::string session, FindSession(*root.catalog, text));
  BELAY_OK(CheckSession(*root.catalog, root.root.id, session));
  return session;
}

}  // namespace belay
