// Stores written by earlier versions, one directory of tests/corpus/ each, opened, read
// and written on for ever. What is in them is said here.
//
// A new format version gets a new sample: BELAY_WRITE_CORPUS=<new directory> makes
// Corpus.WritesASample write one.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/mem_fs.h"
#include "base/real_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/repair.h"
#include "store/verify.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

// Nothing here may come from a helper that could change.
std::string Numbers(uint64_t from, uint64_t count) {
  std::string text;
  for (uint64_t i = from; i < from + count; ++i) text += std::to_string(i * i) + "\n";
  return text;
}
std::string Scattered(size_t length) {
  std::string bytes;
  uint64_t h = 88172645463325252;
  while (bytes.size() < length) {
    h ^= h << 13;
    h ^= h >> 7;
    h ^= h << 17;
    bytes += static_cast<char>(h >> 32);
  }
  return bytes;
}
// 1.5 MiB in three chunks that take a few bytes each.
std::string Long() {
  return std::string(700'000, 'x') + std::string(800'000, '\0') + "the end";
}

Files FirstFiles() {
  return {{"README", "hello\n"},
          {"empty", ""},
          {"src/main.c", Numbers(0, 300)},
          {"src/deep/er/raw", Scattered(900)},
          {std::string("odd\n\xff name"), "x"}};
}
Files SecondFiles() {
  Files files = FirstFiles();
  files["README"] = "hello again\n";
  files["long"] = Long();
  return files;
}
Files LateFiles() { return {{"src/main.c", Numbers(0, 300)}, {"new", Numbers(7, 20)}}; }

// Since version 2: a few bytes changed, again and again.
constexpr int kEdits = 10;
Files EditedFiles(int edits) {
  Files files = LateFiles();
  for (int i = 1; i <= edits; ++i)
    files["src/main.c"].replace(static_cast<size_t>(i) * 50, 6,
                                "edit" + std::to_string(10 + i));
  return files;
}

const RootId kRoot(IdFor("the root"));

void Publish(Store& store, const LogRecord& record) {
  auto writer = Must(store.Begin());
  writer->Add(record);
  Must(writer->Commit());
}

