// The store against the bare disk, git and restic, in one run on one machine.
//
//   bench/store [--rounds N] [--megabytes N] [DIR]
//   bench/store --once DIR     one batch into DIR/once-store, then exit: for strace -c
//
// 1. A durable batch of ten small changed files (objects, tree, state, record) against
//    a bare 100 KiB append + fdatasync, interleaved. Target: at most 1.3x. Once with a
//    store that stays open, as in a daemon, once with one opened for each batch, as a
//    command does.
// 2. Putting source-like files on two threads, durable, against `git hash-object -w`
// and
//    `restic backup` of the same files. Wall and CPU; ratios above 1 are in our favour.

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/real_fs.h"
#include "store/batch_writer.h"
#include "store/store.h"

extern char** environ;

namespace belay {
namespace {

double Seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}
double Cpu(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}
double Now() { return static_cast<double>(RealClock().SteadyNanos()) / 1e9; }
double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "store_bench: %s\n", what.c_str());
  std::exit(1);
}
template <class T>
T Must(Result<T> result) {
  if (!result.ok()) Die(result.error().what);
  return std::move(result).value();
}

// Words with a vocabulary per file, so that zstd-1 gives about 5x, as on real source.
std::string SourceLike(uint64_t seed, size_t length) {
  SeededRandom random(seed);
  std::vector<std::string> words;
  for (int i = 0; i < 120; ++i) {
    std::string word;
    for (uint64_t n = 3 + random.Below(7); n > 0; --n)
      word += static_cast<char>('a' + random.Below(26));
    words.push_back(word);
  }
  std::string text;
  while (text.size() < length) {
    uint64_t pick = std::min(random.Below(120), random.Below(120));
    text += words[pick];
    text += " =(;\n.,{}"[random.Below(9)];
  }
  text.resize(length);
  return text;
}

struct Place {
  RealFs fs;
  RealClock clock;
  RealRandom random;
  std::string dir;
  std::unique_ptr<Store> OpenStore(const std::string& name) {
    StoreOptions options;
    options.uid = geteuid();
    return Must(Store::Open(fs, clock, random, AbsPath::Literal(dir + "/" + name),
                            options, Store::Mode::kWrite));
  }
};

void Commit(Place& place, BatchWriter& writer, Tree& tree, const char* name) {
  std::sort(tree.entries.begin(), tree.entries.end(),
            [](const TreeEntry& a, const TreeEntry& b) { return a.name < b.name; });
  State state;
  state.tree = Must(writer.PutTree(tree));
  Checkpoint checkpoint;
  checkpoint.state = Must(writer.PutObject(ObjectType::kState, EncodeState(state)));
  checkpoint.id = RecordId(place.random.NewId());
  checkpoint.description = name;
  checkpoint.made_ms = place.clock.WallMillis();
  writer.Add(ToRecord(checkpoint));
  Must(writer.Commit());
}

void CommitFiles(Place& place, Store& store, const std::vector<std::string>& files) {
  auto writer = Must(store.Begin());
  Tree tree;
  for (size_t i = 0; i < files.size(); ++i) {
    TreeEntry entry;
    entry.name = "file" + std::to_string(i);
    entry.mode = 0644;
    entry.size = files[i].size();
    entry.id = Must(writer->PutContent(AsBytes(files[i])));
    tree.entries.push_back(entry);
  }
  Commit(place, *writer, tree, "bench");
}

