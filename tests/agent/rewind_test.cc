// Conversations of real runs taken back: planned by the log, published, gone on with,
// taken back again.

#include "agent/rewind.h"

#include <gmock/gmock.h>

#include <map>

#include "agent/aftermath.h"
#include "agent/fork_chat.h"
#include "agent/payloads.h"
#include "agent/resume.h"
#include "agent/rewind_internal.h"
#include "agent/session_view.h"
#include "agent/summarize.h"
#include "core/annotate.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "core/sessions.h"
#include "store/batch_writer.h"
#include "support/agent_world.h"
#include "support/race_fs.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RewindTest : public ::testing::Test {
 protected:
  // The recorded run, told by hooks, prompt by prompt, its file at `path`, which they
  // name or not.
  void Tell(AgentKind agent, const std::string& name, const std::string& path,
            bool anchors = true, bool places = true) {
    std::ifstream file(DataDir() + "transcripts/" + name);
    original = std::string((std::istreambuf_iterator<char>(file)), {});
    const AbsPath at = AbsPath::Literal(path);
    const Fd dir = Must(MakeDirs(disk, at.parent(), 0755));
    const Name base = Name::Literal(path.substr(path.rfind('/') + 1));
    Must(PutFile(disk, dir, RelPath::Literal(base.bytes()), original));
    Must(disk.SetMode(Must(disk.Open(dir, base, OpenMode::Read())), 0600));
    transcript = at;
    read = Must(ReadTranscript(disk, agent, at));
    session = read.session;
    kind = agent;
    auto tell = [&](HookEvent event) {
      if (!places) event.transcript.reset();
      world.Tell(event);
    };
    tell(EventOf(EventKind::kSessionStart, session));
    for (const TranscriptPrompt& prompt : read.prompts) {
      HookEvent event = EventOf(EventKind::kPrompt, session);
      event.prompt = prompt.text;
      if (anchors) event.anchor = prompt.anchor;
      tell(event);
      world.Put("file", prompt.text);
      tell(EventOf(EventKind::kTurnEnd, session));
    }
  }
  HookEvent EventOf(EventKind what, const std::string& of) {
    HookEvent event = world.Event(what, of);
    event.agent = kind;
    event.transcript = transcript.bytes();
    return event;
  }
  void Said(EventKind what, const std::string& of) { world.Tell(EventOf(what, of)); }

  Result<RewindPlan> Plan(const std::string& of, uint64_t turn) {
    opened = Must(world.world.Open());
    return PlanRewind(*opened.store, *opened.catalog,
                      {.session = of,
                       .turn = turn,
                       .settings = &world.world.settings,
                       .root = world.world.project});
  }
  Result<RewindPlan> PlanMessage(const std::string& of, const std::string& message) {
    opened = Must(world.world.Open());
    return PlanRewind(*opened.store, *opened.catalog,
                      {.session = of,
                       .message = message,
                       .settings = &world.world.settings,
                       .root = world.world.project});
  }
  // The session that goes on.
  std::string Rewind(const std::string& of, uint64_t turn) {
    RewindPlan plan = Must(Plan(of, turn));
    plan.native.reset();  // of Codex: without its program
    plan.chat.record.alone = true;
    RollbackRequest request = world.world.RequestFor(opened.root);
    request.chat = &plan.chat;
    Must(belay::Rewind(*opened.store, request, {}));
    last = std::move(plan);
    return last.chat.record.forked;
  }
  std::string GoesOn(const std::string& of) {
    auto at = Must(world.world.Open());
    return Must(PlanResume(*at.catalog, of)).session;
  }
  std::string PathOf(const std::string& of) {
    auto at = Must(world.world.Open());
    return Must(LatestSession(*at.catalog, of))->transcript_path.value_or("");
  }
  std::vector<std::string> PromptsOf(const std::string& of) {
    const Transcript there =
        Must(ReadTranscript(disk, kind, AbsPath::Literal(PathOf(of))));
    EXPECT_EQ(there.session, of);
    EXPECT_EQ(there.broken, 0u);
    EXPECT_FALSE(there.torn);
    std::vector<std::string> out;
    for (const TranscriptPrompt& prompt : there.prompts)
      out.push_back(prompt.dead ? "(" + prompt.text + ")" : prompt.text);
    return out;
  }

  MemFs disk;
  AgentWorld world{disk};
  RestoreWorld::Opened opened;
  AgentKind kind = AgentKind::kClaude;
  AbsPath transcript = AbsPath::Literal("/none");
  Transcript read;
  std::string original, session;
  RewindPlan last;
};

struct Recorded {
  AgentKind agent;
  const char *name, *path;
};
class RecordedRewind : public RewindTest,
                       public ::testing::WithParamInterface<Recorded> {};

// Mutant: fork-readable-by-all.
TEST_P(RecordedRewind, GoesOnAsACopyAndIsTakenBackAgain) {
  Tell(GetParam().agent, GetParam().name, GetParam().path);
  const std::string tree = world.world.Tree();
  const std::string second = Rewind(session, 3);
  EXPECT_EQ(GoesOn(session), second);
  EXPECT_THAT(PromptsOf(second), ElementsAre(kOne, kTwo));
  EXPECT_EQ(last.prompt, read.prompts[2].text);
  const AbsPath copy = AbsPath::Literal(PathOf(second));
  EXPECT_EQ(
      Must(disk.StatAt(Must(disk.OpenDir(copy.parent())),
                       Name::Literal(copy.bytes().substr(copy.bytes().rfind('/') + 1))))
          .mode,
      0600u)
      << "what was said is for whom it was";
  // Before anybody worked in it, and by a turn that it has of its parent.
  const std::string third = Rewind(second, 2);
  EXPECT_EQ(GoesOn(session), third);
  EXPECT_THAT(PromptsOf(third), ElementsAre(kOne));
  EXPECT_EQ(last.prompt, kTwo);
  // The second is as it was, and so are the first, and the files.
  EXPECT_THAT(PromptsOf(second), ElementsAre(kOne, kTwo));
  EXPECT_EQ(world.At(GetParam().path), original);
  EXPECT_EQ(world.world.Tree(), tree);
  // Back to the first of all: anew.
  EXPECT_EQ(Rewind(third, 1), "");
  auto at = Must(world.world.Open());
  const Resumption anew = Must(PlanResume(*at.catalog, session));
  EXPECT_TRUE(anew.anew);
  EXPECT_EQ(anew.command.size(), 1u);
  for (const std::string& next : {third, second, session}) {
    Must(world.world.Undo());
    EXPECT_EQ(GoesOn(session), next);
  }
  EXPECT_EQ(world.world.Undo().error().code, Errc::kRefused);
}

// Hooks of agents, or of other versions, that tell no ids.
TEST_P(RecordedRewind, IsFoundByItsWords) {
  Tell(GetParam().agent, GetParam().name, GetParam().path, false);
  EXPECT_THAT(PromptsOf(Rewind(session, 2)), ElementsAre(kOne));
}

