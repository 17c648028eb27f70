// Of conversations: sessions, turns, copies of transcripts.

#include "store/log_record_internal.h"

namespace belay {

namespace {
// Of a session's record, a turn's, and that of a copy of a transcript.
constexpr uint64_t kSessionId = 1, kSessionAgent = 2, kSessionParent = 3,
                   kSessionInherited = 5, kSessionPath = 6, kSessionEnded = 8,
                   kSessionCwd = 9, kSessionIsSubagent = 10, kSessionSubagentType = 11,
                   kSessionBy = 12;
constexpr uint64_t kTurnSession = 1, kTurnNumber = 2, kTurnPrompt = 3, kTurnAnchor = 4,
                   kTurnStateless = 5;
constexpr uint64_t kTranscriptSession = 1, kTranscriptAgent = 2, kTranscriptPath = 3,
                   kTranscriptBytes = 4, kTranscriptSubagent = 5, kTranscriptDev = 6,
                   kTranscriptIno = 7, kTranscriptWhole = 8;
}  // namespace

LogRecord ToRecord(const SessionRecord& session, const RecordId& id, const RootId& root,
                   int64_t made_ms) {
  LogRecord record;
  record.kind = RecordKind::kSession;
  record.id = id;
  record.root = root;
  record.made_ms = made_ms;
  Fields& f = record.fields;
  f.Add(kSessionId, session.session);
  AddText(f, kSessionAgent, session.agent);
  AddText(f, kSessionParent, session.parent);
  if (session.inherited_turns != 0)
    f.AddNumber(kSessionInherited, session.inherited_turns);
  AddText(f, kSessionPath, session.transcript_path);
  if (session.ended) f.AddNumber(kSessionEnded, 1);
  if (!session.cwd.empty()) f.Add(kSessionCwd, session.cwd);
  if (session.subagent) f.AddNumber(kSessionIsSubagent, 1);
  AddText(f, kSessionSubagentType, session.subagent_type);
  if (session.by != SessionRecord::By::kNone)
    f.AddNumber(kSessionBy, static_cast<uint64_t>(session.by));
  return record;
}

Result<SessionRecord> ToSession(const LogRecord& record) {
  auto id = record.fields.Text(kSessionId);
  if (record.kind != RecordKind::kSession || !id) return BadRecord("not a session");
  const Fields& f = record.fields;
  const uint64_t by = f.Number(kSessionBy).value_or(0);
  return SessionRecord{
      .session = *id,
      .agent = f.Text(kSessionAgent),
      .parent = f.Text(kSessionParent),
      .inherited_turns = f.Number(kSessionInherited).value_or(0),
      .transcript_path = f.Text(kSessionPath),
      .ended = f.Number(kSessionEnded).value_or(0) != 0,
      .cwd = f.Text(kSessionCwd).value_or(""),
      .subagent = f.Number(kSessionIsSubagent).value_or(0) != 0,
      .subagent_type = f.Text(kSessionSubagentType),
      .by = by > 2 ? SessionRecord::By::kNone : static_cast<SessionRecord::By>(by)};
}

LogRecord ToRecord(const TurnRecord& turn, const RecordId& id, const RootId& root,
                   int64_t made_ms) {
  LogRecord record;
  record.kind = RecordKind::kTurn;
  record.id = id;
  record.root = root;
  record.made_ms = made_ms;
  record.fields.Add(kTurnSession, turn.session);
  record.fields.AddNumber(kTurnNumber, turn.turn);
  record.fields.Add(kTurnPrompt, turn.prompt);
  AddText(record.fields, kTurnAnchor, turn.anchor);
  if (turn.stateless) record.fields.AddNumber(kTurnStateless, 1);
  return record;
}

Result<TurnRecord> ToTurn(const LogRecord& record) {
  auto session = record.fields.Text(kTurnSession);
  if (record.kind != RecordKind::kTurn || !session) return BadRecord("not a turn");
  return TurnRecord{.session = *session,
                    .turn = record.fields.Number(kTurnNumber).value_or(0),
                    .prompt = record.fields.Text(kTurnPrompt).value_or(""),
                    .anchor = record.fields.Text(kTurnAnchor),
                    .stateless = record.fields.Number(kTurnStateless).value_or(0) != 0};
}

LogRecord ToRecord(const TranscriptRecord& transcript, const RecordId& id,
                   const RootId& root, int64_t made_ms) {
  LogRecord record;
  record.kind = RecordKind::kTranscript;
  record.id = id;
  record.root = root;
  record.made_ms = made_ms;
  record.refs.push_back({ObjectType::kNode, transcript.content});
  Fields& f = record.fields;
  f.Add(kTranscriptSession, transcript.session);
  AddText(f, kTranscriptAgent, transcript.agent);
  f.Add(kTranscriptPath, transcript.path);
  f.AddNumber(kTranscriptBytes, transcript.bytes);
  AddText(f, kTranscriptSubagent, transcript.subagent);
  f.AddNumber(kTranscriptDev, transcript.dev);
  f.AddNumber(kTranscriptIno, transcript.ino);
  f.AddNumber(kTranscriptWhole, transcript.whole);
  return record;
}

Result<TranscriptRecord> ToTranscript(const LogRecord& record) {
  const Fields& f = record.fields;
  auto session = f.Text(kTranscriptSession);
  if (record.kind != RecordKind::kTranscript || !session || record.refs.empty() ||
      record.refs[0].type != ObjectType::kNode)
    return BadRecord("not a transcript");
  return TranscriptRecord{.session = *session,
                          .agent = f.Text(kTranscriptAgent),
                          .subagent = f.Text(kTranscriptSubagent),
                          .path = f.Text(kTranscriptPath).value_or(""),
                          .content = record.refs[0].id,
                          .bytes = f.Number(kTranscriptBytes).value_or(0),
                          .dev = f.Number(kTranscriptDev).value_or(0),
                          .ino = f.Number(kTranscriptIno).value_or(0),
                          .whole = f.Number(kTranscriptWhole).value_or(0)};
}

}  // namespace belay
