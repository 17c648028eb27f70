// Deterministic source-like trees, and edits of them, for the benchmarks.
//
//   lab_tree gen DIR FILES IGNORED SEED     makes DIR: a pure function of the numbers
//   lab_tree edit DIR LIST SEED COUNT POOL ROUND
//   lab_tree damage DIR LIST SEED CHANGED CREATED DELETED ROUND
//   lab_tree diff DIR COPY OUT [SKIP...]
//   lab_tree mend DIR COPY OUT [SKIP...]
//
// gen: about 12 files a directory, each directory with six below it, 0.2-20 KiB a file
// and one in a hundred 60-140 KiB (mean 8 KiB), words from a vocabulary per file so
// that zstd -1 gives 4 to 5. Above 200,000 files each has 200-700 bytes: such a tree is
// there for the cost of looking, not of storing. IGNORED more files lie in
// node_modules.
//
// edit: LIST holds paths, each ended by NUL. COUNT of them are changed, taken from a
// pool of POOL that depends on SEED alone, so that the files that differ from the
// repository's HEAD stay few however many rounds there are. What is written depends on
// SEED, ROUND and the file. Every other file is truncated and written, the rest are
// written beside and renamed over, as editors and tools do.
//
// damage: what a rollback is to take back. CHANGED as by edit with a pool of the same
// size (at least 100), DELETED others are removed, CREATED files appear, one in ten in
// a directory that was not there. Rule files stay as they are.
//
// diff: where DIR differs from COPY, byte for byte, mode for mode; nothing is read from
// a cache. OUT gets one record a path, ended by NUL: M changed, C in DIR only, D in
// COPY only; a hash of what DIR has there; a space; the path. SKIP are names in DIR
// itself. mend: the same, and DIR is then made as COPY is, touching nothing else. Both
// print how many there are of each.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kFilesPerDir = 12;
constexpr uint64_t kBranching = 6;
constexpr uint64_t kIgnoredPerDir = 8;
constexpr uint64_t kOnlyScannedAbove = 200000;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "lab_tree: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

class Random {  // splitmix64
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

uint64_t Mix(uint64_t a, uint64_t b) {
  return Random(a ^ (b * 0xd6e8feb86659fd93)).Next();
}

std::string Word(Random& random) {
  std::string word;
  for (uint64_t n = 3 + random.Below(7); n > 0; --n)
    word += static_cast<char>('a' + random.Below(26));
  return word;
}

// Text of a file: its own names, in phrases that come again and again, as code does.
class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed) {
    for (auto& word : words_) word = Word(random_);
    for (auto& phrase : phrases_) {
      for (uint64_t n = 2 + random_.Below(4); n > 0; --n) Append(phrase);
      if (random_.Below(2) == 0) phrase += ";\n    ";
    }
  }
  std::string Text(size_t length) {
    std::string text;
    while (text.size() < length) {
      text += phrases_[std::min(random_.Below(kPhrases), random_.Below(kPhrases))];
      if (random_.Below(2) == 0) Append(text);
    }
    text.resize(length);
    return text;
  }

 private:
  static constexpr size_t kWords = 64;
  static constexpr size_t kPhrases = 56;
  void Append(std::string& text) {
    text += words_[std::min(random_.Below(kWords), random_.Below(kWords))];
    text += std::string_view(" =(.,)->")[random_.Below(8)];
  }

  Random random_;
  std::array<std::string, kWords> words_;
  std::array<std::string, kPhrases> phrases_;
};

void WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n < 0) Die(path);
    text.remove_prefix(static_cast<size_t>(n));
  }
}

void WriteFile(const std::string& path, std::string_view text, int flags, mode_t mode) {
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, mode);
  if (fd < 0) Die(path);
  WriteAll(fd, text, path);
  if (close(fd) != 0) Die(path);
}
void CreateFile(const std::string& path, std::string_view text) {
  WriteFile(path, text, O_CREAT | O_EXCL, 0644);
}

std::string ReadFile(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) Die(path);
  std::string text;
  char buffer[1 << 16];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(n));
  if (n < 0) Die(path);
  close(fd);
  return text;
}