// The agent goes on writing, before any call of a rewind: half a line, then the rest of
// what it wrote in truth.
TEST_P(RecordedRewind, WhatTheAgentWritesMeanwhileIsNotInTheCopyAndStaysInTheOriginal) {
  Tell(GetParam().agent, GetParam().name, GetParam().path);
  const AbsPath dir = transcript.parent();
  const Name name = Name::Literal(transcript.bytes().substr(dir.bytes().size() + 1));
  // Up to the middle of the third turn; then it grows by the rest.
  size_t middle = original.find('\n', read.prompts[2].offset) + 1;
  const size_t torn = middle + (original.size() - middle) / 2;
  {
    const Fd file =
        Must(disk.Open(Must(disk.OpenDir(dir)), name, OpenMode::ReadWrite()));
    Must(disk.Truncate(file, middle));
  }
  std::string expected;
  uint64_t calls = 0;
  for (uint64_t at = 0;; ++at) {
    const std::unique_ptr<MemFs> copy = disk.Clone();
    uint64_t call = 0;
    auto append = [&](size_t from, size_t to) {
      const Fd file =
          Must(copy->Open(Must(copy->OpenDir(dir)), name, OpenMode::ReadWrite()));
      Must(WriteFull(*copy, file, from,
                     AsBytes(std::string_view(original).substr(from, to - from))));
    };
    RaceFs fs(*copy, [&] {
      ++call;
      if (call == at) append(middle, torn);
      if (call == at + 9) append(torn, original.size());
    });
    std::string forked;
    {
      RestoreWorld it(fs, AbsPath::Literal("/top"), 7);
      auto on = Must(it.Open());
      RewindPlan plan = Must(PlanRewind(*on.store, *on.catalog,
                                        {.session = session,
                                         .turn = 2,
                                         .settings = &it.settings,
                                         .root = it.project}));
      plan.native.reset();
      plan.chat.record.alone = true;
      RollbackRequest request = it.RequestFor(on.root);
      request.chat = &plan.chat;
      Must(belay::Rewind(*on.store, request, {}));
      forked = plan.chat.record.path;
    }
    const AbsPath made = AbsPath::Literal(forked);
    const std::string there =
        Must(GetFile(*copy, Must(copy->OpenDir(made.parent())),
                     P(forked.substr(made.parent().bytes().size() + 1))));
    const std::string now =
        Must(GetFile(*copy, Must(copy->OpenDir(dir)), RelPath::Literal(name.bytes())));
    if (at == 0) {
      expected = there;
      ASSERT_TRUE(expected.ends_with('\n'));
      calls = call;
      continue;
    }
    if (call < at) break;
    ASSERT_EQ(there, expected) << "written before call " << at;
    ASSERT_EQ(now, original.substr(0, call < at + 9 ? torn : original.size()));
  }
  EXPECT_GT(calls, 100u);
}

INSTANTIATE_TEST_SUITE_P(
    Of, RecordedRewind,
    ::testing::Values(
        Recorded{AgentKind::kClaude, "claude.jsonl",
                 "/h/.claude/projects/-p/old.jsonl"},
        Recorded{AgentKind::kCodex, "codex.jsonl",
                 "/c/sessions/2026/11/15/"
                 "rollout-2026-11-15T01-00-00-01a1dcc8-73cd-71b1-bbae-68433bc2b49f."
                 "jsonl"},
        Recorded{AgentKind::kGemini, "gemini.jsonl",
                 "/g/tmp/p/chats/session-2026-11-15T01-43-e66036aa.jsonl"},
        Recorded{AgentKind::kQwen, "qwen.jsonl", "/q/projects/p/chats/old.jsonl"},
        Recorded{AgentKind::kCopilot, "copilot.jsonl", "/s/old/events.jsonl"}),
    [](const auto& row) { return std::string(AgentName(row.param.agent)); });

// Copilot tells where its file is at the end of a turn, when the session was recorded
// long ago. Mutant: path-told-later-is-lost.
TEST_F(RewindTest, AFileThatWasToldOfLaterIsFound) {
  world.world.settings.transcripts = Transcripts::kAnchors;  // no copies
  Tell(AgentKind::kCopilot, "copilot.jsonl", "/s/old/events.jsonl", true, false);
  EXPECT_EQ(Plan(session, 2).error().code, Errc::kNotFound);
  Said(EventKind::kTurnEnd, session);
  EXPECT_THAT(PromptsOf(Rewind(session, 2)), ElementsAre(kOne));
}

// The agent moved its file since (resumed from another directory).
TEST_F(RewindTest, AFileThatIsElsewhereByNowIsFound) {
  world.world.settings.transcripts = Transcripts::kAnchors;
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  Must(MakeDirs(disk, AbsPath::Literal("/h/.claude/projects/-p-sub"), 0700));
  Must(disk.Rename(Must(disk.OpenDir(transcript.parent())), N("old.jsonl"),
                   Must(disk.OpenDir(AbsPath::Literal("/h/.claude/projects/-p-sub"))),
                   N("old.jsonl"), RenameHow::kNoReplace));
  transcript = AbsPath::Literal("/h/.claude/projects/-p-sub/old.jsonl");
  HookEvent event = EventOf(EventKind::kSessionStart, session);
  event.cwd = world.world.project.bytes() + "/sub";
  world.Tell(event);
  const std::string second = Rewind(session, 2);
  EXPECT_EQ(PathOf(second), "/h/.claude/projects/-p-sub/" + second + ".jsonl");
  EXPECT_THAT(PromptsOf(second), ElementsAre(kOne));
}

// Gemini CLI goes on in a new file when a session is resumed, Codex when it takes a
// turn back itself; the old one stays, and knows nothing of what is said then. Mutants:
// a-file-stays-where-it-began, what-is-repeated-is-told.
TEST_P(RecordedRewind, TheFileThatWasToldOfLastCountsWhateverIsWrittenBeside) {
  Tell(GetParam().agent, GetParam().name, GetParam().path);
  const std::string old_place = transcript.bytes();
  const Fd dir = Must(disk.OpenDir(transcript.parent()));
  const uint64_t before = read.prompts[1].turn_offset;
  Must(PutFile(disk, dir, RelPath::Literal(transcript.name()),
               original.substr(0, before)));
  const AbsPath moved = AbsPath::Literal("/moved/old");
  const std::string name(transcript.name());
  Must(PutFile(disk, Must(MakeDirs(disk, moved, 0700)), RelPath::Literal(name),
               original));
  transcript = moved.Join(RelPath::Literal(name));
  Said(EventKind::kTurnEnd, session);
  const HookEvent end = EventOf(EventKind::kSessionEnd, session);
  world.Tell(end);
  {
    auto at = Must(world.world.Open());
    EXPECT_TRUE(
        AfterEvent(*at.store, at.root, world.world.settings, end).session_ended);
  }
  EXPECT_EQ(PathOf(session), transcript.bytes());
  const std::string second = Rewind(session, 3);
  EXPECT_THAT(PromptsOf(second), ElementsAre(kOne, kTwo));
  EXPECT_EQ(PathOf(session), transcript.bytes());
  {
    auto at = Must(world.world.Open());
    Must(Undo(*at.store, *at.catalog, world.world.RequestFor(at.root), {}, false));
    EXPECT_EQ(Must(FindConversation(*at.store, *at.catalog, session)).path, transcript);
  }
  // What its records say of the original is what was known then.
  {
    auto at = Must(world.world.Open());
    auto writer = Must(at.store->Begin());
    for (const auto by : {SessionRecord::By::kGoesOn, SessionRecord::By::kNone})
      writer->Add(ToRecord(SessionRecord{.session = session,
                                         .transcript_path = old_place,
                                         .ended = by == SessionRecord::By::kNone,
                                         .by = by},
                           RecordId(at.store->random().NewId()), at.root.id, 1));
    Must(writer->Commit());
  }
  EXPECT_EQ(PathOf(session), transcript.bytes());
  EXPECT_THAT(PromptsOf(Rewind(session, 3)), ElementsAre(kOne, kTwo));
  auto at = Must(world.world.Open());
  for (const SessionSummary& one : Must(ListSessions(*at.catalog, at.root.id)))
    if (one.id == session) {
      EXPECT_EQ(one.transcript_path, transcript.bytes());
    }
}

