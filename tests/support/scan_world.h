#pragma once

// A directory in memory, a clock that the disk's time stamps follow in ticks as a
// kernel's do, and scans of it: with the cache, and from nothing to compare with.

#include "base/clock.h"
#include "base/mem_fs.h"
#include "base/random.h"
#include "scan/scan.h"
#include "support/fs_world.h"
#include "support/memory_sink.h"

namespace belay::test {

class ScanWorld {
 public:
  // `tick_ns`: how coarse the disk's clock is.
  explicit ScanWorld(int64_t tick_ns = 4'000'000, uint64_t seed = 1)
      : disk(MemFs::Options{.tick_ns = 0}), random(seed), tick_(tick_ns) {
    Must(disk.MakeDir(Must(disk.OpenDir(AbsPath::Literal("/"))), N("p"), 0755));
    Must(disk.MakeDir(Must(disk.OpenDir(AbsPath::Literal("/"))), N("cache"), 0700));
    root = Must(disk.OpenDir(AbsPath::Literal("/p")));
    cache = Must(disk.OpenDir(AbsPath::Literal("/cache")));
    request.git.user.no_system = true;
    request.cache_dir = &cache;
    request.threads = 1;
    request.root_id = RootId(random.NewId());
  }

  void Pass(int64_t nanos) {
    const int64_t before = elapsed_ / tick_;
    elapsed_ += nanos;
    disk.AdvanceTime((elapsed_ / tick_ - before) * tick_);
    clock.SetWallMillis(1'800'000'000'000 + elapsed_ / 1'000'000);
  }
  void Put(std::string_view path, std::string_view content, uint32_t mode = 0644) {
    Must(PutFile(disk, root, P(path), content, mode));
  }
  void Dir(std::string_view path) {
    Parent parent = Must(OpenParent(disk, root, P(path)));
    Must(disk.MakeDir(parent.dir, parent.name, 0755));
  }
  void Link(std::string_view path, std::string_view target) {
    Parent parent = Must(OpenParent(disk, root, P(path)));
    Must(disk.Symlink(parent.dir, parent.name, target));
  }
  void Remove(std::string_view path) {
    Parent parent = Must(OpenParent(disk, root, P(path)));
    Must(disk.Unlink(parent.dir, parent.name));
  }

  Result<std::unique_ptr<Scan>> TryScan(Fs& fs) {
    request.rules = std::make_shared<RuleConfig>(lists);
    return Scan::Run(fs, clock, random, request, sink);
  }
  // With the cache, which is brought up to date.
  ScanSummary Scanned() {
    auto scan = Must(TryScan(disk));
    Must(scan->SaveCache());
    return scan->summary();
  }
  // As if there had never been a scan.
  ScanSummary Fresh() {
    ScanRequest whole = request;
    whole.rules = std::make_shared<RuleConfig>(lists);
    whole.cache_dir = nullptr;
    return Must(Scan::Run(disk, clock, random, whole, sink))->summary();
  }

  MemFs disk;
  FakeClock clock;
  SeededRandom random;
  Fd root, cache;
  RuleLists lists;
  ScanRequest request{
      .root = AbsPath::Literal("/p"), .root_id = {}, .rules = {}, .git = {}};
  MemorySink sink;

 private:
  int64_t tick_;
  int64_t elapsed_ = 0;
};

}  // namespace belay::test
