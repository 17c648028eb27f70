// A process that works on a store until it is done or killed; many of them at once are
// tests/crash/many_processes.sh. What it claims is written down before it goes on.
//
//   store_worker write   <store> <log> <worker> <batches> <seed> <kill seed>
//   store_worker collect <store> <log> <stop file> <kill seed>
//   store_worker read    <store> <log> <stop file> <ignored>
//   store_worker check   <store> <log>...
//   store_worker stream  <store> <mebibytes>
//
// A log is appended to, one line per claim, and read again when its worker is started
// anew: "a <name> <seed> <number>" acknowledged with its sequence number, "d <name>"
// will be dropped (written before), "D <name>" dropped. Exit: 0 done, 1 something is
// wrong.
//
// A kill seed other than 0 lets the process die by SIGKILL at some call of the file
// system, so that no clock decides what is hit.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "base/fault_fs.h"
#include "base/real_fs.h"
#include "store/gc.h"
#include "store/inventory.h"
#include "store/verify.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

struct Place {
  explicit Place(const std::string& path, const char* kill_seed = "0",
                 uint64_t kill_within_changes = 300)
      : fs(real, KillBy(kill_seed, kill_within_changes)),
        dir(AbsPath::Literal(path)),
        options{.uid = static_cast<uint32_t>(getuid()), .lock_wait_ms = 120'000} {
    // Small, so that packs are filled, sealed and merged all the time.
    options.pack_target = 300'000;
    options.batch_target = 24'000;
  }
  Result<std::unique_ptr<Store>> Open(Store::Mode mode) {
    return Store::Open(fs, clock, random, dir, options, mode);
  }
  // At any call, or at one that changes something: those are few, and more is at stake.
  static Fault KillBy(const char* text, uint64_t changes) {
    const uint64_t seed = std::strtoull(text, nullptr, 10);
    if (seed == 0) return Fault::None();
    SeededRandom random(seed);
    const bool changing = random.Below(4) != 0;
    const uint64_t at = 1 + random.Below(changes * (changing ? 1 : 40));
    Fault fault = random.Below(2) == 0 ? Fault::Kill(at) : Fault::KillAfter(at);
    fault.mutating_only = changing;
    return fault;
  }
  RealFs real;
  FaultFs fs;
  RealClock clock;
  RealRandom random;
  AbsPath dir;
  StoreOptions options;
};

// Something told wrong, in words; kills are no part of it.
int Wrong(const std::string& what) {
  std::fprintf(stderr, "wrong: %s\n", what.c_str());
  return 1;
}

// Files that follow from a seed: some shared by all workers, some of one's own, now and
// then so much that it takes several batches.
Files FilesFor(uint64_t seed) {
  SeededRandom random(seed);
  Files files;
  uint64_t count = 1 + random.Below(5);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t pick = random.Below(40);
    files["shared/" + std::to_string(pick)] = SourceText(pick, 200 + 40 * pick);
  }
  files["own"] = Noise(seed, 100 + random.Below(3000));
  if (random.Below(16) == 0)
    for (int i = 0; i < 12; ++i)
      files["many/" + std::to_string(i)] =
          Noise(seed * 100 + static_cast<uint64_t>(i), 5000);
  return files;
}

class Log {
 public:
  explicit Log(const char* path)
      : fd_(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    BELAY_CHECK(fd_ >= 0);
  }
  // One write: a kill leaves a line whole or absent.
  void Line(const std::string& text) {
    std::string line = text + "\n";
    ssize_t put = write(fd_, line.data(), line.size());
    BELAY_CHECK(put == static_cast<ssize_t>(line.size()));
  }

 private:
  int fd_;
};

struct Claim {
  uint64_t seed = 0;
  uint64_t number = 0;
  bool dropping = false;  // may be gone
  bool dropped = false;   // must be gone
};
std::map<std::string, Claim> ReadClaims(const std::string& path) {
  std::map<std::string, Claim> claims;
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string what;
    std::string name;
    words >> what >> name;
    if (what == "a") {
      Claim& c = claims[name];
      words >> c.seed >> c.number;
    } else if (what == "d") {
      claims[name].dropping = true;
    } else if (what == "D") {
      claims[name].dropped = true;
    }
  }
  return claims;
}

// --- write ---------------------------------------------------------------------------

