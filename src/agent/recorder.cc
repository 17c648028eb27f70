#include "agent/recorder.h"

#include <algorithm>

#include "agent/ancestry.h"
#include "agent/dialects.h"
#include "agent/elsewhere.h"
#include "agent/notice.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "core/lineage.h"
#include "core/partial.h"
#include "core/refs.h"
#include "restore/external.h"
#include "restore/rollback.h"
#include "store/heads.h"

namespace belay {

namespace {

constexpr size_t kMaxPromptKept = 4096;

std::string CutAt(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit));
}

// What changes when that is written: symlinks on the way are followed, and so is the
// last name. Of what is not there, as much as is.
AbsPath WhereItLeads(Fs& fs, const AbsPath& path) {
  std::string rest;
  for (AbsPath at = path;; at = at.parent()) {
    if (auto real = fs.RealPath(at); real.ok()) {
      auto below = RelPath::Parse(rest);
      return below.ok() ? real->Join(*below) : *real;
    }
    if (at.is_root()) return path;
    const std::string& bytes = at.bytes();
    const std::string name = bytes.substr(bytes.rfind('/') + 1);
    rest = rest.empty() ? name : name + '/' + rest;
  }
}

// Of what a host tells beside its turn's id: by the place alone that is no message's.
bool NamesAMessage(const std::optional<std::string>& id,
                   const std::optional<uint64_t>& index) {
  return id || (index && !BELAY_MUTANT("a-turns-id-has-a-place"));
}

class EventStep final : public LiveStep {
 public:
  EventStep(Store& store, const RecordRequest& request, const HookEvent& event,
            AncestorSearch search)
      : store_(store),
        settings_(*request.settings),
        event_(event),
        search_(std::move(search)),
        root_(request.root),
        session_(SessionOf(event)),
        traits_(TraitsOf(event.agent)),
        released_ns_(request.released_ns),
        notice_(request.notice) {}

  Result<bool> Begin(Live& live, CaptureRequest& request) override {
    now_ms_ = store_.clock().WallMillis();
    records_.clear();
    overtaken_ = IsOvertaken(live.Find(session_));
    BELAY_OK(MeetSession(live));
    FindItsTurn(live.Meet(session_, now_ms_));
    const LiveSession& session = *live.Find(session_);
    if (IsWithinItsTurn(session)) live.GoesOn(session_);
    ends_untold_ = EndsUntold(event_) && !overtaken_ && !IsToldTwice(session);
    if (ends_untold_) live.DoubtBackground(session_);
    request.kind = CheckpointKind::kAuto;
    request.session = session_;
    request.agent = AgentOf(event_);
    request.subagent = event_.subagent;
    // A host may say anything in it.
    if (settings_.transcripts != Transcripts::kOff ||
        BELAY_MUTANT("off-keeps-what-hosts-say"))
      for (const auto& [key, value] : event_.meta) request.meta[key] = value;
    if (its_turn_ != session.turn) {
      if (its_turn_ > 0) request.turn = its_turn_;
      request.message_id = event_.anchor;
    } else if (session.turn > 0) {
      request.turn = session.turn;
      if (session.anchor) request.message_id = session.anchor;
      if (NamesAMessage(session.message, session.message_index))
        request.message_id = session.message;
      if (!session.prompt.empty()) request.prompt = session.prompt;
      request.message_index = session.message_index;
    }
    // One message by its id and its place: what the event belongs to, or the turn.
    if (BELAY_MUTANT("a-place-is-any-messages")) {
      if (event_.message_index) request.message_index = event_.message_index;
    } else if (event_.message_id || event_.message_index) {
      request.message_id = event_.message_id;
      request.message_index = event_.message_index;
    }
    switch (event_.kind) {
      case EventKind::kSessionStart:
        return BeginSession(live, request);
      case EventKind::kPrompt:
        // A refused or interrupted call is not always told of, nor is a turn's end.
        if (event_.human && traits_.tells_ends) live.Doubt(session_);
        return BeginTurn(session, request);
      case EventKind::kToolBegin:
        return BeginCall(live, request);
      case EventKind::kToolEnd:
        return EndCall(live, request);
      default:
        return EndSomething(live, request);
    }
  }

