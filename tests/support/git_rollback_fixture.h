#pragma once

// A project in a real git repository, with something staged, something not, and
// something new; checkpoints by name and rollbacks of it.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/real_fs.h"
#include "support/git_shell.h"
#include "support/restore_world.h"
#include "support/temp_dir.h"

namespace belay::test {

class GitRollbackTest : public ::testing::Test {
 protected:
  GitRollbackTest() : world_(fs_, temp_.path(), 1, getuid()) {
    Do("git init -q -b main .; echo one >a; echo two >b; git add .\n"
       "git commit -qm first; git branch other\n"
       "echo staged >>a; git add a; echo unstaged >>a; echo new >new",
       temp_ / "project");
  }
  void Do(const std::string& text, const AbsPath& dir) {
    ASSERT_TRUE(MakeDirs(fs_, dir, 0755).ok());
    Status done = Shell(dir, text);
    ASSERT_TRUE(done.ok()) << done.error().what;
  }
  void Do(const std::string& text) { Do(text, world_.project); }
  std::string Head() { return Said(world_.project, {"rev-parse", "HEAD"}); }
  std::string Look() {
    auto seen = See(world_.project);
    return seen.ok() ? *seen : seen.error().what;
  }
  Captured Take(const std::string& name,
                const std::optional<std::string>& session = {}) {
    auto opened = world_.Open();
    EXPECT_TRUE(opened.ok());
    CaptureRequest request;
    request.root = opened->root;
    request.settings = &world_.settings;
    request.git.user.no_system = true;
    request.name = name;
    request.session = session;
    auto made = CaptureCheckpoint(*opened->store, request);
    EXPECT_TRUE(made.ok()) << made.error().what;
    return made.ok() ? std::move(*made) : Captured();
  }
  Result<Outcome> Back(const std::string& name, GitChoice choice = {}) {
    BELAY_TRY(auto opened, world_.Open());
    BELAY_TRY(Checkpoint target, world_.Named(opened, name));
    RollbackRequest request = world_.RequestFor(opened.root);
    request.git_choice = choice;
    return Rollback(*opened.store, request, target);
  }
  Outcome MustBack(const std::string& name, GitChoice choice = {}) {
    auto done = Back(name, choice);
    EXPECT_TRUE(done.ok()) << done.error().what;
    return done.ok() ? std::move(*done) : Outcome();
  }
  bool IsThere(const std::string& below) {
    struct stat st = {};
    return lstat((temp_ / ("project/" + below)).c_str(), &st) == 0;
  }

  RealFs fs_;
  TempDir temp_;
  RestoreWorld world_;
};

}  // namespace belay::test
