#include "store/stray_pack.h"

#include "base/bytes.h"
#include "base/mutant.h"
#include "store/private.h"

namespace belay {

namespace {

Bytes FirstBytes(Fs& fs, const Fd& dir, const Name& name) {
  Bytes raw(kPackHeaderSize);
  auto stat = fs.StatAt(dir, name);
  if (!stat.ok() || stat->type != FileType::kRegular) return {};
  auto file = fs.Open(dir, name, OpenMode::Read());
  if (!file.ok()) return {};
  auto got = ReadFull(fs, *file, 0, raw);
  raw.resize(got.ok() ? *got : 0);
  return raw;
}

}  // namespace

bool BeginsAsPack(ByteSpan bytes) {
  return bytes.size() >= kPackMagic.size() &&
         AsText(bytes.first(kPackMagic.size())) == kPackMagic;
}

uint64_t PackAsNumber() {
  static_assert(kPackMagic.size() == 8);
  return LoadU64(AsBytes(kPackMagic).data());
}

Result<bool> KeepPack(Fs& fs, const Fd& dir, const Name& name) {
  if (BELAY_MUTANT("a-pack-goes-for-its-name") ||
      !BeginsAsPack(FirstBytes(fs, dir, name)))
    return false;
  auto to = MoveAside(fs, dir, name);
  // Another process was there first.
  if (!to.ok() && to.error().code == Errc::kNotFound) return true;
  if (!to.ok()) return std::move(to).error();
  BELAY_OK(fs.Sync(dir));
  return true;
}

std::vector<StrayPack> StrayPacks(Fs& fs, const Fd& home) {
  std::vector<StrayPack> out;
  const auto look = [&](const Fd& dir, const char* in) {
    auto entries = fs.List(dir);
    if (!entries.ok()) return;
    for (const DirEntry& e : *entries) {
      // In the store's own directory only where files of ours lie (`lock` is locked as
      // long as anybody is at work); in packs/ a pack of another name is a question of
      // its own.
      const bool ours = e.name.starts_with("manifest") || e.name.starts_with("tail") ||
                        e.name.starts_with("replaced");
      if (*in == '\0' ? !ours
                      : in == std::string_view("packs") &&
                            e.name.find(".idx") == std::string::npos)
        continue;
      const Bytes first = FirstBytes(fs, dir, Name::Literal(e.name));
      if (!BeginsAsPack(first)) continue;
      auto header = DecodePackHeader(first);
      StrayPack stray{in, e.name, std::nullopt};
      if (header.ok()) stray.header = *header;
      out.push_back(std::move(stray));
    }
  };
  look(home, "");
  for (const char* in : {"catalog", "cache", "packs"})
    if (auto dir = fs.Open(home, Name::Literal(in), OpenMode::Directory()); dir.ok())
      look(*dir, in);
  return out;
}

}  // namespace belay