  std::optional<std::vector<LogRecord>> Settle(const Live&, Checkpoint& checkpoint,
                                               bool same_state) override {
    if (same_state && !always_ && records_.empty()) return std::nullopt;
    if (subagent_) records_.push_back(*subagent_);
    if (settings_.transcripts == Transcripts::kOff) {
      checkpoint.prompt.reset();
      checkpoint.message_id.reset();
    }
    return records_;
  }

  void Done(Live& live, bool published) override {
    LiveSession& session = live.Meet(session_, now_ms_);
    if (published) {
      session.recorded = true;
      if (subagent_) RememberSubagent(session);
    }
    if (search_.done && (published || !search_.found)) session.searched = true;
    session.agent = AgentOf(event_);
    session.ended = event_.kind == EventKind::kSessionEnd;
    if (TellsItsPlace()) session.transcript = *event_.transcript;
    if (!event_.cwd.empty() && session.cwd.empty()) session.cwd = event_.cwd;
    if (ends_untold_) live.EndUntold(session_);
    for (const std::string& task : event_.ended_tasks) live.EndTask(session_, task);
    if (!(event_.kind == EventKind::kPrompt && event_.human) && !overtaken_)
      session.silent = false;
    switch (event_.kind) {
      case EventKind::kPrompt:
        // One that nobody wrote belongs to the turn it comes in, and so do the calls
        // that name it.
        if (event_.anchor && !event_.human &&
            session.Heard(*event_.anchor).value_or(0) == 0)
          session.Hear(*event_.anchor, session.turn);
        // The agent goes on, and its user is told.
        if (!event_.human) session.in_turn = session.in_turn || GoesOn(session);
        if (!event_.human || !begun_) break;
        if (event_.anchor) session.Hear(*event_.anchor, turn_);
        live.BeginTurn(session_, now_ms_);
        session.turn = turn_;
        session.anchor = event_.anchor;
        session.message = event_.message_id;
        session.message_index = event_.message_index;
        session.prompt = prompt_;
        session.print = event_.print;
        session.silent = true;
        session.in_turn = true;
        TellNotice(session);
        // Nobody looks at single calls: all of the turn is one.
        if (settings_.granularity != Granularity::kTool)
          (void)live.Begin(
              {.author = AuthorNow(turn_), .fingerprint = "turn", .begun_ms = now_ms_});
        break;
      case EventKind::kToolBegin:
        if (!begun_) break;
        // Told to go on when it was about to end its turn, by a hook of the user's.
        if (!event_.subagent && !IsLate() && GoesOn(session)) session.in_turn = true;
        if (traits_.serial_calls) EndCallsBefore(live);
        (void)live.Begin(call_);
        break;
      case EventKind::kToolEnd:
        if (begun_) (void)live.End(call_, event_.tool->background);
        break;
      default:
        if (!overtaken_) EndWhatIsOver(live, event_, now_ms_);
    }
    // It tells no end of any call: what comes next is it.
    if (!traits_.tells_ends) (void)live.TakeNeverEnded();
  }

 private:
  Status MeetSession(Live& live) {
    const LiveSession* known = live.Find(session_);
    bool recorded = known != nullptr && known->recorded;
    // What becomes known later, when there is a record already.
    bool has_parent = known != nullptr && known->searched;
    std::string kept_in = known == nullptr ? "" : known->transcript;
    if (known == nullptr) {
      BELAY_TRY(const KnownSession log, LookUpSession(store_, session_));
      LiveSession& session = live.Meet(session_, now_ms_);
      session.turn = log.turns;
      session.inherited = log.inherited;
      if (log.newest && log.newest->turn == log.turns) {
        session.anchor = log.newest->anchor;
        session.prompt = log.newest->prompt;
      }
      recorded = session.recorded = log.known;
      session.subagents = log.subagents;
      has_parent = log.has_parent;
      kept_in = log.transcript;
      // Who it is of was said when it was made; its file need not say it again.
      if (!BELAY_MUTANT("a-known-parent-is-searched"))
        session.searched = session.searched || has_parent;
    } else {
      BELAY_OK(CountElsewhere(live));
    }
    LiveSession& session = live.Meet(session_, now_ms_);
    new_session_ = !recorded;
    std::optional<Ancestor> ancestor = has_parent ? std::nullopt : search_.found;
    BELAY_TRY(const bool elsewhere, BeginsElsewhere());
    if (!recorded || ancestor || elsewhere || IsKeptElsewhere(kept_in)) {
      SessionRecord record{.session = session_,
                           .agent = AgentOf(event_),
                           .transcript_path = Kept(event_.transcript),
                           .cwd = event_.cwd.empty() ? session.cwd : event_.cwd};
      if (ancestor) {
        record.parent = ancestor->session;
        record.inherited_turns = ancestor->turns;
        record.subagent = ancestor->subagent;
        if (!BELAY_MUTANT("forks-count-anew")) session.inherited = ancestor->turns;
      }
      Record(record);
    }
    MeetSubagent(session);
    return Ok();
  }

