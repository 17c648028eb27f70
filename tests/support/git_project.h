#pragma once

// A project in a real git repository with a store beside it, made by a script; scripts
// and checkpoints in it.

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/real_fs.h"
#include "support/capture_request.h"
#include "support/git_shell.h"
#include "support/restore_world.h"
#include "support/temp_dir.h"

namespace belay::test {

class GitProjectTest : public ::testing::Test {
 protected:
  explicit GitProjectTest(const std::string& begin)
      : world_(fs_, temp_.path(), 1, getuid()) {
    Do(begin, temp_ / "project");
  }
  void Do(const std::string& text, const AbsPath& dir) {
    ASSERT_TRUE(MakeDirs(fs_, dir, 0755).ok());
    Status done = Shell(dir, text);
    ASSERT_TRUE(done.ok()) << done.error().what;
  }
  void Do(const std::string& text) { Do(text, world_.project); }
  Captured Take(const std::string& name,
                const std::optional<std::string>& session = {}) {
    auto opened = world_.Open();
    EXPECT_TRUE(opened.ok());
    CaptureRequest request = CaptureRequestIn(world_, opened->root);
    request.name = name;
    request.session = session;
    auto made = CaptureCheckpoint(*opened->store, request);
    EXPECT_TRUE(made.ok()) << made.error().what;
    return made.ok() ? std::move(*made) : Captured();
  }

  RealFs fs_;
  TempDir temp_;
  RestoreWorld world_;
};

}  // namespace belay::test
