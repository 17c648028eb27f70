// What `belay why` and `belay doctor` say is what the scan does.

#include "scan/explain.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scan/tree_diff.h"
#include "support/scan_world.h"

namespace belay {
namespace {

using test::Must;
using test::ScanWorld;

// Keeps trees, so that a scan can be looked at.
class TreeSink final : public ScanSink {
 public:
  Result<ObjectId> PutContent(ByteSpan content) override {
    return inner_.PutContent(content);
  }
  Result<ObjectId> PutStream(const BatchWriter::Source& source) override {
    return inner_.PutStream(source);
  }
  Result<ObjectId> PutTree(const Tree& tree) override {
    BELAY_TRY(ObjectId id, inner_.PutTree(tree));
    trees[id] = tree;
    return id;
  }
  Result<bool> HasContent(const ObjectId&) override { return true; }
  Scan::TreeReader reader() {
    return [this](const ObjectId& id) -> Result<Tree> { return trees.at(id); };
  }
  std::map<ObjectId, Tree> trees;

 private:
  HashSink inner_;
};

class ExplainTest : public testing::Test {
 protected:
  ScanRequest& Request() {
    world_->request.rules = std::make_shared<RuleConfig>(world_->lists);
    world_->request.cache_dir = nullptr;
    return world_->request;
  }
  // "covered", "not ignored .gitignore:1:*.o".
  std::string Why(std::string_view path, bool as_directory = false) {
    auto explainer = Must(Explainer::Open(world_->disk, world_->clock, Request()));
    Explanation e = Must(explainer->Explain(path, as_directory));
    std::string text = e.covered ? "" : "not ";
    text += e.why;
    if (!e.rule.empty()) text += " " + e.rule;
    return text;
  }
  // Files and symlinks of a scan.
  std::set<std::string> Held() {
    TreeSink sink;
    auto scan =
        Must(Scan::Run(world_->disk, world_->clock, world_->random, Request(), sink));
    summary_ = scan->summary();
    std::set<std::string> held;
    Must(WalkTree(summary_.tree, "", sink.reader(),
                  [&](const std::string& path, const TreeEntry& e) {
                    if (e.kind != EntryKind::kDirectory) held.insert(path);
                    return Ok();
                  }));
    return held;
  }
  // Everything on disk that is not a directory, as it is.
  void AllFiles(const std::string& dir, std::set<std::string>& out) {
    Fd fd = dir.empty() ? Must(world_->disk.Duplicate(world_->root))
                        : Must(world_->disk.OpenBeneath(world_->root, test::P(dir),
                                                        OpenMode::Directory()));
    for (const DirEntry& e : Must(world_->disk.List(fd))) {
      const std::string path = dir.empty() ? e.name : dir + "/" + e.name;
      if (Must(world_->disk.StatAt(fd, Name::Literal(e.name))).type ==
          FileType::kDirectory)
        AllFiles(path, out);
      else
        out.insert(path);
    }
  }

