#include "cli/chat_view.h"

#include "agent/resume.h"
#include "agent/summary.h"
#include "base/escape.h"
#include "cli/open_store.h"
#include "cli/text.h"

namespace belay {

namespace {

std::string AsOneLine(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command)
    text += StrCat(text.empty() ? "" : " ", ShellWord(word));
  return text;
}

}  // namespace

std::string ShownText(const std::string& words) {
  std::string text;
  size_t begin = 0;
  while (begin <= words.size()) {
    const size_t end = std::min(words.size(), words.find('\n', begin));
    std::string line = words.substr(begin, end - begin);
    if (line.ends_with('\r') && end < words.size()) line.pop_back();
    text += StrCat(EscapeText(line), "\n");
    begin = end + 1;
  }
  return text;
}

AgentPrograms ProgramsOf(const Environment& env) {
  return {.exec_path = env.exec_path, .environment = env.all};
}

std::string_view ScopeName(const std::optional<ChatRecord>& chat) {
  return !chat ? "code" : chat->alone ? "chat" : "both";
}

namespace {

// Not what a host said before the first turn.
bool IsWithinTurn(const ChatRecord& chat) {
  return chat.turn && chat.inside && chat.inherited > 0;
}

void WriteGoingOn(const ChatRecord& chat, const Resumption& resumption, bool dry_run,
                  bool undone, JsonWriter& json) {
  auto text = [&](std::string_view key, const std::string& value) {
    json.Key(key);
    if (value.empty())
      json.Null();
    else
      json.PathValue(value);
  };
  // What a fork would be called is not known before it is made.
  json.BeginObject();
  json.Key("agent").PathValue(chat.agent);
  json.Key("session").PathValue(chat.session);
  text("forked", dry_run ? "" : chat.forked);
  text("goes_on",
       resumption.anew || (dry_run && !chat.hosted) ? "" : resumption.session);
  text("resume", dry_run ? "" : AsOneLine(resumption.command));
  text("cwd", chat.cwd);
  text("prompt", chat.prompt);
  json.Key("prompt_cut").Bool(IsPromptCut(chat.prompt));
  json.Key("messages_taken_back").Uint(chat.taken);
  json.Key("messages_kept").Uint(chat.kept);
  const bool inside = IsWithinTurn(chat);
  json.Key("turn").Uint(inside ? chat.inherited : chat.turn);
  json.Key("inside_turn").Bool(inside);
  text("message", chat.message.value_or(""));
  json.Key("message_index").Uint(chat.message_index);
  text("transcript", dry_run ? "" : chat.path);
  json.Key("summarized");
  if (chat.summary) {
    json.BeginObject();
    json.Key("first_turn").Uint(chat.summary->first);
    json.Key("last_turn").Uint(chat.summary->last);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("undone").Bool(undone);
  json.EndObject();
}

}  // namespace

void WriteChat(const std::optional<ChatRecord>& chat, bool dry_run, JsonWriter& json) {
  if (chat)
    WriteGoingOn(*chat, ResumptionOf(*chat), dry_run, false, json);
  else
    json.Null();
}

void WriteChatAgain(const ChatRecord& chat, const ChatStanding& stands,
                    JsonWriter& json) {
  WriteGoingOn(chat, ResumptionOf(chat, stands), false, stands.undone, json);
}

std::string ResumeText(const Resumption& resumption,
                       const std::optional<AbsPath>& cwd) {
  if (resumption.command.empty()) return {};
  std::string words = AsOneLine(resumption.command);
  if (resumption.cwd.empty() || (cwd && cwd->bytes() == resumption.cwd)) return words;
  return StrCat("cd ", ShellWord(resumption.cwd), " && ", words);
}

std::string ChatTitle(const ChatRecord& chat, bool brief) {
  constexpr size_t kBrief = 8;
  const std::string session =
      EscapeText(brief ? chat.session.substr(0, kBrief) : chat.session);
  if (chat.summary)
    return StrCat("summary of ", TurnsText(chat.summary->first, chat.summary->last),
                  " of session ", session);
  if (!brief) return StrCat("rewind of ", TakenText(chat));
  const std::string to = IsWithinTurn(chat)
                             ? StrCat(" into turn ", std::to_string(chat.inherited))
                         : chat.turn ? StrCat(" to turn ", std::to_string(*chat.turn))
                                     : std::string();
  return StrCat("rewind", to,
                chat.taken ? StrCat(" (", CountText(*chat.taken, "message"), ")") : "",
                " of session ", session);
}

bool NothingIsLeft(const RewindPlan& plan) {
  const ChatRecord& chat = plan.chat.record;
  return !plan.native && !chat.hosted && chat.forked.empty();
}

std::string BelayResume(const std::string& session) {
  return StrCat("belay resume ", session.starts_with('-') ? "-- " : "",
                ShellWord(session));
}

std::string TakenText(const ChatRecord& chat) {
  std::string text = chat.taken ? StrCat(CountText(*chat.taken, "message"), " of ")
                                : "what was said in ";
  text += StrCat("session ", EscapeText(chat.session));
  if (IsWithinTurn(chat))
    text += StrCat(", from message ", EscapeText(chat.message.value_or("?")),
                   " in turn ", std::to_string(chat.inherited), " on");
  else if (chat.turn && !chat.inside)
    text += StrCat(", from turn ", std::to_string(*chat.turn), " on");
  else if (chat.message)
    text += StrCat(", from message ", EscapeText(*chat.message), " on");
  return text;
}

void SayChat(CommandContext& ctx, const ChatRecord& chat, const std::string& prompt) {
  Terminal& term = ctx.term;
  const Resumption resumption = ResumptionOf(chat);
  const bool several = chat.taken && *chat.taken != 1;
  term.Say(StrCat("took back ", TakenText(chat)));
  term.Say(StrCat("  ", several ? "they are" : "it is",
                  " kept, and `belay undo` makes ", several ? "them" : "it",
                  " count again"));
  if (chat.hosted) {
    term.Say(StrCat("  ", EscapeText(chat.agent),
                    " keeps the conversation itself; it is told by `belay events`"));
  } else {
    term.Say(resumption.anew
                 ? std::string("  nothing is left of it: the agent begins anew")
                 : StrCat("  it goes on as session ", EscapeText(chat.forked)));
    term.Say(StrCat("  go on with: ", ResumeText(resumption, ctx.env.cwd)));
    term.Say(StrCat("         or: ", BelayResume(chat.session)));
    term.Say("  a session that is open in a terminal does not read its file again:");
    term.Say("  leave it first");
  }
  if (prompt.empty()) return;
  if (IsPromptCut(prompt))
    term.Warn(StrCat("only the first ", SizeText(prompt.size()),
                     " of the prompt are shown; all of it is in the original: "
                     "belay sessions transcript ",
                     ShellWord(chat.session)));
  term.Say("  the prompt that was taken back, to be edited:");
  term.Out(ShownText(prompt));
}

void SayChatAgain(CommandContext& ctx, const ChatRecord& chat,
                  const ChatStanding& stands) {
  const Resumption resumption = ResumptionOf(chat, stands);
  if (chat.hosted) {
    std::string how = " was taken back again";
    if (stands.undone && !stands.kept)
      how = " counts again, all of it";
    else if (stands.undone && !stands.kept->message && !stands.kept->message_index)
      how = StrCat(" counts again up to its end, turn ",
                   std::to_string(stands.kept->turn),
                   "; what was taken back before stays so");
    else if (stands.undone)
      how = StrCat(" counts again up to turn ", std::to_string(stands.kept->turn),
                   ", where it was taken back before");
    ctx.term.Say(StrCat("  the conversation of session ", EscapeText(chat.session), how,
                        "; its host is told by `belay events`"));
    return;
  }
  ctx.term.Say(StrCat("  the conversation goes on ",
                      resumption.anew
                          ? std::string("anew")
                          : StrCat("as session ", EscapeText(resumption.session)),
                      ": ", ResumeText(resumption, ctx.env.cwd)));
}

}  // namespace belay
