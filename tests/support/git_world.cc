#include "support/git_world.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/escape.h"
#include "base/sha256.h"
#include "support/fs_world.h"

namespace belay::test {

namespace {

AbsPath FindGitProgram() {
  RealFs fs;
  for (const char* path : {"/usr/local/bin/git", "/usr/bin/git", "/bin/git"})
    if (fs.RealPath(AbsPath::Literal(path)).ok()) return AbsPath::Literal(path);
  CheckFailed("git is installed", __FILE__, __LINE__);
}

std::string Describe(const FileStat& stat) {
  return std::to_string(static_cast<int>(stat.type)) + " mode " +
         std::to_string(stat.mode) + " inode " + std::to_string(stat.ino) + " size " +
         std::to_string(stat.type == FileType::kDirectory ? 0 : stat.size) + " time " +
         std::to_string(stat.mtime_ns);
}

// All of a git directory; `inside` is false until one was entered. A git directory is
// known by its HEAD and objects, so that modules, linked work trees and separate ones
// count; a file ".git" counts too.
void Collect(RealFs& fs, const Fd& dir, const std::string& path, bool inside,
             std::map<std::string, std::string>& out) {
  auto entries = Must(fs.List(dir));
  for (const DirEntry& entry : entries) {
    if (!inside && entry.name == "HEAD") inside = true;
  }
  if (inside) out[path + "/"] = Describe(Must(fs.Stat(dir)));
  for (const DirEntry& entry : entries) {
    std::string below = path.empty() ? entry.name : path + "/" + entry.name;
    Name name = N(entry.name);
    FileStat stat = Must(fs.StatAt(dir, name));
    if (stat.type == FileType::kDirectory) {
      auto handle = fs.Open(dir, name, OpenMode::Directory());
      if (handle.ok()) Collect(fs, *handle, below, inside, out);
      continue;
    }
    if (!inside && entry.name != ".git") continue;
    std::string text = Describe(stat);
    if (stat.type == FileType::kSymlink) text += " to " + Must(fs.ReadLink(dir, name));
    if (stat.type == FileType::kRegular) {
      auto bytes = ReadSmallFile(fs, dir, name, size_t{1} << 30);
      text += bytes.ok() ? " holds " + Sha256::Of(*bytes).hex() : " unreadable";
    }
    out[below] = text;
  }
}

void Compare(const std::map<std::string, std::string>& before,
             const std::map<std::string, std::string>& after, const char* when) {
  for (const auto& [path, text] : before) {
    auto now = after.find(path);
    if (now == after.end())
      ADD_FAILURE() << EscapeForDisplay(path) << " was removed " << when;
    else if (now->second != text)
      ADD_FAILURE() << EscapeForDisplay(path) << " changed " << when << "\n  from "
                    << text << "\n  to   " << now->second;
  }
  for (const auto& [path, text] : after)
    if (!before.contains(path))
      ADD_FAILURE() << EscapeForDisplay(path) << " appeared " << when;
}

}  // namespace

GitWorld::GitWorld() : git_(FindGitProgram()) { MakeDir("home"); }

GitWorld::~GitWorld() { Check("by the end of the test"); }

GitUserConfig GitWorld::user() const {
  GitUserConfig user;
  user.home = (dir_ / "home").bytes();
  user.no_system = true;
  return user;
}

void GitWorld::Check(const char* when) { Compare(expected_, Fingerprint(), when); }

template <class F>
auto GitWorld::Change(F change) {
  Check("and git did not do it");
  struct Renew {
    GitWorld& world;
    ~Renew() { world.expected_ = world.Fingerprint(); }
  } renew{*this};
  return change();
}

std::map<std::string, std::string> GitWorld::Fingerprint() {
  std::map<std::string, std::string> out;
  Collect(fs_, Must(fs_.OpenDir(path())), "", false, out);
  return out;
}

ProcessResult GitWorld::TryGit(std::string_view dir,
                               const std::vector<std::string>& arguments,
                               std::string_view input) {
  ProcessOptions options{.program = git_};
  options.directory = dir.empty() ? path() : *this / dir;
  options.arguments = {"-c", "protocol.file.allow=always", "-c", "gc.auto=0"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.input = input;
  options.timeout_ms = 120'000;
  options.output_cap = size_t{1} << 30;
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin",
                         "HOME=" + (dir_ / "home").bytes(),
                         "LC_ALL=C",
                         "GIT_CONFIG_NOSYSTEM=1",
                         "GIT_TERMINAL_PROMPT=0",
                         "GIT_CEILING_DIRECTORIES=" + path().parent().bytes(),
                         "GIT_AUTHOR_NAME=A",
                         "GIT_AUTHOR_EMAIL=a@example.com",
                         "GIT_AUTHOR_DATE=1700000000 +0000",
                         "GIT_COMMITTER_NAME=C",
                         "GIT_COMMITTER_EMAIL=c@example.com",
                         "GIT_COMMITTER_DATE=1700000000 +0000"};
  options.environment.insert(options.environment.end(), variables_.begin(),
                             variables_.end());
  return Change([&] { return Must(RunProcess(options)); });
}

std::string GitWorld::Git(std::string_view dir,
                          const std::vector<std::string>& arguments,
                          std::string_view input) {
  ProcessResult result = TryGit(dir, arguments, input);
  if (!result.ok()) {
    std::string text = "git";
    for (const std::string& argument : arguments) text += " " + argument;
    CheckFailed((text + ": " + result.errors).c_str(), __FILE__, __LINE__);
  }
  return result.output;
}

void GitWorld::Init(std::string_view dir, const std::vector<std::string>& more) {
  MakeDir(dir);
  std::vector<std::string> arguments = {"-c", "init.defaultBranch=main", "init", "-q"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Git(dir, arguments);
}

std::vector<std::string> GitWorld::ListFiles(std::string_view dir) {
  std::string output = Git(dir, {"ls-files", "-z"});
  std::vector<std::string> names;
  for (size_t at = 0; at < output.size();) {
    size_t end = output.find('\0', at);
    names.push_back(output.substr(at, end - at));
    at = end + 1;
  }
  // An unmerged path is listed once for each stage.
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

void GitWorld::MakeDir(std::string_view path) {
  Change([&] { return Must(MakeDirs(fs_, *this / path, 0755)); });
}

void GitWorld::Write(std::string_view path, std::string_view content, uint32_t mode) {
  Change([&] {
    AbsPath file = *this / path;
    Fd dir = Must(MakeDirs(fs_, file.parent(), 0755));
    return Must(PutFile(fs_, dir, P(path).basename(), content, mode));
  });
}

void GitWorld::Symlink(std::string_view path, std::string_view target) {
  Change([&] {
    Fd dir = Must(MakeDirs(fs_, (*this / path).parent(), 0755));
    return Must(fs_.Symlink(dir, P(path).basename(), target));
  });
}

void GitWorld::MakeFifo(std::string_view path) {
  Change([&] {
    Must(MakeDirs(fs_, (*this / path).parent(), 0755));
    return mkfifo((*this / path).c_str(), 0644);
  });
}

void GitWorld::Remove(std::string_view path) {
  Change([&] {
    Fd dir = Must(fs_.OpenDir((*this / path).parent()));
    return Must(RemoveTree(fs_, dir, P(path).basename()));
  });
}

std::string GitWorld::Read(std::string_view path) {
  return Must(GetFile(fs_, Must(fs_.OpenDir(this->path())), P(path)));
}

std::map<std::string, std::string> GitWorld::Status() {
  // Without the optional lock status writes nothing.
  std::vector<std::string> tops;
  for (const auto& [file, text] : expected_) {
    if (file == ".git" || file == ".git/") tops.push_back("");
    if (file.ends_with("/.git") || file.ends_with("/.git/"))
      tops.push_back(file.substr(0, file.rfind("/.git")));
  }
  std::map<std::string, std::string> out;
  for (const std::string& top : tops) {
    ProcessResult result = TryGit(
        top, {"--no-optional-locks", "status", "--porcelain=v2", "--ignored", "-z"});
    out[top] = result.output + result.errors;
  }
  return out;
}

void GitWorld::Around(const std::function<void()>& what) {
  std::map<std::string, std::string> status = Status();
  what();
  Check("by what Belay did");
  Compare(status, Status(), "in the words of git status");
}

}  // namespace belay::test
