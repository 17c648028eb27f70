// Sessions that grew out of others: found by what agents tell and by their transcripts.

#include "agent/ancestry.h"

#include <gtest/gtest.h>

#include "agent/aftermath.h"
#include "agent/fork_chat.h"
#include "agent/recorder.h"
#include "agent/rewind.h"
#include "agent/summarize.h"
#include "base/fault_fs.h"
#include "base/mem_fs.h"
#include "core/lineage.h"
#include "core/live.h"
#include "core/refs.h"
#include "core/sessions.h"
#include "core/transcripts.h"
#include "support/fs_world.h"
#include "support/restore_world.h"

namespace belay::test {
namespace {

// --- by the transcript alone ---------------------------------------------------------

struct Known {
  std::vector<TurnRecord> turns;  // newest first
  std::vector<SessionRecord> sessions;
};

Transcript Asked(const std::vector<std::pair<std::string, std::string>>& prompts) {
  Transcript out;
  for (const auto& [anchor, text] : prompts)
    out.prompts.push_back({.anchor = anchor, .record = anchor, .text = text});
  return out;
}

std::string Match(const Transcript& transcript, const Known& known,
                  const std::optional<PromptNow>& now = {},
                  const std::string& session = "new") {
  auto found =
      MatchAncestor(transcript, session, "gemini", known.turns, known.sessions, now);
  return found ? found->session + "@" + std::to_string(found->turns) : "";
}

const char kLong[] = "make the parser accept trailing commas";

Known Two() {
  Known known;
  for (const char* id : {"a", "b"})
    known.sessions.push_back({.session = id, .agent = "gemini"});
  known.sessions.push_back({.session = "x", .agent = "qwen"});
  known.turns = {
      {.session = "b", .turn = 1, .prompt = "something else entirely, I say"},
      {.session = "x",
       .turn = 1,
       .prompt = "of another agent altogether",
       .anchor = "ax"},
      {.session = "a", .turn = 3, .prompt = "thanks", .anchor = "a3"},
      {.session = "a", .turn = 2, .prompt = "now the tests", .anchor = "a2"},
      {.session = "a", .turn = 1, .prompt = kLong, .anchor = "a1"},
  };
  return known;
}

TEST(Ancestry, TheNewestPromptThatAnotherSessionHasIsWhereItLeftThat) {
  EXPECT_EQ(Match(Asked({{"a1", kLong}, {"a2", "?"}}), Two()), "a@2");
  EXPECT_EQ(Match(Asked({{"a1", kLong}, {"unrecorded", "?"}}), Two()), "a@1");
  EXPECT_EQ(Match(Asked({{"n1", "what nobody ever asked before this"}}), Two()), "");
  // Its own are not copies, though another session asked the same.
  const PromptNow now{.text = kLong, .anchor = "n1"};
  EXPECT_EQ(Match(Asked({{"n1", kLong}}), Two(), now), "");
  EXPECT_EQ(Match(Asked({{"a1", kLong}, {"a2", "x"}, {"n1", kLong}}), Two(), now),
            "a@2");
  // Nor one that it has not written down by its anchor yet.
  EXPECT_EQ(Match(Asked({{"uuid", kLong}}), Two(), now), "");
}

TEST(Ancestry, APromptThatWasTakenBackDoesNotCount) {
  Transcript transcript = Asked({{"a1", kLong}, {"a2", "?"}});
  transcript.prompts[1].dead = true;
  EXPECT_EQ(Match(transcript, Two()), "a@1");
}

TEST(Ancestry, WithoutAnchorsAllThatWasAskedMustBeTheSame) {
  Known known = Two();
  for (TurnRecord& turn : known.turns) turn.anchor.reset();
  EXPECT_EQ(Match(Asked({{"1", kLong}, {"2", " now the tests\n"}}), known), "a@2");
  EXPECT_EQ(Match(Asked({{"1", kLong}, {"2", "other tests"}}), known), "");
  EXPECT_EQ(Match(Asked({{"2", "now the tests"}}), known), "")
      << "not from the first on";
  // What everybody says tells nothing.
  known.sessions.push_back({.session = "d", .agent = "gemini"});
  known.turns.push_back({.session = "d", .turn = 1, .prompt = "go on"});
  EXPECT_EQ(Match(Asked({{"1", "go on"}}), known), "");
  // Two that fit: nobody is guessed.
  known.sessions.push_back({.session = "c", .agent = "gemini"});
  known.turns.push_back({.session = "c", .turn = 1, .prompt = kLong});
  EXPECT_EQ(Match(Asked({{"1", kLong}}), known), "");
  EXPECT_EQ(Match(Asked({{"1", kLong}, {"2", "now the tests"}}), known), "a@2");
}

TEST(Ancestry, OfAForkThatWasForkedTheInheritedTurnsCountToo) {
  Known known = Two();
  for (TurnRecord& turn : known.turns) turn.anchor.reset();
  known.sessions.push_back(
      {.session = "f", .agent = "gemini", .parent = "a", .inherited_turns = 1});
  known.turns.insert(known.turns.begin(),
                     {.session = "f", .turn = 2, .prompt = "and now the docs"});
  EXPECT_EQ(Match(Asked({{"1", kLong}, {"2", "and now the docs"}}), known), "f@2");
  // What both have was asked in one of them.
  EXPECT_EQ(Match(Asked({{"1", kLong}}), known), "a@1");
}

TEST(Ancestry, AFileThatSaysWhereItCameFromIsBelievedIfWeKnowIt) {
  Known known = Two();
  for (TurnRecord& turn : known.turns) turn.anchor.reset();
  Transcript transcript = Asked({{"1", "in other words"}, {"2", "and more"}});
  transcript.forked_from = "a";
  EXPECT_EQ(Match(transcript, known), "a@2");
  transcript.forked_from = "b";
  EXPECT_EQ(Match(transcript, known), "b@1");
  for (const char* other : {"x", "nobody", "new"}) {
    transcript.forked_from = other;
    EXPECT_EQ(Match(transcript, known), "") << other;
  }
}

// --- recorded ------------------------------------------------------------------------

class ForksTest : public ::testing::Test {
 protected:
  ForksTest() : world_(disk_, AbsPath::Literal("/top")) {
    Must(world_.Dir());
    Must(MakeDirs(disk_, AbsPath::Literal("/agent"), 0755));
  }
  static std::string PathOf(const std::string& session) {
    return "/agent/" + session + ".jsonl";
  }
  void Write(const std::string& session, const std::string& text) {
    Must(PutFile(disk_, Must(disk_.OpenDir(AbsPath::Literal("/agent"))),
                 P(session + ".jsonl"), text));
  }
  // A prompt that follows another one, or begins.
  static std::string Line(const std::string& session, const std::string& prompt_id,
                          const std::string& text, const std::string& after = "") {
    return R"({"type":"user","uuid":"u-)" + prompt_id + R"(","parentUuid":)" +
           (after.empty() ? "null" : "\"u-" + after + "\"") + R"(,"sessionId":")" +
           session + R"(","promptId":")" + prompt_id +
           R"(","message":{"role":"user","content":")" + text + "\"}}\n";
  }
  HookEvent Event(EventKind kind, const std::string& session) {
    return {.agent = agent_,
            .kind = kind,
            .session = session,
            .cwd = world_.project.bytes(),
            .transcript = PathOf(session)};
  }
  std::optional<Checkpoint> Tell(const HookEvent& event) {
    auto opened = Must(world_.Open());
    RecordRequest request{
        .root = opened.root, .settings = &world_.settings, .lock_wait_ms = 200};
    request.git.user.no_system = true;
    auto made = Must(RecordEvent(*opened.store, request, event));
    const Aftermath after =
        AfterEvent(*opened.store, opened.root, world_.settings, event);
    failed_ = after.failed.size();
    if (!made) return std::nullopt;
    return made->checkpoint;
  }
  void Start(const std::string& session, const std::string& source = "startup") {
    HookEvent event = Event(EventKind::kSessionStart, session);
    event.source = source;
    Tell(event);
  }
  uint64_t Prompt(const std::string& session, const std::string& anchor,
                  const std::string& text) {
    HookEvent event = Event(EventKind::kPrompt, session);
    event.anchor = anchor;
    event.prompt = text;
    auto made = Tell(event);
    return made ? made->turn.value_or(0) : 0;
  }
  void End(const std::string& session) { Tell(Event(EventKind::kTurnEnd, session)); }
  std::string At(const std::string& ref, const std::string& session) {
    auto opened = Must(world_.Open());
    auto found =
        ResolveRef(*opened.catalog, {.root = opened.root.id, .session = session}, ref);
    return found.ok() ? found->entry.checkpoint.description
                      : std::string(ErrcName(found.error().code));
  }
  SessionSummary Session(const std::string& session) {
    auto opened = Must(world_.Open());
    for (SessionSummary& one : Must(ListSessions(*opened.catalog, opened.root.id)))
      if (one.id == session) return std::move(one);
    return {};
  }
  // Two turns of a session, with a transcript.
  void Talk() {
    Start("one");
    EXPECT_EQ(Prompt("one", "p1", "first wish"), 1u);
    Write("one", Line("one", "p1", "first wish"));
    End("one");
    EXPECT_EQ(Prompt("one", "p2", "second wish"), 2u);
    Write("one",
          Line("one", "p1", "first wish") + Line("one", "p2", "second wish", "p1"));
    End("one");
  }

