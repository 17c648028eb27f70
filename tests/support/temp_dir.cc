#include "support/temp_dir.h"

#include <cstdlib>

namespace belay::test {

namespace {

AbsPath MakeTempDir() {
  const char* env = std::getenv("TMPDIR");
  std::string pattern = env != nullptr && env[0] == '/' ? env : "/tmp";
  pattern += "/belay-test-XXXXXX";
  BELAY_CHECK(mkdtemp(pattern.data()) != nullptr);
  RealFs fs;
  auto given = AbsPath::Resolve(AbsPath::Literal("/"), pattern);
  BELAY_CHECK(given.ok());
  auto real = fs.RealPath(*given);
  BELAY_CHECK(real.ok());
  return *real;
}

// A directory we may not read or change still lets its owner change that.
Status MakeWritable(Fs& fs, const Fd& dir, const Name& name) {
  BELAY_TRY(Fd handle, fs.Open(dir, name, {.access = OpenMode::Access::kPath}));
  return fs.SetMode(handle, 0700);
}

// Empties the directory `name` of `top`. Subdirectories that are not empty move up into
// `top` under a number, so depth costs neither handles nor stack.
Status EmptyInto(Fs& fs, const Fd& top, const Name& name, uint64_t& number) {
  BELAY_OK(MakeWritable(fs, top, name));
  BELAY_TRY(Fd dir, fs.Open(top, name, OpenMode::Directory()));
  BELAY_TRY(auto entries, fs.List(dir));
  for (const DirEntry& entry : entries) {
    BELAY_TRY(Name child, Name::Parse(entry.name));
    if (fs.Unlink(dir, child).ok() || fs.RemoveDir(dir, child).ok()) continue;
    BELAY_OK(MakeWritable(fs, dir, child));
    for (;;) {
      Name moved = Name::Literal("removing-" + std::to_string(number++));
      Status renamed = fs.Rename(dir, child, top, moved, RenameHow::kNoReplace);
      if (renamed.ok()) break;
      if (renamed.error().code != Errc::kExists) return renamed;
    }
  }
  return Ok();
}

}  // namespace

Status RemoveTree(Fs& fs, const Fd& dir, const Name& name) {
  auto is_gone = [](const Status& status) {
    return status.ok() || status.error().code == Errc::kNotFound;
  };
  if (is_gone(fs.Unlink(dir, name)) || is_gone(fs.RemoveDir(dir, name))) return Ok();
  BELAY_OK(MakeWritable(fs, dir, name));
  {
    BELAY_TRY(Fd top, fs.Open(dir, name, OpenMode::Directory()));
    uint64_t number = 0;
    for (;;) {
      BELAY_TRY(auto entries, fs.List(top));
      if (entries.empty()) break;
      for (const DirEntry& entry : entries) {
        BELAY_TRY(Name child, Name::Parse(entry.name));
        if (fs.Unlink(top, child).ok() || fs.RemoveDir(top, child).ok()) continue;
        BELAY_OK(EmptyInto(fs, top, child, number));
        BELAY_OK(fs.RemoveDir(top, child));
      }
    }
  }
  return fs.RemoveDir(dir, name);
}

TempDir::TempDir() : path_(MakeTempDir()) {}

TempDir::~TempDir() {
  RealFs fs;
  auto parent = fs.OpenDir(path_.parent());
  auto name = RelPath::Parse(std::string_view(path_.bytes()).substr(1));
  if (parent.ok() && name.ok()) (void)RemoveTree(fs, *parent, name->basename());
}

AbsPath TempDir::operator/(std::string_view below) const {
  return path_.Join(RelPath::Literal(below));
}

size_t OpenDescriptors() {
  RealFs fs;
  auto dir = fs.OpenDir(AbsPath::Literal("/proc/self/fd"));
  BELAY_CHECK(dir.ok());
  auto entries = fs.List(*dir);
  BELAY_CHECK(entries.ok());
  return entries->size() - 2;  // the handle on the directory and List's own
}

}  // namespace belay::test
