// The bare limits: what merely looking at a tree costs, without storing anything.
//
//   lab_limits list DIR OUT [SKIP...]            writes OUT and OUT.dirs
//   lab_limits walk DIR THREADS [SKIP...]        getdents64, and statx of every entry
//   lab_limits statlist DIR OUT.dirs THREADS     statx of a list known before
//   lab_limits put DIR COPY DIFF pwrite|rename   writes what differs, as in COPY
//
// SKIP are paths below DIR that are not looked at: .git and what is ignored, so that
// the limit is that of the covered files. OUT holds the regular files and symlinks,
// each path ended by NUL; OUT.dirs the same by directory, for statlist, which opens
// each directory once (O_PATH), asks for its own status, and for each name relative to
// it.
//
// put is the least that brings DIR back, knowing all of it before: DIFF is what
// lab_tree diff wrote. Changed files are written in place, or beside and renamed over;
// those that are too many are removed, the missing made; then one syncfs. The contents
// of COPY and the paths are in memory before the clock starts. Nothing is checked or
// remembered.
//
// walk, statlist and put print one JSON object: wall and CPU milliseconds of the work
// alone, from the first system call on the tree to the last, without the start of the
// process and without reading the list. The harness times the whole process besides.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int kStatFlags = AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC;
constexpr int kDirFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "lab_limits: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

double Milliseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

class Stopwatch {
 public:
  void Print(uint64_t files, uint64_t dirs) const {
    std::printf("{\"wall_ms\":%.4f,\"cpu_ms\":%.4f,\"files\":%llu,\"dirs\":%llu}\n",
                Milliseconds(CLOCK_MONOTONIC) - wall_,
                Milliseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_,
                static_cast<unsigned long long>(files),
                static_cast<unsigned long long>(dirs));
  }

 private:
  double cpu_ = Milliseconds(CLOCK_PROCESS_CPUTIME_ID);
  double wall_ = Milliseconds(CLOCK_MONOTONIC);
};

struct Dirent {  // linux_dirent64
  uint64_t ino;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[];
};

// Calls `see` with each entry but . and ..
template <class F>
void ForEachEntry(int fd, F see) {
  alignas(Dirent) char buffer[1 << 15];
  for (;;) {
    long n = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
    if (n < 0) Die("getdents64");
    if (n == 0) return;
    for (long at = 0; at < n;) {
      auto* entry = reinterpret_cast<Dirent*>(buffer + at);
      at += entry->length;
      const char* name = entry->name;
      if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))) continue;
      see(*entry);
    }
  }
}

class Skips {
 public:
  explicit Skips(std::vector<std::string> paths) : paths_(paths.begin(), paths.end()) {
    for (const auto& path : paths_) {
      size_t slash = path.rfind('/');
      names_.insert(slash == std::string::npos ? path : path.substr(slash + 1));
    }
  }
  // The names first: most entries are settled by them, without making a path.
  bool Has(const std::string& dir, const char* name) const {
    auto it = names_.find(std::string_view(name));
    if (it == names_.end()) return false;
    return paths_.contains(dir.empty() ? std::string(name) : dir + "/" + name);
  }

 private:
  std::set<std::string> paths_;
  std::set<std::string, std::less<>> names_;
};

std::string Join(const std::string& dir, const char* name) {
  return dir.empty() ? std::string(name) : dir + "/" + name;
}

struct Count {
  uint64_t files = 0;
  uint64_t dirs = 0;
};

// One thread: each directory is opened relative to the one above, which stays open.
void WalkDeep(int fd, std::string& path, const Skips& skips, Count& count) {
  ++count.dirs;
  std::vector<std::string> below;
  ForEachEntry(fd, [&](Dirent& entry) {
    bool is_dir = entry.type == DT_DIR;
    if (is_dir && skips.Has(path, entry.name)) return;
    struct statx status {};
    statx(fd, entry.name, kStatFlags, STATX_BASIC_STATS, &status);
    if (is_dir)
      below.emplace_back(entry.name);
    else
      ++count.files;
  });
  for (const auto& name : below) {
    int child = openat(fd, name.c_str(), kDirFlags);
    if (child < 0) Die(name);
    size_t length = path.size();
    path = Join(path, name.c_str());
    WalkDeep(child, path, skips, count);
    path.resize(length);
    close(child);
  }
}

// Several threads share a stack of directories.
class SharedWalk {
 public:
  SharedWalk(int root, const Skips& skips) : root_(root), skips_(skips) {}

  void Run(int threads) {
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back([this] { Work(); });
    Work();
    for (auto& thread : others) thread.join();
  }
  Count count() const { return {files_.load(), dirs_.load()}; }