  MemFs disk_;
  RestoreWorld world_;
  AgentKind agent_ = AgentKind::kClaude;
  size_t failed_ = 0;
};

TEST_F(ForksTest, AForkedSessionCountsOnAndHasItsAncestorsTurns) {
  Talk();
  Write("fork", Line("fork", "p1", "first wish"));  // cut before the second
  Start("fork", "resume");
  EXPECT_EQ(Session("fork").parent, "one");
  EXPECT_EQ(Session("fork").inherited, 1u);
  EXPECT_EQ(Prompt("fork", "q2", "another second wish"), 2u);
  EXPECT_EQ(At("turn:1", "fork"), "first wish");
  EXPECT_EQ(At("turn:2", "fork"), "another second wish");
  EXPECT_EQ(At("turn:2", "one"), "second wish");
  // And once more, without what goes on being remembered.
  Write("again", Line("again", "p1", "first wish") +
                     Line("again", "q2", "another second wish", "p1"));
  Start("again", "resume");
  EXPECT_EQ(Session("again").parent, "fork");
  EXPECT_EQ(Prompt("again", "r3", "third"), 3u);
  EXPECT_EQ(At("turn:1", "again"), "first wish");
  EXPECT_EQ(At("turn:2", "again"), "another second wish");
}

TEST_F(ForksTest, OneThatNobodyAnnouncedIsFoundByItsFirstPrompt) {
  Talk();
  Write("silent", Line("silent", "p1", "first wish") +
                      Line("silent", "p2", "second wish", "p1") +
                      Line("silent", "s3", "third wish", "p2"));
  EXPECT_EQ(Prompt("silent", "s3", "third wish"), 3u);
  EXPECT_EQ(Session("silent").parent, "one");
  EXPECT_EQ(Session("silent").inherited, 2u);
}

TEST_F(ForksTest, OneWhoseFileComesLateIsFoundWhenTheTurnEnds) {
  Talk();
  Start("late", "resume");
  EXPECT_EQ(Prompt("late", "l3", "third wish"), 1u);
  EXPECT_EQ(Session("late").parent, std::nullopt);
  Write("late", Line("late", "p1", "first wish") +
                    Line("late", "p2", "second wish", "p1") +
                    Line("late", "l3", "third wish", "p2"));
  End("late");
  EXPECT_EQ(Session("late").parent, "one");
  EXPECT_EQ(Session("late").inherited, 2u);
  EXPECT_EQ(At("turn:1", "late"), "third wish") << "its own, as it was counted";
  EXPECT_EQ(At("turn:2", "late"), "second wish");
  EXPECT_EQ(Prompt("late", "l4", "fourth"), 3u);
}

// Claude Code 2.1.325, --fork-session: what it copies has the id of its own prompt.
TEST_F(ForksTest, AForkThatTheAgentMadeUnderANewPromptIdIsFoundByWhatWasAsked) {
  const std::string first = "the first of several wishes", second = "the second wish";
  Start("one");
  EXPECT_EQ(Prompt("one", "p1", first), 1u);
  End("one");
  EXPECT_EQ(Prompt("one", "p2", second), 2u);
  End("one");
  auto line = [](const std::string& uuid, const std::string& after,
                 const std::string& text) {
    return R"({"type":"user","sessionId":"n","promptId":"n3","uuid":")" + uuid +
           R"(","parentUuid":)" + (after.empty() ? "null" : "\"" + after + "\"") +
           R"(,"message":{"role":"user","content":")" + text + "\"}}\n" +
           R"({"type":"system","subtype":"stop_hook_summary","uuid":"end-)" + uuid +
           R"(","parentUuid":")" + uuid + "\"}\n";
  };
  Write("n", line("u1", "", first) + line("u2", "end-u1", second) +
                 line("u3", "end-u2", "the third wish"));
  const Transcript transcript =
      Must(ReadTranscript(disk_, agent_, AbsPath::Literal(PathOf("n"))));
  ASSERT_EQ(transcript.prompts.size(), 3u);
  EXPECT_EQ(transcript.prompts[0].anchor, "u1");
  EXPECT_EQ(transcript.prompts[2].anchor, "n3");
  EXPECT_EQ(Prompt("n", "n3", "the third wish"), 3u);
  EXPECT_EQ(Session("n").parent, "one");
  EXPECT_EQ(Session("n").inherited, 2u);
  EXPECT_EQ(At("turn:2", "n"), second);
}

