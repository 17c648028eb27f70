#pragma once

// Live: what is going on in a root right now: the sessions at work there, the turn each
// is in, and the tool calls that have begun and not ended. From it follows whose doing
// a change is.
//
// Every beginning and every end of a call is a look at the directory (a capture), so
// between two captures the same calls are at work all the time. What changed in between
// is
//   * the doing of the calls that name the path (edit tools do);
//   * of a path that nobody names, the doing of the calls that may write anything;
//   * when nobody may have: from outside.
// Several of them are named together, as *shared*: nobody guesses.
//
// Not everything is looked at (the settings may say so, a capture may fail), and not
// everything is told. So there is one rule for all of it: whose doing a change is, is
// known of those calls alone that were at work from the look before it to the one after
// it. Where there is none but such as began or ended in between, or may have, whoever
// is outside is named, too: see LiveCall::Part. And where a call was taken for at work
// whose end never came, another that was, and that may have done it, is named in place
// of outside: see Vouched.
//
// A file in the store (cache/<root id>.live), read and written under the root's lock.
// It is a hint that no flush protects: without it sessions are known from the log, and
// of calls that are at work nobody knows, so that what they do is from outside.
// Layout: docs/format.md, "cache/".

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/log_record.h"
#include "store/store.h"

namespace belay {

// A checkpoint that calls changes a call's doing, and not outside's as well, because it
// was taken for at work: see NameOutside().
struct Vouched {
  RecordId id;
  // Which of its changes, or what may be them, of a call that names paths; less those
  // that another call names as well whose end was told.
  std::vector<std::string> paths = {};
  // Calls that may write anything and were at work as well, their ends told: what the
  // call did not do they did, and nobody from outside.
  std::vector<Author> beside = {};
  // It stands for nothing there; but if its end is told, nobody else need to.
  bool for_others = false;
  bool operator==(const Vouched&) const = default;
};

struct LiveCall {
  Author author;
  std::string fingerprint = {};         // pairs the two ends of a call that has no id
  bool anything = true;                 // it may write anywhere; else only `paths`
  std::vector<std::string> paths = {};  // from the root on
  bool background = false;              // its end was told, and it may be at work still
  std::string task = {};  // what later messages call one in the background
  // A subagent's, and the turn of the agent that started it is over.
  bool outlives_turn = false;
  // It is over, and nobody has looked at the directory since: what the next one finds
  // may be its doing. In the background, too.
  bool unseen = false;
  // The directory itself was there at its beginning, and gone at its end.
  bool took_root = false;
  // Nobody has looked at the directory since it began, or since the agent waited for
  // its user while it went on in the background: what the next one finds may have been
  // there before, or be that user's.
  bool fresh = false;
  // Its end was not told, and that of one was which the same agent began later.
  bool doubtful = false;
  // At the last look nothing had been heard of its session for kCallQuietMs.
  bool quiet = false;
  // In the background, of a process of its agent that is gone, since `begun_ms`. It may
  // be at work still (a daemon), and who would tell that it is not is no more.
  bool left = false;
  std::vector<Vouched> vouched = {};  // the newest
  int64_t begun_ms = 0;
  // As far as the present look is concerned; it is in no file. Of what is found while
  // nothing but kPerhaps is at work, outside is named, too.
  enum class Part : uint8_t { kAtWork, kPerhaps, kOver } part = Part::kAtWork;
  bool operator==(const LiveCall&) const = default;
};

// Agents that are killed or interrupted do not tell the end: of what was not heard for
// so long, a turn counts as over, and so does a call, which may be one long command.
inline constexpr int64_t kTurnQuietMs = 30 * 60'000;
inline constexpr int64_t kCallQuietMs = 240 * 60'000;

struct LiveSession {
  std::string id;
  std::string agent = {};
  uint64_t turn = 0;                        // the newest; 0: no prompt yet
  uint64_t inherited = 0;                   // turns of its parent; it counts on
  std::optional<std::string> anchor = {};   // of that turn
  std::optional<std::string> message = {};  // that began it, where it has another id
  std::string print = {};   // of its prompt, where the agent has no id for it
  bool silent = false;      // nothing else was heard since that prompt
  std::string prompt = {};  // of that turn
  std::optional<uint64_t> message_index = {};
  bool recorded = false;  // there is a record of it
  bool in_turn = false;   // it was not told to have ended
  bool searched = false;  // its transcript was looked at for who its parent is
  std::string transcript = {}, cwd = {};
  std::vector<std::string> subagents = {};  // those that there is a record of
  int64_t seen_ms = 0;                      // the last event
  bool ended = false;                       // which was its end
  // The newest operation that the model knows of, or need not be told of.
  uint64_t knows_operation = 0;
  // The newest checkpoint when `/rollback` last showed numbers there.
  std::string shown = {};
  // Turns by what the agent calls them, the last one said of each anchor; 0: nobody
  // heard its prompt. The newest last, and not too many.
  std::vector<std::pair<std::string, uint64_t>> heard = {};
  std::optional<uint64_t> Heard(std::string_view anchor_of) const;
  void Hear(const std::string& anchor_of, uint64_t its_turn);
  bool operator==(const LiveSession&) const = default;
};

class Live {
 public:
  // Empty when there is none, or none that can be read.
  static Live Load(Store& store, const RootId& root);
  Status Save(Store& store, const RootId& root) const;

