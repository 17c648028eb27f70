// Two things at once: a rollback was interrupted, and the store cannot give what its
// safety checkpoint stored. What is in the directory yet, or was displaced there, is
// all there is of it: it is never thrown away, and no undo is promised that cannot be.

#include <gmock/gmock.h>

#include "base/fault_fs.h"
#include "restore/journal.h"
#include "store/pack_format.h"
#include "support/rollback_fixture.h"

namespace belay::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const AbsPath kTop = AbsPath::Literal("/m");
constexpr const char* kPaths[] = {"over", "moded", "new", "dir/new"};

class DamagedRecoveryTest : public RollbackTest {
 protected:
  DamagedRecoveryTest() {
    Put("over", "1");
    Put("moded", "1", 0644);
    Must(world.Capture("start"));
    start = Tree();
    int seed = 0;
    for (const char* path : kPaths) {
      contents[path] = Noise(++seed, 3000);
      Put(path, contents[path]);
    }
    Chmod("moded", 0600);  // not in place: it is displaced
    now = Tree();
  }

  std::unique_ptr<MemFs> Durable() {
    std::unique_ptr<MemFs> copy = disk.Clone();
    copy->Crash(CrashPolicy::KeepAll());
    return copy;
  }
  // A rollback that ends at this call. False: it did not.
  static bool Break(MemFs& on, uint64_t at) {
    Fault cut = Fault::PowerCut(at);
    cut.mutating_only = true;
    FaultFs dying(on, cut);
    (void)RestoreWorld(dying, kTop, 7).Rollback("start");
    on.Crash(CrashPolicy::KeepAll());
    return dying.fired();
  }
  static bool IsPending(MemFs& on) {
    RestoreWorld it(on, kTop, 8);
    auto opened = Must(it.Open());
    return Must(JournalFile::Exists(*opened.store, opened.root.id));
  }
  static void Flip(MemFs& on, Store& store, const ObjectKey& key) {
    auto found = Must(store.Find(key));
    if (!found) return;
    Fd packs = Must(on.OpenDir(AbsPath::Literal("/m/store/packs")));
    Fd file = Must(on.Open(packs, N(found->pack->file->id().text() + ".pack"),
                           OpenMode::ReadWrite()));
    const uint64_t at = found->record.offset + kRecordHeaderSize +
                        found->record.header.stored_length / 2;
    Bytes byte(1);
    ASSERT_EQ(Must(on.Read(file, at, byte)), 1u);
    byte[0] ^= std::byte{0x10};
    Must(on.Write(file, at, byte));
  }
  void DamageContents(MemFs& on) {
    RestoreWorld it(on, kTop, 8);
    auto opened = Must(it.Open());
    for (const auto& [path, content] : contents)
      Flip(on, *opened.store, {ObjectType::kBlob, Sha256::Of(AsBytes(content))});
  }
  // Of the safety checkpoint: its trees, and the lists of what is moved.
  void DamageTheRest(MemFs& on) {
    RestoreWorld it(on, kTop, 8);
    auto opened = Must(it.Open());
    auto safety = Must(opened.catalog->ListCheckpoints(
        {.root = opened.root.id, .kind = CheckpointKind::kSafety, .limit = 1}));
    ASSERT_EQ(safety.size(), 1u);
    const Checkpoint& checkpoint = safety[0].checkpoint;
    const State state = Must(opened.store->GetState(checkpoint.state));
    Flip(on, *opened.store, {ObjectType::kTree, state.tree});
    for (const ObjectKey& key : checkpoint.more_refs)
      if (key.type == ObjectType::kNode) Flip(on, *opened.store, key);
  }
  // Those of which the content is in the directory, wherever that is.
  std::set<std::string> OnDisk(MemFs& on) {
    std::set<std::string> out;
    Fd top = Must(on.OpenDir(AbsPath::Literal("/m/project")));
    auto look = [&](const Fd& dir) {
      for (const DirEntry& entry : Must(on.List(dir))) {
        auto text = GetFile(on, dir, P(entry.name));
        if (!text.ok()) continue;
        for (const auto& [path, content] : contents)
          if (*text == content) out.insert(path);
      }
    };
    look(top);
    for (const DirEntry& entry : Must(on.List(top)))
      if (Must(on.StatAt(top, N(entry.name))).type == FileType::kDirectory)
        look(Must(on.Open(top, N(entry.name), OpenMode::Directory())));
    return out;
  }
  // After a recovery, and one undo, all of them are in their places.
  void ExpectAllOf(MemFs& on, const std::set<std::string>& paths,
                   const std::string& when) {
    SCOPED_TRACE(when);
    RestoreWorld it(on, kTop, 9);
    auto recovered = it.Recover();
    ASSERT_TRUE(recovered.ok()) << recovered.error().what;
    it.plan.skip_damaged = true;
    const bool back = *recovered && (*recovered)->how == Recovered::How::kTakenBack;
    if (back) {
      ++taken_back;
    } else if (it.Tree() != now) {
      const bool all = *recovered && (*recovered)->how == Recovered::How::kFinished &&
                       (*recovered)->text.find("cannot give back") == std::string::npos;
      it.plan.skip_damaged = !all;
      auto undone = it.Undo();
      EXPECT_TRUE(undone.ok()) << undone.error().what;
      if (all) {
        EXPECT_EQ(it.Tree(), now) << (*recovered)->text;
      }
    }
    Fd top = Must(on.OpenDir(AbsPath::Literal("/m/project")));
    for (const std::string& path : paths) {
      auto text = GetFile(on, top, P(path));
      EXPECT_TRUE(text.ok() && *text == contents[path])
          << path << " is lost: " << (*recovered ? (*recovered)->text : "-");
    }
  }