TEST_F(ForksTest, AResumedSessionIsItself) {
  Talk();
  Start("one", "resume");
  EXPECT_EQ(Session("one").parent, std::nullopt);
  EXPECT_EQ(Prompt("one", "p3", "third wish"), 3u);
}

TEST_F(ForksTest, AHostNamesTheParentItself) {
  agent_ = AgentKind::kGeneric;
  Talk();
  HookEvent event = Event(EventKind::kSessionStart, "copy");
  event.parent_session = "one";
  event.parent_turns = 1;
  Tell(event);
  EXPECT_EQ(Session("copy").inherited, 1u);
  event = Event(EventKind::kSessionStart, "all");
  event.parent_session = "one";
  Tell(event);
  EXPECT_EQ(Session("all").inherited, 2u);
  event = Event(EventKind::kSessionStart, "helper");
  event.parent_session = "one";
  event.source = "subagent";
  Tell(event);
  EXPECT_EQ(Session("helper").inherited, 0u);
  EXPECT_TRUE(Session("helper").is_subagent);
  event = Event(EventKind::kSessionStart, "self");
  event.parent_session = "self";
  Tell(event);
  EXPECT_EQ(Session("self").parent, std::nullopt);
}

TEST_F(ForksTest, NothingIsReadWhereTranscriptsAreOff) {
  world_.settings.transcripts = Transcripts::kOff;
  Talk();
  Write("fork", Line("fork", "p1", "first wish"));
  Start("fork", "resume");
  EXPECT_EQ(Session("fork").parent, std::nullopt);
  auto opened = Must(world_.Open());
  EXPECT_TRUE(Must(ListTranscripts(*opened.catalog, std::nullopt)).empty());
  for (const LogRecord& record :
       Must(opened.catalog->ListRecords({.kind = RecordKind::kSession})))
    EXPECT_EQ(Must(ToSession(record)).transcript_path, std::nullopt);
  for (const LogRecord& record :
       Must(opened.catalog->ListRecords({.kind = RecordKind::kTurn})))
    EXPECT_EQ(Must(ToTurn(record)).anchor, std::nullopt);
}

