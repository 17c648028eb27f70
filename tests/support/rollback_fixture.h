#pragma once

// The fixture of the tests of rollbacks, in several files.

#include "restore/journal.h"
#include "support/restore_fixture.h"

namespace belay::test {

class RollbackTest : public RestoreTest {
 protected:
  // A project on another Fs over the same disk.
  struct Through {
    Through(Fs& fs, RollbackTest& test) : world(fs, AbsPath::Literal("/m"), 99, 1000) {
      world.settings = test.world.settings;
      world.plan = test.world.plan;
      world.stop = test.world.stop;
    }
    RestoreWorld world;
  };
  // Nothing of ours is in the project or waits in the store.
  void ExpectNoTraces() {
    for (const DirEntry& entry : Must(disk.List(root)))
      EXPECT_FALSE(IsStageName(entry.name)) << entry.name;
    Fd store = Must(disk.OpenDir(AbsPath::Literal("/m/store")));
    auto journals = disk.Open(store, N("journal"), OpenMode::Directory());
    if (!journals.ok()) return;
    for (const DirEntry& entry : Must(disk.List(*journals)))
      ADD_FAILURE() << "journal/" << entry.name << " was left";
  }
  // What an agent may do in a minute: all ways of moving are used to take it back.
  void MakeMess() {
    Put("in-place", "before");
    Put("private", "secret then", 0600);
    Put("deleted", "deleted content");
    Put("dir/deep/gone", "1");
    Put("swap", "file");
    Put("moded", "same", 0640);
    Link("link", "here");
    Must(world.Capture("start"));
    start = Tree();
    Put("in-place", "edited by an agent");
    Put("private", "secret now, and longer", 0600);
    Chmod("private", 0400);
    Remove("deleted");
    Remove("dir");
    Remove("swap");
    Put("swap/in", "2");
    Put("new", "made by an agent");
    Put("newdir/new", "3");
    Chmod("moded", 0755);
    Remove("link");
    Link("link", "there");
    now = Tree();
  }
  std::string start, now;
};

}  // namespace belay::test