  const std::vector<LiveSession>& sessions() const { return sessions_; }
  const std::vector<LiveCall>& calls() const { return calls_; }
  const LiveSession* Find(std::string_view session) const;
  // The session that was heard of last.
  const LiveSession* newest() const;
  // The one that was heard of last, and not of its end, within a day before `now_ms`:
  // agents that are killed, and some that are left, say nothing of it.
  const LiveSession* Active(int64_t now_ms) const;

  // The session, made when it is new; the one that was not heard of for longest goes
  // when there are too many.
  LiveSession& Meet(std::string_view session, int64_t now_ms);
  void Forget(std::string_view session);

  // It has begun already: a hook that runs twice. With `late`, of a hook that the agent
  // no longer waits for, also one that has ended since. (While the agent waits for the
  // beginning, it has not: the same id is another call then.)
  bool Knows(const LiveCall& call, bool late) const;
  // False: it is at work already. A new one is fresh until somebody has looked.
  bool Begin(LiveCall call);
  enum class Ending : uint8_t { kEnded, kUnknown, kTwice };
  // With `background` it stays, as one whose end is not known.
  Ending End(const LiveCall& call, bool background);
  // All calls of a session, or of one subagent of it, or with "" of the agent itself;
  // not those in the background. `presumed`: their end may be told yet, and then they
  // were at work until there.
  void EndAll(std::string_view session, const std::optional<std::string>& subagent,
              bool presumed = false);
  // The agent waits for its user, and so its own calls are over. Subagents may be at
  // work still: those that are `running`, where the agent says.
  void EndTurn(std::string_view session,
               const std::optional<std::vector<std::string>>& running);
  // Somebody said something: all is over that was not known to go on.
  void BeginTurn(std::string_view session, int64_t now_ms);
  // Those in the background: one by its task, or all of the session but some.
  void EndTask(std::string_view session, std::string_view task);
  void KeepTasks(std::string_view session, const std::vector<std::string>& running);
  // The agent's process is another: who made those in the background is gone.
  void LeaveBackground(std::string_view session, int64_t now_ms);
  // Nobody looks, and time passed in which nobody watched them: the next look doubts
  // them.
  void KeepUnwatched();
  // Its turn is over, and its user may have been at work for long: what its calls in
  // the background stand for is doubted from now on.
  void EndUntold(std::string_view session);
  // Those of `before` that are over by now, and that nobody looked after, perhaps
  // because the directory is gone.
  void KeepUnseen(const std::vector<LiveCall>& before, bool root_is_gone);
  // What they stand for could not be corrected: that is for the next look to do.
  void KeepNeverEnded(std::vector<LiveCall> calls);

  // Before a look at the directory, and before anything is said of the event that it is
  // for. `by_agent`: it is for one; whoever looks otherwise (a checkpoint by hand, a
  // rollback) may have written beside the calls that are at work. `root_is_gone`:
  // still, where it was at the end of a call.
  void Judge(int64_t now_ms, bool by_agent, bool root_is_gone = false);
  // Of this look: what is told stands in the place of the ends of these calls, which
  // were not told: they were refused, interrupted, failed, and nobody knows when. All
  // of a session, or of one subagent of it, or with "" of the agent itself; or those
  // that EndTurn() ends, but for the turn itself.
  void Doubt(std::string_view session,
             const std::optional<std::string>& subagent = std::nullopt);
  void DoubtTurn(std::string_view session,
                 const std::optional<std::vector<std::string>>& running);
  // Those in the background: its user may have stopped the agent, which nobody tells,
  // and have been at work beside them. Or may not: what is told comes from within the
  // turn.
  void DoubtBackground(std::string_view session);
  void GoesOn(std::string_view session);
  // The end of one is told, so that it was at work until now, and those that were made
  // together with it may have been.
  void Trust(const LiveCall& call);
  // At its end a call names more than when it began.
  void NameToo(const LiveCall& call);
  // It was taken to be over, and its end is told: it was at work from the look at its
  // beginning on.
  bool WasAtWork(const LiveCall& call) const;
  // Somebody has looked; false: nothing is another way by that.
  bool Looked(int64_t now_ms);
  // What they saw is in this checkpoint: calls that are at work stand for it.
  void Vouch(const Checkpoint& checkpoint);
  // Those that were ended since this was asked, their end untold, and that stand for
  // what a checkpoint says.
  std::vector<LiveCall> TakeNeverEnded() { return std::exchange(never_ended_, {}); }

