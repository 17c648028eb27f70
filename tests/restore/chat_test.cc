// Conversations that go back with files, or alone: what is published, and when.

#include <gmock/gmock.h>

#include "base/fault_fs.h"
#include "restore/fork_note.h"
#include "restore/publication.h"
#include "store/batch_writer.h"
#include "support/chat_plan.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const AbsPath kTalk = AbsPath::Literal("/m/talk");
constexpr std::string_view kText = "what was said before\nand answered\n";

std::vector<std::string> NamesIn(Fs& fs, const AbsPath& path) {
  std::vector<std::string> names;
  for (const DirEntry& entry : Must(fs.List(Must(fs.OpenDir(path)))))
    names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

// One conversation in a directory of its own: a file, or a folder.
class PublicationTest : public ::testing::TestWithParam<bool> {
 protected:
  PublicationTest()
      : plan(ChatPlanIn(kTalk, std::string(kText), GetParam())),
        name(GetParam() ? "new" : "new.jsonl") {
    Must(MakeDirs(disk, kTalk, 0700));
    Must(PutFile(disk, Talk(), P("old.jsonl"), "the original"));
    disk.Crash(CrashPolicy::KeepAll());
    place = Must(PlaceOf(disk, AbsPath::Literal("/m/project"), plan));
  }
  Fd Talk() { return Must(disk.OpenDir(kTalk)); }
  std::string Stage(const char* what) { return std::string(".stage/") + what; }
  std::string Text(const std::string& path) {
    auto text = GetFile(disk, Talk(), P(path));
    return text.ok() ? *text : "-";
  }
  std::string Published() { return Text(GetParam() ? "new/events.jsonl" : name); }

  MemFs disk;
  ChatPlan plan;
  const std::string name;
  PublicationPlace place;
};

// Mutant: publish-unflushed.
TEST_P(PublicationTest, WhatIsPublishedIsDurableAndHasItsModes) {
  {
    Publication it(disk, place, ".stage");
    ASSERT_TRUE(Must(it.Open()));
    Must(it.Prepare(plan, 1000));
    EXPECT_EQ(Published(), "-") << "not before everything is ready";
    Must(it.Publish());
  }
  disk.Crash(CrashPolicy::DropUnsynced());
  EXPECT_EQ(Published(), kText);
  EXPECT_EQ(Text("old.jsonl"), "the original");
  Publication it(disk, place, ".stage");
  ASSERT_TRUE(Must(it.Open()));
  Must(it.Publish());  // again, by a recovery
  Must(it.Tidy());
  EXPECT_THAT(NamesIn(disk, kTalk), ElementsAre(name, "old.jsonl"));
  const FileStat there = Must(disk.StatAt(Talk(), N(name)));
  EXPECT_EQ(there.mode, GetParam() ? 0700u : 0640u);
  if (!GetParam()) return;
  const Fd folder = Must(disk.Open(Talk(), N("new"), OpenMode::Directory()));
  EXPECT_EQ(Must(disk.StatAt(folder, N("events.jsonl"))).mode, 0640u);
  EXPECT_EQ(Must(disk.StatAt(folder, N("workspace.yaml"))).mode, 0600u);
  EXPECT_EQ(Text("new/workspace.yaml"), "id: new\n");
}

// Mutant: published-stays-half-way.
TEST_P(PublicationTest, TakenBackNothingOfItIsLeft) {
  Publication it(disk, place, ".stage");
  ASSERT_TRUE(Must(it.Open()));
  Must(it.Prepare(plan, 1000));
  Must(it.Publish());
  Must(it.Verify());
  Must(it.TakeBack());
  EXPECT_FALSE(Must(it.IsPrepared())) << "a recovery goes on taking it back";
  Must(it.Tidy());
  EXPECT_THAT(NamesIn(disk, kTalk), ElementsAre("old.jsonl"));
}

// Mutant: publish-half.
TEST_P(PublicationTest, WhatSomebodyElsePutInItsPlaceIsNeitherTakenForItNorRemoved) {
  {
    Fault flush = Fault::Errno(1, EIO);
    flush.only = {FsCall::kSync};
    FaultFs half(disk, flush);
    Publication it(half, place, ".stage");
    ASSERT_TRUE(Must(it.Open()));
    const Status failed = it.Prepare(plan, 1000);
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.error().what, HasSubstr("the conversation, in /m/talk: "));
  }
  ASSERT_TRUE(
      Must(disk.List(Must(disk.Open(Talk(), N(".stage"), OpenMode::Directory()))))
          .size() == 1u);
  if (GetParam()) Must(MakeDirs(disk, kTalk.Join(P("new")), 0755));
  const std::string theirs = GetParam() ? "new/events.jsonl" : name;
  Must(PutFile(disk, Talk(), P(theirs), "somebody else's"));
  Publication it(disk, place, ".stage");
  ASSERT_TRUE(Must(it.Open()));
  EXPECT_FALSE(Must(it.IsPrepared()));
  Must(it.TakeBack());
  Must(it.Tidy());
  EXPECT_EQ(Published(), "somebody else's");
  EXPECT_THAT(NamesIn(disk, kTalk), ElementsAre(name, "old.jsonl"));
}