// The fork that goes on moved, too, before the rewind was undone and done again.
TEST_P(RecordedRewind, AForkThatMovedIsFoundAfterARedo) {
  Tell(GetParam().agent, GetParam().name, GetParam().path);
  const std::string second = Rewind(session, 3);
  const AbsPath from = AbsPath::Literal(PathOf(second));
  transcript = AbsPath::Literal("/moved/old/file");
  Must(disk.Rename(Must(disk.OpenDir(from.parent())), Name::Literal(from.name()),
                   Must(MakeDirs(disk, transcript.parent(), 0700)),
                   Name::Literal(transcript.name()), RenameHow::kNoReplace));
  HookEvent event = EventOf(EventKind::kSessionStart, second);
  event.source = "resume";
  world.Tell(event);
  EXPECT_EQ(PathOf(second), "/moved/old/file");
  auto at = Must(world.world.Open());
  Must(Undo(*at.store, *at.catalog, world.world.RequestFor(at.root), {}, false));
  EXPECT_EQ(PathOf(second), "/moved/old/file");
  at = Must(world.world.Open());
  Must(Redo(*at.store, *at.catalog, world.world.RequestFor(at.root), {}));
  EXPECT_EQ(PathOf(second), "/moved/old/file");
}

// Mutant: a-summary-is-a-prompt.
TEST_P(RecordedRewind, ATurnThatASummaryStandsForIsInTheOriginal) {
  Tell(GetParam().agent, GetParam().name, GetParam().path);
  opened = Must(world.world.Open());
  SummaryPlan summary =
      Must(PlanSummary(*opened.store, *opened.catalog,
                       {.session = session, .until = 3, .root = world.world.project}));
  Must(MakeSummarizedFork(*opened.store, "both wishes", summary));
  RollbackRequest request = world.world.RequestFor(opened.root);
  request.chat = &summary.chat;
  Must(belay::Rewind(*opened.store, request, {}));
  const std::string copy = summary.chat.record.forked;
  auto refused = [&](const std::string& of, uint64_t turn) {
    const Error error = Plan(of, turn).error();
    EXPECT_EQ(error.code, Errc::kNotFound) << turn;
    EXPECT_THAT(error.what, HasSubstr("a summary stands for turn"));
    EXPECT_THAT(error.hint, HasSubstr("belay rewind " + session +
                                      " --to turn:" + std::to_string(turn)));
    const auto along = PlanForkChat(*opened.store, *opened.catalog,
                                    {.session = of,
                                     .turn = turn,
                                     .from = world.world.project,
                                     .to = AbsPath::Literal("/fork")});
    EXPECT_EQ(along.error().code, Errc::kNotFound) << turn;
  };
  for (const uint64_t turn : {1u, 2u}) refused(copy, turn);
  EXPECT_EQ(Must(Plan(session, 2)).prompt, read.prompts[1].text);
  // What is behind it is there, and goes on with the summary.
  const std::string next = Rewind(copy, 3);
  EXPECT_EQ(last.prompt, read.prompts[2].text);
  for (const uint64_t turn : {1u, 2u}) refused(next, turn);
}

// What the agent's own /rewind left is not taken back, and not in a copy.
TEST_F(RewindTest, AfterTheAgentsOwnRewindTheLivingBranchGoesBack) {
  Tell(AgentKind::kClaude, "claude-rewind.jsonl", "/h/.claude/projects/-p/old.jsonl");
  std::vector<std::string> live;
  for (const TranscriptPrompt& prompt : read.prompts)
    if (!prompt.dead) live.push_back(prompt.text);
  ASSERT_LT(live.size(), read.prompts.size()) << "nothing was rewound";
  ASSERT_GT(live.size(), 1u);
  const auto last_live =
      std::ranges::find_if(read.prompts.rbegin(), read.prompts.rend(),
                           [](const TranscriptPrompt& prompt) { return !prompt.dead; });
  const std::string second = Rewind(session, last_live->index + 1);
  live.pop_back();
  EXPECT_THAT(PromptsOf(second), ::testing::ElementsAreArray(live));
  EXPECT_EQ(last.prompt, last_live->text);
  EXPECT_EQ(world.At(transcript.bytes()), original);
}

// Of the messages of a file the first with that role.
const TranscriptMessage& FirstOf(const Transcript& read, std::string_view role) {
  for (const TranscriptMessage& message : read.messages)
    if (message.role == role && !message.dead && !message.id.empty()) return message;
  ADD_FAILURE() << "no message of " << role;
  return read.messages.front();
}

// A conversation of Codex, as it writes one and tells of it.
class CodexWentBack : public RewindTest {
 protected:
  void Begin(const std::string& name, const std::string& base = "") {
    kind = AgentKind::kCodex;
    session = "s-1";
    transcript = AbsPath::Literal("/c/" + name);
    original.clear();
    Line("session_meta", R"("id":"s-1")" + base);
    Said(EventKind::kSessionStart, session);
  }
  void Line(const std::string& type, const std::string& payload) {
    original += "{\"ordinal\":" + std::to_string(ordinal++) + ",\"type\":\"" + type +
                "\",\"payload\":{" + payload + "}}\n";
    const Fd dir = Must(MakeDirs(disk, transcript.parent(), 0755));
    Must(PutFile(disk, dir, RelPath::Literal(transcript.name()), original));
  }
  void Turn(int number) {
    const std::string n = std::to_string(number);
    HookEvent event = EventOf(EventKind::kPrompt, session);
    event.prompt = "wish " + n;
    event.anchor = "t" + n;
    world.Tell(event);
    begins[number] = ordinal;
    Line("event_msg", R"("type":"task_started","turn_id":"t)" + n + "\"");
    Line("event_msg", R"("type":"user_message","message":"wish )" + n + "\"");
    Line("response_item",
         R"("type":"message","role":"assistant","content":[{"text":"x)" + n + "\"}]");
    world.Put("file", n);
    Said(EventKind::kTurnEnd, session);
  }
  // The turn that Codex keeps the conversation up to, what stays and what goes.
  std::string Of(uint64_t turn) {
    auto plan = Plan("s-1", turn);
    if (!plan.ok()) return plan.error().what;
    return (plan->native ? plan->native->last_turn : "nobody") + " " +
           std::to_string(plan->chat.record.kept.value_or(99)) + " " +
           std::to_string(plan->chat.record.taken.value_or(99));
  }

  std::map<int, uint64_t> begins;
  uint64_t ordinal = 0;
};

