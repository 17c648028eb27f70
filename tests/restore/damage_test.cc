// Damage in the store: a rollback that cannot give everything back says which paths,
// and touches nothing; on request the rest comes back.

#include "store/batch_writer.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

class DamagedTargetTest : public RestoreTest {
 protected:
  DamagedTargetTest() {
    Put("bad", Noise(7, 3000));
    Put("good", "1");
    Put("sub/bad", Noise(7, 3000));
    Put("sub/good", "1");
    Must(world.Capture("start"));
    Put("bad", "2");
    Put("good", "2");
    Remove("sub");
    Put("new", "2");
    now = Tree();
  }
  // Flips one byte in the middle of the only copy of this content.
  void Damage(const std::string& content) {
    Fd packs = Must(disk.OpenDir(AbsPath::Literal("/m/store/packs")));
    for (const DirEntry& entry : Must(disk.List(packs))) {
      auto bytes = ReadSmallFile(disk, packs, N(entry.name), 64 << 20);
      if (!bytes.ok()) continue;
      const size_t at = std::string(AsText(*bytes)).find(content.substr(100, 200));
      if (at == std::string::npos) continue;
      Fd file = Must(disk.Open(packs, N(entry.name), OpenMode::ReadWrite()));
      Bytes flipped{(*bytes)[at] ^ std::byte{0x40}};
      Must(disk.Write(file, at, flipped));
      return;
    }
    FAIL() << "the content is not in a pack as it is";
  }
  // A checkpoint like `start` with another tree in one place.
  Checkpoint Forged(const std::function<void(belay::Tree&)>& forge) {
    auto opened = Must(world.Open());
    Checkpoint target = Must(world.Named(opened, "start"));
    State state = Must(opened.store->GetState(target.state));
    belay::Tree tree = Must(opened.store->GetTree(state.tree));
    forge(tree);
    auto writer = Must(opened.store->Begin());
    state.tree = Must(writer->PutTree(tree));
    target.state = Must(writer->PutObject(ObjectType::kState, EncodeState(state)));
    target.id = RecordId(world.world.random.NewId());
    target.name = "forged";
    writer->Add(ToRecord(target));
    Must(writer->Commit());
    return target;
  }
  // The same with another state.
  void ForgeState(const std::function<void(State&)>& forge) {
    auto opened = Must(world.Open());
    Checkpoint target = Must(world.Named(opened, "start"));
    State state = Must(opened.store->GetState(target.state));
    forge(state);
    auto writer = Must(opened.store->Begin());
    target.state = Must(writer->PutObject(ObjectType::kState, EncodeState(state)));
    target.id = RecordId(world.world.random.NewId());
    target.name = "forged";
    writer->Add(ToRecord(target));
    Must(writer->Commit());
  }
  static bool IsWanted(const Plan& plan, std::string_view path) {
    for (const KeptPath& kept : plan.kept)
      if (kept.path == path) return kept.wanted;
    return false;
  }
  std::string now;
};

TEST_F(DamagedTargetTest, IsRefusedWithThePathsNamedAndNothingChanged) {
  Damage(Noise(7, 3000));
  for (int round = 0; round < 2; ++round) {
    auto done = round == 0 ? world.Preview("start") : world.Rollback("start");
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, Errc::kCorrupt);
    EXPECT_NE(done.error().what.find("bad"), std::string::npos) << done.error().what;
    EXPECT_NE(done.error().what.find("sub/bad"), std::string::npos)
        << done.error().what;
    EXPECT_NE(done.error().hint.find("--skip-damaged"), std::string::npos);
    EXPECT_EQ(Tree(), now);
  }
  EXPECT_TRUE(Operations().empty());
}

TEST_F(DamagedTargetTest, SkipDamagedBringsTheRestBackAndListsWhatItLeft) {
  Damage(Noise(7, 3000));
  world.plan.skip_damaged = true;
  Outcome done = Must(world.Rollback("start"));
  EXPECT_EQ(Read("good"), "1");
  EXPECT_EQ(Read("sub/good"), "1");
  EXPECT_EQ(Read("bad"), "2");
  EXPECT_FALSE(Exists("sub/bad"));
  EXPECT_FALSE(Exists("new"));
  EXPECT_NE(Kept(done.plan).find("bad damaged"), std::string::npos);
  EXPECT_NE(Kept(done.plan).find("sub/bad damaged"), std::string::npos);
  EXPECT_TRUE(IsWanted(done.plan, "bad") && IsWanted(done.plan, "sub/bad"))
      << "the target has them";
  Must(world.Undo());
  EXPECT_EQ(Tree(), now);
}

