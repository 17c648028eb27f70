#include "git/pack_index.h"

#include <algorithm>
#include <array>

namespace belay {

namespace {

constexpr std::array<std::byte, 8> kVersion2 = {
    std::byte{0xff}, std::byte{'t'}, std::byte{'O'}, std::byte{'c'},
    std::byte{0},    std::byte{0},   std::byte{0},   std::byte{2}};
constexpr size_t kFanout = 256 * 4;

}  // namespace

Result<std::vector<std::string>> ReadPackIndex(ByteSpan index, GitHash hash) {
  const Error bad(Errc::kCorrupt, "is no index of a pack");
  const size_t name = GitHashSize(hash);
  const bool second = index.size() >= kVersion2.size() &&
                      std::ranges::equal(index.first(kVersion2.size()), kVersion2);
  ByteSpan rest = second ? index.subspan(kVersion2.size()) : index;
  if (rest.size() < kFanout + 2 * name) return bad;
  size_t count = 0;
  for (std::byte b : rest.subspan(kFanout - 4, 4))
    count = count << 8 | static_cast<size_t>(b);
  rest = rest.subspan(kFanout);
  // Before each name the first version has where the object is.
  const size_t before = second ? 0 : 4;
  if (count > rest.size() / (before + name)) return bad;
  std::vector<std::string> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i)
    out.push_back(ToHex(rest.subspan(i * (before + name) + before, name)));
  return out;
}

}  // namespace belay