// Mutants: a-session-has-one-file, codex-is-asked-for-what-it-took-back.
TEST_F(CodexWentBack, IntoAnotherFileWhatCameBeforeIsInTheOlderOne) {
  Begin("rollout-1-s-1.jsonl");
  for (int turn : {1, 2, 3, 4}) Turn(turn);
  ordinal = begins[3];
  Begin("rollout-2-s-1_x.jsonl",
        R"(,"history_base":{"thread_id":"s-1","end_ordinal_exclusive":)" +
            std::to_string(begins[3]) + "}");
  Turn(5);
  EXPECT_EQ(Of(5), "t2 4 2");
  EXPECT_EQ(Of(2), "t1 2 4");
  // Left by the agent itself: what was said before it is there.
  EXPECT_EQ(Of(3), "t2 4 2");
  EXPECT_EQ(Of(4), "nobody 6 2");
  EXPECT_EQ(Of(1), "nobody 0 6");
  auto at = Must(world.world.Open());
  EXPECT_TRUE(Must(HasConversation(*at.store, *at.catalog, "s-1")));
  const SessionView view = Must(LookAtSession(*at.store, *at.catalog, at.root, "s-1"));
  std::string marks;
  for (const SessionTurn& turn : view.turns)
    marks += (turn.left ? "-" : "+") + std::to_string(turn.messages.size());
  EXPECT_EQ(marks, "+1+1-1-1+1");
  for (uint64_t turn : {2, 5}) {
    auto chat = Must(PlanForkChat(*at.store, *at.catalog,
                                  {.session = "s-1",
                                   .turn = turn,
                                   .from = world.world.project,
                                   .to = AbsPath::Literal("/elsewhere")}));
    ASSERT_TRUE(chat) << turn;
    EXPECT_EQ(chat->chat.record.kept, turn == 2 ? 2u : 4u);
  }
  // Once more, to before that.
  ordinal = begins[2];
  Begin("rollout-3-s-1_y.jsonl",
        R"(,"history_base":{"thread_id":"s-1","end_ordinal_exclusive":)" +
            std::to_string(begins[2]) + "}");
  Turn(6);
  EXPECT_EQ(Of(6), "t1 2 2");
  EXPECT_EQ(Of(2), "t1 2 2");
  const std::string fork = Rewind("s-1", 4);
  EXPECT_THAT(PromptsOf(fork), ElementsAre("wish 1", "wish 2", "wish 3"));
}

// Mutants: what-codex-took-back-is-kept, codex-is-asked-for-what-it-took-back.
TEST_F(CodexWentBack, InItsFileWhatItTookBackIsNeitherKeptNorAskedFor) {
  Begin("rollout-1-s-1.jsonl");
  for (int turn : {1, 2, 3}) Turn(turn);
  Line("event_msg", R"("type":"thread_rolled_back","num_turns":2)");
  for (int turn : {4, 5}) Turn(turn);
  EXPECT_EQ(Of(5), "t4 4 2");
  EXPECT_EQ(Of(4), "t1 2 4");
  EXPECT_EQ(Of(3), "nobody 4 4");
  EXPECT_EQ(Of(2), "t1 2 4");
}

TEST_F(RewindTest, AMessageAmongCallsTakesThoseAlongAndIsNamed) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const TranscriptMessage& result = FirstOf(read, "tool");
  const RewindPlan plan = Must(PlanMessage(session, result.id));
  EXPECT_EQ(plan.among_calls, result.id);
  const ChatRecord& record = plan.chat.record;
  EXPECT_TRUE(record.inside);
  EXPECT_EQ(record.inherited, *result.prompt + 1);
  ASSERT_TRUE(record.message);
  EXPECT_NE(record.message, result.id);
  // The same as before the message that is named then.
  const RewindPlan there = Must(PlanMessage(session, *record.message));
  EXPECT_FALSE(there.among_calls);
  EXPECT_EQ(there.chat.record.taken, record.taken);
}

TEST_F(RewindTest, WhatIsInThePlaceOfItsDirectoryIsNamed) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const ConversationFork fork{
      .agent = AgentKind::kClaude,
      .files = {{.path = transcript.Join(Name::Literal("new.jsonl"))}}};
  ChatPlan chat;
  const Status taken = TakeFiles(disk, fork, chat);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().what, "the directory of the conversation, " +
                                    transcript.bytes() + ", is no directory");
}

// Mutant: ids-are-guessed.
TEST_F(RewindTest, WhereIdsAreIsSaid) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const auto plan = PlanMessage(session, "nope");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().hint,
            "its messages and their ids: belay show " + session + " --json");
}

// Mutant: codex-forks-behind-the-turn.
TEST_F(RewindTest, CodexIsNotAskedForAPartOfATurn) {
  Tell(AgentKind::kCodex, "codex.jsonl",
       "/c/sessions/2026/11/15/"
       "rollout-2026-11-15T01-00-00-01a1dcc8-73cd-71b1-bbae-68433bc2b49f.jsonl");
  EXPECT_TRUE(Must(Plan(session, 2)).native);
  std::string last_id;
  for (const TranscriptMessage& message : read.messages)
    if (!message.dead && !message.id.empty()) last_id = message.id;
  const RewindPlan plan = Must(PlanMessage(session, last_id));
  EXPECT_TRUE(plan.chat.record.inside);
  EXPECT_FALSE(plan.native);
}

TEST_F(RewindTest, ACheckpointByHandIsThenOfWhatGoesOn) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const std::string second = Rewind(session, 2);
  auto by_hand = [&] {
    auto at = Must(world.world.Open());
    CaptureRequest request{.root = at.root, .settings = &world.world.settings};
    request.of_active_session = true;
    request.git.user.no_system = true;
    return Must(CaptureCheckpoint(*at.store, request)).checkpoint;
  };
  EXPECT_EQ(by_hand().session, second);
  EXPECT_EQ(by_hand().turn, 1u);
  // One who went on in the original all the same.
  Said(EventKind::kTurnEnd, session);
  EXPECT_EQ(by_hand().session, session);
}

// Mutant: deleted-forks-are-not-resumed.
TEST_F(RewindTest, AForkThatWasDeletedHereIsGoneOnWithAllTheSame) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const std::string second = Rewind(session, 2);
  {
    auto at = Must(world.world.Open());
    const SessionDeletion plan = Must(PlanSessionDeletion(*at.catalog, second));
    Must(DeleteSession(*at.store, *at.catalog, plan));
  }
  auto at = Must(world.world.Open());
  const Resumption on = Must(PlanResume(*at.catalog, session));
  EXPECT_THAT(on.command, ElementsAre("claude", "--resume", second));
}

