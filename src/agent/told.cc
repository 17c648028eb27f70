#include "agent/told.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "agent/json.h"
#include "agent/recorder.h"
#include "agent/transcript.h"
#include "base/json.h"
#include "base/mutant.h"
#include "core/live.h"
#include "core/transcripts.h"

namespace belay {

namespace {

std::string LinesOf(const HookEvent& event, uint64_t turn) {
  std::string out;
  for (const HookMessage& message : event.messages) {
    JsonWriter json;
    json.BeginObject();
    json.Key("turn").Uint(turn);
    json.Key("role").PathValue(message.role);
    if (!message.id.empty()) json.Key("id").PathValue(message.id);
    if (message.index) json.Key("index").Uint(*message.index);
    json.Key("text").PathValue(message.text);
    json.EndObject();
    out += json.Take() + "\n";
  }
  return out;
}

// Of the event, when it names one; else the one that the session is in. What comes
// behind a hook's return may come late.
Result<uint64_t> TurnOfEvent(Store& store, const Root& root, const HookEvent& event) {
  const Live live = Live::Load(store, root.id);
  const LiveSession* known = live.Find(SessionOf(event));
  const uint64_t now = known == nullptr ? 0 : known->turn;
  if (!event.anchor || (known != nullptr && known->anchor == event.anchor)) return now;
  BELAY_TRY(auto catalog, Catalog::Open(store));
  BELAY_TRY(const auto turns, TurnsOf(*catalog, SessionOf(event)));
  for (const TurnOf& one : turns)
    if (one.turn.anchor == event.anchor) return one.turn.turn;
  return now;
}

// A text as PathValue writes it; bytes that are no text are of no use here.
std::string TextAt(const Json& line, const char* name, size_t most) {
  const auto value = line.Get(name);
  return value && value->is_string() ? value->Text(most).value_or("") : std::string();
}

// A message that was told before.
struct KnownMessage {
  uint64_t turn = 0;
  std::optional<uint64_t> index = {};
  uint64_t place = 0;  // among all that were told
};
using KnownMessages = std::unordered_map<std::string, KnownMessage>;

// Whether a message had been taken back when a later turn began: its id was free again.
class TakenBefore {
 public:
  static Result<TakenBefore> Of(Catalog& catalog, const std::string& session) {
    TakenBefore out;
    BELAY_TRY(ChatLog log, ChatLog::Read(catalog));
    const bool any = std::ranges::any_of(log.operations, [&](const auto& of_root) {
      return std::ranges::any_of(of_root.second, [&](const Operation& operation) {
        return operation.chat->session == session && operation.chat->hosted;
      });
    });
    if (!any || BELAY_MUTANT("an-id-is-never-free-again")) return out;
    out.session_ = session;
    for (const ChatLog::Turn& turn : log.sessions[session].turns)
      out.seqs_[turn.turn] = turn.seq;
    out.log_ = std::move(log);
    return out;
  }

  bool operator()(const KnownMessage& message, uint64_t turn,
                  const KnownMessages& known) {
    if (!log_ || turn <= message.turn || !seqs_.contains(turn)) return false;
    if (!then_ || then_->first != turn) then_.emplace(turn, Chats(*log_, seqs_[turn]));
    const Chats& chats = then_->second;
    const auto seq = seqs_.find(message.turn);
    const uint64_t said = seq == seqs_.end() ? 0 : seq->second;
    if (chats.TakenBackBy(session_, message.turn, said) != nullptr) return true;
    return CutOffBy(chats, session_, message.turn, said, message.index,
                    [&](const std::string& id) {
                      const auto first = known.find(id);
                      return first != known.end() &&
                             message.place >= first->second.place;
                    }) != nullptr;
  }

 private:
  std::string session_;
  std::optional<ChatLog> log_;                      // none: nothing was ever taken back
  std::unordered_map<uint64_t, uint64_t> seqs_;     // of the turns
  std::optional<std::pair<uint64_t, Chats>> then_;  // when that turn began
};

class Reader {
 public:
  explicit Reader(TakenBefore taken) : taken_(std::move(taken)) {}
  void Take(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      line_.append(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      Line();
      line_.clear();
    }
  }
  Told Done() {
    out_.messages.assign(std::make_move_iterator(messages_.begin()),
                         std::make_move_iterator(messages_.end()));
    return std::move(out_);
  }

 private:
  void Line() {
    auto line = Json::Parse(line_);
    if (!line.ok()) return;
    const auto turn = line->Get("turn"), index = line->Get("index");
    ToldMessage message{.turn = turn ? turn->Uint().value_or(0) : 0,
                        .role = TextAt(*line, "role", kMaxWhat),
                        .id = TextAt(*line, "id", kMaxPrompt),
                        .index = index ? index->Uint() : std::nullopt,
                        .text = TextAt(*line, "text", kMaxWhat)};
    if (!message.id.empty() && !IsNew(message)) return;
    messages_.push_back(std::move(message));
    if (messages_.size() <= kMostMessages) return;
    messages_.pop_front();
    ++out_.left_out;
  }

  bool IsNew(const ToldMessage& message) {
    const KnownMessage now{
        .turn = message.turn, .index = message.index, .place = ++places_};
    const auto [at, is_new] = known_.try_emplace(message.id, now);
    if (is_new || BELAY_MUTANT("told-twice-counts-twice")) return true;
    if (!taken_(at->second, message.turn, known_)) return false;
    at->second = now;
    return true;
  }

