#include "agent/rewind.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>
#include <unordered_map>

#include "agent/dialect_internal.h"
#include "agent/native_fork.h"
#include "agent/opencode_copy.h"
#include "agent/referred.h"
#include "agent/rewind_internal.h"
#include "agent/told.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "base/subprocess.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "core/roots.h"
#include "store/session_lock.h"

namespace belay {

namespace {

const TurnOf* TurnBefore(const std::vector<TurnOf>& turns, uint64_t number) {
  const TurnOf* found = nullptr;
  for (const TurnOf& one : turns)
    if (one.turn.turn < number) found = &one;
  return found;
}

class RewindPlanner {
 public:
  RewindPlanner(Store& store, Catalog& catalog, const RewindRequest& request)
      : store_(store), catalog_(catalog), request_(request) {}

  Result<RewindPlan> Run() {
    BELAY_TRY(const AboutSession about, LookUp(catalog_, request_.session));
    BELAY_TRY(turns_, TurnsOf(catalog_, request_.session, request_.root.bytes()));
    out_.agent = about.kind;
    ChatRecord& record = out_.chat.record;
    record.agent = about.agent;
    record.session = request_.session;
    record.cwd = about.cwd.empty() ? request_.root.bytes() : about.cwd;
    record.message = request_.message;
    BELAY_OK(CheckRewind(catalog_, request_.session));
    if (request_.turn && FindTurn(turns_, *request_.turn) == nullptr)
      return NoSuchTurn(*request_.turn);
    if (request_.turn)
      BELAY_OK(CheckOneTurn(catalog_, request_.session, *request_.turn,
                            request_.root.bytes()));
    if (const TurnOf* named = Named())
      BELAY_OK(CheckSaid(catalog_, request_.session, named->turn));
    const bool known = AgentNamed(about.agent).has_value();
    if (!known || about.kind == AgentKind::kGeneric) {
      BELAY_OK(OfHost());
    } else if (about.kind == AgentKind::kOpencode) {
      BELAY_OK(OfOpencode());
    } else {
      BELAY_OK(OfFile());
    }
    record.prompt = CutText(out_.prompt, kMaxPrompt);
    if (request_.settings->transcripts == Transcripts::kOff) record.prompt.clear();
    return std::move(out_);
  }

 private:
  // Who it was forked from may have one.
  Error NoSuchTurn(uint64_t turn) {
    Error none = NoTurn(request_.session, turn);
    auto beyond = TurnsBeyond(catalog_, std::nullopt, request_.session, turn);
    if (beyond.ok() && !beyond->empty())
      none.hint = "the session that it was forked from has one: belay rewind " +
                  ShellWord((*beyond)[0].checkpoint.session.value_or("")) +
                  " --to turn:" + std::to_string(turn);
    return none;
  }

  // By a message that began a turn, too.
  const TurnOf* Named() {
    if (request_.turn) return FindTurn(turns_, *request_.turn);
    for (const TurnOf& one : turns_)
      if (one.turn.anchor == request_.message) return &one;
    return nullptr;
  }

  void OfTurn(const TurnOf& turn) {
    ChatRecord& record = out_.chat.record;
    record.turn = turn.turn.turn;
    record.inherited = turn.turn.turn - 1;
    if (turn.turn.anchor) record.message = turn.turn.anchor;
    out_.prompt = turn.turn.prompt;
  }

  // A message of a host's.
  struct HostMessage {
    uint64_t turn = 0, seq = 0;
    std::optional<uint64_t> index = {};
    const TurnOf* began = nullptr;       // the turn that it began
    std::vector<std::string> from = {};  // ids of its turn up to its own, as told
  };

  // A rewind to within its turn took it back.
  const Operation* CutOff(const Chats& chats, const HostMessage& message) const {
    return CutOffBy(chats, request_.session, message.turn, message.seq, message.index,
                    [&](const std::string& id) {
                      return id == request_.message ||
                             std::ranges::find(message.from, id) != message.from.end();
                    });
  }