TEST_F(RewindTest, AForkHasItsConversationByItselfWhileItsFileIsThere) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const std::string second = Rewind(session, 2);
  auto at = Must(world.world.Open());
  auto has = [&](const std::string& of) {
    return Must(HasConversation(*at.store, *at.catalog, of));
  };
  EXPECT_TRUE(has(second));
  EXPECT_FALSE(has("nobody"));
  // Without what the original has it goes on, and is taken back.
  const SessionDeletion plan = Must(PlanSessionDeletion(*at.catalog, session, has));
  EXPECT_EQ(plan.kept_turns, 1u);
  Must(DeleteSession(*at.store, *at.catalog, plan));
  EXPECT_EQ(PromptsOf(second).size(), 1u);
  EXPECT_EQ(Must(Plan(second, 1)).chat.record.kept, 0u);
  EXPECT_EQ(GoesOn(session), second);
  Must(disk.Unlink(Must(disk.OpenDir(transcript.parent())),
                   Must(Name::Parse(second + ".jsonl"))));
  EXPECT_FALSE(has(second));
}

// Mutants: resume-what-is-gone, what-is-gone-is-shown.
TEST_F(RewindTest, WhatIsGoneIsNotGoneOnWith) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const std::string second = Rewind(session, 2);
  auto at = Must(world.world.Open());
  const Resumption on = Must(PlanResume(*at.catalog, session));
  EXPECT_TRUE(CheckResumable(disk, *at.catalog, on).ok());
  Must(disk.Unlink(Must(disk.OpenDir(transcript.parent())),
                   Must(Name::Parse(second + ".jsonl"))));
  const Status gone = CheckResumable(disk, *at.catalog, on);
  EXPECT_EQ(gone.error().code, Errc::kRefused);
  // No copy is kept of it; what it was cut from is there.
  EXPECT_THAT(gone.error().hint, HasSubstr("go on with session " + session +
                                           " as it was before: belay undo "));
  Must(disk.Unlink(Must(disk.OpenDir(transcript.parent())),
                   Must(Name::Parse(transcript.name()))));
  EXPECT_EQ(CheckResumable(disk, *at.catalog, on).error().hint, "");
}

// Mutant: what-was-in-a-root-stays-behind.
TEST_F(RewindTest, WhatWasInADirectoryThatWasMovedGoesOnThere) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const std::string before = world.world.project.bytes();
  auto cwd_of = [&](const std::string& of) {
    auto at = Must(world.world.Open());
    return Must(PlanResume(*at.catalog, of)).cwd;
  };
  EXPECT_EQ(cwd_of(session), before);
  world.MoveTo(AbsPath::Literal("/top/project2"));
  // Another one stands there by now, with a session of its own.
  world.world.project = AbsPath::Literal(before);
  Must(world.world.Dir());
  HookEvent other = EventOf(EventKind::kSessionStart, "other");
  other.cwd = before + "/src";
  world.Tell(other);
  world.world.project = AbsPath::Literal("/top/project2");
  EXPECT_EQ(cwd_of(session), "/top/project2");
  EXPECT_EQ(cwd_of("other"), before + "/src");
  EXPECT_EQ(Must(Plan(session, 3)).chat.record.cwd, "/top/project2");
  Rewind(session, 3);
  EXPECT_EQ(cwd_of(session), "/top/project2");
  // What was written down in between was of where it was then.
  world.MoveTo(AbsPath::Literal("/top/third"));
  EXPECT_EQ(cwd_of(session), "/top/third");
  EXPECT_EQ(cwd_of("other"), before + "/src");
  auto at = Must(world.world.Open());
  RollbackRequest request = world.world.RequestFor(at.root);
  const Outcome undone = Must(Undo(*at.store, *at.catalog, request, {}, false));
  EXPECT_EQ(undone.chat->cwd, "/top/third");
  EXPECT_EQ(cwd_of(session), "/top/third");
}

// Mutant: a-session-stays-where-it-began.
TEST_F(RewindTest, ASessionIsGoneOnWithWhereItWasLast) {
  Tell(AgentKind::kClaude, "claude.jsonl", "/h/.claude/projects/-p/old.jsonl");
  const std::string first = world.world.project.bytes();
  auto start = [&](const std::string& cwd, const std::string& source) {
    HookEvent event = EventOf(EventKind::kSessionStart, session);
    event.cwd = cwd;
    event.source = source;
    world.Tell(event);
    auto at = Must(world.world.Open());
    return Must(PlanResume(*at.catalog, session)).cwd;
  };
  EXPECT_EQ(start(first + "/sub", "compact"), first);
  EXPECT_EQ(start(first + "/sub", "resume"), first + "/sub");
  EXPECT_EQ(start(first, "resume"), first);
  auto records = [&] {
    auto at = Must(world.world.Open());
    return Must(at.catalog->ListRecords({.kind = RecordKind::kSession})).size();
  };
  const size_t were = records();
  EXPECT_EQ(start(first, "resume"), first);
  world.MoveTo(AbsPath::Literal("/top/moved"));
  EXPECT_EQ(start("/top/moved", "resume"), "/top/moved");
  EXPECT_EQ(records(), were);
}

// A host: it keeps what was said itself, and tells ids of turns and of messages.
class HostTest : public RewindTest {
 protected:
  void Turn(uint64_t number) {
    kind = AgentKind::kGeneric;
    HookEvent event = EventOf(EventKind::kPrompt, "h");
    event.host = "desk";
    event.transcript.reset();
    event.prompt = "wish " + std::to_string(number);
    event.anchor = "t-" + std::to_string(number);
    event.message_id = "m-" + std::to_string(number);
    event.message_index = 10 * number;
    world.Tell(event);
    world.Put("file", event.prompt);
    event.kind = EventKind::kTurnEnd;
    world.Tell(event);
  }
};

