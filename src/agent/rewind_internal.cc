#include "agent/rewind_internal.h"

#include <algorithm>
#include <cerrno>

#include "agent/rewind.h"
#include "agent/turn_match.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "core/roots.h"

namespace belay {

Result<AboutSession> LookUp(Catalog& catalog, const std::string& session) {
  AboutSession out;
  BELAY_TRY(auto record, LatestSession(catalog, session));
  if (record) {
    out.agent = record->agent.value_or("");
    out.cwd = record->cwd;
  }
  if (out.agent.empty()) {
    BELAY_TRY(auto newest, catalog.ListCheckpoints({.session = session, .limit = 1}));
    if (!newest.empty()) out.agent = newest[0].checkpoint.agent.value_or("");
  }
  if (!record && out.agent.empty())
    return Error(Errc::kNotFound, "there is no session " + EscapeText(session))
        .WithHint(
            "see them with: belay sessions; of all directories: belay sessions --all");
  out.kind = AgentNamed(out.agent).value_or(AgentKind::kGeneric);
  return out;
}

Error NoTurn(const std::string& session, uint64_t turn) {
  return Error(Errc::kNotFound, "session " + EscapeText(session) + " has no turn " +
                                    std::to_string(turn))
      .WithHint("see what there is with: belay list --session " + ShellWord(session));
}

const TurnOf* FindTurn(const std::vector<TurnOf>& turns, uint64_t number) {
  for (const TurnOf& one : turns)
    if (one.turn.turn == number) return &one;
  return nullptr;
}

namespace {

// What made the summary that stands for the turn in the conversation of the lineage;
// null when it is there itself. The last on the way to where it was said knows it.
const ChatRecord* StandsFor(const ChatLog& log, const Lineage& lineage,
                            const TurnRecord& turn) {
  const ChatRecord* by = nullptr;
  for (const Generation& at : lineage.generations()) {
    if (at.session == turn.session) break;
    for (const auto& [_, all] : log.operations)
      for (const Operation& operation : all)
        if (const ChatRecord& chat = *operation.chat;
            chat.summary && chat.forked == at.session &&
            chat.summary->first <= turn.turn && turn.turn <= chat.summary->last)
          by = &chat;
  }
  return by;
}

// The prompt as copies have it whose directory was forked on the way to one of those.
// `from`: what the directory was called that it was said in.
std::vector<std::string> ReadIn(const std::vector<AbsPath>& directories,
                                const std::vector<AbsPath>& from,
                                const std::string& prompt) {
  std::vector<std::string> out;
  size_t longest = 0;
  for (const AbsPath& one : from) {
    if (prompt.find(one.bytes()) == std::string::npos) continue;
    longest = std::max(longest, one.bytes().size());
  }
  if (longest == 0) return out;
  for (const AbsPath& to : directories) {
    std::string reads = InForkedDirectory(prompt, from, to);
    if (reads == prompt) continue;
    // Where it is cut a path may be, of which nobody knows how it goes on.
    const size_t unsure = std::max(longest, to.bytes().size()) + 4;
    if (IsPromptCutInLog(prompt))
      reads.resize(reads.size() - std::min(reads.size(), unsure));
    out.push_back(std::move(reads));
  }
  return out;
}

}  // namespace

Status KnowTurns(Catalog& catalog, const std::string& session, const AbsPath& here,
                 ConversationPoint& point) {
  BELAY_TRY(const auto turns, AllTurnsOf(catalog, session));
  BELAY_TRY(const ChatLog log, ChatLog::Read(catalog));
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  BELAY_TRY(const RootPaths paths, RootPaths::Read(catalog));
  std::vector<AbsPath> directories = paths.Of(here);
  for (const TurnOf& one : turns)
    for (AbsPath& path : paths.Of(one.root))
      if (std::ranges::find(directories, path) == directories.end())
        directories.push_back(std::move(path));
  for (const TurnOf& one : turns) {
    if (StandsFor(log, lineage, one.turn) != nullptr) continue;
    point.turns.push_back(one.turn);
    point.read_in.push_back(
        BELAY_MUTANT("words-are-compared-as-they-were-said")
            ? std::vector<std::string>()
            : ReadIn(directories, paths.Of(one.root), one.turn.prompt));
  }
  if (!turns.empty()) point.newest = turns.back().turn.turn;
  return Ok();
}

Status CheckOneTurn(Catalog& catalog, const std::string& session, uint64_t number,
                    std::string_view here) {
  BELAY_TRY(const auto turns, AllTurnsOf(catalog, session));
  size_t same = 0;
  for (const TurnOf& one : turns) {
    if (one.turn.turn != number) continue;
    if (one.directory == here) return Ok();
    ++same;
  }
  if (same < 2 || BELAY_MUTANT("one-of-two-turns-is-meant")) return Ok();
  return Error(Errc::kRefused, "session " + EscapeText(session) + " has " +
                                   std::to_string(same) + " turns " +
                                   std::to_string(number) +
                                   ", of several directories, and none of this one")
      .WithHint("name the message by the agent's own id: belay rewind " +
                ShellWord(session) + " --to ID");
}

Status CheckSaid(Catalog& catalog, const std::string& session, const TurnRecord& turn) {
  BELAY_TRY(const ChatLog log, ChatLog::Read(catalog));
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  const ChatRecord* by = StandsFor(log, lineage, turn);
  if (by == nullptr || BELAY_MUTANT("a-summary-is-a-prompt")) return Ok();
  const std::string number = std::to_string(turn.turn);
  return Error(Errc::kNotFound, "a summary stands for turn " + number +
                                    " in the conversation of session " +
                                    EscapeText(session))
      .WithHint("it is in the original: belay rewind " + ShellWord(by->session) +
                " --to turn:" + number);
}

Status TakeFiles(Fs& fs, const ConversationFork& fork, ChatPlan& chat) {
  // The agent's place may be a link to where it really is.
  AbsPath dir = fork.files.back().path.parent();
  if (fork.agent == AgentKind::kCopilot) {
    chat.folder = dir.bytes().substr(dir.bytes().rfind('/') + 1);
    dir = dir.parent();
  }
  auto real = fs.RealPath(dir);
  if (!real.ok() && real.error().code == Errc::kNotFound)
    return Error(Errc::kNotFound, "the directory of the conversation is gone: " +
                                      EscapeForDisplay(dir.bytes()))
        .WithHint(
            "make it again, so that the agent finds there what goes on: "
            "mkdir -p " +
            ShellWord(dir.bytes()));
  if (!real.ok()) return std::move(real).error();
  if (const auto there = fs.OpenDir(*real); !there.ok())
    return Error(there.error().code,
                 "the directory of the conversation, " + EscapeForDisplay(dir.bytes()) +
                     (there.error().sys == ENOTDIR ? ", is no directory"
                                                   : ", cannot be entered"));
  chat.dir = std::move(*real);
  chat.uid = fork.uid;
  chat.gid = fork.gid;
  for (const ConversationFile& file : fork.files)
    chat.files.push_back(
        {.name = file.path.bytes().substr(file.path.bytes().rfind('/') + 1),
         .mode = BELAY_MUTANT("fork-readable-by-all") ? 0644 : file.mode,
         .content = file.content});
  chat.record.path = fork.files.back().path.bytes();
  return Ok();
}

}  // namespace belay
