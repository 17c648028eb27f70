#pragma once

// The rules that decide what Belay covers, as a pure function of bytes it is given:
// no file is opened here. The scanner reads the files and asks.
//
// Layers, the first that has something to say decides:
//   protect > secrets > tracked > .belayignore and `exclude` > git's ignore rules >
//   default excludes
//
// Guarantees
//   * Git's layer answers as the installed git does, rule and line included
//     (tests/ignore/differential_full): nearest .gitignore first, then info/exclude,
//     then core.excludesFile; in each the last matching line wins; what lies below an
//     ignored directory is ignored, whatever deeper files say.
//   * .belayignore files and `exclude` go the same way (nearest file first, then the
//     setting). `!x` there covers x against git's rules and default excludes, and what
//     is below it unless matched again; not below a directory that is left out already.
//   * A directory that is left out is *barred*: below it only tracked and protected
//     paths are covered, no secret and nothing that `!x` names.
//   * Secrets are files and symlinks, never directories: a virtual environment may be
//     called .env. A pattern that ends in `/` makes secrets of all files below, until
//     one is matched again. With `skip_secrets` they are not covered, tracked or not,
//     unless protected.
//   * protect: a match of a directory holds for everything below it, until a path below
//     is matched again (`!x` ends it).
//   * Default excludes bind untracked paths only, and not one whose own last matching
//     git rule is `!x`.
//   * `.git` and all below it is git_dir and never covered, protected or not.
//     (Look-alikes are the scanner's business.)
//   * Inside a nested work tree its own index and git rules apply alone; Belay's own
//     layers go on. Nested in a barred directory it is barred too: its index says
//     nothing. A tracked submodule (TrackedSet::HasFile of a directory) is not barred.
// Reasons: docs/decisions/0007-what-the-rules-mean.md.
//
// What the scanner must do as git does: read .gitignore only when it is a regular file
// (git does not follow a symlink there; info/exclude and core.excludesFile may be
// links), and treat a symlink to a directory as a file.
//
// Threads: everything here is immutable once made, and may be shared. A DirRules holds
// its parent, because a child outlives the walk of its parent when two threads share
// the work: that is why it is a shared_ptr.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ignore/pattern_file.h"

namespace belay {

// What a git index lists. Paths are relative to the top of the work tree, without a
// trailing slash, and follow core.ignoreCase. Must be safe to ask from several threads.
class TrackedSet {
 public:
  virtual ~TrackedSet() = default;
  virtual bool HasFile(std::string_view path) const = 0;  // file, symlink, submodule
  virtual bool HasBelow(std::string_view dir) const = 0;  // some entry lies below it
  // The index could not be read: that something is not in the set means nothing.
  virtual bool unknown() const { return false; }
  // Nobody asks at the moment, and hardly anybody will: what it holds in memory may go,
  // and is read again for who asks all the same.
  virtual void Rest() const {}
};

// --- what goes in --------------------------------------------------------------------

inline constexpr std::string_view kDefaultExcludes[] = {
    "node_modules/", "dist/", "build/",  "__pycache__/", "*.pyc",
    ".DS_Store",     "*.log", ".cache/", ".venv/"};

// The settings, each list in the syntax of .gitignore, relative to the root.
struct RuleLists {
  std::vector<std::string> protect;
  std::vector<std::string> exclude;
  std::vector<std::string> secret_patterns;
  bool skip_secrets = false;  // secrets = "skip"
  bool default_excludes = true;
};

class RuleConfig {
 public:
  explicit RuleConfig(RuleLists lists);
  const RuleLists& lists() const { return lists_; }

  // Named as RuleText shows them: "protect", "exclude", "secret_patterns",
  // "default_excludes" (empty when switched off).
  const PatternFile& protect() const { return protect_; }
  const PatternFile& exclude() const { return exclude_; }
  const PatternFile& secrets() const { return secrets_; }
  const PatternFile& defaults() const { return defaults_; }

 private:
  RuleLists lists_;
  PatternFile protect_, exclude_, secrets_, defaults_;
};

struct RuleBytes {
  std::string name;  // how RuleText shows it: ".git/info/exclude", "/home/u/.gitignore"
  std::string bytes;  // the whole file
};

// What git knows about one work tree. For a root outside git: the default with only
// `global_excludes` set; the root then counts as the top.
struct WorkTreeInput {
  std::optional<RuleBytes> info_exclude;
  std::optional<RuleBytes> global_excludes;   // core.excludesFile
  bool ignore_case = false;                   // core.ignoreCase
  std::shared_ptr<const TrackedSet> tracked;  // null = nothing is tracked

