#pragma once

// Work on many paths by two threads, when there are many.
//
// Few, or when one thread is all there is, everything happens in order on the
// calling thread; the sweeps that break an operation at every call rely on that.

#include <atomic>
#include <cstddef>
#include <thread>

namespace belay {

inline bool IsForBothThreads(size_t count) {
  constexpr size_t kFew = 128;
  return count >= kFew && std::thread::hardware_concurrency() > 1;
}

// Calls work(thread, index) for every index below `count`; false from it ends it all
// soon. Neighbours go to one thread, which keeps their directory open.
template <class Work>
void OnBothThreads(size_t count, const Work& work) {
  constexpr size_t kShare = 16;
  std::atomic<size_t> next{0};
  std::atomic<bool> ended{false};
  auto loop = [&](size_t thread) {
    while (!ended) {
      const size_t from = next.fetch_add(kShare);
      if (from >= count) return;
      for (size_t i = from; i < count && i < from + kShare; ++i) {
        if (ended) return;
        if (!work(thread, i)) ended = true;
      }
    }
  };
  if (!IsForBothThreads(count)) {
    loop(0);
    return;
  }
  std::thread other(loop, 1);
  loop(0);
  other.join();
}

}  // namespace belay
