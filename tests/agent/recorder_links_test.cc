// Edits through symlinks: what changes is named, too, and not only the link.

#include <gtest/gtest.h>

#include "agent/recorder_world.h"

namespace belay::test {
namespace {

class RecorderLinksTest : public RecorderWorld {
 protected:
  RecorderLinksTest() {
    Put("AGENTS.md", "old");
    Put("src/main.cc", "old");
  }
  void Link(const std::string& name, const std::string& target) {
    Must(disk_.Symlink(Must(world_.Dir()), Name::Literal(name), target));
  }
  // The tool is told one path and changes another.
  void Edit(const std::string& named, const std::string& changes,
            const std::string& text) {
    Pre("s", "t-" + text, {named});
    Put(changes, text);
    Put("person-" + text, text);
    Post("s", "t-" + text, {named});
  }
};

// Mutant: a-link-leads-nowhere.
TEST_F(RecorderLinksTest, WhatIsWrittenThroughALinkIsTheCalls) {
  Link("CLAUDE.md", "AGENTS.md");
  Link("lsrc", "src");
  Link("twice", "lsrc");
  Link("abroad", "../project/src");
  Start("s");
  Prompt("s", "p");
  Edit("CLAUDE.md", "AGENTS.md", "1");
  EXPECT_EQ(last_.description, "after Write CLAUDE.md");
  EXPECT_EQ(Authors(), "AGENTS.md=s/t-1 person-1=outside");
  Edit("lsrc/main.cc", "src/main.cc", "22");
  EXPECT_EQ(last_.description, "after Write lsrc/main.cc");
  Edit("twice/new/one.cc", "src/new/one.cc", "333");
  Edit("abroad/main.cc", "src/main.cc", "4444");
  EXPECT_EQ(Authors(),
            "AGENTS.md=s/t-1 person-1=outside person-22=outside src/main.cc=s/t-22 "
            "person-333=outside src/new/one.cc=s/t-333 "
            "person-4444=outside src/main.cc=s/t-4444");
}

// Some tools write a new file and rename it: then the link itself changes.
TEST_F(RecorderLinksTest, ALinkThatIsReplacedIsTheCalls) {
  Put("src/other.md", "old");
  Link("lsrc", "src");
  Must(disk_.Symlink(Must(disk_.OpenDir(world_.project.Join(P("src")))),
                     Name::Literal("link.md"), "other.md"));
  Start("s");
  Pre("s", "t", {"lsrc/link.md"});
  Must(disk_.Unlink(Must(disk_.OpenDir(world_.project.Join(P("src")))),
                    Name::Literal("link.md")));
  Put("src/link.md", "a file");
  Post("s", "t", {"lsrc/link.md"});
  EXPECT_EQ(Authors(), "src/link.md=s/t");
}

// Mutant: links-are-followed-once.
TEST_F(RecorderLinksTest, WhatALinkLedToOnlyAfterwardsIsTheCalls) {
  Link("dangling", "made.txt");
  Start("s");
  Edit("dangling", "made.txt", "1");
  EXPECT_EQ(Authors(), "made.txt=s/t-1 person-1=outside");
}

TEST_F(RecorderLinksTest, LinksThatLeadNowhereOrOutOfItNameNothingElse) {
  Link("loop", "loop");
  Link("a", "b");
  Link("b", "a");
  Link("out", "/elsewhere/file");
  Link("up", "..");
  Start("s");
  for (const char* named : {"loop", "a", "b", "out", "up", "up/file", "loop/below"})
    Edit(named, "x", std::string(named).substr(0, 1) + std::to_string(Count()));
  EXPECT_EQ(Authors().find("s/"), std::string::npos) << Authors();
}

}  // namespace
}  // namespace belay::test
