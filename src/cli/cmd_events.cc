#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/clock.h"
#include "base/json.h"
#include "base/mutant.h"
#include "cli/chat_view.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/chat.h"
#include "core/operations.h"
#include "store/catalog.h"

namespace belay {

namespace {

constexpr int64_t kShortestPauseMs = 20, kLongestPauseMs = 500;
// In a row, while following: a repair may be at work on the store.
constexpr int kMostFailures = 20;

// The log of the store, told to whoever has a use for it: what happened, to which root,
// and the ids to ask for more by.
class EventWriter {
 public:
  EventWriter(Terminal& term, std::optional<RootId> root, uint64_t after)
      : term_(term), root_(root), after_(after) {}

  // What one reading of the log gave. A collection leaves packs whose records are older
  // than those of the pack before, and what an event says follows from all older ones.
  // `anew`: it was read from its beginning.
  void Tell(std::vector<LogRecord> records, bool anew) {
    auto number = [](const LogRecord& record) {
      return std::pair(record.seq, record.id);
    };
    if (!BELAY_MUTANT("events-in-the-order-of-packs"))
      std::ranges::stable_sort(records, {}, number);
    // One may stand in two packs after a repair. (Not ranges::unique: clang 14 does not
    // compile what it returns.)
    const auto again = std::unique(
        records.begin(), records.end(),
        [&](const LogRecord& a, const LogRecord& b) { return number(a) == number(b); });
    if (!BELAY_MUTANT("told-of-each-pack")) records.erase(again, records.end());
    if (anew) {
      chats_ = {};
      operation_.reset();
      stands_.reset();
    }
    for (const LogRecord& record : records) Tell(record);
    // A collection writes the log anew, which is then read from its beginning.
    after_ = std::max(after_, highest_);
  }

 private:
  void Tell(const LogRecord& record) {
    Learn(record);
    if (record.seq <= after_) return;
    if (root_ && !record.root.is_zero() && record.root != *root_) return;
    const std::string type = TypeOf(record);
    if (type.empty()) return;
    JsonWriter json;
    json.BeginObject();
    json.Key("id").String(std::to_string(record.seq));
    json.Key("type").String(type);
    json.Key("at").String(FormatUtcMillis(record.made_ms));
    json.Key("root");
    if (auto path = paths_.find(record.root); path != paths_.end())
      json.PathValue(path->second);
    else
      json.Null();
    WriteMore(record, json);
    json.EndObject();
    term_.Out(json.Take() + "\n");
  }

  void Learn(const LogRecord& record) {
    highest_ = std::max(highest_, record.seq);
    chats_.Learn(record);
    if (record.kind == RecordKind::kOperation)
      if (auto operation = ToOperation(record); operation.ok()) {
        operation_ = std::move(*operation);
        stands_.reset();
      }
    if (record.kind != RecordKind::kRoot) return;
    if (auto root = ToRoot(record); root.ok()) paths_[root->id] = root->path;
  }

  static std::string TypeOf(const LogRecord& record) {
    switch (record.kind) {
      case RecordKind::kRoot: {
        auto root = ToRoot(record);
        return root.ok() && root->off ? "root.off" : "root.on";
      }
      case RecordKind::kCheckpoint:
        return "checkpoint.made";
      case RecordKind::kAnnotation:
        // What checkpoints that were let go handed on is told of by their drop.
        if (record.fields.has(kAnnotationSince) ||
            record.fields.has(kAnnotationExternal))
          return {};
        return "checkpoint.annotated";
      case RecordKind::kSession: {
        auto session = ToSession(record);
        if (session.ok() && session->by == SessionRecord::By::kGoesOn)
          return "session.rewound";
        if (session.ok() && session->by == SessionRecord::By::kReset)
          return "session.reset";
        return session.ok() && session->ended ? "session.ended" : "session.known";
      }
      case RecordKind::kTurn:
        return "turn.started";
      case RecordKind::kOperation:
        return record.fields.Text(1).value_or("operation") + ".done";
      case RecordKind::kDrop:
        return "records.dropped";
      case RecordKind::kPurge:
        return "content.erased";
      case RecordKind::kTranscript:
        return "transcript.kept";
      default:
        return {};
    }
  }

  void WriteMore(const LogRecord& record, JsonWriter& json) {
    if (auto c = ToCheckpoint(record); c.ok()) {
      json.Key("checkpoint").String(c->id.text());
      json.Key("kind").String(c->kind == CheckpointKind::kManual   ? "manual"
                              : c->kind == CheckpointKind::kSafety ? "safety"
                                                                   : "auto");
      WriteTextOrNull(json, "name", c->name);
      WriteTextOrNull(json, "description", c->description);
      WriteTextOrNull(json, "session", c->session);
      WriteTextOrNull(json, "agent", c->agent);
      json.Key("turn").Uint(c->turn);
      WriteTextOrNull(json, "message_id", c->message_id);
      WriteTextOrNull(json, "tool", c->tool_name);
      WriteTextOrNull(json, "tool_id", c->tool_use_id);
      json.Key("changed").Uint(c->added + c->modified + c->deleted);
      json.Key("partial").Bool(c->partial);
      WriteMeta(json, c->meta);
    } else if (auto o = ToOperation(record); o.ok()) {
      json.Key("operation").String(o->id.text());
      json.Key("target");
      if (o->target)
        json.String(o->target->text());
      else
        json.Null();
      json.Key("safety");
      if (o->safety)
        json.String(o->safety->text());
      else
        json.Null();
      json.Key("paths").Uint(o->paths);
      json.Key("chat");
      if (o->chat && o->kind != OperationKind::kRollback)
        WriteChatAgain(*o->chat, Stands(), json);
      else
        WriteChat(o->chat, false, json);
    } else if (auto session = ToSession(record); session.ok()) {
      json.Key("session").String(session->session);
      WriteTextOrNull(json, "agent", session->agent);
      WriteTextOrNull(json, "parent", session->parent);
      json.Key("is_subagent").Bool(session->subagent);
      if (session->by != SessionRecord::By::kNone) WriteRewound(*session, json);
    } else if (auto turn = ToTurn(record); turn.ok()) {
      json.Key("session").String(turn->session);
      json.Key("turn").Uint(turn->turn);
      WriteTextOrNull(json, "prompt", turn->prompt);
      WriteTextOrNull(json, "message_id", turn->anchor);
    } else if (auto copy = ToTranscript(record); copy.ok()) {
      json.Key("session").PathValue(copy->session);
      WriteTextOrNull(json, "agent", copy->agent);
      WriteTextOrNull(json, "subagent", copy->subagent);
      json.Key("path").PathValue(copy->path);
      json.Key("bytes").Uint(copy->bytes);
    } else if (auto about = AnnotationTarget(record)) {
      json.Key("checkpoint").String(about->text());
    }
  }