  // Only for the work tree that holds the root: the root's path below the top ("" when
  // it is the top itself, else "a/b"), and the .gitignore of the top, of a, ...: one
  // per directory above the root, top first, nullopt where there is none. Their names
  // are the caller's choice ("../.gitignore").
  std::string root_below_top;
  std::vector<std::optional<RuleBytes>> above_root;
};

class WorkTree {
 public:
  explicit WorkTree(WorkTreeInput input);

  // One of the files above the root; `base` is the length of its directory's path.
  struct Above {
    PatternFile file;
    size_t base = 0;
  };

  const PatternFile* info_exclude() const { return info_ ? &*info_ : nullptr; }
  const PatternFile* global_excludes() const { return global_ ? &*global_ : nullptr; }
  const std::vector<Above>& above_root() const { return above_; }  // top first
  bool ignore_case() const { return ignore_case_; }
  const TrackedSet* tracked() const { return tracked_.get(); }
  const std::string& prefix() const { return prefix_; }  // "a/b/", "" for the top

 private:
  std::optional<PatternFile> info_;
  std::optional<PatternFile> global_;
  std::vector<Above> above_;
  bool ignore_case_;
  std::shared_ptr<const TrackedSet> tracked_;
  std::string prefix_;
};

// --- what comes out ------------------------------------------------------------------

enum class Why : uint8_t {
  kCovered,  // nothing leaves it out; rule = the `!x` that saw to it, or none
  kTracked,  // in the git index
  kProtected,
  kSecret,    // covered, or with skip_secrets not
  kIgnored,   // by git's rules
  kExcluded,  // by .belayignore, `exclude` or default excludes
  kGitDir,
};
std::string_view WhyName(
    Why why);  // "covered", "git_dir" ...: the words of `belay why`

// What to do with a directory.
enum class Descend : uint8_t {
  kAll,
  kNamed,  // only tracked and protected paths below are covered: enter, ask for each
  kNo,     // nothing below is covered
};

// A pattern and where it stands; lives as long as the DirRules that gave it.
struct RuleRef {
  const PatternFile* file = nullptr;
  const Pattern* pattern = nullptr;
  explicit operator bool() const { return pattern != nullptr; }
  bool operator==(const RuleRef&) const = default;
};
// "src/.gitignore:3:*.o"; raw bytes. Empty for no rule.
std::string RuleText(const RuleRef& rule);

struct Decision {
  bool covered = true;  // of a directory: it and all below by their own rules
  Why why = Why::kCovered;
  Descend descend = Descend::kAll;  // of a directory
  bool secret = false;  // covered or not, it is one: `why` may name a stronger reason
  RuleRef rule;
};

// --- a directory ---------------------------------------------------------------------

// The files of a directory that count. nullopt = there is none.
struct DirFiles {
  std::optional<std::string_view> gitignore = std::nullopt;
  std::optional<std::string_view> belayignore = std::nullopt;
};

class DirRules : public std::enable_shared_from_this<DirRules> {
 public:
  using Ptr = std::shared_ptr<const DirRules>;

  // The root. When the rules of the work tree around it ignore the root itself, they do
  // not apply (somebody asked for this directory by name): root_ignored_by() says so,
  // the root then counts as a top, its index stays.
  static Ptr Root(std::shared_ptr<const RuleConfig> config,
                  std::shared_ptr<const WorkTree> work_tree, const DirFiles& files);

  // A directory in this one, whatever Decide() says about it (`belay why` goes on below
  // a directory that the scan does not enter). About 100 ns without files.
  Ptr Enter(std::string_view name, const DirFiles& files) const;
  // The same for one that is the top of a work tree.
  Ptr EnterWorkTree(std::string_view name, std::shared_ptr<const WorkTree> work_tree,
                    const DirFiles& files) const;

  // Whether the entry `name` of this directory is covered. `is_dir` is false for a
  // symlink. The index is asked only when the answer depends on it: a tracked file that
  // nothing leaves out is kCovered here.
  Decision Decide(std::string_view name, bool is_dir) const;
  // The same for people: the reason of highest precedence, so a tracked file is
  // kTracked.
  Decision Explain(std::string_view name, bool is_dir) const;

  // Something in this directory is in the index that counts here.
  bool HoldsTracked() const;

