#include "core/live.h"

#include <algorithm>
#include <map>

#include "base/mutant.h"
#include "store/batch_writer.h"
#include "store/catalog.h"
#include "store/heads.h"

namespace belay {

namespace {

constexpr size_t kMaxSessions = 64, kMaxCalls = 256, kMaxEnded = 256;
constexpr size_t kMaxPathsOfCall = 256, kMaxKept = 2000, kMaxVouched = 256;

// One of them is the path itself, or in a directory that had to be there for it.
bool Covers(const std::vector<std::string>& paths, std::string_view path) {
  return std::any_of(paths.begin(), paths.end(), [&](std::string_view named) {
    return named == path || (named.size() > path.size() && named.starts_with(path) &&
                             named[path.size()] == '/');
  });
}

bool IsOfSameAgent(const LiveCall& a, const LiveCall& b) {
  return a.author.session == b.author.session && a.author.subagent == b.author.subagent;
}

bool Names(const std::vector<Author>& authors, const Author& author) {
  return std::find(authors.begin(), authors.end(), author) != authors.end();
}

void AddOnce(std::vector<Author>& authors, const Author& author) {
  if (!Names(authors, author)) authors.push_back(author);
}

const Vouched* FindVouched(const LiveCall& call, const RecordId& id) {
  auto at = std::ranges::find(call.vouched, id, &Vouched::id);
  return at == call.vouched.end() ? nullptr : &*at;
}

// All that the checkpoint says was changed there; nothing when it does not say all.
std::optional<std::vector<std::string>> PathsOf(const Checkpoint& checkpoint,
                                                const Authorship& by) {
  if (!by.paths.empty()) return by.paths;
  if (checkpoint.paths.empty() || checkpoint.paths.size() != checkpoint.added +
                                                                 checkpoint.modified +
                                                                 checkpoint.deleted)
    return std::nullopt;
  return checkpoint.paths;
}

}  // namespace

// --- sessions ------------------------------------------------------------------------

std::optional<uint64_t> LiveSession::Heard(std::string_view anchor_of) const {
  for (const auto& [said, its_turn] : heard)
    if (said == anchor_of) return its_turn;
  return std::nullopt;
}

void LiveSession::Hear(const std::string& anchor_of, uint64_t its_turn) {
  constexpr size_t kMostHeard = 32;
  std::erase_if(heard, [&](const auto& one) { return one.first == anchor_of; });
  if (heard.size() >= kMostHeard) heard.erase(heard.begin());
  heard.emplace_back(anchor_of, its_turn);
}

const LiveSession* Live::Find(std::string_view session) const {
  auto at = std::find_if(sessions_.begin(), sessions_.end(),
                         [&](const LiveSession& s) { return s.id == session; });
  return at == sessions_.end() ? nullptr : &*at;
}

const LiveSession* Live::newest() const {
  auto at = std::max_element(
      sessions_.begin(), sessions_.end(),
      [](const LiveSession& a, const LiveSession& b) { return a.seen_ms < b.seen_ms; });
  return at == sessions_.end() ? nullptr : &*at;
}

const LiveSession* Live::Active(int64_t now_ms) const {
  constexpr int64_t kStaysActiveMs = 24 * 60 * 60 * 1000;
  const LiveSession* last = newest();
  if (last == nullptr || last->ended || BELAY_MUTANT("nobody-is-active"))
    return nullptr;
  return now_ms - last->seen_ms < kStaysActiveMs ? last : nullptr;
}

LiveSession& Live::Meet(std::string_view session, int64_t now_ms) {
  auto at = std::find_if(sessions_.begin(), sessions_.end(),
                         [&](const LiveSession& s) { return s.id == session; });
  if (at == sessions_.end()) {
    if (sessions_.size() >= kMaxSessions) {
      auto oldest = std::min_element(sessions_.begin(), sessions_.end(),
                                     [](const LiveSession& a, const LiveSession& b) {
                                       return a.seen_ms < b.seen_ms;
                                     });
      const std::string id = oldest->id;
      for (const LiveCall& call : calls_)
        if (call.author.session == id) Doubt(call);
      Forget(id);
    }
    sessions_.push_back({.id = std::string(session)});
    at = std::prev(sessions_.end());
  }
  at->seen_ms = now_ms;
  return *at;
}

void Live::Forget(std::string_view session) {
  std::erase_if(calls_, [&](const LiveCall& c) { return c.author.session == session; });
  std::erase_if(sessions_, [&](const LiveSession& s) { return s.id == session; });
  const std::string beginning = std::string(session) + '\0';
  std::erase_if(ended_,
                [&](const std::string& key) { return key.starts_with(beginning); });
}

Status ForgetSession(Store& store, std::string_view session, int64_t lock_wait_ms) {
  BELAY_TRY(Heads heads, Heads::Read(store));
  for (const RootEntry& entry : heads.roots()) {
    BELAY_TRY(HeldLock alone, store.locks().AcquireRoot(entry.root.id, lock_wait_ms));
    const Live before = Live::Load(store, entry.root.id);
    Live live = before;
    live.Forget(session);
    if (!(live == before) && !BELAY_MUTANT("live-remembers"))
      BELAY_OK(live.Save(store, entry.root.id));
  }
  return Ok();
}

// --- calls ---------------------------------------------------------------------------

std::string Live::KeyOf(const LiveCall& call) {
  std::string key = call.author.session.value_or("");
  key += '\0';
  key += call.author.tool_use_id ? *call.author.tool_use_id
                                 : call.author.subagent.value_or("") + call.fingerprint;
  return key;
}

std::string Live::PresumedKey(const LiveCall& call) {
  return call.author.session.value_or("") + '\0' + '?' + KeyOf(call);
}

void Live::Remember(std::string key) {
  if (ended_.size() >= kMaxEnded) ended_.erase(ended_.begin());
  ended_.push_back(std::move(key));
}

bool Live::Knows(const LiveCall& call, bool late) const {
  const std::string key = KeyOf(call);
  for (const LiveCall& at_work : calls_)
    if (!at_work.background && KeyOf(at_work) == key) return true;
  // The same command may be run again; of a late hook the same id is the same call.
  if ((!late && !BELAY_MUTANT("an-id-is-used-once")) || !call.author.tool_use_id)
    return false;
  return std::ranges::find(ended_, key) != ended_.end() ||
         std::ranges::find(ended_, PresumedKey(call)) != ended_.end();
}

bool Live::Begin(LiveCall call) {
  if (Knows(call, false)) return false;
  call.fresh = true;
  Add(std::move(call));
  return true;
}

void Live::Add(LiveCall call) {
  std::erase(ended_, KeyOf(call));
  std::erase(ended_, PresumedKey(call));
  if (call.paths.size() > kMaxPathsOfCall) {
    call.paths.clear();
    call.anything = true;
  }
  MakeRoom();
  calls_.push_back(std::move(call));
}

void Live::Doubt(const LiveCall& call) {
  if (!call.vouched.empty() && !BELAY_MUTANT("who-is-forgotten-did-it-all"))
    never_ended_.push_back(call);
}

void Live::MakeRoom() {
  if (calls_.size() < kMaxCalls) return;
  Doubt(calls_.front());
  calls_.erase(calls_.begin());
}

Live::Ending Live::End(const LiveCall& call, bool background) {
  const std::string key = KeyOf(call);
  auto at = std::find_if(calls_.begin(), calls_.end(), [&](const LiveCall& c) {
    return !c.background && KeyOf(c) == key;
  });
  if (at == calls_.end()) {
    const bool twice = std::find(ended_.begin(), ended_.end(), key) != ended_.end();
    if (!twice) Remember(key);
    return twice ? Ending::kTwice : Ending::kUnknown;
  }
  // Those that the same agent began before it: refused, failed, or long.
  for (auto before = calls_.begin(); before != at; ++before)
    if (!before->background && IsOfSameAgent(*before, call) &&
        !BELAY_MUTANT("refused-calls-stay-at-work"))
      before->doubtful = true;
  StoodForIt(*at);
  if (background) {
    at->background = true;
    at->task = call.task;
  } else {
    calls_.erase(at);
  }
  Remember(key);
  return Ending::kEnded;
}

void Live::StoodForIt(LiveCall& call) {
  // The same look: it was at work there, and so nobody is asked for what it may have
  // done as well, which is what it names, or what it is not named for, too.
  auto relieve = [&](LiveCall& other, Vouched& what) {
    if (other.anything) return call.anything;
    if (call.anything) {
      if (!BELAY_MUTANT("who-may-write-anything-writes-no-named-path"))
        AddOnce(what.beside, call.author);
      return false;
    }
    return std::erase_if(what.paths,
                         [&](const std::string& path) {
                           return Covers(call.paths, path) ||
                                  BELAY_MUTANT("one-path-stands-for-all");
                         }) > 0 &&
           what.paths.empty();
  };
  for (LiveCall& other : calls_)
    if (&other != &call && !BELAY_MUTANT("who-ended-stands-for-nobody"))
      std::erase_if(other.vouched, [&](Vouched& what) {
        return FindVouched(call, what.id) != nullptr && relieve(other, what);
      });
  call.vouched.clear();
  // There may be nobody left to be asked.
  for (LiveCall& other : calls_)
    std::erase_if(other.vouched, [&](const Vouched& what) {
      return what.for_others && std::ranges::none_of(calls_, [&](const LiveCall& c) {
               const Vouched* its = FindVouched(c, what.id);
               return its != nullptr && !its->for_others;
             });
    });
}

void Live::EndAll(std::string_view session, const std::optional<std::string>& subagent,
                  bool presumed) {
  auto is_one = [&](const LiveCall& call) {
    return !call.background && call.author.session == session &&
           (!subagent || call.author.subagent.value_or("") == *subagent);
  };
  for (const LiveCall& call : calls_) {
    if (!is_one(call)) continue;
    Remember(presumed ? PresumedKey(call) : KeyOf(call));
    if (!call.vouched.empty()) never_ended_.push_back(call);
  }
  std::erase_if(calls_, is_one);
}

std::vector<std::string> Live::OverWithTurn(
    std::string_view session,
    const std::optional<std::vector<std::string>>& running) const {
  std::vector<std::string> over{""};
  if (!running) return over;
  for (const LiveCall& call : calls_)
    if (call.author.session == session && call.author.subagent &&
        std::ranges::find(*running, *call.author.subagent) == running->end())
      over.push_back(*call.author.subagent);
  return over;
}

void Live::EndTurn(std::string_view session,
                   const std::optional<std::vector<std::string>>& running) {
  if (BELAY_MUTANT("subagents-end-with-the-turn")) return EndAll(session, std::nullopt);
  for (const std::string& who : OverWithTurn(session, running)) EndAll(session, who);
  for (LiveCall& call : calls_)
    if (!call.background && call.author.session == session && call.author.subagent)
      call.outlives_turn = true;
}

void Live::BeginTurn(std::string_view session, int64_t now_ms) {
  constexpr int64_t kLongestMs = 60 * 60 * 1000;  // an end may never be told
  auto goes_on = [&](const LiveCall& call) {
    return call.outlives_turn && call.author.session == session &&
           now_ms - call.begun_ms < kLongestMs;
  };
  std::vector<LiveCall> going_on;
  std::ranges::copy_if(calls_, std::back_inserter(going_on), goes_on);
  std::erase_if(calls_, goes_on);
  EndAll(session, std::nullopt);
  for (LiveCall& call : going_on) Add(std::move(call));
}

void Live::KeepUnseen(const std::vector<LiveCall>& before, bool root_is_gone) {
  for (LiveCall call : before) {
    // Turns have one key; whose they are tells them apart.
    if (std::ranges::any_of(calls_, [&](const LiveCall& c) {
          return KeyOf(c) == KeyOf(call) && c.author == call.author;
        }))
      continue;
    call.unseen = call.background = true;
    call.task.clear();
    call.vouched.clear();
    call.took_root = root_is_gone && !call.fresh;
    MakeRoom();
    calls_.push_back(std::move(call));
  }
}

void Live::KeepNeverEnded(std::vector<LiveCall> calls) {
  for (LiveCall& call : calls) {
    auto at = std::ranges::find_if(calls_, [&](const LiveCall& c) {
      return c.unseen && KeyOf(c) == KeyOf(call) && c.author == call.author;
    });
    if (at != calls_.end()) {
      at->vouched = std::move(call.vouched);
      continue;
    }
    call.unseen = call.background = true;
    call.task.clear();
    MakeRoom();
    calls_.push_back(std::move(call));
  }
}

bool Live::IsQuiet(const LiveCall& call, int64_t now_ms) const {
  const LiveSession* session = Find(call.author.session.value_or(""));
  const int64_t seen_ms =
      session == nullptr || call.left ? call.begun_ms : session->seen_ms;
  return now_ms - seen_ms > kCallQuietMs && !BELAY_MUTANT("calls-are-at-work-for-ever");
}

// In the background, and the agent waits for its user, who may be at work as well, or
// is another process.
bool Live::IsUnwatched(const LiveCall& call) const {
  if (!call.background || BELAY_MUTANT("a-server-does-all-there-is")) return false;
  if (call.left && !BELAY_MUTANT("who-comes-anew-knows-the-background")) return true;
  const LiveSession* session = Find(call.author.session.value_or(""));
  return session != nullptr && !session->in_turn;
}

void Live::LeaveBackground(std::string_view session, int64_t now_ms) {
  for (LiveCall& call : calls_) {
    if (!call.background || call.unseen || call.left || call.author.session != session)
      continue;
    call.left = true;
    call.begun_ms = now_ms;
  }
}

void Live::KeepUnwatched() {
  for (LiveCall& call : calls_)
    if (call.background && !call.unseen && call.part != LiveCall::Part::kAtWork &&
        !BELAY_MUTANT("nobody-writes-unwatched"))
      call.fresh = true;
}

void Live::Judge(int64_t now_ms, bool by_agent, bool root_is_gone) {
  using Part = LiveCall::Part;
  // As long as one of those that are made together is at work, the others may be.
  auto alone = [&](const LiveCall& call) {
    return std::ranges::none_of(calls_, [&](const LiveCall& other) {
      return !other.doubtful && !other.background && IsOfSameAgent(call, other);
    });
  };
  for (LiveCall& call : calls_) {
    call.part = Part::kAtWork;
    if ((call.unseen || call.fresh) && !BELAY_MUTANT("part-of-the-time-is-all-of-it"))
      call.part = Part::kPerhaps;
    // What is missing since is its doing, and nothing else is there to be anybody's.
    if (call.unseen && call.took_root && root_is_gone &&
        !BELAY_MUTANT("others-delete-the-directory"))
      call.part = Part::kAtWork;
    if (call.unseen) continue;
    // A whole turn (no tool is named) is one call where nobody looks at single ones.
    const bool beside = !by_agent && call.author.tool_name &&
                        !BELAY_MUTANT("nobody-writes-beside-a-call");
    if (beside || (call.doubtful && alone(call)) || IsUnwatched(call))
      call.part = Part::kPerhaps;
    if (IsQuiet(call, now_ms)) call.part = call.quiet ? Part::kOver : Part::kPerhaps;
  }
}

void Live::Doubt(std::string_view session, const std::optional<std::string>& subagent) {
  for (LiveCall& call : calls_)
    if (call.author.session == session && !call.background &&
        (!subagent || call.author.subagent.value_or("") == *subagent) &&
        (subagent || !call.outlives_turn) && call.part == LiveCall::Part::kAtWork &&
        !BELAY_MUTANT("interrupted-calls-go-on"))
      call.part = LiveCall::Part::kPerhaps;
}

void Live::DoubtTurn(std::string_view session,
                     const std::optional<std::vector<std::string>>& running) {
  const std::vector<std::string> over = OverWithTurn(session, running);
  for (LiveCall& call : calls_)
    if (call.author.session == session && call.author.tool_name && !call.background &&
        std::ranges::find(over, call.author.subagent.value_or("")) != over.end() &&
        call.part == LiveCall::Part::kAtWork &&
        !BELAY_MUTANT("calls-end-with-their-turn"))
      call.part = LiveCall::Part::kPerhaps;
}

void Live::DoubtBackground(std::string_view session) {
  for (LiveCall& call : calls_)
    if (call.background && call.author.session == session &&
        call.part == LiveCall::Part::kAtWork && !call.unseen &&
        !BELAY_MUTANT("nobody-stops-an-agent"))
      call.part = LiveCall::Part::kPerhaps;
}

void Live::GoesOn(std::string_view session) {
  goes_on_ = session;
  for (LiveCall& call : calls_)
    if (call.background && !call.unseen && call.author.session == session &&
        !BELAY_MUTANT("who-goes-on-may-have-stopped"))
      StoodForIt(call);
}

void Live::EndUntold(std::string_view session) {
  for (LiveCall& call : calls_) {
    if (!call.background || call.unseen || call.author.session != session ||
        call.vouched.empty())
      continue;
    never_ended_.push_back(call);
    call.vouched.clear();
  }
}

void Live::Trust(const LiveCall& call) {
  const std::string key = KeyOf(call);
  for (LiveCall& at_work : calls_)
    if (!at_work.background && !at_work.fresh &&
        (KeyOf(at_work) == key || (at_work.doubtful && IsOfSameAgent(call, at_work))))
      at_work.part = LiveCall::Part::kAtWork;
}

void Live::NameToo(const LiveCall& call) {
  const std::string key = KeyOf(call);
  for (LiveCall& at_work : calls_)
    if (!at_work.background && !at_work.anything && KeyOf(at_work) == key)
      for (const std::string& path : call.paths)
        if (std::ranges::find(at_work.paths, path) == at_work.paths.end())
          at_work.paths.push_back(path);
}

bool Live::WasAtWork(const LiveCall& call) const {
  const std::string key = KeyOf(call);
  return std::ranges::find(ended_, PresumedKey(call)) != ended_.end() &&
         std::ranges::none_of(
             calls_, [&](const LiveCall& c) { return c.unseen && KeyOf(c) == key; });
}

bool Live::Looked(int64_t now_ms) {
  for (const LiveCall& call : calls_)
    if (call.unseen && !call.vouched.empty()) never_ended_.push_back(call);
  auto is_over = [&](const LiveCall& call) {
    return call.unseen || (call.left && IsQuiet(call, now_ms));
  };
  bool news = std::erase_if(calls_, is_over) > 0;
  for (LiveCall& call : calls_) {
    const bool quiet = IsQuiet(call, now_ms);
    news = news || quiet != call.quiet || call.fresh;
    call.quiet = quiet;
    call.fresh = false;
  }
  return news;
}

void Live::Vouch(const Checkpoint& checkpoint) {
  constexpr auto kAtWork = LiveCall::Part::kAtWork;
  // The end of a turn is told. One in the background is sure while its agent is in its
  // turn, which only what that says itself tells: of Escape nobody does.
  auto is_told = [&](const LiveCall& call) {
    if (call.background && !BELAY_MUTANT("others-say-that-a-turn-goes-on"))
      return call.author.session == goes_on_;
    return call.background || !call.author.tool_name;
  };
  // It was at work, whatever is told of others: nobody else has to stand for what both
  // may have done.
  auto is_sure = [&](const Author& author) {
    auto is_its = [&](const LiveCall& c) {
      return c.part == kAtWork && c.author == author;
    };
    return std::ranges::any_of(unheard_, is_its) ||
           std::ranges::any_of(
               calls_, [&](const LiveCall& c) { return is_its(c) && is_told(c); });
  };
  auto stands = [&](const LiveCall& call, const Authorship& by) {
    return Names(by.authors, call.author) && !Names(by.authors, Author()) &&
           (std::ranges::none_of(by.authors, is_sure) ||
            BELAY_MUTANT("all-stand-for-all"));
  };
  auto add = [&](LiveCall& call, Vouched what) {
    if (call.vouched.size() >= kMaxVouched) call.vouched.erase(call.vouched.begin());
    call.vouched.push_back(std::move(what));
  };
  std::vector<Author> sure;  // they may have done what others are named for, too
  for (const LiveCall& call : unheard_)
    if (call.part == kAtWork && call.anything) AddOnce(sure, call.author);
  for (const LiveCall& call : calls_)
    if (call.part == kAtWork && call.anything && is_told(call))
      AddOnce(sure, call.author);
  bool named = false;
  for (LiveCall& call : calls_) {
    if (call.part != kAtWork || is_told(call)) continue;
    Vouched what{.id = checkpoint.id};
    bool found = false;
    for (const Authorship& by : checkpoint.by) {
      if (!stands(call, by)) continue;
      found = true;
      if (call.anything) break;
      const auto paths = PathsOf(checkpoint, by);
      for (const std::string& path : paths ? *paths : call.paths)
        if (Covers(call.paths, path)) what.paths.push_back(path);
    }
    if (call.anything ? !found : what.paths.empty()) continue;
    if (!call.anything) {
      named = true;
      what.beside = sure;
    }
    add(call, std::move(what));
  }
  if (!named) return;
  for (LiveCall& call : calls_)
    if (call.part == kAtWork && call.anything && !is_told(call) &&
        FindVouched(call, checkpoint.id) == nullptr)
      add(call, {.id = checkpoint.id, .for_others = true});
}

void Live::EndTask(std::string_view session, std::string_view task) {
  std::erase_if(calls_, [&](const LiveCall& call) {
    return call.background && call.author.session == session && call.task == task;
  });
}

void Live::KeepTasks(std::string_view session,
                     const std::vector<std::string>& running) {
  std::erase_if(calls_, [&](const LiveCall& call) {
    return call.background && !call.unseen && call.author.session == session &&
           std::find(running.begin(), running.end(), call.task) == running.end();
  });
}

bool NameBeside(std::vector<Authorship>& by, const Author& author,
                const Vouched& what) {
  if (what.for_others) return false;
  bool news = false;
  for (Authorship& one : by) {
    if (!Names(one.authors, author) || Names(one.authors, Author())) continue;
    // It is named there for what is its own all the same.
    if (!what.paths.empty() && !one.paths.empty() &&
        std::ranges::none_of(one.paths, [&](const std::string& path) {
          return Covers(what.paths, path);
        }))
      continue;
    const size_t before = one.authors.size();
    for (const Author& other : what.beside) AddOnce(one.authors, other);
    if (what.beside.empty()) one.authors.emplace_back();
    news = news || one.authors.size() > before;
  }
  return news;
}

Status NameOutside(Store& store, const RootId& root,
                   const std::vector<LiveCall>& never_ended) {
  std::map<RecordId, std::vector<std::pair<const Author*, const Vouched*>>> doubted;
  for (const LiveCall& call : never_ended)
    for (const Vouched& what : call.vouched)
      if (!what.for_others) doubted[what.id].emplace_back(&call.author, &what);
  if (doubted.empty() || BELAY_MUTANT("never-ended-calls-were-at-work")) return Ok();
  BELAY_TRY(auto catalog, Catalog::Open(store));
  std::vector<LogRecord> records;
  for (const auto& [id, calls] : doubted) {
    auto entry = catalog->FindById(root, id.text());
    if (!entry.ok()) {
      // Let go meanwhile, or damaged: nothing is left to be said of it.
      if (entry.error().code == Errc::kNotFound || entry.error().code == Errc::kCorrupt)
        continue;
      return std::move(entry).error();
    }
    Checkpoint& checkpoint = entry->checkpoint;
    bool news = false;
    for (const auto& [author, what] : calls)
      news = NameBeside(checkpoint.by, *author, *what) || news;
    if (!news) continue;
    LogRecord& record = records.emplace_back();
    record.kind = RecordKind::kAnnotation;
    record.root = root;
    record.id = RecordId(store.random().NewId());
    record.made_ms = store.clock().WallMillis();
    record.fields.Add(kAnnotationTarget, id.span());
    AddAuthors(record.fields, checkpoint.by, checkpoint.since);
  }
  if (records.empty()) return Ok();
  BELAY_TRY(auto writer, store.Begin());
  for (LogRecord& record : records) writer->Add(std::move(record));
  BELAY_TRY([[maybe_unused]] auto published, writer->Commit());
  return Ok();
}

// --- whose doing ---------------------------------------------------------------------

WhoWrote::WhoWrote(const Live& live) {
  for (const LiveCall& call : live.calls_)
    if (call.part != LiveCall::Part::kOver) calls_.push_back(&call);
  for (const LiveCall& call : live.unheard_) calls_.push_back(&call);
  // Nobody is sure to have been at work all the time: outside may have been, too.
  bool sure = false;
  for (const LiveCall* call : calls_) {
    if (!call->anything) continue;
    AddOnce(rest_, call->author);
    sure = sure || call->part == LiveCall::Part::kAtWork;
  }
  if (!sure) AddOnce(rest_, Author());
  if (rest_.size() > 1 && BELAY_MUTANT("shared-is-the-first")) rest_.resize(1);
}

void WhoWrote::Add(std::string_view path) {
  std::vector<Author> authors;
  bool sure = false;
  for (const LiveCall* call : calls_) {
    if (call->anything || !Covers(call->paths, path)) continue;
    AddOnce(authors, call->author);
    sure = sure || call->part == LiveCall::Part::kAtWork;
  }
  if (!authors.empty() && !sure)
    for (const Author& author : rest_) AddOnce(authors, author);
  if (authors.empty() || BELAY_MUTANT("named-paths-do-not-count")) {
    any_rest_ = true;
    return;
  }
  for (Authorship& entry : named_) {
    if (entry.authors != authors) continue;
    if (entry.paths.size() < kMaxKept) entry.paths.emplace_back(path);
    return;
  }
  named_.push_back({std::move(authors), {std::string(path)}});
}

std::vector<Authorship> WhoWrote::Take() {
  for (Authorship& entry : named_) {
    std::ranges::sort(entry.paths);
    // Not ranges::unique: clang 14 does not compile what it returns.
    entry.paths.erase(std::unique(entry.paths.begin(), entry.paths.end()),
                      entry.paths.end());
  }
  // One that names all there is needs no list.
  if (any_rest_)
    named_.push_back({rest_, {}});
  else if (named_.size() == 1)
    named_[0].paths.clear();
  return std::move(named_);
}

}  // namespace belay