TEST_F(DamagedTargetTest, AnotherPathIsStillRestored) {
  Damage(Noise(7, 3000));
  world.plan.select = {"good", "sub/good"};
  Must(world.Rollback("start"));
  EXPECT_EQ(Read("good"), "1");
  EXPECT_EQ(Read("sub/good"), "1");
}

TEST_F(DamagedTargetTest, AMissingObjectIsRefusedToo) {
  const ObjectId nowhere = Sha256::Of(AsBytes("nowhere"));
  Forged([&](belay::Tree& tree) {
    for (TreeEntry& entry : tree.entries)
      if (entry.name == "good") entry.id = nowhere;
  });
  auto done = world.Rollback("forged");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kCorrupt);
  EXPECT_NE(done.error().what.find("good"), std::string::npos);
  EXPECT_EQ(Tree(), now);
  world.plan.skip_damaged = true;
  Must(world.Rollback("forged"));
  EXPECT_EQ(Read("good"), "2");
  EXPECT_EQ(Read("bad"), Noise(7, 3000));
}

TEST_F(DamagedTargetTest, OfATreeThatIsMissingNothingBelowIsTouched) {
  Put("sub/mine", "precious");
  Put("sub/good", "2");
  now = Tree();
  Forged([&](belay::Tree& tree) {
    for (TreeEntry& entry : tree.entries)
      if (entry.name == "sub") entry.id = Sha256::Of(AsBytes("nowhere"));
  });
  auto done = world.Rollback("forged");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kCorrupt);
  EXPECT_NE(done.error().what.find("sub"), std::string::npos);
  EXPECT_EQ(Tree(), now);
  world.plan.skip_damaged = true;
  Outcome rest = Must(world.Rollback("forged"));
  EXPECT_EQ(Read("sub/mine"), "precious");
  EXPECT_EQ(Read("sub/good"), "2");
  EXPECT_EQ(Read("good"), "1");
  EXPECT_NE(Kept(rest.plan).find("sub damaged"), std::string::npos);
  EXPECT_TRUE(IsWanted(rest.plan, "sub"));
  // What nobody asked for refuses nothing; what was asked for is named with the whole.
  world.plan.skip_damaged = false;
  world.plan.select = {"bad"};
  EXPECT_TRUE(world.Rollback("forged").ok());
  world.plan.skip_damaged = true;
  world.plan.select = {"sub/good"};
  EXPECT_EQ(Kept(Must(world.Rollback("forged")).plan), "sub damaged");
}

TEST_F(DamagedTargetTest, WithoutItsFirstDirectoryThereIsNoRest) {
  ForgeState([](State& state) { state.tree = Sha256::Of(AsBytes("nowhere")); });
  for (const bool skip : {false, true}) {
    world.plan.skip_damaged = skip;
    auto done = world.Rollback("forged");
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, Errc::kCorrupt);
    EXPECT_NE(done.error().what.find("nothing of the checkpoint"), std::string::npos);
    EXPECT_EQ(Tree(), now);
  }
}

TEST_F(DamagedTargetTest, DamagedRulesAreDamage) {
  ForgeState([](State& state) { state.rules = Sha256::Of(AsBytes("nowhere")); });
  for (int round = 0; round < 2; ++round) {
    auto done = round == 0 ? world.Preview("forged") : world.Rollback("forged");
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, Errc::kCorrupt);
    EXPECT_NE(done.error().hint.find("--skip-damaged"), std::string::npos);
    EXPECT_EQ(Tree(), now);
  }
  // A path that the target has comes back without them; one that may have to go does
  // not go.
  world.plan.select = {"good"};
  EXPECT_EQ(Kept(Must(world.Rollback("forged")).plan), "");
  EXPECT_EQ(Read("good"), "1");
  world.plan.select = {"new"};
  EXPECT_FALSE(world.Rollback("forged").ok());
  world.plan.select = {};
  world.plan.skip_damaged = true;
  Outcome done = Must(world.Rollback("forged"));
  EXPECT_EQ(Kept(done.plan), ". rules_unknown, new rules_unknown");
  EXPECT_TRUE(IsWanted(done.plan, "."));
  EXPECT_EQ(Read("bad"), Noise(7, 3000));
  EXPECT_EQ(Read("new"), "2");
}

