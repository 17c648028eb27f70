#include "core/sessions.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/annotate.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "core/live.h"
#include "core/transcripts.h"
#include "store/batch_writer.h"

namespace belay {

namespace {

// Tags of a session's and a turn's record.
constexpr uint64_t kSession = 1, kAgent = 2, kParent = 3;

bool IsOf(const LogRecord& record, const std::set<std::string>& sessions) {
  const auto session = record.fields.Text(kSession);
  return session && sessions.contains(*session);
}

}  // namespace

Result<std::vector<SessionSummary>> ListSessions(Catalog& catalog,
                                                 const std::optional<RootId>& root) {
  std::map<std::string, SessionSummary> known;
  std::map<std::string, std::set<std::string>> places;
  std::vector<std::pair<std::string, SessionSummary::Subagent>> subagents;  // by parent
  std::set<std::pair<std::string, uint64_t>> counted;                       // turns
  std::map<std::string, std::pair<uint64_t, int64_t>> ends;  // number and time
  std::map<std::string, ToldPath> told_paths;
  auto meet = [&](const std::string& id, int64_t at, uint64_t seq) -> SessionSummary& {
    SessionSummary& session = known[id];
    if (session.id.empty()) {
      session.id = id;
      session.first_ms = session.last_ms = at;
    }
    session.first_ms = std::min(session.first_ms, at);
    session.last_ms = std::max(session.last_ms, at);
    session.last_seq = std::max(session.last_seq, seq);
    return session;
  };
  BELAY_TRY(auto roots, catalog.Roots());
  std::map<RootId, std::string> paths;
  for (const RootEntry& entry : roots) {
    paths.emplace(entry.root.id, entry.root.path);
    if (root && entry.root.id != *root) continue;
    BELAY_TRY(auto rows, catalog.Outline(entry.root.id));
    for (const CheckpointRow& row : rows) {
      if (!row.session) continue;
      SessionSummary& session = meet(*row.session, row.made_ms, row.seq);
      ++session.checkpoints;
      session.pinned += row.pinned ? 1 : 0;
      places[session.id].insert(entry.root.path);
    }
  }
  for (const RecordKind kind : {RecordKind::kSession, RecordKind::kTurn}) {
    BELAY_TRY(auto records, catalog.ListRecords({.kind = kind, .root = root}));
    for (const LogRecord& record : records) {  // newest first
      auto id = record.fields.Text(kSession);
      if (!id) continue;
      SessionSummary& session = meet(*id, record.made_ms, record.seq);
      if (const auto path = paths.find(record.root); path != paths.end())
        places[*id].insert(path->second);
      if (kind == RecordKind::kTurn) {
        // One that works in several roots has the turn in each of them.
        const auto turn = ToTurn(record);
        if (!turn.ok() || counted.emplace(*id, turn->turn).second) ++session.turns;
        continue;
      }
      if (!session.agent) session.agent = record.fields.Text(kAgent);
      auto told = ToSession(record);
      if (told.ok() && told->ended)
        ends.try_emplace(*id, std::pair(record.seq, record.made_ms));
      if (told.ok()) {
        ToldPath& path = told_paths[*id];
        path.Learn(*told, record.seq);
        session.transcript_path = path.path;
      }
      if (session.parent || !told.ok() || !told->parent) continue;
      session.parent = told->parent;
      session.inherited = told->inherited_turns;
      session.is_subagent = told->subagent;
      if (told->subagent)
        subagents.push_back({*told->parent, {*id, std::move(told->subagent_type)}});
    }
  }
  for (auto at = subagents.rbegin(); at != subagents.rend(); ++at) {  // oldest first
    const auto own = known.find(at->second.id), parent = known.find(at->first);
    if (own == known.end() || parent == known.end() || own == parent ||
        own->second.checkpoints > 0 || own->second.turns > 0)
      continue;
    parent->second.last_seq = std::max(parent->second.last_seq, own->second.last_seq);
    parent->second.last_ms = std::max(parent->second.last_ms, own->second.last_ms);
    known.erase(own);
    parent->second.subagents.push_back(std::move(at->second));
  }
  BELAY_TRY(auto copies, ListTranscripts(catalog, std::nullopt));
  for (const TranscriptCopy& copy : copies)
    if (auto at = known.find(copy.record.session); at != known.end() && copy.latest)
      at->second.transcript_bytes += copy.record.bytes;
  std::vector<SessionSummary> out;
  for (auto& [id, session] : known) {
    session.roots.assign(places[id].begin(), places[id].end());
    if (const auto end = ends.find(id);
        end != ends.end() && (end->second.first >= session.last_seq ||
                              BELAY_MUTANT("ended-sessions-stay-ended")))
      session.ended_ms = end->second.second;
    if (!session.agent) {
      BELAY_TRY(auto newest, catalog.ListCheckpoints({.session = id, .limit = 1}));
      if (!newest.empty()) session.agent = newest[0].checkpoint.agent;
    }
    out.push_back(std::move(session));
  }
  std::ranges::sort(out, std::greater<>(), &SessionSummary::last_seq);
  return out;
}

void MeasureConversations(Fs& fs, std::vector<SessionSummary>& sessions) {
  for (SessionSummary& session : sessions) {
    if (!session.transcript_path) continue;
    auto path = AbsPath::Parse(*session.transcript_path);
    if (!path.ok() || path->is_root()) continue;
    auto dir = fs.OpenDir(path->parent());
    if (!dir.ok()) continue;
    auto stat = fs.StatAt(*dir, Name::Literal(path->name()));
    if (stat.ok() && stat->type == FileType::kRegular) session.file_bytes = stat->size;
  }
}

Status CheckSession(Catalog& catalog, const RootId& root, std::string_view session) {
  BELAY_TRY(auto all, ListSessions(catalog, root));
  for (const SessionSummary& one : all)
    if (one.id == session) return Ok();
  return Error(Errc::kNotFound, "there is no session " + EscapeText(session) + " here")
      .WithHint(
          "see them with: belay sessions; of all directories: belay sessions --all");
}

namespace {

// Those whose parent is one of these, and are none themselves.
Result<std::vector<std::string>> GrewOutOf(Catalog& catalog,
                                           const std::set<std::string>& sessions) {
  std::set<std::string> out;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : records)
    if (auto parent = record.fields.Text(kParent);
        parent && sessions.contains(*parent) && !IsOf(record, sessions))
      if (auto heir = record.fields.Text(kSession)) out.insert(std::move(*heir));
  return std::vector<std::string>(out.begin(), out.end());
}

Result<bool> AllHaveTheirOwn(const std::vector<std::string>& heirs,
                             const HasItsOwn& has_its_own) {
  if (BELAY_MUTANT("copies-that-a-fork-needs-go")) return true;
  if (!has_its_own) return false;
  for (const std::string& heir : heirs) {
    BELAY_TRY(const bool own, has_its_own(heir));
    if (!own) return false;
  }
  return true;
}

bool HaveIt(const std::vector<Lineage>& heirs, const std::string& session,
            const std::optional<uint64_t>& turn, uint64_t seq) {
  return std::ranges::any_of(
      heirs, [&](const Lineage& heir) { return heir.Has(session, turn, seq); });
}

// Which checkpoints of these go, and which stay. Whether there are any.
Result<bool> PlanCheckpoints(Catalog& catalog, const std::vector<std::string>& sessions,
                             const std::vector<Lineage>& heirs, SessionDeletion& plan) {
  bool any = false;
  BELAY_TRY(auto roots, catalog.Roots());
  for (const RootEntry& root : roots) {
    SessionDeletion::OfRoot here{root, {}};
    for (const std::string& one : sessions) {
      BELAY_TRY(auto entries,
                catalog.ListCheckpoints({.root = root.root.id, .session = one}));
      for (CatalogEntry& entry : entries) {
        any = true;
        const Checkpoint& c = entry.checkpoint;
        if (entry.pinned)
          plan.pinned.push_back(std::move(entry));
        else if (!BELAY_MUTANT("delete-shared-session") &&
                 HaveIt(heirs, one, c.turn, c.seq))
          plan.shared.push_back(std::move(entry));
        else
          here.checkpoints.push_back(c.id);
      }
    }
    plan.checkpoints += here.checkpoints.size();
    if (!here.checkpoints.empty()) plan.roots.push_back(std::move(here));
  }
  return any;
}

// What was said where something is pinned: as of the turns, so of whole sessions.
struct PinnedTurns {
  std::set<std::pair<std::string, uint64_t>> turns;
  std::set<std::string> sessions;
};
PinnedTurns TurnsOfPinned(const SessionDeletion& plan) {
  PinnedTurns out;
  if (BELAY_MUTANT("what-was-pinned-is-forgotten")) return out;
  for (const CatalogEntry& entry : plan.pinned) {
    const Checkpoint& c = entry.checkpoint;
    out.sessions.insert(*c.session);
    if (c.turn) out.turns.emplace(*c.session, *c.turn);
  }
  return out;
}

// Which records go, and what stays for `heirs` and what is pinned. Whether there are
// any.
Result<bool> PlanRecords(Catalog& catalog, const std::set<std::string>& sessions,
                         const std::vector<Lineage>& heirs, bool copies_go,
                         SessionDeletion& plan) {
  bool any = false;
  const PinnedTurns pinned = TurnsOfPinned(plan);
  // What is pinned still belongs to it, and nobody else tells of it.
  const bool all = heirs.empty() && !plan.pinned.empty();
  for (const RecordKind kind :
       {RecordKind::kSession, RecordKind::kTurn, RecordKind::kTranscript}) {
    BELAY_TRY(auto records, catalog.ListRecords({.kind = kind}));
    for (const LogRecord& record : records) {
      if (!IsOf(record, sessions)) continue;
      any = true;
      bool stays = all;
      if (!heirs.empty() && kind == RecordKind::kSession) {
        stays = true;  // where it came from, and who came from it
      } else if (!heirs.empty() && kind == RecordKind::kTurn) {
        const auto turn = ToTurn(record);
        stays = !turn.ok() || pinned.turns.contains({turn->session, turn->turn}) ||
                (!BELAY_MUTANT("turns-that-a-fork-has-go") &&
                 HaveIt(heirs, turn->session, turn->turn, record.seq));
      } else if (!heirs.empty() && kind == RecordKind::kTranscript) {
        // What a host told is nowhere else.
        const auto copy = ToTranscript(record);
        stays = !copies_go || !copy.ok() || copy->path.empty() ||
                pinned.sessions.contains(copy->session);
      }
      if (!stays) plan.records.push_back(record.id);
      if (stays && kind == RecordKind::kTurn) ++plan.kept_turns;
      if (stays && kind == RecordKind::kTranscript) ++plan.kept_copies;
    }
  }
  return any;
}

}  // namespace