  // A call that is at work as far as the present change is concerned, by its part in
  // it: one whose end comes before its beginning was recorded.
  void AddUnheard(LiveCall call) { unheard_.push_back(std::move(call)); }

  bool operator==(const Live&) const = default;

 private:
  friend class WhoWrote;
  bool IsQuiet(const LiveCall& call, int64_t now_ms) const;
  bool IsUnwatched(const LiveCall& call) const;
  static std::string KeyOf(const LiveCall& call);
  static std::string PresumedKey(const LiveCall& call);
  void Add(LiveCall call);
  // There are too many, and the oldest is forgotten: what it stands for is doubted.
  void MakeRoom();
  void Doubt(const LiveCall& call);
  // It was at work where it stands for what was found; so nobody else need to.
  void StoodForIt(LiveCall& call);
  // Whose calls are over when the turn is: "", the agent's own, and those of subagents
  // that are not `running`.
  std::vector<std::string> OverWithTurn(
      std::string_view session,
      const std::optional<std::vector<std::string>>& running) const;
  void Remember(std::string key);

  std::vector<LiveSession> sessions_;
  std::vector<LiveCall> calls_;
  std::vector<std::string> ended_;  // keys, oldest first
  std::vector<LiveCall> unheard_;   // of this capture alone
  std::string goes_on_;             // the session that tells it, within its turn; so
  std::vector<LiveCall> never_ended_;
};

// In every root nothing is left of the session: what it said is in no such file.
Status ForgetSession(Store& store, std::string_view session, int64_t lock_wait_ms);

// Of a call that may not have been at work: who else did what it is named for is named
// beside it in these, outside where nobody is known to have been. Whether that is news.
bool NameBeside(std::vector<Authorship>& by, const Author& author, const Vouched& what);

// Of calls whose end was never told: checkpoints that took them for at work, as they
// may have been at the time, name outside beside them from now on, or who else was.
Status NameOutside(Store& store, const RootId& root,
                   const std::vector<LiveCall>& never_ended);

// Sorts changes by whose doing they are. A path may be added more than once.
class WhoWrote {
 public:
  explicit WhoWrote(const Live& live);
  void Add(std::string_view path);
  // Who may have done what nobody names, by the calls at work: never empty.
  const std::vector<Author>& rest() const { return rest_; }
  // Nothing when nothing changed.
  std::vector<Authorship> Take();

 private:
  std::vector<const LiveCall*> calls_;
  std::vector<Author> rest_;  // of what nobody names
  bool any_rest_ = false;
  std::vector<Authorship> named_;
};

// A step in what goes on, taken by a capture under the root's lock: see
// CaptureRequest::step. A capture may be tried again after a failure: then all of it is
// done again.
struct CaptureRequest;
class LiveStep {
 public:
  virtual ~LiveStep() = default;
  // Before the directory is looked at; completes the request. False: there is nothing
  // to record after all.
  virtual Result<bool> Begin(Live& live, CaptureRequest& request) = 0;
  // All but its number is known. What else is to be recorded with it, in one batch;
  // nothing at all when the checkpoint is not needed.
  virtual std::optional<std::vector<LogRecord>> Settle(const Live& live,
                                                       Checkpoint& checkpoint,
                                                       bool same_state) = 0;
  // Afterwards, whether there is a checkpoint or not: an event has happened although
  // nothing could be recorded.
  virtual void Done(Live& live, bool published) = 0;
};

// Takes the step without a capture: what it records, if anything, has no checkpoint.
Status TakeStep(Store& store, const Root& root, int64_t lock_wait_ms, LiveStep& step);

}  // namespace belay
