#pragma once

// Planner: what MakePlan() is made of, in three files. plan.cc compares the trees and
// decides about each path; plan_gone.cc finds what only today's rules leave out and
// which directories become empty; plan_kept.cc names what stays or is missing.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/selection.h"
#include "core/state_rules.h"
#include "restore/chosen.h"
#include "restore/plan.h"

namespace belay {

inline std::string Joined(const std::string& dir, const std::string& name) {
  return dir.empty() ? name : dir + '/' + name;
}

class Planner {
 public:
  Planner(const PlanInput& input, const PlanOptions& options);

  Result<Plan> Run();

 private:
  // One path where now and target differ.
  struct Pair {
    std::string path;
    std::optional<TreeEntry> now, target;
  };

  // Nothing at or below `path` is touched.
  struct Barrier {
    std::string path, why;
    bool said = false;  // it is among what stays
  };

  static bool ByPath(const PathChange& a, const PathChange& b);
  void AddForeign(const AbsPath& path, std::string_view why);
  void Keep(const std::string& path, std::string why, bool wanted = false);
  void Bar(const std::string& path, std::string why, bool wanted = false);
  Status Compare();
  const Barrier* BarrierBefore(const std::string& path) const;
  bool BehindBarrier(const std::string& path) const;
  void AddParents(const std::string& path);
  void Add(const std::string& path, std::optional<PathState> before,
           std::optional<PathState> after);
  Status Decide(const Pair& pair);
  bool IsMissed(const Pair& pair, std::string_view why);
  bool IsAsThen(const std::string& path);
  bool WasPurged(const Pair& pair) const;
  Status DecideBoth(const Pair& pair);
  void DecideRoot();
  Result<bool> IsNewRepository(const std::string& path);
  PathState WithKnown(const std::optional<PathState>& now, PathState then,
                      const std::string& path);
  PathState WithSetId(const std::optional<PathState>& now, PathState then,
                      const std::string& path);
  Status DecideGone(const Pair& pair);
  Status DecideMissing(const Pair& pair);
  Status NameSkipped();
  Result<bool> OnlyTodaySkips(const SkippedPath& skipped);
  Status TakeUncovered(const std::string& path);
  void NameLeftOut();
  bool RulesMayDiffer() const;
  Status LookForIgnored();
  bool IsRepository(const Fd& dir, const std::string& name);
  static const TreeEntry* Find(const Tree& tree, const std::string& name);
  Status EmptyDirectories();
  Result<bool> BecomesEmpty(const std::string& path,
                            const std::unordered_set<std::string>& leaving);
  void NameUnreadable();
  void SayWhatIsMissing();
  Status CheckRules();
  Status NameNotHeld();
  Result<std::string> WhyNotHeld(const NotHeld& one);

  const PlanInput& in_;
  const PlanOptions& options_;
  Looker looker_;
  StateRules rules_;
  SecretRules secrets_now_;
  std::unordered_set<std::string> attributes_unknown_;  // of the target
  Selection selection_;
  std::unordered_map<std::string, std::string> skipped_now_;
  std::set<std::string> nested_now_, nested_then_;

  std::vector<Pair> pairs_;
  std::vector<std::pair<std::string, Error>> damaged_;
  std::map<std::string, std::string_view> foreign_;
  std::vector<Barrier> barriers_;
  bool rules_needed_ = false;               // of the target, and they cannot be read
  std::unordered_set<std::string> absent_;  // directories that are not on disk
  std::unordered_set<std::string> stays_;
  std::map<std::string, PathChange> unasked_dirs_;
  std::map<std::string, PathState> emptied_;  // to be removed if they become empty
  std::map<std::string, PathChange> swaps_;   // directories in the place of a file
  std::unordered_set<std::string> ignored_dirs_;
  Plan plan_;
};

}  // namespace belay
