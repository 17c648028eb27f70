// Pattern files of any bytes: read, matched in bounded time, and the same by the index
// as one pattern at a time; a rule that matches below a directory is never ruled out
// there.

#include <string>
#include <string_view>

#include "base/path.h"
#include "ignore/rules.h"

namespace {

using namespace belay;

// The number of the last pattern that matches, from 1, asked of each one alone.
size_t OneByOne(const PatternFile& file, std::string_view path, bool is_dir,
                bool fold) {
  size_t last = 0;
  for (size_t i = 0; i < file.patterns().size(); ++i) {
    // In the second line and with a CR of its own, so that nothing is cut off again.
    const PatternFile one = PatternFile::Parse(
        "one", "\n" + file.PatternText(file.patterns()[i]) + "\r\n", fold);
    BELAY_CHECK(one.patterns().size() == 1);
    if (one.LastMatch(path, is_dir) != nullptr) last = i + 1;
  }
  return last;
}

void AskRules(std::string_view bytes, std::string_view path, bool is_dir, bool fold) {
  WorkTreeInput input;
  input.ignore_case = fold;
  RuleLists lists;
  lists.protect = {std::string(bytes.substr(0, bytes.find('\n')))};
  lists.secret_patterns = {".env", "*.key"};
  DirRules::Ptr at = DirRules::Root(std::make_shared<RuleConfig>(lists),
                                    std::make_shared<WorkTree>(input),
                                    {.gitignore = bytes, .belayignore = std::nullopt});
  bool closed = false;  // an ancestor that is not entered
  for (size_t from = 0;;) {
    const size_t slash = path.find('/', from);
    const bool last = slash == std::string_view::npos;
    const std::string_view name = path.substr(from, last ? slash : slash - from);
    const Decision d = at->Decide(name, !last || is_dir);
    BELAY_CHECK(d.covered == at->Explain(name, !last || is_dir).covered);
    BELAY_CHECK(!closed || !d.covered);
    (void)RuleText(d.rule);
    if (last) return;
    closed |= d.descend == Descend::kNo;
    at = at->Enter(name, {.gitignore = std::nullopt, .belayignore = bytes});
    from = slash + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const bool fold = data[0] & 1;
  const bool is_dir = data[0] & 2;
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  const size_t cut = text.size() * data[1] / 256;
  const std::string_view path = text.substr(0, cut);
  const std::string_view bytes = text.substr(cut);
  const PatternFile file = PatternFile::Parse("f", std::string(bytes), fold);
  if (!RelPath::Parse(path).ok()) return 0;
  const Pattern* found = file.LastMatch(path, is_dir);
  if (file.patterns().size() <= 64) {
    const size_t expected = OneByOne(file, path, is_dir, fold);
    BELAY_CHECK((found == nullptr ? 0 : found - file.patterns().data() + 1) ==
                static_cast<ptrdiff_t>(expected));
  }
  if (found != nullptr && !found->negative)
    for (size_t at = path.find('/'); at != std::string_view::npos;
         at = path.find('/', at + 1))
      BELAY_CHECK(file.CouldMatchBelow(path.substr(0, at)));
  AskRules(bytes, path, is_dir, fold);
  return 0;
}