  std::map<std::string, std::string> contents;
  int taken_back = 0;
};

// Mutants: recovery-trusts-the-store, stored-again-from-the-stage-alone,
// recovered-by-an-old-list, tidied-with-an-old-list.
TEST_F(DamagedRecoveryTest, CutAnywhereNothingThatIsThereIsLost) {
  for (const bool all : {false, true}) {
    int points = 0, whole = 0, partly = 0;
    for (uint64_t at = 1;; ++at) {
      const std::unique_ptr<MemFs> copy = Durable();
      if (!Break(*copy, at)) break;
      if (!IsPending(*copy)) continue;
      ++points;
      DamageContents(*copy);
      if (all) DamageTheRest(*copy);
      const auto there = OnDisk(*copy);
      ++(there.size() == contents.size() ? whole : partly);
      ExpectAllOf(*copy, there, "cut at " + std::to_string(at));
    }
    EXPECT_GT(points, 10);
    EXPECT_GT(whole, 1);
    EXPECT_GT(partly, 1) << "what was overwritten in place is nowhere any more";
  }
}

// A full disk, and it is taken back. Mutants: back-by-the-store-alone,
// one-copy-is-looked-for.
TEST_F(DamagedRecoveryTest, WhereItCannotBeStoredAgainNothingIsThrownAway) {
  int refused = 0;
  for (uint64_t at = 1;; at += 2) {
    const std::unique_ptr<MemFs> interrupted = Durable();
    if (!Break(*interrupted, at)) break;
    if (!IsPending(*interrupted)) continue;
    DamageContents(*interrupted);
    const auto there = OnDisk(*interrupted);
    for (uint64_t call = 1;; ++call) {
      const std::unique_ptr<MemFs> copy = interrupted->Clone();
      Fault full = Fault::Errno(call, ENOSPC);
      full.mutating_only = true;
      FaultFs disk_full(*copy, full);
      auto recovered = RestoreWorld(disk_full, kTop, 10).Recover();
      if (!disk_full.fired()) break;
      const std::string when = "cut at " + std::to_string(at) + ", full at " +
                               std::to_string(call) + " of the recovery";
      const std::string text = !recovered.ok() ? recovered.error().what
                               : *recovered    ? (*recovered)->text
                                               : "";
      if (text.find("could not be stored again") != std::string::npos &&
          there.size() == contents.size() && IsPending(*interrupted)) {
        ++refused;
        const bool recorded = !recovered.ok();  // nothing to be taken back
        if (!recorded) {
          EXPECT_EQ((*recovered)->how, Recovered::How::kTakenBack) << when;
          EXPECT_EQ(RestoreWorld(*copy, kTop, 10).Tree(), now) << when;
        } else {
          EXPECT_THAT(text, Not(HasSubstr("taking it back is interrupted"))) << when;
        }
      }
      ExpectAllOf(*copy, there, when);
    }
  }
  EXPECT_GT(refused, 5);
}

// Mutant: promise-what-is-lost.
TEST_F(DamagedRecoveryTest, WhatWasOverwrittenInPlaceIsSaidToBeLost) {
  bool said = false;
  for (uint64_t at = 1; !said; ++at) {
    const std::unique_ptr<MemFs> copy = Durable();
    ASSERT_TRUE(Break(*copy, at));
    if (!IsPending(*copy) || OnDisk(*copy).contains("over")) continue;
    DamageContents(*copy);
    RestoreWorld it(*copy, kTop, 9);
    auto recovered = Must(it.Recover());
    ASSERT_TRUE(recovered);
    if (recovered->how != Recovered::How::kFinished) break;
    said = true;
    EXPECT_THAT(recovered->text, HasSubstr("cannot give back over as it was before"));
    EXPECT_THAT(recovered->text, HasSubstr("belay undo --skip-damaged"));
    EXPECT_THAT(recovered->text,
                HasSubstr("dir/new and 2 more as before; it was stored "
                          "again; run: belay verify --read-data"));
    EXPECT_FALSE(it.Undo().ok());
  }
  EXPECT_TRUE(said);
}

// Mutant: damage-keeps-what-raced.
TEST_F(DamagedRecoveryTest, AnEditSinceIsKeptWhereTheTreeBeforeCannotBeRead) {
  int edited = 0;
  for (uint64_t at = 1;; ++at) {
    const std::unique_ptr<MemFs> copy = Durable();
    if (!Break(*copy, at)) break;
    if (!IsPending(*copy)) continue;
    DamageTheRest(*copy);
    Fd top = Must(copy->OpenDir(AbsPath::Literal("/m/project")));
    Must(PutFile(*copy, top, P("moded"), "an edit after the interruption"));
    RestoreWorld it(*copy, kTop, 9);
    auto recovered = it.Recover();
    ASSERT_TRUE(recovered.ok()) << at << ": " << recovered.error().what;
    if (!*recovered || !(*recovered)->raced) continue;
    ++edited;
    const Checkpoint& raced = *(*recovered)->raced;
    EXPECT_TRUE(raced.partial);
    auto opened = Must(it.Open());
    const belay::Tree tree =
        Must(opened.store->GetTree(Must(opened.store->GetState(raced.state)).tree));
    auto kept = std::ranges::find(tree.entries, "moded", &TreeEntry::name);
    ASSERT_NE(kept, tree.entries.end());
    EXPECT_EQ(AsText(Must(opened.store->ReadContentBytes(kept->id, 1000))),
              "an edit after the interruption");
  }
  EXPECT_GT(edited, 3);
}

}  // namespace
}  // namespace belay::test