int Write(char** args) {
  Place place(args[0], args[5]);
  Log log(args[1]);
  const std::string worker = args[2];
  const uint64_t batches = std::strtoull(args[3], nullptr, 10);
  const uint64_t seed = std::strtoull(args[4], nullptr, 10);
  auto claims = ReadClaims(args[1]);
  // A name is never used twice: one whose acknowledgement was lost may be there.
  uint64_t attempt = 0;
  const std::string attempts_file = std::string(args[1]) + ".attempts";
  {
    std::ifstream in(attempts_file);
    std::string line;
    while (std::getline(in, line)) ++attempt;
  }
  Log attempts(attempts_file.c_str());
  uint64_t acked = claims.size();
  SeededRandom random(seed * 1000 + attempt);
  auto store = place.Open(Store::Mode::kWrite);
  if (!store.ok()) return Wrong("open: " + store.error().what);
  std::vector<std::string> live;
  for (const auto& [name, c] : claims)
    if (!c.dropping && !c.dropped) live.push_back(name);
  while (acked < batches) {
    attempts.Line("x");
    const std::string name = "w" + worker + "-" + std::to_string(attempt++);
    const uint64_t content = seed * 1'000'000 + attempt;
    auto writer = (*store)->Begin();
    if (!writer.ok()) return Wrong("begin: " + writer.error().what);
    Checkpoint c;
    auto state = PutFiles(**writer, FilesFor(content));
    if (!state.ok()) return Wrong("put: " + state.error().what);
    c.state = *state;
    c.id = IdFor(name);
    c.name = name;
    (*writer)->Add(ToRecord(c));
    auto published = (*writer)->Commit();
    if (!published.ok()) return Wrong("commit: " + published.error().what);
    log.Line("a " + name + " " + std::to_string(content) + " " +
             std::to_string(published->first_seq));
    ++acked;
    live.push_back(name);
    // Bounded, so that a collection takes no longer towards the end.
    if (live.size() > 15 || (live.size() > 4 && random.Below(3) == 0)) {
      size_t pick = static_cast<size_t>(random.Below(live.size()));
      std::string victim = live[pick];
      live.erase(live.begin() + static_cast<ptrdiff_t>(pick));
      log.Line("d " + victim);
      if (Status dropped = DropCheckpoints(**store, {victim}); !dropped.ok())
        return Wrong("drop: " + dropped.error().what);
      log.Line("D " + victim);
    }
  }
  return 0;
}

// --- collect, read -------------------------------------------------------------------

bool Exists(const char* path) { return access(path, F_OK) == 0; }

int Collect(char** args) {
  // In the middle of one collection, or some collections later.
  SeededRandom random(std::strtoull(args[3], nullptr, 10));
  Place place(args[0], args[3], random.Below(2) == 0 ? 250 : 2'500);
  Log log(args[1]);
  while (!Exists(args[2])) {
    auto store = place.Open(Store::Mode::kWrite);
    if (!store.ok()) return Wrong("gc open: " + store.error().what);
    auto report = CollectGarbage(**store, {.min_garbage = 0.05});
    if (!report.ok()) {
      if (report.error().code == Errc::kConflict || report.error().code == Errc::kBusy)
        continue;
      return Wrong("gc: " + report.error().what);
    }
    if (report->objects_removed + report->records_removed > 0) log.Line("g");
  }
  return 0;
}

int Read(char** args) {
  Place place(args[0]);
  Log log(args[1]);
  uint64_t turn = 0;
  while (!Exists(args[2])) {
    auto store = place.Open(Store::Mode::kRead);
    if (!store.ok()) {
      if (store.error().code == Errc::kNotFound) continue;
      return Wrong("read open: " + store.error().what);
    }
    if (++turn % 4 == 0) {
      auto report = VerifyStore(**store, {.read_data = true});
      if (!report.ok()) return Wrong("verify: " + report.error().what);
      if (!report->clean()) return Wrong("verify says: " + report->damage.front());
    } else {
      auto held = (*store)->HoldForReading();
      if (!held.ok()) return Wrong("hold: " + held.error().what);
      auto all = ReadAll(**store);
      if (!all.ok()) return Wrong("read: " + all.error().what);
    }
    log.Line("r");
  }
  return 0;
}

// --- check ---------------------------------------------------------------------------

int Check(int count, char** args) {
  Place place(args[0]);
  auto store = place.Open(Store::Mode::kWrite);
  if (!store.ok()) return Wrong("open: " + store.error().what);
  int wrong = 0;
  LogView view;
  auto held = (*store)->HoldForReading();
  if (!held.ok()) return Wrong("hold: " + held.error().what);
  if (Status read = ReadOn(**store, view); !read.ok())
    return Wrong("log: " + read.error().what);
  std::map<std::string, const LogRecord*> by_name;
  std::set<uint64_t> numbers;
  for (const LogRecord& r : view.records) {
    if (!numbers.insert(r.seq).second)
      wrong += Wrong("number " + std::to_string(r.seq) + " was given twice");
    if (r.kind != RecordKind::kCheckpoint) continue;
    auto c = ToCheckpoint(r);
    if (!c.ok()) {
      wrong += Wrong("checkpoint: " + c.error().what);
      continue;
    }
    if (!by_name.emplace(*c->name, &r).second)
      wrong += Wrong(*c->name + " is there twice");
  }
  uint64_t acked = 0;
  uint64_t dropped = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& [name, claim] : ReadClaims(args[i])) {
      ++acked;
      dropped += claim.dropped ? 1 : 0;
      auto at = by_name.find(name);
      bool there = at != by_name.end() && view.IsWanted(*at->second);
      if (claim.dropped && there) wrong += Wrong(name + " was dropped and is there");
      if (!claim.dropping && !claim.dropped && !there) {
        wrong += Wrong(name + " was acknowledged and is LOST");
        continue;
      }
      if (!there) continue;
      if (at->second->seq != claim.number)
        wrong += Wrong(name + " has another number than it was given");
      auto files = ReadFiles(**store, at->second->refs[0].id);
      if (!files.ok())
        wrong += Wrong(name + ": " + files.error().what);
      else if (*files != FilesFor(claim.seed))
        wrong += Wrong(name + " reads OTHER BYTES");
    }
  }
  held->Release();
  auto report = VerifyStore(**store, {.read_data = true});
  if (!report.ok()) return Wrong("verify: " + report.error().what);
  for (const std::string& d : report->damage) wrong += Wrong("verify: " + d);
  std::printf("%" PRIu64 " acknowledged, %" PRIu64 " dropped, %zu records, %d wrong\n",
              acked, dropped, view.records.size(), wrong);
  return wrong == 0 ? 0 : 1;
}