  // A host was told to forget it, and would keep it again by a rewind to behind that.
  Status IsThere(const Chats& chats, uint64_t turn, uint64_t seq,
                 const HostMessage* within = nullptr) const {
    const Operation* by = chats.TakenBackBy(request_.session, turn, seq);
    std::string what = "turn " + std::to_string(turn);
    if (by == nullptr && within != nullptr) {
      by = CutOff(chats, *within);
      what = "message " + EscapeText(request_.message.value_or("")) + " in " + what;
    }
    if (by == nullptr || BELAY_MUTANT("a-host-is-rewound-forward")) return Ok();
    what += " of session " + EscapeText(request_.session) + " was taken back already";
    // What an undo needs was let go.
    if (by->released && !BELAY_MUTANT("what-is-too-far-back-is-undone"))
      return Error(Errc::kRefused, what + ", too far back to be undone")
          .WithHint("what counts, and can be gone back to: belay show " +
                    ShellWord(request_.session));
    return Error(Errc::kRefused, std::move(what))
        .WithHint("make it count again first: belay undo " +
                  by->id.text().substr(0, 7));
  }

  // What the host told of what it has to forget now.
  Status Count(const Chats& chats) {
    // The last messages may still be on their way, behind the reply of their hook; not
    // counted is better than counted wrong.
    constexpr int64_t kWaitMs = 2000;
    auto all_told =
        LockSession(store_, request_.session, LockMode::kExclusive, kWaitMs);
    if (!all_told.ok() && all_told.error().code == Errc::kBusy &&
        !BELAY_MUTANT("what-is-being-told-is-not-waited-for"))
      return Ok();
    if (all_told.ok()) all_told->Release();
    BELAY_OK(store_.Refresh());
    BELAY_TRY(const Lineage lineage, Lineage::Of(catalog_, request_.session));
    BELAY_TRY(const Told told, ReadToldOf(store_, catalog_, lineage));
    if (const auto counts = CountTold(told, chats, turns_, out_.chat.record);
        counts && !BELAY_MUTANT("hosts-are-not-counted")) {
      out_.chat.record.taken = counts->taken;
      out_.chat.record.kept = counts->kept;
    }
    return Ok();
  }

  // Of the session and, as far as they are its own, of those that it grew out of;
  // oldest first.
  Result<std::vector<CatalogEntry>> Checkpoints() {
    std::vector<CatalogEntry> out;
    BELAY_TRY(const Lineage lineage, Lineage::Of(catalog_, request_.session));
    for (size_t i = lineage.generations().size(); i-- > 0;) {
      const Generation& at = lineage.generations()[i];
      if (i > 0 && BELAY_MUTANT("what-a-host-inherited-has-no-place")) continue;
      BELAY_TRY(auto own, catalog_.ListCheckpoints(
                              {.session = at.session, .oldest_first = true}));
      for (CatalogEntry& entry : own)
        if (at.Has(entry.checkpoint.turn, entry.checkpoint.seq))
          out.push_back(std::move(entry));
    }
    return out;
  }

  // One that was made for a session by name does not say; 0: before the first turn.
  uint64_t TurnOfCheckpoint(const Checkpoint& c) const {
    if (c.turn || BELAY_MUTANT("what-names-no-turn-is-before-all"))
      return c.turn.value_or(0);
    uint64_t out = 0;
    for (const TurnOf& one : turns_)
      if (one.seq < c.seq) out = one.turn.turn;
    return out;
  }