TEST_P(PublicationTest, NothingThatIsThereIsReplaced) {
  if (GetParam()) Must(MakeDirs(disk, kTalk.Join(P("new")), 0755));
  Must(PutFile(disk, Talk(), P(GetParam() ? "new/events.jsonl" : name), "theirs"));
  Publication it(disk, place, ".stage");
  ASSERT_TRUE(Must(it.Open()));
  Must(it.Prepare(plan, 1000));
  EXPECT_EQ(it.Publish().error().code, Errc::kExists);
  Must(it.TakeBack());
  Must(it.Tidy());
  EXPECT_EQ(Published(), "theirs");
}

TEST_P(PublicationTest, WhatIsReadBackOtherwiseIsSaid) {
  Publication it(disk, place, ".stage");
  ASSERT_TRUE(Must(it.Open()));
  Must(it.Prepare(plan, 1000));
  Must(it.Publish());
  Must(PutFile(disk, Talk(), P(GetParam() ? "new/events.jsonl" : name), "rotten"));
  EXPECT_THAT(it.Verify().error().what, HasSubstr("is not what was written"));
}

TEST_P(PublicationTest, ADirectoryThatIsAnotherOneIsNotWrittenTo) {
  Must(disk.Rename(Must(disk.OpenDir(AbsPath::Literal("/m"))), N("talk"),
                   Must(disk.OpenDir(AbsPath::Literal("/m"))), N("moved"),
                   RenameHow::kNoReplace));
  Must(MakeDirs(disk, kTalk, 0700));
  Publication it(disk, place, ".stage");
  EXPECT_FALSE(Must(it.Open()));
}

// Mutant: publish-in-the-root.
TEST_P(PublicationTest, InTheProtectedDirectoryItselfIsRefused) {
  for (const char* root : {"/m/talk", "/m", "/"}) {
    auto refused = PlaceOf(disk, AbsPath::Literal(root), plan);
    ASSERT_FALSE(refused.ok()) << root;
    EXPECT_EQ(refused.error().code, Errc::kRefused);
    EXPECT_THAT(refused.error().what, HasSubstr("in the directory itself"));
  }
  EXPECT_TRUE(PlaceOf(disk, AbsPath::Literal("/m/tal"), plan).ok());
}

// Mutant: a-link-into-the-root-is-outside.
TEST(PublicationPlaces, AConversationIsWhereItsLinksLead) {
  MemFs disk;
  const AbsPath root = AbsPath::Literal("/m/root"), talk = AbsPath::Literal("/m/talk");
  for (const AbsPath& dir : {root, talk}) Must(MakeDirs(disk, dir, 0700));
  Must(PutFile(disk, Must(disk.OpenDir(root)), P("kept"), "said"));
  Must(MakeDirs(disk, root.Join(P("folder")), 0700));
  Must(PutFile(disk, Must(disk.OpenDir(root)), P("folder/events"), "said"));
  const Fd dir = Must(disk.OpenDir(talk));
  Must(PutFile(disk, dir, P("file"), "said"));
  Must(disk.Symlink(dir, Name::Literal("link"), "/m/root/kept"));
  Must(disk.Symlink(dir, Name::Literal("folder"), "/m/root/folder"));
  auto is_outside = [&](const std::string& path) {
    return CheckOutside(disk, root, AbsPath::Literal(path)).ok();
  };
  EXPECT_TRUE(is_outside("/m/talk/file"));
  EXPECT_TRUE(is_outside("/m/talk/gone"));
  EXPECT_FALSE(is_outside("/m/root/gone"));
  EXPECT_FALSE(is_outside("/m/talk/link"));
  EXPECT_FALSE(is_outside("/m/talk/folder/events"));
}

INSTANTIATE_TEST_SUITE_P(Of, PublicationTest, ::testing::Bool(),
                         [](const auto& row) { return row.param ? "Folder" : "File"; });

// --- with a rollback -----------------------------------------------------------------

