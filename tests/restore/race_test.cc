// A writer racing a rollback at any call loses nothing: what it wrote is in the tree or
// in a checkpoint afterwards.
//
//   BELAY_FULL=1 restore_test --gtest_filter='RollbackTest.*Racing*'   every call

#include <iostream>

#include "support/crash_harness.h"
#include "support/race_fs.h"
#include "support/rollback_fixture.h"

namespace belay::test {
namespace {

const AbsPath kRaceTop = AbsPath::Literal("/m");

// What somebody does in one moment, to a path that the rollback is about to move.
struct Racer {
  const char* name;
  // The content that must not be lost afterwards; "" when there is none.
  std::string (*act)(Fs& disk, const Fd& root);
};

Status WriteInto(Fs& disk, const Fd& root, std::string_view path,
                 std::string_view text) {
  BELAY_TRY(Fd file, disk.OpenBeneath(root, P(path), OpenMode::ReadWrite()));
  BELAY_OK(WriteFull(disk, file, 0, AsBytes(text)));
  return disk.Truncate(file, text.size());
}
// As editors save.
Status SaveOver(Fs& disk, const Fd& root, std::string_view path,
                std::string_view text) {
  BELAY_TRY(Parent at, OpenParent(disk, root, P(path)));
  BELAY_OK(PutFile(disk, at.dir, P("saved.tmp"), text));
  return disk.Rename(at.dir, N("saved.tmp"), at.dir, at.name, RenameHow::kReplace);
}

constexpr Racer kRacers[] = {
    {"writes into a file that is written",
     [](Fs& disk, const Fd& root) -> std::string {
       return WriteInto(disk, root, "edited", "raced edit").ok() ? "edited" : "";
     }},
    {"saves over a file that is written",
     [](Fs& disk, const Fd& root) -> std::string {
       return SaveOver(disk, root, "edited", "raced edit").ok() ? "edited" : "";
     }},
    {"writes into a file that is replaced",
     [](Fs& disk, const Fd& root) -> std::string {
       return WriteInto(disk, root, "moded", "raced edit").ok() ? "moded" : "";
     }},
    {"saves over a file that is replaced",
     [](Fs& disk, const Fd& root) -> std::string {
       return SaveOver(disk, root, "moded", "raced edit").ok() ? "moded" : "";
     }},
    {"writes into a file that is deleted",
     [](Fs& disk, const Fd& root) -> std::string {
       return WriteInto(disk, root, "new", "raced edit").ok() ? "new" : "";
     }},
    {"saves over a file that is deleted",
     [](Fs& disk, const Fd& root) -> std::string {
       return SaveOver(disk, root, "new", "raced edit").ok() ? "new" : "";
     }},
    {"makes a file that comes back",
     [](Fs& disk, const Fd& root) -> std::string {
       return SaveOver(disk, root, "lost", "raced edit").ok() ? "lost" : "";
     }},
    {"makes a file in a directory that goes",
     [](Fs& disk, const Fd& root) -> std::string {
       return PutFile(disk, root, P("newdir/theirs"), "raced edit").ok()
                  ? "newdir/theirs"
                  : "";
     }},
    {"makes a file in a directory that becomes a file",
     [](Fs& disk, const Fd& root) -> std::string {
       return PutFile(disk, root, P("swap/theirs"), "raced edit").ok() ? "swap/theirs"
                                                                       : "";
     }},
    {"writes into a file that becomes a directory",
     [](Fs& disk, const Fd& root) -> std::string {
       return WriteInto(disk, root, "unswap", "raced edit").ok() ? "unswap" : "";
     }},
    {"makes a directory where a file was written",
     [](Fs& disk, const Fd& root) -> std::string {
       if (!disk.Unlink(root, N("edited")).ok()) return "";
       Must(disk.MakeDir(root, N("edited"), 0755));
       Must(PutFile(disk, root, P("edited/theirs"), "raced edit"));
       return "edited/theirs";
     }},
    {"makes a directory where a file was deleted",
     [](Fs& disk, const Fd& root) -> std::string {
       if (!disk.Unlink(root, N("new")).ok()) return "";
       Must(disk.MakeDir(root, N("new"), 0755));
       Must(PutFile(disk, root, P("new/theirs"), "raced edit"));
       return "new/theirs";
     }},
    {"makes a FIFO where a file comes back",
     [](Fs& disk, const Fd& root) -> std::string {
       (void)static_cast<MemFs&>(disk).MakeSpecial(root, N("lost"), FileType::kFifo,
                                                   0600);
       return "";
     }},
    {"removes a file that is written",
     [](Fs& disk, const Fd& root) -> std::string {
       (void)disk.Unlink(root, N("edited"));
       return "";
     }},
    {"removes a directory in which things move",
     [](Fs& disk, const Fd& root) -> std::string {
       (void)RemoveTree(disk, root, N("sub"));
       return "";
     }},
    {"puts a symlink in the place of a directory in which things move",
     [](Fs& disk, const Fd& root) -> std::string {
       if (RemoveTree(disk, root, N("sub")).ok())
         (void)disk.Symlink(root, N("sub"), "/m/outside");
       return "";
     }},
};

class Race {
 public:
  explicit Race(MemFs& start) : disk(start) {
    Project project(disk, kRaceTop, 1000);
    auto Put = [&](const char* path, const char* text, uint32_t mode = 0644) {
      project.Put(path, text, mode);
    };
    auto Remove = [&](const char* path) { project.Remove(path); };
    Must(disk.MakeDir(Must(disk.OpenDir(kRaceTop)), N("outside"), 0755));
    Put("edited", "then");
    Put("moded", "then", 0600);
    Put("lost", "then");
    Put("swap", "then");
    Put("unswap/in", "then");
    Put("sub/edited", "then");
    Put("sub/lost", "then");
    Must(project.world.Capture("start"));
    Put("edited", "now");
    Put("moded", "now");
    project.Chmod("moded", 0644);
    Remove("lost");
    Remove("swap");
    Put("swap/in", "now");
    Remove("unswap");
    Put("unswap", "now");
    Put("new", "now");
    Put("newdir/in", "now");
    Put("sub/edited", "now");
    Remove("sub/lost");
    Put("sub/new", "now");
  }

