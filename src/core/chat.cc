#include "core/chat.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/lineage.h"
#include "core/roots.h"

namespace belay {

Result<ChatLog> ChatLog::Read(Catalog& catalog) {
  ChatLog out;
  BELAY_TRY(auto roots, catalog.Roots());
  for (const RootEntry& root : roots) {
    BELAY_TRY(auto operations, ListOperations(catalog, root.root.id));
    // What undoes or redoes one of them is one of them, so that they suffice.
    std::erase_if(operations, [](const Operation& o) { return !o.chat; });
    if (!operations.empty())
      out.operations.emplace(root.root.id, std::move(operations));
  }
  if (out.operations.empty()) return out;
  for (const RecordKind kind : {RecordKind::kSession, RecordKind::kTurn}) {
    BELAY_TRY(auto records, catalog.ListRecords({.kind = kind}));
    for (size_t i = records.size(); i-- > 0;) out.Learn(records[i]);
  }
  return out;
}

void ChatLog::Learn(const LogRecord& record) {
  if (auto operation = ToOperation(record); operation.ok()) {
    if (operation->chat) operations[operation->root].push_back(std::move(*operation));
  } else if (auto turn = ToTurn(record); turn.ok()) {
    sessions[turn->session].turns.push_back({.turn = turn->turn, .seq = record.seq});
  } else if (auto told = ToSession(record); told.ok()) {
    Session& session = sessions[told->session];
    if (session.first_seq == 0) session.first_seq = record.seq;
    if (!told->parent || told->subagent) return;
    session.parent = *told->parent;
    session.inherited = told->inherited_turns;
  }
}

namespace {

// Of a session and those it grew out of, as core/lineage.h has it: number and sequence
// number.
std::map<uint64_t, uint64_t> TurnsIn(const ChatLog& log, std::string session,
                                     uint64_t until) {
  std::map<uint64_t, uint64_t> out;
  std::set<std::string> seen;
  uint64_t most = UINT64_MAX, before = UINT64_MAX;
  while (seen.insert(session).second && seen.size() <= kMaxGenerations) {
    const auto at = log.sessions.find(session);
    if (at == log.sessions.end()) break;
    std::map<uint64_t, uint64_t> own;
    for (const ChatLog::Turn& turn : at->second.turns)
      if (turn.turn <= most && turn.seq < before && turn.seq <= until)
        own[turn.turn] = turn.seq;
    out.merge(own);
    most = std::min(most, at->second.inherited);
    before = std::min(before, at->second.first_seq);
    if (at->second.parent.empty() || most == 0) break;
    session = at->second.parent;
  }
  return out;
}

}  // namespace

Chats::Chats(const ChatLog& log, uint64_t until) {
  // What made each of them count, or count again, last.
  std::map<RecordId, std::pair<uint64_t, int64_t>> since;
  for (const auto& [_, all] : log.operations) {
    std::vector<Operation> done;
    for (const Operation& operation : all) {
      if (operation.seq > until) continue;
      if (operation.kind == OperationKind::kUndo && operation.out_of_order &&
          operation.of)
        undone_out_of_order_.emplace(operation.id, *operation.of);
      since[AboutOf(operation)] = {operation.seq, operation.made_ms};
      done.push_back(operation);
    }
    if (!BELAY_MUTANT("undone-rewinds-count")) done = InEffect(done);
    for (Operation& operation : done)
      if (operation.kind == OperationKind::kRollback)
        in_effect_.push_back(std::move(operation));
  }
  std::ranges::stable_sort(in_effect_, {}, &Operation::seq);
  for (Operation& operation : in_effect_) {
    // A host forgets the same part again, and none of what was said since; who goes on
    // of two sessions is asked anew.
    const bool same_part = operation.chat->hosted &&
                           !BELAY_MUTANT("a-redo-takes-back-what-was-said-since");
    if (!same_part && !BELAY_MUTANT("redone-counts-from-the-first-time"))
      std::tie(operation.seq, operation.made_ms) = since[operation.id];
    const std::string& session = operation.chat->session;
    if (!turns_.contains(session))
      turns_.emplace(session, TurnsIn(log, session, until));
  }
}

RecordId Chats::AboutOf(const Operation& operation) const {
  RecordId about = operation.of.value_or(operation.id);
  // An undo of an undo of ...: the log may name anything, and circles end.
  for (size_t left = undone_out_of_order_.size(); left > 0; --left) {
    const auto at = undone_out_of_order_.find(about);
    if (at == undone_out_of_order_.end()) break;
    about = at->second;
  }
  return about;
}

Result<Chats> Chats::Read(Catalog& catalog, const Operation* next) {
  BELAY_TRY(ChatLog log, ChatLog::Read(catalog));
  if (next != nullptr && next->chat) {
    Operation last = *next;
    last.seq = UINT64_MAX;
    log.operations[next->root].push_back(std::move(last));
  }
  return Chats(log);
}

const Operation* Chats::LastOf(std::string_view session) const {
  for (auto at = in_effect_.rbegin(); at != in_effect_.rend(); ++at)
    if (at->chat->session == session) return &*at;
  return nullptr;
}

bool Chats::WentOn(const Operation& rewind) const {
  if (rewind.chat->hosted || BELAY_MUTANT("who-went-on-is-forgotten")) return false;
  const auto turns = turns_.find(rewind.chat->session);
  return turns != turns_.end() &&
         std::ranges::any_of(
             turns->second, [&](const auto& turn) { return turn.second > rewind.seq; });
}

Chats::GoesOn Chats::Follow(const std::string& session) const {
  GoesOn out{.session = session};
  std::set<std::string> seen;
  while (seen.insert(out.session).second) {
    const Operation* last = LastOf(out.session);
    if (last == nullptr || WentOn(*last)) break;
    out.by = last;
    out.way.push_back(last);
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
  if (last == nullptr || WentOn(*last)) return nullptr;
  auto took = [&](const Operation& operation) {
    const ChatRecord& chat = *operation.chat;
    return !chat.summary && chat.turn && turn >= *chat.turn && seq < operation.seq;
  };
  // A fork is cut from the whole of it: the newest says all. A host is told to forget
  // one part after the other.
  if (!last->chat->hosted) {
    for (const Operation* operation : Follow(std::string(session)).way) {
      if (took(*operation)) return operation;
      if (BELAY_MUTANT("what-a-fork-lost-counts-in-the-original")) break;
    }
    return nullptr;
  }
  for (const Operation& operation : in_effect_)
    if (operation.chat->session == session && took(operation)) return &operation;
  return nullptr;
}

std::optional<ChatStanding::Kept> Chats::KeptByHost(std::string_view session,
                                                    const Operation* now) const {
  // What is said after a rewind counts, and comes behind what that left.
  std::optional<std::pair<uint64_t, uint64_t>> last;
  if (const auto turns = turns_.find(session); turns != turns_.end())
    for (const auto& [turn, seq] : turns->second)
      if (TakenBackBy(session, turn, seq) == nullptr) last = {turn, seq};
  auto place = [](const ChatRecord& chat) {
    return std::tuple(chat.turn, !chat.inside, chat.message_index);
  };
  const Operation* cut = nullptr;
  bool any = false;
  for (const Operation& operation : in_effect_) {
    if (operation.chat->session != session) continue;
    any = true;
    if (last && operation.seq < last->second &&
        !BELAY_MUTANT("said-after-a-rewind-is-forgotten"))
      continue;
    if (cut == nullptr || place(*operation.chat) < place(*cut->chat)) cut = &operation;
  }
  if (!any) return std::nullopt;
  ChatStanding::Kept out{.turn = last ? last->first : 0};
  if (cut == nullptr) return out;
  if (!last) out.turn = cut->chat->inherited;
  // Of one that was just taken back (again): what it has to forget now.
  if (now != nullptr) cut = now;
  out.message = cut->chat->message;
  out.message_index = cut->chat->message_index;
  return out;
}

ChatStanding Chats::After(const Operation& operation) const {
  const ChatRecord& chat = *operation.chat;
  const GoesOn on = Follow(chat.session);
  ChatStanding out{.goes_on = on.anew ? "" : on.session};
  const RecordId about = AboutOf(operation);
  out.undone = operation.kind != OperationKind::kRollback &&
               std::ranges::find(in_effect_, about, &Operation::id) == in_effect_.end();
  if (BELAY_MUTANT("a-redo-always-takes-back") &&
      operation.kind == OperationKind::kRedo)
    out.undone = false;
  const Operation* last = LastOf(chat.session);
  if (last == nullptr || BELAY_MUTANT("undo-forgets-older-rewinds")) return out;
  if (!last->chat->hosted) {
    if (!WentOn(*last))
      out.kept = {.turn = last->chat->inherited,
                  .message = last->chat->message,
                  .message_index = last->chat->message_index};
    return out;
  }
  out.kept = KeptByHost(chat.session, last->id == about ? last : nullptr);
  return out;
}

void ToldPath::Learn(const SessionRecord& record, uint64_t record_seq) {
  const bool tells = (record.by == SessionRecord::By::kNone && !record.ended) ||
                     BELAY_MUTANT("what-is-repeated-is-told");
  if (!record.transcript_path || by_agent || (path && !tells)) return;
  path = record.transcript_path;
  seq = record_seq;
  by_agent = tells;
}

Result<std::optional<SessionRecord>> LatestSession(Catalog& catalog,
                                                   const std::string& session) {
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  std::optional<SessionRecord> out;
  std::optional<RootPaths> paths;
  ToldPath told;
  for (const LogRecord& record : records) {  // newest first
    auto one = ToSession(record);
    if (!one.ok() || one->session != session) continue;
    if (!one->cwd.empty() && (!out || out->cwd.empty())) {
      if (!paths) {
        BELAY_TRY(paths, RootPaths::Read(catalog));
      }
      one->cwd = paths->Now(one->cwd, record.root, record.seq);
    }
    told.Learn(*one, record.seq);
    if (!out) {
      out = std::move(*one);
      continue;
    }
    // Not every record has all of it.
    if (!out->agent) out->agent = one->agent;
    if (out->cwd.empty()) out->cwd = one->cwd;
    if (!out->parent && one->parent) {
      out->parent = one->parent;
      out->inherited_turns = one->inherited_turns;
      out->subagent = one->subagent;
      out->subagent_type = one->subagent_type;
    }
  }
  if (out) out->transcript_path = std::move(told.path);
  return out;
}

Result<std::string> CwdNow(Catalog& catalog, const Operation& operation) {
  BELAY_TRY(const RootPaths paths, RootPaths::Read(catalog));
  return paths.Now(operation.chat->cwd, operation.root, operation.seq);
}

Result<std::vector<TurnOf>> AllTurnsOf(Catalog& catalog, const std::string& session) {
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  BELAY_TRY(const auto roots, catalog.Roots());
  std::map<RootId, std::string> directories;
  for (const RootEntry& entry : roots)
    directories.emplace(entry.root.id, entry.root.path);
  std::unordered_map<std::string, std::map<uint64_t, std::vector<TurnOf>>> by_session;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kTurn}));
  for (const LogRecord& record : records)  // newest first
    if (auto turn = ToTurn(record); turn.ok()) {
      const auto at = directories.find(record.root);
      auto& same = by_session[turn->session][turn->turn];
      same.insert(same.begin(), {.turn = *turn,
                                 .seq = record.seq,
                                 .directory = at == directories.end() ? "" : at->second,
                                 .root = record.root});
    }
  std::map<uint64_t, std::vector<TurnOf>> all;
  for (const Generation& at : lineage.generations())
    for (auto& [number, same] : by_session[at.session]) {
      std::erase_if(same,
                    [&](const TurnOf& one) { return !at.Has(one.turn.turn, one.seq); });
      if (!same.empty()) all.emplace(number, std::move(same));
    }
  std::vector<TurnOf> out;
  for (auto& [_, same] : all)
    out.insert(out.end(), std::make_move_iterator(same.begin()),
               std::make_move_iterator(same.end()));
  return out;
}

