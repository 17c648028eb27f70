#pragma once

// A project that is a git repository with a store beside it, for tests of checkpoints
// as commits.

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/real_fs.h"
#include "commits/export_commit.h"
#include "commits/import_commit.h"
#include "support/git_shell.h"
#include "support/restore_world.h"
#include "support/temp_dir.h"

namespace belay::test {

class CommitTest : public ::testing::Test {
 protected:
  CommitTest() : world_(fs_, temp_.path(), 1, getuid()) {
    Do("git init -q -b main .; echo one >a; echo two >b; git add .\n"
       "git commit -qm first",
       temp_ / "project");
  }
  void Do(const std::string& text, const AbsPath& dir) {
    ASSERT_TRUE(MakeDirs(fs_, dir, 0755).ok());
    Status done = Shell(dir, text);
    ASSERT_TRUE(done.ok()) << done.error().what;
  }
  void Do(const std::string& text) { Do(text, world_.project); }
  std::string Git(std::vector<std::string> words) {
    return Said(world_.project, std::move(words));
  }
  std::string Refs() {
    return Git({"for-each-ref", "--format=%(objectname) %(refname)"});
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
  GitPlaces Places() {
    GitPlaces places;
    places.user.no_system = true;
    return places;
  }
  GitRepository Repository() {
    auto found = FindWorkTree(fs_, world_.project, Places().user);
    if (!found.ok() || !*found) CheckFailed("no repository", __FILE__, __LINE__);
    return **found;
  }
  Result<ExportedCommit> Export(const Captured& made, const std::string& ref) {
    BELAY_TRY(auto opened, world_.Open());
    ExportCommitRequest request;
    request.entry.checkpoint = made.checkpoint;
    request.ref = ref;
    request.secret_patterns = world_.settings.secret_patterns;
    request.places = Places();
    if (before_ref_)
      request.progress = [&](uint64_t, uint64_t) {
        before_ref_();
        return Ok();
      };
    return ExportCommit(*opened.store, Repository(), request);
  }
  Result<ImportedCommit> Import(const std::string& revision) {
    BELAY_TRY(auto opened, world_.Open());
    ImportCommitRequest request;
    request.root = opened.root;
    request.settings = &world_.settings;
    request.places = Places();
    request.revision = revision;
    return ImportCommit(*opened.store, Repository(), request);
  }

  RealFs fs_;
  TempDir temp_;
  RestoreWorld world_;
  std::function<void()> before_ref_ = {};
};

}  // namespace belay::test
