#include "git/config.h"

#include <charconv>
#include <limits>

#include "base/escape.h"
#include "git/config_parser_internal.h"
#include "git/files_internal.h"
#include "ignore/wildmatch.h"

namespace belay {

namespace {

constexpr size_t kMaxFile = size_t{8} << 20;
constexpr int kMaxDepth = 10;  // git's
// All files together: a chain of includes multiplies.
constexpr size_t kMaxEntries = 1'000'000;
constexpr size_t kMaxFiles = 1000;

bool SameFolded(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    char c = a[i] >= 'A' && a[i] <= 'Z' ? static_cast<char>(a[i] + 32) : a[i];
    if (c != lower[i]) return false;
  }
  return true;
}

// The home directory that the user database names; only the file is asked.
std::optional<std::string> HomeOf(Fs& fs, const std::string& passwd_file,
                                  std::string_view name) {
  auto path = AbsPath::Parse(passwd_file);
  if (!path.ok() || name.empty()) return std::nullopt;
  auto text = git_internal::ReadText(fs, *path, kMaxFile);
  if (!text.ok()) return std::nullopt;
  std::string_view rest = *text;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (!line.starts_with(name) || line.size() == name.size() ||
        line[name.size()] != ':')
      continue;
    for (int field = 0; field < 5; ++field) {  // name:password:uid:gid:words:home:shell
      size_t colon = line.find(':');
      if (colon == std::string_view::npos) return std::nullopt;
      line.remove_prefix(colon + 1);
    }
    return std::string(line.substr(0, line.find(':')));
  }
  return std::nullopt;
}

}  // namespace

std::optional<bool> ParseGitBool(const std::optional<std::string>& value) {
  if (!value) return true;
  if (value->empty()) return false;
  for (std::string_view word : {"true", "yes", "on"})
    if (SameFolded(*value, word)) return true;
  for (std::string_view word : {"false", "no", "off"})
    if (SameFolded(*value, word)) return false;
  // strtoimax: blanks, a sign, 0x and 0 for other bases; then a unit.
  std::string_view text = *value;
  while (!text.empty() && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r')))
    text.remove_prefix(1);
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') &&
      std::string_view("0123456789abcdefABCDEF").find(text[2]) !=
          std::string_view::npos) {
    text.remove_prefix(2);
    base = 16;
  } else if (text.starts_with('0')) {
    base = 8;
  }
  uint64_t number = 0;
  auto [end, problem] =
      std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (problem != std::errc()) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  uint64_t factor = 1;
  if (SameFolded(unit, "k"))
    factor = uint64_t{1} << 10;
  else if (SameFolded(unit, "m"))
    factor = uint64_t{1} << 20;
  else if (SameFolded(unit, "g"))
    factor = uint64_t{1} << 30;
  else if (!unit.empty())
    return std::nullopt;
  // Git wants it to fit an int.
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
  if (number > kMax / factor) return std::nullopt;
  return number != 0;
}

std::optional<std::string> ExpandGitPath(Fs& fs, std::string_view path,
                                         const GitUserConfig& user) {
  constexpr std::string_view kPrefix = "%(prefix)/";
  if (path.starts_with(kPrefix))
    return user.prefix + "/" + std::string(path.substr(kPrefix.size()));
  if (!path.starts_with('~')) return std::string(path);
  size_t slash = std::min(path.find('/'), path.size());
  std::optional<std::string> home =
      slash == 1 ? user.home : HomeOf(fs, user.passwd_file, path.substr(1, slash - 1));
  if (!home) return std::nullopt;
  return *home + std::string(path.substr(slash));
}

std::optional<std::string> GitXdgFile(const GitUserConfig& user,
                                      std::string_view name) {
  if (user.xdg_config_home && !user.xdg_config_home->empty())
    return *user.xdg_config_home + "/git/" + std::string(name);
  if (user.home) return *user.home + "/.config/git/" + std::string(name);
  return std::nullopt;
}

// --- reading -------------------------------------------------------------------------

class GitConfigReader {
 public:
  GitConfigReader(Fs& fs, const GitUserConfig& user, const GitConfigScope& scope,
                  GitConfig& out)
      : fs_(fs), user_(user), scope_(scope), out_(out) {}

  void Named(const std::optional<std::string>& file) {
    // Relative ones would be relative to wherever git was started.
    if (!file || !file->starts_with('/')) return;
    auto path = AbsPath::Resolve(AbsPath::Literal("/"), *file);
    if (path.ok()) File(*path, 0);
  }

  void File(const AbsPath& path, int depth) {
    if (++files_ > kMaxFiles) {
      if (files_ == kMaxFiles + 1)
        out_.problems_.push_back("too many files of settings");
      return;
    }
    auto text = git_internal::ReadText(fs_, path, kMaxFile);
    if (!text.ok()) {
      if (text.error().code != Errc::kNotFound)
        out_.problems_.push_back(std::move(text).error().what);
      return;
    }
    Text(*text, path.bytes(), &path, depth);
  }

