#include "agent/notice.h"

#include <algorithm>

#include "base/json.h"
#include "base/mutant.h"
#include "core/lineage.h"

namespace belay {

namespace {

std::string FilesText(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " file" : " files");
}

// What is in force of the operations that nobody was told of yet.
std::vector<const Operation*> InForce(const std::vector<Operation>& oldest_first,
                                      uint64_t knows) {
  std::vector<const Operation*> out;
  for (const Operation& operation : oldest_first) {
    if (operation.seq <= knows) continue;
    // No file moved, and the model is not told what it no longer knows.
    if (operation.chat && operation.chat->alone && !BELAY_MUTANT("notice-of-a-rewind"))
      continue;
    // An undo takes the rollback away, a redo the undo, when both came since.
    const auto partner = std::ranges::find_if(out, [&](const Operation* before) {
      if (!operation.of) return false;
      if (operation.kind == OperationKind::kUndo) return before->id == *operation.of;
      return before->kind == OperationKind::kUndo && before->of == operation.of;
    });
    if (partner != out.end() && operation.kind != OperationKind::kRollback &&
        !BELAY_MUTANT("notice-of-what-was-undone"))
      out.erase(partner);
    else
      out.push_back(&operation);
  }
  return out;
}

std::string Hooked(std::string_view event, std::string_view text) {
  JsonWriter json;
  json.BeginObject();
  json.Key("hookSpecificOutput").BeginObject();
  json.Key("hookEventName").String(event);
  json.Key("additionalContext").String(text);
  json.EndObject().EndObject();
  return json.Take() + "\n";
}

}  // namespace

bool TakesNotice(AgentKind agent) { return !NoticeAnswer(agent, "").empty(); }

std::string NoticeAnswer(AgentKind agent, std::string_view text) {
  switch (agent) {
    case AgentKind::kClaude:
    case AgentKind::kQwen:
      return Hooked("UserPromptSubmit", text);
    case AgentKind::kGemini:
      return Hooked("BeforeAgent", text);
    case AgentKind::kCodex:
      // What its prompt hook says becomes a message for the model as it is.
      return std::string(text) + "\n";
    case AgentKind::kCopilot: {
      JsonWriter json;
      json.BeginObject();
      json.Key("additionalContext").String(text);
      json.EndObject();
      return json.Take() + "\n";
    }
    case AgentKind::kGeneric: {
      JsonWriter json;
      json.BeginObject();
      json.Key("notice").String(text);
      json.EndObject();
      return json.Take() + "\n";
    }
    default:
      return {};
  }
}

Notice NoticeOf(const std::vector<Operation>& oldest_first, uint64_t knows,
                const std::function<uint64_t(const RecordId&)>& turn_of) {
  Notice out{.operation = knows};
  if (!oldest_first.empty()) out.operation = std::max(knows, oldest_first.back().seq);
  const std::vector<const Operation*> in_force = InForce(oldest_first, knows);
  if (in_force.empty()) return out;
  const Operation& last = *in_force.back();
  out.text = "[belay] ";
  if (last.kind == OperationKind::kUndo) {
    out.text += "The user undid a rollback: " + FilesText(last.paths) +
                " changed outside of this conversation.";
  } else {
    out.text += "The user rolled files back: " + FilesText(last.paths) +
                " went back to checkpoint " +
                (last.target ? last.target->text().substr(0, 7) : "?");
    if (const uint64_t turn = last.target ? turn_of(*last.target) : 0; turn > 0)
      out.text += ", the state before turn " + std::to_string(turn);
    out.text += '.';
  }
  if (in_force.size() > 1) out.text += " It was not the only one since your last turn.";
  out.text += " Read files again before relying on what you remember of them.";
  return out;
}

Result<Notice> FindNotice(Store& store, const RootId& root,
                          const LiveSession& session) {
  // One that no operation can have was written for sessions that began with a prompt.
  const bool nobody_told = session.knows_operation == UINT64_MAX &&
                           !BELAY_MUTANT("a-new-session-is-never-told");
  const uint64_t told = nobody_told ? 0 : session.knows_operation;
  Notice none{.operation = told};
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(auto operations, ListOperations(*catalog, root));
  if (operations.empty() || operations.back().seq <= told) return none;
  // Since it began: before that it knows nothing that could be wrong.
  uint64_t first = UINT64_MAX;
  for (const RecordKind kind : {RecordKind::kSession, RecordKind::kTurn}) {
    BELAY_TRY(auto records, catalog->ListRecords({.kind = kind}));
    for (const LogRecord& record : records) {
      const bool own =
          kind == RecordKind::kSession
              ? ToSession(record).ok() && ToSession(record)->session == session.id
              : ToTurn(record).ok() && ToTurn(record)->session == session.id;
      if (own) first = std::min(first, record.seq);
    }
  }
  // This prompt is its first word: it knows of all.
  if (first == UINT64_MAX && !BELAY_MUTANT("a-new-session-is-never-told"))
    first = operations.back().seq;
  const uint64_t knows = std::max(told, first);
  return NoticeOf(operations, knows, [&](const RecordId& target) -> uint64_t {
    auto found = catalog->FindById(root, target.text());
    if (!found.ok() || found->checkpoint.session != session.id) return 0;
    // Else it is from the middle of the turn.
    return LooksLikeStart(found->checkpoint) ? *found->checkpoint.turn : 0;
  });
}

}  // namespace belay
