#include "core/lineage.h"

#include <algorithm>
#include <unordered_set>

#include "base/mutant.h"

namespace belay {

namespace {

struct Told {
  std::optional<std::string> parent = {};
  uint64_t inherited = 0;
  uint64_t first_seq = 0;
  bool subagent = false;
};

Result<std::unordered_map<std::string, Told>> ReadTold(Catalog& catalog) {
  std::unordered_map<std::string, Told> told;
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  for (const LogRecord& record : records) {  // newest first
    auto one = ToSession(record);
    if (!one.ok()) continue;
    Told& session = told[one->session];
    session.first_seq = record.seq;
    // Of one that works in several roots not every record names the parent.
    if (session.parent || !one->parent) continue;
    session.parent = std::move(one->parent);
    session.inherited = one->inherited_turns;
    session.subagent = one->subagent;
  }
  return told;
}

Result<std::optional<CatalogEntry>> Oldest(Catalog& catalog,
                                           const CheckpointFilter& filter) {
  BELAY_TRY(auto found, catalog.ListCheckpoints(filter));
  if (found.empty()) return std::optional<CatalogEntry>();
  return std::optional<CatalogEntry>(std::move(found[0]));
}

}  // namespace

Result<Lineage> Lineage::Of(Catalog& catalog, const std::string& session) {
  BELAY_TRY(const auto told, ReadTold(catalog));
  Lineage out;
  for (Generation at{.session = session};;) {
    if (out.generations_.size() == kMaxGenerations ||
        !out.by_session_.emplace(at.session, out.generations_.size()).second)
      break;
    out.generations_.push_back(at);
    const auto known = told.find(at.session);
    if (known == told.end() || !known->second.parent || known->second.subagent ||
        BELAY_MUTANT("nothing-is-inherited"))
      break;
    at = {.session = *known->second.parent,
          .turns = std::min(at.turns, known->second.inherited),
          .before_seq = std::min(at.before_seq, known->second.first_seq)};
    if (at.turns == 0) break;
    if (BELAY_MUTANT("all-turns-are-inherited")) at.turns = UINT64_MAX;
  }
  return out;
}

bool Lineage::Has(const std::optional<std::string>& session,
                  const std::optional<uint64_t>& turn, uint64_t seq) const {
  if (!session) return false;
  const auto at = by_session_.find(*session);
  return at != by_session_.end() && generations_[at->second].Has(turn, seq);
}

std::string FirstLine(std::string_view text) {
  constexpr size_t kMaxLabel = 120;
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.size() <= kMaxLabel) return std::string(text);
  size_t end = kMaxLabel;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string TurnLabel(std::string_view prompt, uint64_t turn) {
  std::string line = FirstLine(prompt);
  return line.empty() ? "turn " + std::to_string(turn) : line;
}

bool LooksLikeStart(const Checkpoint& checkpoint) {
  return checkpoint.kind == CheckpointKind::kAuto && checkpoint.turn &&
         !checkpoint.tool_name &&
         checkpoint.description ==
             TurnLabel(checkpoint.prompt.value_or(""), *checkpoint.turn);
}

namespace {

// The records of prompt `turn` by session, of one root or of all.
struct ToldTurn {
  uint64_t seq = 0;
  bool stateless = false;
};
using ToldTurns = std::unordered_map<std::string, std::vector<ToldTurn>>;
Result<ToldTurns> ToldOf(Catalog& catalog, const std::optional<RootId>& root,
                         uint64_t turn) {
  ToldTurns out;
  BELAY_TRY(auto records,
            catalog.ListRecords({.kind = RecordKind::kTurn, .root = root}));
  for (const LogRecord& record : records)
    if (auto one = ToTurn(record); one.ok() && one->turn == turn)
      out[one->session].push_back({record.seq, one->stateless});
  return out;
}

// It is published in one batch with the record of the turn, and before it; between them
// is at most the session's.
bool IsStart(const Checkpoint& checkpoint, const std::vector<ToldTurn>& told) {
  return !checkpoint.tool_name && std::ranges::any_of(told, [&](const ToldTurn& one) {
    return checkpoint.seq < one.seq && one.seq - checkpoint.seq <= 2;
  });
}

Result<TurnStart> StartOf(Catalog& catalog, const RootId& root,
                          const std::string& session, uint64_t turn,
                          const ToldTurns& here, const ToldTurns& anywhere) {
  TurnStart out;
  CheckpointFilter filter{
      .root = root, .session = session, .turn = turn, .oldest_first = true, .limit = 1};
  BELAY_TRY(out.nearest, Oldest(catalog, filter));
  filter.kind = CheckpointKind::kAuto;
  BELAY_TRY(auto first, Oldest(catalog, filter));
  const auto told = here.find(session);
  out.recorded = told != here.end();
  out.stateless = out.recorded && told->second.front().stateless;
  if (!first) return out;
  const Checkpoint& c = first->checkpoint;
  if (out.recorded ? IsStart(c, told->second) : LooksLikeStart(c)) {
    out.state = std::move(first);
  } else if (!out.recorded && anywhere.contains(session) && c.tool_name &&
             c.description.starts_with("before ")) {
    out.state = std::move(first);
    out.elsewhere = true;
  } else if (BELAY_MUTANT("turn-is-what-is-left-of-it")) {
    out.state = std::move(first);
  }
  return out;
}

}  // namespace

Result<TurnStart> FindTurnOf(Catalog& catalog, const RootId& root,
                             const std::string& session, uint64_t turn) {
  BELAY_TRY(const ToldTurns here, ToldOf(catalog, root, turn));
  BELAY_TRY(const ToldTurns anywhere, ToldOf(catalog, std::nullopt, turn));
  BELAY_TRY(TurnStart own, StartOf(catalog, root, session, turn, here, anywhere));
  // A turn that somebody counted, and whose checkpoints are gone, is not another's.
  if (own.state || anywhere.contains(session)) return own;
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  for (const Generation& at : lineage.generations()) {
    if (turn > at.turns) break;
    BELAY_TRY(TurnStart one, StartOf(catalog, root, at.session, turn, here, anywhere));
    for (auto* entry : {&one.state, &one.nearest})
      if (*entry && !at.Has(turn, (*entry)->checkpoint.seq)) entry->reset();
    if (one.state) return one;
    if (one.nearest && !own.nearest) own = std::move(one);
    if (anywhere.contains(at.session)) break;
  }
  return own;
}

Result<std::vector<CatalogEntry>> TurnsBeyond(Catalog& catalog,
                                              const std::optional<RootId>& root,
                                              const std::string& session,
                                              uint64_t turn) {
  std::vector<CatalogEntry> out;
  BELAY_TRY(const auto told, ReadTold(catalog));
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  CheckpointFilter filter{.root = root, .turn = turn, .oldest_first = true, .limit = 1};
  std::unordered_set<std::string> seen{session};
  for (std::string at = session; seen.size() < kMaxGenerations;) {
    const auto known = told.find(at);
    if (known == told.end() || !known->second.parent || known->second.subagent ||
        !seen.insert(*known->second.parent).second)
      break;
    at = *known->second.parent;
    filter.session = at;
    BELAY_TRY(auto found, Oldest(catalog, filter));
    if (found && !lineage.Has(at, turn, found->checkpoint.seq))
      out.push_back(std::move(*found));
  }
  return out;
}

Result<std::optional<CatalogEntry>> FindToolOf(Catalog& catalog, const RootId& root,
                                               const std::string& session,
                                               const std::string& tool_use_id) {
  CheckpointFilter filter{.root = root,
                          .session = session,
                          .tool_use_id = tool_use_id,
                          .oldest_first = true,
                          .limit = 1};
  BELAY_TRY(auto own, Oldest(catalog, filter));
  if (own) return own;
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  for (const Generation& at : lineage.generations()) {
    filter.session = at.session;
    BELAY_TRY(auto found, Oldest(catalog, filter));
    if (found && at.Has(found->checkpoint.turn, found->checkpoint.seq)) return found;
  }
  return std::optional<CatalogEntry>();
}

Result<std::string> WhoseSubagent(Catalog& catalog, const std::string& session) {
  BELAY_TRY(const auto told, ReadTold(catalog));
  std::string at = session;
  for (std::unordered_set<std::string> seen; seen.insert(at).second;) {
    const auto known = told.find(at);
    if (known == told.end() || !known->second.subagent) return at;
    at = *known->second.parent;
  }
  return session;  // a circle
}

std::vector<std::string> WithSubagents(std::span<const SessionRecord> told,
                                       const std::string& session) {
  std::unordered_map<std::string, std::vector<const SessionRecord*>> below;
  // One that is a session of its own by any other word does not go with somebody who
  // says so.
  std::unordered_set<std::string> own;
  for (const SessionRecord& one : told)
    if (!one.subagent) own.insert(one.session);
  for (const SessionRecord& one : told)
    if (one.subagent && one.parent && !own.contains(one.session))
      below[*one.parent].push_back(&one);
  std::vector<std::string> out{session};
  std::unordered_set<std::string> seen{session};
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = below.find(out[i]);
    if (at == below.end()) continue;
    for (const SessionRecord* one : at->second)
      if (seen.insert(one->session).second) out.push_back(one->session);
  }
  return out;
}

Result<std::vector<std::string>> WithSubagents(Catalog& catalog,
                                               const std::string& session) {
  BELAY_TRY(auto records, catalog.ListRecords({.kind = RecordKind::kSession}));
  std::vector<SessionRecord> told;
  for (const LogRecord& record : records)
    if (auto one = ToSession(record); one.ok()) told.push_back(std::move(*one));
  return WithSubagents(told, session);
}

}  // namespace belay
