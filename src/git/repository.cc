#include "git/repository.h"

#include <cerrno>

#include "base/escape.h"
#include "git/files_internal.h"

namespace belay {

namespace {

using git_internal::ReadText;
using git_internal::ResolveFrom;

constexpr size_t kMaxGitFile = size_t{1} << 20;  // git's own limit
constexpr size_t kHeadBytes = 255;               // as much as git looks at

std::string_view TrimLineEnds(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

bool IsDirectory(Fs& fs, const AbsPath& path) {
  auto dir = fs.OpenDir(path);
  return dir.ok() || dir.error().sys == EACCES;  // searchable need not be readable
}

// "ref: refs/..." or an object id, in a file; or, from git's first year, a symlink.
bool IsHead(Fs& fs, const AbsPath& git_dir) {
  auto dir = fs.OpenDir(git_dir);
  if (!dir.ok()) return false;
  Name head = Name::Literal("HEAD");
  auto stat = fs.StatAt(*dir, head);
  if (!stat.ok()) return false;
  if (stat->type == FileType::kSymlink) {
    auto target = fs.ReadLink(*dir, head);
    return target.ok() && target->starts_with("refs/");
  }
  if (stat->type != FileType::kRegular) return false;
  auto file = fs.Open(*dir, head, OpenMode::Read());
  if (!file.ok()) return false;
  char buffer[kHeadBytes];
  auto got = ReadFull(fs, *file, 0, std::as_writable_bytes(std::span(buffer)));
  if (!got.ok()) return false;
  std::string_view text(buffer, *got);
  if (text.starts_with("ref:")) {
    text.remove_prefix(4);
    while (!text.empty() &&
           (text[0] == ' ' || text[0] == '\t' || text[0] == '\n' || text[0] == '\r'))
      text.remove_prefix(1);
    return text.starts_with("refs/");
  }
  size_t hex = 0;
  auto is_hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  while (hex < text.size() && is_hex(text[hex])) ++hex;
  return hex >= 40;
}

// Where what linked work trees share is: the directory itself unless "commondir" says
// otherwise.
std::optional<AbsPath> CommonDir(Fs& fs, const AbsPath& git_dir) {
  auto text = ReadText(fs, git_dir.Join(RelPath::Literal("commondir")), kMaxGitFile);
  if (!text.ok()) {
    if (text.error().code == Errc::kNotFound) return git_dir;
    return std::nullopt;
  }
  auto path = ResolveFrom(fs, git_dir, TrimLineEnds(*text));
  if (!path.ok()) return std::nullopt;
  return std::move(path).value();
}

struct GitDir {
  AbsPath git_dir;
  AbsPath common_dir;
};

std::optional<GitDir> CheckGitDir(Fs& fs, const AbsPath& dir) {
  if (!IsHead(fs, dir)) return std::nullopt;
  std::optional<AbsPath> common = CommonDir(fs, dir);
  if (!common || !IsDirectory(fs, common->Join(RelPath::Literal("objects"))) ||
      !IsDirectory(fs, common->Join(RelPath::Literal("refs"))))
    return std::nullopt;
  return GitDir{dir, *common};
}

// What ".git" in `dir` leads to.
std::optional<GitDir> FollowDotGit(Fs& fs, const Fd& dir, const AbsPath& path) {
  Name dot_git = Name::Literal(".git");
  auto stat = fs.StatAt(dir, dot_git);
  if (!stat.ok()) return std::nullopt;
  AbsPath entry = path.Join(dot_git);
  if (stat->type == FileType::kSymlink) {
    auto real = fs.RealPath(entry);
    if (!real.ok() || real->is_root()) return std::nullopt;
    if (IsDirectory(fs, *real)) return CheckGitDir(fs, *real);
  } else if (stat->type == FileType::kDirectory) {
    return CheckGitDir(fs, entry);
  } else if (stat->type != FileType::kRegular) {
    return std::nullopt;
  }
  constexpr std::string_view kGitDir = "gitdir: ";
  auto text = ReadText(fs, entry, kMaxGitFile);
  if (!text.ok() || !text->starts_with(kGitDir)) return std::nullopt;
  std::string_view target =
      TrimLineEnds(std::string_view(*text).substr(kGitDir.size()));
  if (target.empty()) return std::nullopt;
  auto resolved = ResolveFrom(fs, path, target.substr(0, target.find('\0')));
  if (!resolved.ok()) return std::nullopt;
  auto real = fs.RealPath(*resolved);
  if (!real.ok()) return std::nullopt;
  return CheckGitDir(fs, *real);
}

void AddProblems(GitRepository& repository, const GitConfig& config) {
  for (const std::string& problem : config.problems())
    repository.problems.push_back(problem);
}

std::optional<AbsPath> ExcludesFile(Fs& fs, const GitConfig& config,
                                    const GitUserConfig& user, const AbsPath* work_tree,
                                    std::vector<std::string>& problems) {
  std::optional<std::string> path;
  if (const auto* entry = config.Last("core.excludesfile"); entry != nullptr) {
    path = config.Path(fs, "core.excludesfile", user);
    if (!path) {
      problems.push_back(EscapeForDisplay(entry->file) +
                         ": core.excludesFile cannot be understood");
      return std::nullopt;
    }
  } else {
    path = GitXdgFile(user, "ignore");
  }
  if (!path || path->empty()) return std::nullopt;
  if (!path->starts_with('/') && work_tree == nullptr) return std::nullopt;
  auto resolved =
      ResolveFrom(fs, work_tree != nullptr ? *work_tree : AbsPath::Literal("/"), *path);
  if (!resolved.ok() || resolved->is_root()) return std::nullopt;
  return std::move(resolved).value();
}

// The settings of a repository whose ".git" is in `dir`.
Result<std::optional<GitRepository>> Describe(Fs& fs, const AbsPath& dir,
                                              const GitDir& found,
                                              const GitUserConfig& user) {
  GitRepository out{.work_tree = dir,
                    .git_dir = found.git_dir,
                    .common_dir = found.common_dir,
                    .excludes_file = std::nullopt,
                    .problems = {}};
  // Format, bareness and work tree: from these files alone, without includes, as git
  // reads them before it knows where it is.
  GitConfig own =
      GitConfig::ReadOne(fs, found.common_dir.Join(RelPath::Literal("config")));
  std::string format = own.Text("extensions.objectformat").value_or("sha1");
  if (format == "sha256") {
    out.hash = GitHash::kSha256;
  } else if (format != "sha1") {
    return Error(Errc::kUnsupported,
                 "the git repository at " + EscapeForDisplay(dir.bytes()) +
                     " has the object format '" + EscapeForDisplay(format) +
                     "', which Belay does not know");
  }
  std::optional<bool> bare;
  std::optional<std::string> work_tree;
  auto take = [&](const GitConfig& config) {
    if (auto value = config.Bool("core.bare")) bare = value;
    if (auto value = config.Text("core.worktree")) work_tree = value;
  };
  bool linked = found.git_dir != found.common_dir;
  bool own_settings = own.Bool("extensions.worktreeconfig").value_or(false);
  // A linked work tree shares the settings, but is neither bare nor elsewhere for it.
  if (!linked || own_settings) take(own);
  if (own_settings)
    take(GitConfig::ReadOne(fs,
                            found.git_dir.Join(RelPath::Literal("config.worktree"))));
  if (work_tree && !work_tree->empty()) {
    auto top = ResolveFrom(fs, found.git_dir, *work_tree);
    if (!top.ok()) return std::optional<GitRepository>();
    auto real = fs.RealPath(*top);
    if (!real.ok()) return std::optional<GitRepository>();
    out.work_tree = std::move(real).value();
  } else if (bare.value_or(false)) {
    return std::optional<GitRepository>();
  }

  GitConfig all = GitConfig::Read(
      fs, user, {.git_dir = found.git_dir, .common_dir = found.common_dir});
  AddProblems(out, all);
  out.ignore_case = all.Bool("core.ignorecase").value_or(false);
  out.excludes_file = ExcludesFile(fs, all, user, &out.work_tree, out.problems);
  return std::optional<GitRepository>(std::move(out));
}

}  // namespace

Result<std::optional<GitRepository>> OpenRepositoryAt(Fs& fs, const AbsPath& dir,
                                                      const GitUserConfig& user) {
  BELAY_TRY(Fd handle, fs.OpenDir(dir));
  std::optional<GitDir> found = FollowDotGit(fs, handle, dir);
  if (!found) return std::optional<GitRepository>();
  return Describe(fs, dir, *found, user);
}

Result<std::optional<GitRepository>> FindWorkTree(Fs& fs, const AbsPath& dir,
                                                  const GitUserConfig& user) {
  BELAY_TRY(Fd start, fs.OpenDir(dir));
  BELAY_TRY(FileStat start_stat, fs.Stat(start));
  // Longer than PATH_MAX it cannot be resolved, and is taken as it is.
  auto real = fs.RealPath(dir);
  AbsPath top = real.ok() ? *real : dir;
  for (AbsPath at = top;; at = at.parent()) {
    auto handle = fs.OpenDir(at);
    if (handle.ok()) {
      auto stat = fs.Stat(*handle);
      if (!stat.ok() || stat->dev != start_stat.dev)
        return std::optional<GitRepository>();
      if (auto found = FollowDotGit(fs, *handle, at)) {
        BELAY_TRY(auto repository, Describe(fs, at, *found, user));
        if (!repository || !top.IsWithin(repository->work_tree) ||
            top.IsWithin(repository->git_dir))
          return std::optional<GitRepository>();
        return repository;
      }
      // A bare repository, or the inside of a git directory.
      if (CheckGitDir(fs, at)) return std::optional<GitRepository>();
    }
    if (at.is_root()) return std::optional<GitRepository>();
  }
}

std::optional<AbsPath> UserExcludesFile(Fs& fs, const GitUserConfig& user,
                                        std::vector<std::string>& problems) {
  GitConfig config = GitConfig::Read(fs, user, {});
  problems.insert(problems.end(), config.problems().begin(), config.problems().end());
  return ExcludesFile(fs, config, user, nullptr, problems);
}

}  // namespace belay