// Gemini CLI's hooks tell no ids, and the copy of a forked directory has its paths.
// Mutant: words-are-compared-as-they-were-said.
TEST_F(RewindTest, ATurnThatNamesTheDirectoryIsFoundInTheFork) {
  const AbsPath dir = AbsPath::Literal("/alt");
  const std::string at = "/g/tmp/alt/chats/session-1-f.jsonl";
  std::string lines = "{\"sessionId\":\"f\"}\n";
  for (const char* text : {"first", "edit /alt/a please", "third"})
    lines += std::string(R"({"id":")") + text +
             R"(","type":"user","content":[{"text":")" + text + "\"}]}\n";
  world.PutAt(AbsPath::Literal(at).parent(), "session-1-f.jsonl", lines);
  for (const std::string& text :
       {std::string("first"), "edit " + world.world.project.bytes() + "/a please",
        std::string("third")}) {
    HookEvent event = world.Event(EventKind::kPrompt, "s");
    event.agent = AgentKind::kGemini;
    event.prompt = text;
    world.Tell(event);
    event.kind = EventKind::kTurnEnd;
    world.Tell(event);
  }
  opened = Must(world.world.Open());
  auto writer = Must(opened.store->Begin());
  writer->Add(ToRecord(SessionRecord{.session = "f",
                                     .agent = "gemini",
                                     .parent = "s",
                                     .inherited_turns = 3,
                                     .transcript_path = at,
                                     .cwd = dir.bytes()},
                       RecordId(opened.store->random().NewId()), opened.root.id, 1));
  Must(writer->Commit());
  for (const auto& [turn, kept] : {std::pair{3u, 2u}, {2u, 1u}}) {
    const auto plan = PlanRewind(
        *opened.store, *opened.catalog,
        {.session = "f", .turn = turn, .settings = &world.world.settings, .root = dir});
    ASSERT_TRUE(plan.ok()) << plan.error().what;
    EXPECT_EQ(plan->chat.record.kept, kept);
  }
}

// Mutant: what-is-not-counted-is-not-there.
TEST_F(RewindTest, WhatIsKeptOfAVeryLongConversationGoesOn) {
  transcript = AbsPath::Literal("/h/.claude/projects/-top-project/s.jsonl");
  std::string lines, above = "null";
  auto line = [&](const std::string& id, const std::string& type,
                  const std::string& m) {
    lines += R"({"type":")" + type + R"(","parentUuid":)" + above + R"(,"uuid":")" +
             id + R"(","promptId":"p)" + id + R"(","sessionId":"s","message":)" + m +
             "}\n";
    above = '"' + id + '"';
  };
  for (const std::string turn : {"1", "2"}) {
    line(turn, "user", R"({"role":"user","content":"wish )" + turn + R"("})");
    HookEvent event = EventOf(EventKind::kPrompt, "s");
    event.prompt = "wish " + turn;
    event.anchor = "p" + turn;
    world.Tell(event);
    Said(EventKind::kTurnEnd, "s");
  }
  for (size_t i = 0; i < kMostMessages; ++i)
    line("a" + std::to_string(i), "assistant", R"({"role":"assistant"})");
  world.PutAt(transcript.parent(), "s.jsonl", lines);
  auto copy_of = [&](const ChatPlan& plan) {
    std::string copy;
    for (const ChatFile& file : plan.files)
      Must(file.content([&](ByteSpan bytes) {
        copy += AsText(bytes);
        return Ok();
      }));
    return copy;
  };
  const RewindPlan plan = Must(Plan("s", 2));
  EXPECT_FALSE(plan.chat.record.forked.empty()) << "the agent begins anew";
  EXPECT_THAT(copy_of(plan.chat), HasSubstr("wish 1"));
  EXPECT_THAT(copy_of(plan.chat), Not(HasSubstr("wish 2")));
  EXPECT_EQ(plan.chat.record.taken, std::nullopt);
  EXPECT_EQ(plan.chat.record.kept, std::nullopt);
  EXPECT_TRUE(Must(Plan("s", 1)).chat.record.forked.empty()) << "nothing is left";
  const RewindPlan end =
      Must(PlanMessage("s", "a" + std::to_string(kMostMessages - 1)));
  EXPECT_EQ(end.chat.record.taken, 1u);
  EXPECT_EQ(end.chat.record.kept, std::nullopt);
  const auto forked = Must(PlanForkChat(*opened.store, *opened.catalog,
                                        {.session = "s",
                                         .turn = 2,
                                         .from = world.world.project,
                                         .to = AbsPath::Literal("/top/other")}));
  ASSERT_TRUE(forked);
  EXPECT_THAT(copy_of(forked->chat), HasSubstr("wish 1"));
}

// Stores of before turns were counted over all roots have such.
// Mutant: one-of-two-turns-is-meant, a-turn-that-was-counted-twice-stays.
TEST_F(RewindTest, OfTwoTurnsWithOneNumberTheOneSaidHereIsMeant) {
  const AbsPath here = world.world.project, there = AbsPath::Literal("/top/there");
  const std::string at = "/h/.claude/projects/-p/s.jsonl";
  std::string lines, parent = "null";
  std::vector<LogRecord> records;
  auto said = [&](const AbsPath& root, uint64_t turn, const std::string& id) {
    world.world.project = root;
    Must(world.world.Dir());
    opened = Must(world.world.Open());
    lines += R"({"type":"user","parentUuid":)" + parent + R"(,"uuid":"u)" + id +
             R"(","promptId":")" + id +
             R"(","sessionId":"s","message":{"role":"user","content":"wish )" + id +
             "\"}}\n";
    parent = "\"u" + id + "\"";
    auto writer = Must(opened.store->Begin());
    for (const LogRecord& record :
         {ToRecord(SessionRecord{.session = "s",
         .agent = "claude",
         .transcript_path = at,
         .cwd = here.bytes()},
                   RecordId(opened.store->random().NewId()), opened.root.id, 1),
          ToRecord(
              TurnRecord{
                  .session = "s", .turn = turn, .prompt = "wish " + id, .anchor = id},
              RecordId(opened.store->random().NewId()), opened.root.id, 1)})
      writer->Add(record);
    Must(writer->Commit());
  };
  said(here, 1, "one");
  said(there, 2, "two");
  const RootId other = opened.root.id;
  said(here, 2, "three");
  world.PutAt(AbsPath::Literal(at).parent(), "s.jsonl", lines);
  opened = Must(world.world.Open());
  auto second = [&](const AbsPath& root) {
    return PlanRewind(
        *opened.store, *opened.catalog,
        {.session = "s", .turn = 2, .settings = &world.world.settings, .root = root});
  };
  EXPECT_EQ(Must(second(here)).prompt, "wish three");
  EXPECT_EQ(Must(second(here)).chat.record.kept, 2u);
  EXPECT_EQ(Must(second(there)).prompt, "wish two");
  EXPECT_EQ(Must(second(there)).chat.record.kept, 1u);
  EXPECT_EQ(second(AbsPath::Literal("/elsewhere")).error().code, Errc::kRefused);
  // What was said behind the second, elsewhere, has the same number.
  const auto all = Must(AllTurnsOf(*opened.catalog, "s"));
  ASSERT_EQ(all.size(), 3u);
  Checkpoint target;
  target.root = other;
  target.seq = all[1].seq;
  target.session = "s";
  target.turn = 2;
  EXPECT_EQ(TurnToTakeBack(*opened.store, *opened.catalog, "s", target).error().code,
            Errc::kRefused);
}