// One of everything.
void WriteSample(Fs& fs, const AbsPath& dir, uint32_t uid) {
  FakeClock clock;
  SeededRandom random(1);
  StoreOptions options{.uid = uid};
  auto open = [&] {
    return Must(Store::Open(fs, clock, random, dir, options, Store::Mode::kWrite));
  };
  auto store = open();
  Publish(*store, ToRecord(Root{kRoot, "/home/u/p"}, RecordId(kRoot), 1));
  Must(MakeCheckpoint(*store, "first", FirstFiles(), kRoot));
  Must(MakeCheckpoint(*store, "gone", {{"gone", Scattered(400)}}, kRoot));
  Must(DropCheckpoints(*store, {"gone"}));
  Must(CollectGarbage(*store, {.everything = true}));  // a pack written by GC
  Must(MakeCheckpoint(*store, "second", SecondFiles(), kRoot));
  {
    // A symlink, attributes, owners, a git record and every field of a checkpoint.
    auto writer = Must(store->Begin());
    Tree tree;
    TreeEntry link;
    link.name = "link";
    link.kind = EntryKind::kSymlink;
    link.mode = 0777;
    link.target = "../some where";
    TreeEntry run;
    run.name = "run";
    run.mode = 04755;
    run.uid = 1000;
    run.gid = 4294967294;
    run.size = 3;
    run.id = Must(writer->PutContent(AsBytes("#!\n")));
    run.xattrs = Must(writer->PutContent(AsBytes("user.a=b")));
    tree.entries = {link, run};
    Node git;
    git.refs = {{ObjectType::kBlob, run.id}};
    git.fields.Add(1, "refs/heads/main");
    State state;
    state.tree = Must(writer->PutTree(tree));
    state.git = Must(writer->PutObject(ObjectType::kNode, EncodeNode(git)));
    Checkpoint c;
    c.id = IdFor("full");
    c.root = kRoot;
    c.made_ms = 1'800'000'000'001;
    c.state = Must(writer->PutObject(ObjectType::kState, EncodeState(state)));
    c.kind = CheckpointKind::kSafety;
    c.name = "full", c.note = "note", c.description = "before rollback";
    c.session = "s", c.agent = "a", c.subagent = "b", c.prompt = "p";
    c.message_id = "m", c.tool_name = "Edit", c.tool_use_id = "t";
    c.turn = 3, c.message_index = 4;
    c.files = 2, c.bytes = 3, c.added = 4, c.modified = 5, c.deleted = 6;
    c.stored_bytes = 7, c.took_us = 8, c.partial = true;
    c.meta = {{"k", "v"}, {"k2", "v2"}};
    writer->Add(ToRecord(c));
    LogRecord note;
    note.kind = RecordKind::kAnnotation;
    note.id = IdFor("annotation");
    note.fields.Add(kAnnotationTarget, IdFor("first").span());
    note.fields.Add(kAnnotationNote, "kept");
    note.fields.AddNumber(kAnnotationPinned, 1);
    writer->Add(note);
    Must(writer->Commit());
  }
  for (int kind : {4, 5, 6, 999}) {  // session, turn, operation, of the future
    LogRecord record;
    record.kind = static_cast<RecordKind>(kind);
    record.id = IdFor("kind " + std::to_string(kind));
    record.fields.Add(1, "value");
    record.fields.Add(5000, "a tag of the future");
    Publish(*store, record);
  }
  Must(MakeCheckpoint(*store, "dropped", {{"d", Scattered(300)}}, kRoot));
  Must(DropCheckpoints(*store, {"dropped"}));
  Publish(*store,
          MakePurge(IdFor("purge"), 5,
                    {{ObjectType::kBlob, Sha256::Of(AsBytes("secret"))}}, "test"));
  options.pack_target = 4000;  // the next one starts a pack
  store = open();
  Must(MakeCheckpoint(*store, "late", LateFiles(), kRoot));
  options.pack_target = StoreOptions().pack_target;  // one pack for all of these
  store = open();
  for (int i = 1; i <= kEdits; ++i)
    Must(MakeCheckpoint(*store, "edit " + std::to_string(i), EditedFiles(i), kRoot,
                        EditedFiles(i - 1)));
}

TEST(Corpus, WritesASample) {
  RealFs real;
  if (const char* to = std::getenv("BELAY_WRITE_CORPUS")) {
    WriteSample(real, AbsPath::Literal(to), static_cast<uint32_t>(getuid()));
    return;
  }
  MemFs disk;  // that it can still be written, without keeping it
  WriteSample(disk, AbsPath::Literal("/store"), 1000);
}

