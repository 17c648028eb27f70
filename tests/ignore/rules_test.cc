#include "ignore/rules.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "ignore/rule_world.h"

namespace belay::test {
namespace {

// A tree of rules, asked by path. Directories end in a slash.
struct Rules {
  RuleLists lists;
  std::map<std::string, std::string> gitignore;    // by directory, "" or "a/b/"
  std::map<std::string, std::string> belayignore;  // by directory
  WorkTreeInput top;
  std::map<std::string, WorkTreeInput> nested;  // by directory

  Rules() { lists.default_excludes = false; }

  Rules& Tracked(std::set<std::string, std::less<>> paths) {
    top.tracked = std::make_shared<TestIndex>(std::move(paths));
    return *this;
  }

  DirRules::Ptr Directory(const std::string& path) const {
    DirRules::Ptr at = DirRules::Root(std::make_shared<RuleConfig>(lists),
                                      std::make_shared<WorkTree>(top), Files(""));
    std::string dir;
    for (size_t from = 0; from < path.size();) {
      const size_t slash = path.find('/', from);
      const std::string name = path.substr(from, slash - from);
      dir += name + "/";
      auto inner = nested.find(dir);
      if (inner == nested.end())
        at = at->Enter(name, Files(dir));
      else
        at = at->EnterWorkTree(name, std::make_shared<WorkTree>(inner->second),
                               Files(dir));
      from = slash + 1;
    }
    return at;
  }

  // "+why" or "-why", the rule, and for a directory what to do with it.
  std::string Why(std::string path) const { return Text(std::move(path), true); }
  std::string Scan(std::string path) const { return Text(std::move(path), false); }