Result<std::vector<TurnOf>> TurnsOf(Catalog& catalog, const std::string& session,
                                    std::string_view here) {
  BELAY_TRY(auto all, AllTurnsOf(catalog, session));
  std::vector<TurnOf> out;
  for (TurnOf& one : all) {
    const bool another = !out.empty() && out.back().turn.turn == one.turn.turn;
    if (!another)
      out.push_back(std::move(one));
    else if (out.back().directory != here || one.directory == here)
      out.back() = std::move(one);
  }
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
  BELAY_TRY(const auto roots, catalog.Roots());
  for (const RootEntry& entry : roots) {
    BELAY_TRY(const auto rows, catalog.Outline(entry.root.id));
    for (const CheckpointRow& row : rows)
      if (row.session) known.insert(*row.session);
  }
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
  std::optional<ChatStanding> stands;
  if (operation.kind != OperationKind::kRollback) {
    BELAY_TRY(const Chats chats, Chats::Read(*catalog, &operation));
    stands = chats.After(operation);
  }
  // Also where another one, that came later, stands all the same.
  if (stands && (stands->undone || (!chat.hosted && stands->goes_on != chat.forked))) {
    // One that was deleted since is not made known again.
    BELAY_TRY(const auto forked, LatestSession(*catalog, chat.forked));
    if (!chat.forked.empty() && (forked || BELAY_MUTANT("undo-revives-a-session")))
      add(fork, SessionRecord::By::kReset);
    // A host has to read again what else went back.
    if (chat.hosted && !BELAY_MUTANT("an-undo-resets-no-host"))
      add(original, SessionRecord::By::kReset);
    SessionRecord on = original;
    if (stands->goes_on != chat.session) {
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
