// Texts inside payloads that more than one agent uses: patches, notifications.

#include <algorithm>
#include <set>

#include "agent/dialect_internal.h"
#include "base/mutant.h"

namespace belay {
namespace {

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

}  // namespace

// Codex trims its marker lines, so an indented one may be one too. A line of content
// that looks like it is taken as well.
std::optional<std::vector<std::string>> PatchPaths(std::string_view patch) {
  constexpr std::string_view kMarks[] = {
      "*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"};
  std::vector<std::string> paths;
  std::set<std::string_view> known;  // views into the patch
  bool begun = false;
  while (!patch.empty()) {
    const size_t end = std::min(patch.find('\n'), patch.size());
    const std::string_view line = WithoutBlanks(patch.substr(0, end));
    patch.remove_prefix(std::min(end + 1, patch.size()));
    if (line == "*** Begin Patch") begun = true;
    for (std::string_view mark : kMarks) {
      if (!begun || !line.starts_with(mark)) continue;
      if (mark == kMarks[3] && BELAY_MUTANT("patch-misses-move")) continue;
      const std::string_view path = WithoutBlanks(line.substr(mark.size()));
      if (path.empty() || path.size() > kMaxPath || paths.size() == kMaxPaths ||
          path.find('\0') != std::string_view::npos)
        return std::nullopt;
      if (known.emplace(path).second) paths.emplace_back(path);
    }
  }
  if (paths.empty()) return std::nullopt;
  return paths;
}

void TakePatch(ToolCall& call, const std::optional<Json>& input, std::string_view cwd) {
  std::optional<Json> text = input;
  for (std::string_view name : {"command", "patchText", "patch", "input"}) {
    if (!text || text->is_string()) break;
    const std::optional<Json> member = input->Get(name);
    if (member && member->is_string()) text = member;
  }
  if (!text || !text->is_string()) return;
  std::optional<std::vector<std::string>> paths = PatchPaths(*text->Text());
  if (!paths) return;
  call.reach = ToolReach::kPaths;
  call.paths = std::move(*paths);
  call.what.clear();
  for (const std::string& path : call.paths) {
    if (call.what.size() > kMaxWhat) break;
    call.what += (call.what.empty() ? "" : ", ") + ShownPath(path, cwd);
  }
  call.what = OneLine(call.what);
}

std::optional<std::vector<std::string>> EndedTasks(std::string_view prompt) {
  constexpr std::string_view kNotification = "<task-notification>", kOpen = "<task-id>",
                             kClose = "</task-id>";
  constexpr size_t kMost = 1000;
  if (!prompt.starts_with(kNotification) || BELAY_MUTANT("notification-is-human"))
    return std::nullopt;
  std::vector<std::string> tasks;
  size_t at = 0;
  while (tasks.size() < kMost &&
         (at = prompt.find(kOpen, at)) != std::string_view::npos) {
    at += kOpen.size();
    const size_t end = prompt.find(kClose, at);
    if (end == std::string_view::npos) break;
    const std::string_view id = prompt.substr(at, end - at);
    const size_t next = std::min(prompt.find(kNotification, end), prompt.size());
    const bool running = prompt.substr(end, next - end).find("<status>running<") !=
                         std::string_view::npos;
    if (!id.empty() && id.size() <= kMaxId && !running) tasks.emplace_back(id);
    at = end;
  }
  return tasks;
}

}  // namespace belay
