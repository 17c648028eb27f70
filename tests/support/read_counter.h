#pragma once

// ReadCounter counts what is read: that work is linear is told by a count, not by a
// clock.

#include "support/pass_fs.h"

namespace belay::test {

class ReadCounter final : public PassFs {
 public:
  using PassFs::PassFs;
  Result<size_t> Read(const Fd& file, uint64_t offset,
                      std::span<std::byte> out) override {
    auto got = PassFs::Read(file, offset, out);
    if (got.ok()) bytes += *got;
    ++calls;
    return got;
  }
  uint64_t bytes = 0;
  uint64_t calls = 0;
};

}  // namespace belay::test
