#include <algorithm>
#include <vector>

#include "agent/install_off_internal.h"
#include "agent/install_target_internal.h"
#include "agent/jsonc.h"
#include "core/toml.h"

namespace belay {

namespace {

using KeyPath = std::vector<std::string_view>;

struct AgentSettings {
  AbsPath file;
  std::string text;
};

// Those of the project first, the nearest of them before the others.
std::vector<AgentSettings> SettingsAround(Fs& fs, const InstallPlaces& places,
                                          const AgentProfile& profile) {
  std::vector<AgentSettings> out;
  auto read = [&](const AbsPath& dir, std::string_view name) {
    AbsPath file = dir.Join(Name::Literal(name));
    auto target = LookAtTarget(fs, places, file, /*of_project=*/false);
    if (target.ok() && target->text)
      out.push_back({std::move(file), std::move(*target->text)});
  };
  InstallPlaces user = places;
  user.project.reset();
  for (const InstallPlaces* level : {&places, &std::as_const(user)}) {
    const bool project = level->project.has_value();
    if (level == &places && !project) continue;
    auto at = PlacesOf(fs, profile, *level);
    if (!at.ok()) continue;
    const AbsPath dir = at->hooks.parent();
    if (profile.agent == AgentKind::kCodex) {
      read(dir, "config.toml");
      continue;
    }
    if (project && profile.agent == AgentKind::kClaude)
      read(dir, "settings.local.json");
    read(dir, "settings.json");
  }
  return out;
}

Jsonc::Id ValueAt(const Jsonc& doc, const KeyPath& path) {
  Jsonc::Id at = doc.root();
  for (std::string_view key : path) {
    if (at == Jsonc::kNone || doc.kind(at) != Jsonc::Kind::kObject) return Jsonc::kNone;
    auto member = doc.Member(at, key);
    at = member.ok() ? *member : Jsonc::kNone;
  }
  return at;
}

std::string KeyText(const KeyPath& path) {
  std::string out;
  for (std::string_view key : path) out.append(out.empty() ? "" : ".").append(key);
  return out;
}

// The nearest file that has the key decides.
std::optional<HooksOff> OffBySwitch(const std::vector<AgentSettings>& files,
                                    const KeyPath& path, std::string_view off) {
  for (const AgentSettings& file : files) {
    auto doc = Jsonc::Parse(file.text, "");
    const Jsonc::Id value = doc.ok() ? ValueAt(*doc, path) : Jsonc::kNone;
    if (value == Jsonc::kNone) continue;
    if (doc->Text(value) != off) return std::nullopt;
    return HooksOff{file.file, KeyText(path)};
  }
  return std::nullopt;
}

std::optional<HooksOff> OffByName(const std::vector<AgentSettings>& files,
                                  const KeyPath& path, const AgentProfile& profile,
                                  const AbsPath& program) {
  for (const AgentSettings& file : files) {
    auto doc = Jsonc::Parse(file.text, "");
    const Jsonc::Id list = doc.ok() ? ValueAt(*doc, path) : Jsonc::kNone;
    if (list == Jsonc::kNone || doc->kind(list) != Jsonc::Kind::kArray) continue;
    for (const Jsonc::Id item : doc->Children(list)) {
      const auto name = doc->StringOf(item);
      if (name && (*name == "belay" || *name == HookCommand(profile, program, "")))
        return HooksOff{file.file, KeyText(path)};
    }
  }
  return std::nullopt;
}

std::optional<HooksOff> OffInToml(const std::vector<AgentSettings>& files) {
  for (const AgentSettings& file : files) {
    if (!ScanToml(file.text, "").ok()) continue;
    auto entries = FlattenToml(file.text, "");
    if (!entries.ok()) continue;
    for (const char* key : {"hooks", "codex_hooks"}) {
      const auto at = std::ranges::find(
          *entries, std::vector<std::string>{"features", key}, &TomlEntry::path);
      if (at == entries->end() || at->value.type != TomlValue::Type::kBool) continue;
      if (at->value.boolean) return std::nullopt;
      return HooksOff{file.file, std::string("features.") + key};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<HooksOff> FindHooksOff(Fs& fs, const InstallPlaces& places,
                                     const AgentProfile& profile) {
  const bool claude = profile.agent == AgentKind::kClaude;
  const bool qwen = profile.agent == AgentKind::kQwen;
  const bool codex = profile.agent == AgentKind::kCodex;
  if (!claude && !qwen && !codex && profile.agent != AgentKind::kGemini)
    return std::nullopt;
  const std::vector<AgentSettings> files = SettingsAround(fs, places, profile);
  if (codex) return OffInToml(files);
  std::optional<HooksOff> off;
  if (claude || qwen) off = OffBySwitch(files, {"disableAllHooks"}, "true");
  if (claude || off) return off;
  off = OffBySwitch(files, {"hooksConfig", "enabled"}, "false");
  for (const KeyPath& list :
       {KeyPath{"hooksConfig", "disabled"}, KeyPath{"hooks", "disabled"}})
    if (!off) off = OffByName(files, list, profile, places.program);
  return off;
}

}  // namespace belay
