#include <charconv>

#include "core/settings.h"
#include "core/settings_internal.h"

namespace belay {

namespace {

constexpr size_t kMostLines = 20;

// The line of "NAME:LINE: text"; 0 when it says none.
size_t LineOf(std::string_view what, std::string_view name) {
  if (!what.starts_with(name)) return 0;
  what.remove_prefix(name.size());
  if (!what.starts_with(':')) return 0;
  what.remove_prefix(1);
  size_t line = 0;
  auto [end, problem] = std::from_chars(what.data(), what.data() + what.size(), line);
  return problem == std::errc() ? line : 0;
}

}  // namespace

Result<RepairedSettings> RepairSettings(std::string_view text,
                                        std::string_view file_name, bool of_project) {
  RepairedSettings out{.text = std::string(text), .repaired = {}, .no_toml = false};
  for (;;) {
    auto parsed = of_project ? ParseSettings("", "", out.text, file_name)
                             : ParseSettings(out.text, file_name, "", "");
    if (parsed.ok()) return out;
    const Error& error = parsed.error();
    const size_t line = LineOf(error.what, file_name);
    size_t at = 0;
    for (size_t i = 1; i < line && at != std::string::npos; ++i) {
      at = out.text.find('\n', at);
      if (at != std::string::npos) ++at;
    }
    const bool there = line > 0 && at < out.text.size();
    if (!there || out.text[at] == '#' || out.repaired.size() == kMostLines)
      return error;
    out.no_toml = out.no_toml || !FlattenToml(out.text, file_name).ok();
    out.text.insert(at, "# ");
    out.repaired.push_back(error.what);
  }
}

}  // namespace belay
