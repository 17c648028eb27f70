#include "ignore/rule_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/subprocess.h"
#include "ignore/wildmatch.h"

namespace belay::test {
namespace {

const char kGit[] = "/usr/bin/git";

const std::vector<std::string> kNames = {
    "a",           "b",     "c",     "A",     "B",           "ab",      "aB",
    "foo",         "bar",   "Foo",   "foo.c", "foo.o",       "bar.o",   "BAR.O",
    "foobar",      "x.log", "build", "src",   "docs",        "1",       "42",
    "a b",         "a ",    " a",    "a  ",   "a\t",         "\ta",     "#a",
    "!a",          "\\a",   "a\\",   "a\\b",  "a*b",         "*",       "**",
    "a?b",         "?",     "[a]",   "a[b",   "]",           "[",       "a]",
    "-",           "a-b",   "^",     "!",     "#",           ":a",      "a:",
    ".x",          "..x",   "...",   "a.",    "\xc3\xa9",    "\xc3",    "\xff",
    "\xc3\x89",    "z\xff", "\x01",  "\x7f",  "a\rb",        "a\r",     "\r",
    "a\nb",        "_",     "a_b",   "~",     "foo~",        "{a,b}",   "\xef\xbb\xbf",
    "aa",          "aaa",   "abab",  "aXb",   ".gitignored", ".hidden", "Z",
    "\xe2\x82\xac"};

const std::vector<std::string> kSets = {"[a-z]",
                                        "[A-Z]",
                                        "[!a-z]",
                                        "[^a-z]",
                                        "[a-]",
                                        "[-a]",
                                        "[z-a]",
                                        "[a",
                                        "[",
                                        "[]",
                                        "[]a]",
                                        "[!]a]",
                                        "[^]a]",
                                        "[!",
                                        "[a-\\z]",
                                        "[\\a-z]",
                                        "[\\]]",
                                        "[\\",
                                        "[a\\",
                                        "[[:alpha:]]",
                                        "[[:digit:]]",
                                        "[[:upper:]]",
                                        "[[:lower:]]",
                                        "[[:alnum:]]",
                                        "[[:space:]]",
                                        "[[:blank:]]",
                                        "[[:punct:]]",
                                        "[[:print:]]",
                                        "[[:graph:]]",
                                        "[[:cntrl:]]",
                                        "[[:xdigit:]]",
                                        "[![:alpha:]]",
                                        "[[:foo:]]",
                                        "[[:alpha:",
                                        "[[:alpha:]",
                                        "[[:alpha]]",
                                        "[[:]",
                                        "[[:]]",
                                        "[[::]]",
                                        "[[]",
                                        "[[a]",
                                        "[[:alpha:]-z]",
                                        "[a-[:alpha:]]",
                                        "[[.a.]]",
                                        "[[=a=]]",
                                        "[/]",
                                        "[!/]",
                                        "[^a/]",
                                        "[a/b]",
                                        "[*]",
                                        "[?]",
                                        "[a-c-e]",
                                        "[--9]",
                                        "[!-a]",
                                        "[a!]",
                                        "[[:upper:][:digit:]]",
                                        "[\xc3-\xff]",
                                        "[\x01-\x7f]",
                                        "[\x80-\xff]",
                                        "[ ]",
                                        "[!a-zA-Z0-9]",
                                        "[A]",
                                        "[\\A]",
                                        "[,-.]",
                                        "[[:ALPHA:]]"};

}  // namespace

bool FoundGit() { return access(kGit, X_OK) == 0; }

std::vector<std::string> SplitPath(std::string_view path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    size_t end = path.find('/', at);
    if (end == std::string_view::npos) end = path.size();
    parts.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

RuleWorld::RuleWorld(Random& random, size_t entries, bool ignore_case, bool case_twins)
    : random_(random), ignore_case_(ignore_case), top_(temp_.path().bytes() + "/r") {
  BELAY_CHECK(mkdir(top_.c_str(), 0700) == 0);
  BELAY_CHECK(mkdir((temp_.path().bytes() + "/home").c_str(), 0700) == 0);
  std::string config =
      "[core]\n\tfsync = none\n\texcludesFile = " + global_file() + "\n";
  WriteFile("../config", config);
  Git({"init", "-q", "--template=", "."});
  Git({"config", "core.ignoreCase", ignore_case ? "true" : "false"});
  BELAY_CHECK(mkdir(Absolute(".git/info").c_str(), 0700) == 0);

  std::vector<std::string> dirs = {""};
  std::set<std::string> folded;
  for (size_t tries = 0; tree_.size() < entries && tries < entries * 20; ++tries) {
    const std::string& dir = Pick(dirs);
    const std::string path = dir + NewName();
    if (path.size() > 1500 || tree_.contains(path)) continue;
    if (ignore_case && !case_twins) {
      std::string key = path;
      for (char& c : key) c = FoldByte(c);
      if (!folded.insert(key).second) continue;
    }
    NodeKind kind = NodeKind::kFile;
    if (OneIn(4)) kind = NodeKind::kDirectory;
    if (OneIn(20)) kind = NodeKind::kSymlink;
    const std::string at = Absolute(path);
    if (kind == NodeKind::kDirectory) {
      if (mkdir(at.c_str(), 0700) != 0) continue;
      dirs.push_back(path + "/");
    } else if (kind == NodeKind::kSymlink) {
      const char* target = OneIn(2) ? "." : "nowhere";
      if (symlink(target, at.c_str()) != 0) continue;
    } else {
      int fd = open(at.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (fd < 0) continue;
      close(fd);
    }
    tree_[path] = kind;
    paths_.push_back(path);
  }
}

std::string RuleWorld::NewName() {
  for (;;) {
    std::string name = Pick(kNames);
    if (OneIn(5)) name += Pick(kNames);
    if (OneIn(8)) name += "." + Pick(kNames);
    if (OneIn(12)) {
      name.resize(1 + random_.Below(6));
      for (char& c : name) c = static_cast<char>(1 + random_.Below(255));
    }
    if (OneIn(60)) {  // as long as a name can be; no repetition that would hang git
      while (name.size() < 255)
        name += static_cast<char>("abcxyzABC.-_"[random_.Below(12)]);
    }
    std::string lower;
    for (char c : name) lower += FoldByte(c);
    // Names that git treats in a way of its own.
    if (!IsValidName(name) || lower.find("git") != std::string::npos) continue;
    return name;
  }
}

// --- patterns ------------------------------------------------------------------------

std::string RuleWorld::Set(char around) {
  if (OneIn(3)) {
    const char c[] = {around, 0};
    static const std::vector<std::string> kShapes = {
        "[@]",   "[!@]",  "[^@]",         "[@-@]", "[\\@]", "[x@]", "[@x]",
        "[a-@]", "[@-z]", "[[:alpha:]@]", "[]@]",  "[@-]",  "[-@]", "[@"};
    std::string shape = Pick(kShapes);
    for (size_t at; (at = shape.find('@')) != std::string::npos;)
      shape.replace(at, 1, c[0] == '@' ? "x" : c);
    return shape;
  }
  return Pick(kSets);
}

// A path, or a part of one, with some of its bytes made wild.
std::string RuleWorld::Disturb(std::string_view path) {
  std::string out;
  int stars = 0;
  const bool calm = OneIn(3);
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    const bool component = c == '/' || i == 0;
    if (component && !calm && stars < 6 && OneIn(6)) {
      static const std::vector<std::string> kDeep = {"**/",  "/**",   "**",   "*/",
                                                     "***/", "**\\/", "/**/", "*"};
      out += Pick(kDeep);
      stars += 3;
    }
    if (calm || !OneIn(5)) {
      out += c;
      continue;
    }
    switch (random_.Below(9)) {
      case 0:
        out += '?';
        break;
      case 1:
      case 2: {
        if (++stars > 6) break;
        out += OneIn(4) ? "**" : "*";
        size_t skip = static_cast<size_t>(random_.Below(4));
        while (skip > 0 && i + 1 < path.size() && path[i + 1] != '/') ++i, --skip;
        break;
      }
      case 3:
      case 4:
        out += Set(c);
        break;
      case 5:
        out += '\\';
        out += c;
        break;
      case 6:
        out += FoldByte(c) != c       ? FoldByte(c)
               : c >= 'a' && c <= 'z' ? static_cast<char>(c - 32)
                                      : c;
        break;
      case 7:
        break;  // left out
      default:
        out += c;
        out += Pick(std::vector<std::string>{"/", "x", "*", "\\", " ", "?", "//"});
        break;
    }
  }
  return out;
}

std::string RuleWorld::NewPattern(const std::string& dir) {
  std::string body;
  switch (random_.Below(10)) {
    case 0: {  // anything from the alphabet of specials
      static const char kAlphabet[] = "*?[]!^-\\/:abAB. #\tfo*/";
      const size_t size = static_cast<size_t>(random_.Below(10));
      int stars = 0;
      for (size_t i = 0; i < size; ++i) {
        char c = kAlphabet[random_.Below(sizeof kAlphabet - 1)];
        if (c == '*' && ++stars > 6) c = 'a';
        body += c;
      }
      break;
    }
    case 1: {  // any bytes
      const size_t size = static_cast<size_t>(random_.Below(8));
      for (size_t i = 0; i < size; ++i) {
        char c = static_cast<char>(random_.Below(OneIn(20) ? 256 : 255) + 1);
        body += c == '\n' ? 'x' : c;
      }
      break;
    }
    case 2:  // names that need not exist
      body = Disturb(Pick(kNames) + (OneIn(2) ? "/" + Pick(kNames) : ""));
      break;
    case 3: {
      static const std::vector<std::string> kWhole = {
          "*",      "**",      "/*",      "*/",         "/**",     "**/",     "/**/",
          "/",      "//",      "***",     "*.o",        "*.c",     "*.*",     ".*",
          "?",      "??",      "*/*",     "**/*",       "**/*.o",  "/*/",     "*/**",
          "a/**",   "**/a",    "a/**/b",  "a**",        "**a",     "a**/b",   "a/**b",
          "foo**/", "*a*",     "*b",      "a*",         "",        " ",       "\\",
          "\\ ",    "!",       "!!",      "\\!a",       "\\#a",    "#a",      "\t",
          "[",      "*\\",     "/a",      "/foo/",      "foo/*",   "foo/**",  "*.log",
          "**/**",  "**/**/a", "/**/foo", "src/**/*.o", "\\a",     "\\A",     "./a",
          "../a",   "a/.",     "a//b",    "/a/b/",      "**foo**", "*/foo/*", "\\*",
          "\\**",   "*\\*"};
      body = Pick(kWhole);
      break;
    }
    default: {  // part of a real path
      if (paths_.empty()) return "*";
      std::string path = Pick(paths_);
      if (!dir.empty() && path.starts_with(dir)) path = path.substr(dir.size());
      std::vector<std::string> parts = SplitPath(path);
      size_t from = 0;
      if (OneIn(2)) from = static_cast<size_t>(random_.Below(parts.size()));
      size_t to = parts.size();
      if (OneIn(3)) to = from + 1 + static_cast<size_t>(random_.Below(to - from));
      std::string part;
      for (size_t i = from; i < to; ++i) part += (i > from ? "/" : "") + parts[i];
      body = Disturb(part);
      if (OneIn(12)) {  // `*.o` and its like
        const size_t dot = part.rfind('.');
        if (dot != std::string::npos) body = "*" + part.substr(dot);
      }
      break;
    }
  }
  std::string line;
  if (OneIn(4)) line += "!";
  if (OneIn(40))
    line += Pick(std::vector<std::string>{"\\!", "#", "\\#", " ", "\\ ", "!",
                                          "\xef\xbb\xbf", "./"});
  if (OneIn(6)) line += "/";
  line += body;
  if (OneIn(6)) line += "/";
  if (OneIn(10))
    line += Pick(std::vector<std::string>{" ", "  ", "\\ ", "\\  ", "\\", "\t", "\r",
                                          " \r", "/ ", " /", "\\\\ ", "\\ \\ ", "/*",
                                          "/**", "*", "//", "\t ", " \t"});
  if (OneIn(400)) line += std::string(1, '\0') + "x";
  if (OneIn(300)) line += std::string(static_cast<size_t>(random_.Below(70'000)), 'q');
  return line;
}

std::string RuleWorld::PatternBytes(const std::string& dir) {
  std::string bytes;
  if (OneIn(15)) bytes += "\xef\xbb\xbf";
  // Long ones are looked up by an index, short ones are not.
  const size_t lines = 1 + static_cast<size_t>(random_.Below(OneIn(4) ? 60 : 6));
  const bool crlf = OneIn(6);
  for (size_t i = 0; i < lines; ++i) {
    if (OneIn(15))
      bytes += Pick(std::vector<std::string>{"\n", "# no\n", "\r\n", " \n"});
    bytes += NewPattern(dir);
    if (i + 1 == lines && OneIn(4)) break;  // no line feed at the end
    bytes += crlf || OneIn(40) ? "\r\n" : "\n";
  }
  return bytes;
}

void RuleWorld::WriteFile(const std::string& path, std::string_view bytes) {
  const std::string at = Absolute(path);
  int fd = open(at.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  BELAY_CHECK(fd >= 0);
  while (!bytes.empty()) {
    ssize_t wrote = write(fd, bytes.data(), bytes.size());
    BELAY_CHECK(wrote > 0);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  close(fd);
}

void RuleWorld::WriteRules() {
  for (const std::string& path : with_rules_) unlink(Absolute(path).c_str());
  with_rules_.clear();
  for (const std::string& dir : directories()) {
    if (!dir.empty() && !OneIn(5)) continue;
    const std::string path = dir.empty() ? ".gitignore" : dir + "/.gitignore";
    if (path.size() > 3000) continue;
    if (OneIn(40)) {  // not followed
      WriteFile(".git/elsewhere", "*\n");
      if (symlink(Absolute(".git/elsewhere").c_str(), Absolute(path).c_str()) != 0)
        continue;
    } else {
      WriteFile(path, PatternBytes(dir.empty() ? dir : dir + "/"));
    }
    with_rules_.insert(path);
  }
  WriteFile(".git/info/exclude", OneIn(3) ? "" : PatternBytes(""));
  WriteFile("../excludes", OneIn(3) ? "" : PatternBytes(""));
}

void RuleWorld::InitRepository(const std::string& dir) {
  Git({"init", "-q", "--template=", "."}, "", dir);
  Git({"config", "core.ignoreCase", ignore_case_ ? "true" : "false"}, "", dir);
}

// --- asking --------------------------------------------------------------------------

std::string RuleWorld::Git(std::vector<std::string> arguments, std::string input,
                           const std::string& dir, int also) const {
  const std::string scratch = temp_.path().bytes();
  auto where = AbsPath::Parse(dir.empty() ? top_ : Absolute(dir));
  BELAY_CHECK(where.ok());
  auto done = RunProcess({.program = AbsPath::Literal(kGit),
                          .arguments = arguments,
                          .environment = {"GIT_CONFIG_NOSYSTEM=1",
                                          "GIT_CONFIG_GLOBAL=" + scratch + "/config",
                                          "HOME=" + scratch + "/home", "LC_ALL=C",
                                          "GIT_CEILING_DIRECTORIES=" + scratch},
                          .directory = *where,
                          .input = std::move(input),
                          .timeout_ms = 120'000,
                          .output_cap = size_t{1} << 30});
  if (!done.ok() || done->end != ProcessResult::End::kExited ||
      (done->code != 0 && done->code != also)) {
    std::string what = "git " + arguments[0] + ": " +
                       (done.ok() ? done->errors.substr(0, 500) : done.error().what);
    CheckFailed(what.c_str(), __FILE__, __LINE__);
  }
  return done->output;
}

bool RuleWorld::IsDirectory(const std::string& path) const {
  struct stat st {};
  return lstat(Absolute(path).c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

std::vector<std::string> RuleWorld::List(const std::string& dir) const {
  DIR* stream = opendir(Absolute(dir).c_str());
  BELAY_CHECK(stream != nullptr);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(stream);
  return names;
}

std::optional<std::string> RuleWorld::ReadRules(const std::string& path) const {
  int fd = open(Absolute(path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  std::string bytes;
  char buffer[1 << 14];
  for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
    bytes.append(buffer, static_cast<size_t>(got));
  close(fd);
  return bytes;
}

std::shared_ptr<const WorkTree> RuleWorld::Rules(
    std::shared_ptr<const TrackedSet> tracked, const std::string& dir) const {
  const std::string prefix = dir.empty() ? "" : dir + "/";
  WorkTreeInput input;
  if (auto bytes = ReadRules(prefix + ".git/info/exclude"))
    input.info_exclude = RuleBytes{".git/info/exclude", *bytes};
  if (auto bytes = ReadRules("../excludes"))
    input.global_excludes = RuleBytes{global_file(), *bytes};
  input.ignore_case = ignore_case_;
  input.tracked = std::move(tracked);
  return std::make_shared<WorkTree>(std::move(input));
}

std::vector<std::string> RuleWorld::directories() const {
  std::vector<std::string> dirs = {""};
  for (const auto& [path, kind] : tree_)
    if (kind == NodeKind::kDirectory) dirs.push_back(path);
  return dirs;
}

std::string RuleWorld::OtherPath() {
  std::string path;
  for (;;) {
    const std::vector<std::string> dirs = directories();
    path = Pick(dirs);
    if (!path.empty()) path += '/';
    path += NewName();
    if (OneIn(3) && !tree_.contains(path)) path += "/" + NewName();
    if (!tree_.contains(path)) return path;
    if (OneIn(20)) return path;
  }
}

}  // namespace belay::test
