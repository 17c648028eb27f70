#include "core/chat.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/lineage.h"

namespace belay {

Chats::Chats(const OfRoots& operations, uint64_t until) {
  for (const auto& [_, all] : operations) {
    std::vector<Operation> done;
    for (const Operation& operation : all)
      if (operation.seq <= until) done.push_back(operation);
    if (!BELAY_MUTANT("undone-rewinds-count")) done = InEffect(done);
    for (Operation& operation : done)
      if (operation.kind == OperationKind::kRollback)
        in_effect_.push_back(std::move(operation));
  }
  std::ranges::stable_sort(in_effect_, {}, &Operation::seq);
}

Result<Chats::OfRoots> Chats::List(Catalog& catalog) {
  OfRoots out;
  BELAY_TRY(auto roots, catalog.Roots());
  for (const RootEntry& root : roots) {
    BELAY_TRY(auto operations, ListOperations(catalog, root.root.id));
    // What undoes or redoes one of them is one of them, so that they suffice.
    std::erase_if(operations, [](const Operation& o) { return !o.chat; });
    if (!operations.empty()) out.emplace(root.root.id, std::move(operations));
  }
  return out;
}

Result<Chats> Chats::Read(Catalog& catalog, const Operation* next) {
  BELAY_TRY(OfRoots operations, List(catalog));
  if (next != nullptr && next->chat) operations[next->root].push_back(*next);
  return Chats(operations);
}

const Operation* Chats::LastOf(std::string_view session) const {
  for (auto at = in_effect_.rbegin(); at != in_effect_.rend(); ++at)
    if (at->chat->session == session) return &*at;
  return nullptr;
}

Chats::GoesOn Chats::Follow(const std::string& session) const {
  GoesOn out{.session = session};
  std::set<std::string> seen;
  while (seen.insert(out.session).second) {
    const Operation* last = LastOf(out.session);
    if (last == nullptr) break;
    out.by = last;
    if (last->chat->hosted) break;
    out.anew = last->chat->forked.empty();
    if (out.anew || BELAY_MUTANT("resume-the-original")) break;
    out.session = last->chat->forked;
  }
  return out;
}

const Operation* Chats::TakenBackBy(std::string_view session, uint64_t turn,
                                    uint64_t seq) const {
  const Operation* last = LastOf(session);
  if (last == nullptr) return nullptr;
  auto took = [&](const Operation& operation) {
    const ChatRecord& chat = *operation.chat;
    return !chat.summary && chat.turn && turn >= *chat.turn && seq < operation.seq;
  };
  // A fork is cut from the whole of it: the newest says all. A host is told to forget
  // one part after the other.
  if (!last->chat->hosted) return took(*last) ? last : nullptr;
  for (const Operation& operation : in_effect_)
    if (operation.chat->session == session && took(operation)) return &operation;
  return nullptr;
}

std::optional<StandingRewind> Chats::Stands(std::string_view session) const {
  const Operation* last = LastOf(session);
  if (last == nullptr || BELAY_MUTANT("undo-forgets-older-rewinds"))
    return std::nullopt;
  const GoesOn on = Follow(std::string(session));
  StandingRewind out{.goes_on = on.anew ? "" : on.session,
                     .inherited = last->chat->inherited,
                     .message = last->chat->message,
                     .message_index = last->chat->message_index};
  if (!last->chat->hosted) return out;
  // What was told first to be forgotten lies before all that was told later.
  for (const Operation& operation : in_effect_)
    if (operation.chat->session == session &&
        operation.chat->inherited < out.inherited) {
      out.inherited = operation.chat->inherited;
      out.message = operation.chat->message;
      out.message_index = operation.chat->message_index;
    }
  return out;
}

Result<std::optional<SessionRecord>> LatestSession(Catalog& catalog,
                                                   const std::string& session) {
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  std::optional<SessionRecord> out;
  for (const LogRecord& record : records) {  // newest first
    auto one = ToSession(record);
    if (!one.ok() || one->session != session) continue;
    if (!out) {
      out = std::move(*one);
      continue;
    }
    // Not every record has all of it.
    if (!out->agent) out->agent = one->agent;
    if (out->cwd.empty()) out->cwd = one->cwd;
    if (!out->transcript_path) out->transcript_path = one->transcript_path;
    if (!out->parent && one->parent) {
      out->parent = one->parent;
      out->inherited_turns = one->inherited_turns;
      out->subagent = one->subagent;
      out->subagent_type = one->subagent_type;
    }
  }
  return out;
}

Result<std::vector<TurnOf>> TurnsOf(Catalog& catalog, const std::string& session) {
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  std::unordered_map<std::string, std::map<uint64_t, TurnOf>> by_session;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kTurn}));
  for (const LogRecord& record : records)
    if (auto turn = ToTurn(record); turn.ok())
      by_session[turn->session].emplace(turn->turn, TurnOf{*turn, record.seq});
  std::map<uint64_t, TurnOf> all;
  for (const Generation& at : lineage.generations())
    for (const auto& [number, turn] : by_session[at.session])
      if (at.Has(number, turn.seq)) all.emplace(number, turn);
  std::vector<TurnOf> out;
  for (auto& [_, turn] : all) out.push_back(std::move(turn));
  return out;
}

