#pragma once

// ForkedWork: work that somebody waits for, but not for ever. It is done by a child
// process that goes on when whoever waits has left.
//
// Guarantees
//   * Run() returns when the work is done, or said to be (Shared::Reply), or when the
//     time to wait has passed, whichever comes first. The child may shorten or lengthen
//     that time.
//   * The child knows since when nobody waits (Shared::released_ns), also when its
//     parent was killed.
//   * It has a session of its own, no input or output, and none of the descriptors that
//     were inherited: whoever waits for the end of a pipe does not wait for it.
//
// Threads: there must be no other yet, in this process.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace belay {

class ForkedWork {
 public:
  // Memory that both have.
  struct Shared {
    std::atomic<int64_t> released_ns{0};  // wall clock; 0: somebody waits
    std::atomic<int64_t> wait_ms{0};
    std::array<char, 4096> text{};  // what the child has to say
    std::atomic<uint32_t> text_size{0};
    int wake = -1;  // the child's end of a pipe

    void Say(std::string_view what);
    // In the child: from the beginning on.
    void WaitOnly(int64_t ms);
    // In the child: what is waited for is done, with what was said; the rest of the
    // work goes on behind whoever waited.
    void Reply(int with_code);

    std::atomic<bool> replied{false};
    int code = 0;
  };
  struct Ended {
    int code = 0;      // what the work returned
    std::string text;  // what it said
  };
  // `work` runs in the child and returns a code of its own, 0 to 255. Nothing when it
  // was not done in time. With wait_ms 0 nobody waits at all.
  static Result<std::optional<Ended>> Run(int64_t wait_ms,
                                          const std::function<int(Shared&)>& work);
};

}  // namespace belay