  // `path` is null when there are no includes to follow.
  void Text(std::string_view text, const std::string& name, const AbsPath* path,
            int depth) {
    size_t bad_line = 0;
    bool whole = git_internal::ParseGitConfig(
        text,
        [&](std::string key, std::optional<std::string> value) {
          if (out_.entries_.size() >= kMaxEntries) return;
          if (path == nullptr || !follow_) {
            out_.entries_.push_back({std::move(key), std::move(value), name});
            return;
          }
          std::string included = IncludedPath(key, value, *path);
          out_.entries_.push_back({std::move(key), std::move(value), name});
          if (!included.empty()) Include(included, *path, depth);
        },
        bad_line);
    if (!whole)
      out_.problems_.push_back(EscapeForDisplay(name) + ":" + std::to_string(bad_line) +
                               ": not in the syntax of git's settings");
  }

  void DoNotFollow() { follow_ = false; }
  const GitConfig& Read() const { return out_; }  // so far

 private:
  std::string IncludedPath(const std::string& key,
                           const std::optional<std::string>& value,
                           const AbsPath& from) {
    constexpr std::string_view kIf = "includeif.";
    constexpr std::string_view kPath = ".path";
    if (!value) return {};
    if (key == "include.path") return *value;
    if (!key.starts_with(kIf) || !key.ends_with(kPath) ||
        key.size() <= kIf.size() + kPath.size())
      return {};
    std::string_view condition = key;
    condition.remove_prefix(kIf.size());
    condition.remove_suffix(kPath.size());
    return Holds(condition, from) ? *value : std::string();
  }

  void Include(const std::string& value, const AbsPath& from, int depth) {
    std::optional<std::string> expanded = ExpandGitPath(fs_, value, user_);
    if (!expanded) {
      out_.problems_.push_back(
          EscapeForDisplay(from.bytes()) +
          ": include of a path that cannot be found: " + EscapeForDisplay(value));
      return;
    }
    auto path = git_internal::ResolveFrom(fs_, from.parent(), *expanded);
    if (!path.ok() || path->is_root()) return;  // not there
    if (depth + 1 > kMaxDepth) {
      out_.problems_.push_back(EscapeForDisplay(from.bytes()) +
                               ": includes are nested too deeply");
      return;
    }
    File(*path, depth + 1);
  }

  bool Holds(std::string_view condition, const AbsPath& from);
  bool HoldsForGitDir(std::string_view condition, const AbsPath& from, bool fold_case);
  void CollectRemotes();

  Fs& fs_;
  const GitUserConfig& user_;
  const GitConfigScope& scope_;
  GitConfig& out_;
  bool follow_ = true;
  size_t files_ = 0;
  std::optional<std::vector<std::string>> remotes_;  // for hasconfig:remote.*.url:
};

namespace {

// "dir/" means everything beneath it.
void AddStars(std::string& pattern) {
  if (pattern.ends_with('/')) pattern += "**";
}

// The branch that HEAD names, without "refs/heads/"; none when it is detached.
std::optional<std::string> Branch(Fs& fs, const AbsPath& git_dir) {
  auto head = git_internal::ReadText(fs, git_dir.Join(RelPath::Literal("HEAD")), 4096);
  if (!head.ok() || !head->starts_with("ref:")) return std::nullopt;
  size_t start = head->find_first_not_of(" \t\n\r", 4);
  if (start == std::string::npos) return std::nullopt;
  std::string name = head->substr(start, head->find_last_not_of(" \t\n\r") + 1 - start);
  constexpr std::string_view kHeads = "refs/heads/";
  if (!name.starts_with(kHeads)) return std::nullopt;
  return name.substr(kHeads.size());
}

void ReadAll(GitConfigReader& reader, const GitUserConfig& user,
             const GitConfigScope& scope) {
  if (!user.no_system)
    reader.Named(user.system_override ? user.system_override : user.system_file);
  if (user.global_override) {
    reader.Named(user.global_override);
  } else {
    reader.Named(GitXdgFile(user, "config"));
    if (user.home) reader.Named(*user.home + "/.gitconfig");
  }
  if (!scope.common_dir || !scope.git_dir) return;
  AbsPath local = scope.common_dir->Join(RelPath::Literal("config"));
  reader.File(local, 0);
  // As for git, an include does not count for this one.
  if (reader.Read().From(local).Bool("extensions.worktreeconfig").value_or(false))
    reader.File(scope.git_dir->Join(RelPath::Literal("config.worktree")), 0);
}

}  // namespace

