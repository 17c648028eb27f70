#include "agent/conversation.h"

#include <algorithm>
#include <memory>

#include "agent/conversation_internal.h"
#include "agent/transcript_internal.h"
#include "agent/transcript_lines.h"
#include "base/escape.h"
#include "base/sha256.h"

namespace belay {
namespace {

constexpr size_t kSmallFile = 1 << 20;

Result<AbsPath> Sibling(const AbsPath& path, std::string_view name) {
  BELAY_TRY(const RelPath below, RelPath::Parse(name));
  return path.parent().Join(below);
}

// As much of a prompt as the log may keep of it, without the blanks around it.
std::string_view Words(std::string_view text) {
  constexpr size_t kKept = 4000;
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
  return CutText(text, kKept);
}

// Of prompts with the same words the one that is as far from the last of them as the
// turn is from the last such turn: what is missing is missing at the beginning.
const TranscriptPrompt* FindByWords(const Transcript& transcript,
                                    const TurnRecord& wanted,
                                    const std::vector<TurnRecord>& turns) {
  const auto words = Words;
  uint64_t later = 0;
  for (const TurnRecord& turn : turns)
    later += turn.turn > wanted.turn && words(turn.prompt) == words(wanted.prompt);
  for (size_t i = transcript.prompts.size(); i > 0; --i) {
    const TranscriptPrompt& prompt = transcript.prompts[i - 1];
    if (words(prompt.text) != words(wanted.prompt)) continue;
    if (later == 0) return &prompt;
    --later;
  }
  return nullptr;
}

Result<CutPoint> FindTurn(const Transcript& transcript, const ConversationPoint& point,
                          ConversationFork& fork) {
  const TurnRecord& wanted = *point.turn;
  BELAY_TRY(const TranscriptPrompt* found, FindPrompt(transcript, wanted, point.turns));
  fork.prompt = found->text;
  fork.first_taken = found->anchor;
  fork.turn = wanted.turn;
  fork.inherited = wanted.turn - 1;
  return Before(*found);
}

Result<CutPoint> FindMessage(const Transcript& transcript,
                             const ConversationPoint& point, ConversationFork& fork) {
  const std::string& id = *point.message;
  fork.first_taken = id;
  for (const TranscriptPrompt& prompt : transcript.prompts)
    if (prompt.anchor == id || prompt.record == id) {
      fork.prompt = prompt.text;
      fork.turn = TurnOfPrompt(prompt, point.turns);
      if (fork.turn) fork.inherited = *fork.turn - 1;
      return Before(prompt);
    }
  const TranscriptMessage* found = nullptr;
  for (const TranscriptMessage& message : transcript.messages)
    if (message.id == id && (found == nullptr || found->dead)) found = &message;
  if (found == nullptr)
    return Error(Errc::kNotFound,
                 "the conversation has no message " + EscapeForDisplay(id));
  // The turn it belongs to stays in part.
  for (const TranscriptPrompt& prompt : transcript.prompts)
    if (found->prompt && prompt.index == *found->prompt)
      if (const auto turn = TurnOfPrompt(prompt, point.turns)) {
        fork.inherited = *turn;
        fork.turn = *turn + 1;
        fork.inside = true;
      }
  return Before(*found);
}

// What the agent will call the copy.
Result<AbsPath> CopyPath(const ForkRequest& request, const std::string& old_id,
                         const std::string& session) {
  const AbsPath& at = request.place.value_or(request.transcript);
  switch (request.agent) {
    case AgentKind::kClaude:
    case AgentKind::kQwen:
      return Sibling(at, session + ".jsonl");
    case AgentKind::kCodex: {
      // rollout-2026-11-15T01-43-12-<id>.jsonl
      std::string name = at.name();
      const size_t id = name.find(old_id);
      name = id == std::string::npos ? "rollout-" : name.substr(0, id);
      return Sibling(at, name + session + ".jsonl");
    }
    case AgentKind::kGemini: {
      // session-2026-11-15T01-43-<the first 8 of the id>.jsonl
      const std::string name = at.name();
      const size_t id = name.rfind('-');
      return Sibling(at, name.substr(0, id == std::string::npos ? 0 : id + 1) +
                             session.substr(0, 8) + ".jsonl");
    }
    case AgentKind::kCopilot: {
      BELAY_TRY(const AbsPath dir, Sibling(at.parent(), session));
      return dir.Join(Name::Literal("events.jsonl"));
    }
    default:
      return Error(Errc::kUnsupported, "not a file");
  }
}

// A small file that goes with the transcript, with the id of the fork in it.
std::string Replaced(std::string text, const std::vector<TranscriptSwap>& swaps) {
  for (const TranscriptSwap& swap : swaps) {
    if (swap.from.empty()) continue;
    size_t at = 0;
    while ((at = text.find(swap.from, at)) != std::string::npos) {
      // Not of a directory whose name only begins so.
      const size_t behind = at + swap.from.size();
      const bool longer =
          swap.kind == TranscriptSwap::Kind::kPath && behind < text.size() &&
          std::string_view("/ \t\r\n\"',").find(text[behind]) == std::string_view::npos;
      if (longer) {
        at = behind;
        continue;
      }
      text.replace(at, swap.from.size(), swap.to);
      at += swap.to.size();
    }
  }
  return text;
}

Status AddCompanion(Fs& fs, const ForkRequest& request,
                    const std::vector<TranscriptSwap>& swaps, const AbsPath& copy,
                    ConversationFork& fork) {
  if (request.agent != AgentKind::kCopilot) return Ok();
  BELAY_TRY(const AbsPath from,
            Sibling(request.place.value_or(request.transcript), "workspace.yaml"));
  auto file = OpenTranscript(fs, from);
  if (!file.ok() && file.error().code == Errc::kNotFound) return Ok();
  if (!file.ok()) return std::move(file).error();
  BELAY_TRY(const FileStat stat, fs.Stat(*file));
  if (stat.size > kSmallFile)
    return Error(Errc::kInvalid, EscapeForDisplay(from.bytes()) + " is too long");
  Bytes bytes(stat.size);
  BELAY_TRY(const size_t got, ReadFull(fs, *file, 0, bytes));
  std::string text = Replaced(std::string(AsText(ByteSpan(bytes).first(got))), swaps);
  BELAY_TRY(AbsPath path, Sibling(copy, "workspace.yaml"));
  fork.files.push_back(
      {.path = std::move(path),
       .mode = stat.mode & 0777,
       .size_at_most = text.size(),
       .content = [text = std::move(text)](const TranscriptSink& sink) {
         return sink(AsBytes(text));
       }});
  return Ok();
}

}  // namespace

Result<const TranscriptPrompt*> FindPrompt(const Transcript& transcript,
                                           const TurnRecord& turn,
                                           const std::vector<TurnRecord>& turns) {
  const TranscriptPrompt* found = nullptr;
  if (turn.anchor)
    for (const TranscriptPrompt& prompt : transcript.prompts)
      if (prompt.anchor == *turn.anchor && (found == nullptr || found->dead))
        found = &prompt;
  // Told by settings to keep neither.
  if (!turn.anchor && Words(turn.prompt).empty())
    return Error(Errc::kNotFound, "neither an id nor the words of turn " +
                                      std::to_string(turn.turn) +
                                      " were recorded (transcripts = \"off\")")
        .WithHint(
            "name the message by the agent's own id: belay rewind SESSION --to ID");
  if (found == nullptr) found = FindByWords(transcript, turn, turns);
  if (found == nullptr)
    return Error(Errc::kNotFound, "the conversation has no turn " +
                                      std::to_string(turn.turn) + ": " +
                                      EscapeForDisplay(Excerpt(turn.prompt)))
        .WithHint(
            "the agent has not written it down: not yet, it was refused, or it is gone "
            "since");
  return found;
}

std::optional<uint64_t> TurnOfPrompt(const TranscriptPrompt& prompt,
                                     const std::vector<TurnRecord>& turns) {
  for (const TurnRecord& turn : turns)
    if (turn.anchor && (*turn.anchor == prompt.anchor || *turn.anchor == prompt.record))
      return turn.turn;
  std::optional<uint64_t> found;
  for (const TurnRecord& turn : turns)
    if (Words(turn.prompt) == Words(prompt.text)) found = turn.turn;
  return found;
}

std::string OldIdOf(const ForkRequest& request, const Transcript& transcript) {
  return transcript.session.empty() ? request.session : transcript.session;
}

std::vector<TranscriptSwap> SwapsFor(const ForkRequest& request,
                                     const std::string& old_id,
                                     const std::string& session) {
  std::vector<TranscriptSwap> swaps = {{.from = old_id, .to = session}};
  if (request.session != old_id)
    swaps.push_back({.from = request.session, .to = session});
  if (request.moved)
    swaps.push_back({.kind = TranscriptSwap::Kind::kPath,
                     .from = request.moved->from.bytes(),
                     .to = request.moved->to.bytes()});
  // Copilot CLI writes down where it keeps it.
  if (request.agent == AgentKind::kCopilot)
    if (const auto copy = CopyPath(request, old_id, session); copy.ok())
      swaps.push_back({.kind = TranscriptSwap::Kind::kPath,
                       .from = request.place.value_or(request.transcript).bytes(),
                       .to = copy->bytes()});
  // Gemini CLI writes a digest of the directory into its conversations.
  if (request.moved && request.agent == AgentKind::kGemini)
    swaps.push_back({.from = Sha256::Of(AsBytes(request.moved->cwd_from)).hex(),
                     .to = Sha256::Of(AsBytes(request.moved->cwd_to)).hex()});
  return swaps;
}

Status AddForkFiles(Fs& fs, const ForkRequest& request, const std::string& old_id,
                    const std::vector<TranscriptSwap>& swaps,
                    ConversationFile transcript, ConversationFork& fork) {
  BELAY_TRY(transcript.path, CopyPath(request, old_id, fork.session));
  BELAY_OK(AddCompanion(fs, request, swaps, transcript.path, fork));
  fork.files.push_back(std::move(transcript));
  return Ok();
}

std::string NewUuid(Random& random) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::byte bytes[16];
  random.Fill(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  std::string out;
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += kHex[std::to_integer<unsigned>(bytes[i]) >> 4];
    out += kHex[std::to_integer<unsigned>(bytes[i]) & 15];
  }
  return out;
}

