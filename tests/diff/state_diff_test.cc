#include "diff/state_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mem_fs.h"
#include "diff/diff_json.h"
#include "diff/patch.h"
#include "support/fs_world.h"
#include "support/store_fixture.h"

namespace belay::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class StateDiffTest : public ::testing::Test {
 protected:
  StateDiffTest() : world_(disk_) {
    store_ = Must(world_.Open());
    lists_.secret_patterns = {".env"};
  }

  // A state that holds these files.
  StateView State(const Files& files) {
    auto writer = Must(store_->Begin());
    ObjectId id = Must(PutFiles(*writer, files));
    LogRecord record;
    record.kind = RecordKind::kCheckpoint;
    record.id = RecordId(world_.random.NewId());
    record.refs = {{ObjectType::kState, id}};
    writer->Add(record);
    Must(writer->Commit());
    return Must(LoadState(*store_, id));
  }
  DiffSide Side(const StateView& view, bool partial = false) {
    return SideOfState(*store_, view, partial, lists_);
  }
  StateDiff Diff(const DiffSide& from, const DiffSide& to,
                 std::vector<std::string> paths = {}, bool renames = true) {
    Selection selection(std::move(paths));
    return Must(DiffStates(from, to, selection, {.renames = renames}));
  }
  // "status path", "renamed old path".
  static std::vector<std::string> Lines(const StateDiff& diff) {
    std::vector<std::string> out;
    for (const PathDiff& path : diff.paths)
      out.push_back(std::string(DiffStatusName(path.status)) + " " +
                    (path.old_path.empty() ? "" : path.old_path + " ") + path.path);
    return out;
  }
  static std::string Shown(const DiffSide& from, const DiffSide& to, StateDiff diff) {
    std::string out;
    PatchWriter writer([&](PatchLine, std::string_view line) {
      out += line;
      out += '\n';
    });
    DiffJson as_json(DiffDetail::kHunks);
    JsonWriter json;
    json.BeginArray();
    for (PathDiff& path : diff.paths) {
      const FileDiff file = LoadFileDiff(from, to, path, {});
      writer.Write(path, file);
      as_json.Write(path, file, json);
    }
    json.EndArray();
    return out + json.Take();
  }

  MemFs disk_;
  World world_;
  std::unique_ptr<Store> store_;
  RuleLists lists_;
};

std::string Long(std::string_view word) {
  std::string out;
  for (int i = 0; i < 50; ++i) out += std::string(word) + std::to_string(i) + "\n";
  return out;
}

TEST_F(StateDiffTest, NamesWhatDiffers) {
  const StateView a = State({{"a", "1"}, {"b", "1"}, {"d/e", "1"}, {"x", "same"}});
  const StateView b = State({{"b", "2"}, {"c", "3"}, {"d/e", "4"}, {"x", "same"}});
  const auto from = Side(a), to = Side(b);
  EXPECT_THAT(Lines(Diff(from, to)),
              ElementsAre("deleted a", "modified b", "added c", "modified d/e"));
  EXPECT_THAT(Lines(Diff(from, to, {"d"})), ElementsAre("modified d/e"));
  EXPECT_THAT(Lines(Diff(from, to, {"x"})), ElementsAre());
  Selection none({"nothing"});
  EXPECT_EQ(DiffStates(from, to, none, {}).error().code, Errc::kInvalid);
}

TEST_F(StateDiffTest, ReadsOnlyWhatDiffers) {
  Files files;
  for (int i = 0; i < 400; ++i)
    files["d" + std::to_string(i / 10) + "/f" + std::to_string(i)] = std::to_string(i);
  const StateView a = State(files);
  files["d7/f70"] = "changed";
  const StateView b = State(files);
  auto from = Side(a), to = Side(b);
  size_t trees = 0, contents = 0;
  for (DiffSide* side : {&from, &to}) {
    side->trees = [&, read = side->trees](const ObjectId& id) {
      ++trees;
      return read(id);
    };
    side->content = [&, read = side->content](const std::string& path,
                                              const TreeEntry& e, uint64_t limit) {
      ++contents;
      return read(path, e, limit);
    };
  }
  auto diff = Diff(from, to);
  EXPECT_THAT(Lines(diff), ElementsAre("modified d7/f70"));
  EXPECT_EQ(trees, 4u);
  EXPECT_EQ(contents, 0u);
  (void)Shown(from, to, std::move(diff));
  EXPECT_EQ(contents, 2u);
}

TEST_F(StateDiffTest, FindsRenames) {
  const StateView a = State({{"old", Long("one ")},
                             {"lib/same.h", Long("two ")},
                             {"gone", Long("three ")},
                             {"empty", ""}});
  std::string edited = Long("one ");
  edited += "and more\n";
  std::string other = Long("three ");
  other.replace(0, other.size() * 2 / 3, "something else altogether\n");
  const StateView b = State(
      {{"new", edited}, {"src/same.h", Long("two ")}, {"came", other}, {"void", ""}});
  const auto from = Side(a), to = Side(b);
  const auto diff = Diff(from, to);
  EXPECT_THAT(Lines(diff), ElementsAre("added came", "deleted empty", "deleted gone",
                                       "renamed old new",
                                       "renamed lib/same.h src/same.h", "added void"));
  EXPECT_EQ(diff.paths[4].similarity, 100u);
  EXPECT_GE(diff.paths[3].similarity, 90u);
  EXPECT_LT(diff.paths[3].similarity, 100u);
  EXPECT_THAT(Lines(Diff(from, to, {"lib", "src"}, false)),
              ElementsAre("deleted lib/same.h", "added src/same.h"));
}

