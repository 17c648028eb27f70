#include "support/fs_world.h"

namespace belay::test {

std::string FsKindName(FsKind kind) {
  switch (kind) {
    case FsKind::kReal:
      return "RealFs";
    case FsKind::kRealWalk:
      return "RealFsWalk";
    case FsKind::kMem:
      return "MemFs";
    case FsKind::kFaultReal:
      return "FaultFsOverRealFs";
    case FsKind::kFaultMem:
      return "FaultFsOverMemFs";
  }
  return "?";
}

FsWorld::FsWorld(FsKind kind) {
  if (kind == FsKind::kMem || kind == FsKind::kFaultMem) {
    mem_ = std::make_unique<MemFs>();
    fs_ = mem_.get();
    Must(MakeDirs(*mem_, path_, 0755));
  } else {
    temp_ = std::make_unique<TempDir>();
    real_ = std::make_unique<RealFs>(
        RealFs::Options{.use_openat2 = kind != FsKind::kRealWalk});
    fs_ = real_.get();
    path_ = temp_->path();
  }
  if (kind == FsKind::kFaultReal || kind == FsKind::kFaultMem) {
    fault_ = std::make_unique<FaultFs>(*fs_);
    fs_ = fault_.get();
  }
}

Status PutFile(Fs& fs, const Fd& root, const RelPath& path, std::string_view content,
               uint32_t mode) {
  OpenMode how{.access = OpenMode::Access::kReadWrite,
               .create = true,
               .truncate = true,
               .mode = mode};
  BELAY_TRY(Fd file, fs.OpenBeneath(root, path, how));
  BELAY_OK(WriteFull(fs, file, 0, AsBytes(content)));
  return file.Close();
}

Result<std::string> GetFile(Fs& fs, const Fd& root, const RelPath& path) {
  BELAY_TRY(Parent parent, OpenParent(fs, root, path));
  BELAY_TRY(Bytes bytes, ReadSmallFile(fs, parent.dir, parent.name, 16u << 20));
  return std::string(AsText(bytes));
}

}  // namespace belay::test
