#include "core/refs.h"

#include <algorithm>

namespace belay {

Status CheckName(std::string_view name) {
  auto refuse = [](std::string_view why) {
    return Error(Errc::kInvalid,
                 "a checkpoint cannot be called so: " + std::string(why));
  };
  if (name.empty()) return refuse("the name is empty");
  if (name == "latest" || name == "last-good" || name == "now")
    return refuse("latest, last-good and now have a meaning of their own");
  if (std::all_of(name.begin(), name.end(),
                  [](char c) { return c >= '0' && c <= '9'; }))
    return refuse("digits alone are numbers of the list");
  for (std::string_view start : {"turn:", "tool:", "session:", "@{"})
    if (name.starts_with(start))
      return refuse("turn:, tool:, session: and @{ begin other references");
  return Ok();
}

}  // namespace belay