// --- copies --------------------------------------------------------------------------

TEST_F(ForksTest, ATurnsEndKeepsWhatWasSaidAndAnchorsDoNot) {
  Talk();
  {
    auto opened = Must(world_.Open());
    auto copies = Must(ListTranscripts(*opened.catalog, "one"));
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].record.bytes,
              Line("one", "p1", "first wish").size() +
                  Line("one", "p2", "second wish", "p1").size());
  }
  world_.settings.transcripts = Transcripts::kAnchors;
  Start("two");
  Prompt("two", "t1", "kept as a prompt");
  Write("two", Line("two", "t1", "kept as a prompt"));
  End("two");
  auto opened = Must(world_.Open());
  EXPECT_TRUE(Must(ListTranscripts(*opened.catalog, "two")).empty());
  EXPECT_EQ(At("turn:1", "two"), "kept as a prompt");
}

TEST(WhatIsAtAPlace, IsNamed) {
  MemFs disk;
  Must(MakeDirs(disk, AbsPath::Literal("/a/dir"), 0755));
  const Fd a = Must(disk.OpenDir(AbsPath::Literal("/a")));
  const auto put = [&](const char* name, std::string_view text) {
    Must(ReplaceFile(disk, a, Name::Literal(name), AsBytes(text), 0600));
  };
  put("empty", "");
  put("full", "x");
  Must(disk.Symlink(a, Name::Literal("there"), "empty"));
  Must(disk.Symlink(a, Name::Literal("nowhere"), "/b"));
  const auto at = [&](std::string_view path) {
    return WhatIsAt(disk, AbsPath::Literal(path));
  };
  EXPECT_EQ(at("/a/gone"), "is gone");
  EXPECT_EQ(at("/b/gone"), "is gone");
  EXPECT_EQ(at("/a/empty"), "is empty");
  EXPECT_EQ(at("/a/there"), "is empty");
  EXPECT_EQ(at("/a/nowhere"), "is a symlink to what is not there");
  EXPECT_EQ(at("/a/dir"), "is a directory");
  for (const uint64_t call : {1u, 2u, 3u}) {  // the directory, its entry, the file
    FaultFs fs(disk, Fault::Errno(call, EACCES));
    EXPECT_EQ(WhatIsAt(fs, AbsPath::Literal("/a/full")),
              "cannot be read (Permission denied)")
        << call;
  }
}

TEST_F(ForksTest, AConversationIsReadFromTheCopyWhenTheAgentDeletedItsFile) {
  Talk();
  auto read = [&](bool from_copy) {
    auto opened = Must(world_.Open());
    ConversationPlace talk =
        Must(FindConversation(*opened.store, *opened.catalog, "one"));
    EXPECT_EQ(talk.copy.has_value(), from_copy);
    EXPECT_EQ(talk.path.bytes(), PathOf("one"));
    EXPECT_EQ(talk.agent, AgentKind::kClaude);
    const Transcript transcript = Must(ReadTranscript(disk_, talk.agent, talk.file()));
    std::string prompts;
    for (const TranscriptPrompt& prompt : transcript.prompts)
      prompts += prompt.text + ";";
    return prompts;
  };
  EXPECT_EQ(read(false), "first wish;second wish;");
  const std::string whole =
      Line("one", "p1", "first wish") + Line("one", "p2", "second wish", "p1");
  Write("one", "");  // the agent was killed, or its disk full
  EXPECT_EQ(read(true), "first wish;second wish;");
  Write("one", whole);
  EXPECT_EQ(read(false), "first wish;second wish;");
  const uint64_t files = disk_.used_inodes();
  Must(disk_.Unlink(Must(disk_.OpenDir(AbsPath::Literal("/agent"))),
                    Name::Literal("one.jsonl")));
  EXPECT_EQ(read(true), "first wish;second wish;");
  EXPECT_EQ(disk_.used_inodes(), files - 1) << "what was written for it is gone";
  auto opened = Must(world_.Open());
  EXPECT_EQ(FindConversation(*opened.store, *opened.catalog, "nobody").error().code,
            Errc::kNotFound);
}

TEST_F(ForksTest, WhatCannotBeKeptIsToldAndAFileThatIsNotThereIsNot) {
  Start("s");
  Prompt("s", "p", "wish");
  End("s");
  EXPECT_EQ(failed_, 0u);
  Write("s", "not a transcript at all");
  End("s");
  EXPECT_EQ(failed_, 1u);
}