  // One rollback with `racer` acting before call `at`; false when there is no such
  // call.
  bool RunOne(const Racer& racer, uint64_t at) {
    auto copy = disk.Clone();
    Project project(*copy, kRaceTop, 1000);
    uint64_t calls = 0;
    std::string path;
    RaceFs fs(*copy, [&] {
      if (++calls == at) path = racer.act(*copy, project.root);
    });
    const std::string where =
        std::string(racer.name) + " before call " + std::to_string(at);
    Result<Outcome> done = [&] {
      RestoreWorld other(fs, kRaceTop, 99, 1000);
      return other.Rollback("start");
    }();
    if (calls < at) return false;
    ++runs_;
    if (!done.ok()) ++refused_;
    // Whatever happened, nothing waits to be finished that cannot be.
    auto recovered = project.world.Recover();
    EXPECT_TRUE(recovered.ok()) << where << ": " << recovered.error().what
                                << (done.ok() ? "" : "; " + done.error().what);
    for (const DirEntry& entry : Must(copy->List(project.root)))
      EXPECT_FALSE(IsStageName(entry.name)) << where;
    if (!path.empty()) {
      ++edits_;
      const std::string in_tree = project.Read(path);
      EXPECT_TRUE(in_tree == "raced edit" ||
                  project.IsStoredSomewhere(path, "raced edit"))
          << where << ": the edit of " << path << " is lost"
          << (done.ok() ? "" : "; " + done.error().what);
    }
    EXPECT_EQ(Must(copy->List(Must(copy->OpenDir(kRaceTop.Join(P("outside")))))).size(),
              0u)
        << where << ": something was written outside";
    return true;
  }

  void Sweep(const Racer& racer, uint64_t stride, uint64_t offset) {
    for (uint64_t at = 1 + offset; !::testing::Test::HasFailure() && RunOne(racer, at);
         at += stride) {
    }
  }
  void Report() const {
    std::cout << "raced " << runs_ << " calls, " << edits_ << " edits, " << refused_
              << " refused\n";
  }
  uint64_t edits() const { return edits_; }