std::vector<std::string> ResumeCommand(AgentKind agent, std::string_view session) {
  const std::string id(session);
  switch (agent) {
    case AgentKind::kClaude:
      return {"claude", "--resume", id};
    case AgentKind::kCodex:
      return {"codex", "resume", id};
    case AgentKind::kOpencode:
      return {"opencode", "-s", id};
    case AgentKind::kGemini:
      return {"gemini", "-r", id};
    case AgentKind::kQwen:
      return {"qwen", "-r", id};
    case AgentKind::kCopilot:
      return {"copilot", "--resume", id};
    case AgentKind::kReasonix:
      return {"reasonix", "run", "--resume", id};
    case AgentKind::kCline:
      return {"cline", "--id", id};
    default:
      return {};
  }
}

Status CheckConversation(AgentKind agent) {
  switch (agent) {
    case AgentKind::kClaude:
    case AgentKind::kCodex:
    case AgentKind::kGemini:
    case AgentKind::kQwen:
    case AgentKind::kCopilot:
      return Ok();
    case AgentKind::kGeneric:
      return Error(Errc::kUnsupported,
                   "the host keeps this conversation itself: it is told by "
                   "`belay events` what to take back");
    default:
      return Error(Errc::kUnsupported, "the conversation of " +
                                           std::string(AgentName(agent)) +
                                           " cannot be taken back from outside");
  }
}

