// A git index of any bytes: refused, or a set in which every name is found again.

#include "base/mem_fs.h"
#include "base/sha1.h"
#include "git/index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belay;
  if (size < 1) return 0;
  uint8_t how = data[0];
  Bytes bytes(reinterpret_cast<const std::byte*>(data) + 1,
              reinterpret_cast<const std::byte*>(data) + size);
  GitHash hash = (how & 1) != 0 ? GitHash::kSha256 : GitHash::kSha1;
  // Without a checksum, so that the bytes before it are looked at.
  if ((how & 2) == 0) bytes.resize(bytes.size() + GitHashSize(hash));
  MemFs fs;
  auto dir = MakeDirs(fs, AbsPath::Literal("/g"), 0755);
  BELAY_CHECK(dir.ok());
  auto put = [&](const Name& name) {
    auto file = fs.Open(*dir, name, OpenMode::CreateNew());
    BELAY_CHECK(file.ok() && WriteFull(fs, *file, 0, bytes).ok());
  };
  put(Name::Literal("index"));
  if ((how & 4) != 0 && bytes.size() >= GitHashSize(hash)) {
    // A split index whose shared part is itself, if it names it.
    auto trailer = ByteSpan(bytes).last(GitHashSize(hash));
    put(Name::Literal("sharedindex." + ToHex(trailer)));
  }
  ReadIndexOptions options{.hash = hash, .ignore_case = (how & 8) != 0};
  options.buffer = (how & 16) != 0 ? 64 : 4096;
  auto read = ReadIndex(fs, AbsPath::Literal("/g/index"), options);
  if (!read.ok()) {
    Errc code = read.error().code;
    BELAY_CHECK(code == Errc::kCorrupt || code == Errc::kUnsupported ||
                code == Errc::kNotFound);
    return 0;
  }
  const TrackedPaths& paths = read->paths;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string name = paths.name(i);
    BELAY_CHECK(!name.empty() && (paths.Find(name) & paths.kinds(i)) == paths.kinds(i));
    BELAY_CHECK(i == 0 || paths.name(i - 1) < name);
    size_t slash = name.rfind('/');
    if (slash != std::string_view::npos && slash > 0)
      BELAY_CHECK(paths.HasBelow(name.substr(0, slash)));
  }
  BELAY_CHECK(paths.HasBelow("") == !paths.empty());
  BELAY_CHECK(!paths.names_digest().is_zero());
  return 0;
}
