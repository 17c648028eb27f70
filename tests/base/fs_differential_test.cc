// The same random operations on RealFs and on MemFs: the same answers, the same trees.

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/tree_text.h"
#include "support/crash_harness.h"
#include "support/fs_world.h"

namespace belay::test {
namespace {

// One file system and the handles the sequence holds on it.
struct Side {
  explicit Side(FsKind kind) : world(kind), fs(world.fs()) {
    dirs.push_back(Must(fs.OpenDir(world.path())));
  }
  FsWorld world;
  Fs& fs;
  std::vector<Fd> dirs;  // [0] is the root and stays
  std::vector<Fd> files;
};

template <class T>
std::string Answer(const Result<T>& result) {
  return result.ok() ? "ok" : std::to_string(result.error().sys);
}

std::string StatText(const Result<FileStat>& stat) {
  if (!stat.ok()) return std::to_string(stat.error().sys);
  std::string text = std::to_string(static_cast<int>(stat->type)) + " mode " +
                     std::to_string(stat->mode);
  if (stat->type != FileType::kDirectory)  // a directory's size and links are its own
    text +=
        " size " + std::to_string(stat->size) + " nlink " + std::to_string(stat->nlink);
  return text;
}

constexpr size_t kMaxHandles = 6;

// A new handle takes the place of an old one, at the same position on both sides.
std::string Keep(std::vector<Fd>& handles, size_t first, uint64_t pick, Result<Fd> fd) {
  std::string answer = Answer(fd);
  if (!fd.ok()) return answer;
  if (handles.size() < kMaxHandles)
    handles.push_back(std::move(fd).value());
  else
    handles[first + pick % (handles.size() - first)] = std::move(fd).value();
  return answer;
}

// The numbers that make one operation; both sides get the same.
struct Op {
  uint64_t kind;
  uint64_t a;
  uint64_t b;
  uint64_t c;
  Name from;
  Name to;

  std::string Text() const {
    return "kind " + std::to_string(kind) + " " + from.bytes() + " " + to.bytes() +
           " " + std::to_string(a) + " " + std::to_string(b) + " " + std::to_string(c);
  }
};

std::string OnFile(Side& side, const Op& op) {
  if (side.files.empty()) return "no file";
  const Fd& file = side.files[op.a % side.files.size()];
  switch (op.kind) {
    case 20: {
      auto put = side.fs.Write(file, op.b % 3000, Bytes(op.c % 700, std::byte{'w'}));
      return put.ok() ? std::to_string(*put) : Answer(put);
    }
    case 21: {
      Bytes buffer(op.c % 900);
      auto got = side.fs.Read(file, op.b % 4000, buffer);
      return got.ok() ? std::string(AsText(ByteSpan(buffer).first(*got))) : Answer(got);
    }
    case 22:
      return Answer(side.fs.Truncate(file, op.b % 3500));
    case 23:
      return Answer(side.fs.SetMode(file, 0700 | (op.b & 077)));
    case 24:
      return StatText(side.fs.Stat(file));
    default: {
      auto locked = side.fs.TryLock(
          file, op.b % 2, op.c % 2 == 0 ? LockMode::kShared : LockMode::kExclusive);
      return locked.ok() ? (*locked ? "locked" : "held") : Answer(locked);
    }
  }
}

std::string Perform(Side& side, const Op& op) {
  const Fd& dir = side.dirs[op.a % side.dirs.size()];
  const Fd& other = side.dirs[op.b % side.dirs.size()];
  Fs& fs = side.fs;
  RelPath path = RelPath(op.from).Join(op.to);
  switch (op.kind) {
    case 0:
    case 1:
      return Answer(fs.MakeDir(dir, op.from, 0700 | (op.c & 077)));
    case 2:
    case 3:
      return Keep(side.dirs, 1, op.c, fs.Open(dir, op.from, OpenMode::Directory()));
    case 4:
      return Keep(side.dirs, 1, op.c, fs.OpenBeneath(dir, path, OpenMode::Directory()));
    case 5:
    case 6: {
      OpenMode mode{.access = op.b % 2 == 0 ? OpenMode::Access::kReadWrite
                                            : OpenMode::Access::kRead,
                    .create = true,
                    .exclusive = op.c % 3 == 0,
                    .mode = 0600};
      return Keep(side.files, 0, op.c, fs.Open(dir, op.from, mode));
    }
    case 7: {
      OpenMode mode{.access = OpenMode::Access::kWrite, .truncate = op.b % 2 == 0};
      return Keep(side.files, 0, op.c, fs.OpenBeneath(dir, path, mode));
    }
    case 8:
      return Keep(side.files, 0, op.c,
                  fs.OpenBeneath(dir, path, OpenMode::OpenOrCreate(0640)));
    case 9:
      return Answer(fs.Unlink(dir, op.from));
    case 10:
      return Answer(fs.RemoveDir(dir, op.from));
    case 11:
      return Answer(fs.Symlink(dir, op.from, op.to.bytes()));
    case 12:
      return Answer(fs.Link(dir, op.from, other, op.to));
    case 13:
    case 14:
      return Answer(fs.Rename(dir, op.from, other, op.to, RenameHow::kReplace));
    case 15:
      return Answer(fs.Rename(dir, op.from, other, op.to, RenameHow::kNoReplace));
    case 16:
      return Answer(fs.Rename(dir, op.from, other, op.to, RenameHow::kExchange));
    case 17:
      return StatText(fs.StatAt(dir, op.from));
    case 18: {
      auto target = fs.ReadLink(dir, op.from);
      return target.ok() ? *target : Answer(target);
    }
    case 19: {
      auto entries = fs.List(dir);
      return entries.ok() ? std::to_string(entries->size()) : Answer(entries);
    }
    case 26: {
      auto replaced = ReplaceFile(fs, dir, op.from, Bytes(op.c % 100, std::byte{'r'}));
      return Answer(replaced);
    }
    default:
      return OnFile(side, op);
  }
}

class FsDifferential : public testing::TestWithParam<FsKind> {};
INSTANTIATE_TEST_SUITE_P(, FsDifferential,
                         testing::Values(FsKind::kReal, FsKind::kRealWalk),
                         [](const auto& row) { return FsKindName(row.param); });

TEST_P(FsDifferential, TwoThousandRandomOperationsAgree) {
  SeededRandom random(TestSeed(20'261'115));
  const std::vector<Name> names = {N("a"), N("b"), N("c"), N("d"), N("e")};
  Side real(GetParam());
  Side mem(FsKind::kMem);
  uint64_t succeeded = 0;
  const int count = RunEverything() ? 30'000 : 2000;
  for (int i = 0; i < count; ++i) {
    Op op{random.Below(27),
          random.U64(),
          random.U64(),
          random.U64(),
          names[random.Below(names.size())],
          names[random.Below(names.size())]};
    std::string got = Perform(mem, op);
    std::string want = Perform(real, op);
    ASSERT_EQ(got, want) << "operation " << i << ": " << op.Text() << "\n"
                         << Must(TreeText(mem.fs, mem.dirs[0]));
    if (want == "ok") ++succeeded;
    if (i % 50 == 0) {
      ASSERT_EQ(Must(TreeText(mem.fs, mem.dirs[0])),
                Must(TreeText(real.fs, real.dirs[0])))
          << "after operation " << i << ": " << op.Text();
    }
  }
  EXPECT_EQ(Must(TreeText(mem.fs, mem.dirs[0])), Must(TreeText(real.fs, real.dirs[0])));
  EXPECT_GT(succeeded, static_cast<uint64_t>(count) / 10);
}

}  // namespace
}  // namespace belay::test
