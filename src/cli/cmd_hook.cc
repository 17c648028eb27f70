#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "agent/aftermath.h"
#include "agent/dialects.h"
#include "agent/elsewhere.h"
#include "agent/event_roots.h"
#include "agent/json_end.h"
#include "agent/notice.h"
#include "agent/recorder.h"
#include "agent/rollback_command.h"
#include "agent/session_queue.h"
#include "agent/user_hooks.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/forked_work.h"
#include "base/json.h"
#include "base/mutant.h"
#include "cli/agents_view.h"
#include "cli/anchoring.h"
#include "cli/auto_protect.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/slash.h"
#include "cli/text.h"
#include "core/failures.h"
#include "core/roots.h"
#include "store/heads.h"
#include "store/session_lock.h"

namespace belay {

namespace {

// How long a hook waits when nobody has read the settings yet, how long for all of its
// input, and how long the work goes on behind it for somebody else to finish.
constexpr int64_t kWaitMs = 2000, kInputMs = 5000, kLockMs = 60'000;
// And how long an agent waits for a directory that it is not at work in.
constexpr int64_t kMomentMs = 100;

// What the child tells its parent.
enum Ending : int { kDone = 0, kFailed = 1, kFailedStrictly = 2 };

// All of standard input, up to what is read at all. Some host keeps its end open: an
// event that is whole is not waited for, and one that never is, not for ever, however
// often more of it comes.
Result<std::string> ReadInput() {
  std::string out;
  char buffer[1 << 16];
  JsonEnd end;
  RealClock clock;
  const int64_t until = clock.SteadyNanos() + kInputMs * 1'000'000;
  for (;;) {
    pollfd wait{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int64_t left_ms = (until - clock.SteadyNanos()) / 1'000'000;
    if (left_ms <= 0) return Error(Errc::kIo, "nobody said what happened");
    const int ready = poll(&wait, 1, static_cast<int>(left_ms));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error(Errc::kIo, "the event cannot be read");
    if (got == 0) return out;
    out.append(buffer, static_cast<size_t>(got));
    if (out.size() > kMaxPayload)
      return Error(Errc::kInvalid, "the event is larger than 64 MiB");
    if (end.IsReached({buffer, static_cast<size_t>(got)})) return out;
  }
}

void CountWithoutStore(CommandContext& ctx, std::string_view what, const Error& error) {
  if (auto prepared = PrepareStore(ctx); prepared.ok())
    CountFailure(ctx.fs, (*prepared)->dir, (*prepared)->clock, what, error);
}

// What it says of the session it is of has to be known to the next event of it.
bool BeginsWithTurns(const HookEvent& event) {
  return event.kind == EventKind::kSessionStart && event.parent_session &&
         event.source != "subagent" && event.agent != AgentKind::kOpencode;
}

class HookWork {
 public:
  HookWork(CommandContext& ctx, HookEvent& event, ForkedWork::Shared& shared)
      : ctx_(ctx), event_(event), shared_(shared) {}

  int Run() {
    auto opened = OpenStore(ctx_, Store::Mode::kWriteExisting);
    if (!opened.ok() && opened.error().code != Errc::kNotFound)
      return Fail(nullptr, {}, opened.error());
    EventRoots concerned;
    std::vector<RootEntry> all;
    if (opened.ok()) {
      auto heads = Heads::Read(*(*opened)->store);
      if (!heads.ok()) return Fail((*opened)->store.get(), {}, heads.error());
      all = heads->roots();
      LeavePlace(*(*opened)->store, all, event_);
      concerned = RootsOf(*(*opened)->store, all, event_);
      AddAway(*(*opened)->store, all, concerned);
      AddLeftOut(*(*opened)->store, all, concerned);
    }
    std::vector<Root>& roots = concerned.here;
    if (roots.empty()) {
      if (event_.kind == EventKind::kOther) return kDone;
      auto fresh = ProtectNew(ctx_, event_);
      if (!fresh.ok())
        return Fail(opened.ok() ? (*opened)->store.get() : nullptr, {}, fresh.error());
      if (fresh->empty()) {
        if (opened.ok()) TellOthers(*(*opened)->store, concerned, kLockMs);
        return kDone;
      }
      roots = std::move(*fresh);
      opened = OpenStore(ctx_, Store::Mode::kWriteExisting);
      if (!opened.ok()) return Fail(nullptr, {}, opened.error());
    }
    Store& store = *(*opened)->store;
    if (event_.kind == EventKind::kSessionStart) {
      // What comes next may not say where it takes place, or name another directory.
      if (!event_.session.empty())
        RememberSessionRoot(store, event_.session, roots[0].id);
      Hold(store, LockMode::kExclusive, BeginsWithTurns(event_) ? kWaitMs : 0);
      // A session may begin before the first checkpoint of it is made; its next event
      // waits for that.
      shared_.Reply(kDone);
      if (!heard_.held()) Hold(store, LockMode::kExclusive, kWaitMs);
      concerned.elsewhere = OtherRootsOf(store, all, event_.session, roots);
    }
    // Its place cannot be protected, or was not told; its prompts belong here, too.
    if (concerned.homeless && event_.tool && !event_.session.empty() &&
        IsAutoMeant(ctx_))
      RememberFirstRoot(store, event_.session, roots[0].id);
    if (concerned.news) RememberCallsIn(store, event_.session, roots);
    int outcome = kDone;
    HeldLock elsewhere;
    for (size_t i = 0; i < roots.size(); ++i) {
      if (i == 1) elsewhere = WaitElsewhere(store, kLockMs);
      outcome = std::max(outcome, Record(store, roots[i], i == 0));
    }
    elsewhere.Release();
    TellOthers(store, concerned, kMomentMs);
    RememberAgent(store, event_.agent);
    if (event_.messages.empty() || counts_) heard_.Release();
    in_turn_.Release();
    if (counts_ && !event_.messages.empty()) Hold(store, LockMode::kShared, 0);
    if (outcome == kDone && !notice_.empty()) shared_.Say(notice_);
    // Somebody else is at work there, and this session here.
    if (!concerned.elsewhere.empty()) shared_.Reply(outcome);
    if (outcome == kDone) GoOnBehind(store, roots[0]);
    heard_.Release();
    TellOthers(store, concerned, kLockMs);
    return outcome;
  }

 private:
  int Record(Store& store, const Root& root, bool first) {
    auto path = AbsPath::Parse(root.path);
    if (!path.ok()) return Fail(&store, root.id, path.error());
    auto settings = settings_ && settings_of_ == root.id ? Result<Settings>(*settings_)
                                                         : LoadSettingsFor(ctx_, *path);
    if (!settings.ok()) return Fail(&store, root.id, settings.error());
    strict_ = settings->strict;
    settings_read_ = true;
    if (first) settings_ = *settings;
    if (first && !shared_.replied)
      shared_.WaitOnly(std::min(settings->deadline_ms, LongestWaitMs(event_)));
    if (first) WaitForTheStart(store);
    if (!IsRecorded(event_, *settings)) return kDone;
    if (first && !event_.session.empty() && event_.kind == EventKind::kPrompt)
      RememberSessionRoot(store, event_.session, root.id);
    std::string notice;
    RecordRequest request{.root = root,
                          .settings = &*settings,
                          .git = GitPlacesOf(ctx_.env),
                          .pid = getpid(),
                          .lock_wait_ms = kLockMs,
                          .released_ns = &shared_.released_ns,
                          .notice = &notice};
    auto made = RecordEvent(store, request, event_);
    if (!made.ok()) {
      // A root that is deleted while an agent is at work in it has nothing to record.
      return Fail(&store, root.id, made.error());
    }
    if (!notice.empty()) notice_ += (notice_.empty() ? "" : "\n") + notice;
    if (!*made) return kDone;
    StartUpkeepIfDue(store, (*made)->checkpoint);
    if ((*made)->git.Find("") != nullptr) StartAnchoring(*settings, root);
    return kDone;
  }

  // The session's own directory is not where the event takes place, and nothing is
  // protected there.
  void AddAway(Store& store, std::vector<RootEntry>& all, EventRoots& concerned) {
    if (concerned.here.empty()) return;
    const Root home = concerned.here[0];
    auto more = ProtectAway(ctx_, all, home, event_);
    if (!more.ok()) CountFailure(store, home.id, "hook", more.error());
    if (more.ok() && *more) LookAgain(store, all, concerned);
  }
  bool LookAgain(Store& store, std::vector<RootEntry>& all, EventRoots& concerned) {
    auto now = Heads::Read(store);
    if (!now.ok()) return false;
    all = now->roots();
    concerned = RootsOf(store, all, event_);
    return true;
  }

  // What the roots of the event leave out and shall be protected is, and is among them.
  void AddLeftOut(Store& store, std::vector<RootEntry>& all, EventRoots& concerned) {
    constexpr int kMostAtOnce = 8;
    for (int made = 0; made < kMostAtOnce && !concerned.here.empty(); ++made) {
      const Root& first = concerned.here[0];
      if (!settings_ || settings_of_ != first.id) {
        auto path = AbsPath::Parse(first.path);
        auto settings = path.ok() ? LoadSettingsFor(ctx_, *path) : path.error();
        if (!settings.ok()) return;  // said where it is recorded
        settings_ = std::move(*settings);
        settings_of_ = first.id;
      }
      auto more = ProtectLeftOut(ctx_, store, all, first, *settings_, event_);
      if (!more.ok()) CountFailure(store, first.id, "hook", more.error());
      if (!more.ok() || !*more) return;
      if (!LookAgain(store, all, concerned)) return;
    }
  }

  // A queue of its own for what is told, or recorded, where the session did not begin.
  HeldLock WaitElsewhere(Store& store, int64_t wait_ms) {
    return WaitInTurn(store, SessionOf(event_) + '\0' + "elsewhere", wait_ms);
  }

  // Other directories in which the session has made calls. Whoever comes next waits for
  // a prompt and a start (`heard_`), so that calls find them told; of those that are
  // busy, calls there alone.
  void TellOthers(Store& store, EventRoots& concerned, int64_t wait_ms) {
    if (concerned.elsewhere.empty()) return;
    const bool again = wait_ms < kLockMs;
    const HeldLock in_turn = WaitElsewhere(store, wait_ms);
    if (!in_turn.held() && again) return;
    std::optional<Live> home;
    if (!concerned.here.empty()) home = Live::Load(store, concerned.here[0].id);
    std::vector<Root> busy;
    for (const Root& root : concerned.elsewhere) {
      auto path = AbsPath::Parse(root.path);
      if (!path.ok()) continue;
      Status told = [&]() -> Status {
        BELAY_TRY(const Settings settings, LoadSettingsFor(ctx_, *path));
        return TellElsewhere(store,
                             {.root = root,
                              .settings = &settings,
                              .lock_wait_ms = busy.empty() ? wait_ms : 0},
                             event_, home ? home->Find(SessionOf(event_)) : nullptr);
      }();
      if (!told.ok() && told.error().code == Errc::kBusy && again)
        busy.push_back(root);
      else if (!told.ok())
        CountFailure(store, root.id, "hook", told.error());
    }
    concerned.elsewhere = std::move(busy);
  }

  // The start of a session is recorded behind the reply to it; whoever waits for this
  // event waits until the deadline and no longer. Messages that are kept behind the
  // reply are waited for by a rewind.
  void WaitForTheStart(Store& store) {
    if (heard_.held() || event_.kind == EventKind::kSessionStart) return;
    // Where the directory is busy the calls that a prompt leads to are not recorded
    // before it. Two processes of one session may be in two roots, too: neither counts
    // a turn while the other does.
    counts_ = event_.kind == EventKind::kPrompt;
    in_turn_ = WaitInTurn(store, SessionOf(event_), kLockMs);
    Hold(store, counts_ ? LockMode::kExclusive : LockMode::kShared, kLockMs);
    if (event_.messages.empty() && !counts_) heard_.Release();
  }
  void Hold(Store& store, LockMode mode, int64_t wait_ms) {
    if (auto lock = LockSession(store, SessionOf(event_), mode, wait_ms); lock.ok())
      heard_ = std::move(*lock);
  }

  // What nobody has to wait for.
  void GoOnBehind(Store& store, const Root& root) {
    if (!settings_ || !HasAftermath(event_, *settings_)) return;
    shared_.Reply(kDone);
    setpriority(PRIO_PROCESS, 0, 10);
    const Aftermath after = AfterEvent(store, root, *settings_, event_);
    for (const Error& error : after.failed)
      CountFailure(store, root.id, "transcript", error);
    heard_.Release();
    if (after.session_ended) TellOfTheEnd(store, root);
  }

  // `hooks.on_session_end`, when the conversation is kept already.
  void TellOfTheEnd(Store& store, const Root& root) {
    if (settings_->on_session_end.empty()) return;
    JsonWriter json;
    json.BeginObject();
    json.Key("hook").String("on_session_end");
    json.Key("session").PathValue(SessionOf(event_));
    json.Key("agent").PathValue(AgentOf(event_));
    json.Key("root").PathValue(root.path);
    json.Key("reason").PathValue(event_.reason);
    json.Key("transcript");
    if (event_.transcript)
      json.PathValue(*event_.transcript);
    else
      json.Null();
    json.EndObject();
    auto directory = AbsPath::Parse(root.path);
    const UserHookPlace place{
        .directory = directory.ok() ? *directory : AbsPath::Literal("/"),
        .environment = ctx_.env.all,
        .exec_path = ctx_.env.exec_path};
    for (const UserHookRun& run :
         RunUserHooks(ctx_.fs, place, "on_session_end", settings_->on_session_end,
                      json.Take() + "\n", WhenOneFails::kGoOn))
      if (!run.ok())
        CountFailure(store, root.id, "hooks.on_session_end",
                     Error(Errc::kIo, StrCat("hooks.on_session_end: ", run.program, " ",
                                             run.trouble)));
  }

  int Fail(Store* store, const RootId& root, const Error& error) {
    if (store != nullptr)
      CountFailure(*store, root, "hook", error);
    else
      CountWithoutStore(ctx_, "hook", error);
    shared_.Say(error.what);
    return IsStrict() ? kFailedStrictly : kFailed;
  }

  // Where it did not get as far as the settings of the directory, the user's own count,
  // without the lines in them that make no sense. Only of what waits for a checkpoint.
  bool IsStrict() {
    if (settings_read_) return strict_;
    if (event_.kind != EventKind::kPrompt && event_.kind != EventKind::kToolBegin)
      return false;
    auto file = ctx_.env.UserSettingsFile();
    if (!file.ok()) return false;
    auto text = ReadUserSettings(ctx_.fs, *file);
    if (!text.ok()) return false;
    auto sense = RepairSettings(*text, file->bytes(), false);
    if (!sense.ok()) return false;
    auto settings = ParseSettings(sense->text, file->bytes(), "", "");
    return settings.ok() && settings->strict && settings->enabled;
  }

  CommandContext& ctx_;
  HookEvent& event_;
  ForkedWork::Shared& shared_;
  bool strict_ = false, settings_read_ = false;
  bool counts_ = false;               // a turn, alone on its session
  std::string notice_;                // for the model
  HeldLock in_turn_;                  // while others of the session wait behind it
  HeldLock heard_;                    // while others have to wait for what was told
  std::optional<Settings> settings_;  // of the first root
  RootId settings_of_;                // which may have become another since
};

// What cannot even be understood is counted, and stops nobody.
ExitCode NotUnderstood(CommandContext& ctx, const Error& error) {
  ctx.term.Detail(StrCat("hook: ", error.what));
  CountWithoutStore(ctx, "hook", error);
  return ExitCode::kOk;
}

// An answer that nobody can be given is counted, too: any other exit code may stop the
// tool that an agent is about to use.
ExitCode Reply(CommandContext& ctx, const std::string& answer) {
  ctx.term.Out(answer);
  if (Status given = ctx.term.Deliver(); !given.ok())
    CountWithoutStore(ctx, "answer", given.error());
  return ExitCode::kOk;
}

// Where `/rollback` is ours to answer. Nothing where no directory is protected, or
// somebody has a command of that name: then the agent gets what was typed. Of a store
// that cannot be read the answer tells.
std::optional<std::string> PlaceToRollBack(CommandContext& ctx,
                                           const HookEvent& event) {
  const auto place = PlaceOf(ctx.fs, event);
  const std::string here = place ? place->bytes() : std::string();
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (!opened.ok() && opened.error().code == Errc::kNotFound) return std::nullopt;
  if (!opened.ok()) return here;
  auto heads = Heads::Read(*(*opened)->store);
  if (!heads.ok()) return here;
  const std::vector<Root> roots =
      RootsOf(*(*opened)->store, heads->roots(), event).here;
  if (roots.empty()) return std::nullopt;
  const auto around = place ? FindRootFor(heads->roots(), *place) : std::nullopt;
  const bool inside = around && !around->root.off;
  auto root = AbsPath::Parse(inside ? around->root.path : roots[0].path);
  auto places = FindInstallPlaces(ctx, false);
  if (!root.ok()) return std::nullopt;
  const AbsPath from = inside ? *place : *root;
  if (places.ok() && HasRollbackOfOthers(ctx.fs, event.agent, *places, from, *root))
    return std::nullopt;
  return from.bytes();
}

// `/rollback` typed at the agent: answered here, and kept from the model where the
// agent lets a hook do that. Nothing: the prompt is another, or the agent's own command
// file answers it.
std::optional<ExitCode> Answer(CommandContext& ctx, const HookEvent& event) {
  if (event.kind != EventKind::kPrompt || !event.human || event.subagent)
    return std::nullopt;
  auto words = SlashWords(event.prompt);
  if (!words) return std::nullopt;
  const bool by_exit = event.agent == AgentKind::kReasonix;
  if (!by_exit && event.agent != AgentKind::kClaude &&
      event.agent != AgentKind::kCodex && event.agent != AgentKind::kCopilot)
    return std::nullopt;
  const auto place = PlaceToRollBack(ctx, event);
  if (!place) return std::nullopt;
  const std::string answer =
      AnswerSlash(ctx, *place, StrCat("session:", SessionOf(event)), *words);
  if (by_exit) {
    std::fprintf(stderr, "%s\n", answer.c_str());
    return static_cast<ExitCode>(2);
  }
  JsonWriter json;
  json.BeginObject();
  json.Key("decision").String("block");
  json.Key("reason").String(answer);
  json.EndObject();
  return Reply(ctx, json.Take() + "\n");
}

// `claude --resume ID --fork-session` says that it is a fork, and not of whom, until
// its file is written, behind the first prompt. Its own command line does.
std::optional<std::string> ForkedByClaude(CommandContext& ctx) {
  std::string pid;
  for (const std::string& variable : ctx.env.all)
    if (variable.starts_with("CLAUDE_PID=")) pid = variable.substr(11);
  auto dir = AbsPath::Parse(StrCat("/proc/", pid));
  if (pid.empty() || pid.find_first_not_of("0123456789") != std::string::npos ||
      !dir.ok())
    return std::nullopt;
  auto process = ctx.fs.OpenDir(*dir);
  if (!process.ok()) return std::nullopt;
  auto bytes = ReadSmallFile(ctx.fs, *process, Name::Literal("cmdline"), 1 << 20);
  if (!bytes.ok()) return std::nullopt;
  return ResumedBy(AsText(*bytes));
}

bool MayMatter(const HookEvent& event) {
  if (!event.messages.empty()) return true;
  if (event.kind == EventKind::kOther) return false;
  return !event.tool || event.kind == EventKind::kTaskEnd ||
         event.tool->reach != ToolReach::kReads;
}

}  // namespace

ExitCode CmdHook(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  const auto agent = AgentNamed(words[0]);
  if (!agent) {
    // Any other exit code may stop the tool that an agent is about to use.
    ctx.term.Warn(StrCat("no agent is called ", EscapeForDisplay(words[0]),
                         "; nothing was recorded"));
    return ExitCode::kOk;
  }
  auto input = ReadInput();
  if (!input.ok()) return NotUnderstood(ctx, input.error());
  if (ctx.env.forking) return ExitCode::kOk;
  auto event = ParseHook(*agent, words.size() > 1 ? words[1] : "", *input);
  if (!event.ok()) return NotUnderstood(ctx, event.error());
  if (!MayMatter(*event)) return ExitCode::kOk;
  TakePlace(*event, ctx.env.cwd);
  if (*agent == AgentKind::kClaude && event->kind == EventKind::kSessionStart &&
      event->source == "fork" && !event->parent_session)
    event->parent_session = ForkedByClaude(ctx);
  if (auto answered = Answer(ctx, *event)) return *answered;
  auto ended = ForkedWork::Run(kWaitMs, [&](ForkedWork::Shared& shared) {
    return HookWork(ctx, *event, shared).Run();
  });
  if (!ended.ok()) return NotUnderstood(ctx, ended.error());
  if (*ended && (*ended)->code == kFailedStrictly) {
    const std::string why = StrCat("belay: no checkpoint could be made: ",
                                   EscapeForDisplay((*ended)->text));
    // Cline does not look at exit codes.
    if (*agent == AgentKind::kCline) {
      JsonWriter json;
      json.BeginObject().Key("cancel").Bool(true).Key("errorMessage").String(why);
      json.EndObject();
      return Reply(ctx, json.Take() + "\n");
    }
    std::fprintf(stderr, "%s\n", why.c_str());
    return static_cast<ExitCode>(2);
  }
  if (*ended && (*ended)->code == kDone && !(*ended)->text.empty())
    return Reply(ctx, NoticeAnswer(*agent, (*ended)->text));
  return ExitCode::kOk;
}

}  // namespace belay
