#pragma once

// What a host tells of its conversation (`messages` of generic events): hosts keep no
// file that could be copied, so that the messages themselves are kept, while
// `transcripts = "keep"`, as a transcript without a path (core/transcripts.h).
//
// A line each, in the order in which they were told:
//   {"turn":3,"role":"assistant","id":"m-41","index":12,"text":"..."}
// `id` and `index` where the host told them, `turn` 0 before the first prompt. Told
// again (a hook that runs twice, a host that tells all of it with every event) one with
// an id counts once; one that had been taken back when the turn began in which it is
// told again is a new one.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/event.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "core/settings.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

struct ToldMessage {
  uint64_t turn = 0;
  std::string role, id = {};
  std::optional<uint64_t> index = {};
  std::string text = {};  // at most kMaxWhat when read
};

// False: there was nothing to keep.
Result<bool> KeepTold(Store& store, const Root& root, const Settings& settings,
                      const HookEvent& event);

// Oldest first; of very many the newest kMostMessages. Nothing of a session that told
// none.
struct Told {
  std::vector<ToldMessage> messages = {};
  uint64_t left_out = 0;
  uint64_t bytes = 0;  // of the copy; 0: there is none
};
Result<Told> ReadTold(Store& store, Catalog& catalog, const std::string& session);
// The same with what it has of the sessions that it grew out of.
Result<Told> ReadToldOf(Store& store, Catalog& catalog, const Lineage& lineage);

// The rewind to within that turn, `said` as that number of the log, which took the
// message back; null: none did. `behind`: whether it comes at or behind the message
// with this id, of one that has no index.
const Operation* CutOffBy(const Chats& chats, std::string_view session, uint64_t turn,
                          uint64_t said, const std::optional<uint64_t>& index,
                          const std::function<bool(const std::string&)>& behind);

// How many a host takes back that goes on from before `chat.message`, and how many it
// then has; what it was told to forget before is neither, and of two with one id that
// both count the later one does. `turns`: those of the session
// (core/chat.h). Nothing where none were told.
struct ToldCounts {
  uint64_t taken = 0, kept = 0;
};
std::optional<ToldCounts> CountTold(const Told& told, const Chats& chats,
                                    const std::vector<TurnOf>& turns,
                                    const ChatRecord& chat);

}  // namespace belay
