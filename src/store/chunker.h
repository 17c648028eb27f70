#pragma once

// Content-defined chunking: cuts long content where its own bytes say so, so that an
// edit in the middle of a large file changes one or two chunks and not all that follow.
// The parameters and the gear table are part of the format (docs/format.md, "chunks").

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace belay {

inline constexpr size_t kMinChunk = size_t{32} << 10;
inline constexpr size_t kTargetChunk = size_t{128} << 10;
inline constexpr size_t kMaxChunk = size_t{512} << 10;

// Length of the first chunk of `bytes`, which holds either at least kMaxChunk bytes or
// everything up to the end of the content. 0 only for empty input.
size_t NextChunk(ByteSpan bytes);

}  // namespace belay