// It is as it was, and the store's copy is what tells what it left out.
TEST_F(DamagedTargetTest, ADamagedFileOfRulesIsDamageWhereItDecides) {
  Put(".gitignore", Noise(11, 3000));
  Must(world.Capture("ruled"));
  Put("new2", "2");
  Damage(Noise(11, 3000));
  auto done = world.Rollback("ruled");
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kCorrupt);
  world.plan.skip_damaged = true;
  Outcome rest = Must(world.Rollback("ruled"));
  EXPECT_TRUE(IsWanted(rest.plan, "."));
  EXPECT_EQ(Read("new2"), "2");
}

TEST_F(DamagedTargetTest, DamagedAttributesAreDamage) {
  Forged([&](belay::Tree& tree) {
    for (TreeEntry& entry : tree.entries)
      if (entry.name == "good") entry.xattrs = Sha256::Of(AsBytes("nowhere"));
  });
  EXPECT_FALSE(world.Rollback("forged").ok());
  EXPECT_EQ(Tree(), now);
}

TEST_F(DamagedTargetTest, WithDamagedRulesOfThatTimeNothingIsDeleted) {
  Put(".gitignore", "#" + Noise(8, 3000).substr(0, 10) + "\n*.keep\n");
  Must(world.Capture("with rules"));
  Put("new2", "2");
  Put("a.keep", "2");
  auto opened = Must(world.Open());
  Checkpoint target = Must(world.Named(opened, "with rules"));
  {
    State state = Must(opened.store->GetState(target.state));
    belay::Tree tree = Must(opened.store->GetTree(state.tree));
    for (TreeEntry& entry : tree.entries)
      if (entry.name == ".gitignore") entry.id = Sha256::Of(AsBytes("nowhere"));
    auto writer = Must(opened.store->Begin());
    state.tree = Must(writer->PutTree(tree));
    target.state = Must(writer->PutObject(ObjectType::kState, EncodeState(state)));
    target.id = RecordId(world.world.random.NewId());
    writer->Add(ToRecord(target));
    Must(writer->Commit());
  }
  auto request = world.RequestFor(opened.root);
  EXPECT_FALSE(belay::Rollback(*opened.store, request, target).ok());
  request.plan.skip_damaged = true;
  auto done = belay::Rollback(*opened.store, request, target);
  ASSERT_TRUE(done.ok()) << done.error().what;
  EXPECT_EQ(Read("new2"), "2");
  EXPECT_EQ(Read("a.keep"), "2");
  EXPECT_NE(Kept(done->plan).find("new2 rules_unknown"), std::string::npos)
      << Kept(done->plan);
}

TEST_F(DamagedTargetTest, AStateThatCannotBeReadIsSaidToBeDamaged) {
  auto opened = Must(world.Open());
  Checkpoint target = Must(world.Named(opened, "start"));
  target.state = Sha256::Of(AsBytes("nowhere"));
  auto done = belay::Rollback(*opened.store, world.RequestFor(opened.root), target);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Errc::kCorrupt);
  EXPECT_EQ(Tree(), now);
}

TEST_F(DamagedTargetTest, AnUndoThatCannotGiveBackIsRefused) {
  Put("bad", Noise(9, 3000));
  now = Tree();
  world.plan.select = {"bad", "good"};
  Must(world.Rollback("start"));
  const std::string after = Tree();
  Damage(Noise(9, 3000));
  auto undo = world.Undo();
  ASSERT_FALSE(undo.ok());
  EXPECT_EQ(undo.error().code, Errc::kCorrupt);
  EXPECT_NE(undo.error().hint.find("--skip-damaged"), std::string::npos)
      << undo.error().hint;
  EXPECT_EQ(Tree(), after);
}

TEST_F(DamagedTargetTest, AnUndoSkipsWhatIsDamagedAndSaysSo) {
  Put("bad", Noise(9, 3000));
  world.plan.select = {"bad", "good"};
  Must(world.Rollback("start"));
  Damage(Noise(9, 3000));
  EXPECT_FALSE(world.Undo().ok());
  world.plan.skip_damaged = true;
  Outcome undo = Must(world.Undo());
  EXPECT_EQ(Steps(undo.plan), "write good");
  EXPECT_EQ(Kept(undo.plan), "bad damaged");
  EXPECT_TRUE(IsWanted(undo.plan, "bad"));
  EXPECT_EQ(Read("good"), "2");
  EXPECT_EQ(Read("bad"), Noise(7, 3000)) << "it stays as it is";
  // It counts as taken back: what came before it can be, too.
  Must(world.Redo());
  EXPECT_EQ(Read("good"), "1");
}

