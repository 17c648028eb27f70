#pragma once

// A project in a real git repository, with something staged, something not, and
// something new; checkpoints by name and rollbacks of it.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "scan/sink.h"
#include "support/git_project.h"

namespace belay::test {

class GitRollbackTest : public GitProjectTest {
 protected:
  GitRollbackTest()
      : GitProjectTest(
            "git init -q -b main .; echo one >a; echo two >b; git add .\n"
            "git commit -qm first; git branch other\n"
            "echo staged >>a; git add a; echo unstaged >>a; echo new >new") {}
  std::string Head() { return Said(world_.project, {"rev-parse", "HEAD"}); }
  std::string Look() {
    auto seen = See(world_.project);
    return seen.ok() ? *seen : seen.error().what;
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
  // What becomes of git on the way from `now`, by its record, back to `start`.
  Result<GitPlans> PlanBack(const Captured& now, const Captured& start) {
    BELAY_TRY(auto opened, world_.Open());
    HashSink sink;
    const GitPlaces places;
    const GitPlanInput input{.store = *opened.store,
                             .root = world_.project,
                             .now = now.scan,
                             .is = now.git,
                             .target = start.git,
                             .sink = sink,
                             .places = places,
                             .operation = RecordId(opened.store->random().NewId()),
                             .what = "rollback"};
    return PlanGit(input, {});
  }
};

}  // namespace belay::test
