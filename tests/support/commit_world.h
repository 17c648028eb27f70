#pragma once

// A project that is a git repository with a store beside it, for tests of checkpoints
// as commits.

#include "commits/export_commit.h"
#include "commits/import_commit.h"
#include "support/git_project.h"

namespace belay::test {

class CommitTest : public GitProjectTest {
 protected:
  CommitTest()
      : GitProjectTest(
            "git init -q -b main .; echo one >a; echo two >b; git add .\n"
            "git commit -qm first") {}
  std::string Git(std::vector<std::string> words) {
    return Said(world_.project, std::move(words));
  }
  std::string Refs() {
    return Git({"for-each-ref", "--format=%(objectname) %(refname)"});
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

  std::function<void()> before_ref_ = {};
};

}  // namespace belay::test
