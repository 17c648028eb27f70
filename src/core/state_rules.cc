#include "core/state_rules.h"

namespace belay {

struct StateRules::Dir {
  std::string path;
  DirRules::Ptr rules;
  std::optional<Tree> tree;  // none: the state has no such directory
  bool open = true;          // paths below may be covered
  std::string why = {};      // when not open
  bool damaged = false;      // not open for that reason
};

namespace {

std::string Joined(const std::string& dir, std::string_view name) {
  return dir.empty() ? std::string(name) : dir + '/' + std::string(name);
}

std::string WhyThen(Why why) {
  switch (why) {
    case Why::kExcluded:
      return "excluded_then";
    case Why::kSecret:
      return "secret";
    case Why::kGitDir:
      return "git_dir";
    default:
      return "ignored_then";
  }
}

// Of the store's content, not of the disk just now.
bool IsDamage(const Error& error) {
  return error.code == Errc::kCorrupt || error.code == Errc::kNotFound ||
         error.code == Errc::kPurged;
}

const TreeEntry* EntryNamed(const Tree& tree, std::string_view name) {
  for (const TreeEntry& entry : tree.entries)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace

StateRules::StateRules(const StateView& view, Scan::TreeReader trees,
                       ContentReader contents)
    : view_(view), trees_(std::move(trees)), contents_(std::move(contents)) {
  if (!view_.rules) return;
  config_ = std::make_shared<const RuleConfig>(view_.rules->lists);
  for (const SkippedPath& skipped : view_.Skipped())
    if (!IsHeld(skipped.why)) left_out_.emplace(skipped.path, SkipName(skipped.why));
}

StateRules::~StateRules() = default;

Result<std::optional<std::string>> StateRules::RuleFile(const Dir& dir,
                                                        std::string_view name) {
  if (dir.tree) {
    const TreeEntry* entry = EntryNamed(*dir.tree, name);
    if (entry != nullptr && entry->kind == EntryKind::kFile) {
      BELAY_TRY(Bytes bytes, contents_(entry->id));
      return std::optional(std::string(AsText(bytes)));
    }
  }
  const std::string path = Joined(dir.path, name);
  if (auto left = left_out_.find(path);
      left != left_out_.end() && left->second == SkipName(Skip::kPurged))
    return Error(Errc::kPurged, "a file of rules was purged");
  for (const RuleBytes& loose : view_.rules->loose_rules)
    if (loose.name == path) return std::optional(loose.bytes);
  return std::optional<std::string>();
}

Result<const StateRules::Dir*> StateRules::DirAt(const std::string& path) {
  if (auto found = dirs_.find(path); found != dirs_.end()) return found->second.get();
  // From the nearest directory that is known down to this one: depth costs no stack.
  std::vector<std::string> missing;
  std::string at = path;
  const Dir* parent = nullptr;
  for (;;) {
    missing.push_back(at);
    if (at.empty()) break;
    const size_t slash = at.rfind('/');
    at = slash == std::string::npos ? std::string() : at.substr(0, slash);
    if (auto found = dirs_.find(at); found != dirs_.end()) {
      parent = found->second.get();
      break;
    }
  }
  for (size_t i = missing.size(); i-- > 0;) {
    auto dir = std::make_unique<Dir>();
    dir->path = missing[i];
    const std::string name = dir->path.substr(dir->path.rfind('/') + 1);
    if (parent == nullptr) {
      BELAY_TRY(dir->tree, trees_(view_.state.tree));
    } else if (parent->tree) {
      const TreeEntry* entry = EntryNamed(*parent->tree, name);
      if (entry != nullptr && entry->kind == EntryKind::kDirectory) {
        BELAY_TRY(dir->tree, trees_(entry->id));
      }
    }
    // Rules that cannot be read may have protected anything.
    auto gitignore = RuleFile(*dir, ".gitignore");
    auto belayignore = RuleFile(*dir, ".belayignore");
    bool known = true, damaged = false;
    for (const auto* file : {&gitignore, &belayignore}) {
      if (file->ok()) continue;
      if (!IsDamage(file->error())) return Error(file->error());
      known = false;
      damaged |= file->error().code != Errc::kPurged;
    }
    DirFiles files;
    if (gitignore.ok() && *gitignore) files.gitignore = **gitignore;
    if (belayignore.ok() && *belayignore) files.belayignore = **belayignore;
    std::shared_ptr<const WorkTree> top;
    for (const RulesRecord::Top& work_tree : view_.rules->work_trees)
      if (work_tree.path == dir->path)
        top = std::make_shared<const WorkTree>(work_tree.input);
    if (parent == nullptr) {
      if (top == nullptr) top = std::make_shared<const WorkTree>(WorkTreeInput());
      dir->rules = DirRules::Root(config_, top, files);
    } else {
      dir->rules = top != nullptr ? parent->rules->EnterWorkTree(name, top, files)
                                  : parent->rules->Enter(name, files);
      const Decision decision = parent->rules->Decide(name, true);
      dir->open = parent->open;
      dir->why = parent->why;
      dir->damaged = parent->damaged;
      // A directory that the state has was entered, whatever the rules alone would say:
      // what git tracks in it is not written down.
      if (dir->open && !dir->tree && !decision.covered &&
          decision.descend == Descend::kNo) {
        dir->open = false;
        dir->why = WhyThen(decision.why);
      }
      if (auto left = left_out_.find(dir->path); left != left_out_.end()) {
        dir->open = false;
        dir->why = left->second;
        dir->damaged = false;
      }
    }
    if (!known && dir->open) {
      dir->open = false;
      dir->why = "rules_unknown";
      dir->damaged = damaged;
    }
    parent = dir.get();
    dirs_.emplace(dir->path, std::move(dir));
  }
  return parent;
}

Result<StateRules::Verdict> StateRules::Ask(const std::string& path, bool is_dir) {
  if (!view_.rules)
    return Verdict{
        .covered = false,
        .why = "rules_unknown",
        .damaged = !view_.trouble.empty() && view_.trouble_code != Errc::kPurged};
  const size_t slash = path.rfind('/');
  const std::string parent =
      slash == std::string::npos ? std::string() : path.substr(0, slash);
  BELAY_TRY(const Dir* dir, DirAt(parent));
  Verdict out;
  if (!dir->open) {
    out.why = dir->why;
    out.damaged = dir->damaged;
    return out;
  }
  if (auto left = left_out_.find(path); left != left_out_.end()) {
    out.why = left->second;
    return out;
  }
  const Decision decision = dir->rules->Decide(path.substr(slash + 1), is_dir);
  out.secret = decision.secret;
  out.covered = decision.covered || (is_dir && decision.descend == Descend::kNamed);
  if (!out.covered) out.why = WhyThen(decision.why);
  return out;
}

SecretRules::SecretRules(const RuleLists& lists)
    : root_(DirRules::Root(std::make_shared<const RuleConfig>(lists),
                           std::make_shared<WorkTree>(WorkTreeInput()), {})) {}

bool SecretRules::IsSecret(const std::string& path) const {
  DirRules::Ptr dir = root_;
  size_t start = 0;
  for (size_t slash; (slash = path.find('/', start)) != std::string::npos;
       start = slash + 1)
    dir = dir->Enter(std::string_view(path).substr(start, slash - start), {});
  return dir->Decide(std::string_view(path).substr(start), false).secret;
}

}  // namespace belay