TEST_F(ForksTest, ASubagentIsRecordedOnceWithWhoStartedIt) {
  Talk();
  Write("sub", Line("one", "x", "you are a subagent"));
  HookEvent event = Event(EventKind::kToolBegin, "one");
  event.subagent = "agent-7";
  event.subagent_type = "Explore";
  event.tool = ToolCall{.name = "Bash", .id = "t1", .what = "make"};
  Tell(event);
  event.kind = EventKind::kToolEnd;
  Tell(event);
  event.kind = EventKind::kSubagentEnd;
  event.tool.reset();
  event.subagent_transcript = PathOf("sub");
  Tell(event);
  // One that wrote nothing.
  event.subagent = "agent-8";
  event.subagent_transcript.reset();
  Tell(event);
  Tell(event);
  const SessionSummary one = Session("one");
  ASSERT_EQ(one.subagents.size(), 2u);
  EXPECT_EQ(one.subagents[0].id, "agent-7");
  EXPECT_EQ(one.subagents[0].type, "Explore");
  EXPECT_EQ(one.subagents[1].id, "agent-8");
  EXPECT_EQ(Session("agent-7").id, "") << "it is listed with its parent";
  auto opened = Must(world_.Open());
  auto copies = Must(ListTranscripts(*opened.catalog, "one"));
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].record.subagent, "agent-7");
  // The conversation is the session's own, not the subagent's.
  EXPECT_EQ(Must(FindConversation(*opened.store, *opened.catalog, "one")).path.bytes(),
            PathOf("one"));
}

// --- forks that the agent's own program made for a rewind
// -----------------------------

class NativeForksTest : public ForksTest {
 protected:
  // As the rewind records it.
  void Forked(const std::string& session, const std::string& parent, uint64_t turns) {
    auto opened = Must(world_.Open());
    auto writer = Must(opened.store->Begin());
    writer->Add(ToRecord(SessionRecord{.session = session,
                                       .agent = std::string(AgentName(agent_)),
                                       .parent = parent,
                                       .inherited_turns = turns,
                                       .transcript_path = PathOf(session)},
                         RecordId(opened.store->random().NewId()), opened.root.id, 5));
    Must(writer->Commit());
  }
  RewindPlan Plan(const std::string& session, uint64_t turn) {
    auto opened = Must(world_.Open());
    return Must(PlanRewind(*opened.store, *opened.catalog,
                           {.session = session,
                            .turn = turn,
                            .settings = &world_.settings,
                            .root = world_.project}));
  }
  static std::string CodexTurn(const std::string& turn, const std::string& text) {
    return R"({"type":"event_msg","payload":{"type":"task_started","turn_id":")" +
           turn + "\"}}\n" +
           R"({"type":"event_msg","payload":{"type":"user_message","message":")" +
           text + "\"}}\n" +
           R"({"type":"response_item","payload":{"type":"message","role":"assistant",)" +
           R"("content":[{"type":"output_text","text":"done"}]}})" + "\n";
  }
  // A session of Codex with two turns, and a fork of it that has `turns`.
  void TalkToCodex(uint64_t turns) {
    agent_ = AgentKind::kCodex;
    Start("one");
    EXPECT_EQ(Prompt("one", "p1", "first wish"), 1u);
    EXPECT_EQ(Prompt("one", "p2", "second wish"), 2u);
    Write("one", R"({"type":"session_meta","payload":{"id":"one"}})"
                 "\n" +
                     CodexTurn("p1", "first wish") + CodexTurn("p2", "second wish"));
    Forked("fork", "one", turns);
    Write("fork", kRefers);
    Start("fork", "resume");
  }
  // Codex 0.166.0 copies nothing.
  const std::string kRefers =
      R"({"type":"session_meta","payload":{"id":"fork","forked_from_id":"one",)"
      R"("history_base":{"thread_id":"one","end_ordinal_exclusive":9}}})"
      "\n";
};

TEST_F(NativeForksTest, TheirTurnsCountOnThoughTheFileHasNoneOfThose) {
  TalkToCodex(2);
  EXPECT_EQ(Prompt("fork", "q3", "third wish"), 3u);
  EXPECT_EQ(Session("fork").inherited, 2u);
  EXPECT_EQ(At("turn:2", "fork"), "second wish");
}

TEST_F(NativeForksTest, ATurnOfTheirOwnIsTakenBackAndTheRestIsStillReferredTo) {
  TalkToCodex(1);
  EXPECT_EQ(Prompt("fork", "q2", "another wish"), 2u);
  Write("fork", kRefers + CodexTurn("q2", "another wish"));
  const RewindPlan plan = Plan("fork", 2);
  EXPECT_EQ(plan.prompt, "another wish");
  EXPECT_FALSE(plan.chat.record.forked.empty()) << "it would begin anew";
  ASSERT_TRUE(plan.native);
  EXPECT_EQ(plan.native->session, "fork");
  EXPECT_EQ(plan.native->last_turn, "p1");
  ASSERT_EQ(plan.chat.files.size(), 1u);
  std::string copy;
  Must(plan.chat.files[0].content([&](ByteSpan bytes) {
    copy += AsText(bytes);
    return Ok();
  }));
  EXPECT_NE(copy.find(R"("thread_id":"one")"), std::string::npos) << copy;
  EXPECT_EQ(copy.find("another wish"), std::string::npos) << copy;
}

