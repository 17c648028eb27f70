#include "git/ask_git.h"

#include "base/escape.h"
#include "base/subprocess.h"

namespace belay {

namespace {

constexpr std::string_view kUsualPath = "/usr/local/bin:/usr/bin:/bin";

Result<AbsPath> FindGit(Fs& fs, std::string_view path) {
  std::string_view rest = path.empty() ? kUsualPath : path;
  while (!rest.empty()) {
    size_t colon = rest.find(':');
    std::string_view part = rest.substr(0, colon);
    rest =
        colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    // Relative directories depend on where we are; a program found there is not git.
    if (!part.starts_with('/')) continue;
    auto dir = AbsPath::Resolve(AbsPath::Literal("/"), part);
    if (!dir.ok()) continue;
    AbsPath program = dir->Join(RelPath::Literal("git"));
    auto real = fs.RealPath(program);
    if (!real.ok() || real->is_root()) continue;
    auto parent = fs.OpenDir(real->parent());
    if (!parent.ok()) continue;
    RelPath below = RelPath::Literal(std::string_view(real->bytes()).substr(1));
    auto stat = fs.StatAt(*parent, below.basename());
    if (stat.ok() && stat->type == FileType::kRegular && (stat->mode & 0111) != 0)
      return program;
  }
  return Error(Errc::kNotFound,
               "git is needed to read this repository's index, and is "
               "not installed")
      .WithHint(
          "install git, or turn the sparse index off (git config index.sparse "
          "false, then git status)");
}

// One entry of `ls-files --stage -z`: "100644 <object> 0\t<name>".
Status AddLine(std::string_view line, TrackedPathsBuilder& builder) {
  const Error kBad(Errc::kCorrupt, "git ls-files gave a line of an unknown form");
  size_t tab = line.find('\t');
  if (tab == std::string_view::npos || tab < 10) return kBad;
  std::string_view head = line.substr(0, tab);
  size_t space = head.find(' ');
  if (space == std::string_view::npos || head[head.size() - 2] != ' ') return kBad;
  uint32_t mode = 0;
  for (char c : head.substr(0, space)) {
    if (c < '0' || c > '7' || mode > 0777777) return kBad;
    mode = mode * 8 + static_cast<uint32_t>(c - '0');
  }
  char stage = head.back();
  if (stage < '0' || stage > '3') return kBad;
  return builder.Add(line.substr(tab + 1), mode, static_cast<unsigned>(stage - '0'));
}

}  // namespace

Result<TrackedPaths> AskGitForTracked(Fs& fs, const GitRepository& repository,
                                      const AskGitOptions& options) {
  BELAY_TRY(AbsPath git, FindGit(fs, options.path));
  ProcessOptions process{.program = git};
  process.directory = repository.work_tree;
  process.timeout_ms = options.timeout_ms;
  process.output_cap = options.output_cap;
  process.environment = {
      "PATH=" + (options.path.empty() ? std::string(kUsualPath) : options.path),
      "LC_ALL=C",
      "HOME=/nonexistent",
      "GIT_CONFIG_NOSYSTEM=1",
      "GIT_CONFIG_SYSTEM=/dev/null",
      "GIT_CONFIG_GLOBAL=/dev/null",
      "GIT_ATTR_NOSYSTEM=1",
      "GIT_OPTIONAL_LOCKS=0",
      // A partial clone must not fetch: git 2.45 has a switch, older ones find no
      // transport that they may use.
      "GIT_NO_LAZY_FETCH=1",
      "GIT_ALLOW_PROTOCOL=none",
      "GIT_TERMINAL_PROMPT=0",
      "GIT_DIR=" + repository.git_dir.bytes(),
      "GIT_WORK_TREE=" + repository.work_tree.bytes(),
  };
  process.arguments = {
      "--no-pager", "--no-replace-objects",     "-c",       "core.fsmonitor=false",
      "-c",         "core.hooksPath=/dev/null", "-c",       "core.untrackedCache=false",
      "-c",         "core.pager=cat",           "-c",       "credential.helper=",
      "-c",         "safe.directory=*",         "ls-files", "-z",
      "--stage"};
  BELAY_TRY(ProcessResult result, RunProcess(process));
  if (result.end == ProcessResult::End::kTimedOut)
    return Error(Errc::kBusy, "git ls-files did not answer in " +
                                  std::to_string(options.timeout_ms / 1000) + " s");
  if (!result.ok()) {
    std::string words = result.errors.substr(0, result.errors.find('\n'));
    return Error(Errc::kInvalid,
                 "git could not read the index of " +
                     EscapeForDisplay(repository.work_tree.bytes()) + ": " +
                     (words.empty() ? "it gave no reason" : EscapeForDisplay(words)));
  }
  TrackedPathsBuilder builder;
  std::string_view rest = result.output;
  while (!rest.empty()) {
    size_t end = rest.find('\0');
    if (end == std::string_view::npos)
      return Error(Errc::kCorrupt, "git ls-files ended in the middle of a name");
    BELAY_OK(AddLine(rest.substr(0, end), builder));
    rest.remove_prefix(end + 1);
  }
  TrackedPaths paths = builder.Finish();
  if (repository.ignore_case) paths.FoldCase();
  return paths;
}

Result<GitIndex> ReadTracked(Fs& fs, const GitRepository& repository,
                             const AskGitOptions& options) {
  BELAY_TRY(GitIndex index,
            ReadIndex(fs, repository.index(), repository.index_options()));
  if (index.needs_git.empty()) return index;
  BELAY_TRY(index.paths, AskGitForTracked(fs, repository, options));
  index.needs_git.clear();
  return index;
}

}  // namespace belay