Result<SessionDeletion> PlanSessionDeletion(Catalog& catalog,
                                            const std::string& session,
                                            const HasItsOwn& has_its_own) {
  SessionDeletion plan;
  plan.session = session;
  BELAY_TRY(const auto named, WithSubagents(catalog, session));
  const std::set<std::string> sessions(named.begin(), named.end());
  BELAY_TRY(plan.shared_by, GrewOutOf(catalog, sessions));
  std::vector<Lineage> heirs;
  for (const std::string& heir : plan.shared_by) {
    BELAY_TRY(Lineage lineage, Lineage::Of(catalog, heir));
    heirs.push_back(std::move(lineage));
  }
  BELAY_TRY(const bool copies_go, AllHaveTheirOwn(plan.shared_by, has_its_own));
  BELAY_TRY(const bool made, PlanCheckpoints(catalog, named, heirs, plan));
  BELAY_TRY(const bool told, PlanRecords(catalog, sessions, heirs, copies_go, plan));
  if (!made && !told)
    return Error(Errc::kNotFound, "there is no session " + EscapeText(session))
        .WithHint("see them with: belay sessions");
  return plan;
}

Result<uint64_t> DeleteSession(Store& store, Catalog& catalog,
                               const SessionDeletion& plan) {
  if (!plan.shared_by.empty() && plan.roots.empty() && plan.records.empty())
    return Error(Errc::kRefused, "session " + EscapeText(plan.shared_by[0]) +
                                     " grew out of it and has what is left of it in "
                                     "its history")
        .WithHint("delete that one first; nothing was deleted");
  BELAY_OK(ForgetSession(store, plan.session, store.options().lock_wait_ms));
  uint64_t gone = 0;
  // It is to be forgotten, and nothing of it handed on. But where another session grew
  // out of it, what it did is the past of that one: not the doing of others.
  const bool hand_on =
      !plan.shared_by.empty() && !BELAY_MUTANT("what-a-fork-came-from-is-nobodys");
  for (const SessionDeletion::OfRoot& here : plan.roots) {
    BELAY_TRY(Deleted deleted, DeleteCheckpoints(store, catalog, here.root.root,
                                                 here.checkpoints, "delete", hand_on));
    gone += deleted.checkpoints.size();
  }
  // Last: while it is told of, whoever was interrupted can ask again.
  if (plan.records.empty()) return gone;
  BELAY_TRY(auto writer, store.Begin());
  writer->Add(MakeDrop(RecordId(store.random().NewId()), store.clock().WallMillis(),
                       plan.records));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return gone;
}

}  // namespace belay