TEST_F(NativeForksTest, AnInheritedTurnIsTakenBackInTheFileThatHasIt) {
  TalkToCodex(2);
  const RewindPlan plan = Plan("fork", 2);
  EXPECT_EQ(plan.chat.record.session, "fork");
  EXPECT_EQ(plan.prompt, "second wish");
  EXPECT_EQ(plan.chat.record.inherited, 1u);
  EXPECT_GT(plan.chat.record.kept, 0u);
  ASSERT_TRUE(plan.native);
  EXPECT_EQ(plan.native->session, "one");
  EXPECT_EQ(plan.native->last_turn, "p1");
  EXPECT_EQ(plan.chat.files.size(), 1u);
}

// As `codex fork` makes them, without a word to us. Ordinals are counted on.
class CodexForksTest : public NativeForksTest {
 protected:
  CodexForksTest() { agent_ = AgentKind::kCodex; }
  static std::string Meta(const std::string& session, uint64_t ordinal,
                          const std::string& of = "", uint64_t until = 0) {
    std::string line = R"({"ordinal":)" + std::to_string(ordinal) +
                       R"(,"type":"session_meta","payload":{"id":")" + session + '"';
    if (!of.empty())
      line += R"(,"forked_from_id":")" + of + R"(","history_base":{"thread_id":")" +
              of + R"(","end_ordinal_exclusive":)" + std::to_string(until) + "}";
    return line + "}}\n";
  }
  static std::string Turn(const std::string& turn, uint64_t ordinal,
                          const std::string& text) {
    const auto counted = [](uint64_t at) {
      return R"({"ordinal":)" + std::to_string(at) +
             R"(,"type":"event_msg","payload":)";
    };
    return counted(ordinal) + R"({"type":"task_started","turn_id":")" + turn +
           "\"}}\n" + counted(ordinal + 1) + R"({"type":"user_message","message":")" +
           text + "\"}}\n";
  }
  void TalkTwice() {
    Start("one");
    EXPECT_EQ(Prompt("one", "p1", "first wish"), 1u);
    EXPECT_EQ(Prompt("one", "p2", "second wish"), 2u);
    Write("one",
          Meta("one", 0) + Turn("p1", 1, "first wish") + Turn("p2", 3, "second wish"));
  }
};

// Mutant: what-a-fork-refers-to-is-not-its-own.
TEST_F(CodexForksTest, HaveTheTurnsOfTheFileThatTheyReferTo) {
  TalkTwice();
  Write("all", Meta("all", 5, "one", 5));
  Start("all", "fork");
  EXPECT_EQ(Session("all").parent, "one");
  EXPECT_EQ(Session("all").inherited, 2u);
  EXPECT_EQ(Prompt("all", "q3", "third wish"), 3u);
  EXPECT_EQ(At("turn:2", "all"), "second wish");
  // Of a part of it; and of the fork.
  Write("part", Meta("part", 3, "one", 3));
  EXPECT_EQ(Prompt("part", "r2", "another second wish"), 2u);
  EXPECT_EQ(Session("part").inherited, 1u);
  Write("all", Meta("all", 5, "one", 5) + Turn("q3", 6, "third wish"));
  Write("again", Meta("again", 8, "all", 8));
  Start("again", "fork");
  EXPECT_EQ(Session("again").parent, "all");
  EXPECT_EQ(Session("again").inherited, 3u);
  EXPECT_EQ(At("turn:1", "again"), "first wish");
  // A fork of a fork that had no turn of its own: of the one that asked.
  Write("empty", Meta("empty", 6, "all", 6));
  Start("empty", "fork");
  EXPECT_EQ(Session("empty").parent, "one");
  EXPECT_EQ(Session("empty").inherited, 2u);
}

