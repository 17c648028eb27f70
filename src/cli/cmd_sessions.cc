#include <charconv>

#include "agent/aftermath.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "cli/anchoring.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/session_show.h"
#include "cli/text.h"
#include "core/chat.h"
#include "core/roots.h"
#include "core/sessions.h"
#include "core/transcripts.h"

namespace belay {

namespace {

// Of one root, or of all.
ExitCode List(CommandContext& ctx, Store& store, Catalog& catalog, const Root* root) {
  std::optional<RootId> only;
  if (root != nullptr) only = root->id;
  auto sessions = ListSessions(catalog, only);
  if (!sessions.ok()) return FailOnStore(ctx, sessions.error());
  MeasureConversations(ctx.fs, *sessions);
  auto roots = catalog.Roots();
  if (!roots.ok()) return FailOnStore(ctx, roots.error());
  std::vector<RootId> places;
  for (const RootEntry& entry : *roots)
    if (!only || entry.root.id == *only) places.push_back(entry.root.id);
  auto chats = Chats::Read(catalog);
  if (!chats.ok()) return FailOnStore(ctx, chats.error());
  auto goes_on = [&](const SessionSummary& session) -> std::optional<std::string> {
    const Chats::GoesOn on = chats->Follow(session.id);
    return on.anew ? std::nullopt : std::optional(on.session);
  };
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("root");
    if (root != nullptr)
      json.PathValue(root->path);
    else
      json.Null();
    json.Key("sessions").BeginArray();
    for (const SessionSummary& session : *sessions) {
      json.BeginObject();
      WriteSession(session, StateOf(store, places, session), goes_on(session), json);
      json.EndObject();
    }
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  const size_t width = ctx.term.columns();
  for (const SessionSummary& session : *sessions) {
    // The id whole, to be copied; all else below it as it fits.
    ctx.term.Out(StrCat(EscapeText(session.id), "\n"));
    std::string line = StrCat("  ", LocalMinute(session.last_ms), "  ");
    if (session.agent) line += StrCat(EscapeText(*session.agent), "  ");
    line += StrCat(SessionStateName(StateOf(store, places, session)), "  ",
                   SessionFacts(session));
    // A size is whole, or on a line of its own.
    const size_t size = line.rfind(", conversation ");
    if (ColumnsOf(line) > width && size != std::string::npos)
      line.replace(size, 2, "\n  ");
    for (size_t begin = 0; begin < line.size();) {
      const size_t end = std::min(line.size(), line.find('\n', begin));
      ctx.term.Out(StrCat(Fit(line.substr(begin, end - begin), width), "\n"));
      begin = end + 1;
    }
    if (const std::string from = LineageText(session); !from.empty())
      ctx.term.Out(StrCat(Fit(StrCat("  ", from), width), "\n"));
    if (const std::string on = GoesOnText(session, goes_on(session)); !on.empty())
      ctx.term.Out(StrCat(Fit(StrCat("  ", on), width), "\n"));
    if (!only || session.roots.size() > 1)
      for (const std::string& path : session.roots)
        ctx.term.Out(StrCat("  ", FitPath(EscapeForDisplay(path), width - 2), "\n"));
  }
  if (sessions->empty()) ctx.term.Out("no sessions yet\n");
  return ExitCode::kOk;
}

// Wherever it is asked, protected or not.
ExitCode ListAll(CommandContext& ctx) {
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (!opened.ok() && opened.error().code == Errc::kNotFound) {
    if (ctx.term.json())
      ctx.term.Out("{\"root\":null,\"sessions\":[]}\n");
    else
      ctx.term.Out("no sessions yet\n");
    return ExitCode::kOk;
  }
  if (!opened.ok()) return FailOnStore(ctx, opened.error());
  Store& store = *(*opened)->store;
  auto catalog = Catalog::Open(store);
  if (!catalog.ok()) return FailOnStore(ctx, catalog.error());
  auto roots = (*catalog)->Roots();
  if (!roots.ok()) return FailOnStore(ctx, roots.error());
  if (roots->empty()) {
    auto damage = SeenDamage(store, **catalog);
    if (!damage.ok()) return FailOnStore(ctx, damage.error());
    if (*damage) return FailOnStore(ctx, **damage);
  }
  return List(ctx, store, **catalog, nullptr);
}

void SayWhatStays(CommandContext& ctx, const SessionDeletion& plan) {
  for (const CatalogEntry& entry : plan.pinned)
    ctx.term.Out(StrCat("pinned, and kept: ", CheckpointLine(entry, 60), "\n"));
  const std::string heir =
      plan.shared_by.empty() ? "" : StrCat("session ", EscapeText(plan.shared_by[0]));
  if (!plan.shared.empty() || plan.kept_turns > 0)
    ctx.term.Out(StrCat("kept, ",
                        heir.empty()          ? "with what is pinned"
                        : plan.pinned.empty() ? StrCat("in the history of ", heir)
                                              : StrCat("in the history of ", heir,
                                                       " or with what is pinned"),
                        ": ", CountText(plan.shared.size(), "checkpoint"), ", ",
                        CountText(plan.kept_turns, "turn"), "\n"));
  if (plan.kept_copies == 0) return;
  ctx.term.Out(StrCat(
      "kept, with all that was said in it: the copy of its transcript, which ",
      plan.pinned.empty()
          ? StrCat(heir, " needs for what was said before it began; delete that one")
          : "stays with what is pinned; belay unpin that",
      ", then this again\n"));
}

// The beginning of an id is enough.
Result<SessionDeletion> PlanToDelete(OpenedRoot& root, const std::string& text) {
  const auto has_its_own = [&](const std::string& heir) {
    return HasConversation(root.store(), *root.catalog, heir);
  };
  auto plan = PlanSessionDeletion(*root.catalog, text, has_its_own);
  if (plan.ok() || plan.error().code != Errc::kNotFound) return plan;
  BELAY_TRY(const std::string session, FindSession(*root.catalog, text));
  return PlanSessionDeletion(*root.catalog, session, has_its_own);
}

ExitCode Delete(CommandContext& ctx, OpenedRoot& root, const std::string& text) {
  auto plan = PlanToDelete(root, text);
  if (!plan.ok()) return FailOnStore(ctx, plan.error());
  const std::string& session = plan->session;
  const bool something =
      plan->shared_by.empty() || plan->checkpoints > 0 || !plan->records.empty();
  if (something && !ctx.args.has("--yes") &&
      !BELAY_MUTANT("delete-session-without-asking")) {
    const std::string what = StrCat("session ", EscapeText(session), " with ",
                                    CountText(plan->checkpoints, "checkpoint"));
    if (!ctx.term.json())
      for (const SessionDeletion::OfRoot& here : plan->roots)
        ctx.term.Say(StrCat("  ", EscapeForDisplay(here.root.root.path), ": ",
                            CountText(here.checkpoints.size(), "checkpoint")));
    if (!ctx.term.CanAsk() || ctx.term.json())
      return ctx.term.Fail(
          Error(Errc::kRefused, StrCat("this deletes ", what,
                                       " for good, and nobody can be asked here"))
              .WithHint("give --yes if that is what you want"));
    if (!ctx.term.Confirm(StrCat("Delete ", what, "? This cannot be undone.")))
      return ctx.term.Fail(Error(Errc::kRefused, "nothing was deleted"));
  }
  auto gone = DeleteSession(root.store(), *root.catalog, *plan);
  if (!gone.ok()) return FailOnStore(ctx, gone.error());
  ctx.term.WorkIsDone();
  (void)DropAnchors(ctx, root.store(), *root.catalog);
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("session").PathValue(session);
    json.Key("deleted").Uint(*gone);
    json.Key("pinned").BeginArray();
    for (const CatalogEntry& entry : plan->pinned)
      json.String(entry.checkpoint.id.text());
    json.EndArray();
    json.Key("shared").BeginArray();
    for (const CatalogEntry& entry : plan->shared)
      json.String(entry.checkpoint.id.text());
    json.EndArray();
    json.Key("kept_turns").Uint(plan->kept_turns);
    json.Key("kept_transcripts").Uint(plan->kept_copies);
    json.EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  ctx.term.Out(StrCat("deleted session ", EscapeText(session), ": ",
                      CountText(*gone, "checkpoint"), "\n"));
  SayWhatStays(ctx, *plan);
  ctx.term.Say(
      "The space comes back by itself. So that what was said and stored is in no file "
      "any more: belay gc --everything");
  return ExitCode::kOk;
}

void WriteCopies(const std::string& session, const std::vector<TranscriptCopy>& copies,
                 JsonWriter& json) {
  json.BeginObject();
  json.Key("session").PathValue(session);
  json.Key("transcripts").BeginArray();
  for (size_t i = 0; i < copies.size(); ++i) {
    const TranscriptCopy& copy = copies[i];
    json.BeginObject();
    json.Key("number").Uint(i + 1);
    json.Key("path");
    if (copy.record.path.empty())  // told by a host
      json.Null();
    else
      json.PathValue(copy.record.path);
    json.Key("bytes").Uint(copy.record.bytes);
    json.Key("kept_at").String(FormatUtcMillis(copy.kept_ms));
    WriteTextOrNull(json, "agent", copy.record.agent);
    WriteTextOrNull(json, "subagent", copy.record.subagent);
    json.Key("latest").Bool(copy.latest);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

// The conversation itself last: what a subagent, or an earlier file, said is asked for.
size_t UsualCopy(const std::vector<TranscriptCopy>& copies) {
  for (size_t i = 0; i < copies.size(); ++i)
    if (!copies[i].record.subagent && copies[i].latest) return i;
  return 0;
}

ExitCode ShowTranscript(CommandContext& ctx, OpenedRoot& root, std::string session) {
  auto copies = ListTranscripts(*root.catalog, session);
  if (copies.ok() && copies->empty()) {
    auto known = FindSession(*root.catalog, session);
    if (!known.ok()) return FailOnStore(ctx, known.error());
    session = *known;  // the beginning of an id is enough
    copies = ListTranscripts(*root.catalog, session);
  }
  if (!copies.ok()) return FailOnStore(ctx, copies.error());
  if (copies->empty())
    return ctx.term.Fail(
        Error(Errc::kNotFound,
              StrCat("no copy of a transcript of session ", EscapeText(session)))
            .WithHint("copies are made while transcripts = \"keep\"; "
                      "belay sessions --json says which sessions have one"));
  if (ctx.term.json()) {
    JsonWriter json;
    WriteCopies(session, *copies, json);
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  size_t chosen = UsualCopy(*copies);
  if (auto number = ctx.args.value("--copy")) {
    size_t value = 0;
    auto [end, problem] =
        std::from_chars(number->data(), number->data() + number->size(), value);
    if (problem != std::errc() || end != number->data() + number->size() ||
        value == 0 || value > copies->size())
      return ctx.term.FailUsage(
          StrCat("--copy takes a number from 1 to ", std::to_string(copies->size())),
          "belay sessions transcript ID --json");
    chosen = value - 1;
  }
  auto hold = root.store().HoldForReading();
  if (!hold.ok()) return ctx.term.Fail(hold.error());
  Status read = ReadTranscriptCopy(root.store(), (*copies)[chosen],
                                   [&](ByteSpan piece) -> Status {
                                     ctx.term.Out(AsText(piece));
                                     if (ctx.term.out_failed())
                                       return Error(Errc::kIo, "");
                                     return Ok();
                                   });
  if (!read.ok() && !ctx.term.out_failed()) {
    Error error = read.error();
    if (error.code == Errc::kNotFound) error.code = Errc::kCorrupt;
    return ctx.term.Fail(error);
  }
  return ExitCode::kOk;
}

}  // namespace

ExitCode CmdSessions(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  const std::string_view verb = words.empty() ? std::string_view() : words[0];
  const bool deletes = verb == "delete", shows = verb == "transcript";
  if (!words.empty() && words.size() < 2)
    return ctx.term.FailUsage(StrCat(verb, " needs ID"));
  if (ctx.args.has("--all") && !words.empty())
    return ctx.term.FailUsage(deletes ? "a session is deleted in every directory"
                                      : "a session is known by its ID alone");
  if (ctx.args.has("--yes") && !deletes)
    return ctx.term.FailUsage("--yes goes with delete");
  if (ctx.args.has("--copy") && !shows)
    return ctx.term.FailUsage("--copy goes with transcript");
  if (ctx.args.has("--all")) return ListAll(ctx);
  auto root = OpenRoot(ctx, deletes ? NeedsRoot::kRecorded : NeedsRoot::kKnown);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  if (shows) return ShowTranscript(ctx, *root, std::string(words[1]));
  return deletes ? Delete(ctx, *root, std::string(words[1]))
                 : List(ctx, root->store(), *root->catalog, &root->root);
}

}  // namespace belay