// The sample, copied file by file to a disk in memory.
void Load(const std::string& version, MemFs& disk) {
  const char* source = std::getenv("BELAY_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  RealFs real;
  Fd root = Must(disk.OpenDir(AbsPath::Literal("/")));
  auto copy = [&](const std::string& below, const Fd& to) {
    Fd from = Must(real.OpenDir(
        AbsPath::Literal(std::string(source) + "/tests/corpus/" + version + below)));
    for (const DirEntry& e : Must(real.List(from))) {
      Name name = Name::Literal(e.name);
      if (Must(real.StatAt(from, name)).type == FileType::kDirectory) continue;
      Bytes bytes = Must(ReadSmallFile(real, from, name, 1 << 20));
      Must(ReplaceFile(disk, to, name, bytes));
    }
  };
  Must(disk.MakeDir(root, Name::Literal("store"), 0700));
  Fd store = Must(disk.OpenDir(AbsPath::Literal("/store")));
  Must(disk.MakeDir(store, Name::Literal("packs"), 0700));
  Fd packs = Must(disk.OpenDir(AbsPath::Literal("/store/packs")));
  copy("", store);
  copy("/packs", packs);
}

void ExpectClean(Store& store) {
  auto report = Must(VerifyStore(store, {.read_data = true}));
  for (const std::string& d : report.damage) ADD_FAILURE() << d;
}

void ExpectPlainCheckpoints(Store& store) {
  LogView log;
  Must(ReadOn(store, log));
  std::map<std::string, ObjectId> states;
  for (const LogRecord& r : log.records)
    if (r.kind == RecordKind::kCheckpoint && log.IsWanted(r))
      states[*Must(ToCheckpoint(r)).name] = r.refs.at(0).id;
  EXPECT_EQ(Must(ReadFiles(store, states["first"])), FirstFiles());
  EXPECT_TRUE(Must(ReadFiles(store, states["second"])) == SecondFiles());
  EXPECT_EQ(Must(ReadFiles(store, states["late"])), LateFiles());
  EXPECT_FALSE(states.contains("dropped"));
  EXPECT_FALSE(states.contains("gone"));
}

class CorpusV1 : public ::testing::Test {
 protected:
  void SetUp() override { Load("store-v1", disk_); }
  MemFs disk_;
  World world_{disk_, 77};
};

TEST_F(CorpusV1, IsReadAndVerified) {
  auto store = Must(world_.Open(Store::Mode::kRead));
  EXPECT_EQ(store->manifest().packs.size(), 3u);
  EXPECT_EQ(store->manifest().generation, 2u);
  ExpectClean(*store);
  ExpectPlainCheckpoints(*store);
}

TEST_F(CorpusV1, KeepsEveryField) {
  auto store = Must(world_.Open(Store::Mode::kRead));
  LogView log;
  Must(ReadOn(*store, log));
  std::map<RecordId, LogRecord> records;
  for (const LogRecord& r : log.records) records[r.id] = r;
  Checkpoint c = Must(ToCheckpoint(records.at(IdFor("full"))));
  EXPECT_EQ(c.kind, CheckpointKind::kSafety);
  EXPECT_EQ(c.made_ms, 1'800'000'000'001);
  EXPECT_EQ(c.root, kRoot);
  EXPECT_EQ(c.note, "note");
  EXPECT_EQ(c.description, "before rollback");
  EXPECT_EQ(c.session, "s");
  EXPECT_EQ(c.agent, "a");
  EXPECT_EQ(c.subagent, "b");
  EXPECT_EQ(c.prompt, "p");
  EXPECT_EQ(c.message_id, "m");
  EXPECT_EQ(c.tool_name, "Edit");
  EXPECT_EQ(c.tool_use_id, "t");
  EXPECT_EQ(c.turn, 3u);
  EXPECT_EQ(c.message_index, 4u);
  EXPECT_EQ(c.files, 2u);
  EXPECT_EQ(c.bytes, 3u);
  EXPECT_EQ(c.added, 4u);
  EXPECT_EQ(c.modified, 5u);
  EXPECT_EQ(c.deleted, 6u);
  EXPECT_EQ(c.stored_bytes, 7u);
  EXPECT_EQ(c.took_us, 8u);
  EXPECT_TRUE(c.partial);
  EXPECT_EQ(c.meta, (std::map<std::string, std::string>{{"k", "v"}, {"k2", "v2"}}));
  State state = Must(store->GetState(c.state));
  Tree tree = Must(store->GetTree(state.tree));
  ASSERT_EQ(tree.entries.size(), 2u);
  EXPECT_EQ(tree.entries[0].target, "../some where");
  EXPECT_EQ(tree.entries[1].mode, 04755u);
  EXPECT_EQ(tree.entries[1].uid, 1000u);
  EXPECT_EQ(tree.entries[1].gid, 4294967294u);
  EXPECT_EQ(AsText(Must(store->ReadContentBytes(tree.entries[1].xattrs, 100))),
            "user.a=b");
  Node git = Must(DecodeNode(Must(store->Get({ObjectType::kNode, state.git}))));
  EXPECT_EQ(git.fields.Text(1), "refs/heads/main");
  EXPECT_EQ(Must(ToRoot(records.at(RecordId(kRoot)))).path, "/home/u/p");
  EXPECT_EQ(AnnotationTarget(records.at(IdFor("annotation"))), IdFor("first"));
  EXPECT_EQ(records.at(IdFor("kind 999")).fields.Text(5000), "a tag of the future");
  EXPECT_EQ(PurgedBy(records.at(IdFor("purge"))).size(), 1u);
  EXPECT_EQ(log.max_seq, 15u);
}

TEST_F(CorpusV1, IsWrittenOnAndCollected) {
  auto store = Must(world_.Open());
  Must(MakeCheckpoint(*store, "today", {{"t", "today"}}));
  ExpectClean(*store);
  auto report = Must(CollectGarbage(*store, {.everything = true}));
  EXPECT_GT(report.objects_removed, 0u);
  store = Must(world_.Open());
  ExpectClean(*store);
  ExpectPlainCheckpoints(*store);
  LogView log;
  Must(ReadOn(*store, log));
  EXPECT_EQ(log.max_seq, 16u);
}

class CorpusV2 : public CorpusV1 {
 protected:
  void SetUp() override { Load("store-v2", disk_); }
  void ExpectAll(Store& store) {
    ExpectClean(store);
    ExpectPlainCheckpoints(store);
    LogView log;
    Must(ReadOn(store, log));
    int edits = 0;
    for (const LogRecord& r : log.records) {
      if (r.kind != RecordKind::kCheckpoint || !log.IsWanted(r)) continue;
      const std::string name = *Must(ToCheckpoint(r)).name;
      if (!name.starts_with("edit ")) continue;
      ++edits;
      EXPECT_EQ(Must(ReadFiles(store, r.refs.at(0).id)),
                EditedFiles(std::stoi(name.substr(5))));
    }
    EXPECT_EQ(edits, kEdits);
  }
  size_t Deltas(Store& store) {
    size_t count = 0;
    auto inventory = Must(TakeInventory(store));
    for (const PackInventory& pack : inventory.packs)
      for (const InventoryItem& item : pack.items) count += item.base != 0 ? 1 : 0;
    return count;
  }
};

TEST_F(CorpusV2, IsReadAndVerified) {
  auto store = Must(world_.Open(Store::Mode::kRead));
  EXPECT_EQ(store->manifest().packs.size(), 3u);
  EXPECT_EQ(Deltas(*store), 8u);
  ExpectAll(*store);
}

TEST_F(CorpusV2, IsWrittenOnAndCollected) {
  auto store = Must(world_.Open());
  Must(MakeCheckpoint(*store, "today", {{"t", "today"}}));
  Must(CollectGarbage(*store, {.everything = true}));
  store = Must(world_.Open());
  EXPECT_EQ(Deltas(*store), 8u);
  ExpectAll(*store);
}

TEST_F(CorpusV2, IsRepairedWithoutItsManifest) {
  {
    Fd dir = Must(disk_.OpenDir(AbsPath::Literal("/store")));
    Must(disk_.Unlink(dir, Name::Literal("manifest")));
  }
  Must(RepairStore(disk_, world_.clock, world_.random, world_.dir, world_.options));
  auto store = Must(world_.Open());
  ExpectAll(*store);
}

TEST_F(CorpusV1, IsRepairedWithoutItsManifest) {
  {
    Fd dir = Must(disk_.OpenDir(AbsPath::Literal("/store")));
    Must(disk_.Unlink(dir, Name::Literal("manifest")));
  }
  Must(RepairStore(disk_, world_.clock, world_.random, world_.dir, world_.options));
  auto store = Must(world_.Open());
  ExpectClean(*store);
  ExpectPlainCheckpoints(*store);
}

}  // namespace
}  // namespace belay::test