  // Its agent goes on in another file: Gemini CLI when it resumes a session, Codex when
  // it takes a turn back itself. Where nothing was said before it is found by what is
  // going on (FindConversation).
  bool IsKeptElsewhere(const std::string& before) const {
    return !before.empty() && TellsItsPlace() && *event_.transcript != before &&
           settings_.transcripts != Transcripts::kOff &&
           !BELAY_MUTANT("a-file-stays-where-it-began");
  }
  bool TellsItsPlace() const {
    return event_.transcript && !event_.subagent && !overtaken_;
  }

  // It is gone on with in another directory than it was last, and so it is from then
  // on. A call's shell, and prompts behind it, may be anywhere.
  Result<bool> BeginsElsewhere() {
    if (event_.kind != EventKind::kSessionStart || event_.cwd.empty() ||
        event_.source == "compact" || event_.source == "clear" ||
        BELAY_MUTANT("a-session-stays-where-it-began"))
      return false;
    BELAY_TRY(auto catalog, Catalog::Open(store_));
    BELAY_TRY(const auto last, LatestSession(*catalog, session_));
    return last && !last->cwd.empty() && last->cwd != event_.cwd;
  }

  // Turns of a session are counted once, wherever they are said: one that is at work in
  // other roots, too, may have had some there since. Asked where a turn is counted, and
  // of the log only when there is such a root.
  Status CountElsewhere(Live& live) {
    const bool counts = (event_.kind == EventKind::kPrompt && event_.human) ||
                        event_.kind == EventKind::kSessionStart;
    if (!counts || BELAY_MUTANT("turns-are-counted-per-root")) return Ok();
    BELAY_TRY(const Heads heads, Heads::Read(store_));
    const bool elsewhere = std::ranges::any_of(heads.roots(), [&](const RootEntry& r) {
      return r.root.id != root_.id &&
             Live::Load(store_, r.root.id).Find(session_) != nullptr;
    });
    if (!elsewhere) return Ok();
    BELAY_TRY(const KnownSession log, LookUpSession(store_, session_));
    LiveSession& session = live.Meet(session_, now_ms_);
    session.inherited = std::max(session.inherited, log.inherited);
    if (log.turns <= session.turn) return Ok();
    session.turn = log.turns;
    session.in_turn = false;
    session.anchor.reset();
    session.message.reset();
    session.message_index.reset();
    session.prompt.clear();
    if (log.newest && log.newest->turn == log.turns) {
      session.anchor = log.newest->anchor;
      session.prompt = log.newest->prompt;
    }
    return Ok();
  }

  // A call may be of a turn that is over (a subagent's that goes on), and may name one
  // whose prompt was not heard: that is nobody's, and the running turn's least of all.
  void FindItsTurn(LiveSession& session) {
    its_turn_ = session.turn;
    if (!event_.tool || !event_.anchor || session.anchor == event_.anchor ||
        BELAY_MUTANT("every-call-is-the-running-turns"))
      return;
    if (const auto heard = session.Heard(*event_.anchor)) {
      its_turn_ = *heard;
      return;
    }
    its_turn_ = 0;
    const auto told = LookUpTurn(store_, session_, *event_.anchor);
    if (!told.ok()) return;
    if (*told) its_turn_ = (*told)->turn;
    // The host tells no turn, and the message is one within the running one.
    else if (event_.anchor == event_.message_id &&
             !BELAY_MUTANT("a-message-is-a-turn-of-its-own"))
      its_turn_ = session.turn;
    session.Hear(*event_.anchor, its_turn_);
    // Prompts are recorded where the session began; where it makes its first call it is
    // known by that that a turn began.
    if (its_turn_ <= session.turn) return;
    session.turn = its_turn_;
    session.anchor = (*told)->anchor;
    session.prompt = (*told)->prompt;
    session.message.reset();
    session.message_index.reset();
  }

