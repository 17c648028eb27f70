#include "agent/summarize.h"

#include "agent/rewind_internal.h"
#include "base/escape.h"

namespace belay {

namespace {

Status CheckAgent(const AboutSession& about) {
  const std::optional<AgentKind> known = AgentNamed(about.agent);
  if (!known || about.kind == AgentKind::kGeneric)
    return Error(Errc::kUnsupported,
                 "the host keeps this conversation itself, and only it can shorten it")
        .WithHint("nothing was changed");
  if (about.kind == AgentKind::kOpencode)
    return Error(Errc::kUnsupported,
                 "opencode keeps conversations in its own database, and no call of its "
                 "server replaces a part of one")
        .WithHint("in opencode itself: /compact; or take it back: belay rewind");
  if (Status fine = CheckConversation(about.kind); !fine.ok())
    return Error(Errc::kUnsupported, "the conversation of " + EscapeText(about.agent) +
                                         " cannot be changed from outside")
        .WithHint("nothing was changed");
  return Ok();
}

}  // namespace

Result<SummaryPlan> PlanSummary(Store& store, Catalog& catalog,
                                const SummarizeRequest& request) {
  BELAY_TRY(const AboutSession about, LookUp(catalog, request.session));
  BELAY_OK(CheckAgent(about));
  BELAY_TRY(const auto turns, TurnsOf(catalog, request.session, request.root.bytes()));
  ForkRequest wanted{.agent = about.kind,
                     .session = request.session,
                     .transcript = AbsPath::Literal("/")};
  BELAY_OK(KnowTurns(catalog, request.session, request.root, wanted.point));
  auto turn_of =
      [&](const std::optional<uint64_t>& number) -> Result<std::optional<TurnRecord>> {
    if (!number) return std::optional<TurnRecord>();
    const TurnOf* found = FindTurn(turns, *number);
    if (found == nullptr) return NoTurn(request.session, *number);
    BELAY_OK(CheckOneTurn(catalog, request.session, *number, request.root.bytes()));
    return std::optional(found->turn);
  };
  BELAY_TRY(const auto from, turn_of(request.from));
  BELAY_TRY(const auto until, turn_of(request.until));
  BELAY_TRY(auto place, FindConversation(store, catalog, request.session));
  wanted.transcript = place.file();
  if (place.copy) wanted.place = place.path;
  BELAY_TRY(ConversationPart part,
            ConversationPart::Find(store.fs(), store.random(), wanted, from, until));
  SummaryPlan out{.chat = {}, .part = std::move(part), .place = std::move(place)};
  ChatRecord& record = out.chat.record;
  record.agent = about.agent;
  record.session = request.session;
  record.cwd = about.cwd.empty() ? request.root.bytes() : about.cwd;
  record.alone = true;
  record.taken = out.part.inside_messages;
  record.kept = out.part.other_messages;
  // Of the files nothing was taken back: all turns are its history.
  record.inherited = turns.empty() ? 0 : turns.back().turn.turn;
  record.summary = {.first = out.part.first_turn.value_or(1),
                    .last = out.part.last_turn.value_or(1)};
  return out;
}

Result<std::string> MakeSummary(Fs& fs, const SummaryPlan& plan,
                                const std::optional<Argv>& command,
                                const UserHookPlace& place, const std::string& root) {
  const ChatRecord& record = plan.chat.record;
  SummaryDigest digest(record.cwd, command.has_value());
  BELAY_OK(plan.part.Read(fs, digest));
  if (!command) return digest.Extract();
  return SummaryByCommand(fs, place, *command,
                          {.session = record.session,
                           .agent = record.agent,
                           .root = root,
                           .first_turn = plan.part.first_turn,
                           .last_turn = plan.part.last_turn},
                          digest);
}

Status MakeSummarizedFork(Store& store, std::string_view summary, SummaryPlan& plan) {
  BELAY_TRY(
      const ConversationFork fork,
      plan.part.Fork(store.fs(), store.random(), summary, store.clock().WallMillis()));
  plan.chat.record.forked = fork.session;
  return TakeFiles(store.fs(), fork, plan.chat);
}

}  // namespace belay
