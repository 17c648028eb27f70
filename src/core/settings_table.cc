#include "core/settings_table.h"

#include <charconv>

#include "base/escape.h"
#include "base/nearest.h"
#include "core/settings_internal.h"

namespace belay {

namespace {

constexpr int64_t kTenMinutes = 600'000;
constexpr int64_t kMany = 1'000'000'000;

constexpr SettingInfo kTable[] = {
    {.key = "enabled", .field = &Settings::enabled, .help = "make checkpoints at all"},
    {.key = "auto",
     .field = &Settings::auto_protect,
     .help = "agents' hooks protect a new directory at first sight"},
    {.key = "granularity",
     .field = &Settings::granularity,
     .help = "how often a checkpoint is made",
     .choices = "tool|turn|session"},
    {.key = "strict",
     .field = &Settings::strict,
     .help = "a hook may stop the agent when no checkpoint could be made"},
    {.key = "deadline_ms",
     .field = &Settings::deadline_ms,
     .help = "milliseconds a hook waits for its checkpoint, 50000 at most",
     .max = kTenMinutes},
    {.key = "run_wait_ms",
     .field = &Settings::run_wait_ms,
     .help = "how long `belay run` waits for its first checkpoint",
     .max = kTenMinutes},
    {.key = "exclude",
     .field = &Settings::exclude,
     .help = "patterns of paths to leave out, in gitignore syntax"},
    {.key = "protect",
     .field = &Settings::protect,
     .help = "patterns of paths to cover whatever else is said"},
    {.key = "secret_patterns",
     .field = &Settings::secret_patterns,
     .help = "patterns of files that hold secrets"},
    {.key = "default_excludes",
     .field = &Settings::default_excludes,
     .help = "leave out untracked node_modules/, build/ and the like"},
    {.key = "secrets",
     .field = &Settings::secrets,
     .help = "keep secrets on this machine only, or leave them alone",
     .choices = "local|skip",
     .user_only = true},
    {.key = "max_file_size",
     .field = &Settings::max_file_size,
     .help = "larger files are left out",
     .min = 1},
    {.key = "max_files",
     .field = &Settings::max_files,
     .help = "the most files one checkpoint covers",
     .min = 1,
     .max = kMany},
    {.key = "retention.auto",
     .field = &Settings::retention_auto,
     .help = "automatic checkpoints kept per protected directory",
     .min = 1,
     .max = kMany,
     .user_only = true},
    {.key = "retention.days",
     .field = &Settings::retention_days,
     .help = "days an automatic checkpoint is kept",
     .min = 1,
     .max = 36'500,
     .user_only = true},
    {.key = "retention.undo",
     .field = &Settings::retention_undo,
     .help = "rollbacks that can be undone",
     .min = 1,
     .max = kMany,
     .user_only = true},
    {.key = "store.cap",
     .field = &Settings::store_cap,
     .help = "the most disk space the store takes, 0 for no limit",
     .user_only = true},
    {.key = "store.floor",
     .field = &Settings::store_floor,
     .help = "disk space that stays free; a share is at most 2GiB, 0 for none",
     .percent = true,
     .user_only = true},
    {.key = "on_outside",
     .field = &Settings::on_outside,
     .help = "what a rollback does with changes made by others; exact in your own file "
             "only",
     .choices = "ask|keep|exact",
     .user_only_choice = "exact"},
    {.key = "git.action",
     .field = &Settings::git_action,
     .help =
         "what a rollback does with commits made since; reset in your own file only",
     .choices = "auto|reset|revert|keep",
     .user_only_choice = "reset"},
    {.key = "git.refs",
     .field = &Settings::git_refs,
     .help = "anchor checkpoints as refs in the git repository"},
    {.key = "git.refs_keep",
     .field = &Settings::git_refs_keep,
     .help = "refs kept per session, the newest",
     .min = 1,
     .max = kMany},
    {.key = "git.protect",
     .field = &Settings::git_protect,
     .help = "cover the objects in .git too"},
    {.key = "transcripts",
     .field = &Settings::transcripts,
     .help = "what is kept of conversations",
     .choices = "keep|anchors|off"},
    {.key = "notice",
     .field = &Settings::notice,
     .help = "tell the model about a rollback"},
    {.key = "hooks.before_rollback",
     .field = &Settings::before_rollback,
     .help = "a command that may stop a rollback; the plan is on its input",
     .user_only = true},
    {.key = "hooks.after_rollback",
     .field = &Settings::after_rollback,
     .help = "a command run after a rollback",
     .user_only = true},
    {.key = "hooks.on_session_end",
     .field = &Settings::on_session_end,
     .help = "a command run when a session ends",
     .user_only = true},
    {.key = "hooks.summarize",
     .field = &Settings::summarize,
     .help = "a command that summarizes the messages on its input",
     .user_only = true},
};
static_assert(std::size(kTable) == kSettingCount);

// The choice at `index` of "a|b|c".
std::string_view Choice(std::string_view choices, size_t index) {
  for (; index > 0; --index) choices.remove_prefix(choices.find('|') + 1);
  return choices.substr(0, choices.find('|'));
}

std::string Quoted(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& item : list) {
    if (out.size() > 1) out += ", ";
    out += TomlString(item);
  }
  out += ']';
  return out;
}

struct Unit1024 {
  std::string_view name;
  uint64_t bytes;
};
constexpr Unit1024 kUnits[] = {
    {"TiB", uint64_t{1} << 40},
    {"GiB", uint64_t{1} << 30},
    {"MiB", uint64_t{1} << 20},
    {"KiB", uint64_t{1} << 10},
    {"TB", 1'000'000'000'000},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"kB", 1'000},
    {"KB", 1'000},
    {"B", 1},
    {"", 1},
};

std::string SizeForm(bool allow_percent) {
  return allow_percent ? "must be a size like \"512MiB\" or \"5%\""
                       : "must be a size like \"512MiB\"";
}

// What was given, for a message that says what would have been right.
std::string Given(const TomlValue& value) {
  switch (value.type) {
    case TomlValue::Type::kBool:
      return value.boolean ? "true" : "false";
    case TomlValue::Type::kInt:
      return std::to_string(value.integer);
    case TomlValue::Type::kString:
      return '"' + EscapeForDisplay(std::string_view(value.text).substr(0, 40)) + '"';
    case TomlValue::Type::kArray:
      return "a list";
    case TomlValue::Type::kOther:
      break;
  }
  return value.text.empty() ? "a date or a table" : value.text;
}

}  // namespace

std::span<const SettingInfo> SettingTable() { return kTable; }

const SettingInfo* FindSetting(std::string_view key) {
  for (const SettingInfo& info : kTable)
    if (info.key == key) return &info;
  return nullptr;
}

std::string NearestSetting(std::string_view key) {
  std::array<std::string_view, kSettingCount> keys;
  for (size_t i = 0; i < kSettingCount; ++i) keys[i] = kTable[i].key;
  if (std::string_view nearest = NearestWord(key, keys); !nearest.empty())
    return std::string(nearest);
  // `cap` for `store.cap`: the part behind the dot alone.
  for (std::string_view known : keys)
    if (size_t dot = known.find('.');
        dot != std::string_view::npos && known.substr(dot + 1) == key)
      return std::string(known);
  constexpr std::string_view kTools[] = {"tools"};
  const size_t dot = key.find('.');
  if (dot != std::string_view::npos && dot + 1 < key.size() && key.size() <= 64 &&
      !NearestWord(key.substr(0, dot), kTools).empty())
    return "tools" + EscapeForDisplay(key.substr(dot));
  return {};
}

std::string_view ToolNameOfKey(std::string_view key) {
  constexpr std::string_view kPrefix = "tools.";
  return key.starts_with(kPrefix) ? key.substr(kPrefix.size()) : std::string_view();
}

std::string SettingText(const Settings& settings, const SettingInfo& info) {
  return std::visit(
      [&](auto field) -> std::string {
        const auto& value = settings.*field;
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          return value ? "true" : "false";
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return std::to_string(value);
        } else if constexpr (std::is_enum_v<T>) {
          return std::string(Choice(info.choices, static_cast<size_t>(value)));
        } else if constexpr (std::is_same_v<T, SizeSetting>) {
          return FormatSize(value);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return Quoted(value);
        } else {
          if (value.size() == 1) return Quoted(value[0]);
          std::string out = "[";
          for (const Argv& argv : value) {
            if (out.size() > 1) out += ", ";
            out += Quoted(argv);
          }
          return out + "]";
        }
      },
      info.field);
}

