#include "git/repository.h"

#include <cerrno>

#include "base/escape.h"
#include "base/mutant.h"
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

// The error means that something is not there, or not as a repository would have it. A
// failing disk means neither: it must not make a repository look like none.
bool IsAbsence(const Error& error) {
  if (BELAY_MUTANT("git-failing-disk-is-absence")) return true;
  return error.code == Errc::kNotFound || error.code == Errc::kInvalid ||
         error.code == Errc::kRefused;
}

Result<bool> IsDirectory(Fs& fs, const AbsPath& path) {
  auto dir = fs.OpenDir(path);
  // What may be searched need not be readable.
  if (dir.ok() || dir.error().sys == EACCES) return true;
  if (IsAbsence(dir.error())) return false;
  return std::move(dir).error();
}

// "ref: refs/..." or an object id.
bool IsHeadText(std::string_view text) {
  if (text.starts_with("ref:")) {
    size_t start = text.find_first_not_of(" \t\n\r", 4);
    return start != std::string_view::npos && text.substr(start).starts_with("refs/");
  }
  return text.substr(0, 40).find_first_not_of("0123456789abcdefABCDEF") ==
             std::string_view::npos &&
         text.size() >= 40;
}

Result<bool> HasHead(Fs& fs, const Fd& dir) {
  Name head = Name::Literal("HEAD");
  BELAY_TRY(FileStat stat, fs.StatAt(dir, head));
  if (stat.type == FileType::kSymlink) {  // from git's first year
    BELAY_TRY(std::string target, fs.ReadLink(dir, head));
    return target.starts_with("refs/");
  }
  if (stat.type != FileType::kRegular) return false;
  BELAY_TRY(Fd file, fs.Open(dir, head, OpenMode::Read()));
  char buffer[kHeadBytes];
  BELAY_TRY(size_t got,
            ReadFull(fs, file, 0, std::as_writable_bytes(std::span(buffer))));
  return IsHeadText({buffer, got});
}

Result<bool> HasHead(Fs& fs, const AbsPath& git_dir) {
  BELAY_TRY(Fd dir, fs.OpenDir(git_dir));
  return HasHead(fs, dir);
}

// Where what linked work trees share is: the directory itself unless "commondir" says
// otherwise.
Result<AbsPath> CommonDir(Fs& fs, const AbsPath& git_dir) {
  auto text = ReadText(fs, git_dir.Join(RelPath::Literal("commondir")), kMaxGitFile);
  if (text.ok()) return ResolveFrom(fs, git_dir, TrimLineEnds(*text));
  if (text.error().code == Errc::kNotFound) return git_dir;
  return std::move(text).error();
}

struct GitDir {
  AbsPath git_dir;
  AbsPath common_dir;
};

Result<std::optional<GitDir>> CheckGitDir(Fs& fs, const AbsPath& dir) {
  BELAY_TRY(bool head, HasHead(fs, dir));
  if (!head) return std::optional<GitDir>();
  BELAY_TRY(AbsPath common, CommonDir(fs, dir));
  BELAY_TRY(bool objects, IsDirectory(fs, common.Join(RelPath::Literal("objects"))));
  BELAY_TRY(bool refs, IsDirectory(fs, common.Join(RelPath::Literal("refs"))));
  if (!objects || !refs) return std::optional<GitDir>();
  return std::optional<GitDir>(GitDir{dir, std::move(common)});
}

Result<std::optional<GitDir>> FollowGitFile(Fs& fs, const AbsPath& file) {
  constexpr std::string_view kGitDir = "gitdir: ";
  auto text = ReadText(fs, file, kMaxGitFile);
  if (!text.ok()) return std::move(text).error();
  std::string_view target = *text;
  if (!target.starts_with(kGitDir)) return std::optional<GitDir>();
  target = TrimLineEnds(target.substr(kGitDir.size()));
  target = target.substr(0, target.find('\0'));
  if (target.empty()) return std::optional<GitDir>();
  BELAY_TRY(AbsPath resolved, ResolveFrom(fs, file.parent(), target));
  BELAY_TRY(AbsPath real, fs.RealPath(resolved));
  return CheckGitDir(fs, real);
}

