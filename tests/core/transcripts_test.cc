// Copies of transcripts: they grow as the file does, for what it grew by.

#include "core/transcripts.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/mem_fs.h"
#include "core/retention.h"
#include "core/sessions.h"
#include "store/gc.h"
#include "store/verify.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

class TranscriptsTest : public ::testing::Test {
 protected:
  TranscriptsTest() {
    settings.store_floor = {};
    settings.store_cap = {};
    store = Must(world.Open());
    Must(MakeDirs(disk, AbsPath::Literal("/agent"), 0755));
    root = RootId(world.random.NewId());
  }
  Fd Dir() { return Must(disk.OpenDir(AbsPath::Literal("/agent"))); }
  void Write(const std::string& text, const std::string& name = "s.jsonl") {
    Must(PutFile(disk, Dir(), P(name), text));
  }
  void Append(const std::string& text, const std::string& name = "s.jsonl") {
    Fd file = Must(disk.Open(Dir(), Name::Literal(name), OpenMode::ReadWrite()));
    Must(WriteFull(disk, file, Must(disk.Stat(file)).size, AsBytes(text)));
  }
  KeepRequest Request(const std::string& name = "s.jsonl") {
    KeepRequest request{.session = "s",
                        .agent = "claude",
                        .path = AbsPath::Literal("/agent").Join(P(name)),
                        .root = root,
                        .settings = &settings,
                        .lock_wait_ms = 100};
    return request;
  }
  Result<KeptNow> Keep(const std::string& name = "s.jsonl") {
    return KeepTranscript(*store, Request(name));
  }
  std::vector<TranscriptCopy> Copies(const std::string& session = "s") {
    auto catalog = Must(Catalog::Open(*store));
    return Must(ListTranscripts(*catalog, session));
  }
  std::string Text(const TranscriptCopy& copy) {
    std::string text;
    Must(ReadTranscriptCopy(*store, copy, [&](ByteSpan piece) -> Status {
      text += AsText(piece);
      return Ok();
    }));
    return text;
  }
  // Lines of JSON, none of which is the same.
  static std::string Lines(uint64_t from, size_t bytes) {
    std::string out;
    for (uint64_t i = from; out.size() < bytes; ++i) {
      const std::string mixed = std::to_string(i * 0x9e3779b97f4a7c15ULL);
      out += R"({"n":)" + std::to_string(i) + R"(,"text":")";
      for (int k = 0; k < 20; ++k) out += mixed;
      out += "\"}\n";
    }
    return out;
  }

  MemFs disk;
  World world{disk};
  Settings settings;
  std::unique_ptr<Store> store;
  RootId root;
};

TEST_F(TranscriptsTest, ACopyGrowsWithItsFileAndReplacesTheOneBefore) {
  std::string text = Lines(1, 3000);
  Write(text);
  KeptNow kept = Must(Keep());
  EXPECT_TRUE(kept.published);
  EXPECT_EQ(kept.bytes, text.size());
  EXPECT_FALSE(Must(Keep()).published) << "nothing is new";
  for (uint64_t i = 100; i < 130; ++i) {
    const std::string more = Lines(i, 500);
    Append(more);
    text += more;
    kept = Must(Keep());
    EXPECT_TRUE(kept.published && kept.grew) << i;
    ASSERT_EQ(Copies().size(), 1u) << i;
    ASSERT_EQ(Text(Copies()[0]), text) << i;
  }
  EXPECT_TRUE(Must(VerifyStore(*store, {.read_data = true})).clean());
}

TEST_F(TranscriptsTest, OfALongOneOnlyTheEndIsReadAgain) {
  std::string text = Lines(1, 30 << 20);
  Write(text);
  EXPECT_EQ(Must(Keep()).read, text.size());
  const uint64_t before = disk.used_bytes();
  for (uint64_t i = 0; i < 20; ++i) {
    const std::string more = Lines(1'000'000 + i * 100, 3000);
    Append(more);
    text += more;
    const KeptNow kept = Must(Keep());
    EXPECT_TRUE(kept.grew);
    EXPECT_LE(kept.read, 4 * (512u << 10)) << "turn " << i;
  }
  EXPECT_EQ(Text(Copies()[0]), text);
  // 60 KB were said since; what the store grew by is of that order.
  EXPECT_LE(disk.used_bytes() - before, text.size() / 10);
  // Some time all of it is read again, however little there is to suspect.
  Append(Lines(5'000'000, text.size() + 1));
  EXPECT_GE(Must(Keep()).read, text.size() * 2);
}

