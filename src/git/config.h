#pragma once

// GitConfig: the user's and a repository's git settings, read from their files.
//
// The syntax and the order of files are git's (git-config(1)), so that the last value
// of a key is the one git would use: system, $XDG_CONFIG_HOME/git/config, ~/.gitconfig,
// the repository's config, and its config.worktree where extensions.worktreeConfig is
// set. include.path and includeIf (gitdir, gitdir/i, onbranch, hasconfig) are followed
// to git's depth of 10.
//
// Nothing fails: git refuses to work with a setting it cannot read, a checkpoint goes
// on with what it could read. A file that is unreadable, too large or wrong from some
// line on counts up to that line and is named in problems().
//
// No environment is read here; GitUserConfig brings the few variables that matter.
// Command-line settings (GIT_CONFIG_COUNT, git -c) are not the repository's and
// ignored.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.h"
#include "base/path.h"

namespace belay {

// What decides where git finds the user's settings. Values of environment variables as
// they are: absent is not set, which is not the same as empty.
struct GitUserConfig {
  std::optional<std::string> home;             // HOME
  std::optional<std::string> xdg_config_home;  // XDG_CONFIG_HOME
  std::optional<std::string> global_override;  // GIT_CONFIG_GLOBAL
  std::optional<std::string> system_override;  // GIT_CONFIG_SYSTEM
  bool no_system = false;                      // GIT_CONFIG_NOSYSTEM is true
  std::string system_file = "/etc/gitconfig";
  std::string passwd_file = "/etc/passwd";  // for "~user/"
  std::string prefix = "/usr";              // for "%(prefix)/"
};

// The repository for which settings are read; none outside of one.
struct GitConfigScope {
  std::optional<AbsPath> git_dir;
  std::optional<AbsPath> common_dir;
};

class GitConfig {
 public:
  struct Entry {
    std::string key;  // "core.excludesfile", "remote.Name.url": as `git config -l`
    std::optional<std::string> value;  // absent for a key without "="
    std::string file;
  };

  // All files in git's order, includes followed.
  static GitConfig Read(Fs& fs, const GitUserConfig& user, const GitConfigScope& scope);
  // One file alone, without includes: how git reads a repository's format.
  static GitConfig ReadOne(Fs& fs, const AbsPath& file);
  // Settings in memory; `name` is how problems call them. No includes.
  static GitConfig Parse(std::string_view text, std::string name);

  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<std::string>& problems() const { return problems_; }

  // What stands in `file` itself.
  GitConfig From(const AbsPath& file) const;

  // Section and key in lower case; what is between them exactly. Null when not set.
  const Entry* Last(std::string_view key) const;
  // Git's idea of truth: no value, true, yes, on, a number but 0. Absent when the key
  // is not set or is nothing of that kind.
  std::optional<bool> Bool(std::string_view key) const;
  // The value; absent when the key is not set or has none.
  std::optional<std::string> Text(std::string_view key) const;
  // With "~/", "~user/" and "%(prefix)/" put in; may be relative or empty. Absent when
  // not set or when it cannot be expanded.
  std::optional<std::string> Path(Fs& fs, std::string_view key,
                                  const GitUserConfig& user) const;

 private:
  friend class GitConfigReader;
  std::vector<Entry> entries_;
  std::vector<std::string> problems_;
};

// Git's reading of a boolean; absent when it is none.
std::optional<bool> ParseGitBool(const std::optional<std::string>& value);

// "~/x", "~user/x" and "%(prefix)/x" as git expands them; absent when it cannot.
std::optional<std::string> ExpandGitPath(Fs& fs, std::string_view path,
                                         const GitUserConfig& user);

// $XDG_CONFIG_HOME/git/NAME, else ~/.config/git/NAME; absent without a home.
std::optional<std::string> GitXdgFile(const GitUserConfig& user, std::string_view name);

}  // namespace belay