void MakeDir(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0) Die(path);
}

size_t FileSize(Random& random, bool small) {
  if (small) return 200 + random.Below(501);
  if (random.Below(100) == 0) return 61440 + random.Below(81920);
  double unit = random.Unit();
  return 200 + static_cast<size_t>(20280 * unit * unit);
}

// The paths of `count` directories, directory i below directory (i-1)/kBranching.
std::vector<std::string> MakeDirs(const std::string& top, uint64_t count,
                                  uint64_t seed) {
  std::vector<std::string> dirs{top};
  for (uint64_t i = 1; i < count; ++i) {
    Random random(Mix(seed, i));
    dirs.push_back(dirs[(i - 1) / kBranching] + "/" + Word(random) + std::to_string(i));
    MakeDir(dirs.back());
  }
  return dirs;
}

void Generate(const std::string& top, uint64_t files, uint64_t ignored, uint64_t seed) {
  static constexpr const char* kEndings[] = {".cc", ".h", ".ts", ".py", ".md", ".json"};
  MakeDir(top);
  auto dirs = MakeDirs(top, std::max<uint64_t>(1, (files + 11) / kFilesPerDir), seed);
  CreateFile(top + "/.gitignore", "node_modules/\n*.o\n*.tmp\n/out/\n!keep.o\n");
  for (size_t i = 25; i < dirs.size(); i += 50)
    CreateFile(dirs[i] + "/.gitignore", "*.gen.*\ncoverage/\n!important.gen.ts\n");

  std::atomic<uint64_t> next{0};
  auto work = [&] {
    for (uint64_t i = next.fetch_add(1); i < files; i = next.fetch_add(1)) {
      Random random(Mix(seed + 1, i));
      size_t size = FileSize(random, files > kOnlyScannedAbove);
      std::string name = Word(random) + std::to_string(i) + kEndings[random.Below(6)];
      CreateFile(dirs[i / kFilesPerDir] + "/" + name, Writer(random.Next()).Text(size));
    }
  };
  std::thread second(work);
  work();
  second.join();

  if (ignored == 0) return;
  MakeDir(top + "/node_modules");
  auto packages = MakeDirs(top + "/node_modules",
                           std::max<uint64_t>(1, ignored / kIgnoredPerDir), seed + 2);
  for (uint64_t i = 0; i < ignored; ++i) {
    Random random(Mix(seed + 3, i));
    CreateFile(packages[i / kIgnoredPerDir % packages.size()] + "/m" +
                   std::to_string(i) + ".js",
               Writer(random.Next()).Text(200 + random.Below(2000)));
  }
}

std::vector<std::string> ReadList(const std::string& path) {
  std::string text = ReadFile(path);
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\0', at);
    if (end == std::string::npos) end = text.size();
    names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

// The first `count` of `items` become a random choice of all of them.
void Draw(std::vector<std::string>& items, size_t count, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < count; ++i)
    std::swap(items[i], items[i + random.Below(items.size() - i)]);
  items.resize(count);
}

// A few lines changed somewhere, and always longer: git compares times by the second,
// and a peer that copies the index (and so gives it a new time) misses a file that was
// made and changed in one second and kept its size. Whether that happens is the clock's
// to say, and no part of what is measured.
std::string Changed(std::string text, uint64_t seed) {
  Random random(seed);
  size_t at = text.empty() ? 0 : random.Below(text.size());
  size_t taken = std::min<size_t>(text.size() - at, 80 + random.Below(80));
  text.replace(at, taken, Writer(random.Next()).Text(taken + 1 + random.Below(80)));
  return text;
}

void EditOne(const std::string& path, uint64_t seed, bool truncate) {
  std::string text = Changed(ReadFile(path), seed);
  if (truncate) {
    WriteFile(path, text, O_TRUNC, 0);
    return;
  }
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) Die(path);
  std::string beside = path + ".edit~";
  WriteFile(beside, text, O_CREAT | O_EXCL, status.st_mode & 07777);
  if (chmod(beside.c_str(), status.st_mode & 07777) != 0) Die(beside);
  if (rename(beside.c_str(), path.c_str()) != 0) Die(path);
}