TEST_F(StateDiffTest, TooManyToPairAreSaidAndExactOnesFound) {
  Files before, after;
  for (int i = 0; i < 1100; ++i) {
    before["a/" + std::to_string(i)] = Long("a" + std::to_string(i) + " ");
    after["b/x" + std::to_string(i)] = Long("b" + std::to_string(i) + " ");
  }
  before["moved"] = after["here"] = Long("moved ");
  const StateView a = State(before), b = State(after);
  const auto from = Side(a), to = Side(b);
  const auto diff = Diff(from, to);
  EXPECT_TRUE(diff.renames_cut_short);
  EXPECT_THAT(Lines(diff), ::testing::Contains("renamed moved here"));
}

TEST_F(StateDiffTest, ShowsNothingOfASecret) {
  const StateView a = State({{".env", "hunter1\n"}, {"d/.env", "hunter2\n"}});
  const StateView b = State({{".env", "hunter3\n"}, {"d/.env.bak", "hunter2\nmore\n"}});
  lists_.secret_patterns = {".env", ".env.*"};
  const auto from = Side(a), to = Side(b);
  const auto diff = Diff(from, to);
  for (const PathDiff& path : diff.paths) EXPECT_TRUE(path.secret) << path.path;
  const std::string shown = Shown(from, to, diff);
  EXPECT_THAT(shown, Not(HasSubstr("hunter")));
  EXPECT_THAT(shown, HasSubstr(Sha256::Of(AsBytes("hunter3\n")).hex()));
}

TEST_F(StateDiffTest, WhatAPartialCheckpointLacksIsNotDeleted) {
  const StateView a = State({{"a", "1"}, {"b", "1"}});
  const StateView b = State({{"b", "2"}});
  const auto whole = Side(a), part = Side(b, true);
  EXPECT_THAT(Lines(Diff(whole, part)), ElementsAre("unknown a", "modified b"));
  EXPECT_THAT(Lines(Diff(part, whole)), ElementsAre("unknown a", "modified b"));
  EXPECT_THAT(Shown(whole, part, Diff(whole, part)), HasSubstr("partial checkpoint"));
}

TEST_F(StateDiffTest, OfALongBinaryFileTheBeginningIsRead) {
  std::string text(3 << 20, 'x');
  text[100] = '\0';
  const StateView a = State({{"b", text}, {"t", std::string(3 << 20, '.')}});
  text[2 << 20] = 'y';
  const StateView b = State({{"b", text}, {"t", std::string(3 << 20, ',')}});
  auto from = Side(a), to = Side(b);
  std::vector<std::string> whole;
  for (DiffSide* side : {&from, &to})
    side->content = [&whole, read = side->content](const std::string& path,
                                                   const TreeEntry& e, uint64_t limit) {
      whole.push_back(path);
      return read(path, e, limit);
    };
  auto diff = Diff(from, to);
  EXPECT_THAT(Shown(from, to, std::move(diff)),
              HasSubstr("Binary files a/b and b/b differ\n"));
  EXPECT_THAT(whole, ElementsAre("t", "t"));
}

TEST_F(StateDiffTest, BinaryFilesAreMarked) {
  const StateView a = State({{"b", std::string("a\0b", 3)}, {"e", ""}});
  const StateView b = State({{"b", std::string("a\0c", 3)}, {"e", "text\n"}});
  const auto from = Side(a), to = Side(b);
  const std::string shown = Shown(from, to, Diff(from, to));
  EXPECT_THAT(shown, HasSubstr("Binary files a/b and b/b differ\n"));
  EXPECT_THAT(shown, Not(HasSubstr("--- a/b\n")));
}

TEST_F(StateDiffTest, WhatCannotBeReadIsSaid) {
  const StateView a = State({{"x", "1"}, {"y", "1"}});
  const StateView b = State({{"x", "2"}, {"y", "2"}});
  auto from = Side(a);
  const auto to = Side(b);
  from.content = [](const std::string&, const TreeEntry&, uint64_t) -> Result<Bytes> {
    return Error(Errc::kCorrupt, "damaged");
  };
  auto diff = Diff(from, to);
  const FileDiff file = LoadFileDiff(from, to, diff.paths[0], {});
  ASSERT_TRUE(file.trouble.has_value());
  EXPECT_EQ(file.trouble->code, Errc::kCorrupt);
  EXPECT_THAT(Shown(from, to, diff), HasSubstr("# x cannot be shown: damaged\n"));
}

// A file in the place of a directory comes after what was in it, the other way before.
TEST_F(StateDiffTest, IsInAnOrderInWhichItCanBeApplied) {
  const StateView a = State({{"d/x", "1"}, {"d/y/z", "1"}, {"f", "1"}});
  const StateView b = State({{"d", "2"}, {"f/g", "3"}});
  const auto from = Side(a), to = Side(b);
  EXPECT_THAT(
      Lines(Diff(from, to, {}, false)),
      ElementsAre("deleted d/x", "deleted d/y/z", "added d", "deleted f", "added f/g"));
}

}  // namespace
}  // namespace belay::test
