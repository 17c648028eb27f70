#pragma once

// Where the conversations of a test are: "talk" beside its project. Of a test whose
// disk is memory (/dev/shm), which is quicker, in /tmp: nothing of ours goes to /dev.

#include <filesystem>

#include "base/path.h"

namespace belay::test {

inline AbsPath TalkDir(const AbsPath& top) {
  if (!top.IsWithin(AbsPath::Literal("/dev")))
    return top.Join(RelPath::Literal("talk"));
  return AbsPath::Literal("/tmp/" + top.bytes().substr(top.bytes().rfind('/') + 1) +
                          "-talk");
}

// Removes what is not removed with `top`, at the end of a scope.
class TalkDirEnds {
 public:
  explicit TalkDirEnds(const AbsPath& top) : top_(top) {}
  TalkDirEnds(const TalkDirEnds&) = delete;
  ~TalkDirEnds() {
    std::error_code ignored;
    const AbsPath dir = TalkDir(top_);
    if (!dir.IsWithin(top_)) std::filesystem::remove_all(dir.bytes(), ignored);
  }

 private:
  const AbsPath& top_;
};

}  // namespace belay::test