  TakenBefore taken_;
  std::string line_;
  std::deque<ToldMessage> messages_;
  KnownMessages known_;
  uint64_t places_ = 0;
  Told out_;
};

}  // namespace

Result<bool> KeepTold(Store& store, const Root& root, const Settings& settings,
                      const HookEvent& event) {
  if (event.messages.empty() || settings.transcripts != Transcripts::kKeep ||
      BELAY_MUTANT("what-hosts-tell-is-lost"))
    return false;
  BELAY_TRY(const uint64_t turn, TurnOfEvent(store, root, event));
  BELAY_TRY(const KeptNow kept, AppendTranscript(store,
                                                 {.session = SessionOf(event),
                                                  .agent = AgentOf(event),
                                                  .root = root.id,
                                                  .settings = &settings},
                                                 LinesOf(event, turn)));
  return kept.published;
}

Result<Told> ReadTold(Store& store, Catalog& catalog, const std::string& session) {
  BELAY_TRY(const auto copies, ListTranscripts(catalog, session));
  for (const TranscriptCopy& copy : copies) {
    if (!copy.latest || !copy.record.path.empty()) continue;
    BELAY_TRY(TakenBefore taken, TakenBefore::Of(catalog, session));
    Reader reader(std::move(taken));
    BELAY_OK(ReadTranscriptCopy(store, copy, [&](ByteSpan piece) {
      reader.Take(AsText(piece));
      return Ok();
    }));
    Told told = reader.Done();
    told.bytes = copy.record.bytes;
    return told;
  }
  return Told();
}

Result<Told> ReadToldOf(Store& store, Catalog& catalog, const Lineage& lineage) {
  Told out;
  for (size_t i = lineage.generations().size(); i-- > 0;) {
    const Generation& at = lineage.generations()[i];
    BELAY_TRY(Told one, ReadTold(store, catalog, at.session));
    if (i > 0)
      std::erase_if(one.messages, [&](const ToldMessage& message) {
        return message.turn > at.turns;
      });
    out.messages.insert(out.messages.end(),
                        std::make_move_iterator(one.messages.begin()),
                        std::make_move_iterator(one.messages.end()));
    out.left_out += one.left_out;
    out.bytes += one.bytes;
  }
  return out;
}

const Operation* CutOffBy(const Chats& chats, std::string_view session, uint64_t turn,
                          uint64_t said, const std::optional<uint64_t>& index,
                          const std::function<bool(const std::string&)>& behind) {
  for (const Operation& operation : chats.in_effect()) {
    const ChatRecord& chat = *operation.chat;
    if (chat.session != session || !chat.inside || turn != chat.inherited ||
        said >= operation.seq)
      continue;
    if (index && chat.message_index ? *index >= *chat.message_index
                                    : behind(chat.message.value_or("")))
      return &operation;
  }
  return nullptr;
}

std::optional<ToldCounts> CountTold(const Told& told, const Chats& chats,
                                    const std::vector<TurnOf>& turns,
                                    const ChatRecord& chat) {
  if (told.messages.empty()) return std::nullopt;
  ToldCounts out;
  std::vector<const ToldMessage*> there;
  std::unordered_map<std::string_view, const ToldMessage*> last;
  std::unordered_map<std::string_view, uint64_t> met;  // ids, by the turn
  for (const ToldMessage& message : told.messages) {
    if (!message.id.empty()) met[message.id] = message.turn;
    const auto turn = std::ranges::find(
        turns, message.turn, [](const TurnOf& one) { return one.turn.turn; });
    if (turn != turns.end() &&
        chats.TakenBackBy(chat.session, message.turn, turn->seq) != nullptr)
      continue;
    // Before the first turn nothing was recorded.
    const bool known = turn != turns.end() || message.turn == 0;
    const uint64_t said = turn != turns.end() ? turn->seq : 0;
    if (known && !BELAY_MUTANT("what-was-cut-off-is-counted") &&
        CutOffBy(chats, chat.session, message.turn, said, message.index,
                 [&](const std::string& id) {
                   const auto first = met.find(id);
                   return first != met.end() && first->second == message.turn;
                 }) != nullptr)
      continue;
    there.push_back(&message);
    if (!message.id.empty()) last[message.id] = &message;
  }
  // The turn that the cut is in, or right before.
  const uint64_t cut = chat.inside ? chat.inherited : chat.turn.value_or(0);
  bool behind = false;  // the message itself was met
  for (const ToldMessage* one : there) {
    const ToldMessage& message = *one;
    // Of two with one id (the first was taken back, and counts again) the later one.
    if (!message.id.empty() && last[message.id] != one) continue;
    const bool itself = !message.id.empty() && chat.message == message.id;
    behind = behind || itself;
    // Indexes are given again after a rewind, and an undo leaves both: they tell what
    // comes first within one turn.
    bool taken = itself || message.turn > cut;
    if (message.turn == cut || BELAY_MUTANT("one-index-is-one-message"))
      taken = message.index && chat.message_index
                  ? *message.index >= *chat.message_index
                  : behind || (chat.turn && message.turn >= *chat.turn);
    ++(taken ? out.taken : out.kept);
  }
  return out;
}

}  // namespace belay