Result<ConversationFork> PlanConversationFork(Fs& fs, Random& random,
                                              const ForkRequest& request) {
  BELAY_OK(CheckConversation(request.agent));
  BELAY_TRY(const Transcript transcript,
            ReadTranscript(fs, request.agent, request.transcript));
  ConversationFork fork{.agent = request.agent, .parent = request.session};
  fork.session = NewUuid(random);
  const bool whole = !request.point.message && !request.point.turn;
  CutPoint point;
  if (request.point.message) {
    BELAY_TRY(point, FindMessage(transcript, request.point, fork));
  } else if (!whole) {
    BELAY_TRY(point, FindTurn(transcript, request.point, fork));
  } else if (!request.point.turns.empty()) {
    fork.inherited = request.point.turns.back().turn;
  }
  BELAY_TRY(Fd opened, OpenTranscript(fs, request.transcript));
  const auto file = std::make_shared<const Fd>(std::move(opened));
  BELAY_TRY(const FileStat stat, fs.Stat(*file));
  TranscriptCut cut;
  if (whole) {
    BELAY_TRY(cut, PlanWhole(fs, request.agent, *file, transcript));
  } else {
    BELAY_TRY(cut, PlanCut(fs, request.agent, *file, transcript, point));
  }

  fork.refers = transcript.refers;
  fork.uid = stat.uid;
  fork.gid = stat.gid;

  const std::string old_id = OldIdOf(request, transcript);
  const std::vector<TranscriptSwap> swaps = SwapsFor(request, old_id, fork.session);

  uint64_t bytes = 0;
  for (const TranscriptCut::Piece& piece : cut.pieces)
    bytes += piece.end - piece.offset + 1;
  bool first = point.is_prompt;
  for (const TranscriptMessage& message : transcript.messages) {
    if (message.dead) continue;
    const bool kept = cut.Holds(message);
    ++(kept ? fork.kept_messages : fork.taken_messages);
    if (kept || first) continue;
    first = true;
    if (!message.id.empty()) fork.first_taken = message.id;
  }
  for (const TranscriptPrompt& prompt : transcript.prompts)
    if (!prompt.dead && cut.Holds(prompt)) ++fork.kept_turns;

  BELAY_OK(AddForkFiles(fs, request, old_id, swaps,
                        {.path = request.transcript,
                         .mode = stat.mode & 0777,
                         .size_at_most = bytes + bytes / 8,
                         .content =
                             [&fs, file, cut, swaps](const TranscriptSink& sink) {
                               return CopyCut(fs, *file, cut, swaps, sink);
                             }},
                        fork));
  return fork;
}

}  // namespace belay