 private:
  DirFiles Files(const std::string& dir) const {
    DirFiles files;
    if (auto at = gitignore.find(dir); at != gitignore.end())
      files.gitignore = at->second;
    if (auto at = belayignore.find(dir); at != belayignore.end())
      files.belayignore = at->second;
    return files;
  }
  std::string Text(std::string path, bool explain) const {
    const bool is_dir = path.ends_with('/');
    if (is_dir) path.pop_back();
    const size_t slash = path.rfind('/');
    const std::string dir = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    const std::string name = path.substr(dir.size());
    const DirRules::Ptr rules = Directory(dir);
    const Decision d =
        explain ? rules->Explain(name, is_dir) : rules->Decide(name, is_dir);
    std::string text = d.covered ? "+" : "-";
    text += WhyName(d.why);
    if (d.rule) text += " " + RuleText(d.rule);
    if (is_dir)
      text += d.descend == Descend::kAll     ? " [all]"
              : d.descend == Descend::kNamed ? " [named]"
                                             : " [no]";
    return text;
  }
};

// --- git's layer ---------------------------------------------------------------------

TEST(Rules, NearestGitignoreDecidesFirst) {
  Rules r;
  r.gitignore[""] = "*.o\nkeep.txt\n";
  r.gitignore["sub/"] = "!*.o\n/only\n";
  r.gitignore["sub/deep/"] = "*.o\n";
  EXPECT_EQ(r.Why("a.o"), "-ignored .gitignore:1:*.o");
  EXPECT_EQ(r.Why("sub/a.o"), "+covered sub/.gitignore:1:!*.o");
  EXPECT_EQ(r.Why("sub/deep/a.o"), "-ignored sub/deep/.gitignore:1:*.o");
  EXPECT_EQ(r.Why("sub/deep/keep.txt"), "-ignored .gitignore:2:keep.txt");
  EXPECT_EQ(r.Why("sub/only"), "-ignored sub/.gitignore:2:/only");
  EXPECT_EQ(r.Why("sub/deep/only"), "+covered");
}

TEST(Rules, ThenInfoExcludeThenTheGlobalFile) {
  Rules r;
  r.gitignore[""] = "a\n";
  r.top.info_exclude = RuleBytes{".git/info/exclude", "a\nb\n!c\n/d/x\n"};
  r.top.global_excludes = RuleBytes{"/home/u/.config/git/ignore", "a\nb\nc\ne\n"};
  EXPECT_EQ(r.Why("a"), "-ignored .gitignore:1:a");
  EXPECT_EQ(r.Why("b"), "-ignored .git/info/exclude:2:b");
  EXPECT_EQ(r.Why("c"), "+covered .git/info/exclude:3:!c");
  EXPECT_EQ(r.Why("d/x"), "-ignored .git/info/exclude:4:/d/x");
  EXPECT_EQ(r.Why("d/e"), "-ignored /home/u/.config/git/ignore:4:e");
  EXPECT_EQ(r.Why("f"), "+covered");
}

TEST(Rules, BelowAnIgnoredDirectoryNothingIsBroughtBack) {
  Rules r;
  r.gitignore[""] = "out/\n!out/keep\n!keep\n";
  r.gitignore["out/"] = "!*\n";
  EXPECT_EQ(r.Why("out/"), "-ignored .gitignore:1:out/ [no]");
  EXPECT_EQ(r.Why("out/keep"), "-ignored .gitignore:1:out/");
  EXPECT_EQ(r.Why("out/a/b"), "-ignored .gitignore:1:out/");
  EXPECT_EQ(r.Why("out/a/"), "-ignored .gitignore:1:out/ [no]");
  EXPECT_EQ(r.Why("out"), "+covered");  // not a directory
}

TEST(Rules, EverythingButOneDirectoryAsDocumented) {
  Rules r;
  r.gitignore[""] = "/*\n!/foo\n/foo/*\n!/foo/bar\n";
  EXPECT_EQ(r.Why("other"), "-ignored .gitignore:1:/*");
  EXPECT_EQ(r.Why("foo/"), "+covered .gitignore:2:!/foo [all]");
  EXPECT_EQ(r.Why("foo/x"), "-ignored .gitignore:3:/foo/*");
  EXPECT_EQ(r.Why("foo/bar/"), "+covered .gitignore:4:!/foo/bar [all]");
  EXPECT_EQ(r.Why("foo/bar/x"), "+covered");
}

TEST(Rules, IgnoreCaseIsTheWorkTrees) {
  Rules r;
  r.gitignore[""] = "Build/\n";
  EXPECT_EQ(r.Why("build/"), "+covered [all]");
  r.top.ignore_case = true;
  EXPECT_EQ(r.Why("build/"), "-ignored .gitignore:1:Build/ [no]");
  r.lists.exclude = {"Mine"};
  EXPECT_EQ(r.Why("mine"), "+covered");  // our own lists are exact
}

TEST(Rules, FilesAboveTheRootCount) {
  Rules r;
  r.top.root_below_top = "p/q";
  r.top.above_root = {RuleBytes{"../../.gitignore", "*.o\n/p/q/x\n"},
                      RuleBytes{"../.gitignore", "!a.o\nq/y\n/z\n"}};
  r.top.info_exclude = RuleBytes{"../../.git/info/exclude", "/p/q/w\n"};
  r.gitignore[""] = "/v\n";
  r.Tracked({"p/q/t.o", "x"});
  EXPECT_EQ(r.Why("b.o"), "-ignored ../../.gitignore:1:*.o");
  EXPECT_EQ(r.Why("a.o"), "+covered ../.gitignore:1:!a.o");
  EXPECT_EQ(r.Why("x"), "-ignored ../../.gitignore:2:/p/q/x");
  EXPECT_EQ(r.Why("y"), "-ignored ../.gitignore:2:q/y");
  EXPECT_EQ(r.Why("z"), "+covered");
  EXPECT_EQ(r.Why("w"), "-ignored ../../.git/info/exclude:1:/p/q/w");
  EXPECT_EQ(r.Why("v"), "-ignored .gitignore:1:/v");
  EXPECT_EQ(r.Why("s/x"), "+covered");
  EXPECT_EQ(r.Why("t.o"), "+tracked");
  r.lists.exclude = {"/x2"};
  EXPECT_EQ(r.Why("x2"), "-excluded exclude:1:/x2");  // ours count from the root
}

TEST(Rules, ARootThatItsWorkTreeIgnoresIsATopOfItsOwn) {
  Rules r;
  r.top.root_below_top = "tmp/work";
  r.top.above_root = {RuleBytes{"../../.gitignore", "tmp/\n*.o\n"}, std::nullopt};
  r.top.info_exclude = RuleBytes{"info", "secret\n"};
  r.top.global_excludes = RuleBytes{"global", "/g\n*~\n"};
  r.gitignore[""] = "/mine\n";
  r.Tracked({"tmp/work/mine"});
  EXPECT_EQ(RuleText(r.Directory("")->root_ignored_by()), "../../.gitignore:1:tmp/");
  EXPECT_EQ(r.Why("a.o"), "+covered");
  EXPECT_EQ(r.Why("secret"), "+covered");
  EXPECT_EQ(r.Why("g"), "-ignored global:1:/g");
  EXPECT_EQ(r.Why("mine"), "+tracked");
  r.top.above_root[0]->bytes = "/tmp2\n";
  EXPECT_FALSE(r.Directory("")->root_ignored_by());
  EXPECT_EQ(r.Why("secret"), "-ignored info:1:secret");
}

// --- tracked -------------------------------------------------------------------------

TEST(Rules, TrackedFilesAreCoveredThoughIgnored) {
  Rules r;
  r.gitignore[""] = "*.o\nout/\n";
  r.Tracked({"a.o", "out/x/y", "plain"});
  EXPECT_EQ(r.Scan("a.o"), "+tracked");
  EXPECT_EQ(r.Scan("b.o"), "-ignored .gitignore:1:*.o");
  EXPECT_EQ(r.Scan("out/"), "-ignored .gitignore:2:out/ [named]");
  EXPECT_EQ(r.Scan("out/x/"), "-ignored .gitignore:2:out/ [named]");
  EXPECT_EQ(r.Scan("out/x/y"), "+tracked");
  EXPECT_EQ(r.Scan("out/x/z"), "-ignored .gitignore:2:out/");
  EXPECT_EQ(r.Scan("out/z/"), "-ignored .gitignore:2:out/ [no]");
  // The index is asked only when it matters; for people it is asked always.
  EXPECT_EQ(r.Scan("plain"), "+covered");
  EXPECT_EQ(r.Why("plain"), "+tracked");
}

TEST(Rules, TrackedBeatsExcludesOfEveryKind) {
  Rules r;
  r.lists.default_excludes = true;
  r.lists.exclude = {"/mine/", "*.tmp"};
  r.Tracked({"dist/a", "mine/b", "c.tmp"});
  EXPECT_EQ(r.Scan("dist/"), "-excluded default_excludes:2:dist/ [named]");
  EXPECT_EQ(r.Scan("dist/a"), "+tracked");
  EXPECT_EQ(r.Scan("dist/b"), "-excluded default_excludes:2:dist/");
  EXPECT_EQ(r.Scan("mine/"), "-excluded exclude:1:/mine/ [named]");
  EXPECT_EQ(r.Scan("mine/b"), "+tracked");
  EXPECT_EQ(r.Scan("mine/c"), "-excluded exclude:1:/mine/");
  EXPECT_EQ(r.Scan("c.tmp"), "+tracked");
}

TEST(Rules, ATrackedSubmoduleIsEnteredThoughIgnored) {
  Rules r;
  r.gitignore[""] = "lib/\n";
  r.Tracked({"lib/sub"});
  r.nested["lib/sub/"] = {};
  r.gitignore["lib/sub/"] = "*.o\n";
  EXPECT_EQ(r.Scan("lib/"), "-ignored .gitignore:1:lib/ [named]");
  EXPECT_EQ(r.Scan("lib/sub/"), "+tracked [all]");
  EXPECT_EQ(r.Scan("lib/sub/a.c"), "+covered");
  EXPECT_EQ(r.Scan("lib/sub/a.o"), "-ignored lib/sub/.gitignore:1:*.o");
  EXPECT_EQ(r.Scan("lib/other"), "-ignored .gitignore:1:lib/");
}

// --- nested work trees ---------------------------------------------------------------

TEST(Rules, ANestedWorkTreeHasItsOwnGitRulesAlone) {
  Rules r;
  r.gitignore[""] = "*.o\n";
  r.top.info_exclude = RuleBytes{"info", "x\n"};
  r.top.global_excludes = RuleBytes{"global", "*~\n"};
  r.Tracked({"in/tracked.log"});  // not its index
  r.gitignore["in/"] = "*.log\n/top\n";
  WorkTreeInput inner;
  inner.info_exclude = RuleBytes{"in/.git/info/exclude", "/y\n"};
  inner.global_excludes = RuleBytes{"global", "*~\n"};
  inner.tracked = std::make_shared<TestIndex>(
      std::set<std::string, std::less<>>{"kept.log", "d/kept.log"});
  r.nested["in/"] = inner;
  EXPECT_EQ(r.Why("in/a.o"), "+covered");
  EXPECT_EQ(r.Why("in/x"), "+covered");
  EXPECT_EQ(r.Why("in/y"), "-ignored in/.git/info/exclude:1:/y");
  EXPECT_EQ(r.Why("in/d/y"), "+covered");
  EXPECT_EQ(r.Why("in/top"), "-ignored in/.gitignore:2:/top");
  EXPECT_EQ(r.Why("in/a~"), "-ignored global:1:*~");
  EXPECT_EQ(r.Why("in/a.log"), "-ignored in/.gitignore:1:*.log");
  EXPECT_EQ(r.Why("in/tracked.log"), "-ignored in/.gitignore:1:*.log");
  EXPECT_EQ(r.Why("in/kept.log"), "+tracked");
  EXPECT_EQ(r.Why("in/d/kept.log"), "+tracked");
  EXPECT_EQ(r.Why("a.o"), "-ignored .gitignore:1:*.o");
}

TEST(Rules, OurOwnLayersGoOnInANestedWorkTree) {
  Rules r;
  r.lists.default_excludes = true;
  r.lists.exclude = {"/in/e"};
  r.lists.protect = {"/in/p.o"};
  r.lists.secret_patterns = {".env"};
  r.belayignore[""] = "*.tmp\n!/in/keep.o\n";
  r.gitignore["in/"] = "*.o\n.env\n";
  r.nested["in/"] = {};
  EXPECT_EQ(r.Why("in/node_modules/"),
            "-excluded default_excludes:1:node_modules/ [no]");
  EXPECT_EQ(r.Why("in/e"), "-excluded exclude:1:/in/e");
  EXPECT_EQ(r.Why("in/p.o"), "+protected protect:1:/in/p.o");
  EXPECT_EQ(r.Why("in/.env"), "+secret secret_patterns:1:.env");
  EXPECT_EQ(r.Why("in/a.tmp"), "-excluded .belayignore:1:*.tmp");
  EXPECT_EQ(r.Why("in/keep.o"), "+covered .belayignore:2:!/in/keep.o");
  EXPECT_EQ(r.Why("in/a.o"), "-ignored in/.gitignore:1:*.o");
}

TEST(Rules, ANestedWorkTreeThatTheOuterIgnoresIsNotEntered) {
  Rules r;
  r.gitignore[""] = "vendor/\n";
  WorkTreeInput inner;
  inner.tracked =
      std::make_shared<TestIndex>(std::set<std::string, std::less<>>{"a", "d/b"});
  r.nested["vendor/"] = inner;
  r.nested["vendor/deep/"] = inner;
  r.nested["other/"] = inner;
  EXPECT_EQ(r.Why("vendor/"), "-ignored .gitignore:1:vendor/ [no]");
  EXPECT_EQ(r.Why("vendor/a"), "-ignored .gitignore:1:vendor/");
  EXPECT_EQ(r.Why("vendor/d/"), "-ignored .gitignore:1:vendor/ [no]");
  EXPECT_EQ(r.Why("vendor/deep/a"), "-ignored .gitignore:1:vendor/");
  EXPECT_EQ(r.Why("other/a"), "+tracked");
}

TEST(Rules, BelayignoreCoversAgainstTheRulesOfANestedWorkTreeToo) {
  Rules r;
  r.gitignore[""] = "vendor/\n";
  r.belayignore[""] = "!vendor/\n";
  WorkTreeInput inner;
  inner.tracked = std::make_shared<TestIndex>(std::set<std::string, std::less<>>{"a"});
  r.nested["vendor/"] = inner;
  r.gitignore["vendor/"] = "*.o\n";
  EXPECT_EQ(r.Why("vendor/"), "+covered .belayignore:1:!vendor/ [all]");
  EXPECT_EQ(r.Why("vendor/a"), "+tracked");
  EXPECT_EQ(r.Why("vendor/x"), "+covered .belayignore:1:!vendor/");
  EXPECT_EQ(r.Why("vendor/x.o"), "+covered .belayignore:1:!vendor/");
}

// --- .belayignore, exclude, default excludes -----------------------------------------

TEST(Rules, BelayignoreNearestFirstThenExclude) {
  Rules r;
  r.lists.exclude = {"*.a", "*.b"};
  r.belayignore[""] = "!*.b\n*.c\n";
  r.belayignore["sub/"] = "!*.c\n/d\n";
  EXPECT_EQ(r.Why("x.a"), "-excluded exclude:1:*.a");
  EXPECT_EQ(r.Why("x.b"), "+covered .belayignore:1:!*.b");
  EXPECT_EQ(r.Why("x.c"), "-excluded .belayignore:2:*.c");
  EXPECT_EQ(r.Why("sub/x.c"), "+covered sub/.belayignore:1:!*.c");
  EXPECT_EQ(r.Why("sub/d"), "-excluded sub/.belayignore:2:/d");
}

TEST(Rules, BelayignoreCoversAgainstGitAndDefaults) {
  Rules r;
  r.lists.default_excludes = true;
  r.gitignore[""] = "out/\n*.gen\n";
  r.belayignore[""] = "!out/\n!dist/\n!*.gen\nout/tmp/\n";
  EXPECT_EQ(r.Why("x.gen"), "+covered .belayignore:3:!*.gen");
  EXPECT_EQ(r.Why("out/"), "+covered .belayignore:1:!out/ [all]");
  EXPECT_EQ(r.Why("out/a"), "+covered .belayignore:1:!out/");
  EXPECT_EQ(r.Why("out/d/e.log"), "+covered .belayignore:1:!out/");  // defaults too
  EXPECT_EQ(r.Why("dist/"), "+covered .belayignore:2:!dist/ [all]");
  EXPECT_EQ(r.Why("dist/x"), "+covered .belayignore:2:!dist/");
  // matched again below it
  EXPECT_EQ(r.Why("out/tmp/"), "-excluded .belayignore:4:out/tmp/ [no]");
  EXPECT_EQ(r.Why("out/tmp/x"), "-excluded .belayignore:4:out/tmp/");
}

TEST(Rules, BelayignoreBringsNothingBackFromADirectoryThatIsLeftOut) {
  Rules r;
  r.lists.default_excludes = true;
  r.lists.exclude = {"mine/"};
  r.gitignore[""] = "out/\n";
  r.belayignore[""] = "!out/keep\n!mine/keep\n!node_modules/keep\n";
  r.belayignore["out/"] = "!*\n";
  EXPECT_EQ(r.Why("out/keep"), "-ignored .gitignore:1:out/");
  EXPECT_EQ(r.Why("mine/keep"), "-excluded exclude:1:mine/");
  EXPECT_EQ(r.Why("node_modules/keep"), "-excluded default_excludes:1:node_modules/");
  EXPECT_EQ(r.Why("out/d/x"), "-ignored .gitignore:1:out/");
}

TEST(Rules, DefaultExcludesComeAfterGitsRules) {
  Rules r;
  r.lists.default_excludes = true;
  r.gitignore[""] = "*.tmp\n!build/\n!app.log\n";
  r.gitignore["node_modules/p/"] = "/gen\n";
  EXPECT_EQ(r.Why("node_modules/"), "-excluded default_excludes:1:node_modules/ [no]");
  EXPECT_EQ(r.Why("node_modules/x"), "-excluded default_excludes:1:node_modules/");
  // what git ignores is ignored, also there
  EXPECT_EQ(r.Why("node_modules/x.tmp"), "-ignored .gitignore:1:*.tmp");
  EXPECT_EQ(r.Why("node_modules/p/gen"), "-ignored node_modules/p/.gitignore:1:/gen");
  EXPECT_EQ(r.Why("node_modules/p/other"),
            "-excluded default_excludes:1:node_modules/");
  // what git's rules keep, they keep from the defaults
  EXPECT_EQ(r.Why("build/"), "+covered .gitignore:2:!build/ [all]");
  EXPECT_EQ(r.Why("build/x"), "+covered");
  EXPECT_EQ(r.Why("build/dist/"), "-excluded default_excludes:2:dist/ [no]");
  EXPECT_EQ(r.Why("app.log"), "+covered .gitignore:3:!app.log");
  EXPECT_EQ(r.Why("x.log"), "-excluded default_excludes:7:*.log");
  EXPECT_EQ(r.Why("a/b/.DS_Store"), "-excluded default_excludes:6:.DS_Store");
  EXPECT_EQ(r.Why("a/x.pyc"), "-excluded default_excludes:5:*.pyc");
  r.lists.default_excludes = false;
  EXPECT_EQ(r.Why("x.log"), "+covered");
}

TEST(Rules, ExcludeOutranksGitignoreInWhatIsSaid) {
  Rules r;
  r.gitignore[""] = "out/\n*.o\n";
  r.lists.exclude = {"*.o"};
  EXPECT_EQ(r.Why("a.o"), "-excluded exclude:1:*.o");
  EXPECT_EQ(r.Why("out/a.o"), "-excluded exclude:1:*.o");
  EXPECT_EQ(r.Why("out/a"), "-ignored .gitignore:1:out/");
}

// --- secrets -------------------------------------------------------------------------

TEST(Rules, SecretsAreCoveredThoughIgnoredOrExcluded) {
  Rules r;
  r.lists.secret_patterns = {".env", "*.pem", "!public.pem"};
  r.lists.exclude = {"*.pem"};
  r.gitignore[""] = ".env\n";
  r.Tracked({"sub/.env"});
  EXPECT_EQ(r.Why(".env"), "+secret secret_patterns:1:.env");
  EXPECT_EQ(r.Why("a.pem"), "+secret secret_patterns:2:*.pem");
  EXPECT_EQ(r.Why("public.pem"), "-excluded exclude:1:*.pem");
  EXPECT_EQ(r.Why("sub/.env"), "+secret secret_patterns:1:.env");  // tracked or not
  EXPECT_EQ(r.Why(".env/"), "-ignored .gitignore:1:.env [no]");    // files only
}

TEST(Rules, SecretsInADirectoryThatIsLeftOutAreNotCovered) {
  Rules r;
  r.lists.default_excludes = true;
  r.lists.secret_patterns = {".env"};
  r.gitignore[""] = "out/\n";
  r.Tracked({"out/t/.env"});
  EXPECT_EQ(r.Why("out/.env"), "-ignored .gitignore:1:out/");
  EXPECT_EQ(r.Why("node_modules/p/.env"), "-excluded default_excludes:1:node_modules/");
  EXPECT_EQ(r.Why("out/t/.env"), "+secret secret_patterns:1:.env");  // tracked
}

TEST(Rules, SkippedSecretsAreNotCoveredUnlessProtected) {
  Rules r;
  r.lists.skip_secrets = true;
  r.lists.secret_patterns = {".env"};
  r.lists.protect = {"/prod/.env"};
  r.gitignore[""] = "out/\n";
  r.Tracked({"t/.env"});
  EXPECT_EQ(r.Why(".env"), "-secret secret_patterns:1:.env");
  EXPECT_EQ(r.Why("t/.env"), "-secret secret_patterns:1:.env");
  EXPECT_EQ(r.Why("out/.env"), "-secret secret_patterns:1:.env");
  EXPECT_EQ(r.Why("prod/.env"), "+protected protect:1:/prod/.env");
  EXPECT_EQ(r.Why(".env/"), "+covered [all]");  // a directory is none
}

TEST(Rules, APatternOfADirectoryMakesSecretsOfWhatIsBelow) {
  Rules r;
  r.lists.secret_patterns = {".env", "vault/", "!vault/public"};
  r.gitignore[""] = "out/\ntoken\n";
  EXPECT_EQ(r.Why("vault/"), "+covered [all]");
  EXPECT_EQ(r.Why("vault/token"), "+secret secret_patterns:2:vault/");
  EXPECT_EQ(r.Why("a/vault/b/c"), "+secret secret_patterns:2:vault/");
  EXPECT_EQ(r.Why("vault/public"), "+covered");
  EXPECT_EQ(r.Why("out/vault/token"), "-ignored .gitignore:1:out/");
  EXPECT_EQ(r.Why("vault"), "+covered");   // a file
  EXPECT_EQ(r.Why(".env/x"), "+covered");  // a virtual environment, perhaps
  r.lists.skip_secrets = true;
  EXPECT_EQ(r.Why("vault/token"), "-secret secret_patterns:2:vault/");
}

TEST(Rules, AProtectedSecretIsStillKnownAsOne) {
  Rules r;
  r.lists.secret_patterns = {".env"};
  r.lists.protect = {".env"};
  const Decision d = r.Directory("")->Decide(".env", false);
  EXPECT_EQ(d.why, Why::kProtected);
  EXPECT_TRUE(d.secret);
  EXPECT_FALSE(r.Directory("")->Decide("x", false).secret);
}

// --- protect -------------------------------------------------------------------------

TEST(Rules, ProtectBeatsEverything) {
  Rules r;
  r.lists.default_excludes = true;
  r.lists.protect = {"*.db", "/data/", "!/data/tmp/", "*.log"};
  r.lists.exclude = {"*.db"};
  r.gitignore[""] = "data/\n*.db\n";
  EXPECT_EQ(r.Why("a.db"), "+protected protect:1:*.db");
  EXPECT_EQ(r.Why("data/"), "+protected protect:2:/data/ [all]");
  EXPECT_EQ(r.Why("data/x"), "+protected protect:2:/data/");
  EXPECT_EQ(r.Why("data/node_modules/"), "+protected protect:2:/data/ [all]");
  EXPECT_EQ(r.Why("data/node_modules/x"), "+protected protect:2:/data/");
  // matched again: back to the other rules
  EXPECT_EQ(r.Why("data/tmp/"), "-ignored .gitignore:1:data/ [named]");
  EXPECT_EQ(r.Why("data/tmp/x"), "-ignored .gitignore:1:data/");
  EXPECT_EQ(r.Why("data/tmp/x.db"), "+protected protect:1:*.db");
  EXPECT_EQ(r.Why("x.log"), "+protected protect:4:*.log");
}

TEST(Rules, IgnoredDirectoriesAreEnteredWhereAProtectPatternCouldMatch) {
  Rules r;
  r.gitignore[""] = "out/\nlib/\nvar/\n";
  r.lists.protect = {"out/*/keep.db", "/lib/**/x"};
  EXPECT_EQ(r.Scan("out/"), "-ignored .gitignore:1:out/ [named]");
  EXPECT_EQ(r.Scan("out/a/"), "-ignored .gitignore:1:out/ [named]");
  EXPECT_EQ(r.Scan("out/a/b/"), "-ignored .gitignore:1:out/ [no]");
  EXPECT_EQ(r.Scan("out/a/keep.db"), "+protected protect:1:out/*/keep.db");
  EXPECT_EQ(r.Scan("out/a/other"), "-ignored .gitignore:1:out/");
  EXPECT_EQ(r.Scan("lib/a/b/"), "-ignored .gitignore:2:lib/ [named]");
  EXPECT_EQ(r.Scan("lib/a/x/"), "+protected protect:2:/lib/**/x [all]");
  EXPECT_EQ(r.Scan("lib/a/x/y"), "+protected protect:2:/lib/**/x");
  EXPECT_EQ(r.Scan("var/"), "-ignored .gitignore:3:var/ [no]");
  r.lists.protect = {"keep.db"};  // anywhere
  EXPECT_EQ(r.Scan("var/"), "-ignored .gitignore:3:var/ [named]");
  EXPECT_EQ(r.Scan("var/a/"), "-ignored .gitignore:3:var/ [named]");
}

// --- .git ----------------------------------------------------------------------------

TEST(Rules, TheGitDirectoryIsNeverCovered) {
  Rules r;
  r.lists.protect = {"*", ".git"};
  r.Tracked({".git"});
  EXPECT_EQ(r.Why(".git/"), "-git_dir [no]");
  EXPECT_EQ(r.Why(".git"), "-git_dir");
  EXPECT_EQ(r.Why("a/.git/"), "-git_dir [no]");
  EXPECT_EQ(r.Why("a/.git/hooks/x"), "-git_dir");
  EXPECT_EQ(r.Why(".gitignore"), "+protected protect:1:*");
}

// --- the rest ------------------------------------------------------------------------

TEST(Rules, PathsAreBytesOfAnyLength) {
  Rules r;
  r.gitignore[""] = "/" + std::string(300, 'd') + "/**/x\xff\n";
  std::string dir = std::string(300, 'd') + "/";
  for (int i = 0; i < 200; ++i) dir += std::string(100, 'e') + "/";
  EXPECT_EQ(r.Why(dir + "x\xff").substr(0, 8), "-ignored");
  EXPECT_EQ(r.Why(dir + "x\xfe"), "+covered");
}

// 20,000 directories in each other: whole paths would take 400 MB, and destroying them
// from within each other more stack than there is.
void GoDeep() {
  Rules r;
  r.gitignore[""] = "/d/**/x\n*.o\nd/d/y\n";
  DirRules::Ptr at = r.Directory("");
  for (int depth = 0; depth < 20'000; ++depth) at = at->Enter("d", {});
  EXPECT_FALSE(at->Decide("x", false).covered);
  EXPECT_TRUE(at->Decide("y", false).covered);
  EXPECT_FALSE(at->Decide("y.o", false).covered);
  EXPECT_EQ(at->Path().size(), 39'999u);
  EXPECT_EQ(at->Path().substr(39'990), "d/d/d/d/d");
}

TEST(Rules, AChainOfManyDirectoriesTakesNeitherTheStackNorMuchMemory) {
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, 512 << 10), 0);
  pthread_t thread;
  auto run = [](void*) -> void* {
    GoDeep();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &small, run, nullptr), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(pthread_attr_destroy(&small), 0);
}

TEST(Rules, TellsWhereItIsAndWhatWentIn) {
  Rules r;
  r.gitignore["a/"] = "x\n";
  r.belayignore["a/"] = "y\n";
  r.top.global_excludes = RuleBytes{"global", "z\n"};
  const DirRules::Ptr dir = r.Directory("a/");
  EXPECT_EQ(dir->Path(), "a");
  EXPECT_EQ(r.Directory("")->Path(), "");
  EXPECT_EQ(r.Directory("a/b/")->Path(), "a/b");
  EXPECT_EQ(dir->gitignore()->bytes(), "x\n");
  EXPECT_EQ(dir->belayignore()->bytes(), "y\n");
  EXPECT_EQ(dir->belayignore()->name(), "a/.belayignore");
  EXPECT_EQ(r.Directory("")->gitignore(), nullptr);
  EXPECT_EQ(dir->work_tree().global_excludes()->bytes(), "z\n");
  EXPECT_EQ(dir->work_tree().info_exclude(), nullptr);
  EXPECT_FALSE(dir->barred());
}

TEST(Rules, TwoThreadsAskAndEnterAtOnce) {
  Rules r;
  r.gitignore[""] = "*.o\na/*/c\n";
  r.lists.protect = {"/p/*/q"};
  DirRules::Ptr root = r.Directory("");
  auto work = [&] {
    for (int i = 0; i < 2000; ++i) {
      DirRules::Ptr a = root->Enter("a", {});
      DirRules::Ptr b = a->Enter("b" + std::to_string(i), {.gitignore = "!*.o\n"});
      a = nullptr;
      BELAY_CHECK(b->Decide("x.o", false).covered);
      BELAY_CHECK(!b->Decide("c", false).covered);
      BELAY_CHECK(!root->Decide("x.o", false).covered);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace
}  // namespace belay::test
