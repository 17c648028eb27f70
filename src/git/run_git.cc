#include "git/run_git.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"

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
  return Error(Errc::kNotFound, "git is not installed");
}

// As one of a list of paths in a variable of git's.
std::string QuotedForGit(std::string_view path) {
  if (path.find_first_of(":\"\\\n") == std::string_view::npos) return std::string(path);
  std::string out = "\"";
  for (char c : path) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + "\"";
}

}  // namespace

std::vector<std::string> GitLines(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Result<GitRunner> GitRunner::Find(Fs& fs, const GitRepository& repository,
                                  const AskGitOptions& options) {
  BELAY_TRY(AbsPath program, FindGit(fs, options.path));
  return GitRunner(std::move(program), repository, options);
}

ProcessOptions GitRunner::Options(const std::vector<std::string>& command,
                                  const std::vector<std::string>& variables) const {
  ProcessOptions process{.program = program_};
  process.directory = repository_->work_tree;
  process.timeout_ms = options_->timeout_ms;
  process.output_cap = options_->output_cap;
  process.environment = {
      "PATH=" + (options_->path.empty() ? std::string(kUsualPath) : options_->path),
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
      "GIT_DIR=" + repository_->git_dir.bytes(),
  };
  // A bare one has none, and git refuses to make one with it.
  if (repository_->work_tree != repository_->git_dir)
    process.environment.push_back("GIT_WORK_TREE=" + repository_->work_tree.bytes());
  if (!objects_.empty() && objects_first_) {
    process.environment.push_back("GIT_OBJECT_DIRECTORY=" + objects_);
    process.environment.push_back(
        "GIT_ALTERNATE_OBJECT_DIRECTORIES=" +
        QuotedForGit(repository_->common_dir.bytes() + "/objects"));
  } else if (!objects_.empty()) {
    process.environment.push_back("GIT_ALTERNATE_OBJECT_DIRECTORIES=" + objects_);
  }
  process.environment.insert(process.environment.end(), variables.begin(),
                             variables.end());
  if (BELAY_MUTANT("git-ask-fetches")) {
    std::erase(process.environment, "GIT_NO_LAZY_FETCH=1");
    std::erase(process.environment, "GIT_ALLOW_PROTOCOL=none");
  }
  process.arguments = {"--no-pager", "--no-replace-objects"};
  for (const char* setting :
       {"core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=false",
        "core.splitIndex=false", "core.pager=cat", "credential.helper=",
        "commit.gpgSign=false", "gc.auto=0", "safe.directory=*"}) {
    process.arguments.insert(process.arguments.end(), {"-c", setting});
  }
  process.arguments.insert(process.arguments.end(), command.begin(), command.end());
  return process;
}

Result<ProcessResult> GitRunner::Try(const std::vector<std::string>& command,
                                     std::string input,
                                     const std::vector<std::string>& variables) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline_ - std::chrono::steady_clock::now());
  ProcessOptions process = Options(command, variables);
  process.timeout_ms = std::max<int64_t>(left.count(), 1);
  process.input = std::move(input);
  return RunProcess(process);
}

Result<std::unique_ptr<RunningProcess>> GitRunner::Start(
    const std::vector<std::string>& command,
    const std::vector<std::string>& variables) {
  return RunningProcess::Start(Options(command, variables));
}

Status GitRunner::Judge(const std::vector<std::string>& command,
                        const ProcessResult& result) const {
  if (result.end == ProcessResult::End::kTimedOut)
    return Error(Errc::kBusy, "git did not answer within " +
                                  std::to_string(options_->timeout_ms) + " ms");
  if (result.ok()) return Ok();
  const std::string words = result.errors.substr(0, result.errors.find('\n'));
  return Error(Errc::kInvalid,
               "git " + command.front() + ": " +
                   (words.empty() ? "it gave no reason" : EscapeForDisplay(words)));
}

Result<std::string> GitRunner::Run(const std::vector<std::string>& command,
                                   std::string input,
                                   const std::vector<std::string>& variables) {
  BELAY_TRY(ProcessResult result, Try(command, std::move(input), variables));
  BELAY_OK(Judge(command, result));
  return std::move(result.output);
}

}  // namespace belay