void WriteSettingJson(const Settings& settings, const SettingInfo& info,
                      JsonWriter& json) {
  auto write_list = [&](const std::vector<std::string>& list) {
    json.BeginArray();
    for (const std::string& item : list) json.String(item);
    json.EndArray();
  };
  std::visit(
      [&](auto field) {
        const auto& value = settings.*field;
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          json.Bool(value);
        } else if constexpr (std::is_same_v<T, int64_t>) {
          json.Int(value);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          write_list(value);
        } else if constexpr (std::is_same_v<T, std::vector<Argv>>) {
          if (value.size() == 1) return write_list(value[0]);
          json.BeginArray();
          for (const Argv& argv : value) write_list(argv);
          json.EndArray();
        } else {
          json.String(SettingText(settings, info));
        }
      },
      info.field);
}

Result<SizeSetting> ParseSize(std::string_view text, bool allow_percent) {
  uint64_t number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  auto bad = [&](std::string_view why) {
    std::string what(why);
    what += ", not \"";
    what += EscapeForDisplay(text.substr(0, 40));
    what += '"';
    return Error(Errc::kInvalid, std::move(what));
  };
  const std::string form = SizeForm(allow_percent);
  if (problem == std::errc::result_out_of_range) return bad("must be a smaller size");
  if (problem != std::errc()) return bad(form);
  if (unit == "%") {
    if (!allow_percent || number > 100) return bad(form);
    if (number == 0) return SizeSetting{};
    return SizeSetting{.percent = static_cast<int>(number)};
  }
  for (const Unit1024& known : kUnits) {
    if (unit != known.name) continue;
    if (number > INT64_MAX / known.bytes) return bad("must be a smaller size");
    return SizeSetting{.bytes = number * known.bytes};
  }
  return bad(form);
}

