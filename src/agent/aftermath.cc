#include "agent/aftermath.h"

#include <algorithm>

#include "agent/ancestry.h"
#include "agent/recorder.h"
#include "agent/referred.h"
#include "agent/told.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "core/chat.h"
#include "core/live.h"
#include "store/batch_writer.h"

namespace belay {

namespace {

bool IsMoment(EventKind kind) {
  return kind == EventKind::kSessionStart || kind == EventKind::kTurnEnd ||
         kind == EventKind::kSubagentEnd || kind == EventKind::kCompact ||
         kind == EventKind::kSessionEnd;
}

// Lines are added to it, and nothing else is done to it.
bool Appends(AgentKind agent) {
  return agent == AgentKind::kClaude || agent == AgentKind::kCodex ||
         agent == AgentKind::kGemini || agent == AgentKind::kQwen ||
         agent == AgentKind::kCopilot;
}

Status MeetSubagent(Store& store, const Root& root, const Settings& settings,
                    const HookEvent& event) {
  BELAY_TRY(const KnownSession known, LookUpSession(store, SessionOf(event)));
  if (std::ranges::find(known.subagents, *event.subagent) != known.subagents.end())
    return Ok();
  BELAY_TRY(auto writer, store.Begin());
  writer->Add(SubagentRecord(store, root.id, settings, event));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return Ok();
}

// That it is over, once; of one that nobody recorded there is nothing to end.
Result<bool> EndSession(Store& store, const Root& root, const HookEvent& event) {
  const std::string session = SessionOf(event);
  BELAY_TRY(auto catalog, Catalog::Open(store));
  std::optional<SessionRecord> known;
  uint64_t ended = 0, last = 0;
  BELAY_TRY(auto records, catalog->ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : records) {  // newest first
    auto one = ToSession(record);
    if (!one.ok() || one->session != session) continue;
    if (one->ended) ended = std::max(ended, record.seq);
    if (!known) {
      known = std::move(*one);
    } else if (!known->parent && one->parent) {
      // Who started it is not in every record of it.
      known->parent = std::move(one->parent);
      known->inherited_turns = one->inherited_turns;
      known->subagent = one->subagent;
      known->subagent_type = std::move(one->subagent_type);
    }
  }
  BELAY_TRY(auto turns, catalog->ListRecords({.kind = RecordKind::kTurn}));
  for (const LogRecord& record : turns)
    if (auto one = ToTurn(record); one.ok() && one->session == session)
      last = std::max(last, record.seq);
  if (!known || (ended > last && !BELAY_MUTANT("sessions-end-twice"))) return false;
  known->ended = true;
  known->transcript_path.reset();  // who told it said so
  // What an operation told with it was told.
  if (!BELAY_MUTANT("an-end-tells-the-rewind-again"))
    known->by = SessionRecord::By::kNone;
  BELAY_TRY(auto writer, store.Begin());
  writer->Add(ToRecord(*known, RecordId(store.random().NewId()), root.id,
                       store.clock().WallMillis()));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return true;
}

}  // namespace

bool HasAftermath(const HookEvent& event, const Settings& settings) {
  if (!settings.enabled) return false;
  if (!event.messages.empty() && settings.transcripts == Transcripts::kKeep)
    return true;
  if (!IsMoment(event.kind)) return false;
  return event.subagent || event.kind == EventKind::kSessionEnd ||
         settings.transcripts == Transcripts::kKeep;
}

Aftermath AfterEvent(Store& store, const Root& root, const Settings& settings,
                     const HookEvent& event) {
  Aftermath out;
  if (!HasAftermath(event, settings)) return out;
  const std::string session = SessionOf(event);
  if (event.subagent && event.kind == EventKind::kSubagentEnd &&
      *event.subagent != session)
    if (Status met = MeetSubagent(store, root, settings, event); !met.ok())
      out.failed.push_back(met.error());
  if (event.kind == EventKind::kSessionEnd && !event.subagent) {
    auto ended = EndSession(store, root, event);
    if (ended.ok())
      out.session_ended = *ended;
    else
      out.failed.push_back(ended.error());
  }
  if (settings.transcripts != Transcripts::kKeep) return out;
  auto keep_told = [&]() -> Result<bool> {
    // Nothing else may be recorded of the event.
    if (!event.messages.empty() && !BELAY_MUTANT("two-hosts-have-one-conversation"))
      BELAY_OK(CheckHost(store, root.id, event));
    return KeepTold(store, root, settings, event);
  };
  if (auto told = keep_told(); told.ok())
    out.copies += *told ? 1 : 0;
  else
    out.failed.push_back(told.error());
  if (!IsMoment(event.kind)) return out;
  auto keep = [&](const std::optional<std::string>& path,
                  const std::optional<std::string>& subagent) {
    auto at = AbsPath::Parse(path.value_or(""));
    if (!at.ok()) return;
    auto kept = KeepTranscript(store, {.session = session,
                                       .agent = AgentOf(event),
                                       .subagent = subagent,
                                       .path = *at,
                                       .root = root.id,
                                       .settings = &settings,
                                       .appended = Appends(event.agent),
                                       .is_json = event.agent != AgentKind::kGeneric});
    if (kept.ok())
      out.copies += kept->published ? 1 : 0;
    else if (kept.error().code != Errc::kNotFound)
      out.failed.push_back(kept.error());
  };
  std::optional<std::string> path = event.transcript;
  if (!path) {
    // Copilot tells it at the end of a turn alone.
    const Live live = Live::Load(store, root.id);
    if (const LiveSession* known = live.Find(session);
        known && !known->transcript.empty())
      path = known->transcript;
  }
  keep(path, std::nullopt);
  if (event.subagent && event.subagent_transcript != path)
    keep(event.subagent_transcript, event.subagent);
  return out;
}

namespace {

Result<bool> HoldsAnything(Fs& fs, const AbsPath& path, bool not_empty) {
  auto file = OpenTranscript(fs, path);
  if (!file.ok()) return false;
  if (!not_empty || BELAY_MUTANT("an-empty-file-is-a-conversation")) return true;
  BELAY_TRY(const FileStat stat, fs.Stat(*file));
  return stat.size > 0;
}

Result<std::vector<TranscriptCopy>> CopiesOf(Catalog& catalog,
                                             const std::string& session) {
  BELAY_TRY(auto copies, ListTranscripts(catalog, session));
  std::erase_if(copies, [](const TranscriptCopy& copy) {
    return copy.record.subagent || !copy.latest || copy.record.path.empty();
  });
  return copies;
}

}  // namespace

Result<ConversationPlace> FindConversationAt(Store& store, Catalog& catalog,
                                             const std::string& session,
                                             const std::string& path) {
  BELAY_TRY(AbsPath at, AbsPath::Parse(path));
  BELAY_TRY(const auto record, LatestSession(catalog, session));
  ConversationPlace out{.agent = AgentNamed(record ? record->agent.value_or("") : "")
                                     .value_or(AgentKind::kGeneric),
                        .path = std::move(at)};
  BELAY_TRY(const bool there, HoldsAnything(store.fs(), out.path, true));
  if (there) return out;
  BELAY_TRY(const auto copies, CopiesOf(catalog, session));
  const auto same = std::ranges::find_if(
      copies, [&](const TranscriptCopy& copy) { return copy.record.path == path; });
  if (same == copies.end())
    return Error(Errc::kNotFound,
                 "an older file of session " + EscapeText(session) +
                     " is gone, and there is no copy: " + EscapeForDisplay(path));
  BELAY_TRY(out.copy, WrittenTranscript::Write(store, *same));
  return out;
}

Result<ConversationPlace> FindConversation(Store& store, Catalog& catalog,
                                           const std::string& session) {
  std::optional<std::string> agent;
  BELAY_TRY(const auto copies, CopiesOf(catalog, session));
  ToldPath told;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : records) {
    auto one = ToSession(record);
    if (!one.ok() || one->session != session) continue;
    if (!agent) agent = one->agent;
    told.Learn(*one, record.seq);
  }
  std::string path = told.path.value_or("");
  // Of several files the one that was heard of last.
  if (!copies.empty() && (path.empty() || copies[0].seq > told.seq))
    path = copies[0].record.path;
  if (!copies.empty() && !agent) agent = copies[0].record.agent;
  auto at = AbsPath::Parse(path);
  // Told after the session was recorded (Copilot tells it at the end of a turn alone),
  // or another one since.
  if ((!at.ok() || !OpenTranscript(store.fs(), *at).ok()) &&
      !BELAY_MUTANT("path-told-later-is-lost")) {
    BELAY_TRY(auto roots, catalog.Roots());
    for (const RootEntry& root : roots) {
      const Live live = Live::Load(store, root.root.id);
      const LiveSession* known = live.Find(session);
      if (known == nullptr) continue;
      auto there = AbsPath::Parse(known->transcript);
      if (!there.ok() || !OpenTranscript(store.fs(), *there).ok()) continue;
      if (!agent) agent = known->agent;
      at = std::move(there);
    }
  }
  if (!at.ok())
    return Error(Errc::kNotFound, "nothing is known of where the conversation of " +
                                      EscapeText(session) + " is kept");
  ConversationPlace out{
      .agent = AgentNamed(agent.value_or("")).value_or(AgentKind::kGeneric),
      .path = *at};
  // What an agent was killed in may be empty, and the copy is not.
  BELAY_TRY(const bool there, HoldsAnything(store.fs(), *at, !copies.empty()));
  if (there) return out;
  if (copies.empty())
    return Error(Errc::kNotFound, "the transcript of session " + EscapeText(session) +
                                      ", " + EscapeForDisplay(at->bytes()) + ", " +
                                      WhatIsAt(store.fs(), *at) +
                                      ", and there is no copy")
        .WithHint("copies are made while transcripts = \"keep\"");
  auto same = std::ranges::find_if(
      copies, [&](const TranscriptCopy& copy) { return copy.record.path == path; });
  const TranscriptCopy& copy = same == copies.end() ? copies[0] : *same;
  BELAY_TRY(out.path, AbsPath::Parse(copy.record.path));
  BELAY_TRY(out.copy, WrittenTranscript::Write(store, copy));
  return out;
}