 private:
  void Work() {
    std::string path;
    while (Take(path)) {
      int fd = openat(root_, path.empty() ? "." : path.c_str(), kDirFlags);
      if (fd < 0) Die(path);
      std::vector<std::string> below;
      uint64_t files = 0;
      ForEachEntry(fd, [&](Dirent& entry) {
        bool is_dir = entry.type == DT_DIR;
        if (is_dir && skips_.Has(path, entry.name)) return;
        struct statx status {};
        statx(fd, entry.name, kStatFlags, STATX_BASIC_STATS, &status);
        if (is_dir)
          below.push_back(Join(path, entry.name));
        else
          ++files;
      });
      close(fd);
      files_ += files;
      ++dirs_;
      Give(std::move(below));
    }
  }
  bool Take(std::string& path) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !stack_.empty() || busy_ == 0; });
    if (stack_.empty()) return false;
    path = std::move(stack_.back());
    stack_.pop_back();
    ++busy_;
    return true;
  }
  void Give(std::vector<std::string> below) {
    std::lock_guard lock(mutex_);
    for (auto& path : below) stack_.push_back(std::move(path));
    --busy_;
    if (stack_.size() > 1 || busy_ == 0) changed_.notify_all();
  }

  int root_;
  const Skips& skips_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> stack_{""};
  int busy_ = 0;
  std::atomic<uint64_t> files_{0};
  std::atomic<uint64_t> dirs_{0};
};

int OpenRoot(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) Die(path);
  return fd;
}

void Walk(const std::string& dir, int threads, const Skips& skips) {
  Stopwatch watch;
  int root = OpenRoot(dir);
  Count count;
  if (threads == 1) {
    std::string path;
    WalkDeep(root, path, skips, count);
  } else {
    SharedWalk walk(root, skips);
    walk.Run(threads);
    count = walk.count();
  }
  watch.Print(count.files, count.dirs);
}

void ListDir(int fd, const std::string& path, const Skips& skips, std::FILE* paths,
             std::FILE* dirs) {
  std::vector<std::string> files, below;
  ForEachEntry(fd, [&](Dirent& entry) {
    if (entry.type == DT_DIR) {
      if (!skips.Has(path, entry.name)) below.emplace_back(entry.name);
    } else if (entry.type == DT_REG || entry.type == DT_LNK) {
      // Only regular files can be edited; a link counts for the limit alone.
      if (entry.type == DT_REG) {
        std::string full = Join(path, entry.name);
        std::fwrite(full.c_str(), 1, full.size() + 1, paths);
      }
      files.emplace_back(entry.name);
    }
  });
  std::sort(files.begin(), files.end());
  std::sort(below.begin(), below.end());
  std::fprintf(dirs, "D%s%c", path.c_str(), 0);
  for (const auto& name : files) std::fprintf(dirs, "F%s%c", name.c_str(), 0);
  for (const auto& name : below) {
    int child = openat(fd, name.c_str(), kDirFlags);
    if (child < 0) Die(name);
    ListDir(child, Join(path, name.c_str()), skips, paths, dirs);
    close(child);
  }
}

void List(const std::string& dir, const std::string& out, const Skips& skips) {
  std::FILE* paths = std::fopen((out + ".unsorted").c_str(), "w+");
  std::FILE* dirs = std::fopen((out + ".dirs").c_str(), "w");
  if (!paths || !dirs) Die(out);
  ListDir(OpenRoot(dir), "", skips, paths, dirs);
  if (std::fclose(dirs) != 0) Die(out);
  // Directory order depends on the file system; what is edited must not.
  std::vector<std::string> sorted;
  std::string current;
  std::rewind(paths);
  for (int c = 0; (c = std::getc(paths)) != EOF;) {
    if (c != 0) {
      current += static_cast<char>(c);
      continue;
    }
    sorted.push_back(std::move(current));
    current.clear();
  }
  std::fclose(paths);
  std::remove((out + ".unsorted").c_str());
  std::sort(sorted.begin(), sorted.end());
  std::FILE* file = std::fopen(out.c_str(), "w");
  if (!file) Die(out);
  for (const auto& path : sorted) std::fwrite(path.c_str(), 1, path.size() + 1, file);
  if (std::fclose(file) != 0) Die(out);
}

struct KnownDir {
  const char* path = nullptr;
  std::vector<const char*> names;
};

std::string ReadAll(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (!file) Die(path);
  std::string text;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, n);
  std::fclose(file);
  return text;
}