  // What is tracked here could not be found out: what Decide() leaves out, other than
  // secrets, might be tracked. Ask after Decide().
  bool MayBeTracked() const { return tracked_ != nullptr && tracked_->unknown(); }

  // From the root, "" for the root itself.
  std::string Path() const;
  // Below this directory only tracked and protected paths are covered.
  bool barred() const { return barred_; }
  // Everything in it is protected (until matched again).
  bool is_protected() const { return bool{protect_}; }

  // What this directory added, for the rules record; null when there was no file.
  const PatternFile* gitignore() const { return own_ ? own_->gitignore() : nullptr; }
  const PatternFile* belayignore() const {
    return own_ ? own_->belayignore() : nullptr;
  }
  const RuleConfig& config() const { return *config_; }
  const WorkTree& work_tree() const { return *work_tree_; }
  const RuleRef& root_ignored_by() const { return root_ignored_by_; }

  struct Private {};  // only for Root() and Enter()
  explicit DirRules(Private) {}
  ~DirRules();

 private:
  // What the layers say about one entry, given what holds for this directory.
  struct Verdict {
    RuleRef protect;
    RuleRef exclude;   // .belayignore, `exclude`
    RuleRef include;   // `!x` there
    RuleRef ignore;    // git's rules
    RuleRef unignore;  // `!x` there
    RuleRef fallback;  // default excludes
    bool left_out() const { return exclude || (!include && (ignore || fallback)); }
  };

  Verdict Weigh(const PathQuery& query) const;
  RuleRef MatchGit(const PathQuery& query) const;
  RuleRef MatchBelay(const PathQuery& query) const;
  Decision Judge(std::string_view name, bool is_dir, bool ask_index) const;
  Decision JudgeDirectory(const PathQuery& query, const Verdict& verdict,
                          bool ask_index) const;
  bool IsTracked(const PathQuery& query) const;
  bool HasTrackedBelow(const PathQuery& query) const;
  void FindRootRule();
  Ptr MakeChild(std::string_view name, std::shared_ptr<const WorkTree> work_tree,
                const DirFiles& files) const;
  void AddFiles(const DirFiles& files);
  // The whole path, in text_ or in `scratch`.
  std::string_view Full(std::string& scratch) const;

  // What this directory brings along. Few do, and a tree has many directories.
  struct Own {
    std::shared_ptr<const RuleConfig> config;   // of the root
    std::shared_ptr<const WorkTree> work_tree;  // of a top
    std::optional<PatternFile> git;
    std::optional<PatternFile> belay;
    const PatternFile* gitignore() const { return git ? &*git : nullptr; }
    const PatternFile* belayignore() const { return belay ? &*belay : nullptr; }
  };
  Own& own() {
    if (own_ == nullptr) own_ = std::make_unique<Own>();
    return *own_;
  }

  // Keeps alive all that is pointed to here. Only the destructor of the last child
  // takes it away.
  mutable std::shared_ptr<const DirRules> parent_;
  std::unique_ptr<Own> own_;
  const RuleConfig* config_ = nullptr;
  const WorkTree* work_tree_ = nullptr;
  const TrackedSet* tracked_ = nullptr;  // work_tree_'s, or null when it must not count

  // The path of a directory from the top of the work tree around the root, empty or
  // with a trailing slash; the path from the root and from the present top are its
  // ends. Deep down only what follows the path of `before_` is kept, lest a chain of
  // directories take memory by the square of its depth.
  std::string text_;
  const DirRules* before_ = nullptr;
  size_t full_size_ = 0;
  size_t root_at_ = 0;
  size_t top_at_ = 0;    // of the index
  size_t rules_at_ = 0;  // of info/exclude and the global file; see root_ignored_by()

  // The directories at and above this one whose files have patterns, nearest first, and
  // what follows this one there.
  const DirRules* git_stack_ = nullptr;
  const DirRules* git_rest_ = nullptr;
  const DirRules* belay_stack_ = nullptr;
  const DirRules* belay_rest_ = nullptr;
  bool outer_rules_ = true;  // work_tree_'s above_root() and info_exclude() count

  // What was decided about this directory and holds below it.
  bool git_dir_ = false;  // it is or lies in a `.git`
  bool barred_ = false;
  RuleRef protect_;
  RuleRef secret_;
  RuleRef exclude_;
  RuleRef include_;
  RuleRef ignore_;
  RuleRef fallback_;
  RuleRef root_ignored_by_;
};

}  // namespace belay
