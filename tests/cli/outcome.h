#pragma once

// What a command did that was run within the test.

#include <string>
#include <string_view>

namespace belay::test {

struct Outcome {
  int code = 0;
  std::string out, err;
  bool Says(std::string_view text) const {
    return (out + err).find(text) != std::string::npos;
  }
};

}  // namespace belay::test