// --- what the store only seems to have -----------------------------------------------

// What a rollback takes away must be there to be brought back, not only be named.
TEST_F(DamagedTargetTest, WhatGoesIsStoredAgainWhenTheStoreCannotGiveItBack) {
  Put("mine", Noise(8, 3000));
  Put("large", Noise(9, 3 << 20));
  Put("over", Noise(10, 3000));
  Must(world.Capture("with mine"));
  Remove("over");
  Must(world.Capture("without"));
  Put("over", Noise(10, 3000));
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    Must(world.Capture("now " + std::to_string(round)));
    const std::string before = Tree();
    if (round == 0)
      for (const std::string& content :
           {Noise(8, 3000), Noise(9, 3 << 20), Noise(10, 3000)})
        Damage(content);
    Outcome done = Must(world.Rollback("start"));
    EXPECT_FALSE(Exists("mine"));
    EXPECT_EQ(done.warnings.size(), round == 0 ? 1u : 0u);
    for (const std::string& warning : done.warnings)
      EXPECT_NE(warning.find("stored again"), std::string::npos);
    Must(world.Undo());
    EXPECT_EQ(Tree(), before);
  }
  // And from now on for every checkpoint that has it.
  Must(world.Rollback("with mine"));
  EXPECT_EQ(Read("mine"), Noise(8, 3000));
  EXPECT_EQ(Read("over"), Noise(10, 3000));
}

class LostPacksTest : public RestoreTest {
 protected:
  LostPacksTest() {
    Put("kept", Noise(1, 3000));
    Put("dir/kept", Noise(2, 3000));
    Must(world.Capture("first"));
    older = CopyOf("");
    Put("later", Noise(3, 3000));
    Must(world.Capture("second"));
    Must(world.Capture("third"));
  }
  AbsPath StorePath(const std::string& below) {
    return AbsPath::Literal("/m/store" + (below.empty() ? "" : "/" + below));
  }
  // Files of the store and of its packs, by path.
  std::map<std::string, Bytes> CopyOf(const std::string& dir) {
    std::map<std::string, Bytes> out;
    Fd at = Must(disk.OpenDir(StorePath(dir)));
    for (const DirEntry& entry : Must(disk.List(at))) {
      const std::string path = dir.empty() ? entry.name : dir + "/" + entry.name;
      if (path == "packs") out.merge(CopyOf(path));
      if (entry.type == FileType::kRegular)
        out[path] = Must(ReadSmallFile(disk, at, N(entry.name), 64 << 20));
    }
    return out;
  }
  void PutBack(const std::map<std::string, Bytes>& files) {
    for (const auto& [path, bytes] : files) {
      const size_t slash = path.rfind('/');
      Fd at = Must(disk.OpenDir(
          StorePath(slash == std::string::npos ? "" : path.substr(0, slash))));
      Must(ReplaceFile(disk, at, N(path.substr(slash + 1)), bytes));
    }
  }
  // The newest checkpoint gives back everything there is.
  void ExpectNewestIsWhole() {
    const std::string now = Tree();
    Captured made = Must(world.Capture("newest"));
    for (const char* path : {"kept", "dir/kept", "later"}) Remove(path);
    Must(world.Rollback("newest"));
    EXPECT_EQ(Tree(), now);
  }
  std::map<std::string, Bytes> older;
};

TEST_F(LostPacksTest, ACheckpointAfterAPackWasCutHoldsEverything) {
  // What the first checkpoint wrote stays, and with it the record of the root.
  for (const auto& [path, bytes] : older) {
    if (!path.ends_with(".pack")) continue;
    Fd packs = Must(disk.OpenDir(StorePath("packs")));
    Fd file = Must(disk.Open(packs, N(path.substr(6)), OpenMode::ReadWrite()));
    Must(disk.Truncate(file, bytes.size()));
  }
  Captured made = Must(world.Capture("said"));
  ASSERT_FALSE(made.warnings.empty());
  EXPECT_NE(made.warnings.back().find("shorter than it was"), std::string::npos);
  ExpectNewestIsWhole();
}

TEST_F(LostPacksTest, ACheckpointAfterAnOlderCopyWasPutBackHoldsEverything) {
  PutBack(older);
  ExpectNewestIsWhole();
}

}  // namespace
}  // namespace belay::test
