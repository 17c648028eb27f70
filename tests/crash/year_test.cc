// A year of work under a small cap: eight writers on eight roots, sessions that come
// and go, checkpoints by hand and pinned ones, old ones let go and garbage collected
// beside them, processes killed at random. The cap holds, nothing is refused while
// anything may go, and whatever must stay is there, whole.
//
// ./test runs a few weeks; BELAY_FULL=1 the year: 20,000 checkpoints, 50 sessions, and
// then what `belay list` and `belay search` of the program beside this one take.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/random.h"
#include "base/real_fs.h"
#include "core/capture.h"
#include "core/retention.h"
#include "core/roots.h"
#include "core/space.h"
#include "store/gc.h"
#include "store/usage.h"
#include "store/verify.h"
#include "support/store_fixture.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

bool Full() { return std::getenv("BELAY_FULL") != nullptr; }
const uint64_t kCap = (Full() ? uint64_t{32} : uint64_t{4}) << 20;
constexpr int kWriters = 8;

// A clock whose days pass quickly; waiting is real.
class QuickClock final : public Clock {
 public:
  int64_t WallMillis() override { return wall; }
  int64_t SteadyNanos() override { return real_.SteadyNanos(); }
  void SleepNanos(int64_t nanos) override { real_.SleepNanos(nanos); }
  int64_t wall = 1'700'000'000'000;

 private:
  RealClock real_;
};

Settings SmallCap() {
  Settings settings;
  settings.store_cap = {.bytes = kCap};
  settings.store_floor = {};
  return settings;
}

struct Place {
  std::string top;
  AbsPath store() const { return Must(AbsPath::Parse(top + "/store")); }
  AbsPath project(int writer) const {
    return Must(AbsPath::Parse(top + "/p" + std::to_string(writer)));
  }
  std::string acknowledged(int writer) const {
    return top + "/ack" + std::to_string(writer);
  }
  template <typename T>
  static T Must(Result<T> result) {
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.error().what.c_str());
      _exit(3);
    }
    return std::move(*result);
  }
};