Result<std::optional<GitDir>> FollowEntry(Fs& fs, const Fd& dir, const AbsPath& path) {
  Name dot_git = Name::Literal(".git");
  BELAY_TRY(FileStat stat, fs.StatAt(dir, dot_git));
  AbsPath entry = path.Join(dot_git);
  switch (stat.type) {
    case FileType::kDirectory:
      return CheckGitDir(fs, entry);
    case FileType::kRegular:
      return FollowGitFile(fs, entry);
    case FileType::kSymlink: {
      BELAY_TRY(AbsPath real, fs.RealPath(entry));
      BELAY_TRY(bool directory, IsDirectory(fs, real));
      return directory ? CheckGitDir(fs, real) : FollowGitFile(fs, entry);
    }
    default:
      return std::optional<GitDir>();
  }
}

// What may not be read is not absent.
Result<std::optional<GitDir>> NoneIfAbsent(Result<std::optional<GitDir>> found) {
  if (!found.ok() && IsAbsence(found.error()) && found.error().sys != EACCES)
    return std::optional<GitDir>();
  return found;
}

// What ".git" in `dir` leads to.
Result<std::optional<GitDir>> FollowDotGit(Fs& fs, const Fd& dir, const AbsPath& path) {
  return NoneIfAbsent(FollowEntry(fs, dir, path));
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
  AbsPath own_file = found.common_dir.Join(RelPath::Literal("config"));
  GitConfig all = GitConfig::Read(
      fs, user, {.git_dir = found.git_dir, .common_dir = found.common_dir});
  out.problems = all.problems();
  // Format, bareness and work tree come from these files alone, without includes: git
  // reads them before it knows where it is.
  GitConfig own = all.From(own_file);
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
    take(all.From(found.git_dir.Join(RelPath::Literal("config.worktree"))));
  if (work_tree && !work_tree->empty()) {
    auto top = ResolveFrom(fs, found.git_dir, *work_tree);
    if (top.ok()) top = fs.RealPath(*top);
    if (!top.ok()) {
      if (IsAbsence(top.error())) return std::optional<GitRepository>();
      return std::move(top).error();
    }
    out.work_tree = std::move(top).value();
  } else if (bare.value_or(false)) {
    return std::optional<GitRepository>();
  }

  out.ignore_case = all.Bool("core.ignorecase").value_or(false);
  out.excludes_file = ExcludesFile(fs, all, user, &out.work_tree, out.problems);
  return std::optional<GitRepository>(std::move(out));
}

}  // namespace

Result<bool> IsGitDirectory(Fs& fs, const Fd& dir) {
  for (const char* name : {"objects", "refs"}) {
    auto stat = fs.StatAt(dir, Name::Literal(name));
    if (!stat.ok()) {
      if (IsAbsence(stat.error())) return false;
      return std::move(stat).error();
    }
    if (stat->type != FileType::kDirectory && stat->type != FileType::kSymlink)
      return false;
  }
  auto head = HasHead(fs, dir);
  if (head.ok()) return head;
  if (IsAbsence(head.error()) && head.error().sys != EACCES) return false;
  switch (head.error().sys) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EINTR:
      return std::move(head).error();
    default:
      return true;
  }
}

Result<std::optional<GitRepository>> OpenRepositoryAt(Fs& fs, const AbsPath& dir,
                                                      const GitUserConfig& user) {
  BELAY_TRY(Fd handle, fs.OpenDir(dir));
  BELAY_TRY(std::optional<GitDir> found, FollowDotGit(fs, handle, dir));
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
    if (!handle.ok() && handle.error().sys != EACCES) return std::move(handle).error();
    if (handle.ok()) {
      BELAY_TRY(FileStat stat, fs.Stat(*handle));
      if (stat.dev != start_stat.dev) return std::optional<GitRepository>();
      BELAY_TRY(std::optional<GitDir> found, FollowDotGit(fs, *handle, at));
      if (found) {
        BELAY_TRY(auto repository, Describe(fs, at, *found, user));
        if (!repository || !top.IsWithin(repository->work_tree) ||
            top.IsWithin(repository->git_dir))
          return std::optional<GitRepository>();
        return repository;
      }
      // A bare repository, or the inside of a git directory.
      BELAY_TRY(std::optional<GitDir> bare, NoneIfAbsent(CheckGitDir(fs, at)));
      if (bare) return std::optional<GitRepository>();
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
