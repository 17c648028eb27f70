#include "agent/resume.h"

#include "agent/rewind_internal.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "core/chat.h"
#include "core/transcripts.h"

namespace belay {

namespace {

// `as`: who goes on; empty: the agent begins anew.
Resumption GoingOnAs(const ChatRecord& chat, const std::string& as) {
  Resumption out{.session = as.empty() ? chat.session : as,
                 .anew = as.empty(),
                 .agent = AgentNamed(chat.agent).value_or(AgentKind::kGeneric),
                 .cwd = chat.cwd};
  out.command = ResumeCommand(out.agent, out.session);
  if (out.anew && !out.command.empty()) out.command.resize(1);
  return out;
}

}  // namespace

bool IsPromptCut(std::string_view prompt) {
  return prompt.size() + 3 >= kMaxPrompt;  // a character may be missing at its end
}

Resumption ResumptionOf(const ChatRecord& chat) {
  return GoingOnAs(chat, chat.hosted ? chat.session : chat.forked);
}

Resumption ResumptionOf(const ChatRecord& chat, const ChatStanding& stands) {
  return GoingOnAs(chat, stands.goes_on);
}

Result<Resumption> PlanResume(Catalog& catalog, const std::string& session) {
  BELAY_TRY(const Chats chats, Chats::Read(catalog));
  const Chats::GoesOn on = chats.Follow(session);
  auto known = LookUp(catalog, on.session);
  // It was deleted here, and the agent has it still.
  if (!known.ok() && known.error().code == Errc::kNotFound && on.by != nullptr &&
      !BELAY_MUTANT("deleted-forks-are-not-resumed"))
    known = AboutSession{
        .agent = on.by->chat->agent,
        .kind = AgentNamed(on.by->chat->agent).value_or(AgentKind::kGeneric),
        .cwd = ""};
  if (!known.ok()) return std::move(known).error();
  const AboutSession& about = *known;
  Resumption out{.session = on.session,
                 .anew = on.anew,
                 .agent = about.kind,
                 .command = ResumeCommand(about.kind, on.session),
                 .cwd = about.cwd};
  if (on.by != nullptr && out.cwd.empty()) {
    BELAY_TRY(out.cwd, CwdNow(catalog, *on.by));
  }
  if (out.anew && !out.command.empty()) out.command.resize(1);
  if (out.command.empty())
    return Error(
        Errc::kUnsupported,
        about.agent.empty()
            ? "which agent session " + EscapeText(session) + " is of was not recorded"
            : "session " + EscapeText(session) + " is of " + EscapeText(about.agent) +
                  ", and how that goes on with one is not known");
  return out;
}

Status CheckResumable(Fs& fs, Catalog& catalog, const Resumption& resumption) {
  if (resumption.anew || BELAY_MUTANT("resume-what-is-gone")) return Ok();
  // Others have no file of their own that would have to be there.
  if (resumption.agent == AgentKind::kGeneric ||
      !CheckConversation(resumption.agent).ok())
    return Ok();
  std::string at;
  const Operation* by = nullptr;  // what made it
  BELAY_TRY(const auto record, LatestSession(catalog, resumption.session));
  if (record) at = record->transcript_path.value_or("");
  BELAY_TRY(const Chats chats, Chats::Read(catalog));
  for (const Operation& operation : chats.in_effect())
    if (operation.chat->forked == resumption.session) {
      if (at.empty()) at = operation.chat->path;
      by = &operation;
    }
  auto path = AbsPath::Parse(at);
  if (!path.ok()) return Ok();  // where it is was not said
  auto file = OpenTranscript(fs, *path);
  if (file.ok() || file.error().code != Errc::kNotFound) return Ok();
  Error gone(Errc::kRefused, "the conversation of session " +
                                 EscapeText(resumption.session) +
                                 " is gone: " + EscapeForDisplay(at));
  BELAY_TRY(const auto copies, ListTranscripts(catalog, resumption.session));
  if (!copies.empty() || BELAY_MUTANT("what-is-gone-is-shown"))
    gone.hint = "see what is left of it with: belay sessions transcript " +
                ShellWord(resumption.session);
  // What it was cut from is there, and goes on again.
  if (by == nullptr || by->released) return gone;
  BELAY_TRY(const auto original, LatestSession(catalog, by->chat->session));
  const auto from =
      AbsPath::Parse(original ? original->transcript_path.value_or("") : std::string());
  if (from.ok() && OpenTranscript(fs, *from).ok())
    gone.hint += std::string(gone.hint.empty() ? "" : "; ") + "go on with session " +
                 EscapeText(by->chat->session) + " as it was before: belay undo " +
                 by->id.text().substr(0, 7);
  return gone;
}

}  // namespace belay