std::vector<std::string> Lines(const std::string& file) {
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Makes checkpoints from the first that is not acknowledged yet up to `count`; one byte
// to `told` for each.
[[noreturn]] void Write(const Place& place, int writer, int count, int64_t step_ms,
                        int per_session, int told) {
  RealFs fs;
  QuickClock clock;
  RealRandom random;
  const Settings settings = SmallCap();
  StoreOptions options{.uid = static_cast<uint32_t>(getuid()), .lock_wait_ms = 120'000};
  int next = static_cast<int>(Lines(place.acknowledged(writer)).size());
  const int ack = open(place.acknowledged(writer).c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  for (; next < count; ++next) {
    clock.wall = 1'700'000'000'000 + next * step_ms;
    auto store = Place::Must(
        Store::Open(fs, clock, random, place.store(), options, Store::Mode::kWrite));
    auto catalog = Place::Must(Catalog::Open(*store));
    const AbsPath project = place.project(writer);
    auto known = Place::Must(FindRootAt(*catalog, project));
    Fd dir = Place::Must(MakeDirs(fs, project, 0755));
    if (!known) {
      FileStat stat = Place::Must(fs.Stat(dir));
      (void)Place::Must(RegisterRoot(*store, *catalog, project, stat, {}));
      known = Place::Must(FindRootAt(*catalog, project));
    }
    const uint64_t seed =
        static_cast<uint64_t>(writer) * 1'000'000 + static_cast<uint64_t>(next);
    const std::string name = "f" + std::to_string(next % 8);
    {
      std::ofstream out(project.bytes() + "/" + name, std::ios::trunc);
      out << Noise(seed, 2000 + next % 7 * 1000);
    }
    CaptureRequest request;
    request.root = known->root;
    request.settings = &settings;
    request.git.user.no_system = true;
    request.kind = next % 100 == 50 ? CheckpointKind::kManual : CheckpointKind::kAuto;
    request.session =
        "w" + std::to_string(writer) + "-" + std::to_string(next / per_session);
    request.threads = 1;
    request.lock_wait_ms = 120'000;
    auto made = CaptureCheckpoint(*store, request);
    if (!made.ok()) {
      std::fprintf(stderr, "refused: writer %d, number %d: %s\n", writer, next,
                   made.error().what.c_str());
      _exit(4);
    }
    const bool pin = next % 250 == 120;
    if (pin) {
      auto batch = Place::Must(store->Begin());
      LogRecord record;
      record.kind = RecordKind::kAnnotation;
      record.id = RecordId(random.NewId());
      record.root = known->root.id;
      record.made_ms = clock.wall;
      record.fields.Add(kAnnotationTarget, made->checkpoint.id.span());
      record.fields.AddNumber(kAnnotationPinned, 1);
      batch->Add(record);
      (void)Place::Must(batch->Commit());
    }
    std::ostringstream line;
    line << made->checkpoint.id.text() << ' ' << *request.session << ' '
         << (request.kind == CheckpointKind::kManual || pin ? "keep" : "auto") << '\n';
    if (write(ack, line.str().data(), line.str().size()) < 0) _exit(5);
    if (write(told, "x", 1) < 0) _exit(5);
    if (next % 64 == 63) {
      (void)Prune(*store, *catalog, RetentionLimits::Of(settings), false);
      (void)CollectWithinCap(*store, settings, {});
    }
  }
  _exit(0);
}

// Milliseconds of CPU that the program takes in `place`'s first project, the least of
// five runs; negative when it fails.
double CpuOf(const Place& place, std::vector<const char*> words) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  std::string program(self, length > 0 ? static_cast<size_t>(length) : 0);
  program.replace(program.rfind('/') + 1, std::string::npos, "belay");
  words.insert(words.begin(), program.c_str());
  words.push_back(nullptr);
  double least = -1;
  for (int round = 0; round < 5; ++round) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
      if (chdir(place.project(0).bytes().c_str()) != 0 || dup2(null, 0) < 0 ||
          dup2(null, 1) < 0)
        _exit(3);
      setenv("HOME", place.top.c_str(), 1);
      setenv("BELAY_HOME", place.store().bytes().c_str(), 1);
      execv(program.c_str(), const_cast<char**>(words.data()));
      _exit(3);
    }
    int status = 0;
    rusage used{};
    if (wait4(pid, &status, 0, &used) != pid || status != 0) return -1;
    auto ms = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
    };
    const double cpu = ms(used.ru_utime) + ms(used.ru_stime);
    if (least < 0 || cpu < least) least = cpu;
  }
  return least;
}