  // A subagent is told of once, with who started it, beside the first checkpoint of it.
  void MeetSubagent(const LiveSession& session) {
    subagent_.reset();
    if (event_.subagent && *event_.subagent != session_ &&
        std::ranges::find(session.subagents, *event_.subagent) ==
            session.subagents.end())
      subagent_ = SubagentRecord(store_, root_.id, settings_, event_);
  }
  void RememberSubagent(LiveSession& session) {
    constexpr size_t kMostSubagents = 256;
    if (session.subagents.size() >= kMostSubagents)
      session.subagents.erase(session.subagents.begin());
    session.subagents.push_back(*event_.subagent);
  }

  void Record(const SessionRecord& record) {
    records_.push_back(
        ToRecord(record, RecordId(store_.random().NewId()), root_.id, now_ms_));
  }
  std::optional<std::string> Kept(const std::optional<std::string>& text) const {
    return settings_.transcripts == Transcripts::kOff ? std::nullopt : text;
  }

  // A start that the agent did not wait for, and more was heard of the session since
  // (the second hook of one start): it is no beginning any more.
  bool IsOvertaken(const LiveSession* known) const {
    return event_.kind == EventKind::kSessionStart && known != nullptr &&
           known->recorded && released_ns_ != nullptr && released_ns_->load() != 0 &&
           known->seen_ms > released_ns_->load() / 1'000'000 &&
           !BELAY_MUTANT("a-late-start-is-a-start");
  }

  Result<bool> BeginSession(Live& live, CaptureRequest& request) {
    if (overtaken_ && records_.empty()) return false;
    // In another process than the one that made its calls.
    if (!overtaken_ && event_.source != "compact") live.Doubt(session_);
    const bool anew = event_.source == "clear" || event_.source == "compact";
    always_ = new_session_ || anew;
    request.description = event_.source == "clear"     ? kCleared
                          : event_.source == "compact" ? kShortened
                          : new_session_               ? kStarted
                                                       : kResumed;
    return true;
  }

  Result<bool> BeginTurn(const LiveSession& session, CaptureRequest& request) {
    if (!event_.human) {
      request.description = "a task in the background ended";
      return true;
    }
    if (IsToldTwice(session) && !BELAY_MUTANT("turn-counted-twice")) return false;
    begun_ = always_ = true;
    LookForNotice(session);
    // Counted on: what was inherited keeps its numbers.
    turn_ = std::max(session.turn, session.inherited) + 1;
    prompt_ = KeptPrompt();
    request.turn = turn_;
    request.message_id = event_.anchor;
    if (NamesAMessage(event_.message_id, event_.message_index) &&
        !BELAY_MUTANT("host-message-is-lost"))
      request.message_id = event_.message_id;
    request.prompt.reset();
    if (!prompt_.empty()) request.prompt = prompt_;
    request.message_index = event_.message_index;
    request.description = TurnLabel(prompt_, turn_);
    TurnRecord record{.session = session_,
                      .turn = turn_,
                      .prompt = prompt_,
                      .anchor = Kept(event_.anchor),
                      .stateless = settings_.granularity == Granularity::kSession};
    records_.push_back(
        ToRecord(record, RecordId(store_.random().NewId()), root_.id, now_ms_));
    return true;
  }

  // The agent itself says that it is at work, which it was not had its user stopped it.
  // (A subagent may go on, and so may a call of an older turn.)
  bool IsWithinItsTurn(const LiveSession& session) const {
    return session.in_turn && !event_.subagent && its_turn_ == session.turn &&
           (event_.tool || event_.kind == EventKind::kTurnEnd ||
            (event_.kind == EventKind::kPrompt && !EndsUntold(event_)));
  }

  // By the hooks of the user and of the project. The same words may be said again:
  // where nothing calls a prompt by a name it is the same one only when all that was
  // told is the same, and that says when, or nothing came in between. (Between the two
  // hooks of one prompt more may be heard when the agent does not wait for the second.)
  bool IsToldTwice(const LiveSession& session) const {
    if (event_.kind != EventKind::kPrompt || !event_.human || session.turn == 0)
      return false;
    if (event_.anchor) return session.in_turn && session.anchor == event_.anchor;
    if (BELAY_MUTANT("the-same-words-are-the-same-prompt"))
      return session.in_turn && session.prompt == KeptPrompt();
    if (session.anchor || session.print != event_.print) return false;
    const bool late = released_ns_ != nullptr && released_ns_->load() != 0;
    return (event_.dated && !event_.print.empty()) || session.silent ||
           (late && session.in_turn);
  }

