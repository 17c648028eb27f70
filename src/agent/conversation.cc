#include "agent/conversation.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "agent/aftermath.h"
#include "agent/conversation_internal.h"
#include "agent/json.h"
#include "agent/transcript_internal.h"
#include "agent/transcript_lines.h"
#include "agent/turn_match.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/mutant.h"
#include "base/sha256.h"

namespace belay {
namespace {

constexpr size_t kSmallFile = 1 << 20;

Result<AbsPath> Sibling(const AbsPath& path, std::string_view name) {
  BELAY_TRY(const RelPath below, RelPath::Parse(name));
  return path.parent().Join(below);
}

Result<CutPoint> FindTurn(const Transcript& transcript, const ConversationPoint& point,
                          ConversationFork& fork) {
  const TurnRecord& wanted = *point.turn;
  const TurnMatch match(transcript, point);
  BELAY_TRY(const TranscriptPrompt* found, match.Find(wanted));
  fork.prompt = found->text;
  fork.first_taken = found->anchor;
  fork.turn = wanted.turn;
  fork.inherited = wanted.turn - 1;
  return Before(*found);
}

// Before this prompt: the turn that goes first, and up to which they stay.
void CutBefore(const TranscriptPrompt& prompt, const TurnMatch& match,
               ConversationFork& fork) {
  fork.turn = match.TurnOf(prompt);
  if (fork.turn) {
    fork.inherited = *fork.turn - 1;
    return;
  }
  // Nobody told of it.
  fork.recorded = false;
  fork.inherited = match.TurnBefore(prompt);
  if (const uint64_t next = match.TurnBehind(prompt)) fork.turn = next;
}

Result<CutPoint> FindMessage(const Transcript& transcript,
                             const ConversationPoint& point, ConversationFork& fork) {
  const std::string& id = *point.message;
  fork.first_taken = id;
  const TurnMatch match(transcript, point);
  for (const TranscriptPrompt& prompt : transcript.prompts)
    if (prompt.anchor == id || prompt.record == id) {
      fork.prompt = prompt.text;
      CutBefore(prompt, match, fork);
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
    if (found->prompt && prompt.index == *found->prompt) {
      CutBefore(prompt, match, fork);
      if (!fork.recorded) continue;
      fork.inherited = *fork.turn;
      fork.turn = *fork.turn + 1;
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

Status AddCompanion(Fs& fs, const ForkRequest& request,
                    const std::vector<TranscriptSwap>& swaps, const AbsPath& copy,
                    ConversationFork& fork) {
  if (request.agent != AgentKind::kCopilot) return Ok();
  BELAY_TRY(const AbsPath from,
            Sibling(request.place.value_or(request.transcript), "workspace.yaml"));
  auto file = OpenTranscript(fs, from);
  if (!file.ok() && file.error().code == Errc::kNotFound) return Ok();
  if (!file.ok())
    return Error(file.error().code,
                 EscapeForDisplay(from.bytes()) + " " + WhatIsAt(fs, from));
  BELAY_TRY(const FileStat stat, fs.Stat(*file));
  if (stat.size > kSmallFile)
    return Error(Errc::kInvalid, EscapeForDisplay(from.bytes()) + " is too long");
  Bytes bytes(stat.size);
  BELAY_TRY(const size_t got, ReadFull(fs, *file, 0, bytes));
  std::string text = SwapInYaml(AsText(ByteSpan(bytes).first(got)), swaps);
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

std::string InForkedDirectory(const std::string& text, const std::vector<AbsPath>& from,
                              const AbsPath& to) {
  // As it is written in the file, by what copies that.
  JsonWriter written;
  written.BeginArray().String(text).EndArray();
  std::string swapped;
  const Status done = SwapInto(
      PathSwaps(from, to),
      [&](ByteSpan bytes) {
        swapped += AsText(bytes);
        return Ok();
      },
      [&](const TranscriptSink& sink) { return sink(AsBytes(written.Take())); });
  const auto json = Json::Parse(swapped);
  if (!done.ok() || !json.ok()) return text;
  JsonParts parts(*json);
  return parts.Next() ? parts.value().Text().value_or(text) : text;
}

std::string OldIdOf(const ForkRequest& request, const Transcript& transcript) {
  return transcript.session.empty() ? request.session : transcript.session;
}

std::vector<TranscriptSwap> SwapsFor(const ForkRequest& request,
                                     const std::string& old_id,
                                     const std::string& session) {
  using Kind = TranscriptSwap::Kind;
  std::vector<TranscriptSwap> swaps = {
      {.kind = Kind::kId, .from = old_id, .to = session}};
  if (request.session != old_id)
    swaps.push_back({.kind = Kind::kId, .from = request.session, .to = session});
  if (request.moved)
    for (TranscriptSwap& swap : PathSwaps(request.moved->from, request.moved->to))
      swaps.push_back(std::move(swap));
  // Copilot CLI writes down where it keeps it.
  if (request.agent == AgentKind::kCopilot)
    if (const auto copy = CopyPath(request, old_id, session); copy.ok())
      swaps.push_back({.kind = Kind::kPath,
                       .from = request.place.value_or(request.transcript).bytes(),
                       .to = copy->bytes()});
  // Gemini CLI writes a digest of the directory into its conversations.
  if (request.moved && request.agent == AgentKind::kGemini)
    for (const std::string& cwd : request.moved->cwd_from)
      swaps.push_back({.kind = Kind::kId,
                       .from = Sha256::Of(AsBytes(cwd)).hex(),
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

Error OnlyRefers(const ForkRequest& request, const Transcript& transcript,
                 const std::optional<uint64_t>& first) {
  const bool own = transcript.refers_to == request.session;
  std::string what = "the file of session " + EscapeText(request.session) +
                     " has only what was said since " +
                     std::string(AgentName(request.agent)) +
                     (own ? " went back in it itself" : " forked it");
  if (first) what += ", from turn " + std::to_string(*first) + " on";
  if (own)
    what += "; what came before is in an older file";
  else if (transcript.refers_to)
    what +=
        "; what came before is in that of session " + EscapeText(*transcript.refers_to);
  return {Errc::kUnsupported, std::move(what)};
}

bool ConversationFork::IsEmpty() const {
  return kept_messages == 0 && (counted || kept_turns == 0 ||
                                BELAY_MUTANT("what-is-not-counted-is-not-there"));
}

std::optional<uint64_t> ConversationFork::Kept() const {
  return counted ? std::optional(kept_messages) : std::nullopt;
}

std::optional<uint64_t> ConversationFork::Taken() const {
  // Those that are not counted are the oldest.
  return counted || kept_messages > 0 ? std::optional(taken_messages) : std::nullopt;
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
  BELAY_TRY(Transcript transcript,
            ReadTranscript(fs, request.agent, request.transcript, request.point.turns));
  if (request.until) EndAt(transcript, *request.until);
  ConversationFork fork{.agent = request.agent, .parent = request.session};
  fork.session = NewUuid(random);
  const bool whole = !request.point.message && !request.point.turn;
  CutPoint point;
  if (!whole) {
    auto found = request.point.message ? FindMessage(transcript, request.point, fork)
                                       : FindTurn(transcript, request.point, fork);
    if (!found.ok() && transcript.too_long > 0)
      return std::move(found).error().WithHint("lines of more than " +
                                               std::to_string(kLongestLine >> 20) +
                                               " MiB are not read: it may be in one");
    BELAY_TRY(point, std::move(found));
  } else {
    fork.inherited = request.point.NewestTurn();
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

  fork.spares_calls = cut.spares_calls;
  fork.refers = transcript.refers;
  fork.counted = transcript.messages_left_out == 0;
  fork.uid = stat.uid;
  fork.gid = stat.gid;

  const std::string old_id = OldIdOf(request, transcript);
  const std::vector<TranscriptSwap> swaps = SwapsFor(request, old_id, fork.session);

  uint64_t bytes = 0;
  for (const TranscriptCut::Piece& piece : cut.pieces)
    bytes += piece.end - piece.offset + 1;
  // Codex's own rewind says in the file what it took back, and the copy says it, too.
  const auto gone = [&](const TranscriptPrompt& prompt) {
    return prompt.dead && prompt.dead_since &&
           (whole || *prompt.dead_since < point.offset) &&
           !BELAY_MUTANT("what-codex-took-back-is-kept");
  };
  std::unordered_set<uint64_t> gone_prompts;
  for (const TranscriptPrompt& prompt : transcript.prompts) {
    if (gone(prompt)) gone_prompts.insert(prompt.index);
    if (!cut.Holds(prompt) || gone(prompt)) continue;
    ++fork.kept_turns;
    fork.keeps_prompts = true;
    fork.last_kept.reset();
    if (!prompt.dead && prompt.anchor != prompt.record) fork.last_kept = prompt.anchor;
  }
  bool first = point.is_prompt;
  for (const TranscriptMessage& message : transcript.messages) {
    const bool kept = cut.Holds(message);
    // What the agent's own rewind left does not go; of turns before that it comes back.
    if (message.dead && (!kept || BELAY_MUTANT("what-comes-back-is-not-counted")))
      continue;
    if (message.prompt && gone_prompts.contains(*message.prompt)) continue;
    ++(kept ? fork.kept_messages : fork.taken_messages);
    if (kept || first) continue;
    first = true;
    if (!message.id.empty()) fork.first_taken = message.id;
  }
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
