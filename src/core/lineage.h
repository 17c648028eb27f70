#pragma once

// Lineage: which sessions a session grew out of, and what of them is its own history
// too. A session that was forked, resumed under another id or restarted goes on with
// the conversation of its parent: the turns up to the fork, and the checkpoints that
// belong to them, are told as its own (`turn:N`, `tool:ID`, `list --session`).
//
// Who is whose parent was told by agents and read from their files, so it may be
// anything: circles end, what is beyond kMaxGenerations is not looked at, and a parent
// that worked elsewhere has no checkpoint in the root that is asked about.
//
// A turn that the session counts itself hides its ancestors' of the same number: a
// parent may become known after the session had its first turn.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/catalog.h"

namespace belay {

inline constexpr size_t kMaxGenerations = 10'000;

struct Generation {
  std::string session;
  uint64_t turns = UINT64_MAX;       // up to this number they belong to it
  uint64_t before_seq = UINT64_MAX;  // and what was recorded before this
  // What it has of an ancestor.
  bool Has(const std::optional<uint64_t>& turn, uint64_t seq) const {
    return turn.value_or(0) <= turns && seq < before_seq;
  }
};

class Lineage {
 public:
  static Result<Lineage> Of(Catalog& catalog, const std::string& session);

  // The session itself, its parent, and so on.
  const std::vector<Generation>& generations() const { return generations_; }
  // Whether a checkpoint with these belongs to the session's history.
  bool Has(const std::optional<std::string>& session,
           const std::optional<uint64_t>& turn, uint64_t seq) const;

 private:
  std::vector<Generation> generations_;
  std::unordered_map<std::string, size_t> by_session_;
};

// What a checkpoint is called that was made when a prompt was submitted: the first line
// of it, or "turn 3".
std::string TurnLabel(std::string_view prompt, uint64_t turn);
std::string FirstLine(std::string_view text);  // not blank, and not too long
// Made when a prompt was submitted, by what the checkpoint says itself.
bool LooksLikeStart(const Checkpoint& checkpoint);

// What was there when a prompt was submitted. Never anything else: what the turn did
// since, or what somebody made in it by hand, is not what `turn:N` means.
struct TurnStart {
  std::optional<CatalogEntry> state = {};
  // The prompt was recorded in another root: `state` is before its first call here.
  bool elsewhere = false;
  // Where there is no state: the oldest checkpoint that is kept of the turn, whether
  // the prompt was recorded here, and with a state at all.
  std::optional<CatalogEntry> nearest = {};
  bool recorded = false, stateless = false;
};
// Of prompt `turn`, the session's own or inherited.
Result<TurnStart> FindTurnOf(Catalog& catalog, const RootId& root,
                             const std::string& session, uint64_t turn);
// Of the sessions it grew out of, the nearest first: the oldest checkpoint of their
// prompt `turn` where that is not the session's history: said behind the fork. Of all
// roots when none is named.
Result<std::vector<CatalogEntry>> TurnsBeyond(Catalog& catalog,
                                              const std::optional<RootId>& root,
                                              const std::string& session,
                                              uint64_t turn);
// As FindTurnOf, of a tool call.
Result<std::optional<CatalogEntry>> FindToolOf(Catalog& catalog, const RootId& root,
                                               const std::string& session,
                                               const std::string& tool_use_id);

// The session that started it, when it is a subagent's; else itself.
Result<std::string> WhoseSubagent(Catalog& catalog, const std::string& session);
// The session, and the sessions of its subagents, and of theirs.
Result<std::vector<std::string>> WithSubagents(Catalog& catalog,
                                               const std::string& session);
std::vector<std::string> WithSubagents(std::span<const SessionRecord> told,
                                       const std::string& session);

}  // namespace belay
