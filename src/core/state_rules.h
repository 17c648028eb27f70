#pragma once

// StateRules asks a state's own rules about any path: would that state have covered it?
// A path is only deleted when the answer is yes (design: "only what was covered is
// touched"), so whatever is not known for sure is "no".
//
// Threads: one.

#include <memory>
#include <string>
#include <unordered_map>

#include "core/state_view.h"
#include "ignore/rules.h"

namespace belay {

class StateRules {
 public:
  // `view`, and what the readers read from, must outlive this.
  StateRules(const StateView& view, Scan::TreeReader trees, ContentReader contents);
  ~StateRules();

  struct Verdict {
    bool covered = false;
    bool secret = false;
    std::string why =
        {};  // when not covered: ignored_then, excluded_then, too_large ...
    bool damaged = false;  // "rules_unknown", since the store cannot give them back
  };
  Result<Verdict> Ask(const std::string& path, bool is_dir);

 private:
  struct Dir;
  Result<const Dir*> DirAt(const std::string& path);
  Result<std::optional<std::string>> RuleFile(const Dir& dir, std::string_view name);

  const StateView& view_;
  const Scan::TreeReader trees_;
  const ContentReader contents_;
  std::shared_ptr<const RuleConfig> config_;
  std::unordered_map<std::string, std::unique_ptr<Dir>> dirs_;
  std::unordered_map<std::string, std::string> left_out_;  // path to reason
};

// Whether a path is a secret by given patterns.
class SecretRules {
 public:
  explicit SecretRules(const RuleLists& lists);
  bool IsSecret(const std::string& path) const;

 private:
  DirRules::Ptr root_;
};

}  // namespace belay