  // A prompt waits for it: what cannot be found out is not told.
  void LookForNotice(const LiveSession& session) {
    told_ = {};
    if (notice_ == nullptr || !settings_.notice || event_.subagent ||
        !TakesNotice(event_.agent))
      return;
    if (auto found = FindNotice(store_, root_.id, session); found.ok())
      told_ = std::move(*found);
  }
  // When nobody waits any more it is told next time.
  void TellNotice(LiveSession& session) {
    if (told_.operation == 0) return;
    if (!told_.text.empty() && IsLate()) return;
    if (!BELAY_MUTANT("notice-every-time")) session.knows_operation = told_.operation;
    *notice_ = told_.text;
  }

  Result<bool> BeginCall(Live& live, CaptureRequest& request) {
    MakeCall();
    const bool late = IsLate();
    if (live.Knows(call_, late) && !BELAY_MUTANT("call-begins-twice")) {
      if (late && request.step != nullptr) BELAY_OK(CheckBeginning(live));
      return false;
    }
    begun_ = always_ = true;
    // One at a time, and the one before did not end: it was refused, or failed.
    if (traits_.serial_calls && traits_.tells_ends &&
        !BELAY_MUTANT("refused-calls-wait-for-the-next"))
      live.Doubt(session_, event_.subagent.value_or(""));
    Label(request, "before ");
    if (!outside_.empty())
      request.amend = [this](Draft& draft) {
        return KeepExternal(store_, root_, settings_,
                            {outside_, session_, released_ns_}, draft);
      };
    return true;
  }

  // Of a late beginning of a call that is over. The root was busy, and its end got
  // there first? Then what was there before can no longer be told from what it did, and
  // nothing else says that it is missing. (Else it is the second hook of the same.)
  Status CheckBeginning(const Live& live) {
    for (const LiveCall& at_work : live.calls())
      if (at_work.author.session == session_ &&
          at_work.author.tool_use_id == call_.author.tool_use_id)
        return Ok();
    BELAY_TRY(auto catalog, Catalog::Open(store_));
    BELAY_TRY(auto of_call,
              catalog->ListCheckpoints({.root = root_.id,
                                        .session = session_,
                                        .tool_use_id = call_.author.tool_use_id}));
    for (const CatalogEntry& entry : of_call)
      if (entry.checkpoint.description.starts_with("before ")) return Ok();
    if (BELAY_MUTANT("lost-beginnings-are-not-said")) return Ok();
    return Error(Errc::kBusy, "what was there before a call of " +
                                  EscapeForDisplay(event_.tool->name) +
                                  " was not recorded: another process was at work on "
                                  "the directory until the call was over");
  }

  Result<bool> EndCall(Live& live, CaptureRequest& request) {
    MakeCall();
    Live probe = live;
    switch (probe.End(call_, false)) {
      case Live::Ending::kTwice:
        return false;
      case Live::Ending::kUnknown: {
        // When it began nobody knows.
        LiveCall unheard = call_;
        if (!live.WasAtWork(call_) && !BELAY_MUTANT("unheard-calls-began-in-time"))
          unheard.part = LiveCall::Part::kPerhaps;
        live.AddUnheard(std::move(unheard));
        break;
      }
      case Live::Ending::kEnded:
        live.Trust(call_);
        // Where there was nothing when it began a symlink may lead to something now.
        if (!BELAY_MUTANT("links-are-followed-once")) live.NameToo(call_);
        break;
    }
    begun_ = true;
    Label(request, "after ");
    return true;
  }

  Result<bool> EndSomething(Live& live, CaptureRequest& request) {
    switch (event_.kind) {
      case EventKind::kTurnEnd:
        if (traits_.tells_ends) live.DoubtTurn(session_, event_.running_tasks);
        request.description = "end of the turn";
        break;
      case EventKind::kSubagentEnd:
        if (traits_.tells_ends && event_.subagent)
          live.Doubt(session_, event_.subagent);
        request.description = "end of a subagent";
        break;
      case EventKind::kTaskEnd:
        request.description = "a task in the background was stopped";
        break;
      case EventKind::kCompact:
        request.description = "before the conversation is shortened";
        always_ = true;
        break;
      default:
        if (traits_.tells_ends) live.Doubt(session_);
        request.description = "end of the session";
    }
    return true;
  }