// Mutant: what-is-referred-to-is-there.
TEST_F(CodexForksTest, GoAlongToAnotherDirectoryWholeOrNotAtAll) {
  TalkTwice();
  Write("one", Meta("one", 0) + Turn("p1", 1, "first wish") +
                   Turn("p2", 3, "second wish") + Turn("p3", 5, "third wish"));
  Write("fork", Meta("fork", 5, "one", 5));
  Start("fork", "fork");
  auto along = [&](std::optional<uint64_t> turn) {
    auto opened = Must(world_.Open());
    return PlanForkChat(*opened.store, *opened.catalog,
                        {.session = "fork",
                         .turn = turn,
                         .from = world_.project,
                         .to = AbsPath::Literal("/elsewhere")});
  };
  auto is_whole = [&](std::optional<uint64_t> turn) {
    const auto planned = Must(along(turn));
    ASSERT_TRUE(planned);
    ASSERT_EQ(planned->chat.files.size(), 1u);
    std::string copy;
    Must(planned->chat.files[0].content([&](ByteSpan bytes) {
      copy += AsText(bytes);
      return Ok();
    }));
    EXPECT_EQ(copy, Meta(planned->chat.record.forked, 0) + Turn("p1", 1, "first wish") +
                        Turn("p2", 3, "second wish"));
    EXPECT_EQ(planned->chat.record.session, "fork");
    EXPECT_EQ(planned->chat.record.inherited, 2u);
  };
  is_whole(std::nullopt);  // nothing was said in it yet
  EXPECT_EQ(Prompt("fork", "q3", "another wish"), 3u);
  EXPECT_EQ(Prompt("fork", "q4", "one more"), 4u);
  Write("fork", Meta("fork", 5, "one", 5) + Turn("q3", 6, "another wish") +
                    Turn("q4", 8, "one more"));
  is_whole(3);
  for (const std::optional<uint64_t> turn : {std::optional<uint64_t>(4), {}}) {
    const auto refused = along(turn);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Errc::kUnsupported);
    EXPECT_EQ(refused.error().what,
              "the file of session fork has only what was said since codex forked it, "
              "from turn 3 on; what came before is in that of session one");
  }
  // A fork of the fork that had said nothing either.
  Write("again", Meta("again", 6, "fork", 6));
  Write("fork", Meta("fork", 5, "one", 5) + Turn("q3", 6, "another wish"));
  Start("again", "fork");
  auto opened = Must(world_.Open());
  const auto again = Must(PlanForkChat(
      *opened.store, *opened.catalog,
      {.session = "again", .from = world_.project, .to = AbsPath::Literal("/else")}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->chat.record.kept, 2u);
}

// Mutant: what-went-since-had-gone-before.
TEST_F(CodexForksTest, GoAlongWithWhatTheyReferToAsItWasThen) {
  auto rolled_back = [](uint64_t ordinal) {
    return R"({"ordinal":)" + std::to_string(ordinal) +
           R"(,"type":"event_msg","payload":{"type":"thread_rolled_back",)"
           R"("num_turns":1}})"
           "\n";
  };
  TalkTwice();
  const std::string two =
      Meta("one", 0) + Turn("p1", 1, "first wish") + Turn("p2", 3, "second wish");
  Write("fork", Meta("fork", 5, "one", 5));
  Start("fork", "fork");
  auto kept = [&]() -> std::optional<uint64_t> {
    auto opened = Must(world_.Open());
    const auto planned = PlanForkChat(*opened.store, *opened.catalog,
                                      {.session = "fork",
                                       .from = world_.project,
                                       .to = AbsPath::Literal("/elsewhere")});
    if (!planned.ok() || !*planned) return std::nullopt;
    return (*planned)->chat.record.kept;
  };
  EXPECT_EQ(kept(), 2u);
  // The session itself takes its second turn back, behind the fork, and goes on.
  Write("one", two + rolled_back(5));
  EXPECT_EQ(kept(), std::nullopt) << "a copy would begin with the first turn alone";
  Write("one", two + rolled_back(5) + Turn("p3", 6, "another second wish"));
  EXPECT_EQ(kept(), std::nullopt);
  // Behind a turn of its own: all that the fork has comes before that.
  Write("one", two + Turn("p3", 5, "third wish") + rolled_back(7) + rolled_back(8));
  EXPECT_EQ(kept(), 2u);
  // Before the fork was made.
  Write("one", two + rolled_back(5) + Turn("p3", 6, "another second wish"));
  Write("fork", Meta("fork", 8, "one", 8));
  EXPECT_TRUE(kept());
  Write("one",
        two + rolled_back(5) + Turn("p3", 6, "another second wish") + rolled_back(8));
  EXPECT_EQ(kept(), std::nullopt);
}

// Mutant: half-a-conversation-is-summarized.
TEST_F(CodexForksTest, AreSummarizedAsFarAsTheyAreThere) {
  TalkTwice();
  Write("fork", Meta("fork", 5, "one", 5));
  Start("fork", "fork");
  Prompt("fork", "q3", "another wish");
  Prompt("fork", "q4", "one more");
  Write("fork", Meta("fork", 5, "one", 5) + Turn("q3", 6, "another wish") +
                    Turn("q4", 8, "one more"));
  auto planned = [&](std::optional<uint64_t> from, std::optional<uint64_t> until) {
    auto opened = Must(world_.Open());
    auto plan = PlanSummary(
        *opened.store, *opened.catalog,
        {.session = "fork", .from = from, .until = until, .root = world_.project});
    return plan.ok() ? std::to_string(plan->chat.record.summary->first) + " to " +
                           std::to_string(plan->chat.record.summary->last)
                     : plan.error().hint;
  };
  const std::string hint = "of what is there: belay summarize fork --from turn:3";
  EXPECT_EQ(planned({}, 4), hint);
  EXPECT_EQ(planned({}, 3), hint);
  EXPECT_EQ(planned(2, 4), hint);
  EXPECT_EQ(planned({}, {}), hint);
  EXPECT_EQ(planned(3, 4), "3 to 3");
  EXPECT_EQ(planned(4, {}), "4 to 4");
}