 private:
  MemFs& disk;
  uint64_t runs_ = 0, edits_ = 0, refused_ = 0;
};

TEST_F(RollbackTest, AWriterRacingAnyCallLosesNothing) {
  const uint64_t seed = TestSeed(1);
  Race race(disk);
  uint64_t number = 0;
  for (const Racer& racer : kRacers) {
    if (RunEverything())
      race.Sweep(racer, 1, 0);
    else
      race.Sweep(racer, 13, (seed * 7 + number++ * 5) % 13);
  }
  race.Report();
  EXPECT_GT(race.edits(), 100u);
}

// Many files are moved by two threads: which call is which is not repeatable, and it
// holds all the same.
TEST_F(RollbackTest, AWriterRacingManyFilesLosesNothing) {
  const int files = 400;
  auto name = [](int i) {
    return "d" + std::to_string(i % 9) + "/f" + std::to_string(i);
  };
  for (int i = 0; i < files; ++i) Put(name(i), "then");
  Must(world.Capture("start"));
  for (int i = 0; i < files; ++i) Put(name(i), "now");
  SeededRandom random(TestSeed(1));
  const int rounds = RunEverything() ? 400 : 12;
  int edits = 0;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    auto copy = disk.Clone();
    Project project(*copy, kRaceTop, 1000);
    uint64_t calls = 0;
    const uint64_t at = 1500 + random.Below(9000);
    std::set<std::string> raced;
    RaceFs fs(*copy, [&] {
      if (++calls < at || raced.size() >= 20) return;
      const std::string path = name(static_cast<int>(random.Below(files)));
      const bool in_place = random.Below(2) == 0;
      if (raced.contains(path)) return;
      if ((in_place ? WriteInto(*copy, project.root, path, "raced edit")
                    : SaveOver(*copy, project.root, path, "raced edit"))
              .ok())
        raced.insert(path);
    });
    Result<Outcome> done = [&] {
      RestoreWorld other(fs, kRaceTop, 99, 1000);
      return other.Rollback("start");
    }();
    auto recovered = project.world.Recover();
    EXPECT_TRUE(recovered.ok()) << recovered.error().what;
    for (const std::string& path : raced) {
      ++edits;
      EXPECT_TRUE(project.Read(path) == "raced edit" ||
                  project.IsStoredSomewhere(path, "raced edit"))
          << "round " << round << " from call " << at << ": the edit of " << path
          << " is lost" << (done.ok() ? "" : "; " + done.error().what);
    }
    for (int i = 0; done.ok() && i < files; ++i)
      if (!raced.contains(name(i))) {
        EXPECT_EQ(project.Read(name(i)), "then") << name(i);
      }
  }
  std::cout << "raced " << edits << " edits of many files\n";
  EXPECT_GT(edits, 20);
}

// Somebody who moves things about while a rollback moves them: files, links and
// directories come, change places, go elsewhere and are edited, at any call, and now
// and then all ends in the middle. It never removes anything, so that every text it
// wrote is in the tree or in a checkpoint afterwards; and no recovery is stuck on what
// it did.
class Meddler {
 public:
  struct Counts {
    uint64_t acts = 0, done = 0, refused = 0, ended = 0, kept = 0, texts = 0;
  };

  Meddler(MemFs& disk, uint64_t seed, Counts& counts)
      : disk_(disk), project_(disk, kRaceTop, 1000), random_(seed), counts_(counts) {}

  void Run() {
    for (int round = 0; round < 3 && !::testing::Test::HasFailure(); ++round) Round();
    Must(project_.world.Recover());
    for (const DirEntry& entry : Must(disk_.List(project_.root))) {
      EXPECT_FALSE(IsStageName(entry.name));
      if (entry.name.find(".belay-kept") != std::string::npos) ++counts_.kept;
    }
    Must(project_.world.Rollback("start"));
    EXPECT_EQ(project_.Read("d/s/z"), "then");
    EXPECT_EQ(Must(disk_.List(Must(disk_.OpenDir(kRaceTop.Join(P("outside")))))).size(),
              0u);
  }

 private:
  static constexpr const char* kPaths[] = {"a",     "b",   "d", "d/x", "d/s",
                                           "d/s/z", "d/y", "e", "e/x", "e/s"};

