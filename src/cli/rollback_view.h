#pragma once

// What rollback, undo and redo show: the plan before, the outcome after, and the same
// as the JSON object of the command-line contract.

#include <string>
#include <vector>

#include "agent/user_hooks.h"
#include "cli/context.h"
#include "cli/open_root.h"
#include "restore/rollback.h"

namespace belay {

// Grouped by verb with counts and sizes; at most a few paths each, all with -v.
std::string PlanText(const Plan& plan, bool all);
// The part of it about files outside of the project: each of them.
std::string ExternalText(const Plan& plan);
// The part of it that says what stays, and what is not had.
std::string KeptText(const Plan& plan, bool all);
// A reason of KeptPath::why in plain words; JSON has the word itself.
std::string ReasonText(std::string_view why);
// "14 files", "1 file and 2 directories": the sum of the plan's groups; when some paths
// are in two of them, also how many paths: "3 files and 2 directories (4 paths)".
std::string AffectedText(const Plan& plan);

// The target has something that cannot be brought back: the command does, or did, the
// rest, and exits 1.
bool IsIncomplete(const Plan& plan);
// One warning each, of the first few, and what can be done about it.
void WarnAboutMissing(Terminal& term, const Outcome& outcome, const Checkpoint& target);
// The first ten lines and how many more there are, or all.
std::vector<std::string> FirstOf(std::vector<std::string> lines, bool all);

// One line each, on standard error.
void WarnAbout(Terminal& term, const Outcome& outcome);

void WriteOutcome(const Outcome& outcome, const std::optional<RecordId>& target,
                  JsonWriter& json, const std::vector<UserHookRun>& hooks = {});

// Our user and groups.
PlanOptions WhoWeAre();

// A request with who we are, the root and its settings. `settings` must outlive it.
RollbackRequest RequestFor(CommandContext& ctx, const OpenedRoot& root,
                           const Settings& settings);

// While one lives, Ctrl-C, SIGTERM and SIGHUP are only noted: a rollback then takes
// itself back instead of dying half-way.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  static bool Asked();
};

}  // namespace belay