// Mutant: the-last-call-is-within-its-turn.
TEST_F(RewindTest, TheEndOfATurnIsBehindItsLastCall) {
  auto turn_of = [&](const Checkpoint& target) {
    opened = Must(world.world.Open());
    return Must(TurnToTakeBack(*opened.store, *opened.catalog, "s", target));
  };
  world.Start("s");
  world.Prompt("s", "first");
  const Checkpoint asked = world.last;
  world.Write("s", "t1", "a", "1");
  const Checkpoint within = world.last;
  world.Write("s", "t2", "b", "2");
  const Checkpoint end = world.last;
  EXPECT_EQ(turn_of(end), 1u) << "it is running";
  world.End(EventKind::kTurnEnd, "s");
  EXPECT_EQ(turn_of(end), std::nullopt) << "nothing was said since";
  EXPECT_EQ(turn_of(within), 1u);
  EXPECT_EQ(turn_of(asked), 1u);
  world.Prompt("s", "second");
  EXPECT_EQ(turn_of(end), 2u);
  EXPECT_EQ(turn_of(within), 1u);
}

TEST_F(RewindTest, ACallOfATurnThatWasOverIsWithinTheOneThatWasRunning) {
  world.Start("s");
  world.Prompt("s", "first");
  HookEvent late = world.Call(EventKind::kToolBegin, "s", "t1");
  late.anchor = "p" + std::to_string(world.prompts);
  world.End(EventKind::kTurnEnd, "s");
  world.Prompt("s", "second");
  world.Tell(late);
  ASSERT_EQ(world.last.turn, 1u);
  opened = Must(world.world.Open());
  EXPECT_EQ(Must(TurnToTakeBack(*opened.store, *opened.catalog, "s", world.last)), 2u);
}

// Mutants: by-hand-is-after-the-turn, by-hand-is-the-turns-own.
TEST_F(RewindTest, ACheckpointByHandWithinATurnIsBeforeItsAnswer) {
  auto turn_of = [&](const std::string& name) {
    opened = Must(world.world.Open());
    return Must(TurnToTakeBack(*opened.store, *opened.catalog, "s",
                               Must(world.world.Named(opened, name))));
  };
  auto by_hand = [&](const std::string& name) {
    opened = Must(world.world.Open());
    CaptureRequest request;
    request.root = opened.root;
    request.settings = &world.world.settings;
    request.git.user.no_system = true;
    request.name = name;
    request.of_active_session = true;
    Must(CaptureCheckpoint(*opened.store, request));
  };
  world.Start("s");
  world.Prompt("s", "first");
  world.Write("s", "t1", "a", "1");
  by_hand("within");
  EXPECT_EQ(turn_of("within"), 1u) << "it is running";
  world.Write("s", "t2", "b", "2");
  const Checkpoint end = world.last;
  by_hand("last");
  world.End(EventKind::kTurnEnd, "s");
  by_hand("after");
  EXPECT_EQ(turn_of("within"), 1u);
  EXPECT_EQ(turn_of("last"), std::nullopt) << "nothing was done since";
  EXPECT_EQ(turn_of("after"), std::nullopt) << "nothing was said since";
  EXPECT_EQ(Must(TurnToTakeBack(*opened.store, *opened.catalog, "s", end)),
            std::nullopt)
      << "the last call of the turn is its end, whatever is kept by hand behind it";
  world.Prompt("s", "second");
  EXPECT_EQ(turn_of("within"), 1u);
  EXPECT_EQ(turn_of("last"), 2u);
  EXPECT_EQ(turn_of("after"), 2u);
}

// Escape, or a call that was refused: its end is not told, nor that of the turn.
// Mutant: before-the-last-call-is-its-end.
TEST_F(RewindTest, WhatWasThereBeforeTheLastCallIsNoEndOfATurn) {
  auto turn_of = [&](const Checkpoint& target) {
    opened = Must(world.world.Open());
    return Must(TurnToTakeBack(*opened.store, *opened.catalog, "s", target));
  };
  world.Start("s");
  world.Prompt("s", "first");
  world.Write("s", "t1", "a", "1");
  world.Pre("s", "t2", {"b"});
  const Checkpoint before = world.last;
  world.Put("b", "2");
  EXPECT_EQ(turn_of(before), 1u);
  world.Prompt("s", "second");
  EXPECT_EQ(turn_of(before), 1u);
}

// Mutants: half-a-turn-looks-whole, what-was-deleted-never-was.
TEST_F(RewindTest, WhatIsKeptOfTheMiddleOfATurnStaysThereWhateverGoes) {
  std::vector<Checkpoint> middle;
  auto by_hand = [&](const std::string& name) {
    opened = Must(world.world.Open());
    CaptureRequest request;
    request.root = opened.root;
    request.settings = &world.world.settings;
    request.git.user.no_system = true;
    request.name = name;
    request.of_active_session = true;
    return Must(CaptureCheckpoint(*opened.store, request)).checkpoint;
  };
  auto turn_of = [&](const Checkpoint& target) {
    opened = Must(world.world.Open());
    return Must(TurnToTakeBack(*opened.store, *opened.catalog, "s", target));
  };
  world.Start("s");
  for (uint64_t turn : {1, 2, 3}) {
    world.Prompt("s", "wish");
    for (const char* call : {"a", "b", "c"}) {
      world.Write("s", call + std::to_string(turn), "a", call + std::to_string(turn));
      if (turn == 2 && *call == 'a') middle = {world.last, by_hand("half")};
    }
    world.End(EventKind::kTurnEnd, "s");
    if (turn == 2) middle.push_back(by_hand("behind"));
  }
  const std::vector<std::optional<uint64_t>> expected = {2, 2, 3};
  auto taken_back = [&] {
    std::vector<std::optional<uint64_t>> out;
    for (const Checkpoint& target : middle) out.push_back(turn_of(target));
    return out;
  };
  EXPECT_EQ(taken_back(), expected);
  opened = Must(world.world.Open());
  Must(Annotate(*opened.store,
                Must(opened.catalog->FindById(opened.root.id, middle[0].id.text())),
                {.pinned = true}));
  EXPECT_GT(world.Prune(1), 5u);
  EXPECT_EQ(taken_back(), expected);
  // Of what somebody deletes by hand nothing tells.
  opened = Must(world.world.Open());
  std::vector<RecordId> calls;
  for (const CatalogEntry& entry :
       Must(opened.catalog->ListCheckpoints({.session = "s", .turn = 2})))
    if (entry.checkpoint.seq > middle[1].seq && entry.checkpoint.tool_name)
      calls.push_back(entry.checkpoint.id);
  ASSERT_EQ(calls.size(), 1u) << "what tells that the turn went on";
  Must(DeleteCheckpoints(*opened.store, *opened.catalog, opened.root, calls));
  EXPECT_EQ(turn_of(middle[0]), 2u);
  EXPECT_EQ(turn_of(middle[1]), 2u);
}

// Mutant: host-message-is-lost.
TEST_F(HostTest, ATurnIsFoundByItsOwnIdAndByThatOfItsMessage) {
  for (uint64_t number : {1u, 2u, 3u}) Turn(number);
  for (const char* id : {"m-2", "t-2"}) {
    const RewindPlan plan = Must(PlanMessage("h", id));
    EXPECT_TRUE(plan.chat.record.hosted);
    EXPECT_EQ(plan.chat.record.turn, 2u);
    EXPECT_FALSE(plan.chat.record.inside);
    EXPECT_EQ(plan.chat.record.message, "m-2");
    EXPECT_EQ(plan.chat.record.message_index, 20u);
    EXPECT_EQ(plan.prompt, "wish 2");
  }
}