TEST_F(TranscriptsTest, ACopyIsReadFromAnyPlaceOn) {
  const std::string text = Lines(1, 2 << 20);
  Write(text);
  Must(Keep());
  KeptTranscript kept = Must(KeptTranscript::Open(*store, Copies()[0]));
  ASSERT_EQ(kept.size(), text.size());
  for (uint64_t at : {uint64_t{0}, uint64_t{1}, uint64_t{777'777}, text.size() - 1}) {
    Bytes out(1000);
    const size_t got = Must(kept.Read(at, out));
    ASSERT_GT(got, 0u);
    EXPECT_EQ(AsText(ByteSpan(out).first(got)), text.substr(at, got)) << at;
  }
  Bytes out(10);
  EXPECT_EQ(Must(kept.Read(text.size(), out)), 0u);
  EXPECT_EQ(Must(kept.Read(UINT64_MAX, out)), 0u);
}

TEST_F(TranscriptsTest, WhatAFileHeldBeforeItBecameAnotherStays) {
  const std::string first = Lines(1, 100'000), second = Lines(900, 120'000);
  Write(first);
  Must(Keep());
  Write(first.substr(0, 5000));  // cut off
  EXPECT_FALSE(Must(Keep()).grew);
  Write(second);  // replaced by a longer one
  EXPECT_FALSE(Must(Keep()).grew);
  auto copies = Copies();
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(Text(copies[0]), second);
  EXPECT_TRUE(copies[0].latest);
  EXPECT_EQ(Text(copies[2]), first);
  EXPECT_FALSE(copies[2].latest);
  for (uint64_t i = 0; i < 2 * kMostBefore; ++i) {
    Write(Lines(10'000 + 100 * i, 1000));
    Must(Keep());
  }
  EXPECT_EQ(Copies().size(), kMostBefore + 1);
}

TEST_F(TranscriptsTest, AnEditInALongFileOfTheSameLengthIsNoticedWhereItIsLookedFor) {
  std::string text = Lines(1, 6 << 20);
  Write(text);
  Must(Keep());
  // Written over in place: the same inode, longer, another beginning.
  std::string other = text;
  other[10] = 'X';
  Fd file = Must(disk.Open(Dir(), Name::Literal("s.jsonl"), OpenMode::ReadWrite()));
  Must(WriteFull(disk, file, 0, AsBytes(other)));
  Append("{\"more\":1}\n");
  EXPECT_FALSE(Must(Keep()).grew);
  EXPECT_EQ(Text(Copies()[0]), other + "{\"more\":1}\n");
  EXPECT_EQ(Text(Copies()[1]), text);
  // The same of its end.
  std::string third = other + "{\"more\":2}\n";
  Must(WriteFull(disk, file, 0, AsBytes(third)));
  Append("{\"yet\":1}\n");
  EXPECT_FALSE(Must(Keep()).grew);
  EXPECT_EQ(Text(Copies()[0]), third + "{\"yet\":1}\n");
}

TEST_F(TranscriptsTest, OneThatIsWrittenAnewEachTimeIsKeptOnce) {
  KeepRequest request = Request();
  request.appended = false;
  for (int i = 1; i < 5; ++i) {
    Write("{\"messages\":[" + std::string(static_cast<size_t>(i) * 100, '1') + "]}");
    Must(KeepTranscript(*store, request));
  }
  EXPECT_EQ(Copies().size(), 1u);
  Write("{\"messages\":[]}");
  Must(KeepTranscript(*store, request));
  EXPECT_EQ(Copies().size(), 2u) << "it became shorter";
}

TEST_F(TranscriptsTest, AnotherFileWithTheSameContentIsTheSameCopy) {
  const std::string text = Lines(1, 5 << 20);
  Write(text);
  Must(Keep());
  Must(disk.Unlink(Dir(), Name::Literal("s.jsonl")));
  Write(text);  // another inode
  EXPECT_TRUE(Must(Keep()).grew);
  EXPECT_EQ(Copies().size(), 1u);
  Append("{}\n");
  EXPECT_LE(Must(Keep()).read, 2u << 20);
}

TEST_F(TranscriptsTest, WhatIsNoTranscriptIsNotKept) {
  EXPECT_EQ(Keep().error().code, Errc::kNotFound);
  Must(disk.MakeSpecial(Dir(), Name::Literal("fifo"), FileType::kFifo, 0600));
  EXPECT_EQ(Keep("fifo").error().code, Errc::kInvalid);
  Must(disk.MakeDir(Dir(), Name::Literal("dir"), 0755));
  EXPECT_FALSE(Keep("dir").ok());
  Must(disk.Symlink(Dir(), Name::Literal("loop"), "loop"));
  EXPECT_FALSE(Keep("loop").ok());
  Write("-----BEGIN OPENSSH PRIVATE KEY-----\n", "key");
  Must(disk.Symlink(Dir(), Name::Literal("link"), "key"));
  EXPECT_EQ(Keep("link").error().code, Errc::kInvalid);
  Write("", "empty");
  EXPECT_FALSE(Must(Keep("empty")).published);
  settings.max_file_size.bytes = 100;
  Write(Lines(1, 200), "long");
  EXPECT_EQ(Keep("long").error().code, Errc::kInvalid);
  EXPECT_TRUE(Copies().empty());
  // A link to a real one is followed: people link their homes.
  settings.max_file_size.bytes = 1 << 20;
  Must(disk.Symlink(Dir(), Name::Literal("home"), "long"));
  EXPECT_TRUE(Must(Keep("home")).published);
}

TEST_F(TranscriptsTest, ACopyOutlivesItsFile) {
  const std::string text = Lines(1, 50'000);
  Write(text);
  Must(Keep());
  Must(disk.Unlink(Dir(), Name::Literal("s.jsonl")));
  EXPECT_EQ(Keep().error().code, Errc::kNotFound);
  GcOptions options;
  options.min_garbage = 0;
  Must(CollectGarbage(*store, options));
  store = Must(world.Open());
  ASSERT_EQ(Copies().size(), 1u);
  EXPECT_EQ(Text(Copies()[0]), text);
}

TEST_F(TranscriptsTest, GarbageOfOlderCopiesGoesAndTheCopyStays) {
  std::string text = Lines(1, 700'000);
  Write(text);
  Must(Keep());
  for (uint64_t i = 0; i < 40; ++i) {
    const std::string more = Lines(50'000 + 100 * i, 4000);
    Append(more);
    text += more;
    Must(Keep());
  }
  GcOptions options;
  options.min_garbage = 0;
  Must(CollectGarbage(*store, options));
  store = Must(world.Open());
  EXPECT_EQ(Text(Copies()[0]), text);
  EXPECT_TRUE(Must(VerifyStore(*store, {.read_data = true})).clean());
}

TEST_F(TranscriptsTest, TheCapHoldsForCopiesToo) {
  settings.store_cap = {.bytes = 1 << 20};
  Write(Lines(1, 8 << 20));
  auto kept = Keep();
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.error().code, Errc::kNoSpace);
  EXPECT_TRUE(Copies().empty());
}

TEST_F(TranscriptsTest, CopiesOfDifferentSessionsShareWhatTheyHaveInCommon) {
  const std::string text = Lines(1, 4 << 20);
  Write(text);
  Must(Keep());
  const uint64_t before = disk.used_bytes();
  Write(text + "{\"fork\":1}\n", "fork.jsonl");
  KeepRequest request = Request("fork.jsonl");
  request.session = "fork";
  const uint64_t file = text.size() + 11;
  Must(KeepTranscript(*store, request));
  EXPECT_LE(disk.used_bytes() - before - file, 600u << 10);
  EXPECT_EQ(Text(Copies("fork")[0]), text + "{\"fork\":1}\n");
}

TEST_F(TranscriptsTest, RetentionTakesACopyWithItsSession) {
  Root here{.id = root, .path = "/project"};
  {
    auto writer = Must(store->Begin());
    writer->Add(ToRecord(here, RecordId(world.random.NewId()), 1));
    Checkpoint c;
    c.id = IdFor("c");
    c.root = root;
    c.made_ms = store->clock().WallMillis();
    c.state = Must(PutFiles(*writer, {{"f", "x"}}));
    c.session = "child";
    writer->Add(ToRecord(c));
    // The child goes on with what was said in `s`.
    for (const char* id : {"s", "child", "gone"}) {
      SessionRecord record{.session = id};
      if (record.session == "child") record.parent = "s";
      writer->Add(ToRecord(record, RecordId(world.random.NewId()), root, c.made_ms));
    }
    Must(writer->Commit());
  }
  Write(Lines(1, 1000));
  Must(Keep());
  KeepRequest request = Request();
  request.session = "gone";
  Must(KeepTranscript(*store, request));
  const RetentionLimits limits{.autos = 10, .days = 30, .undo = 5};
  auto prune = [&] {
    auto catalog = Must(Catalog::Open(*store));
    return Must(Prune(*store, *catalog, limits, false)).transcripts.size();
  };
  EXPECT_EQ(prune(), 0u) << "it was heard of just now";
  world.clock.SetWallMillis(world.clock.WallMillis() + 31 * kDayMs);
  EXPECT_EQ(prune(), 1u);
  EXPECT_EQ(Copies("gone").size(), 0u);
  EXPECT_EQ(Copies("s").size(), 1u) << "one that grew out of it has a checkpoint";
  // When room is needed it may go as well.
  auto catalog = Must(Catalog::Open(*store));
  EXPECT_EQ(
      Must(PrunableTranscripts(*catalog, 30, world.clock.WallMillis(), true)).size(),
      1u);
  EXPECT_EQ(
      Must(PrunableTranscripts(*catalog, 365, world.clock.WallMillis(), true)).size(),
      0u);
}

TEST_F(TranscriptsTest, DeletingASessionTakesItsCopies) {
  Write(Lines(1, 1000));
  Must(Keep());
  auto catalog = Must(Catalog::Open(*store));
  EXPECT_EQ(Must(PlanSessionDeletion(*catalog, "s")).records.size(), 1u);
  Must(DeleteSession(*store, *catalog, Must(PlanSessionDeletion(*catalog, "s"))));
  EXPECT_TRUE(Copies().empty());
}

// Mutant: copies-that-a-fork-needs-go.
TEST_F(TranscriptsTest, WhatAForkHasNotByItselfStays) {
  Write(Lines(1, 1000));
  Must(Keep());
  auto catalog = Must(Catalog::Open(*store));
  auto writer = Must(store->Begin());
  for (const SessionRecord& one :
       {SessionRecord{.session = "s"},
        SessionRecord{.session = "fork", .parent = "s", .inherited_turns = 1}})
    writer->Add(ToRecord(one, RecordId(store->random().NewId()),
                         RootId(store->random().NewId()), 1));
  Must(writer->Commit());
  const auto plan = [&](bool own) {
    return Must(PlanSessionDeletion(
        *catalog, "s", [own](const std::string&) { return Result<bool>(own); }));
  };
  EXPECT_EQ(plan(false).kept_copies, 1u);
  EXPECT_EQ(DeleteSession(*store, *catalog, plan(false)).error().code, Errc::kRefused);
  EXPECT_FALSE(Copies().empty());
  EXPECT_EQ(plan(true).kept_copies, 0u);
  Must(DeleteSession(*store, *catalog, plan(true)));
  EXPECT_TRUE(Copies().empty());
}

}  // namespace
}  // namespace belay::test
