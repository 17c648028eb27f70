// Two processes on one store, one of them stopped at the worst moment: by hooks, not by
// chance.

#include <gtest/gtest.h>

#include <cerrno>
#include <latch>
#include <thread>

#include "base/mem_fs.h"
#include "crash/hook_fs.h"
#include "crash/store_ops.h"
#include "store/gc.h"

namespace belay::test {
namespace {

#define ASSERT_OK(expression)                              \
  do {                                                     \
    auto&& ok_result = (expression);                       \
    ASSERT_TRUE(ok_result.ok()) << ok_result.error().what; \
  } while (false)

const AbsPath kRaceStore = AbsPath::Literal("/store");

class StoreRace : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(op_.setup(op_, disk_, kRaceStore)); }

  MemFs disk_;
  StoreOp op_ = OpNamed("gc");
  std::vector<std::string> acked_;
  ListedAcks acks_{acked_};
};

// The writer found "gone1" stored and will not store it again; until it has published,
// nobody may take it away.
TEST_F(StoreRace, TheCollectorWaitsForAWriterThatFoundSomething) {
  Process writing(disk_, kRaceStore, 1, op_.options);
  auto store = writing.Open();
  ASSERT_OK(store);
  auto writer = (*store)->Begin();
  ASSERT_OK(writer);
  Checkpoint c;
  auto state = PutFiles(**writer, ContentOf("gone1", op_.scale));
  ASSERT_OK(state);

  Process collecting(disk_, kRaceStore, 2, op_.options);
  auto other = collecting.Open();
  ASSERT_OK(other);
  auto collected = CollectGarbage(**other, {.everything = true});
  ASSERT_FALSE(collected.ok());
  EXPECT_EQ(collected.error().code, Errc::kBusy);

  c.state = *state;
  c.id = IdFor("back-gone1");
  c.name = "back-gone1";
  (*writer)->Add(ToRecord(c));
  auto published = (*writer)->Commit();
  ASSERT_OK(published);
  op_.makes = {"back-gone1"};
  acked_ = {"made back-gone1 " + std::to_string(published->first_seq)};
  Status checked = CheckStore(op_, disk_, kRaceStore, {.acks = acked_});
  EXPECT_TRUE(checked.ok()) << checked.error().what;
}

TEST_F(StoreRace, AWriterWaitsForTheCollectorsSwap) {
  Process collecting(disk_, kRaceStore, 2, op_.options);
  auto store = collecting.Open();
  ASSERT_OK(store);
  auto use = (*store)->locks().Acquire(StoreLock::kUse, LockMode::kExclusive);
  ASSERT_OK(use);
  Process writing(disk_, kRaceStore, 1, op_.options);
  auto other = writing.Open();
  ASSERT_OK(other);
  auto writer = (*other)->Begin();
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().code, Errc::kBusy);
}

// A collection whose last step, the flush of the manifest's name, did not happen; the
// next one clears up after it. Then the power fails: the old manifest must not come
// back and name packs that are gone.
TEST_F(StoreRace, LeftoversGoOnlyOnceTheManifestIsDurable) {
  bool renamed = false;
  HookFs failing(
      disk_,
      [&](FsCall call, const std::string&) -> Status {
        if (renamed && call == FsCall::kSync) return SysError(EIO, "sync");
        return Ok();
      },
      [&](FsCall call, const std::string& name) {
        if (call == FsCall::kRename && name == "manifest") renamed = true;
      });
  Process first(failing, kRaceStore, 1, op_.options);
  {
    auto store = first.Open();
    ASSERT_OK(store);
    GcOptions options{.everything = true};
    // The open pack is sealed first; that is not the step meant here.
    ASSERT_FALSE(CollectGarbage(**store, options).ok());
    renamed = false;
    Process sealed(disk_, kRaceStore, 3, op_.options);
    auto plain = sealed.Open();
    ASSERT_OK(plain);
    ASSERT_FALSE(CollectGarbage(**store, options).ok());
  }
  EXPECT_TRUE(renamed);
  for (uint64_t cut = 1;; ++cut) {
    auto disk = disk_.Clone();
    Fault fault = Fault::PowerCut(cut);
    fault.mutating_only = true;
    FaultFs fs(*disk, fault);
    {
      Process second(fs, kRaceStore, 4, op_.options);
      auto store = second.Open();
      if (store.ok()) (void)CollectGarbage(**store, {.everything = true});
    }
    // What an unlucky disk keeps and what it drops is a matter of chance: several
    // times.
    std::vector<CrashPolicy> policies = {CrashPolicy::DropUnsynced(),
                                         CrashPolicy::KeepAll()};
    for (uint64_t seed = 0; seed < 8; ++seed)
      policies.push_back(CrashPolicy::Tear(cut * 8 + seed));
    for (const CrashPolicy& policy : policies) {
      auto crashed = disk->Clone();
      crashed->Crash(policy);
      Status checked = CheckStore(op_, *crashed, kRaceStore, {});
      EXPECT_TRUE(checked.ok())
          << checked.error().what << ", cut at " << cut << ", " << policy.Text();
    }
    if (!fs.fired()) break;
  }
}

// The collector reads a drop that another process has written and not yet flushed; the
// flush fails. What was not acknowledged must not have been obeyed.
TEST_F(StoreRace, TheCollectorDoesNotObeyADropThatWasNotKept) {
  StoreOptions roomy = op_.options;
  roomy.pack_target = StoreOptions().pack_target;
  op_.makes = {"three", "four", "five"};
  {
    // The open pack holds nothing unwanted, so the collector leaves it alone.
    Process process(disk_, kRaceStore, 3, op_.options);
    auto store = process.Open();
    ASSERT_OK(store);
    for (const std::string& name : op_.makes)
      ASSERT_OK(MakeAndAck(op_, **store, name, acks_));
    // Leftovers go under `append`, which the other will hold: let them go before.
    ASSERT_OK(CollectGarbage(**store, {.min_garbage = 2}));
  }
  std::latch look(1), written(1), copied(1);
  std::thread dropping([&] {
    bool flushing = false;
    HookFs failing(disk_, [&](FsCall call, const std::string& name) -> Status {
      if (flushing || call != FsCall::kSyncData || !name.ends_with(".pack"))
        return Ok();
      flushing = true;
      written.count_down();
      copied.wait();
      return SysError(EIO, "flush");
    });
    Process process(failing, kRaceStore, 1, roomy);
    auto store = process.Open();
    look.wait();
    EXPECT_FALSE(DropCheckpoints(**store, {"one"}).ok());
  });
  bool looked = false;
  bool swapping = false;
  HookFs hooked(disk_, [&](FsCall call, const std::string& name) -> Status {
    if (!looked && call == FsCall::kOpen && name.ends_with(".pack")) {
      looked = true;
      look.count_down();
      written.wait();
    }
    if (looked && !swapping && call == FsCall::kSync && name == "packs") {
      swapping = true;
      copied.count_down();
      dropping.join();
    }
    return Ok();
  });
  Process collecting(hooked, kRaceStore, 2, op_.options);
  auto store = collecting.Open();
  ASSERT_OK(store);
  auto collected = CollectGarbage(**store, {.min_garbage = 0.3});
  if (dropping.joinable()) {  // it never came to that: let the other go
    if (!looked) look.count_down();
    copied.count_down();
    dropping.join();
  }
  EXPECT_TRUE(swapping);
  EXPECT_FALSE(collected.ok());
  Status checked = CheckStore(op_, disk_, kRaceStore, {.acks = acked_});
  EXPECT_TRUE(checked.ok()) << checked.error().what;
}

}  // namespace
}  // namespace belay::test