// A host tells ids of turns, and of messages the places alone.
// Mutant: a-turns-id-has-a-place.
TEST_F(HostTest, ATurnsIdIsNotThatOfAMessageWhosePlaceIsTold) {
  kind = AgentKind::kGeneric;
  HookEvent event = EventOf(EventKind::kPrompt, "h");
  event.host = "desk";
  event.transcript.reset();
  for (uint64_t number : {1u, 2u, 3u}) {
    event.kind = EventKind::kPrompt;
    event.prompt = "wish " + std::to_string(number);
    event.anchor = "t-" + std::to_string(number);
    event.message_index = 10 * number;
    world.Tell(event);
    EXPECT_EQ(world.last.message_id, std::nullopt);
    EXPECT_EQ(world.last.message_index, 10 * number);
    event.kind = EventKind::kTurnEnd;
    event.message_index.reset();
    world.Put("file", event.prompt);
    world.Tell(event);
    EXPECT_EQ(world.last.message_id, std::nullopt);
  }
  for (const RewindPlan& plan : {Must(PlanMessage("h", "t-2")), Must(Plan("h", 2))}) {
    EXPECT_EQ(plan.chat.record.turn, 2u);
    EXPECT_EQ(plan.chat.record.message, std::nullopt);
    EXPECT_EQ(plan.chat.record.message_index, 20u);
  }
}

// A host tells what each event belongs to, and no turns.
// Mutants: a-place-is-any-messages, a-message-is-a-turn-of-its-own.
TEST_F(HostTest, ACheckpointHasTheIdAndThePlaceOfOneMessage) {
  kind = AgentKind::kGeneric;
  HookEvent event = EventOf(EventKind::kPrompt, "h");
  event.host = "desk";
  event.transcript.reset();
  event.prompt = "wish";
  auto tell = [&](std::optional<std::string> id, std::optional<uint64_t> index) {
    event.anchor = event.message_id = std::move(id);
    event.message_index = index;
    world.Tell(event);
    const Checkpoint& made = world.last;
    return std::pair(made.message_id.value_or("-"), made.message_index.value_or(0));
  };
  using Message = std::pair<std::string, uint64_t>;
  EXPECT_EQ(tell("m-1", 10), Message("m-1", 10));
  event.kind = EventKind::kToolBegin;
  event.tool = ToolCall{.name = "shell", .id = "c", .reach = ToolReach::kWrites};
  EXPECT_EQ(tell("m-2", 11), Message("m-2", 11));
  EXPECT_EQ(world.last.turn, 1u);
  event.kind = EventKind::kToolEnd;
  world.Put("file", "changed");
  EXPECT_EQ(tell("m-3", {}), Message("m-3", 0));
  EXPECT_EQ(world.last.turn, 1u);
  event.kind = EventKind::kTurnEnd;
  event.tool.reset();
  world.Put("file", "again");
  EXPECT_EQ(tell({}, {}), Message("m-1", 10)) << "the turn's";
  EXPECT_EQ(Must(PlanMessage("h", "m-2")).chat.record.message_index, 11u);
}

// Mutant: a-host-is-rewound-forward.
TEST_F(HostTest, WhatItWasToldToForgetIsNotGoneForwardTo) {
  for (uint64_t number : {1u, 2u, 3u}) Turn(number);
  Rewind("h", 2);
  EXPECT_EQ(Plan("h", 3).error().code, Errc::kRefused);
  EXPECT_EQ(Plan("h", 2).error().code, Errc::kRefused);
  EXPECT_EQ(PlanMessage("h", "m-3").error().code, Errc::kRefused);
  Turn(4);
  EXPECT_EQ(Must(Plan("h", 4)).prompt, "wish 4");
  EXPECT_EQ(Must(Plan("h", 1)).prompt, "wish 1");
}

// Mutant: a-host-is-not-there-already.
TEST_F(HostTest, ACheckpointIsGoneBackToFromWhereItStands) {
  auto by_hand = [&](const std::string& name) {
    opened = Must(world.world.Open());
    CaptureRequest request;
    request.root = opened.root;
    request.settings = &world.world.settings;
    request.git.user.no_system = true;
    request.name = name;
    request.of_active_session = true;
    return Must(CaptureCheckpoint(*opened.store, request)).checkpoint;
  };
  auto turn_of = [&](const Checkpoint& target) {
    opened = Must(world.world.Open());
    return Must(TurnToTakeBack(*opened.store, *opened.catalog, "h", target));
  };
  Turn(1);
  const Checkpoint first = by_hand("first");
  Turn(2);
  const Checkpoint second = by_hand("second");
  Turn(3);
  opened = Must(world.world.Open());
  const Checkpoint asked =
      Must(FindTurnOf(*opened.catalog, opened.root.id, "h", 2)).state->checkpoint;
  EXPECT_EQ(turn_of(first), 2u);
  Rewind("h", 2);
  EXPECT_EQ(turn_of(first), std::nullopt) << "it stands there";
  EXPECT_EQ(turn_of(asked), std::nullopt);
  EXPECT_EQ(turn_of(second), 3u) << "of what came before it has forgotten a part";
  Turn(4);
  Turn(5);
  EXPECT_EQ(turn_of(first), 4u) << "what it said since";
  EXPECT_EQ(turn_of(asked), 4u);
  EXPECT_EQ(turn_of(second), 3u);
  EXPECT_EQ(Plan("h", 3).error().code, Errc::kRefused);
  Rewind("h", 5);
  EXPECT_EQ(turn_of(first), 4u);
  Rewind("h", 4);
  EXPECT_EQ(turn_of(first), std::nullopt);
  Rewind("h", 1);
  EXPECT_EQ(turn_of(first), 2u) << "of what came before it has forgotten a part";
}

// Mutant: what-is-too-far-back-is-undone.
TEST_F(HostTest, AWayBackThatIsGoneIsNotNamed) {
  for (uint64_t number : {1u, 2u, 3u}) Turn(number);
  auto forward = [&] {
    const auto plan = Plan("h", 3);
    return plan.ok() ? "" : plan.error().what + "; " + plan.error().hint;
  };
  RewindPlan plan = Must(Plan("h", 2));
  plan.chat.record.alone = true;
  RollbackRequest request = world.world.RequestFor(opened.root);
  request.chat = &plan.chat;
  const Outcome done = Must(belay::Rewind(*opened.store, request, {}));
  EXPECT_EQ(forward(),
            "turn 3 of session h was taken back already; make it count again first: "
            "belay undo " +
                done.operation->id.text().substr(0, 7));
  opened = Must(world.world.Open());
  Must(Prune(*opened.store, *opened.catalog, {.autos = 200, .days = 30, .undo = 0},
             /*dry_run=*/false));
  EXPECT_EQ(forward(),
            "turn 3 of session h was taken back already, too far back to be undone; "
            "what counts, and can be gone back to: belay show h");
}

}  // namespace
}  // namespace belay::test
