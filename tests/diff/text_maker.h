#pragma once

// Random pairs of texts as people and programs make them, and as nobody would.

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace belay::test {

class TextMaker {
 public:
  explicit TextMaker(uint64_t seed) : random_(seed) {}

  // An old and a new text; sometimes the same.
  std::pair<std::string, std::string> Pair() {
    std::vector<std::string> lines = Lines();
    std::string a = Join(lines);
    const size_t edits = Below(5) == 0 ? Below(60) : Below(6);
    for (size_t i = 0; i < edits; ++i) Edit(lines);
    std::string b = Below(25) == 0 ? Join(Lines()) : Join(lines);
    // The last line of either may have no end.
    for (std::string* text : {&a, &b})
      if (Below(4) == 0 && text->ends_with('\n')) text->pop_back();
    if (Below(40) == 0) a.clear();
    if (Below(40) == 0) b.clear();
    return {std::move(a), std::move(b)};
  }

  size_t Below(size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random_);
  }

 private:
  std::string Line() {
    static constexpr const char* kCommon[] = {"",
                                              "}",
                                              "{",
                                              "\t",
                                              "  ",
                                              "return 0;",
                                              "--- a/x",
                                              "+++ b/x",
                                              "@@ -1,2 +3,4 @@",
                                              "-",
                                              "+",
                                              " ",
                                              "\\ No newline at end of file",
                                              "diff --git a/x b/x",
                                              "-- ",
                                              "Binary files a/x and b/x differ",
                                              "# note",
                                              "\r",
                                              "a\rb",
                                              "GIT binary patch",
                                              "rename from x",
                                              "deleted file mode 100644",
                                              "\xff\xfe",
                                              "\xc3\xa4"};
    switch (Below(10)) {
      case 0:
      case 1:
      case 2:
        return kCommon[Below(std::size(kCommon))];
      case 3:
        return std::string(1, static_cast<char>('a' + Below(3)));
      case 4: {
        std::string line;
        for (size_t n = Below(40); n > 0; --n) {
          const char c = static_cast<char>(Below(256));
          line += c == '\n' ? 'n' : c;
        }
        return line;
      }
      case 5:
        return std::string(Below(3), ' ') + "if (x == " + std::to_string(Below(10)) +
               ") {";
      case 6:
        if (Below(60) == 0) return std::string(size_t{1} << (10 + Below(8)), 'x');
        return "#include <" + std::to_string(Below(30)) + ">";
      case 7:
        if (Below(8) == 0) return std::string("nul\0nul", 7);
        return "word " + std::to_string(Below(100));
      default:
        return "line " + std::to_string(Below(1000)) + " of text";
    }
  }
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    const size_t sort = Below(12);
    if (sort == 0) return lines;
    const bool crlf = Below(8) == 0;
    const size_t count = sort == 1 ? 1 : sort == 2 ? 200 + Below(1500) : Below(60);
    const bool repeats = Below(6) == 0;
    std::vector<std::string> few;
    for (size_t i = 0; repeats && i < 1 + Below(4); ++i) few.push_back(Line());
    for (size_t i = 0; i < count; ++i) {
      lines.push_back(repeats ? few[Below(few.size())] : Line());
      if (crlf) lines.back() += '\r';
    }
    return lines;
  }
  void Edit(std::vector<std::string>& lines) {
    const size_t at = Below(lines.size() + 1);
    const size_t many = Below(4) == 0 ? Below(30) : 1;
    switch (Below(5)) {
      case 0:
      case 1:
        for (size_t i = 0; i < many; ++i)
          lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), Line());
        break;
      case 2:
        for (size_t i = 0; i < many && at < lines.size(); ++i)
          lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 3:
        if (at < lines.size()) lines[at] = Line();
        break;
      default: {  // a block again elsewhere
        if (lines.empty()) break;
        const size_t from = Below(lines.size());
        const size_t end = std::min(lines.size(), from + many);
        std::vector<std::string> block(
            lines.begin() + static_cast<std::ptrdiff_t>(from),
            lines.begin() + static_cast<std::ptrdiff_t>(end));
        if (Below(2) == 0)
          lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(from),
                      lines.begin() + static_cast<std::ptrdiff_t>(end));
        const size_t to = Below(lines.size() + 1);
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(to), block.begin(),
                     block.end());
      }
    }
  }
  static std::string Join(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + '\n';
    return text;
  }

  std::mt19937_64 random_;
};

}  // namespace belay::test