// Objects of `size` bytes: 1000 is what trees and small files are; 8000 is the mean
// source file, where zstd alone takes 0.4 ms for ten.
void BenchAppend(Place& place, int rounds, size_t size, bool reopen) {
  const std::string name =
      "append-store" + std::to_string(size) + (reopen ? "-reopened" : "");
  auto store = place.OpenStore(name);
  int bare = open((place.dir + "/bare").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (bare < 0) Die("cannot create the bare file");
  std::string block = SourceLike(1, 100 << 10);
  std::vector<double> bare_wall, bare_cpu, ours_wall, ours_cpu;
  off_t at = 0;
  uint64_t seed = 1000;
  for (int round = -5; round < rounds; ++round) {
    std::vector<std::string> files;
    for (int i = 0; i < 10; ++i) files.push_back(SourceLike(++seed, size));
    for (bool ours : {round % 2 == 0, round % 2 != 0}) {
      double wall = Now();
      double cpu = Cpu(RUSAGE_SELF);
      if (ours) {
        if (reopen) {
          store.reset();
          store = place.OpenStore(name);
        }
        CommitFiles(place, *store, files);
      } else {
        if (pwrite(bare, block.data(), block.size(), at) !=
            static_cast<ssize_t>(block.size()))
          Die("bare write");
        at += static_cast<off_t>(block.size());
        if (fdatasync(bare) != 0) Die("bare fdatasync");
      }
      if (round < 0) continue;  // warm up
      (ours ? ours_wall : bare_wall).push_back((Now() - wall) * 1e3);
      (ours ? ours_cpu : bare_cpu).push_back((Cpu(RUSAGE_SELF) - cpu) * 1e3);
    }
  }
  close(bare);
  std::printf("append, %d rounds, median ms (wall / cpu)\n", rounds);
  std::printf("  (ten objects of %zu bytes, a tree, a state, a record; store %s)\n",
              size, reopen ? "opened for each" : "held open");
  std::printf("  bare 100 KiB append + fdatasync      %7.3f / %6.3f\n",
              Median(bare_wall), Median(bare_cpu));
  std::printf("  belay: batch of 10 files, durable    %7.3f / %6.3f\n",
              Median(ours_wall), Median(ours_cpu));
  std::printf("  ratio                                %7.2fx (target at most 1.3)\n\n",
              Median(ours_wall) / Median(bare_wall));
}

int Once(const std::string& dir) {
  Place place;
  place.dir = dir;
  std::vector<std::string> files;
  const auto seed = static_cast<uint64_t>(place.clock.SteadyNanos());
  for (uint64_t i = 0; i < 10; ++i) files.push_back(SourceLike(seed + i, 1000));
  auto store = place.OpenStore("once-store");
  CommitFiles(place, *store, files);
  return 0;
}

struct Cost {
  double wall = 0, cpu = 0;
};

// Runs a program with the list of files on its standard input.
bool RunProgram(const std::vector<std::string>& argv, const std::string& input,
                Cost& cost) {
  std::vector<char*> raw;
  for (const std::string& a : argv) raw.push_back(const_cast<char*>(a.c_str()));
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  double wall = Now();
  double cpu = Cpu(RUSAGE_CHILDREN);
  pid_t pid = 0;
  int failed = posix_spawnp(&pid, raw[0], &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int status = 0;
  waitpid(pid, &status, 0);
  cost = {Now() - wall, Cpu(RUSAGE_CHILDREN) - cpu};
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void BenchPut(Place& place, size_t megabytes) {
  const std::string tree_dir = place.dir + "/files";
  mkdir(tree_dir.c_str(), 0700);
  std::vector<std::string> names;
  std::string list;
  uint64_t bytes = 0;
  SeededRandom random(7);
  for (uint64_t i = 0; bytes < (megabytes << 20); ++i) {
    size_t length = 200 + static_cast<size_t>(random.Below(16'000));
    std::string name = tree_dir + "/f" + std::to_string(i);
    int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::string text = SourceLike(100'000 + i, length);
    if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      Die("cannot write the files");
    close(fd);
    names.push_back(name);
    list += name + "\n";
    bytes += length;
  }
  const std::string list_file = place.dir + "/list";
  int fd = open(list_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (write(fd, list.data(), list.size()) != static_cast<ssize_t>(list.size()))
    Die("cannot write the list");
  close(fd);

  Cost ours;
  {
    auto store = place.OpenStore("put-store");
    double wall = Now();
    double cpu = Cpu(RUSAGE_SELF);
    auto writer = Must(store->Begin());
    Tree tree;
    tree.entries.resize(names.size());
    std::atomic<size_t> next{0};
    auto work = [&] {
      std::string text;
      for (size_t i; (i = next.fetch_add(1)) < names.size();) {
        int file = open(names[i].c_str(), O_RDONLY);
        struct stat st {};
        fstat(file, &st);
        text.resize(static_cast<size_t>(st.st_size));
        if (read(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
          Die("short read");
        close(file);
        TreeEntry& entry = tree.entries[i];
        entry.name = names[i].substr(tree_dir.size() + 1);
        entry.mode = 0600;
        entry.size = text.size();
        entry.id = Must(writer->PutContent(AsBytes(text)));
      }
    };
    std::thread other(work);
    work();
    other.join();
    Commit(place, *writer, tree, "put");
    ours = {Now() - wall, Cpu(RUSAGE_SELF) - cpu};
  }
  const double mb = static_cast<double>(bytes) / 1e6;
  std::printf("put %.0f MB in %zu source-like files (wall s / cpu s, MB/s wall)\n", mb,
              names.size());
  auto row = [&](const char* name, const Cost& cost) {
    std::printf("  %-34s %6.2f / %6.2f  %7.1f", name, cost.wall, cost.cpu,
                mb / cost.wall);
    if (cost.wall != ours.wall)
      std::printf("   belay is %.1fx faster (cpu %.1fx)", cost.wall / ours.wall,
                  cost.cpu / ours.cpu);
    std::printf("\n");
  };
  row("belay, 2 threads, durable", ours);
  Cost cost;
  const std::string git_dir = place.dir + "/git";
  if (RunProgram({"git", "init", "-q", "--bare", git_dir}, "/dev/null", cost) &&
      RunProgram({"git", "-C", git_dir, "hash-object", "-w", "--stdin-paths"},
                 list_file, cost))
    row("git hash-object -w --stdin-paths", cost);
  else
    std::printf("  git: not installed or failed\n");
  setenv("RESTIC_PASSWORD", "bench", 1);
  setenv("RESTIC_REPOSITORY", (place.dir + "/restic").c_str(), 1);
  if (RunProgram({"restic", "init", "-q"}, "/dev/null", cost) &&
      RunProgram({"restic", "backup", "-q", "--no-cache", tree_dir}, "/dev/null", cost))
    row("restic backup", cost);
  else
    std::printf("  restic: not installed or failed\n");
}

int Main(int argc, char** argv) {
  int rounds = 200;
  size_t megabytes = 100;
  std::string parent = "/var/tmp";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--megabytes") == 0 && i + 1 < argc)
      megabytes = static_cast<size_t>(std::atoll(argv[++i]));
    else if (std::strcmp(argv[i], "--once") == 0 && i + 1 < argc)
      return Once(argv[++i]);
    else
      parent = argv[i];
  }
  std::string dir = parent + "/belay-bench.XXXXXX";
  if (rounds < 1 || mkdtemp(dir.data()) == nullptr) Die("cannot make " + dir);
  Place place;
  place.dir = dir;
  for (size_t size : {size_t{1000}, size_t{8000}})
    for (bool reopen : {false, true}) BenchAppend(place, rounds, size, reopen);
  if (megabytes > 0) BenchPut(place, megabytes);
  Cost ignored;
  RunProgram({"rm", "-rf", dir}, "/dev/null", ignored);
  return 0;
}

}  // namespace
}  // namespace belay

int main(int argc, char** argv) { return belay::Main(argc, argv); }