  void MakeCall() {
    const ToolCall& tool = *event_.tool;
    call_ = {.author = AuthorNow(its_turn_),
             .fingerprint = tool.fingerprint,
             .anything = tool.reach != ToolReach::kPaths,
             .task = tool.task.value_or(""),
             .begun_ms = now_ms_};
    call_.author.tool_name = tool.name;
    call_.author.tool_use_id = tool.id;
    outside_.clear();
    shown_.clear();
    auto root = AbsPath::Parse(root_.path);
    auto cwd = AbsPath::Parse(event_.cwd.empty() ? root_.path : event_.cwd);
    if (!root.ok() || !cwd.ok()) return;
    for (const std::string& path : tool.paths) {
      auto absolute = AbsPath::Resolve(*cwd, path);
      if (!absolute.ok()) continue;
      const AbsPath real = WhereItLeads(store_.fs(), *absolute);
      auto below = absolute->Below(*root);
      // Another name of the same place; a symlink, which is written through or
      // replaced.
      const bool plain = below && real == *absolute;
      if (!plain) {
        const auto itself = RealPathBelow(store_.fs(), *root, *absolute);
        if (!below) below = itself;
        if (!BELAY_MUTANT("a-link-leads-nowhere")) {
          NameToo(itself);
          NameToo(real.Below(*root));
        }
      }
      if (below && !below->empty()) shown_.push_back(*below);
      NameToo(below);
      if (!real.IsWithin(*root)) outside_.push_back(*absolute);
    }
    std::ranges::sort(call_.paths);
    call_.paths.erase(std::unique(call_.paths.begin(), call_.paths.end()),
                      call_.paths.end());
  }
  void NameToo(const std::optional<std::string>& path) {
    if (path && !path->empty()) call_.paths.push_back(*path);
  }

  // "before Bash: rm -rf build", "before Write src/app.ts"
  void Label(CaptureRequest& request, std::string_view when) {
    const ToolCall& tool = *event_.tool;
    request.tool_name = tool.name;
    request.tool_use_id = tool.id;
    request.description =
        std::string(when) + (tool.name.empty() ? "a call" : tool.name);
    if (settings_.transcripts == Transcripts::kOff || tool.what.empty()) return;
    const bool one = !call_.anything && shown_.size() == 1;
    // A path is the checkpoint's, a command the conversation's.
    if (!one && settings_.transcripts != Transcripts::kKeep &&
        !BELAY_MUTANT("anchors-keep-commands"))
      return;
    request.description += call_.anything ? ": " : " ";
    request.description += FirstLine(one ? shown_[0] : tool.what);
  }

  Author AuthorNow(uint64_t turn) const {
    Author author{.kind = Author::Kind::kSession,
                  .session = session_,
                  .agent = AgentOf(event_),
                  .subagent = event_.subagent};
    if (turn > 0) author.turn = turn;
    return author;
  }

  std::string KeptPrompt() const {
    return settings_.transcripts == Transcripts::kOff
               ? std::string()
               : CutAt(event_.prompt, kMaxPromptKept);
  }

  // One at a time: what has begun before is over.
  void EndCallsBefore(Live& live) {
    live.EndAll(session_, event_.subagent.value_or(""),
                /*presumed=*/!BELAY_MUTANT("serial-agents-never-overlap"));
  }

  // The agent does not wait for it any more.
  bool IsLate() const { return released_ns_ != nullptr && released_ns_->load() != 0; }
  // Of one that has turns.
  static bool GoesOn(const LiveSession& session) {
    return session.turn > 0 && !BELAY_MUTANT("what-ended-does-not-go-on");
  }

  Store& store_;
  const Settings& settings_;
  const HookEvent& event_;
  const AncestorSearch search_;
  const Root& root_;
  const std::string session_;
  const AgentTraits traits_;
  int64_t now_ms_ = 0;
  bool new_session_ = false;
  bool overtaken_ = false;
  bool ends_untold_ = false;
  bool always_ = false;    // a checkpoint even when nothing changed
  bool begun_ = false;     // the event is not one that is known already
  uint64_t turn_ = 0;      // that a prompt begins
  uint64_t its_turn_ = 0;  // that the event belongs to; 0: none
  std::string prompt_;
  LiveCall call_;
  std::vector<AbsPath> outside_;    // what it names that is not in the root
  std::vector<std::string> shown_;  // what it names that is, as it names it
  const std::atomic<int64_t>* released_ns_;
  std::string* const notice_;
  Notice told_;
  std::vector<LogRecord> records_;
  std::optional<LogRecord> subagent_;
};

}  // namespace