  // Those within a turn that the request may mean: one that a checkpoint was made of,
  // one that the host told of.
  Status FindWithin(const std::vector<CatalogEntry>& checkpoints,
                    std::vector<HostMessage>& out) {
    for (const CatalogEntry& entry : checkpoints) {
      const Checkpoint& c = entry.checkpoint;
      if (c.message_id == request_.message)
        out.push_back(
            {.turn = TurnOfCheckpoint(c), .seq = c.seq, .index = c.message_index});
    }
    BELAY_TRY(const Lineage lineage, Lineage::Of(catalog_, request_.session));
    BELAY_TRY(const Told told, BELAY_MUTANT("what-was-inherited-began-a-turn")
                                   ? ReadTold(store_, catalog_, request_.session)
                                   : ReadToldOf(store_, catalog_, lineage));
    for (const ToldMessage& one : told.messages) {
      if (one.id.empty() || one.id != request_.message) continue;
      const TurnOf* in = FindTurn(turns_, one.turn);
      // Before the first turn nothing was recorded.
      const uint64_t said = one.turn == 0 ? 0 : UINT64_MAX;
      out.push_back({.turn = one.turn,
                     .seq = in == nullptr ? said : in->seq,
                     .index = one.index});
      for (const ToldMessage* before = told.messages.data(); before != &one; ++before)
        if (before->turn == one.turn) out.back().from.push_back(before->id);
    }
    return Ok();
  }

  // Where the turns of a host's conversation begin.
  struct Beginning {
    std::optional<std::string> message = {};
    std::optional<uint64_t> index = {};
  };
  class Beginnings {
   public:
    // They are to outlive it. `told` is asked where a checkpoint is gone.
    Beginnings(const std::vector<CatalogEntry>& checkpoints,
               const std::vector<TurnOf>& turns, std::function<Result<Told>()> told)
        : ask_(std::move(told)) {
      for (const CatalogEntry& entry : checkpoints)
        by_seq_[entry.checkpoint.seq] = &entry.checkpoint;
      for (const TurnOf& one : turns)
        if (const Checkpoint* start = StartOf(one);
            start != nullptr && start->message_id == one.turn.anchor)
          turns_are_messages_ = true;
    }

    Result<Beginning> Of(const TurnOf& turn) {
      if (const Checkpoint* start = StartOf(turn))
        return Beginning{.message = start->message_id, .index = start->message_index};
      // Its checkpoint is gone. What the host told: the prompt, once.
      if (!told_) {
        BELAY_TRY(told_, ask_());
      }
      const ToldMessage* only = nullptr;
      size_t same = 0;
      for (const ToldMessage& one : told_->messages)
        if (one.turn == turn.turn.turn && IsPrompt(one, turn.turn)) {
          only = &one;
          ++same;
        }
      if (same == 1 && !BELAY_MUTANT("what-began-a-turn-goes-with-its-checkpoint")) {
        Beginning out{.index = only->index};
        if (!only->id.empty()) out.message = only->id;
        return out;
      }
      // The turn's own id is its message's where the host tells no other beside it.
      if (turns_are_messages_ || BELAY_MUTANT("a-turns-id-is-a-messages"))
        return Beginning{.message = turn.turn.anchor};
      return Beginning();
    }

   private:
    // Published in one batch with the record of the turn, right before it.
    const Checkpoint* StartOf(const TurnOf& turn) const {
      for (const uint64_t before : {uint64_t{1}, uint64_t{2}}) {
        const auto at = by_seq_.find(turn.seq - std::min(turn.seq, before));
        if (at == by_seq_.end()) continue;
        const Checkpoint& c = *at->second;
        if (c.turn == turn.turn.turn && c.session == turn.turn.session &&
            !c.tool_name && c.kind == CheckpointKind::kAuto)
          return &c;
      }
      return nullptr;
    }

    std::function<Result<Told>()> ask_;
    std::optional<Told> told_;
    std::unordered_map<uint64_t, const Checkpoint*> by_seq_;
    bool turns_are_messages_ = false;
  };

  // What is read of a message may be its beginning.
  static bool IsPrompt(const ToldMessage& message, const TurnRecord& turn) {
    constexpr size_t kCharacter = 4;
    return !message.text.empty() && message.role != "assistant" &&
           message.role != "tool" && turn.prompt.starts_with(message.text) &&
           (message.text.size() == turn.prompt.size() ||
            message.text.size() + kCharacter > kMaxWhat);
  }

