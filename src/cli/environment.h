#pragma once

// Environment: what the process was started with. The only place that reads environment
// variables, the current directory and the user database; everything below is handed
// values. An empty variable counts as one that is not set.

#include <optional>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "git/config.h"

namespace belay {

struct Environment {
  std::string belay_home;         // BELAY_HOME
  std::string belay_config;       // BELAY_CONFIG
  std::string xdg_data_home;      // XDG_DATA_HOME
  std::string xdg_config_home;    // XDG_CONFIG_HOME
  std::string home;               // HOME
  std::string tmpdir;             // TMPDIR
  std::string exec_path;          // PATH
  std::string claude_config_dir;  // CLAUDE_CONFIG_DIR
  std::string codex_home;         // CODEX_HOME
  std::string copilot_home;       // COPILOT_HOME
  GitUserConfig git;              // where git keeps the user's settings
  bool no_color = false;          // NO_COLOR, or a terminal that has none (TERM=dumb)
  size_t columns = 0;             // COLUMNS; 0: not said
  std::string pager;              // BELAY_PAGER, else PAGER
  // The current directory; when it was deleted, the path it had. Absent when unknown.
  std::optional<AbsPath> cwd;
  bool cwd_deleted = false;

  std::vector<std::string> all;  // "NAME=value", for programs that are started
  // BELAY_ASKED_BY, which `/rollback` sets for the command it runs: "session:ID" or
  // "agent:NAME".
  std::string asked_by;
  bool forking = false;  // BELAY_FORKING: agent/native_fork.h
  // BELAY_HOME, else $XDG_DATA_HOME/belay, else ~/.local/share/belay.
  Result<AbsPath> StoreDir() const;
  // BELAY_CONFIG, else $XDG_CONFIG_HOME/belay/config.toml, else below ~/.config.
  Result<AbsPath> UserSettingsFile() const;
  // XDG_CONFIG_HOME, else ~/.config.
  Result<AbsPath> ConfigHome() const;
  // The file of this very program. kNotFound when it is gone or cannot be told.
  Result<AbsPath> ProgramFile() const;
  // What a person typed, against the current directory.
  Result<AbsPath> Resolve(std::string_view path) const;
  // HOME when it is absolute, else what the user database says.
  Result<AbsPath> HomeDir() const;
};

Environment ReadEnvironment();

}  // namespace belay