Result<std::string> FindSession(Catalog& catalog, std::string_view text) {
  constexpr size_t kShortest = 4;
  std::set<std::string> known;
  for (const RecordKind kind : {RecordKind::kSession, RecordKind::kTurn}) {
    BELAY_TRY(auto records, catalog.ListRecords({.kind = kind}));
    for (const LogRecord& record : records)
      if (auto id = record.fields.Text(1)) known.insert(std::move(*id));
  }
  if (const std::string id(text); known.contains(id)) return id;
  // One that is known by its checkpoints alone.
  BELAY_TRY(auto own,
            catalog.ListCheckpoints({.session = std::string(text), .limit = 1}));
  if (!own.empty()) return std::string(text);
  const Error none =
      Error(Errc::kNotFound, "there is no session " + EscapeForDisplay(text))
          .WithHint(
              "see them with: belay sessions; of all directories: belay sessions "
              "--all");
  if (text.size() < kShortest) return none;
  auto at = known.lower_bound(std::string(text));
  if (at == known.end() || !at->starts_with(text)) return none;
  const std::string found = *at;
  if (++at != known.end() && at->starts_with(text))
    return Error(Errc::kInvalid, "several sessions begin with " +
                                     EscapeForDisplay(text) + ": " + EscapeText(found) +
                                     ", " + EscapeText(*at))
        .WithHint("give more of the id");
  return found;
}

Result<std::optional<std::string>> CameAlong(Catalog& catalog,
                                             const Checkpoint& first) {
  std::optional<std::string> out;
  if (first.session || !first.meta.contains("fork_of")) return out;
  BELAY_TRY(auto records,
            catalog.ListRecords({.kind = RecordKind::kSession, .root = first.root}));
  for (const LogRecord& record : records) {  // newest first
    if (record.seq < first.seq) break;
    auto one = ToSession(record);
    if (!one.ok() || one->subagent) continue;
    // Whoever began there later has no parent, or one that began there.
    out = one->parent ? std::optional(one->session) : std::nullopt;
  }
  return out;
}

Result<std::vector<LogRecord>> RecordsBeside(Store& store, const Operation& operation) {
  std::vector<LogRecord> out;
  if (!operation.chat || BELAY_MUTANT("rewind-forgets-the-session")) return out;
  const ChatRecord& chat = *operation.chat;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  auto add = [&](SessionRecord record, SessionRecord::By by) {
    record.by = by;
    out.push_back(ToRecord(record, RecordId(store.random().NewId()), operation.root,
                           operation.made_ms));
  };
  BELAY_TRY(auto known, LatestSession(*catalog, chat.session));
  const SessionRecord original =
      known.value_or(SessionRecord{.session = chat.session, .agent = chat.agent});
  SessionRecord fork{.session = chat.forked,
                     .agent = chat.agent,
                     .parent = chat.session,
                     .inherited_turns = chat.inherited,
                     .cwd = chat.cwd};
  if (!chat.path.empty()) fork.transcript_path = chat.path;
  if (operation.kind == OperationKind::kUndo) {
    BELAY_TRY(const Chats after, Chats::Read(*catalog, &operation));
    const auto stands = after.Stands(chat.session);
    // One that was deleted since is not made known again.
    BELAY_TRY(const auto forked, LatestSession(*catalog, chat.forked));
    if (!chat.forked.empty() && (forked || BELAY_MUTANT("undo-revives-a-session")))
      add(fork, SessionRecord::By::kReset);
    SessionRecord on = original;
    if (stands && stands->goes_on != chat.session) {
      BELAY_TRY(auto other, LatestSession(*catalog, stands->goes_on));
      if (other) on = std::move(*other);
    }
    add(on, SessionRecord::By::kGoesOn);
    return out;
  }
  add(original, SessionRecord::By::kReset);
  if (chat.hosted)
    add(original, SessionRecord::By::kGoesOn);
  else if (!chat.forked.empty())
    add(fork, SessionRecord::By::kGoesOn);
  return out;
}

}  // namespace belay
