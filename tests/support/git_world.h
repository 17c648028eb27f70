#pragma once

// GitWorld: a scratch directory in which the real git makes repositories, and a guard
// that nothing but git itself changed them.
//
//   GitWorld world;
//   world.Init("repo");
//   world.Write("repo/a.txt", "one\n");
//   world.Git("repo", {"add", "."});
//   world.Around([&] { ... what Belay does ... });
//
// Guarantees
//   * Every change of a git directory below the scratch directory that did not come
//   from
//     Git(), Write() and the like is a failure of the test: contents, names, modes,
//     inodes and times of all files and directories are compared, before each such call
//     and when the world ends. A lock file that came and went shows in its directory's
//     time.
//   * Around() compares `git status` of every repository as well.
//   * git runs hardened: its own HOME, no settings of the machine, fixed names and
//   dates.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/subprocess.h"
#include "git/config.h"
#include "support/temp_dir.h"

namespace belay::test {

class GitWorld {
 public:
  GitWorld();
  ~GitWorld();
  GitWorld(const GitWorld&) = delete;
  GitWorld& operator=(const GitWorld&) = delete;

  const AbsPath& path() const { return dir_.path(); }
  AbsPath operator/(std::string_view below) const { return dir_ / below; }
  // HOME is "home" in the scratch directory; nothing of the machine.
  GitUserConfig user() const;

  // Runs git in `dir` (relative to the scratch directory, "" is itself) and gives its
  // output. It must succeed.
  std::string Git(std::string_view dir, const std::vector<std::string>& arguments,
                  std::string_view input = {});
  ProcessResult TryGit(std::string_view dir, const std::vector<std::string>& arguments,
                       std::string_view input = {});
  // `git init`, and where its defaults differ between machines, the answer.
  void Init(std::string_view dir, const std::vector<std::string>& more = {});
  // What `git ls-files -z` lists, in its order.
  std::vector<std::string> ListFiles(std::string_view dir);
  // Variables for every later git, "NAME=value".
  void AddVariable(std::string variable) { variables_.push_back(std::move(variable)); }

  // Files of the scratch directory; directories on the way are made.
  void Write(std::string_view path, std::string_view content, uint32_t mode = 0644);
  void MakeDir(std::string_view path);
  void Symlink(std::string_view path, std::string_view target);
  void MakeFifo(std::string_view path);
  void Remove(std::string_view path);  // with everything beneath it
  std::string Read(std::string_view path);

  // Does `what`, and checks that all git directories and what git says of the work
  // trees are as before.
  void Around(const std::function<void()>& what);

 private:
  std::map<std::string, std::string> Fingerprint();
  std::map<std::string, std::string> Status();
  void Check(const char* when);
  template <class F>
  auto Change(F change);

  TempDir dir_;
  RealFs fs_;
  AbsPath git_;
  std::vector<std::string> variables_;
  std::map<std::string, std::string> expected_;  // path of each file in a git directory
};

}  // namespace belay::test