// --- stream --------------------------------------------------------------------------

// Bytes that follow from their offset: noise, with long stretches of zeros as a sparse
// file has them; mostly noise at first, mostly zeros later.
void FillAt(uint64_t offset, std::span<std::byte> out) {
  constexpr uint64_t kBlock = 4096;
  for (size_t done = 0; done < out.size();) {
    const uint64_t at = offset + done;
    const uint64_t block = at / kBlock;
    const size_t within = static_cast<size_t>(at % kBlock);
    const size_t count =
        std::min(out.size() - done, static_cast<size_t>(kBlock) - within);
    const bool early = at < (uint64_t{64} << 20);
    if ((block / 512 % 4 == 0) == early) {
      std::memset(out.data() + done, 0, count);
    } else {
      std::byte whole[kBlock];
      SeededRandom(block).Fill(whole);
      std::memcpy(out.data() + done, whole + within, count);
    }
    done += count;
  }
}

uint64_t PeakKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss);
}

int Stream(char** args) {
  Place place(args[0]);
  place.options = StoreOptions{.uid = static_cast<uint32_t>(getuid())};
  const uint64_t total = std::strtoull(args[1], nullptr, 10) << 20;
  const uint64_t before = PeakKib();
  auto store = place.Open(Store::Mode::kWrite);
  if (!store.ok()) return Wrong("open: " + store.error().what);
  auto writer = (*store)->Begin();
  if (!writer.ok()) return Wrong("begin: " + writer.error().what);
  uint64_t given = 0;
  auto id = (*writer)->PutStream([&](std::span<std::byte> out) -> Result<size_t> {
    // Odd pieces, as a pipe gives them.
    size_t count = std::min<uint64_t>({out.size(), total - given, 65'521});
    FillAt(given, out.first(count));
    given += count;
    return count;
  });
  if (!id.ok()) return Wrong("put: " + id.error().what);
  auto published = (*writer)->Commit();
  if (!published.ok()) return Wrong("commit: " + published.error().what);
  const uint64_t wrote = PeakKib();
  uint64_t read = 0;
  bool equal = true;
  Bytes expected;
  Status back = (*store)->ReadContent(*id, [&](ByteSpan piece) -> Status {
    expected.resize(piece.size());
    FillAt(read, expected);
    equal &= std::memcmp(expected.data(), piece.data(), piece.size()) == 0;
    read += piece.size();
    return Ok();
  });
  if (!back.ok()) return Wrong("read: " + back.error().what);
  if (!equal || read != total) return Wrong("other bytes came back");
  const uint64_t peak = PeakKib();
  std::printf("%" PRIu64 " MiB streamed and read back, %" PRIu64
              " MiB stored; peak RSS %" PRIu64 " KiB at start, %" PRIu64
              " KiB written, %" PRIu64 " KiB read\n",
              total >> 20, published->stats.bytes_stored >> 20, before, wrote, peak);
  if (peak > 150 * 1024) return Wrong("memory is not flat");
  return 0;
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "write" && argc == 8) return Write(argv + 2);
  if (what == "collect" && argc == 6) return Collect(argv + 2);
  if (what == "read" && argc == 6) return Read(argv + 2);
  if (what == "check" && argc >= 4) return Check(argc - 2, argv + 2);
  if (what == "stream" && argc == 4) return Stream(argv + 2);
  std::fprintf(stderr, "store_worker: see the head of store_worker.cc\n");
  return 2;
}

}  // namespace
}  // namespace belay::test

int main(int argc, char** argv) { return belay::test::Main(argc, argv); }