  std::string AnyPath() { return kPaths[random_.Below(std::size(kPaths))]; }
  std::string NewText() {
    ++counts_.texts;
    return texts_.emplace_back("text " + std::to_string(++number_) + ".");
  }

  // Through no link; whatever cannot be done is not done.
  void Act() {
    const std::string path = AnyPath(), other = AnyPath();
    auto at = OpenParent(disk_, project_.root, P(path));
    auto to = OpenParent(disk_, project_.root, P(other));
    if (!at.ok()) return;
    auto there = disk_.StatAt(at->dir, at->name);
    ++counts_.acts;
    if (there.ok() && there->type == FileType::kRegular && random_.Below(4) == 0) {
      const std::string was = project_.Read(path), now = NewText();
      if (WriteInto(disk_, project_.root, path, now).ok())
        std::erase(texts_, was);
      else
        std::erase(texts_, now);
    } else if (there.ok() && to.ok()) {
      const RenameHow how =
          random_.Below(4) == 0 ? RenameHow::kNoReplace : RenameHow::kExchange;
      (void)disk_.Rename(at->dir, at->name, to->dir, to->name, how);
    } else if (!there.ok() && random_.Below(3) > 0) {
      Must(PutFile(disk_, at->dir, RelPath(at->name), NewText()));
    } else if (!there.ok() && random_.Below(2) == 0) {
      Must(disk_.MakeDir(at->dir, at->name, 0755));
    } else if (!there.ok()) {
      Must(disk_.Symlink(at->dir, at->name, "/m/outside"));
    }
  }

  void Round() {
    for (int i = 0; i < 8; ++i) Act();
    const std::string how = Race();
    if (random_.Below(2) == 0) return;  // the next one recovers, and is raced
    auto recovered = project_.world.Recover();
    EXPECT_TRUE(recovered.ok()) << recovered.error().what << "; " << how;
    const std::string tree = project_.world.Tree();
    std::set<std::string> stored;
    for (const CatalogEntry& entry : project_.Checkpoints())
      for (auto& [path, content] : project_.Holds(entry.checkpoint))
        stored.insert(content);
    for (const std::string& text : texts_)
      EXPECT_TRUE(tree.find(text) != tree.npos || stored.contains(text))
          << text << " is lost; " << how << "\n"
          << tree;
  }

  // What came of it.
  std::string Race() {
    const uint64_t often = 1 + random_.Below(20);
    RaceFs raced(disk_, [&] {
      if (random_.Below(often) == 0) Act();
    });
    Fault fault;
    if (random_.Below(2) == 0) {
      fault = Fault::PowerCut(1 + random_.Below(12));
      fault.only = {FsCall::kRename};
    }
    FaultFs fs(raced, fault);
    RestoreWorld other(fs, kRaceTop, 99 + random_.Below(1'000'000), 1000);
    auto result = random_.Below(3) == 0 ? other.Undo(true) : other.Rollback("start");
    ++(fs.fired() ? counts_.ended : result.ok() ? counts_.done : counts_.refused);
    return result.ok() ? "was done" : result.error().what;
  }

  MemFs& disk_;
  Project project_;
  SeededRandom random_;
  Counts& counts_;
  std::vector<std::string> texts_;
  uint64_t number_ = 0;
};

TEST_F(RollbackTest, WhoMovesThingsAboutLosesNothing) {
  Put("d/x", "then");
  Put("d/s/z", "then");
  Put("a", "then");
  Link("e", "/m/outside");
  Must(disk.MakeDir(Must(disk.OpenDir(kRaceTop)), N("outside"), 0755));
  Must(world.Capture("start"));
  const uint64_t first = TestSeed(1), last = first + (RunEverything() ? 20'000 : 150);
  Meddler::Counts counts;
  for (uint64_t seed = first; seed < last && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto copy = disk.Clone();
    Meddler(*copy, seed, counts).Run();
  }
  std::cout << counts.acts << " acts, " << counts.texts << " texts, " << counts.done
            << " done, " << counts.refused << " refused, " << counts.ended
            << " ended in the middle, " << counts.kept << " directories kept beside\n";
  EXPECT_GT(counts.done, 10u);
  EXPECT_GT(counts.ended, 10u);
}

}  // namespace
}  // namespace belay::test