class ChatTest : public RestoreTest {
 protected:
  ChatTest() {
    Must(MakeDirs(disk, kTalk, 0700));
    Must(PutFile(disk, Must(disk.OpenDir(kTalk)), P("old.jsonl"), "the original"));
    Put("a", "before");
    Must(world.Capture("start"));
    Put("a", "after");
    world.chat = &chat;
  }
  std::vector<std::string> There() { return NamesIn(disk, kTalk); }
  std::string FileOf(MemFs& on, const AbsPath& dir, std::string_view name) {
    auto text = GetFile(on, Must(on.OpenDir(dir)), P(name));
    return text.ok() ? *text : "-";
  }
  ChatPlan chat = ChatPlanIn(kTalk, std::string(kText), false);
};

TEST_F(ChatTest, FilesAndConversationGoBackAndForthTogether) {
  const Outcome done = Must(world.Rollback("start"));
  ASSERT_TRUE(done.operation && done.operation->chat);
  EXPECT_TRUE(done.verified);
  EXPECT_EQ(Read("a"), "before");
  EXPECT_THAT(There(), ElementsAre("new.jsonl", "old.jsonl"));
  EXPECT_EQ(*Operations().back().chat, chat.record);
  world.chat = nullptr;
  const Outcome undone = Must(world.Undo());
  ASSERT_TRUE(undone.chat);
  EXPECT_EQ(Read("a"), "after");
  EXPECT_THAT(There(), ElementsAre("new.jsonl", "old.jsonl")) << "nothing is deleted";
  Must(world.Redo());
  EXPECT_EQ(Read("a"), "before");
}

TEST_F(ChatTest, AloneItMovesNoFile) {
  const std::string tree = Tree();
  chat.record.alone = true;
  const Outcome done = Must(world.Rewind());
  ASSERT_TRUE(done.operation && done.operation->chat);
  EXPECT_EQ(Tree(), tree);
  EXPECT_THAT(There(), ElementsAre("new.jsonl", "old.jsonl"));
  world.chat = nullptr;
  Must(world.Undo());
  EXPECT_EQ(Tree(), tree);
  EXPECT_THAT(There(), ElementsAre("new.jsonl", "old.jsonl"));
}

// Broken at every call, and then recovered: both, or neither.
class BrokenChatTest : public ChatTest {
 protected:
  // A rollback of both with this fault in it. False: it did not fire.
  bool Break(MemFs& on, const Fault& fault, bool* done = nullptr) {
    FaultFs broken(on, fault);
    RestoreWorld it(broken, AbsPath::Literal("/m"), 7);
    it.chat = &chat;
    const bool ok = it.Rollback("start").ok();
    if (done != nullptr) *done = ok;
    return broken.fired();
  }
  bool BreakRecovery(MemFs& on, const Fault& fault) {
    FaultFs broken(on, fault);
    (void)RestoreWorld(broken, AbsPath::Literal("/m"), 8).Recover();
    return broken.fired();
  }
  std::unique_ptr<MemFs> Durable() {
    std::unique_ptr<MemFs> copy = disk.Clone();
    copy->Crash(CrashPolicy::KeepAll());
    return copy;
  }
  // Whether it is both, after a recovery; what is neither is a failure.
  bool IsBoth(MemFs& on, const std::string& when) {
    RestoreWorld it(on, AbsPath::Literal("/m"), 9);
    auto recovered = it.Recover();
    EXPECT_TRUE(recovered.ok()) << when << ": " << recovered.error().what;
    const bool folder = !chat.folder.empty();
    const bool back = FileOf(on, it.project, "a") == "before";
    const auto names = NamesIn(on, kTalk);
    if (!back) {
      EXPECT_EQ(FileOf(on, it.project, "a"), "after") << when;
      EXPECT_THAT(names, ElementsAre("old.jsonl")) << when;
      return false;
    }
    EXPECT_THAT(names, ElementsAre(folder ? "new" : "new.jsonl", "old.jsonl")) << when;
    EXPECT_EQ(FileOf(on, folder ? kTalk.Join(P("new")) : kTalk,
                     folder ? "events.jsonl" : "new.jsonl"),
              kText)
        << when;
    EXPECT_EQ(FileOf(on, kTalk, "old.jsonl"), "the original") << when;
    return true;
  }
};

// Mutants: code-without-chat, tidied-unflushed.
TEST_F(BrokenChatTest, CutAnywhereItIsBothOrNeither) {
  for (const bool folder : {false, true}) {
    chat = ChatPlanIn(kTalk, std::string(kText), folder);
    int both = 0, neither = 0;
    for (uint64_t at = 1;; ++at) {
      const std::unique_ptr<MemFs> copy = Durable();
      Fault cut = Fault::PowerCut(at);
      cut.mutating_only = true;
      bool done = false;
      const bool fired = Break(*copy, cut, &done);
      copy->Crash(at % 2 == 0 && fired ? CrashPolicy::KeepAll()
                                       : CrashPolicy::DropUnsynced());
      const bool is_both = IsBoth(*copy, "cut at " + std::to_string(at));
      EXPECT_TRUE(is_both || !done) << "cut at " << at;
      ++(is_both ? both : neither);
      if (!fired) break;
    }
    EXPECT_GT(both, 5);
    EXPECT_GT(neither, 20);
  }
}

