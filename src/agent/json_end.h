#pragma once

// JsonEnd tells of text that comes in pieces where an object or array in it ends: by
// its brackets outside of strings, so that nothing is read twice. What the brackets
// hold is for Json::Parse to judge.

#include <cstddef>
#include <string_view>

namespace belay {

class JsonEnd {
 public:
  // Of the next piece: the value ended in it, or in one before, and nothing but blanks
  // followed. One that begins with no bracket never ends.
  bool IsReached(std::string_view piece) {
    for (const char c : piece) Take(c);
    return ended_;
  }

 private:
  void Take(char c) {
    if (in_string_) {
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else if (c == '"')
        in_string_ = false;
      return;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') return;
    ended_ = false;
    if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && depth_ > 0) {
      --depth_;
      ended_ = depth_ == 0 && !spoiled_;
    }
    // What stands around it makes nonsense of it: waited for as any other text.
    if (depth_ == 0 && !ended_) spoiled_ = true;
  }

  size_t depth_ = 0;
  bool in_string_ = false, escaped_ = false, ended_ = false, spoiled_ = false;
};

}  // namespace belay