  // Of the operation that was learnt last.
  const ChatStanding& Stands() {
    if (!stands_) stands_ = Chats(chats_).After(*operation_);
    return *stands_;
  }

  // Of the operation that this record was written beside: from where on, what was asked
  // there, and what whoever keeps the conversation has to forget.
  void WriteRewound(const SessionRecord& session, JsonWriter& json) {
    if (!operation_ || !operation_->chat) return;
    const ChatRecord& chat = *operation_->chat;
    const ChatStanding& stands = Stands();
    json.Key("operation").String(operation_->id.text());
    json.Key("undone").Bool(stands.undone);
    json.Key("rewound").PathValue(chat.session);
    json.Key("goes_on");
    if (stands.goes_on.empty())
      json.Null();
    else
      json.PathValue(stands.goes_on);
    // Everything before this is kept; of an undo everything is, unless an older rewind
    // stands.
    json.Key("kept");
    if (stands.kept) {
      json.BeginObject();
      json.Key("turn").Uint(stands.kept->turn);
      WriteTextOrNull(json, "before_message", stands.kept->message);
      json.Key("before_index").Uint(stands.kept->message_index);
      json.EndObject();
    } else {
      json.Null();
    }
    json.Key("prompt");
    if (chat.prompt.empty())
      json.Null();
    else
      json.PathValue(chat.prompt);
    json.Key("messages_taken_back").Uint(chat.taken);
    json.Key("summarized");
    if (chat.summary) {
      json.BeginObject();
      json.Key("first_turn").Uint(chat.summary->first);
      json.Key("last_turn").Uint(chat.summary->last);
      json.EndObject();
    } else {
      json.Null();
    }
    if (session.by != SessionRecord::By::kReset) return;
    json.Key("reset").BeginArray();
    json.String("messages").String("queued_prompts").String("running_turn");
    if (!chat.alone) json.String("files");
    json.EndArray();
  }

  Terminal& term_;
  std::optional<Operation> operation_;  // the last one
  std::optional<ChatStanding> stands_;  // after it
  ChatLog chats_;
  uint64_t highest_ = 0;
  std::optional<RootId> root_;
  uint64_t after_;
  std::map<RootId, std::string> paths_;
};

}  // namespace

ExitCode CmdEvents(CommandContext& ctx) {
  uint64_t after = 0;
  if (auto since = ctx.args.value("--since")) {
    auto [end, problem] =
        std::from_chars(since->data(), since->data() + since->size(), after);
    if (problem != std::errc() || end != since->data() + since->size())
      return ctx.term.FailUsage("--since takes the id of an event, a number");
  }
  std::optional<RootId> root;
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (!opened.ok()) {
    if (opened.error().code != Errc::kNotFound) return FailOnStore(ctx, opened.error());
    return ctx.term.Fail(Error(Errc::kRefused, "nothing was ever protected here")
                             .WithHint("protect a directory with: belay on"));
  }
  if (!ctx.args.has("--all")) {
    auto one = OpenRoot(ctx, NeedsRoot::kKnown);
    if (!one.ok()) {
      Error error = one.error();
      if (error.code == Errc::kRefused) error.hint = "of all directories: --all";
      return ctx.term.Fail(error);
    }
    root = one->root.id;
  }
  EventWriter writer(ctx.term, root, after);
  Store& store = *(*opened)->store;
  const bool follow = ctx.args.has("--follow");
  std::optional<LogPosition> position;
  int64_t pause = kShortestPauseMs;
  bool warned = false;
  int failed = 0;
  for (;;) {
    std::vector<LogRecord> records;
    auto read = store.ReadLog(position, [&](const LogRecord& record) -> Status {
      records.push_back(record);
      return Ok();
    });
    const bool any = !records.empty();
    if (read.ok()) {
      failed = 0;
      writer.Tell(std::move(records),
                  !position || position->generation != read->generation);
      ctx.term.FlushOut();
      position = *read;
      if (!read->whole && !warned)
        ctx.term.Warn(
            "the store is damaged: a part of its log cannot be read, so that events "
            "may "
            "be missing; run: belay verify");
      warned |= !read->whole;
    } else if (!follow || position == std::nullopt || ++failed > kMostFailures) {
      return FailOnStore(ctx, read.error());
    }
    if (!follow || ctx.term.out_failed()) return ExitCode::kOk;
    pause = any ? kShortestPauseMs : std::min(pause * 2, kLongestPauseMs);
    usleep(static_cast<useconds_t>(pause * 1000));
    Status fresh = store.Refresh();
    if (!fresh.ok() && ++failed > kMostFailures) return FailOnStore(ctx, fresh.error());
  }
}

}  // namespace belay