std::string FormatSize(const SizeSetting& size) {
  if (size.percent > 0) return std::to_string(size.percent) + "%";
  if (size.bytes == 0) return "0";
  for (const Unit1024& unit : kUnits) {
    if (unit.name.ends_with("iB") && size.bytes % unit.bytes == 0)
      return std::to_string(size.bytes / unit.bytes).append(unit.name);
  }
  return std::to_string(size.bytes) + "B";
}

// As long as a path may be that one call takes.
constexpr size_t kMaxPattern = 4096;

Status AssignSetting(const SettingInfo& info, const TomlValue& value, bool append,
                     Settings& settings) {
  using Type = TomlValue::Type;
  auto bad = [](std::string what) { return Error(Errc::kInvalid, std::move(what)); };

  // Patterns and arguments alike: NUL would cut them short, a line feed is two
  // patterns.
  auto read_list = [&](const TomlValue& from, bool pattern,
                       std::vector<std::string>& out) -> Status {
    if (from.type != Type::kArray) return bad("must be a list of strings");
    for (const TomlValue& item : from.items) {
      if (item.type != Type::kString) return bad("must be a list of strings");
      if (item.text.find('\0') != std::string::npos)
        return bad("must not hold a NUL character");
      if (pattern && item.text.size() > kMaxPattern)
        return bad("has a pattern of " + std::to_string(item.text.size()) +
                   " bytes; the longest may have " + std::to_string(kMaxPattern));
      if (pattern &&
          (item.text.empty() || item.text.find_first_of("\r\n") != std::string::npos))
        return bad("must hold patterns of one line each");
      out.push_back(item.text);
    }
    return Ok();
  };

  return std::visit(
      [&](auto field) -> Status {
        auto& target = settings.*field;
        using T = std::decay_t<decltype(target)>;
        if constexpr (std::is_same_v<T, bool>) {
          if (value.type != Type::kBool) return bad("must be true or false");
          target = value.boolean;
        } else if constexpr (std::is_same_v<T, int64_t>) {
          if (value.type != Type::kInt || value.integer < info.min ||
              value.integer > info.max)
            return bad("must be a whole number from " + std::to_string(info.min) +
                       " to " + std::to_string(info.max));
          target = value.integer;
        } else if constexpr (std::is_enum_v<T>) {
          std::string_view rest = info.choices;
          for (size_t index = 0; value.type == Type::kString; ++index) {
            size_t bar = rest.find('|');
            if (rest.substr(0, bar) == value.text) {
              target = static_cast<T>(index);
              return Ok();
            }
            if (bar == std::string_view::npos) break;
            rest.remove_prefix(bar + 1);
          }
          std::string what = "must be one of";
          for (size_t index = 0;; ++index) {
            std::string_view choice = Choice(info.choices, index);
            what += index == 0 ? " \"" : ", \"";
            what += choice;
            what += '"';
            if (info.choices.ends_with(choice)) return bad(std::move(what));
          }
        } else if constexpr (std::is_same_v<T, SizeSetting>) {
          SizeSetting size;
          if (value.type == Type::kInt && value.integer >= 0) {
            size.bytes = static_cast<uint64_t>(value.integer);
          } else if (value.type == Type::kString) {
            BELAY_TRY(size, ParseSize(value.text, info.percent));
          } else {
            return bad(SizeForm(info.percent) + ", not " + Given(value));
          }
          if (size.percent == 0 && size.bytes < static_cast<uint64_t>(info.min))
            return bad("must be more than 0");
          target = size;
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          std::vector<std::string> list;
          if (append) list = target;
          BELAY_OK(read_list(value, true, list));
          target = std::move(list);
        } else {
          // One command, or a list of commands.
          std::vector<Argv> commands;
          bool nested = value.type == Type::kArray && !value.items.empty() &&
                        value.items[0].type == Type::kArray;
          if (nested) {
            for (const TomlValue& item : value.items)
              BELAY_OK(read_list(item, false, commands.emplace_back()));
          } else {
            BELAY_OK(read_list(value, false, commands.emplace_back()));
            if (commands[0].empty()) commands.clear();
          }
          for (const Argv& argv : commands)
            if (argv.empty() || argv[0].empty())
              return bad("must name a program first");
          target = std::move(commands);
        }
        return Ok();
      },
      info.field);
}

}  // namespace belay
