#pragma once

// The names of the objects in a pack, by the index that git keeps beside it (.idx,
// versions 1 and 2).

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "git/repository.h"

namespace belay {

inline constexpr size_t kMaxPackIndex = size_t{1} << 30;  // of one that is read

// In hex, rising. kCorrupt when it is no such file.
Result<std::vector<std::string>> ReadPackIndex(ByteSpan index, GitHash hash);

}  // namespace belay