// The condition of an includeIf that stands in the file `from`; unknown ones are false.
bool GitConfigReader::Holds(std::string_view condition, const AbsPath& from) {
  constexpr std::string_view kGitDir = "gitdir:";
  constexpr std::string_view kGitDirFolded = "gitdir/i:";
  constexpr std::string_view kBranch = "onbranch:";
  constexpr std::string_view kRemote = "hasconfig:remote.*.url:";
  if (condition.starts_with(kGitDir))
    return HoldsForGitDir(condition.substr(kGitDir.size()), from, false);
  if (condition.starts_with(kGitDirFolded))
    return HoldsForGitDir(condition.substr(kGitDirFolded.size()), from, true);
  if (condition.starts_with(kBranch)) {
    if (!scope_.git_dir) return false;
    std::optional<std::string> branch = Branch(fs_, *scope_.git_dir);
    std::string pattern(condition.substr(kBranch.size()));
    AddStars(pattern);
    return branch && Wildmatch(pattern, *branch, {.path = true});
  }
  if (condition.starts_with(kRemote)) {
    CollectRemotes();
    for (const std::string& url : *remotes_)
      if (Wildmatch(condition.substr(kRemote.size()), url, {.path = true})) return true;
  }
  return false;
}

bool GitConfigReader::HoldsForGitDir(std::string_view condition, const AbsPath& from,
                                     bool fold_case) {
  if (!scope_.git_dir) return false;
  std::string pattern(condition);
  if (auto expanded = ExpandGitPath(fs_, condition, user_)) {
    pattern = *expanded;
    // Git resolves the home directory here, because it resolves the git directory.
    auto home = AbsPath::Parse(user_.home.value_or(""));
    if (condition.starts_with("~/") && home.ok())
      if (auto real = fs_.RealPath(*home); real.ok())
        pattern = real->bytes() + std::string(condition.substr(1));
  }
  size_t literal = 0;  // bytes at the start in which nothing is a wildcard
  if (pattern.starts_with("./")) {
    auto real = fs_.RealPath(from);
    if (!real.ok()) return false;
    std::string dir = real->parent().is_root() ? "" : real->parent().bytes();
    pattern.replace(0, 1, dir);
    literal = dir.size() + 1;
  } else if (!pattern.starts_with('/')) {
    pattern.insert(0, "**/");
  }
  AddStars(pattern);
  auto matches = [&](std::string_view text) {
    if (text.size() < literal) return false;
    return EqualBytes(std::string_view(pattern).substr(0, literal),
                      text.substr(0, literal), fold_case) &&
           Wildmatch(std::string_view(pattern).substr(literal), text.substr(literal),
                     {.path = true, .fold_case = fold_case});
  };
  auto real = fs_.RealPath(*scope_.git_dir);
  return (real.ok() && matches(real->bytes())) || matches(scope_.git_dir->bytes());
}

// Once, and without what depends on remotes itself.
void GitConfigReader::CollectRemotes() {
  if (remotes_) return;
  remotes_.emplace();
  GitConfig all;
  GitConfigReader reader(fs_, user_, scope_, all);
  reader.remotes_.emplace();
  ReadAll(reader, user_, scope_);
  for (const GitConfig::Entry& entry : all.entries())
    if (entry.key.starts_with("remote.") && entry.key.ends_with(".url") &&
        entry.key.size() > std::string_view("remote..url").size() && entry.value)
      remotes_->push_back(*entry.value);
}

GitConfig GitConfig::Read(Fs& fs, const GitUserConfig& user,
                          const GitConfigScope& scope) {
  GitConfig config;
  GitConfigReader reader(fs, user, scope, config);
  ReadAll(reader, user, scope);
  return config;
}

GitConfig GitConfig::ReadOne(Fs& fs, const AbsPath& file) {
  GitConfig config;
  GitUserConfig nobody;
  GitConfigScope nowhere;
  GitConfigReader reader(fs, nobody, nowhere, config);
  reader.DoNotFollow();
  reader.File(file, 0);
  return config;
}

GitConfig GitConfig::Parse(std::string_view text, std::string name) {
  GitConfig config;
  size_t bad_line = 0;
  bool whole = git_internal::ParseGitConfig(
      text,
      [&](std::string key, std::optional<std::string> value) {
        config.entries_.push_back({std::move(key), std::move(value), name});
      },
      bad_line);
  if (!whole)
    config.problems_.push_back(EscapeForDisplay(name) + ":" + std::to_string(bad_line) +
                               ": not in the syntax of git's settings");
  return config;
}

// --- asking --------------------------------------------------------------------------

GitConfig GitConfig::From(const AbsPath& file) const {
  GitConfig some;
  for (const Entry& entry : entries_)
    if (entry.file == file.bytes()) some.entries_.push_back(entry);
  return some;
}

const GitConfig::Entry* GitConfig::Last(std::string_view key) const {
  for (size_t i = entries_.size(); i-- > 0;)
    if (entries_[i].key == key) return &entries_[i];
  return nullptr;
}

std::optional<bool> GitConfig::Bool(std::string_view key) const {
  const Entry* entry = Last(key);
  if (entry == nullptr) return std::nullopt;
  return ParseGitBool(entry->value);
}

std::optional<std::string> GitConfig::Text(std::string_view key) const {
  const Entry* entry = Last(key);
  if (entry == nullptr) return std::nullopt;
  return entry->value;
}

std::optional<std::string> GitConfig::Path(Fs& fs, std::string_view key,
                                           const GitUserConfig& user) const {
  std::optional<std::string> text = Text(key);
  if (!text) return std::nullopt;
  return ExpandGitPath(fs, *text, user);
}

}  // namespace belay