void Edit(const std::string& top, const std::string& list, uint64_t seed, size_t count,
          size_t pool, uint64_t round) {
  auto paths = ReadList(list);
  pool = std::min(pool, paths.size());
  count = std::min(count, pool);
  Draw(paths, pool, seed);
  Draw(paths, count, Mix(seed, round));
  for (size_t i = 0; i < count; ++i)
    EditOne(top + "/" + paths[i], Mix(Mix(seed, round + 1), i), i % 2 == 0);
}

std::string Created(const std::string& top, const std::vector<std::string>& paths,
                    Random& random, uint64_t round, size_t i) {
  const std::string& near = paths[random.Below(paths.size())];
  const size_t slash = near.rfind('/');
  std::string dir =
      top + (slash == std::string::npos ? "" : "/" + near.substr(0, slash));
  if (i % 10 == 9) {
    dir += "/new" + std::to_string(i);
    MakeDir(dir);
  }
  return dir + "/new" + std::to_string(round) + "-" + std::to_string(i) + ".cc";
}

void Damage(const std::string& top, const std::string& list, uint64_t seed,
            size_t changed, size_t created, size_t deleted, uint64_t round) {
  auto paths = ReadList(list);
  // With other rules a peer's clean-up would take what was ignored.
  std::erase_if(paths, [](const std::string& p) { return p.ends_with(".gitignore"); });
  const size_t all = paths.size();
  deleted = std::min(deleted, all / 2);
  changed = std::min(changed, all - deleted);
  // The same pool in every round; which of it go and which change differs.
  Draw(paths, std::min(all, std::max<size_t>(changed + deleted, 100)), seed);
  Draw(paths, changed + deleted, Mix(seed, round));
  for (size_t i = 0; i < changed; ++i)
    EditOne(top + "/" + paths[i], Mix(Mix(seed, round + 1), i), i % 2 == 0);
  Random random(Mix(seed, round + 2));
  for (size_t i = 0; i < created; ++i) {
    std::string path = Created(top, paths, random, round, i);
    CreateFile(path, Writer(random.Next()).Text(FileSize(random, false)));
  }
  for (size_t i = changed; i < changed + deleted; ++i)
    if (unlink((top + "/" + paths[i]).c_str()) != 0) Die(paths[i]);
}

// Compares two trees, and brings the first to the second.
class Comparison {
 public:
  Comparison(std::string top, std::string copy, std::set<std::string> skip, bool mend)
      : top_(std::move(top)),
        copy_(std::move(copy)),
        skip_(std::move(skip)),
        mend_(mend) {}

  void Run(const std::string& out) {
    Compare("");
    std::string text;
    for (const auto& [path, record] : found_)
      text += record + " " + path + std::string(1, '\0');
    WriteFile(out, text, O_CREAT | O_TRUNC, 0644);
    std::printf("{\"changed\":%zu,\"created\":%zu,\"deleted\":%zu}\n", count_['M'],
                count_['C'], count_['D']);
  }

