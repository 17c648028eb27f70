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

namespace belay {

namespace {

Result<RewindRequest> Wanted(const std::string& session, std::string_view to) {
  RewindRequest out{.session = session, .root = AbsPath::Literal("/")};
  constexpr std::string_view kTurn = "turn:";
  if (!to.starts_with(kTurn)) {
    if (to.empty()) return Error(Errc::kInvalid, "--to names no message");
    // Nor is one recorded that is longer (docs/hooks.md).
    constexpr size_t kLongestId = 1024;
    if (to.size() > kLongestId)
      return Error(
          Errc::kInvalid,
          StrCat("--to names no message: no id is ", std::to_string(to.size()),
                 " bytes long, as ", EscapeForDisplay(to.substr(0, 40)), "... is"));
    out.message = std::string(to);
    return out;
  }
  BELAY_TRY(const uint64_t turn, TurnNumber(to));
  out.turn = turn;
  return out;
}

}  // namespace

ExitCode CmdRewind(CommandContext& ctx) {
  const auto to = ctx.args.value("--to");
  if (!to)
    return ctx.term.FailUsage("to where is it to be taken back?",
                              "belay rewind SESSION --to turn:3");
  // A slip that takes back more than is meant.
  if (ctx.args.values("--to").size() > 1)
    return ctx.term.FailUsage("--to is given twice");
  if (ctx.args.positional()[0].empty())
    return ctx.term.FailUsage("no session is named", "see them with: belay sessions");
  auto root = OpenRootOfSession(ctx, NeedsRoot::kRecorded, ctx.args.positional()[0]);
  if (!root.ok()) return ctx.term.Fail(root.error());
  auto session = FindSessionHere(*root, ctx.args.positional()[0]);
  if (!session.ok()) return ctx.term.Fail(session.error());
  auto wanted = Wanted(*session, *to);
  if (!wanted.ok()) return ctx.term.FailUsage(wanted.error().what, wanted.error().hint);
  auto loaded = LoadSettingsToRollBack(ctx, root->path);
  if (!loaded.ok()) return ctx.term.Fail(loaded.error());
  const RescueSettings& settings = *loaded;
  wanted->settings = &settings.settings;
  wanted->root = root->path;
  auto plan = PlanRewind(root->store(), *root->catalog, *wanted);
  if (!plan.ok()) {
    Error error = std::move(plan).error();
    if (error.code == Errc::kUnsupported && error.hint.empty())
      error.hint = "nothing was changed; the files alone: belay rollback REF --code";
    return ctx.term.Fail(error);
  }
  if (Status place = CheckChatPlace(*root, *plan); !place.ok())
    return ctx.term.Fail(place.error());
  return TakeChatBack(ctx, *root, settings.settings, std::nullopt, *plan,
                      ctx.args.has("--dry-run"));
}

}  // namespace belay
