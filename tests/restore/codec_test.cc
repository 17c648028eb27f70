// What is written down about an operation, and how it is read back: changes, journals,
// records, and trees with something put into them.

#include <iostream>

#include "core/state_rules.h"
#include "restore/journal.h"
#include "restore/overlay.h"
#include "support/crash_harness.h"
#include "support/memory_sink.h"
#include "support/restore_fixture.h"

namespace belay::test {
namespace {

PathState File(std::string_view content, uint32_t mode = 0644) {
  PathState state;
  state.kind = EntryKind::kFile;
  state.mode = mode;
  state.uid = 1000;
  state.gid = 100;
  state.id = Sha256::Of(AsBytes(content));
  state.size = content.size();
  return state;
}
PathState Directory(uint32_t mode = 0755) {
  PathState state;
  state.kind = EntryKind::kDirectory;
  state.mode = mode;
  return state;
}
PathState Symlink(std::string target) {
  PathState state;
  state.kind = EntryKind::kSymlink;
  state.mode = 0777;
  state.target = std::move(target);
  return state;
}

std::vector<PathChange> SomeChanges() {
  PathState attributed = File("b");
  attributed.xattrs = Sha256::Of(AsBytes("xattrs"));
  return {{"", Directory(0700), Directory(0755)},
          {"a", File("1"), File("2")},
          {"b", std::nullopt, attributed},
          {"c\xff\n", Symlink("x"), std::nullopt},
          {"d", Directory(), File("now a file", 0600)},
          {"d.x", File("was a file", 04755), Directory(0700)},
          {"d/e", Directory(), std::nullopt},
          {std::string(255, 'n') + "/" + std::string(255, 'm'), Symlink("y"),
           Symlink("z")}};
}

TEST(Changes, ComeBackAsTheyWere) {
  auto changes = SomeChanges();
  std::sort(changes.begin(), changes.end(),
            [](const PathChange& a, const PathChange& b) { return a.path < b.path; });
  const Node node = EncodeChanges(changes);
  EXPECT_EQ(Must(DecodeChanges(Must(DecodeNode(EncodeNode(node))))), changes);
  EXPECT_EQ(Reversed(Reversed(changes)), changes);
}

TEST(Changes, KeepAllTheirContent) {
  const Node node = EncodeChanges({{"a", File("1"), File("2")}});
  std::set<ObjectId> kept;
  for (const ObjectKey& ref : node.refs) kept.insert(ref.id);
  EXPECT_TRUE(kept.contains(Sha256::Of(AsBytes("1"))));
  EXPECT_TRUE(kept.contains(Sha256::Of(AsBytes("2"))));
}

TEST(Changes, WhatCountsAsTheSame) {
  EXPECT_TRUE(SameContent(File("a", 0600), File("a", 0644)));
  EXPECT_FALSE(SameAttributes(File("a", 0600), File("a", 0644)));
  EXPECT_FALSE(SameContent(File("a"), Symlink("a")));
  EXPECT_TRUE(SameContent(Directory(), Directory(0700)));
  EXPECT_TRUE(SameState(std::nullopt, std::nullopt));
  EXPECT_FALSE(SameState(File("a"), std::nullopt));
}

TEST(JournalCodec, ComesBackAsItWas) {
  SeededRandom random(1);
  Journal journal;
  journal.operation.id = RecordId(random.NewId());
  journal.operation.root = RootId(random.NewId());
  journal.operation.changes = Sha256::Of(AsBytes("c"));
  journal.operation.target = RecordId(random.NewId());
  journal.operation.safety = RecordId(random.NewId());
  journal.operation.of = RecordId(random.NewId());
  journal.operation.kind = OperationKind::kUndo;
  journal.operation.paths_only = true;
  journal.operation.out_of_order = true;
  journal.operation.recovered = true;
  journal.operation.label = "before\nrefactor";
  journal.operation.paths = 7;
  journal.operation.took_us = 123;
  journal.operation.made_ms = -5;
  journal.stage = StageName(journal.operation.id);
  journal.changes = SomeChanges();
  std::sort(journal.changes.begin(), journal.changes.end(),
            [](const PathChange& a, const PathChange& b) { return a.path < b.path; });
  journal.locked = {{"", 0555}, {"d", 0500}};
  journal.times_ns = -1;
  const Journal back = Must(DecodeJournal(EncodeJournal(journal)));
  EXPECT_EQ(back.operation, journal.operation);
  EXPECT_EQ(back.stage, journal.stage);
  EXPECT_EQ(back.changes, journal.changes);
  ASSERT_EQ(back.locked.size(), 2u);
  EXPECT_EQ(back.locked[0].path, "");
  EXPECT_EQ(back.locked[1].mode, 0500u);
  EXPECT_EQ(back.times_ns, journal.times_ns);
}

// As a plan may be that was made while somebody moved things.
class JournalWriteTest : public RestoreTest {
 protected:
  void ExpectRefused(std::vector<PathChange> changes) {
    auto opened = Must(world.Open());
    Journal journal;
    journal.operation.id = RecordId(opened.store->random().NewId());
    journal.operation.root = opened.root.id;
    journal.stage = StageName(journal.operation.id);
    journal.changes = std::move(changes);
    auto written = JournalFile::Write(*opened.store, journal);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, Errc::kConflict);
    EXPECT_FALSE(Must(JournalFile::Exists(*opened.store, opened.root.id)));
    std::cout << written.error().what << "\n";
  }
};

TEST_F(JournalWriteTest, WhatWouldBeRefusedLaterIsNotWritten) {
  ExpectRefused({{"a", File("1"), File("2")}, {"a", File("2"), File("3")}});
  ExpectRefused({{"b", File("1"), File("2")}, {"a", File("2"), File("3")}});
}

TEST_F(JournalWriteTest, WhatLeadsToNoTreeIsNotWritten) {
  ExpectRefused({{"d", Symlink("x"), Directory()}, {"d/a", File("1"), File("2")}});
  ExpectRefused({{"d", Directory(), std::nullopt}, {"d/a", File("1"), File("2")}});
  ExpectRefused({{"d", Directory(), File("1")},
                 {"d-between", File("1"), std::nullopt},
                 {"d/e/a", std::nullopt, File("2")}});
}

TEST(Changes, FitTogether) {
  auto changes = SomeChanges();
  std::sort(changes.begin(), changes.end(),
            [](const PathChange& a, const PathChange& b) { return a.path < b.path; });
  EXPECT_TRUE(CheckFits(changes).ok());
  EXPECT_TRUE(CheckFits({{"d", Directory(), File("1")},
                         {"d/a", File("1"), std::nullopt},
                         {"e", File("1"), Directory()},
                         {"e/s", std::nullopt, Directory()},
                         {"e/s/z", std::nullopt, File("2")}})
                  .ok());
}

TEST(JournalCodec, RandomBytesAreRefused) {
  SeededRandom random(TestSeed(1));
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes(random.Below(300));
    random.Fill(bytes);
    EXPECT_FALSE(DecodeJournal(bytes).ok());
    // With a hash that is right it is the decoder's turn.
    Bytes body;
    ByteWriter w(body);
    w.Raw("BELAYJN1");
    w.Raw(bytes);
    w.Raw(Sha256::Of(body).span());
    EXPECT_FALSE(DecodeJournal(body).ok());
  }
}

