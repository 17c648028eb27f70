#include "agent/elsewhere.h"

#include "agent/dialects.h"
#include "base/mutant.h"

namespace belay {

namespace {

class ElsewhereStep final : public LiveStep {
 public:
  ElsewhereStep(Store& store, const Settings& settings, const HookEvent& event,
                const LiveSession* at_home)
      : store_(store), settings_(settings), event_(event), at_home_(at_home) {}

  Result<bool> Begin(Live& live, CaptureRequest&) override {
    const LiveSession* known = live.Find(SessionOf(event_));
    told_twice_ = known != nullptr && IsToldTwice(*known);
    ends_untold_ = EndsUntold(event_) && !told_twice_;
    if (ends_untold_) live.DoubtBackground(SessionOf(event_));
    return false;
  }
  std::optional<std::vector<LogRecord>> Settle(const Live&, Checkpoint&,
                                               bool) override {
    return std::nullopt;
  }

  void Done(Live& live, bool) override {
    const std::string id = SessionOf(event_);
    const LiveSession* known = live.Find(id);
    if (known == nullptr || BELAY_MUTANT("calls-elsewhere-go-on")) return;
    const int64_t now_ms = store_.clock().WallMillis(), seen_ms = known->seen_ms;
    LiveSession& session = live.Meet(id, now_ms);
    session.ended = event_.kind == EventKind::kSessionEnd;
    if (ends_untold_) live.EndUntold(id);
    for (const std::string& task : event_.ended_tasks) live.EndTask(id, task);
    if (event_.kind == EventKind::kPrompt)
      BeginTurn(live, session, now_ms);
    else
      EndWhatIsOver(live, event_, now_ms);
    // It is not at work here because somebody talks to it there.
    session.seen_ms = seen_ms;
    if (!TraitsOf(event_.agent).tells_ends) (void)live.TakeNeverEnded();
  }

 private:
  bool IsToldTwice(const LiveSession& session) const {
    return event_.kind == EventKind::kPrompt && event_.human && at_home_ != nullptr &&
           session.in_turn && session.turn == at_home_->turn &&
           session.anchor == at_home_->anchor;
  }
  void BeginTurn(Live& live, LiveSession& session, int64_t now_ms) {
    if (event_.human && !told_twice_) live.BeginTurn(session.id, now_ms);
    session.in_turn = true;
    if (at_home_ == nullptr) return;
    session.turn = at_home_->turn;
    session.inherited = at_home_->inherited;
    session.anchor = at_home_->anchor;
    session.message = at_home_->message;
    session.message_index = at_home_->message_index;
    if (settings_.transcripts != Transcripts::kOff) session.prompt = at_home_->prompt;
    if (!event_.anchor) return;
    if (const auto heard = at_home_->Heard(*event_.anchor))
      session.Hear(*event_.anchor, *heard);
  }

  Store& store_;
  const Settings& settings_;
  const HookEvent& event_;
  const LiveSession* const at_home_;
  bool told_twice_ = false, ends_untold_ = false;
};

}  // namespace

Status TellElsewhere(Store& store, const RecordRequest& request, const HookEvent& event,
                     const LiveSession* at_home) {
  if (!request.settings->enabled ||
      Live::Load(store, request.root.id).Find(SessionOf(event)) == nullptr)
    return Ok();
  BELAY_OK(CheckHost(store, request.root.id, event));
  ElsewhereStep step(store, *request.settings, event, at_home);
  return TakeStep(store, request.root, request.lock_wait_ms, step);
}

bool EndsUntold(const HookEvent& event) {
  switch (event.kind) {
    case EventKind::kPrompt:
      return event.human ||
             (!event.subagent && (!event.prompt.empty() || !event.ended_tasks.empty()));
    case EventKind::kSessionStart:
      return event.source != "compact";
    default:
      return event.kind == EventKind::kSessionEnd;
  }
}

void EndWhatIsOver(Live& live, const HookEvent& event, int64_t now_ms) {
  const std::string session = SessionOf(event);
  auto keep_tasks = [&] {
    if (event.running_tasks) live.KeepTasks(session, *event.running_tasks);
  };
  switch (event.kind) {
    case EventKind::kSubagentEnd:
      if (event.subagent) live.EndAll(session, event.subagent);
      return keep_tasks();
    case EventKind::kTurnEnd:
      live.EndTurn(session, event.running_tasks);
      keep_tasks();
      break;
    case EventKind::kSessionStart:
      // Shortened in the same process, perhaps in the middle of a turn.
      if (event.source == "compact" && !BELAY_MUTANT("shortened-is-over"))
        return live.BeginTurn(session, now_ms);
      live.EndAll(session, std::nullopt);
      // Cleared, it is the same process.
      if (event.source != "clear") live.LeaveBackground(session, now_ms);
      break;
    case EventKind::kSessionEnd:
      live.EndAll(session, std::nullopt);
      live.KeepTasks(session, {});
      break;
    default:
      return;
  }
  live.Meet(session, now_ms).in_turn = false;
}

}  // namespace belay