LogRecord SubagentRecord(Store& store, const RootId& root, const Settings& settings,
                         const HookEvent& event) {
  SessionRecord record{.session = *event.subagent,
                       .agent = AgentOf(event),
                       .parent = SessionOf(event),
                       .cwd = event.cwd,
                       .subagent = true,
                       .subagent_type = event.subagent_type};
  if (settings.transcripts != Transcripts::kOff)
    record.transcript_path = event.subagent_transcript;
  return ToRecord(record, RecordId(store.random().NewId()), root,
                  store.clock().WallMillis());
}

std::string AgentOf(const HookEvent& event) {
  return event.host.empty() ? std::string(AgentName(event.agent)) : event.host;
}

std::string SessionOf(const HookEvent& event) {
  // One that does not say is one for ever.
  return event.session.empty() ? AgentOf(event) : event.session;
}

Status CheckHost(Store& store, const RootId& root, const HookEvent& event) {
  if (event.agent != AgentKind::kGeneric || event.host.empty()) return Ok();
  constexpr int64_t kStaysItsMs = 24 * 60 * 60 * 1000;
  const Live live = Live::Load(store, root);
  const LiveSession* known = live.Find(SessionOf(event));
  if (known == nullptr || known->ended || known->agent == event.host ||
      known->agent.empty() || AgentNamed(known->agent) ||
      store.clock().WallMillis() - known->seen_ms > kStaysItsMs ||
      BELAY_MUTANT("two-hosts-are-one"))
    return Ok();
  return Error(Errc::kRefused, "session " + EscapeForDisplay(SessionOf(event)) +
                                   " is at work for the host " +
                                   EscapeForDisplay(known->agent) + ": what " +
                                   EscapeForDisplay(event.host) +
                                   " tells of one by that id is not recorded");
}

bool IsRecorded(const HookEvent& event, const Settings& settings) {
  if (!settings.enabled || event.kind == EventKind::kOther) return false;
  // Where nobody looks at single calls none is at work.
  if (event.kind == EventKind::kTaskEnd)
    return settings.granularity == Granularity::kTool;
  const bool tool =
      event.kind == EventKind::kToolBegin || event.kind == EventKind::kToolEnd;
  if (!tool) return true;
  return event.tool && event.tool->reach != ToolReach::kReads &&
         settings.granularity == Granularity::kTool;
}

Result<std::optional<Captured>> RecordEvent(Store& store, const RecordRequest& request,
                                            const HookEvent& event) {
  std::optional<Captured> none;
  if (!IsRecorded(event, *request.settings)) return none;
  BELAY_OK(CheckHost(store, request.root.id, event));
  // A rollback that was interrupted is ended first: half of one is no state that
  // anybody wants.
  RollbackRequest recovery;
  recovery.root = request.root;
  recovery.pid = request.pid;
  recovery.lock_wait_ms = request.lock_wait_ms;
  BELAY_TRY(auto recovered, Recover(store, recovery));
  if (recovered && recovered->busy) return std::move(*recovered->busy);
  // Before anybody is kept waiting by it.
  EventStep step(store, request, event,
                 SearchAncestor(store, request.root.id, *request.settings, event));
  // Whose doing what is found later may be has to be known all the same.
  const bool unwatched =
      event.tool && !request.settings->ToolEnabled(event.tool->name) &&
      (event.kind == EventKind::kToolBegin || event.kind == EventKind::kToolEnd ||
       event.kind == EventKind::kTaskEnd);
  if (unwatched || (request.settings->granularity == Granularity::kSession &&
                    event.kind != EventKind::kSessionStart &&
                    event.kind != EventKind::kSessionEnd)) {
    BELAY_OK(TakeStep(store, request.root, request.lock_wait_ms, step));
    return none;
  }
  CaptureRequest capture;
  capture.root = request.root;
  capture.settings = request.settings;
  capture.git = request.git;
  capture.lock_wait_ms = request.lock_wait_ms;
  capture.released_ns = request.released_ns;
  capture.step = &step;
  BELAY_TRY(Captured made, CaptureCheckpoint(store, capture));
  if (!made.published) return none;
  return std::optional<Captured>(std::move(made));
}

}  // namespace belay