TEST(JournalCodec, StageNames) {
  SeededRandom random(1);
  EXPECT_TRUE(IsStageName(StageName(RecordId(random.NewId()))));
  for (const char* name :
       {"", ".belay-stage-", ".belay-stage-x", "belay-stage-", ".git"})
    EXPECT_FALSE(IsStageName(name)) << name;
}

// --- a tree with paths put into it
// -------------------------------------------------------

class OverlayTest : public ::testing::Test {
 protected:
  Result<ObjectId> Put(const std::vector<Overlaid>& paths) {
    return OverlayTree(
        base_, paths,
        [&](const ObjectId& id) -> Result<Tree> {
          auto found = trees_.find(id);
          if (found == trees_.end()) return Error(Errc::kNotFound, "no such tree");
          return found->second;
        },
        [](const std::string&) -> Result<PathState> { return Directory(0711); }, sink_);
  }
  ObjectId Add(const Tree& tree) {
    const ObjectId id = Must(sink_.PutTree(tree));
    trees_[id] = tree;
    return id;
  }
  static TreeEntry Named(const std::string& name, PathState state) {
    state.name = name;
    return state;
  }
  OverlayTest() {
    TreeEntry dir = Named("dir", Directory(0750));
    dir.id = Add(Tree{{Named("in", File("in"))}});
    base_ = Add(Tree{{Named("a", File("a")), dir, Named("z", Symlink("z"))}});
  }
  MemorySink sink_;
  std::map<ObjectId, Tree> trees_;
  ObjectId base_;
};

TEST_F(OverlayTest, NothingChangesNothing) { EXPECT_EQ(Must(Put({})), base_); }

TEST_F(OverlayTest, AddsReplacesAndMakesDirectories) {
  auto list = sink_.List(Must(Put({{"a", File("A")},
                                   {"dir/more", File("more")},
                                   {"new/deep/x", File("x")},
                                   {"empty", Directory()}})));
  EXPECT_EQ(list.size(), 5u);
  EXPECT_NE(list["a"].find(Sha256::Of(AsBytes("A")).hex().substr(0, 8)),
            std::string::npos);
  EXPECT_TRUE(list.contains("dir/in"));
  EXPECT_TRUE(list.contains("dir/more"));
  EXPECT_TRUE(list.contains("new/deep/x"));
  EXPECT_TRUE(list.contains("z"));
}

