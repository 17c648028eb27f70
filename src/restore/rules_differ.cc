#include "restore/rules_differ.h"

#include <algorithm>

namespace belay {

bool RulesDiffer(const RulesRecord& then, const RuleLists& now,
                 const ScanSummary& scan) {
  if (then.lists.protect != now.protect || then.lists.exclude != now.exclude ||
      then.lists.secret_patterns != now.secret_patterns ||
      then.lists.skip_secrets != now.skip_secrets ||
      then.lists.default_excludes != now.default_excludes)
    return true;
  auto same = [](const RuleBytes& a, const RuleBytes& b) {
    return a.name == b.name && a.bytes == b.bytes;
  };
  if (!std::equal(then.loose_rules.begin(), then.loose_rules.end(),
                  scan.loose_rules.begin(), scan.loose_rules.end(), same))
    return true;
  if (then.work_trees.size() != scan.work_trees.size()) return true;
  auto same_file = [&](const std::optional<RuleBytes>& a,
                       const std::optional<RuleBytes>& b) {
    return a.has_value() == b.has_value() && (!a || a->bytes == b->bytes);
  };
  for (size_t i = 0; i < then.work_trees.size(); ++i) {
    const WorkTreeInput& a = then.work_trees[i].input;
    const auto& b = scan.work_trees[i].facts.input;
    if (b == nullptr || then.work_trees[i].path != scan.work_trees[i].path ||
        !same_file(a.info_exclude, b->info_exclude) ||
        !same_file(a.global_excludes, b->global_excludes) ||
        a.ignore_case != b->ignore_case ||
        !std::equal(a.above_root.begin(), a.above_root.end(), b->above_root.begin(),
                    b->above_root.end(), same_file))
      return true;
  }
  return false;
}

}  // namespace belay
