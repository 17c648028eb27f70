#include "cli/environment.h"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/escape.h"
#include "cli/text.h"

namespace belay {

namespace {

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::optional<std::string> Given(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

GitUserConfig ReadGitEnvironment() {
  GitUserConfig git;
  git.home = Given("HOME");
  git.xdg_config_home = Given("XDG_CONFIG_HOME");
  git.global_override = Given("GIT_CONFIG_GLOBAL");
  git.system_override = Given("GIT_CONFIG_SYSTEM");
  auto no_system = Given("GIT_CONFIG_NOSYSTEM");
  git.no_system = no_system && ParseGitBool(no_system).value_or(false);
  return git;
}

size_t Columns() {
  std::string text = Variable("COLUMNS");
  size_t columns = 0;
  auto [end, problem] =
      std::from_chars(text.data(), text.data() + text.size(), columns);
  bool whole = problem == std::errc() && end == text.data() + text.size();
  return whole && columns >= 20 && columns <= 1000 ? columns : 0;
}

// Where the kernel says we are, for a directory that is gone: "/path (deleted)".
std::optional<AbsPath> DeletedDirectory() {
  constexpr std::string_view kMark = " (deleted)";
  char buffer[PATH_MAX];
  ssize_t length = readlink("/proc/self/cwd", buffer, sizeof buffer);
  if (length <= 0) return std::nullopt;
  std::string_view path(buffer, static_cast<size_t>(length));
  if (!path.ends_with(kMark)) return std::nullopt;
  path.remove_suffix(kMark.size());
  auto parsed = AbsPath::Parse(path);
  if (!parsed.ok()) return std::nullopt;
  return std::move(parsed).value();
}

void FindDirectory(Environment& env) {
  std::string buffer(PATH_MAX, '\0');
  while (getcwd(buffer.data(), buffer.size()) == nullptr) {
    if (errno == ERANGE && buffer.size() < (size_t{1} << 24)) {
      buffer.resize(buffer.size() * 2);
      continue;
    }
    if (errno == ENOENT) {
      env.cwd = DeletedDirectory();
      env.cwd_deleted = env.cwd.has_value();
    }
    return;
  }
  auto parsed = AbsPath::Parse(buffer.c_str());
  if (parsed.ok()) env.cwd = std::move(parsed).value();
}

}  // namespace

Environment ReadEnvironment() {
  Environment env;
  for (char** variable = environ; variable != nullptr && *variable != nullptr;
       ++variable)
    env.all.emplace_back(*variable);
  env.belay_home = Variable("BELAY_HOME");
  env.belay_config = Variable("BELAY_CONFIG");
  env.xdg_data_home = Variable("XDG_DATA_HOME");
  env.xdg_config_home = Variable("XDG_CONFIG_HOME");
  env.home = Variable("HOME");
  env.tmpdir = Variable("TMPDIR");
  env.exec_path = Variable("PATH");
  env.claude_config_dir = Variable("CLAUDE_CONFIG_DIR");
  env.codex_home = Variable("CODEX_HOME");
  env.copilot_home = Variable("COPILOT_HOME");
  env.git = ReadGitEnvironment();
  env.no_color = !Variable("NO_COLOR").empty() || Variable("TERM") == "dumb";
  env.columns = Columns();
  env.asked_by = Variable("BELAY_ASKED_BY");
  env.forking = !Variable("BELAY_FORKING").empty();
  env.pager = Variable("BELAY_PAGER");
  if (env.pager.empty()) env.pager = Variable("PAGER");
  FindDirectory(env);
  return env;
}

Result<AbsPath> Environment::Resolve(std::string_view path) const {
  if (path.starts_with('/')) return AbsPath::Resolve(AbsPath::Literal("/"), path);
  if (!cwd)
    return Error(Errc::kNotFound, "the current directory cannot be found")
        .WithHint("name directories from / on, or change to another directory");
  return AbsPath::Resolve(*cwd, path);
}

Result<AbsPath> Environment::HomeDir() const {
  if (home.starts_with('/')) return AbsPath::Resolve(AbsPath::Literal("/"), home);
  std::vector<char> buffer(size_t{16} << 10);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr && found->pw_dir != nullptr && found->pw_dir[0] == '/')
    return AbsPath::Resolve(AbsPath::Literal("/"), found->pw_dir);
  return Error(Errc::kNotFound,
               "no home directory: HOME is not an absolute path and "
               "the user database has none")
      .WithHint("set HOME, or BELAY_HOME and BELAY_CONFIG");
}

Result<AbsPath> Environment::StoreDir() const {
  // Taken from wherever one is, each directory would have a store of its own.
  if (!belay_home.empty() && !belay_home.starts_with('/'))
    return Error(Errc::kRefused, StrCat("BELAY_HOME is not an absolute path: ",
                                        EscapeForDisplay(belay_home)))
        .WithHint("name the store's directory from / on");
  if (!belay_home.empty()) return Resolve(belay_home);
  // The XDG specification: a relative path is to be ignored.
  if (xdg_data_home.starts_with('/'))
    return AbsPath::Resolve(AbsPath::Literal("/"), StrCat(xdg_data_home, "/belay"));
  BELAY_TRY(AbsPath base, HomeDir());
  return base.Join(RelPath::Literal(".local/share/belay"));
}

Result<AbsPath> Environment::UserSettingsFile() const {
  // Neither would a project's file be the user's, wherever one is.
  if (!belay_config.empty() && !belay_config.starts_with('/'))
    return Error(Errc::kRefused, StrCat("BELAY_CONFIG is not an absolute path: ",
                                        EscapeForDisplay(belay_config)))
        .WithHint("name the settings file from / on");
  if (!belay_config.empty()) return Resolve(belay_config);
  BELAY_TRY(AbsPath base, ConfigHome());
  return base.Join(RelPath::Literal("belay/config.toml"));
}

Result<AbsPath> Environment::ProgramFile() const {
  std::string buffer(PATH_MAX, '\0');
  const ssize_t length = readlink("/proc/self/exe", buffer.data(), buffer.size());
  buffer.resize(length <= 0 ? 0 : static_cast<size_t>(length));
  // The kernel puts " (deleted)" behind the name of one that was replaced.
  if (buffer.empty() || access(buffer.c_str(), X_OK) != 0)
    return Error(Errc::kNotFound, "the file of this program cannot be found")
        .WithHint("it may just have been replaced: try again");
  return AbsPath::Parse(buffer);
}

Result<AbsPath> Environment::ConfigHome() const {
  // As above: a relative path is to be ignored.
  if (xdg_config_home.starts_with('/'))
    return AbsPath::Resolve(AbsPath::Literal("/"), xdg_config_home);
  BELAY_TRY(AbsPath base, HomeDir());
  return base.Join(Name::Literal(".config"));
}

}  // namespace belay
