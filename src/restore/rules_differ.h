#pragma once

// Whether anything can be covered by the rules of a state and not by today's.

#include "scan/rules_record.h"

namespace belay {

// Settings, excludes and rule files outside of the tree; not the rule files in it.
bool RulesDiffer(const RulesRecord& then, const RuleLists& now,
                 const ScanSummary& scan);

}  // namespace belay
