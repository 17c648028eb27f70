// Settings of any bytes: refused with a place or parsed; an edit changes one key only.

#include <algorithm>

#include "core/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belay;
  if (size < 2) return 0;
  std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  size_t cut = data[0] * text.size() / 256;
  std::string_view user = text.substr(0, cut);
  std::string_view project = text.substr(cut);
  auto parsed = ParseSettings(user, "user.toml", project, ".belay.toml");
  if (!parsed.ok()) BELAY_CHECK(parsed.error().code == Errc::kInvalid);
  // A project can neither weaken secrets nor run commands, nor have anything taken back
  // unasked, whatever it says.
  auto alone = ParseSettings("", "user.toml", project, ".belay.toml");
  if (alone.ok()) {
    BELAY_CHECK(alone->secrets == Secrets::kLocal);
    BELAY_CHECK(alone->on_outside != OnOutside::kExact &&
                alone->git_action != GitAction::kReset);
    BELAY_CHECK(alone->before_rollback.empty() && alone->after_rollback.empty() &&
                alone->on_session_end.empty() && alone->summarize.empty());
    for (const std::string& pattern : Settings::DefaultSecretPatterns())
      BELAY_CHECK(std::find(alone->secret_patterns.begin(),
                            alone->secret_patterns.end(),
                            pattern) != alone->secret_patterns.end());
  }
  static constexpr std::string_view kKeys[] = {
      "enabled", "store.cap", "exclude", "granularity", "tools.Bash", "deadline_ms"};
  static constexpr std::string_view kValues[] = {"true", "20GiB", "[\"a\"]",
                                                 "turn", "false", "77"};
  std::string_view key = kKeys[data[1] % 6];
  std::string_view value = kValues[data[1] / 6 % 6];
  auto edited = SetInText(user, "user.toml", key, value, false);
  // Other keys may have been bad before and stay so; a good file stays good.
  if (edited.ok() && ParseSettings(user, "user.toml", "", "").ok())
    BELAY_CHECK(ParseSettings(*edited, "user.toml", "", "").ok());
  return 0;
}