TEST_F(OverlayTest, ReplacesAnotherKindOfThing) {
  auto list = sink_.List(Must(Put({{"dir", File("a file")}})));
  EXPECT_FALSE(list.contains("dir/in"));
  EXPECT_TRUE(list.contains("dir"));
  list = sink_.List(Must(Put({{"a/b", File("below a file")}})));
  EXPECT_TRUE(list.contains("a/b"));
  EXPECT_FALSE(list.contains("a"));
}

// --- a state's own rules, against the scan that made it
// ------------------------------------

class StateRulesTest : public RestoreTest {
 protected:
  // Random files and rules; what the capture then holds must be exactly what the
  // state's rules say is covered.
  void RunOne(uint64_t seed) {
    SeededRandom random(seed);
    auto pick = [&](std::initializer_list<const char*> of) {
      return std::string(
          *(of.begin() + static_cast<ptrdiff_t>(random.Below(of.size()))));
    };
    MemFs fs;
    Project project(fs, AbsPath::Literal("/m"), 1000);
    std::vector<std::string> dirs{""};
    std::set<std::string> files;
    auto below = [&](const std::string& dir, const std::string& name) {
      return dir.empty() ? name : dir + "/" + name;
    };
    for (int i = 0; i < 6; ++i) {
      const std::string dir = below(dirs[random.Below(dirs.size())],
                                    pick({"src", "build", "data", "x.tmp", "n"}));
      if (project.Exists(dir)) continue;
      project.MakeDir(dir);
      dirs.push_back(dir);
    }
    for (int i = 0; i < 25; ++i) {
      const std::string path =
          below(dirs[random.Below(dirs.size())],
                pick({"a", "b.tmp", "c.log", ".env", "d.pem", "keep.tmp", "e.o", "f"}));
      if (project.Exists(path)) continue;
      project.Put(path, std::string(random.Below(40), 'x'));
      files.insert(path);
    }
    auto rules = [&] {
      std::string text;
      for (uint64_t n = random.Below(4); n > 0; --n)
        text += pick({"*.tmp\n", "!keep.tmp\n", "data/\n", "/src\n", "*.o\n", "!*.o\n",
                      "# no\n", "n/**\n", ".env\n", "b*\n", "!b.tmp\n"});
      return text;
    };
    for (const std::string& dir : dirs) {
      if (random.Below(3) == 0) {
        project.Put(below(dir, ".gitignore"), rules());
        files.insert(below(dir, ".gitignore"));
      }
      if (random.Below(5) == 0) {
        project.Put(below(dir, ".belayignore"), rules());
        files.insert(below(dir, ".belayignore"));
      }
    }
    if (random.Below(3) == 0)
      project.world.settings.exclude = {pick({"f", "src/", "*.o"})};
    if (random.Below(3) == 0)
      project.world.settings.protect = {pick({"b.tmp", "data/a", "n"})};
    if (random.Below(4) == 0) project.world.settings.secrets = Secrets::kSkip;
    if (random.Below(4) == 0) project.world.settings.default_excludes = false;
    if (random.Below(3) == 0) project.world.settings.max_file_size = {.bytes = 20};
    Must(project.world.Capture("start"));
    auto opened = Must(project.world.Open());
    const Checkpoint made = Must(project.world.Named(opened, "start"));
    const auto holds = project.Holds(made);
    const StateView view = Must(LoadState(*opened.store, made.state));
    StateRules state(view, TreesOf(*opened.store), [&](const ObjectId& id) {
      return opened.store->ReadContentBytes(id, kMaxPatternFile);
    });
    for (const std::string& path : files) {
      ++asked;
      EXPECT_EQ(Must(state.Ask(path, false)).covered, holds.contains(path))
          << "BELAY_SEED=" << seed << " " << path << " "
          << Must(state.Ask(path, false)).why;
    }
  }
  uint64_t asked = 0;
};

TEST_F(StateRulesTest, SayWhatTheScanOfThatStateCovered) {
  const uint64_t first = TestSeed(1);
  const uint64_t count = RunEverything() ? 5000 : 150;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed)
    RunOne(seed);
  std::cout << "asked about " << asked << " paths\n";
}

TEST_F(StateRulesTest, WithoutRulesNothingIsCovered) {
  StateView view;
  StateRules rules(view, {}, {});
  EXPECT_FALSE(Must(rules.Ask("a", false)).covered);
  EXPECT_EQ(Must(rules.Ask("a/b", false)).why, "rules_unknown");
}

}  // namespace
}  // namespace belay::test
