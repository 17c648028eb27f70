// Our patches against the programs that apply them. tests/diff/differential_full is the
// long form: 100,000 pairs.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/escape.h"
#include "base/subprocess.h"
#include "diff/patch.h"
#include "diff/text_maker.h"
#include "support/crash_harness.h"
#include "support/temp_dir.h"

namespace belay::test {
namespace {

void WriteFile(const AbsPath& path, std::string_view bytes) {
  std::ofstream out(path.bytes(), std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.good()) << path.bytes();
}

std::string ReadFile(const AbsPath& path) {
  std::ifstream in(path.bytes(), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TreeEntry FileEntry(std::string_view text) {
  TreeEntry entry;
  entry.kind = EntryKind::kFile;
  entry.mode = 0644;
  entry.size = text.size();
  entry.id = Sha256::Of(AsBytes(text));
  return entry;
}

// The patch from `a` to `b` of a file called `name`.
void AddPatch(const std::string& name, const std::string& a, const std::string& b,
              PatchWriter& writer) {
  PathDiff diff;
  diff.status = DiffStatus::kModified;
  diff.path = name;
  diff.before = FileEntry(a);
  diff.after = FileEntry(b);
  FileDiff file;
  file.old_bytes = ToBytes(a);
  file.new_bytes = ToBytes(b);
  file.edits = DiffLines(a, b);
  writer.Write(diff, file);
}

class Differential : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  }

  // Pairs in files of one directory, all in one patch. How many were wrong.
  size_t Round(const char* program, const std::vector<std::string>& arguments,
               TextMaker& maker, size_t count) {
    TempDir dir;
    std::vector<std::pair<std::string, std::string>> pairs;
    std::string patch;
    PatchWriter writer([&](PatchLine, std::string_view line) {
      patch += line;
      patch += '\n';
    });
    for (size_t i = 0; i < count; ++i) {
      auto [a, b] = maker.Pair();
      const std::string name = "f" + std::to_string(i);
      WriteFile(dir / name, a);
      AddPatch(name, a, b, writer);
      pairs.emplace_back(std::move(a), std::move(b));
    }
    WriteFile(dir / "p.diff", patch);
    ProcessOptions options{.program = AbsPath::Literal(program)};
    options.arguments = arguments;
    options.arguments.push_back((dir / "p.diff").bytes());
    options.environment = {"LC_ALL=C", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
                           "GIT_CEILING_DIRECTORIES=/", "PATH=/usr/bin:/bin"};
    options.directory = dir.path();
    options.timeout_ms = 120'000;
    auto result = RunProcess(options);
    EXPECT_TRUE(result.ok());
    if (!result.ok()) return 1;
    if (!patch.empty() && !result->ok()) {
      ADD_FAILURE() << program << ": " << result->errors.substr(0, 2000)
                    << result->output.substr(0, 2000);
      return 1;
    }
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
      if (ReadFile(dir / ("f" + std::to_string(i))) == pairs[i].second) continue;
      ++wrong;
      ADD_FAILURE() << program << " gives another text for\n"
                    << EscapeForDisplay(pairs[i].first.substr(0, 500)) << "\nand\n"
                    << EscapeForDisplay(pairs[i].second.substr(0, 500));
    }
    return wrong;
  }

  void Compare(const char* program, const std::vector<std::string>& arguments,
               size_t pairs) {
    if (access(program, X_OK) != 0) GTEST_SKIP() << program << " is not installed";
    const uint64_t seed = TestSeed(1);
    TextMaker maker(seed);
    constexpr size_t kBatch = 250;
    size_t done = 0, wrong = 0;
    while (done < pairs && wrong == 0) {
      wrong += Round(program, arguments, maker, kBatch);
      done += kBatch;
    }
    std::cout << done << " pairs, " << wrong << " differences\n";
  }
};

TEST_F(Differential, GitApplyGivesTheOtherSide) {
  Compare("/usr/bin/git", {"apply", "--whitespace=nowarn"},
          RunEverything() ? 100'000 : 2'500);
}

TEST_F(Differential, PatchGivesTheOtherSide) {
  Compare("/usr/bin/patch", {"-p1", "-s", "--no-backup-if-mismatch", "-i"},
          RunEverything() ? 20'000 : 500);
}

}  // namespace
}  // namespace belay::test
