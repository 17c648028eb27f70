#pragma once

// Conversations that were taken back: what is in effect of it, which session goes on,
// and what is recorded beside the operation.
//
// A conversation is never changed: one that was cut is another session, a fork, and the
// original stays. Which of the two goes on follows from the operations alone: the
// newest that was not undone says so, unless the original was gone on with since. A
// host that keeps a conversation itself goes on with the same session; what was taken
// back of it is told by the events.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/operations.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// What the log has of conversations: enough to tell how they stood at any time.
struct ChatLog {
  static Result<ChatLog> Read(Catalog& catalog);
  // One record after the other, in their order; of no use are most.
  void Learn(const LogRecord& record);

  // Of each root the operations that are about a conversation, oldest first.
  std::map<RootId, std::vector<Operation>> operations = {};
  struct Turn {
    uint64_t turn = 0, seq = 0;
  };
  struct Session {
    std::vector<Turn> turns = {};  // its own
    // Whose turns it has, too: up to this number, recorded before it was.
    std::string parent = {};
    uint64_t inherited = 0, first_seq = 0;
  };
  std::map<std::string, Session> sessions = {};
};

// How a conversation stands.
struct ChatStanding {
  std::string goes_on = {};  // empty: the agent begins anew
  // Of an operation: the rewind that it is about does not count (any more).
  bool undone = false;
  // Nothing: all that was ever said in it.
  struct Kept {
    uint64_t turn = 0;  // the last that counts
    // The first message that does not, where the rest was taken back; without one all
    // counts that was said since the last rewind.
    std::optional<std::string> message = {};
    std::optional<uint64_t> message_index = {};
    bool operator==(const Kept&) const = default;
  };
  std::optional<Kept> kept = {};
};

class Chats {
 public:
  // As it was right after the operation with the number `until`.
  explicit Chats(const ChatLog& log, uint64_t until = UINT64_MAX);
  // Of all roots; `next`: as they will be when this is recorded, too.
  static Result<Chats> Read(Catalog& catalog, const Operation* next = nullptr);

  // Operations that took a conversation back and were not undone, oldest first. Their
  // number and time are those of the redo that made them count again, if any did; of a
  // host's their own: what was said since the first time is not taken back by a redo.
  const std::vector<Operation>& in_effect() const { return in_effect_; }
  // The newest of them that is about this session; null: all of it goes on.
  const Operation* LastOf(std::string_view session) const;
  // The session that the conversation of `session` goes on as, fork after fork. One
  // that was heard of again after it was taken back (it was open in a terminal, or
  // somebody resumed it) goes on as itself, all of it: nothing made it forget.
  struct GoesOn {
    std::string session;
    // Nothing of it is left: whoever goes on begins anew.
    bool anew = false;
    const Operation* by = nullptr;  // the last one on the way; until this is gone
    std::vector<const Operation*> way = {};  // all of them
  };
  GoesOn Follow(const std::string& session) const;
  // Of the turns and messages of a session: whether this turn, recorded as number
  // `seq`, was taken back, and by what: also of a fork that it goes on as. They are
  // kept, and can be had with `belay undo`.
  const Operation* TakenBackBy(std::string_view session, uint64_t turn,
                               uint64_t seq) const;
  // How the conversation stands that `operation`, the last of these, is about: none of
  // it is recorded, since it would name sessions that a purge has to erase.
  ChatStanding After(const Operation& operation) const;

 private:
  // The rewind that an operation is about.
  RecordId AboutOf(const Operation& operation) const;
  bool WentOn(const Operation& rewind) const;
  // `now`: what it was just told of, if that is the last.
  std::optional<ChatStanding::Kept> KeptByHost(std::string_view session,
                                               const Operation* now) const;

  std::vector<Operation> in_effect_;
  // Which operation an undo out of order was of: to undo that is to redo the other.
  std::map<RecordId, RecordId> undone_out_of_order_;
  // Of each session that was taken back, by number.
  std::map<std::string, std::map<uint64_t, uint64_t>, std::less<>> turns_;
};

// Where the agent keeps a conversation: what it told last. The records beside an
// operation and of an end repeat what was known before, and count where nobody told.
struct ToldPath {
  void Learn(const SessionRecord& record, uint64_t record_seq);  // newest first
  std::optional<std::string> path = {};
  uint64_t seq = 0;  // of the record that has it
  bool by_agent = false;
};

// What the log says last of a session; nothing when it does not know it. Where it
// worked is where that is now, when the root was moved since.
Result<std::optional<SessionRecord>> LatestSession(Catalog& catalog,
                                                   const std::string& session);

// Where the conversation of an operation goes on, when the root was moved since.
Result<std::string> CwdNow(Catalog& catalog, const Operation& operation);

// The turns of a conversation, by number: its own, and those it has of the sessions it
// grew out of.
struct TurnOf {
  TurnRecord turn;
  uint64_t seq = 0;
  std::string directory = {};  // the root that it was said in, where that is now
  RootId root = {};
};
// One for each number. Stores of before turns were counted over all roots may have two
// in one session: of those the one that was said in `here`, else the newest.
Result<std::vector<TurnOf>> TurnsOf(Catalog& catalog, const std::string& session,
                                    std::string_view here = {});
// All of them, those of one number in the order in which they were said.
Result<std::vector<TurnOf>> AllTurnsOf(Catalog& catalog, const std::string& session);

// The session with this id, or the only one whose id begins so (at least 4
// characters). kNotFound or kInvalid with a hint.
Result<std::string> FindSession(Catalog& catalog, std::string_view text);

// The session that went along when the directory was forked whose first checkpoint this
// is, which belongs to none itself; nothing of any other.
Result<std::optional<std::string>> CameAlong(Catalog& catalog, const Checkpoint& first);

// What is recorded in one batch with the operation, behind it: of the session that no
// longer goes on from its end, then of the one that does.
Result<std::vector<LogRecord>> RecordsBeside(Store& store, const Operation& operation);

}  // namespace belay