// Mutant: closed-means-empty.
TEST_F(BrokenChatTest, ARecoveryThatFailsAnywhereIsGoneOnWithLater) {
  uint64_t last = 0;
  for (bool fired = true; fired; ++last) {
    Fault cut = Fault::PowerCut(last + 1);
    cut.mutating_only = true;
    fired = Break(*Durable(), cut);
  }
  ASSERT_GT(last, 40u);
  uint64_t points = 0;
  // Among them: not all ready, ready, published, recorded.
  for (uint64_t at = last - 40; at < last; at += 8) {
    const std::unique_ptr<MemFs> interrupted = Durable();
    Fault cut = Fault::PowerCut(at);
    cut.mutating_only = true;
    ASSERT_TRUE(Break(*interrupted, cut));
    interrupted->Crash(CrashPolicy::KeepAll());
    for (uint64_t call = 1;; ++call) {
      const std::unique_ptr<MemFs> copy = interrupted->Clone();
      if (!BreakRecovery(*copy, Fault::Errno(call, EROFS))) break;
      ++points;
      IsBoth(*copy, "cut at " + std::to_string(at) + ", then call " +
                        std::to_string(call) + " of the recovery fails");
    }
  }
  EXPECT_GT(points, 300u);
}

// --- what an agent's own program made ------------------------------------------------

class ForkNoteTest : public ChatTest {
 protected:
  ForkNoteTest() : opened(Must(world.Open())) {}
  std::optional<std::string> Settle() {
    return SettleForkNote(*opened.store, opened.root.id);
  }
  void Note(const std::string& forked, int64_t pid = 77) {
    Must(NoteFork(
        *opened.store, opened.root.id,
        {.agent = "opencode", .session = "old", .forked = forked, .pid = pid}));
  }
  bool IsNoted() { return LoadForkNote(*opened.store, opened.root.id).has_value(); }
  RestoreWorld::Opened opened;
};

// Mutant: orphans-are-forgotten.
TEST_F(ForkNoteTest, OneThatNobodyUsesIsNamedOnce) {
  EXPECT_FALSE(Settle());
  Note("ses_9");
  auto said = Settle();
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, HasSubstr("opencode was asked for a copy of the conversation of "
                               "session old, ses_9"));
  EXPECT_FALSE(IsNoted());
  EXPECT_FALSE(Settle());
  Note("");
  said = Settle();
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, HasSubstr("was about to copy"));
}

// Mutant: what-was-to-be-imported-stays.
TEST_F(ForkNoteTest, WhatTheProgramIsToReadGoesWithIt) {
  Note("ses_9");
  for (const std::string text : {"longer", "one"}) {
    const RelPath at = Must(WriteForkFile(
        *opened.store, opened.root.id,
        [&text](const ForkFileSink& sink) { return sink(AsBytes(text)); }));
    Fd file = Must(disk.OpenBeneath(opened.store->dir(), at, OpenMode::Read()));
    const FileStat stat = Must(disk.Stat(file));
    EXPECT_EQ(stat.mode, 0600u);
    EXPECT_EQ(stat.size, text.size());
  }
  EXPECT_TRUE(Settle());
  Fd dir = Must(
      disk.Open(opened.store->dir(), Name::Literal("journal"), OpenMode::Directory()));
  EXPECT_EQ(Must(disk.List(dir)).size(), 0u);
}

TEST_F(ForkNoteTest, ASessionThatIsKnownIsUsed) {
  auto writer = Must(opened.store->Begin());
  writer->Add(ToRecord(SessionRecord{.session = "ses_9", .agent = "opencode"},
                       RecordId(opened.store->random().NewId()), opened.root.id, 1));
  Must(writer->Commit());
  Note("ses_9");
  EXPECT_FALSE(Settle());
  EXPECT_FALSE(IsNoted());
}

TEST_F(ForkNoteTest, WhoeverIsStillAtItIsLeftAlone) {
  Note("ses_9");
  Must(MakeDirs(disk, AbsPath::Literal("/proc/77"), 0755));
  EXPECT_FALSE(Settle());
  EXPECT_TRUE(IsNoted());
}

TEST_F(ForkNoteTest, OneThatTheOperationUsesIsNoOrphan) {
  chat.files.clear();
  chat.record.forked = "ses_9";
  chat.record.path.clear();
  Must(world.Rollback("start"));
  Note("ses_9");
  EXPECT_FALSE(Settle());
  EXPECT_FALSE(IsNoted());
}

}  // namespace
}  // namespace belay::test