void StatList(const std::string& dir, const std::string& list, int threads) {
  std::string text = ReadAll(list);
  std::vector<KnownDir> known;
  uint64_t files = 0;
  for (size_t at = 0; at < text.size(); at += std::strlen(&text[at]) + 1) {
    if (text[at] == 'D') known.emplace_back().path = &text[at + 1];
    if (text[at] == 'F') {
      known.back().names.push_back(&text[at + 1]);
      ++files;
    }
  }
  Stopwatch watch;
  int root = OpenRoot(dir);
  std::atomic<size_t> next{0};
  constexpr size_t kShare = 16;
  auto work = [&] {
    struct statx status {};
    for (size_t from = next.fetch_add(kShare); from < known.size();
         from = next.fetch_add(kShare)) {
      for (size_t i = from; i < std::min(from + kShare, known.size()); ++i) {
        const char* path = known[i].path;
        int fd = openat(root, *path ? path : ".",
                        O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0) Die(path);
        statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status);
        for (const char* name : known[i].names)
          statx(fd, name, kStatFlags, STATX_BASIC_STATS, &status);
        close(fd);
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (auto& thread : others) thread.join();
  watch.Print(files, known.size());
}

// Makes DIR as COPY is where `diff` says that it is not.
void Put(const std::string& dir, const std::string& copy, const std::string& diff,
         bool in_place) {
  struct Item {
    char what;
    std::string path, content;
    mode_t mode;
  };
  std::vector<Item> items;
  std::string text = ReadAll(diff);
  for (size_t at = 0; at < text.size(); at += std::strlen(&text[at]) + 1) {
    Item item{text[at], std::strchr(&text[at], ' ') + 1, "", 0};
    const std::string from = copy + "/" + item.path;
    struct stat status {};
    if (item.what != 'C') {
      if (stat(from.c_str(), &status) != 0) Die(from);
      item.mode = status.st_mode;
      if (S_ISREG(item.mode)) item.content = ReadAll(from);
    }
    items.push_back(std::move(item));
  }
  auto write_to = [](int fd, const Item& item) {
    if (fd < 0) Die(item.path);
    const auto size = static_cast<off_t>(item.content.size());
    if (pwrite(fd, item.content.data(), item.content.size(), 0) != size ||
        ftruncate(fd, size) != 0 || close(fd) != 0)
      Die(item.path);
  };
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  Stopwatch watch;
  int root = OpenRoot(dir);
  for (const Item& item : items) {
    const char* path = item.path.c_str();
    if (item.what == 'D' && S_ISDIR(item.mode)) {
      if (mkdirat(root, path, item.mode & 07777) != 0) Die(item.path);
    } else if (item.what == 'D') {
      write_to(openat(root, path, kNew, item.mode & 07777), item);
    } else if (item.what == 'M' && in_place) {
      write_to(openat(root, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW), item);
    } else if (item.what == 'M') {
      const std::string beside = item.path + ".put~";
      write_to(openat(root, beside.c_str(), kNew, item.mode & 07777), item);
      if (renameat(root, beside.c_str(), root, path) != 0) Die(item.path);
    }
  }
  for (size_t i = items.size(); i-- > 0;) {  // children before their directories
    if (items[i].what != 'C') continue;
    const char* path = items[i].path.c_str();
    if (unlinkat(root, path, 0) != 0 && unlinkat(root, path, AT_REMOVEDIR) != 0)
      Die(items[i].path);
  }
  if (syncfs(root) != 0) Die(dir);
  watch.Print(items.size(), 0);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  auto rest = [&](size_t from) {
    return Skips(
        std::vector<std::string>(args.begin() + static_cast<long>(from), args.end()));
  };
  if (args.size() >= 3 && args[0] == "list") {
    List(args[1], args[2], rest(3));
  } else if (args.size() >= 3 && args[0] == "walk") {
    Walk(args[1], std::atoi(args[2].c_str()), rest(3));
  } else if (args.size() == 4 && args[0] == "statlist") {
    StatList(args[1], args[2], std::atoi(args[3].c_str()));
  } else if (args.size() == 5 && args[0] == "put") {
    Put(args[1], args[2], args[3], args[4] == "pwrite");
  } else {
    std::fprintf(stderr,
                 "usage: lab_limits list DIR OUT [SKIP...]\n"
                 "       lab_limits walk DIR THREADS [SKIP...]\n"
                 "       lab_limits statlist DIR OUT.dirs THREADS\n"
                 "       lab_limits put DIR COPY DIFF pwrite|rename\n");
    return 2;
  }
  return 0;
}