TEST(YearTest, TheCapHoldsAndWhatMustStayStays) {
  const bool full = Full();
  const int count = full ? 2500 : 90;  // of each writer
  const int per_session = full ? 400 : 30;
  const int64_t step_ms = int64_t{365} * 24 * 3600 * 1000 / 2500;
  const char* given = std::getenv("BELAY_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 7;
  std::printf("BELAY_SEED=%llu\n", static_cast<unsigned long long>(seed));
  SeededRandom random(seed);
  TempDir temp;
  const Place place{temp.path().bytes()};

  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  std::vector<pid_t> pids(kWriters, 0);
  auto start = [&](int writer) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) Write(place, writer, count, step_ms, per_session, pipe_fds[1]);
    pids[static_cast<size_t>(writer)] = pid;
  };
  for (int writer = 0; writer < kWriters; ++writer) start(writer);

  RealFs fs;
  QuickClock clock;
  RealRandom ids;
  StoreOptions options{.uid = static_cast<uint32_t>(getuid()), .lock_wait_ms = 120'000};
  int running = kWriters, kills = 0, bad = 0, measured = 0;
  uint64_t most = 0, made = 0;
  uint64_t next_kill = 20;
  while (running > 0) {
    char bytes[64];
    pollfd polled{pipe_fds[0], POLLIN, 0};
    if (poll(&polled, 1, 100) > 0) {
      const ssize_t got = read(pipe_fds[0], bytes, sizeof bytes);
      if (got > 0) made += static_cast<uint64_t>(got);
    }
    if (made >= next_kill) {
      next_kill = made + 20 + random.Below(60);
      const pid_t victim = pids[random.Below(kWriters)];
      if (victim > 0) kill(victim, SIGKILL);
    }
    // Also in the middle of a collection, when copies lie beside what they replace.
    if (auto store =
            Store::Open(fs, clock, ids, place.store(), options, Store::Mode::kRead);
        store.ok())
      if (auto used = AllocatedBytes(**store); used.ok()) {
        most = std::max(most, used->all);
        ++measured;
      }
    for (int writer = 0; writer < kWriters; ++writer) {
      pid_t& pid = pids[static_cast<size_t>(writer)];
      int status = 0;
      if (pid == 0 || waitpid(pid, &status, WNOHANG) != pid) continue;
      if (WIFSIGNALED(status)) {
        ++kills;
        start(writer);
        continue;
      }
      pid = 0;
      --running;
      bad += WEXITSTATUS(status) != 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(bad, 0) << "refused or failed";
  EXPECT_GT(kills, 0);
  EXPECT_GT(measured, 0);
  // One checkpoint is 8 KB and a few trees.
  EXPECT_LE(most, kCap + (uint64_t{64} << 10));

  clock.wall = 1'700'000'000'000 + count * step_ms;
  auto store = Place::Must(
      Store::Open(fs, clock, ids, place.store(), options, Store::Mode::kWrite));
  VerifyOptions every_byte;
  every_byte.read_data = true;
  VerifyReport report = Place::Must(VerifyStore(*store, every_byte));
  EXPECT_TRUE(report.clean()) << report.damage.front();
  auto catalog = Place::Must(Catalog::Open(*store));
  std::set<std::string> there;
  for (const CatalogEntry& entry : Place::Must(catalog->ListCheckpoints({})))
    there.insert(entry.checkpoint.id.text());
  uint64_t acknowledged = 0, sessions = 0, lost = 0;
  for (int writer = 0; writer < kWriters; ++writer) {
    std::map<std::string, std::pair<std::string, std::string>> ends;  // first, newest
    std::set<std::string> mine;
    for (const std::string& line : Lines(place.acknowledged(writer))) {
      std::istringstream in(line);
      std::string id, session, keep;
      in >> id >> session >> keep;
      ++acknowledged;
      mine.insert(id);
      ends.try_emplace(session, id, id).first->second.second = id;
      if (keep == "keep" && !there.contains(id)) ++lost;
    }
    sessions += ends.size();
    // The first may be one that was made and not acknowledged (killed in between): then
    // that one is there instead. The newest of a session always is.
    for (const auto& [session, of] : ends) {
      auto in_session = Place::Must(catalog->ListCheckpoints({.session = session}));
      if (in_session.empty() || !there.contains(of.second))
        ++lost;
      else if (!there.contains(of.first) &&
               mine.contains(in_session.back().checkpoint.id.text()))
        ++lost;
    }
  }
  EXPECT_EQ(lost, 0u);
  EXPECT_LT(there.size(), acknowledged) << "the cap was never near";
  EXPECT_EQ(acknowledged,
            static_cast<uint64_t>(kWriters) * static_cast<uint64_t>(count));
  std::printf(
      "year: %llu checkpoints, %llu sessions, %d kills, %zu left, the store took at "
      "most %llu KiB of %llu, 0 refused\n",
      static_cast<unsigned long long>(acknowledged),
      static_cast<unsigned long long>(sessions), kills, there.size(),
      static_cast<unsigned long long>(most >> 10),
      static_cast<unsigned long long>(kCap >> 10));
  if (!full) return;
  const double list = CpuOf(place, {"list"});
  const double list_all = CpuOf(place, {"list", "--all", "--json"});
  const double search = CpuOf(place, {"search", "f3"});
  std::printf("year: CPU of list %.1f ms, with --all --json %.1f ms, search %.1f ms\n",
              list, list_all, search);
  for (const double ms : {list, list_all, search}) {
    EXPECT_GT(ms, 0) << "the program failed";
    EXPECT_LT(ms, 50);
  }
}

}  // namespace
}  // namespace belay::test