  Status OfHost() {
    ChatRecord& record = out_.chat.record;
    record.hosted = true;
    BELAY_TRY(const auto all, Checkpoints());
    BELAY_TRY(const Chats chats, Chats::Read(catalog_));
    Beginnings beginnings(all, turns_, [this]() -> Result<Told> {
      BELAY_TRY(const Lineage lineage, Lineage::Of(catalog_, request_.session));
      return ReadToldOf(store_, catalog_, lineage);
    });
    const TurnOf* turn = Named();
    std::optional<HostMessage> within;
    if (turn == nullptr) {
      std::vector<HostMessage> all_of_it;
      // The turn has an id of its own, and so has the message that began it.
      for (const TurnOf& one : turns_) {
        BELAY_TRY(const Beginning begins, beginnings.Of(one));
        if (begins.message == request_.message)
          all_of_it.push_back({.turn = one.turn.turn, .seq = one.seq, .began = &one});
      }
      BELAY_OK(FindWithin(all, all_of_it));
      // An id that was taken back may be another message's since: what counts, and of
      // that the last.
      for (const HostMessage& one : all_of_it) {
        auto rank = [&](const HostMessage& of) {
          return std::tuple(
              chats.TakenBackBy(request_.session, of.turn, of.seq) == nullptr &&
                  CutOff(chats, of) == nullptr,
              of.turn, of.began != nullptr);
        };
        if (!within || rank(one) > rank(*within) ||
            BELAY_MUTANT("an-id-is-the-first-messages"))
          within = one;
        if (BELAY_MUTANT("an-id-is-the-first-messages")) break;
      }
      if (within) turn = within->began;
    }
    if (turn != nullptr) {
      BELAY_OK(IsThere(chats, turn->turn.turn, turn->seq));
      OfTurn(*turn);
      BELAY_TRY(Beginning begins, beginnings.Of(*turn));
      record.message = std::move(begins.message);
      record.message_index = begins.index;
      return Count(chats);
    }
    if (within) {
      BELAY_OK(IsThere(chats, within->turn, within->seq, &*within));
      record.message_index = within->index;
      record.inherited = within->turn;
      // Also of what was said before the first turn, which all turns come behind.
      if (within->turn > 0 || !BELAY_MUTANT("turns-stay-behind-what-goes")) {
        record.turn = within->turn + 1;
        record.inside = true;
      }
      return Count(chats);
    }
    return Error(Errc::kNotFound, "nothing is known of a message " +
                                      EscapeForDisplay(request_.message.value_or("")) +
                                      " of session " + EscapeText(request_.session));
  }

  Status OfOpencode() {
    const TurnOf* turn = Named();
    if (turn != nullptr) {
      OfTurn(*turn);
      // Nothing is left of it: the agent begins anew.
      if (TurnBefore(turns_, turn->turn.turn) == nullptr) return Ok();
      if (!turn->turn.anchor)
        return Error(Errc::kNotFound, "which message began turn " +
                                          std::to_string(turn->turn.turn) +
                                          " was not recorded")
            .WithHint("name the message: belay rewind " + ShellWord(request_.session) +
                      " --to msg_...");
    }
    out_.native = RewindPlan::Native{.session = request_.session};
    if (turn != nullptr && !BELAY_MUTANT("fork-asked-of-the-wrong-session"))
      out_.native->session = turn->turn.session;
    if (turn != nullptr && turn->turn.session != request_.session)
      BELAY_OK(OfForkedDirectory(*turn));
    out_.native->message = turn != nullptr ? *turn->turn.anchor : *request_.message;
    return Ok();
  }

  // The turn was inherited: the directory may have been forked since.
  Status OfForkedDirectory(const TurnOf& turn) {
    BELAY_TRY(const AboutSession there, LookUp(catalog_, turn.turn.session));
    const auto from = AbsPath::Parse(turn.directory);
    if (!from.ok() || *from == request_.root || there.cwd == out_.chat.record.cwd ||
        BELAY_MUTANT("a-fork-is-rewound-to-its-source"))
      return Ok();
    BELAY_TRY(const RootPaths paths, RootPaths::Read(catalog_));
    out_.native->from = paths.Of(*from);
    out_.native->to = request_.root;
    return Ok();
  }

