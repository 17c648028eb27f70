#include "ignore/rules.h"

#include "base/mutant.h"
#include "base/result.h"

namespace belay {
namespace {

PatternFile DefaultsOrNone(bool on) {
  std::vector<std::string> entries;
  if (on) entries.assign(std::begin(kDefaultExcludes), std::end(kDefaultExcludes));
  return PatternFile::FromList("default_excludes", std::move(entries));
}

std::optional<PatternFile> ParseIfThere(std::optional<RuleBytes>& input,
                                        bool fold_case) {
  if (!input) return std::nullopt;
  return PatternFile::Parse(std::move(input->name), std::move(input->bytes), fold_case);
}

RuleRef LastMatch(const PatternFile* file, const PathQuery& query, size_t base) {
  if (file == nullptr || file->empty()) return {};
  const Pattern* pattern = file->LastMatch(query, base);
  return pattern == nullptr ? RuleRef{} : RuleRef{file, pattern};
}

// Paths up to this long are kept whole in every directory.
constexpr size_t kKeptPath = 1024;

bool Says(const RuleRef& rule) { return rule && !rule.pattern->negative; }

}  // namespace

// --- what goes in --------------------------------------------------------------------

RuleConfig::RuleConfig(RuleLists lists)
    : lists_(std::move(lists)),
      protect_(PatternFile::FromList("protect", lists_.protect)),
      exclude_(PatternFile::FromList("exclude", lists_.exclude)),
      secrets_(PatternFile::FromList("secret_patterns", lists_.secret_patterns)),
      defaults_(DefaultsOrNone(lists_.default_excludes)) {}

WorkTree::WorkTree(WorkTreeInput input)
    : info_(ParseIfThere(input.info_exclude, input.ignore_case)),
      global_(ParseIfThere(input.global_excludes, input.ignore_case)),
      ignore_case_(input.ignore_case),
      tracked_(std::move(input.tracked)),
      prefix_(std::move(input.root_below_top)) {
  if (prefix_.empty()) return;
  BELAY_CHECK(prefix_.front() != '/' && prefix_.back() != '/');
  prefix_ += '/';
  size_t base = 0;
  for (std::optional<RuleBytes>& file : input.above_root) {
    BELAY_CHECK(base < prefix_.size());  // one per directory above the root
    if (auto parsed = ParseIfThere(file, ignore_case_))
      above_.push_back({std::move(*parsed), base});
    base = prefix_.find('/', base) + 1;
  }
}

// --- what comes out ------------------------------------------------------------------

std::string_view WhyName(Why why) {
  switch (why) {
    case Why::kCovered:
      return "covered";
    case Why::kTracked:
      return "tracked";
    case Why::kProtected:
      return "protected";
    case Why::kSecret:
      return "secret";
    case Why::kIgnored:
      return "ignored";
    case Why::kExcluded:
      return "excluded";
    case Why::kGitDir:
      return "git_dir";
  }
  return "covered";
}

std::string RuleText(const RuleRef& rule) {
  if (!rule) return "";
  return rule.file->name() + ':' + std::to_string(rule.pattern->line) + ':' +
         rule.file->PatternText(*rule.pattern);
}

// --- directories ---------------------------------------------------------------------

DirRules::Ptr DirRules::Root(std::shared_ptr<const RuleConfig> config,
                             std::shared_ptr<const WorkTree> work_tree,
                             const DirFiles& files) {
  auto root = std::make_shared<DirRules>(Private{});
  root->config_ = config.get();
  root->work_tree_ = work_tree.get();
  root->own().config = std::move(config);
  root->own().work_tree = std::move(work_tree);
  root->tracked_ = root->work_tree_->tracked();
  root->text_ = root->work_tree_->prefix();
  root->full_size_ = root->text_.size();
  root->root_at_ = root->full_size_;
  root->FindRootRule();
  root->AddFiles(files);
  return root;
}

// Asks what the work tree says about the root and the directories above it.
void DirRules::FindRootRule() {
  const std::string_view path = text_;
  for (size_t at = 0; at < path.size();) {
    const size_t end = path.find('/', at);
    const PathQuery query(path.substr(0, at), path.substr(at, end - at), true);
    const RuleRef rule = MatchGit(query);
    if (Says(rule)) {
      root_ignored_by_ = rule;
      outer_rules_ = false;
      rules_at_ = full_size_;
      return;
    }
    at = end + 1;
  }
}

DirRules::Ptr DirRules::Enter(std::string_view name, const DirFiles& files) const {
  return MakeChild(name, nullptr, files);
}

DirRules::Ptr DirRules::EnterWorkTree(std::string_view name,
                                      std::shared_ptr<const WorkTree> work_tree,
                                      const DirFiles& files) const {
  BELAY_CHECK(work_tree != nullptr);
  return MakeChild(name, std::move(work_tree), files);
}

DirRules::Ptr DirRules::MakeChild(std::string_view name,
                                  std::shared_ptr<const WorkTree> work_tree,
                                  const DirFiles& files) const {
  auto child = std::make_shared<DirRules>(Private{});
  child->parent_ = shared_from_this();
  child->config_ = config_;
  child->git_dir_ = git_dir_ || name == ".git";
  child->root_at_ = root_at_;
  std::string scratch;
  const std::string_view full = Full(scratch);
  child->full_size_ = full.size() + name.size() + 1;
  if (text_.size() + name.size() + 1 <= kKeptPath) {
    child->text_.reserve(text_.size() + name.size() + 1);
    child->text_ += text_;
    child->before_ = before_;
  } else {
    child->before_ = this;
  }
  child->text_ += name;
  child->text_ += '/';

  const PathQuery query(full, name, true);
  Verdict verdict = Weigh(query);
  if (verdict.left_out() && IsTracked(query)) {  // a submodule: by its own rules
    const RuleRef protect = verdict.protect;
    verdict = {};
    verdict.protect = protect;
  }
  child->barred_ = verdict.left_out();
  child->protect_ = verdict.protect;
  child->exclude_ = verdict.exclude;
  child->include_ = verdict.include;
  child->ignore_ = verdict.ignore;
  child->fallback_ = verdict.fallback;
  child->secret_ = secret_;
  if (RuleRef rule = LastMatch(&config_->secrets(), query, root_at_)) {
    if (!Says(rule))
      child->secret_ = {};
    else if (rule.pattern->dir_only && !BELAY_MUTANT("secret-not-inherited"))
      child->secret_ = rule;
  }

  child->belay_stack_ = belay_stack_;
  if (work_tree == nullptr || BELAY_MUTANT("nested-by-outer-rules")) {
    child->work_tree_ = work_tree_;
    child->tracked_ = tracked_;
    child->top_at_ = top_at_;
    child->rules_at_ = rules_at_;
    child->git_stack_ = git_stack_;
    child->outer_rules_ = outer_rules_;
  } else {
    child->work_tree_ = work_tree.get();
    child->own().work_tree = std::move(work_tree);
    if (!child->barred_ || BELAY_MUTANT("index-of-barred-work-tree-counts")) {
      child->tracked_ = child->work_tree_->tracked();
      child->ignore_ = {};  // only `include_` can have kept it from being barred
    }
    child->top_at_ = child->full_size_;
    child->rules_at_ = child->top_at_;
  }
  child->AddFiles(files);
  return child;
}

void DirRules::AddFiles(const DirFiles& files) {
  git_rest_ = git_stack_;
  belay_rest_ = belay_stack_;
  auto parse = [&](const char* name, std::string_view bytes, bool fold_case) {
    std::string scratch;
    const std::string dir(Full(scratch).substr(root_at_));
    return PatternFile::Parse(dir + name, std::string(bytes), fold_case);
  };
  if (files.gitignore) {
    own().git = parse(".gitignore", *files.gitignore, work_tree_->ignore_case());
    if (!own_->git->empty()) git_stack_ = this;
  }
  if (files.belayignore) {
    own().belay = parse(".belayignore", *files.belayignore, false);
    if (!own_->belay->empty()) belay_stack_ = this;
  }
}

std::string_view DirRules::Full(std::string& scratch) const {
  if (before_ == nullptr) return text_;
  scratch.resize(full_size_);
  for (const DirRules* d = this; d != nullptr; d = d->before_)
    d->text_.copy(scratch.data() + d->full_size_ - d->text_.size(), d->text_.size());
  return scratch;
}

std::string DirRules::Path() const {
  std::string scratch;
  std::string_view path = Full(scratch).substr(root_at_);
  if (!path.empty()) path.remove_suffix(1);
  return std::string(path);
}

// One after the other: destroying a chain of a hundred thousand parents from within
// each other would take the stack.
DirRules::~DirRules() {
  std::shared_ptr<const DirRules> at = std::move(parent_);
  while (at != nullptr && at.use_count() == 1) at = std::move(at->parent_);
}

// --- decisions -----------------------------------------------------------------------

RuleRef DirRules::MatchGit(const PathQuery& query) const {
  for (const DirRules* d = git_stack_; d != nullptr; d = d->git_rest_)
    if (RuleRef rule = LastMatch(d->gitignore(), query, d->full_size_)) return rule;
  if (outer_rules_) {
    const std::vector<WorkTree::Above>& above = work_tree_->above_root();
    for (auto at = above.rbegin(); at != above.rend(); ++at)
      if (at->base <= query.dir().size())
        if (RuleRef rule = LastMatch(&at->file, query, at->base)) return rule;
    if (RuleRef rule = LastMatch(work_tree_->info_exclude(), query, rules_at_);
        rule && !BELAY_MUTANT("global-before-info"))
      return rule;
  }
  return LastMatch(work_tree_->global_excludes(), query, rules_at_);
}

RuleRef DirRules::MatchBelay(const PathQuery& query) const {
  for (const DirRules* d = belay_stack_; d != nullptr; d = d->belay_rest_)
    if (RuleRef rule = LastMatch(d->belayignore(), query, d->full_size_)) return rule;
  return LastMatch(&config_->exclude(), query, root_at_);
}

DirRules::Verdict DirRules::Weigh(const PathQuery& query) const {
  Verdict v;
  if (!BELAY_MUTANT("protect-not-inherited")) v.protect = protect_;
  if (RuleRef rule = LastMatch(&config_->protect(), query, root_at_))
    v.protect = Says(rule) ? rule : RuleRef{};

  v.exclude = exclude_;
  if (v.exclude) return v;
  const RuleRef belay = MatchBelay(query);
  if (Says(belay)) {
    v.exclude = belay;
    return v;
  }
  if (!barred_ || BELAY_MUTANT("belayignore-reaches-into-barred"))
    v.include = belay ? belay : include_;

  v.ignore = ignore_;
  if (BELAY_MUTANT("parent-ignore-forgotten")) v.ignore = {};
  if (!v.ignore) {
    const RuleRef git = MatchGit(query);
    if (Says(git))
      v.ignore = git;
    else
      v.unignore = git;
  }
  if (v.include || v.ignore) return v;

  v.fallback = fallback_;
  if (!v.fallback && (!v.unignore || BELAY_MUTANT("defaults-beat-git"))) {
    const RuleRef fallback = LastMatch(&config_->defaults(), query, root_at_);
    if (Says(fallback)) v.fallback = fallback;
  }
  return v;
}

bool DirRules::IsTracked(const PathQuery& query) const {
  return tracked_ != nullptr && tracked_->HasFile(query.path().substr(top_at_)) &&
         !BELAY_MUTANT("tracked-but-ignored-left-out");
}

bool DirRules::HasTrackedBelow(const PathQuery& query) const {
  return tracked_ != nullptr && tracked_->HasBelow(query.path().substr(top_at_));
}

bool DirRules::HoldsTracked() const {
  if (tracked_ == nullptr) return false;
  std::string scratch;
  std::string_view path = Full(scratch).substr(top_at_);
  if (path.ends_with('/')) path.remove_suffix(1);
  return tracked_->HasBelow(path);
}

Decision DirRules::JudgeDirectory(const PathQuery& query, const Verdict& v,
                                  bool ask_index) const {
  Decision d;
  if ((v.left_out() || ask_index) && IsTracked(query)) {  // a submodule
    d.why = Why::kTracked;
    return d;
  }
  if (!v.left_out()) {
    d.rule = v.include ? v.include : v.unignore;
    return d;
  }
  d.covered = false;
  d.why = v.ignore ? Why::kIgnored : Why::kExcluded;
  d.rule = v.exclude ? v.exclude : v.ignore ? v.ignore : v.fallback;
  const bool named = HasTrackedBelow(query) ||
                     config_->protect().CouldMatchBelow(query.path().substr(root_at_));
  d.descend = named ? Descend::kNamed : Descend::kNo;
  return d;
}

Decision DirRules::Judge(std::string_view name, bool is_dir, bool ask_index) const {
  Decision d;
  if ((git_dir_ || name == ".git") && !BELAY_MUTANT("git-directory-covered")) {
    d.covered = false;
    d.why = Why::kGitDir;
    d.descend = Descend::kNo;
    return d;
  }
  std::string scratch;
  const PathQuery query(Full(scratch), name, is_dir);
  const Verdict v = Weigh(query);
  RuleRef secret;
  if (!is_dir || BELAY_MUTANT("secret-directories")) {
    secret = LastMatch(&config_->secrets(), query, root_at_);
    if (!secret) secret = secret_;
    if (!Says(secret)) secret = {};
    d.secret = bool{secret};
  }
  if (v.protect) {
    d.why = Why::kProtected;
    d.rule = v.protect;
    return d;
  }
  if (secret && config_->lists().skip_secrets) {
    d.covered = BELAY_MUTANT("skipped-secrets-covered");
    d.why = Why::kSecret;
    d.rule = secret;
    return d;
  }
  if (is_dir) return JudgeDirectory(query, v, ask_index);

  const bool reachable = !barred_ || BELAY_MUTANT("secrets-in-ignored-directories");
  if (secret && (reachable || IsTracked(query))) {
    d.why = Why::kSecret;
    d.rule = secret;
    return d;
  }
  if ((v.left_out() || ask_index) && IsTracked(query)) {
    d.why = Why::kTracked;
    return d;
  }
  if (!v.left_out()) {
    d.rule = v.include ? v.include : v.unignore;
    return d;
  }
  d.covered = false;
  d.why = v.ignore ? Why::kIgnored : Why::kExcluded;
  d.rule = v.exclude ? v.exclude : v.ignore ? v.ignore : v.fallback;
  return d;
}

Decision DirRules::Decide(std::string_view name, bool is_dir) const {
  return Judge(name, is_dir, false);
}

Decision DirRules::Explain(std::string_view name, bool is_dir) const {
  return Judge(name, is_dir, true);
}

}  // namespace belay
