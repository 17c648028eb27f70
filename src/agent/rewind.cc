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
#include "agent/turn_match.h"
#include "base/escape.h"
#include "base/mutant.h"
#include "base/subprocess.h"
#include "core/annotate.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "core/roots.h"
#include "restore/running.h"
#include "store/session_lock.h"

namespace belay {

Result<AboutSession> LookUp(Catalog& catalog, const std::string& session) {
  AboutSession out;
  BELAY_TRY(auto record, LatestSession(catalog, session));
  if (record) {
    out.agent = record->agent.value_or("");
    out.cwd = record->cwd;
  }
  if (out.agent.empty()) {
    BELAY_TRY(auto newest, catalog.ListCheckpoints({.session = session, .limit = 1}));
    if (!newest.empty()) out.agent = newest[0].checkpoint.agent.value_or("");
  }
  if (!record && out.agent.empty())
    return Error(Errc::kNotFound, "there is no session " + EscapeText(session))
        .WithHint(
            "see them with: belay sessions; of all directories: belay sessions --all");
  out.kind = AgentNamed(out.agent).value_or(AgentKind::kGeneric);
  return out;
}

Error NoTurn(const std::string& session, uint64_t turn) {
  return Error(Errc::kNotFound, "session " + EscapeText(session) + " has no turn " +
                                    std::to_string(turn))
      .WithHint("see what there is with: belay list --session " + ShellWord(session));
}

const TurnOf* FindTurn(const std::vector<TurnOf>& turns, uint64_t number) {
  for (const TurnOf& one : turns)
    if (one.turn.turn == number) return &one;
  return nullptr;
}

namespace {

// What made the summary that stands for the turn in the conversation of the lineage;
// null when it is there itself. The last on the way to where it was said knows it.
const ChatRecord* StandsFor(const ChatLog& log, const Lineage& lineage,
                            const TurnRecord& turn) {
  const ChatRecord* by = nullptr;
  for (const Generation& at : lineage.generations()) {
    if (at.session == turn.session) break;
    for (const auto& [_, all] : log.operations)
      for (const Operation& operation : all)
        if (const ChatRecord& chat = *operation.chat;
            chat.summary && chat.forked == at.session &&
            chat.summary->first <= turn.turn && turn.turn <= chat.summary->last)
          by = &chat;
  }
  return by;
}

// The prompt as copies have it whose directory was forked on the way to one of those.
// `from`: what the directory was called that it was said in.
std::vector<std::string> ReadIn(const std::vector<AbsPath>& directories,
                                const std::vector<AbsPath>& from,
                                const std::string& prompt) {
  std::vector<std::string> out;
  size_t longest = 0;
  for (const AbsPath& one : from) {
    if (prompt.find(one.bytes()) == std::string::npos) continue;
    longest = std::max(longest, one.bytes().size());
  }
  if (longest == 0) return out;
  for (const AbsPath& to : directories) {
    std::string reads = InForkedDirectory(prompt, from, to);
    if (reads == prompt) continue;
    // Where it is cut a path may be, of which nobody knows how it goes on.
    const size_t unsure = std::max(longest, to.bytes().size()) + 4;
    if (IsPromptCutInLog(prompt))
      reads.resize(reads.size() - std::min(reads.size(), unsure));
    out.push_back(std::move(reads));
  }
  return out;
}

}  // namespace

Status KnowTurns(Catalog& catalog, const std::string& session, const AbsPath& here,
                 ConversationPoint& point) {
  BELAY_TRY(const auto turns, AllTurnsOf(catalog, session));
  BELAY_TRY(const ChatLog log, ChatLog::Read(catalog));
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  BELAY_TRY(const RootPaths paths, RootPaths::Read(catalog));
  std::vector<AbsPath> directories = paths.Of(here);
  for (const TurnOf& one : turns)
    for (AbsPath& path : paths.Of(one.root))
      if (std::ranges::find(directories, path) == directories.end())
        directories.push_back(std::move(path));
  for (const TurnOf& one : turns) {
    if (StandsFor(log, lineage, one.turn) != nullptr) continue;
    point.turns.push_back(one.turn);
    point.read_in.push_back(
        BELAY_MUTANT("words-are-compared-as-they-were-said")
            ? std::vector<std::string>()
            : ReadIn(directories, paths.Of(one.root), one.turn.prompt));
  }
  if (!turns.empty()) point.newest = turns.back().turn.turn;
  return Ok();
}

Status CheckOneTurn(Catalog& catalog, const std::string& session, uint64_t number,
                    std::string_view here) {
  BELAY_TRY(const auto turns, AllTurnsOf(catalog, session));
  size_t same = 0;
  for (const TurnOf& one : turns) {
    if (one.turn.turn != number) continue;
    if (one.directory == here) return Ok();
    ++same;
  }
  if (same < 2 || BELAY_MUTANT("one-of-two-turns-is-meant")) return Ok();
  return Error(Errc::kRefused, "session " + EscapeText(session) + " has " +
                                   std::to_string(same) + " turns " +
                                   std::to_string(number) +
                                   ", of several directories, and none of this one")
      .WithHint("name the message by the agent's own id: belay rewind " +
                ShellWord(session) + " --to ID");
}

Status CheckSaid(Catalog& catalog, const std::string& session, const TurnRecord& turn) {
  BELAY_TRY(const ChatLog log, ChatLog::Read(catalog));
  BELAY_TRY(const Lineage lineage, Lineage::Of(catalog, session));
  const ChatRecord* by = StandsFor(log, lineage, turn);
  if (by == nullptr || BELAY_MUTANT("a-summary-is-a-prompt")) return Ok();
  const std::string number = std::to_string(turn.turn);
  return Error(Errc::kNotFound, "a summary stands for turn " + number +
                                    " in the conversation of session " +
                                    EscapeText(session))
      .WithHint("it is in the original: belay rewind " + ShellWord(by->session) +
                " --to turn:" + number);
}

Status TakeFiles(Fs& fs, const ConversationFork& fork, ChatPlan& chat) {
  // The agent's place may be a link to where it really is.
  AbsPath dir = fork.files.back().path.parent();
  if (fork.agent == AgentKind::kCopilot) {
    chat.folder = dir.bytes().substr(dir.bytes().rfind('/') + 1);
    dir = dir.parent();
  }
  auto real = fs.RealPath(dir);
  if (!real.ok() && real.error().code == Errc::kNotFound)
    return Error(Errc::kNotFound, "the directory of the conversation is gone: " +
                                      EscapeForDisplay(dir.bytes()))
        .WithHint(
            "make it again, so that the agent finds there what goes on: "
            "mkdir -p " +
            ShellWord(dir.bytes()));
  if (!real.ok()) return std::move(real).error();
  chat.dir = std::move(*real);
  chat.uid = fork.uid;
  chat.gid = fork.gid;
  for (const ConversationFile& file : fork.files)
    chat.files.push_back(
        {.name = file.path.bytes().substr(file.path.bytes().rfind('/') + 1),
         .mode = BELAY_MUTANT("fork-readable-by-all") ? 0644 : file.mode,
         .content = file.content});
  chat.record.path = fork.files.back().path.bytes();
  return Ok();
}

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
    if (!planned.ok()) return std::move(planned).error();
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
      out_.among_calls = request_.message;
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

namespace {

// Somebody deleted checkpoints right behind `target`, and before anything of a later
// turn: whether the turn went on there cannot be told any more. (Retention leaves what
// tells it.)
Result<bool> WasMoreDeleted(Catalog& catalog, const Checkpoint& target) {
  if (BELAY_MUTANT("what-was-deleted-never-was")) return false;
  BELAY_TRY(const auto deeds, ListDeeds(catalog, target.root));
  if (std::ranges::none_of(deeds, [&](const Deed& deed) {
        return deed.seq > target.seq && deed.name == "delete";
      }))
    return false;
  BELAY_TRY(const auto all,
            catalog.ListCheckpoints({.root = target.root, .oldest_first = true}));
  RecordId last = target.id;
  for (const CatalogEntry& entry : all) {
    const Checkpoint& c = entry.checkpoint;
    if (c.seq <= target.seq) continue;
    if (!c.since.is_zero() && c.since != last) return true;
    BELAY_TRY(const auto notes, catalog.Annotations(c.id));
    for (const LogRecord& note : notes)
      if (note.fields.has(kAnnotationSince)) return true;
    if (c.session == target.session && c.turn > target.turn) break;
    last = c.id;
  }
  return false;
}

// The turn of `target` is over and left things as they are there. What somebody keeps
// by hand afterwards carries the turn, too. What was there before a call is no end: the
// call may have been refused, or interrupted, and its end not told.
Result<bool> IsEndOfTurn(Store& store, Catalog& catalog, const Checkpoint& target) {
  if (!target.session || BELAY_MUTANT("the-last-call-is-within-its-turn")) return false;
  if (target.description.starts_with("before ") &&
      !BELAY_MUTANT("before-the-last-call-is-its-end"))
    return false;
  CheckpointFilter filter{.root = target.root,
                          .session = *target.session,
                          .kind = CheckpointKind::kAuto,
                          .turn = *target.turn,
                          .limit = 1};
  if (BELAY_MUTANT("by-hand-is-the-turns-own")) filter.kind.reset();
  BELAY_TRY(auto newest, catalog.ListCheckpoints(filter));
  if (newest.empty() || newest[0].checkpoint.id != target.id) return false;
  const auto heard = ActivityOf(store, target.root, *target.session);
  if (heard && heard->in_turn && heard->turn == *target.turn) return false;
  BELAY_TRY(const bool more, WasMoreDeleted(catalog, target));
  return !more;
}

// One that somebody made while the turn was at work: it did something since, or does
// yet. Its conversation has no place that fits but before the turn.
Result<bool> IsWithinTurn(Store& store, Catalog& catalog, const Checkpoint& target) {
  if (BELAY_MUTANT("by-hand-is-after-the-turn")) return false;
  const auto heard = ActivityOf(store, target.root, *target.session);
  if (heard && heard->in_turn && heard->turn == *target.turn) return true;
  BELAY_TRY(auto of_turn, catalog.ListCheckpoints({.root = target.root,
                                                   .session = *target.session,
                                                   .turn = *target.turn}));
  if (std::ranges::any_of(of_turn, [&](const CatalogEntry& entry) {
        return entry.checkpoint.seq > target.seq && entry.checkpoint.tool_name &&
               entry.checkpoint.kind == CheckpointKind::kAuto;
      }))
    return true;
  return WasMoreDeleted(catalog, target);
}

// The first turn that was said since, whether it counts or not.
Result<std::optional<uint64_t>> TurnSince(Store& store, Catalog& catalog,
                                          const std::string& session,
                                          const Checkpoint& target) {
  if (target.turn && target.kind == CheckpointKind::kAuto) {
    BELAY_TRY(const TurnStart start,
              FindTurnOf(catalog, target.root, session, *target.turn));
    if (start.state && start.state->checkpoint.id == target.id) return target.turn;
    if (target.tool_name) {
      // A call of a turn that was over: of the one that was running.
      BELAY_TRY(const auto turns, TurnsOf(catalog, session));
      for (auto at = turns.rbegin(); at != turns.rend(); ++at)
        if (at->seq < target.seq && at->turn.turn > *target.turn)
          return std::optional(at->turn.turn);
      BELAY_TRY(const bool end, IsEndOfTurn(store, catalog, target));
      if (!end) return target.turn;
    }
  }
  if (target.turn && target.session && target.kind == CheckpointKind::kManual) {
    BELAY_TRY(const bool within, IsWithinTurn(store, catalog, target));
    if (within) return target.turn;
  }
  BELAY_TRY(const auto turns, AllTurnsOf(catalog, session));
  for (const TurnOf& one : turns) {
    if (one.seq <= target.seq) continue;
    if (one.turn.turn > target.turn.value_or(0)) return std::optional(one.turn.turn);
    // Counted twice: whether it is before or behind the other, numbers do not tell.
    const auto same = std::ranges::count(
        turns, one.turn.turn, [](const TurnOf& other) { return other.turn.turn; });
    if (same > 1 && !BELAY_MUTANT("a-turn-that-was-counted-twice-stays"))
      return Error(Errc::kRefused,
                   "session " + EscapeText(session) + " has several turns " +
                       std::to_string(one.turn.turn) +
                       ", of several directories, and one was said since")
          .WithHint("name the message by the agent's own id: belay rewind " +
                    ShellWord(session) + " --to ID");
  }
  return std::optional<uint64_t>();
}

// A host goes on with the same session. Where it was told to forget `turn`, and has all
// that came before it, what it has to forget now is what it said since, if anything.
Result<std::optional<uint64_t>> TurnOfHost(Catalog& catalog, const std::string& session,
                                           uint64_t turn) {
  BELAY_TRY(const auto turns, TurnsOf(catalog, session));
  BELAY_TRY(const ChatLog log, ChatLog::Read(catalog));
  const Chats now(log);
  auto counts = [&](const Chats& chats, const TurnOf& one) {
    return chats.TakenBackBy(session, one.turn.turn, one.seq) == nullptr;
  };
  const TurnOf* named = FindTurn(turns, turn);
  const Operation* last = now.LastOf(session);
  if (named == nullptr || last == nullptr || !last->chat->hosted ||
      counts(now, *named) || BELAY_MUTANT("a-host-is-not-there-already"))
    return std::optional(turn);
  const Chats then(log, named->seq);
  for (const TurnOf& one : turns)
    if (one.seq < named->seq && counts(then, one) && !counts(now, one))
      return std::optional(turn);
  for (const Operation& rewind : now.in_effect())
    if (rewind.chat->session == session && rewind.chat->inside &&
        rewind.chat->inherited < turn &&
        std::ranges::find(then.in_effect(), rewind.id, &Operation::id) ==
            then.in_effect().end())
      return std::optional(turn);
  for (const TurnOf& one : turns)
    if (one.seq > named->seq && counts(now, one)) return std::optional(one.turn.turn);
  return std::optional<uint64_t>();
}

}  // namespace

Result<std::optional<uint64_t>> TurnToTakeBack(Store& store, Catalog& catalog,
                                               const std::string& session,
                                               const Checkpoint& target) {
  BELAY_TRY(const auto turn, TurnSince(store, catalog, session, target));
  if (!turn) return turn;
  return TurnOfHost(catalog, session, *turn);
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

namespace {

// `as`: who goes on; empty: the agent begins anew.
Resumption GoingOnAs(const ChatRecord& chat, const std::string& as) {
  Resumption out{.session = as.empty() ? chat.session : as,
                 .anew = as.empty(),
                 .agent = AgentNamed(chat.agent).value_or(AgentKind::kGeneric),
                 .cwd = chat.cwd};
  out.command = ResumeCommand(out.agent, out.session);
  if (out.anew && !out.command.empty()) out.command.resize(1);
  return out;
}

}  // namespace

bool IsPromptCut(std::string_view prompt) {
  return prompt.size() + 3 >= kMaxPrompt;  // a character may be missing at its end
}

Resumption ResumptionOf(const ChatRecord& chat) {
  return GoingOnAs(chat, chat.hosted ? chat.session : chat.forked);
}

Resumption ResumptionOf(const ChatRecord& chat, const ChatStanding& stands) {
  return GoingOnAs(chat, stands.goes_on);
}

Result<Resumption> PlanResume(Catalog& catalog, const std::string& session) {
  BELAY_TRY(const Chats chats, Chats::Read(catalog));
  const Chats::GoesOn on = chats.Follow(session);
  auto known = LookUp(catalog, on.session);
  // It was deleted here, and the agent has it still.
  if (!known.ok() && known.error().code == Errc::kNotFound && on.by != nullptr &&
      !BELAY_MUTANT("deleted-forks-are-not-resumed"))
    known = AboutSession{
        .agent = on.by->chat->agent,
        .kind = AgentNamed(on.by->chat->agent).value_or(AgentKind::kGeneric),
        .cwd = ""};
  if (!known.ok()) return std::move(known).error();
  const AboutSession& about = *known;
  Resumption out{.session = on.session,
                 .anew = on.anew,
                 .agent = about.kind,
                 .command = ResumeCommand(about.kind, on.session),
                 .cwd = about.cwd};
  if (on.by != nullptr && out.cwd.empty()) {
    BELAY_TRY(out.cwd, CwdNow(catalog, *on.by));
  }
  if (out.anew && !out.command.empty()) out.command.resize(1);
  if (out.command.empty())
    return Error(
        Errc::kUnsupported,
        about.agent.empty()
            ? "which agent session " + EscapeText(session) + " is of was not recorded"
            : "session " + EscapeText(session) + " is of " + EscapeText(about.agent) +
                  ", and how that goes on with one is not known");
  return out;
}

Status CheckResumable(Fs& fs, Catalog& catalog, const Resumption& resumption) {
  if (resumption.anew || BELAY_MUTANT("resume-what-is-gone")) return Ok();
  // Others have no file of their own that would have to be there.
  if (resumption.agent == AgentKind::kGeneric ||
      !CheckConversation(resumption.agent).ok())
    return Ok();
  std::string at;
  BELAY_TRY(const auto record, LatestSession(catalog, resumption.session));
  if (record) at = record->transcript_path.value_or("");
  BELAY_TRY(const Chats chats, Chats::Read(catalog));
  for (const Operation& operation : chats.in_effect())
    if (at.empty() && operation.chat->forked == resumption.session)
      at = operation.chat->path;
  auto path = AbsPath::Parse(at);
  if (!path.ok()) return Ok();  // where it is was not said
  auto file = OpenTranscript(fs, *path);
  if (file.ok() || file.error().code != Errc::kNotFound) return Ok();
  return Error(Errc::kRefused, "the conversation of session " +
                                   EscapeText(resumption.session) +
                                   " is gone: " + EscapeForDisplay(at))
      .WithHint("see what is left of it with: belay sessions transcript " +
                ShellWord(resumption.session));
}

}  // namespace belay