  Status OfFile() {
    std::string in = request_.session;
    BELAY_TRY(out_.place, FindConversation(store_, catalog_, in));
    auto planned = PlanIn(in, *out_.place);
    // What Codex forked, or went back in, only refers to what came before.
    uint64_t newer = 0, older = 0;
    ReferredFiles before;
    size_t next = 0;  // of those files
    if (planned.ok() ? planned->refers : planned.error().code == Errc::kNotFound) {
      BELAY_TRY(const Transcript own,
                ReadTranscript(store_.fs(), out_.agent, out_.place->file()));
      before = ReadReferred(store_, catalog_, in, *out_.place, own);
      newer = CountLiving(own);
    }
    for (; !planned.ok() && next < before.files.size(); ++next) {
      ReferredFile& file = before.files[next];
      // A message of another session's need not have been this one's.
      if (file.session != request_.session && Named() == nullptr) continue;
      auto there = PlanIn(file.session, file.place, file.until);
      if (there.ok()) {
        planned = std::move(there);
        in = file.session;
        out_.place = std::move(file.place);
        planned->taken_messages += newer;
      }
      newer += CountLiving(file.transcript);
    }
    if (!planned.ok()) {
      Error error = std::move(planned).error();
      if (error.code == Errc::kNotFound && error.hint.empty() && request_.message &&
          !BELAY_MUTANT("ids-are-guessed"))
        error.hint = "its messages and their ids: belay show " +
                     ShellWord(request_.session) + " --json";
      return error;
    }
    ConversationFork& fork = *planned;
    if (fork.refers)
      for (size_t i = next; i < before.files.size(); ++i) {
        older += CountLiving(before.files[i].transcript);
        if (before.files[i].transcript.messages_left_out > 0) fork.counted = false;
      }
    fork.kept_messages += older;
    ChatRecord& record = out_.chat.record;
    record.turn = fork.turn;
    record.inherited = fork.inherited;
    record.inside = fork.inside;
    record.message = fork.first_taken;
    if (fork.inside && request_.message != fork.first_taken)
      (fork.spares_calls ? out_.among_calls : out_.behind_thoughts) = request_.message;
    record.taken = fork.Taken();
    record.kept = fork.Kept();
    if (fork.refers && !before.whole) record.kept.reset();
    out_.prompt = fork.prompt;
    if (fork.IsEmpty() && (!fork.refers || before.whole))
      return Ok();  // the agent begins anew
    record.forked = fork.session;
    if (out_.agent == AgentKind::kCodex && fork.turn && fork.recorded &&
        (!fork.inside || BELAY_MUTANT("codex-forks-behind-the-turn")))
      if (auto last = LastKept(fork, before, next)) {
        out_.native = RewindPlan::Native{.session = in, .last_turn = std::move(*last)};
        for (size_t i = before.files.size(); i-- > next;)
          if (before.files[i].session == in)
            std::ranges::copy(before.files[i].transcript.prompts,
                              std::back_inserter(out_.native->older));
      }
    return TakeFiles(store_.fs(), fork, out_.chat);
  }

  // The turn that Codex is to keep the conversation up to: one that is part of it.
  std::optional<std::string> LastKept(const ConversationFork& fork,
                                      const ReferredFiles& before, size_t next) {
    const TurnOf* recorded = TurnBefore(turns_, *fork.turn);
    if (BELAY_MUTANT("codex-is-asked-for-what-it-took-back"))
      return recorded ? recorded->turn.anchor : std::nullopt;
    if (fork.keeps_prompts || !fork.refers) return fork.last_kept;
    for (; next < before.files.size(); ++next) {
      const auto& prompts = before.files[next].transcript.prompts;
      const auto last = std::ranges::find(prompts.rbegin(), prompts.rend(), false,
                                          &TranscriptPrompt::dead);
      if (last == prompts.rend()) continue;
      return last->anchor != last->record ? std::optional(last->anchor) : std::nullopt;
    }
    if (before.whole || recorded == nullptr) return std::nullopt;
    return recorded->turn.anchor;
  }

