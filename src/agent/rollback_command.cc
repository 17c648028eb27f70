#include "agent/rollback_command.h"

#include "agent/install_profiles_internal.h"
#include "base/mutant.h"

namespace belay {

namespace {

constexpr size_t kMaxCommandFile = size_t{256} << 10;

struct CommandPlaces {
  AbsPath user;              // of the user's settings
  std::string_view project;  // of a project's, from its directory on
  std::vector<std::string_view> files;
};

std::optional<CommandPlaces> CommandPlacesOf(AgentKind agent,
                                             const InstallPlaces& places) {
  auto own = [&](std::string_view name) {
    return places.home.Join(Name::Literal(name));
  };
  switch (agent) {
    case AgentKind::kClaude:
      return CommandPlaces{places.claude_config_dir.value_or(own(".claude")),
                           ".claude",
                           {"commands/rollback.md", "skills/rollback/SKILL.md"}};
    case AgentKind::kCodex:
      return CommandPlaces{
          places.codex_home.value_or(own(".codex")), ".codex", {"prompts/rollback.md"}};
    case AgentKind::kCopilot:
      return CommandPlaces{places.copilot_home.value_or(own(".copilot")),
                           ".github",
                           {"skills/rollback/SKILL.md"}};
    case AgentKind::kReasonix:
      return CommandPlaces{own(".reasonix"), ".reasonix", {"commands/rollback.md"}};
    default:
      return std::nullopt;
  }
}

bool IsOfOthers(Fs& fs, AgentKind agent, const AbsPath& file) {
  auto real = fs.RealPath(file);
  if (!real.ok() || real->is_root()) return false;
  auto dir = fs.OpenDir(real->parent());
  if (!dir.ok()) return true;
  auto text = ReadSmallFile(
      fs, *dir, RelPath::Literal(std::string_view(real->bytes()).substr(1)).basename(),
      kMaxCommandFile);
  return !text.ok() || !LooksLikeOurs(ProfileOf(agent), AsText(*text));
}

}  // namespace

bool HasRollbackOfOthers(Fs& fs, AgentKind agent, const InstallPlaces& places,
                         const AbsPath& from, const AbsPath& root) {
  const auto at = CommandPlacesOf(agent, places);
  if (!at || BELAY_MUTANT("every-rollback-is-ours")) return false;
  auto any_in = [&](const AbsPath& dir) {
    for (std::string_view file : at->files)
      if (IsOfOthers(fs, agent, dir.Join(RelPath::Literal(file)))) return true;
    return false;
  };
  if (any_in(at->user)) return true;
  for (AbsPath dir = from; dir.IsWithin(root); dir = dir.parent()) {
    if (any_in(dir.Join(Name::Literal(at->project)))) return true;
    if (dir.is_root()) break;
  }
  return false;
}

}  // namespace belay