std::string WhatIsAt(Fs& fs, const AbsPath& path) {
  constexpr std::string_view kGone = "is gone";
  const auto unread = [&](const Error& error) {
    if (error.code == Errc::kNotFound) return std::string(kGone);
    if (error.sys == 0) return "cannot be read (" + error.what + ")";
    return "cannot be read (" + SysError(error.sys, "").what.substr(2) + ")";
  };
  if (path.is_root()) return "is a directory";
  const auto dir = fs.OpenDir(path.parent());
  if (!dir.ok()) return unread(dir.error());
  auto stat = fs.StatAt(*dir, Name::Literal(path.name()));
  if (stat.ok() && stat->type == FileType::kSymlink) {
    const auto real = fs.RealPath(path);
    if (!real.ok() && real.error().code == Errc::kNotFound)
      return "is a symlink to what is not there";
    if (!real.ok()) return unread(real.error());
    return real->is_root() ? "is a directory" : WhatIsAt(fs, *real);
  }
  if (!stat.ok()) return unread(stat.error());
  if (stat->type != FileType::kRegular)
    return "is " + std::string(FileTypeName(stat->type));
  if (const auto file = OpenTranscript(fs, path); !file.ok())
    return unread(file.error());
  return stat->size == 0 ? "is empty" : "was not there";
}

Result<bool> HasConversation(Store& store, Catalog& catalog,
                             const std::string& session) {
  auto place = FindConversation(store, catalog, session);
  if (!place.ok() && place.error().code == Errc::kNotFound) return false;
  if (!place.ok()) return std::move(place).error();
  const auto read = ReadTranscript(store.fs(), place->agent, place->file());
  if (!read.ok() || read->prompts.empty()) return false;
  if (!read->refers) return true;
  const ReferredFiles before = ReadReferred(store, catalog, session, *place, *read);
  return before.whole && std::ranges::all_of(before.files, [&](const auto& file) {
           return file.session == session;
         });
}

}  // namespace belay