  // As the file at `place` has it: of this session, or of one that it grew out of.
  Result<ConversationFork> PlanIn(const std::string& session,
                                  const ConversationPlace& place,
                                  const std::optional<uint64_t>& until = {}) {
    ForkRequest wanted{.agent = out_.agent,
                       .session = session,
                       .transcript = place.file(),
                       .until = until};
    if (place.copy) wanted.place = place.path;
    BELAY_OK(KnowTurns(catalog_, request_.session, request_.root, wanted.point));
    if (request_.turn)
      wanted.point.turn = FindTurn(turns_, *request_.turn)->turn;
    else
      wanted.point.message = request_.message;
    return PlanConversationFork(store_.fs(), store_.random(), wanted);
  }

  Store& store_;
  Catalog& catalog_;
  const RewindRequest& request_;
  std::vector<TurnOf> turns_;
  RewindPlan out_;
};

}  // namespace

std::optional<AbsPath> FindProgram(const std::string& name, const std::string& path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.size(), path.find(':', begin));
    const std::string candidate = path.substr(begin, end - begin) + "/" + name;
    begin = end + 1;
    auto parsed = AbsPath::Parse(candidate);
    if (parsed.ok() && CheckProgram(candidate, path).ok()) return std::move(*parsed);
  }
  return std::nullopt;
}

Result<RewindPlan> PlanRewind(Store& store, Catalog& catalog,
                              const RewindRequest& request) {
  return RewindPlanner(store, catalog, request).Run();
}

Status CheckRewind(Catalog& catalog, const std::string& session) {
  const Result<AboutSession> about = LookUp(catalog, session);
  if (!about.ok())
    return about.error().code == Errc::kNotFound ? Ok() : Status(about.error());
  if (about->kind == AgentKind::kGeneric || about->kind == AgentKind::kOpencode)
    return Ok();
  return CheckConversation(about->kind);
}

Result<std::optional<std::string>> MakeNativeFork(const ForkMaker& maker,
                                                  RewindPlan& plan) {
  std::optional<std::string> said;
  if (!plan.native) return said;
  ChatRecord& record = plan.chat.record;
  const std::string name(AgentName(plan.agent));
  const AgentPrograms& programs = maker.programs;
  auto forked = [&]() -> Result<NativeFork> {
    if (plan.native->to) {
      BELAY_TRY(const MovedCopy copy, MakeOpencodeCopy(maker,
                                                       {.session = plan.native->session,
                                                        .message = plan.native->message,
                                                        .from = plan.native->from,
                                                        .to = *plan.native->to,
                                                        .cwd = record.cwd},
                                                       record.session));
      if (copy.session.empty())
        return Error(Errc::kNotFound, "nothing is left of the conversation");
      return NativeFork{.session = copy.session};
    }
    const auto program = FindProgram(name, programs.exec_path);
    if (!program) return Error(Errc::kNotFound, name + " is not in PATH");
    BELAY_TRY(const AbsPath cwd, AbsPath::Parse(record.cwd));
    const NativeForkRequest request{
        .program = *program,
        .environment = programs.environment,
        .directory = cwd,
        .session = plan.native->session,
        .timeout_ms = plan.chat.files.empty() ? kNativeForkMs : kNativeForkElseCopyMs};
    if (plan.agent == AgentKind::kOpencode)
      return ForkByOpencode(request, plan.native->message);
    BELAY_TRY(NativeFork fork, ForkByCodex(request, plan.native->last_turn));
    if (plan.place)
      BELAY_OK(CheckForkOfCodex(maker.store.fs(), fork, request.session,
                                plan.place->file(), plan.native->older,
                                plan.native->last_turn));
    return fork;
  }();
  if (forked.ok()) {
    record.forked = forked->session;
    record.path = forked->path;
    plan.chat.files.clear();
    plan.chat.dir.reset();
    return said;
  }
  if (plan.chat.files.empty())
    return Error(forked.error().code, forked.error().what)
        .WithHint("nothing was changed");
  return std::optional(forked.error().what);
}

}  // namespace belay