  std::unique_ptr<ScanWorld> world_ = std::make_unique<ScanWorld>();
  ScanSummary summary_;
};

TEST_F(ExplainTest, NamesTheRuleOfHighestPrecedence) {
  world_->lists.protect = {"vault/"};
  world_->lists.exclude = {"*.big"};
  world_->lists.secret_patterns = {".env"};
  world_->Put(".gitignore", "*.o\n!keep.o\nout/\n");
  world_->Put(".belayignore", "*.iso\n");
  world_->Dir("node_modules");
  world_->Dir("node_modules/pkg");
  world_->Put("node_modules/pkg/.gitignore", "inner/\n");
  EXPECT_EQ(Why(""), "covered");
  EXPECT_EQ(Why("a"), "covered");
  EXPECT_EQ(Why("a.o"), "not ignored .gitignore:1:*.o");
  EXPECT_EQ(Why("keep.o"), "covered .gitignore:2:!keep.o");
  EXPECT_EQ(Why("out"), "covered");
  EXPECT_EQ(Why("out", true), "not ignored .gitignore:3:out/");
  EXPECT_EQ(Why("out/x/y"), "not ignored .gitignore:3:out/");
  EXPECT_EQ(Why("x.iso"), "not excluded .belayignore:1:*.iso");
  EXPECT_EQ(Why("x.big"), "not excluded exclude:1:*.big");
  EXPECT_EQ(Why("vault/x.o"), "protected protect:1:vault/");
  EXPECT_EQ(Why("a/.env"), "secret secret_patterns:1:.env");
  EXPECT_EQ(Why("out/.env"), "not ignored .gitignore:3:out/");
  EXPECT_EQ(Why("node_modules/pkg/x"), "not excluded default_excludes:1:node_modules/");
  EXPECT_EQ(Why("node_modules/pkg/inner/x"),
            "not ignored node_modules/pkg/.gitignore:1:inner/");
  world_->lists.skip_secrets = true;
  EXPECT_EQ(Why(".env"), "not secret secret_patterns:1:.env");
}

TEST_F(ExplainTest, ANameThatIsTooLongForAnyFileIsAnswered) {
  world_->Put(".gitignore", "x*\n");
  world_->Dir("in");
  const std::string x(300, 'x'), y(5000, 'y');
  EXPECT_EQ(Why(x), "not ignored .gitignore:1:x*");
  EXPECT_EQ(Why(y), "covered");
  EXPECT_EQ(Why(y + "/below/" + x), "not ignored .gitignore:1:x*");
  EXPECT_EQ(Why("in/" + x + "/below", true), "not ignored .gitignore:1:x*");
  EXPECT_EQ(Why("in/" + y + "/" + y), "covered");
}

TEST_F(ExplainTest, ACountIsOfWhatTheRulesCover) {
  world_->Put(".gitignore", "out/\n*.o\n");
  for (const char* dir : {"out", "src", "src/deep", ".git"}) world_->Dir(dir);
  for (const char* file : {"out/1", "src/a", "src/a.o", "src/deep/b", ".git/x", "c"})
    world_->Put(file, "");
  world_->Link("src/link", "a");
  auto explainer = Must(Explainer::Open(world_->disk, world_->clock, Request()));
  const FileCount count = Must(explainer->CountFiles(INT64_MAX));
  EXPECT_TRUE(count.complete);
  EXPECT_EQ(count.crowd.total(), Held().size());
  EXPECT_EQ(count.crowd.Largest(1),
            (std::vector<Crowd::Place>{{.path = "src", .files = 3}}));
  auto again = Must(Explainer::Open(world_->disk, world_->clock, Request()));
  EXPECT_FALSE(Must(again->CountFiles(0)).complete);
  EXPECT_EQ(Must(again->Survey(10)).crowd.Text(), count.crowd.Text());
}

TEST_F(ExplainTest, SaysWhatAPathIsWhereThatDecides) {
  world_->request.max_file_size = 4;
  world_->Put("fits", "1234");
  world_->Put("over", "12345");
  world_->Put("over.log", "12345");
  world_->Dir("d");
  world_->Link("d/link", "/p");
  world_->Dir("other");
  world_->Dir("store");
  world_->request.other_roots = {AbsPath::Literal("/p/other")};
  world_->request.store_dir = AbsPath::Literal("/p/store");
  EXPECT_EQ(Why("fits"), "covered");
  EXPECT_EQ(Why("over"), "not too_large");
  EXPECT_EQ(Why("over.log"), "not excluded default_excludes:7:*.log");
  EXPECT_EQ(Why("d/link"), "covered");
  EXPECT_EQ(Why("d/link/x"), "not outside");
  EXPECT_EQ(Why("other"), "not outside");
  EXPECT_EQ(Why("other/x"), "not outside");
  EXPECT_EQ(Why("others"), "covered");
  EXPECT_EQ(Why("store/manifest"), "not outside");
  EXPECT_EQ(Why("d/.git"), "not git_dir");
  EXPECT_EQ(Why("d/.git/config"), "not git_dir");
  EXPECT_EQ(Why("d/.GIT"), "not git_dir");
  EXPECT_EQ(Why("fits/below"), "covered") << "of a file that is in the way of nothing";
}

TEST_F(ExplainTest, SurveyAddsUpWhatIsCoveredAndWhatIsLeftOut) {
  world_->lists.secret_patterns = {".env"};
  world_->request.max_file_size = 100;
  world_->Put(".gitignore", "*.o\n");
  world_->Put("a.o", "12");
  world_->Put(".env", "x");
  world_->Put("big", std::string(101, 'x'));
  world_->Dir("node_modules");
  world_->Dir("node_modules/deep");
  world_->Put("node_modules/deep/1", "12345");
  world_->Put("node_modules/2", "12345");
  auto explainer = Must(Explainer::Open(world_->disk, world_->clock, Request()));
  CoverageSurvey survey = Must(explainer->Survey(10));
  EXPECT_EQ(survey.files, 2u);
  EXPECT_EQ(survey.bytes, 5u);
  EXPECT_EQ(survey.secrets, 1u);
  EXPECT_EQ(survey.left_files, 4u);
  EXPECT_EQ(survey.left_bytes, 113u);
  ASSERT_EQ(survey.left_out.size(), 3u);
  EXPECT_EQ(survey.left_out[0].path, "big");
  EXPECT_EQ(survey.left_out[0].why, "too_large");
  EXPECT_EQ(survey.left_out[1].path, "node_modules");
  EXPECT_EQ(survey.left_out[1].files, 2u);
  EXPECT_EQ(survey.left_out[1].bytes, 10u);
  EXPECT_EQ(survey.left_out[2].rule, ".gitignore:1:*.o");
  explainer = Must(Explainer::Open(world_->disk, world_->clock, Request()));
  EXPECT_EQ(Must(explainer->Survey(1)).left_out.size(), 1u);
}

TEST_F(ExplainTest, RandomTreesAreExplainedAsTheyAreScanned) {
  const char* const names[] = {"a",    "b.o",   "c.log", "build",        "dist", ".env",
                               "keep", "x.key", "src",   "node_modules", "d.iso"};
  const char* const patterns[] = {"*.o",   "!b.o",    "src/",  "/a",       "build",
                                  "!*",    "**/keep", "a/b*",  "!dist/",   ".env",
                                  "*.key", "d*",      "src/*", "!src/keep"};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    world_ = std::make_unique<ScanWorld>();
    SeededRandom random(seed);
    auto pick = [&](auto& from) { return from[random.Below(std::size(from))]; };
    auto list = [&] {
      std::vector<std::string> out;
      for (uint64_t i = random.Below(3); i > 0; --i) out.push_back(pick(patterns));
      return out;
    };
    world_->lists = {
        .protect = random.Below(3) == 0 ? list() : std::vector<std::string>(),
        .exclude = list(),
        .secret_patterns = {".env", "*.key"},
        .skip_secrets = random.Below(4) == 0,
        .default_excludes = random.Below(4) != 0};
    world_->request.max_file_size = 20;
    std::vector<std::string> dirs{""};
    for (int i = 0; i < 40; ++i) {
      const std::string dir = dirs[random.Below(dirs.size())];
      const std::string path = dir.empty() ? pick(names) : dir + "/" + pick(names);
      auto parent = OpenParent(world_->disk, world_->root, test::P(path));
      if (!parent.ok() || world_->disk.StatAt(parent->dir, parent->name).ok()) continue;
      switch (random.Below(8)) {
        case 0:
        case 1:
        case 2:
          world_->Dir(path);
          dirs.push_back(path);
          for (const char* file : {".gitignore", ".belayignore"}) {
            if (random.Below(4) != 0) continue;
            std::string text;
            for (const std::string& line : list()) text += line + "\n";
            world_->Put(path + "/" + file, text);
          }
          break;
        case 3:
          world_->Link(path, "a");
          break;
        default:
          world_->Put(path, std::string(random.Below(25), 'x'));
      }
    }
    const std::set<std::string> held = Held();
    std::set<std::string> all;
    AllFiles("", all);
    auto explainer = Must(Explainer::Open(world_->disk, world_->clock, Request()));
    for (const std::string& path : all) {
      const Explanation e = Must(explainer->Explain(path, false));
      ASSERT_EQ(e.covered, held.count(path) == 1)
          << path << " " << e.why << " " << e.rule;
    }
    explainer = Must(Explainer::Open(world_->disk, world_->clock, Request()));
    const CoverageSurvey survey = Must(explainer->Survey(1000));
    EXPECT_EQ(survey.files, summary_.files);
    EXPECT_EQ(survey.bytes, summary_.bytes);
    EXPECT_EQ(survey.files + survey.left_files, all.size());
  }
}

}  // namespace
}  // namespace belay
