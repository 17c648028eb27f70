#include "base/escape.h"
#include "cli/commands.h"
#include "cli/settings_file.h"
#include "cli/text.h"
#include "core/settings_table.h"

namespace belay {

namespace {

// One line of the list: a row of the table, or a `tools.<Name>`.
struct SettingRow {
  std::string key;
  const SettingInfo* info = nullptr;
  bool tool = false;  // the value of a tool
  SettingSource source = SettingSource::kDefault;
};

SettingRow RowOf(const Settings& settings, const SettingInfo& info) {
  auto index = static_cast<size_t>(&info - SettingTable().data());
  return {
      .key = std::string(info.key), .info = &info, .source = settings.sources[index]};
}
SettingRow RowOf(const std::string& name, const Settings::Tool& tool) {
  return {.key = StrCat("tools.", name), .tool = tool.enabled, .source = tool.source};
}

std::string ValueText(const Settings& settings, const SettingRow& row) {
  if (row.info != nullptr) return SettingText(settings, *row.info);
  return row.tool ? "true" : "false";
}

std::vector<SettingRow> AllRows(const Settings& settings) {
  std::vector<SettingRow> rows;
  for (const SettingInfo& info : SettingTable()) rows.push_back(RowOf(settings, info));
  for (const auto& [name, tool] : settings.tools) rows.push_back(RowOf(name, tool));
  return rows;
}

Result<SettingRow> FindRow(const Settings& settings, std::string_view key) {
  if (const SettingInfo* info = FindSetting(key)) return RowOf(settings, *info);
  if (std::string_view name = ToolNameOfKey(key); !name.empty()) {
    auto found = settings.tools.find(name);
    return RowOf(std::string(name),
                 found == settings.tools.end() ? Settings::Tool() : found->second);
  }
  const std::string nearest = NearestSetting(key);
  return Error(Errc::kNotFound,
               StrCat(EscapeForDisplay(key.substr(0, 200)), " is not a setting"))
      .WithHint(nearest.empty() ? "belay config lists them all"
                                : StrCat("did you mean ", nearest, "?"));
}

void ShowSettingsJson(Terminal& term, const Settings& settings,
                      const std::vector<SettingRow>& rows) {
  JsonWriter json;
  json.BeginObject().Key("settings").BeginArray();
  for (const SettingRow& row : rows) {
    json.BeginObject();
    json.Key("key").String(row.key);
    json.Key("value");
    if (row.info != nullptr) {
      WriteSettingJson(settings, *row.info, json);
    } else {
      json.Bool(row.tool);
    }
    json.Key("source").String(SettingSourceName(row.source));
    json.EndObject();
  }
  json.EndArray().EndObject();
  term.OutJson(json);
}

void ShowSettings(Terminal& term, const Settings& settings,
                  const std::vector<SettingRow>& rows) {
  for (const SettingRow& row : rows) {
    std::string line =
        StrCat(Pad(Scrub(row.key), 23), Pad(SettingSourceName(row.source), 9),
               Scrub(ValueText(settings, row)));
    Style style = row.source == SettingSource::kDefault ? Style::kDim : Style::kPlain;
    term.Out(StrCat(term.Paint(style, line), "\n"));
    if (term.verbose() && row.info != nullptr)
      term.Out(StrCat("    ", row.info->help, "\n"));
  }
}

ExitCode Set(CommandContext& ctx, const AbsPath& root, std::string_view key,
             std::string_view value) {
  const bool project = ctx.args.has("--project");
  auto edit = [&](const SettingsFile& file) -> Result<std::string> {
    BELAY_TRY(std::string changed,
              SetInText(file.text, file.shown, key, value, project));
    // Something else wrong in the file is said before anything is written.
    BELAY_TRY(Settings valid, project ? ParseSettings("", "", changed, file.shown)
                                      : ParseSettings(changed, file.shown, "", ""));
    (void)valid;
    return changed;
  };
  auto target = EditSettingsFile(ctx, root, project, edit);
  if (!target.ok()) return ctx.term.Fail(target.error());
  ctx.term.WorkIsDone();
  auto settings = LoadSettingsFor(ctx, root);
  if (!settings.ok()) return ctx.term.Fail(settings.error());
  auto row = FindRow(*settings, key);
  if (!row.ok()) return ctx.term.Fail(row.error());
  if (ctx.term.json()) {
    ShowSettingsJson(ctx.term, *settings, {*row});
    return ExitCode::kOk;
  }
  ctx.term.Say(StrCat("Set ", key, " in ", target->shown));
  if (key == "store.floor" && settings->store_floor.percent > 0)
    ctx.term.Say("A percentage means at most 2GiB; a size is obeyed as given.");
  // Lists of patterns add up; of everything else the project's counts.
  const bool adds_up =
      row->info != nullptr &&
      std::holds_alternative<std::vector<std::string> Settings::*>(row->info->field);
  if (row->source == SettingSource::kProject && !project && !adds_up)
    ctx.term.Warn(
        StrCat("the project's .belay.toml sets ", key, " too, and comes first"));
  return ExitCode::kOk;
}

}  // namespace

ExitCode CmdConfig(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  if (ctx.args.has("--project") && words.size() < 2)
    return ctx.term.FailUsage("--project needs a KEY and a VALUE to write");
  auto root = FindRoot(ctx);
  if (!root.ok() && root.error().code != Errc::kNotFound) {
    // Settings can be looked at and put right whatever state the store is in.
    ctx.term.Warn(StrCat("the store cannot be asked: ", root.error().what));
    auto dir = ctx.env.Resolve(ctx.args.value("--root").value_or("."));
    if (!dir.ok()) return ctx.term.Fail(dir.error());
    auto real = ctx.fs.RealPath(*dir);
    root = RootStatus{.root = real.ok() ? *real : *dir};
  }
  if (!root.ok()) return ctx.term.Fail(root.error());
  if (words.size() == 2) return Set(ctx, root->root, words[0], words[1]);

  auto settings = LoadSettingsFor(ctx, root->root);
  if (!settings.ok()) return ctx.term.Fail(settings.error());
  if (words.empty()) {
    auto show = ctx.term.json() ? ShowSettingsJson : ShowSettings;
    show(ctx.term, *settings, AllRows(*settings));
    return ExitCode::kOk;
  }
  auto row = FindRow(*settings, words[0]);
  if (!row.ok()) return ctx.term.Fail(row.error());
  if (ctx.term.json()) {
    ShowSettingsJson(ctx.term, *settings, {*row});
  } else {
    ctx.term.Out(StrCat(Scrub(ValueText(*settings, *row)), "\n"));
  }
  return ExitCode::kOk;
}

}  // namespace belay
