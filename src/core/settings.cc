#include "core/settings.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/settings_internal.h"

namespace belay {

namespace {

std::string Where(std::string_view name, size_t line, std::string_view key) {
  std::string text(name);
  text += ':';
  text += std::to_string(line);
  text += ": ";
  text += EscapeForDisplay(key.substr(0, 200));
  return text;
}

std::string KeyText(const std::vector<std::string>& path) {
  std::string key;
  for (const std::string& part : path) {
    if (!key.empty()) key += '.';
    key += TomlKeyPart(part);
  }
  return key;
}

// What a project may not take away from these lists, a leading '!' would.
void DropNegated(const SettingInfo& info, std::string_view where, TomlValue& value,
                 Settings& settings) {
  if (info.key != "secret_patterns" && info.key != "protect") return;
  auto negated = [](const TomlValue& item) { return item.text.starts_with('!'); };
  if (std::erase_if(value.items, negated) == 0) return;
  settings.warnings.push_back(std::string(where) +
                              ": a project can only add patterns; '!' is left out");
}

// The known name in `path` that is a table there and must not be one, or the other way
// round, with what it must be.
std::optional<std::pair<std::string, std::string>> WrongShape(
    const std::vector<std::string>& path) {
  for (size_t parts = 1; parts < path.size(); ++parts) {
    const std::string key =
        KeyText({path.begin(), path.begin() + static_cast<long>(parts)});
    if (FindSetting(key) != nullptr)
      return std::pair(key, "be a value, not a table: " + key + " = ...");
  }
  const std::string key = KeyText(path);
  const bool is_table =
      key == "tools" ||
      std::ranges::any_of(SettingTable(), [&](const SettingInfo& row) {
        return row.key.size() > key.size() && row.key.starts_with(key) &&
               row.key[key.size()] == '.';
      });
  if (is_table) return std::pair(key, "be a table: [" + key + "]");
  return std::nullopt;
}

Status Apply(std::string_view text, std::string_view name, SettingSource source,
             Settings& settings) {
  if (text.empty()) return Ok();
  BELAY_TRY(std::vector<TomlEntry> entries, FlattenToml(text, name));
  // In the order of the file, so that the first mistake is the one reported.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  bool project = source == SettingSource::kProject;
  for (TomlEntry& entry : entries) {
    std::string key = KeyText(entry.path);
    std::string where = Where(name, entry.line, key);
    if (entry.path.size() > 1 && entry.path[0] == "tools") {
      if (entry.path.size() > 2)
        where = Where(name, entry.line, KeyText({"tools", entry.path[1]}));
      if (entry.path.size() > 2 || entry.value.type != TomlValue::Type::kBool)
        return Error(Errc::kInvalid, where + " must be true or false");
      settings.tools[entry.path[1]] = {entry.value.boolean, source};
      continue;
    }
    const SettingInfo* info = FindSetting(key);
    if (info == nullptr) {
      // A known name that is used for something else is no unknown key.
      if (auto shape = WrongShape(entry.path))
        return Error(Errc::kInvalid,
                     Where(name, entry.line, shape->first) + " must " + shape->second);
      const std::string nearest = NearestSetting(key);
      std::string warning = where + " is not a setting";
      if (!nearest.empty()) {
        warning += "; did you mean ";
        warning += nearest;
        warning += '?';
      }
      settings.warnings.push_back(std::move(warning));
      continue;
    }
    if (project && info->user_only) {
      settings.warnings.push_back(
          where + " is left out: only your own settings file may set it");
      continue;
    }
    if (project && !info->user_only_choice.empty() &&
        entry.value.type == TomlValue::Type::kString &&
        entry.value.text == info->user_only_choice &&
        !BELAY_MUTANT("a-project-takes-back-unasked")) {
      settings.warnings.push_back(
          where + " = \"" + std::string(info->user_only_choice) +
          "\" is left out: only your own settings file may say that");
      continue;
    }
    // What is protected is covered though it is a secret.
    if (project && info->key == "protect" && settings.secrets == Secrets::kSkip &&
        !BELAY_MUTANT("project-lifts-secrets")) {
      settings.warnings.push_back(where +
                                  " is left out: your settings skip secrets, and a "
                                  "project cannot bring them back");
      continue;
    }
    if (project) DropNegated(*info, where, entry.value, settings);
    Status assigned = AssignSetting(*info, entry.value, project, settings);
    if (!assigned.ok())
      return Error(Errc::kInvalid, where + " " + assigned.error().what);
    settings.sources[static_cast<size_t>(info - SettingTable().data())] = source;
  }
  return Ok();
}

}  // namespace

std::string_view SettingSourceName(SettingSource source) {
  switch (source) {
    case SettingSource::kDefault:
      return "default";
    case SettingSource::kUser:
      return "user";
    case SettingSource::kProject:
      return "project";
  }
  return "default";
}

bool Settings::ToolEnabled(std::string_view name) const {
  auto found = tools.find(name);
  return found == tools.end() || found->second.enabled;
}

uint64_t Settings::StoreFloorBytes(uint64_t total_bytes) const {
  if (store_floor.percent == 0) return store_floor.bytes;
  uint64_t share = total_bytes / 100 * static_cast<uint64_t>(store_floor.percent);
  return std::min(share, uint64_t{2} << 30);
}

std::vector<std::string> Settings::DefaultSecretPatterns() {
  return {".env",
          ".env.*",
          "*.pem",
          "*.key",
          "id_rsa*",
          "id_dsa*",
          "id_ecdsa*",
          "id_ed25519*",
          "*.p12",
          "*.pfx",
          "*.jks",
          "*.keystore",
          "*.kdbx",
          ".netrc",
          ".pgpass",
          ".htpasswd",
          ".npmrc",
          ".pypirc",
          ".git-credentials",
          "*.tfvars",
          "credentials.json",
          "service-account*.json"};
}

Result<Settings> ParseSettings(std::string_view user_text, std::string_view user_name,
                               std::string_view project_text,
                               std::string_view project_name) {
  Settings settings;
  BELAY_OK(Apply(user_text, user_name, SettingSource::kUser, settings));
  BELAY_OK(Apply(project_text, project_name, SettingSource::kProject, settings));
  return settings;
}

}  // namespace belay