TEST_F(CodexForksTest, OfAFileThatNobodyKnowsHaveNone) {
  TalkTwice();
  Must(disk_.Unlink(Must(disk_.OpenDir(AbsPath::Literal("/agent"))),
                    Name::Literal("one.jsonl")));
  Write("fork", Meta("fork", 5, "one", 5));
  Start("fork", "fork");
  EXPECT_EQ(Session("fork").parent, "one");
  EXPECT_EQ(Session("fork").inherited, 0u);
  // One that leads back to itself ends, too.
  Write("loop", Meta("loop", 5, "loop", 5));
  Start("loop", "fork");
  EXPECT_EQ(Session("loop").parent, std::nullopt);
}

// As `claude --resume one --fork-session` says it, before its file is there.
TEST_F(ForksTest, OfClaudeAreKnownByItsCommandLine) {
  Talk();
  HookEvent event = Event(EventKind::kSessionStart, "fork");
  event.source = "fork";
  event.parent_session = "one";
  Tell(event);
  EXPECT_EQ(Prompt("fork", "q3", "third wish"), 3u);
  EXPECT_EQ(Session("fork").parent, "one");
  // Whom nobody knows is nobody's parent; the file tells.
  event = Event(EventKind::kSessionStart, "other");
  event.parent_session = "nobody";
  Tell(event);
  EXPECT_EQ(Session("other").parent, std::nullopt);
  Write("other", Line("other", "p1", "first wish"));
  EXPECT_EQ(Prompt("other", "r2", "another second wish"), 2u);
  EXPECT_EQ(Session("other").parent, "one");
}

// As opencode makes them: messages have other ids, nobody is named; the plugin lists
// what was asked.
TEST_F(NativeForksTest, OfOpencodeAreKnownByWhatWasAsked) {
  agent_ = AgentKind::kOpencode;
  Start("one");
  EXPECT_EQ(Prompt("one", "msg_1", "the first wish of all"), 1u);
  EXPECT_EQ(Prompt("one", "msg_2", "and a second one"), 2u);
  HookEvent event = Event(EventKind::kPrompt, "fork");
  event.transcript.reset();
  event.anchor = "msg_9";
  event.prompt = "third wish";
  event.earlier = {{.role = "user", .id = "msg_7", .text = "the first wish of all"},
                   {.role = "user", .id = "msg_8", .text = "and a second one"}};
  auto made = Tell(event);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->turn, 3u);
  EXPECT_EQ(Session("fork").parent, "one");
  EXPECT_EQ(Session("fork").inherited, 2u);
  EXPECT_EQ(At("turn:1", "fork"), "the first wish of all");
  // One that is resumed lists its own.
  event.session = "one";
  event.anchor = "msg_3";
  event.earlier = {{.role = "user", .id = "msg_1", .text = "the first wish of all"},
                   {.role = "user", .id = "msg_2", .text = "and a second one"}};
  made = Tell(event);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->turn, 3u);
  EXPECT_EQ(Session("one").parent, std::nullopt);
}

// opencode 1.18.33 gives the copies of messages other ids, and takes a message that is
// not in the session for a time.
TEST_F(NativeForksTest, OpencodeIsAskedForTheSessionWhoseMessageItIs) {
  agent_ = AgentKind::kOpencode;
  Start("one");
  Prompt("one", "msg_1", "first wish");
  Prompt("one", "msg_2", "second wish");
  Forked("fork", "one", 2);
  EXPECT_EQ(Prompt("fork", "msg_9", "third wish"), 3u);
  RewindPlan plan = Plan("fork", 2);
  EXPECT_EQ(plan.chat.record.session, "fork");
  ASSERT_TRUE(plan.native);
  EXPECT_EQ(plan.native->session, "one");
  EXPECT_EQ(plan.native->message, "msg_2");
  plan = Plan("fork", 3);
  ASSERT_TRUE(plan.native);
  EXPECT_EQ(plan.native->session, "fork");
  EXPECT_EQ(plan.native->message, "msg_9");
}

// Its own fork of what was said elsewhere would stay there.
// Mutant: a-fork-is-rewound-to-its-source.
TEST_F(NativeForksTest, WhatAForkOfADirectoryInheritedIsCopiedToIt) {
  agent_ = AgentKind::kOpencode;
  Start("one");
  Prompt("one", "msg_1", "first wish");
  Prompt("one", "msg_2", "second wish");
  Forked("fork", "one", 2);
  EXPECT_FALSE(Plan("fork", 2).native->to);
  auto opened = Must(world_.Open());
  const AbsPath other = AbsPath::Literal("/top/other");
  const RewindPlan plan = Must(PlanRewind(
      *opened.store, *opened.catalog,
      {.session = "fork", .turn = 2, .settings = &world_.settings, .root = other}));
  ASSERT_TRUE(plan.native);
  EXPECT_EQ(plan.native->session, "one");
  EXPECT_EQ(plan.native->message, "msg_2");
  EXPECT_EQ(plan.native->from, std::vector{world_.project});
  EXPECT_EQ(plan.native->to, other);
}

}  // namespace
}  // namespace belay::test
