#pragma once

// Connecting agents: the entries `belay install` puts into their settings, and takes
// out again.
//
// Guarantees
//   * A plan is made before anything is written, of the bytes as they are; a file that
//     changed since is not written (kConflict).
//   * Settings are merged as text (agent/jsonc.h): order, comments and every entry of
//     somebody else's stay. What is broken, of an unexpected shape, read-only, or a
//     symlink is refused, and nothing of that file is changed; one to a file of the
//     user's is followed when told to (`follow_links`), and to take out what is ours.
//   * A file is replaced whole, with mode, owner and attributes as it had them, through
//     a symlink if it is one. What it was before is durable in the store first
//     (docs/format.md, "agents/"), so that uninstalling gives the same bytes, or none,
//     and no directory that was not there. Of a file that was edited since only what is
//     ours goes.
//   * Installing twice changes nothing; entries of ours that are older are put right.
//
// With InstallPlaces::project it writes in a user's project, which `restore` alone does
// otherwise: when told to, and files of the agent's settings only (ARCHITECTURE.md).
//
// Threads: one. Processes: whoever applies a plan holds a lock in the store.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event.h"
#include "base/clock.h"
#include "base/fs.h"

namespace belay {

// Where things are; the face reads the environment.
struct InstallPlaces {
  AbsPath program;  // what the hooks run
  AbsPath home;
  AbsPath config_home;                            // XDG_CONFIG_HOME, else ~/.config
  AbsPath store;                                  // need not be there
  std::optional<AbsPath> claude_config_dir = {};  // CLAUDE_CONFIG_DIR
  std::optional<AbsPath> codex_home = {};         // CODEX_HOME
  std::optional<AbsPath> copilot_home = {};       // COPILOT_HOME
  std::optional<AbsPath> project = {};  // for this project alone; its real path
  uint32_t uid = 0;
  bool follow_links = false;  // a file that is a symlink may be written through it
};

// One file of an agent's, before and after.
struct FileChange {
  enum class What : uint8_t { kNothing, kCreate, kChange, kRemove };
  enum class Part : uint8_t { kHooks, kCommand, kTrust };
  What what = What::kNothing;
  Part part = Part::kHooks;
  AbsPath path;                                        // as the agent names it
  AbsPath real;                                        // where its bytes are
  std::optional<std::string> before = {}, after = {};  // absent: no file
  uint32_t mode = 0600;                                // of a new one
  uint32_t dir_mode = 0700;
  // What it is to be when nothing of ours is in it, for the record; absent: no file.
  std::optional<std::string> base = {};
  // What is remembered of it stands under this path: the project was somewhere else.
  std::string remembered_as = {};
};

struct AgentPlan {
  AgentKind agent = AgentKind::kClaude;
  std::vector<FileChange> files = {};
  std::vector<Error> refused = {};  // what cannot be done; its file is not in `files`
  std::vector<std::string> notes = {};  // what else there is to know or to do
  bool changes() const;
};

// `trust`: also what makes Codex run the hooks without asking.
AgentPlan PlanInstall(Fs& fs, const InstallPlaces& places, AgentKind agent, bool trust);
AgentPlan PlanUninstall(Fs& fs, const InstallPlaces& places, AgentKind agent);

// Does what was planned, file by file; those that could not be written go from `files`
// to `refused`. The store's directory must be there.
Status ApplyInstall(Fs& fs, Clock& clock, const InstallPlaces& places, AgentPlan& plan);
// The same the other way round; without a store nothing is remembered, and only what is
// ours goes.
Status ApplyUninstall(Fs& fs, Clock& clock, const InstallPlaces& places,
                      AgentPlan& plan);

// --- what there is -------------------------------------------------------------------

struct HooksAt {
  AbsPath file;
  size_t registered = 0, wanted = 0;  // events
  std::vector<std::string> missing = {};
  bool outdated = false;  // what is there is not as this version would write it
  // Programs that entries of ours name and that are not there.
  std::vector<std::string> dead = {};
  std::optional<bool> trusted = {};  // of Codex
  std::optional<Error> trouble = {};
};

// A setting by which the agent runs no hooks, or none of ours.
struct HooksOff {
  AbsPath file;
  std::string key;  // "hooksConfig.enabled"
};

struct AgentStatus {
  AgentKind agent = AgentKind::kClaude;
  std::string_view title;
  std::optional<AbsPath> program = {};  // found in PATH
  HooksAt user;
  std::optional<HooksAt> project = {};
  std::optional<HooksOff> off = {};
  std::optional<int64_t> last_event_ms = {};
};
// "hooks are switched off in FILE (KEY)"
std::string HooksOffText(const HooksOff& off);

// Looks and changes nothing. `path` is PATH. Settings of a project count where
// `places` has one.
AgentStatus LookAtAgent(Fs& fs, const InstallPlaces& places, AgentKind agent,
                        std::string_view path);
// The agent's own program.
std::optional<AbsPath> ProgramOfAgent(Fs& fs, AgentKind agent, std::string_view path);
// A program of PATH: a regular file that may be run.
std::optional<AbsPath> FindInPath(Fs& fs, std::string_view path, std::string_view name);

}  // namespace belay