 private:
  static struct stat StatOf(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) Die(path);
    return status;
  }
  static std::string ContentOf(const std::string& path, const struct stat& status) {
    if (S_ISREG(status.st_mode)) return ReadFile(path);
    if (!S_ISLNK(status.st_mode)) return "";
    char target[4096];
    ssize_t n = readlink(path.c_str(), target, sizeof target);
    if (n < 0) Die(path);
    return {target, static_cast<size_t>(n)};
  }
  std::set<std::string> Names(const std::string& dir, bool top) const {
    DIR* open = opendir(dir.c_str());
    if (!open) Die(dir);
    std::set<std::string> names;
    while (dirent* entry = readdir(open)) names.insert(entry->d_name);
    closedir(open);
    names.erase(".");
    names.erase("..");
    if (top)
      for (const auto& name : skip_) names.erase(name);
    return names;
  }

  void Note(char what, const std::string& path, const struct stat* status) {
    ++count_[static_cast<unsigned char>(what)];
    uint64_t hash = 0xcbf29ce484222325;
    if (status) {
      for (char c : ContentOf(top_ + path, *status))
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
      hash = Mix(hash, status->st_mode);
    }
    char text[20];
    std::snprintf(text, sizeof text, "%c%016llx", what,
                  static_cast<unsigned long long>(hash));
    found_[path.substr(1)] = text;
  }

  void Extra(const std::string& path) {
    struct stat status = StatOf(top_ + path);
    Note('C', path, &status);
    const bool dir = S_ISDIR(status.st_mode);
    if (dir)
      for (const auto& name : Names(top_ + path, false)) Extra(path + "/" + name);
    if (mend_ &&
        (dir ? rmdir((top_ + path).c_str()) : unlink((top_ + path).c_str())) != 0)
      Die(path);
  }

  void Put(const std::string& path, const struct stat& wanted) {
    const std::string to = top_ + path;
    if (S_ISDIR(wanted.st_mode)) {
      MakeDir(to);
    } else if (S_ISLNK(wanted.st_mode)) {
      if (symlink(ContentOf(copy_ + path, wanted).c_str(), to.c_str()) != 0) Die(to);
      return;
    } else {
      CreateFile(to, ReadFile(copy_ + path));
    }
    if (chmod(to.c_str(), wanted.st_mode & 07777) != 0) Die(to);
  }
  void Missing(const std::string& path) {
    struct stat wanted = StatOf(copy_ + path);
    Note('D', path, nullptr);
    if (mend_) Put(path, wanted);
    if (S_ISDIR(wanted.st_mode))
      for (const auto& name : Names(copy_ + path, false)) Missing(path + "/" + name);
  }

  void Both(const std::string& path) {
    struct stat is = StatOf(top_ + path), wanted = StatOf(copy_ + path);
    if ((is.st_mode & S_IFMT) != (wanted.st_mode & S_IFMT)) {
      Extra(path);
      Missing(path);
      return;
    }
    const bool dir = S_ISDIR(is.st_mode);
    if (is.st_mode != wanted.st_mode || (!dir && is.st_size != wanted.st_size) ||
        ContentOf(top_ + path, is) != ContentOf(copy_ + path, wanted)) {
      Note('M', path, &is);
      if (mend_ && dir) {
        if (chmod((top_ + path).c_str(), wanted.st_mode & 07777) != 0) Die(path);
      } else if (mend_) {
        if (unlink((top_ + path).c_str()) != 0) Die(path);
        Put(path, wanted);
      }
    }
    if (dir) Compare(path);
  }

  void Compare(const std::string& path) {
    auto here = Names(top_ + path, path.empty());
    auto there = Names(copy_ + path, path.empty());
    for (const auto& name : here)
      if (there.contains(name))
        Both(path + "/" + name);
      else
        Extra(path + "/" + name);
    for (const auto& name : there)
      if (!here.contains(name)) Missing(path + "/" + name);
  }

  std::string top_, copy_;
  std::set<std::string> skip_;
  bool mend_;
  std::map<std::string, std::string> found_;
  std::array<size_t, 128> count_{};
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  auto number = [&](size_t i) { return std::strtoull(args[i].c_str(), nullptr, 10); };
  if (args.size() == 5 && args[0] == "gen") {
    Generate(args[1], number(2), number(3), number(4));
  } else if (args.size() == 7 && args[0] == "edit") {
    Edit(args[1], args[2], number(3), number(4), number(5), number(6));
  } else if (args.size() == 8 && args[0] == "damage") {
    Damage(args[1], args[2], number(3), number(4), number(5), number(6), number(7));
  } else if (args.size() >= 4 && (args[0] == "diff" || args[0] == "mend")) {
    Comparison(args[1], args[2], {args.begin() + 4, args.end()}, args[0] == "mend")
        .Run(args[3]);
  } else {
    std::fprintf(stderr,
                 "usage: lab_tree gen DIR FILES IGNORED SEED\n"
                 "       lab_tree edit DIR LIST SEED COUNT POOL ROUND\n"
                 "       lab_tree damage DIR LIST SEED CHANGED CREATED DELETED ROUND\n"
                 "       lab_tree diff|mend DIR COPY OUT [SKIP...]\n");
    return 2;
  }
  return 0;
}
