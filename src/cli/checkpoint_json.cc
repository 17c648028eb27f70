#include "cli/checkpoint_json.h"

#include <charconv>
#include <ctime>

#include "base/clock.h"
#include "base/escape.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "commits/anchors.h"
#include "core/state_view.h"

namespace belay {

void WriteTextOrNull(JsonWriter& json, std::string_view key,
                     const std::optional<std::string>& value) {
  json.Key(key);
  if (value)
    json.PathValue(*value);
  else
    json.Null();
}

void WriteMeta(JsonWriter& json, const std::map<std::string, std::string>& meta) {
  bool bytes = false;
  json.Key("meta").BeginObject();
  for (const auto& [key, value] : meta) {
    if (IsValidUtf8(key))
      json.Key(key).PathValue(value);
    else
      bytes = true;
  }
  json.EndObject();
  if (!bytes) return;
  json.Key("meta_bytes").BeginArray();
  for (const auto& [key, value] : meta) {
    if (IsValidUtf8(key)) continue;
    json.BeginObject();
    json.Key("key").PathValue(key);
    json.Key("value").PathValue(value);
    json.EndObject();
  }
  json.EndArray();
}

StateParts StateFacts::Of(const ObjectId& id) {
  auto state = store_.GetState(id);
  if (!state.ok()) return {};
  if (state->rules != rules_ || rules_.is_zero()) {
    auto view = LoadState(store_, id);
    skipped_ = view.ok() ? view->Skipped() : std::vector<SkippedPath>();
    rules_ = state->rules;
  }
  if (state->git != git_) {
    auto record = LoadGitRecord(store_, state->git);
    record_ = record.ok() ? std::move(*record) : GitRecord();
    git_ = state->git;
  }
  return {state->tree, skipped_, &record_, nullptr, &anchored_};
}

namespace {

// Of the repository whose work tree the root is, or is in; null without one.
void WriteGit(JsonWriter& json, std::string_view root_path, const RecordId& id,
              const StateParts& parts) {
  const GitRecord* record = parts.git;
  const GitStaged* staged = parts.staged;
  const GitRepoRecord* git = record != nullptr ? record->Find("") : nullptr;
  if (git == nullptr) {
    json.Null();
    return;
  }
  constexpr std::string_view kBranch = "refs/heads/";
  auto text = [&](std::string_view key, std::string_view value) {
    json.Key(key);
    if (value.empty())
      json.Null();
    else
      json.PathValue(value);
  };
  json.BeginObject();
  text("head", git->head);
  text("branch", git->head_ref.starts_with(kBranch)
                     ? std::string_view(git->head_ref).substr(kBranch.size())
                     : std::string_view(git->head_ref));
  json.Key("staged");
  if (staged != nullptr && staged->paths) {
    json.BeginArray();
    for (const std::string& path : *staged->paths) json.PathValue(path);
    json.EndArray();
  } else {
    json.Null();
  }
  json.Key("dirty");
  if (staged != nullptr && staged->dirty)
    json.Bool(*staged->dirty);
  else
    json.Null();
  text("in_progress", git->in_progress);
  const bool anchored =
      parts.anchored != nullptr && parts.anchored->contains(id.text());
  text("ref", anchored ? StrCat(kAnchorRefs, id.text()) : std::string());
  json.Key("worktree").PathValue(root_path);
  if (!git->trouble.empty()) json.Key("trouble").PathValue(git->trouble);
  json.Key("nested").BeginArray();
  for (const GitRepoRecord& nested : record->repositories) {
    if (nested.path.empty()) continue;
    json.BeginObject();
    json.Key("path").PathValue(nested.path);
    text("head", nested.head);
    text("branch", nested.head_ref.starts_with(kBranch)
                       ? std::string_view(nested.head_ref).substr(kBranch.size())
                       : std::string_view(nested.head_ref));
    text("in_progress", nested.in_progress);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace

void WriteCheckpoint(const CatalogEntry& entry, uint64_t number,
                     std::string_view root_path, const StateParts& parts,
                     JsonWriter& json, const std::function<void(JsonWriter&)>& more,
                     const std::optional<RecordId>& taken_back_by) {
  const Checkpoint& c = entry.checkpoint;
  json.BeginObject();
  json.Key("id").String(c.id.text());
  json.Key("seq").Uint(c.seq);
  json.Key("number").Uint(number);
  json.Key("kind").String(CheckpointKindName(c.kind));
  WriteTextOrNull(json, "name", c.name);
  WriteTextOrNull(json, "note", c.note);
  json.Key("description").PathValue(c.description);
  json.Key("created_at").String(FormatUtcMillis(c.made_ms));
  json.Key("root").PathValue(root_path);
  WriteTextOrNull(json, "session", c.session);
  WriteTextOrNull(json, "agent", c.agent);
  json.Key("turn").Uint(c.turn);
  WriteTextOrNull(json, "prompt", c.prompt);
  WriteTextOrNull(json, "message_id", c.message_id);
  json.Key("message_index").Uint(c.message_index);
  json.Key("tool");
  if (c.tool_name || c.tool_use_id) {
    json.BeginObject();
    WriteTextOrNull(json, "name", c.tool_name);
    WriteTextOrNull(json, "id", c.tool_use_id);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("state").String(c.state.hex());
  json.Key("tree");
  if (parts.tree.is_zero())
    json.Null();
  else
    json.String(parts.tree.hex());
  json.Key("files").Uint(c.files);
  json.Key("bytes").Uint(c.bytes);
  json.Key("changed").BeginObject();
  json.Key("added").Uint(c.added);
  json.Key("modified").Uint(c.modified);
  json.Key("deleted").Uint(c.deleted);
  json.EndObject();
  json.Key("changed_directories").Uint(c.changed_dirs);
  json.Key("stored_bytes").Uint(c.stored_bytes);
  json.Key("took_ms").Double(static_cast<double>(c.took_us) / 1000.0);
  json.Key("git");
  WriteGit(json, root_path, c.id, parts);
  json.Key("skipped").BeginArray();
  for (const SkippedPath& path : parts.skipped) {
    if (IsHeld(path.why)) continue;
    json.BeginObject();
    json.Key("path").PathValue(path.path);
    json.Key("why").String(SkipName(path.why));
    json.EndObject();
  }
  json.EndArray();
  json.Key("changing").BeginArray();
  for (const SkippedPath& path : parts.skipped)
    if (path.why == Skip::kChanging) json.PathValue(path.path);
  json.EndArray();
  json.Key("attributes_unknown").BeginArray();
  for (const SkippedPath& path : parts.skipped)
    if (path.why == Skip::kNoAttributes) json.PathValue(path.path);
  json.EndArray();
  json.Key("pinned").Bool(entry.pinned);
  json.Key("partial").Bool(c.partial);
  json.Key("lost").Uint(entry.lost);
  json.Key("health");
  if (entry.health)
    json.String(*entry.health == Health::kPass ? "pass" : "fail");
  else
    json.Null();
  json.Key("taken_back_by");
  if (taken_back_by)
    json.String(taken_back_by->text());
  else
    json.Null();
  WriteMeta(json, c.meta);
  if (more) more(json);
  json.EndObject();
}

std::string_view CheckpointKindName(CheckpointKind kind) {
  switch (kind) {
    case CheckpointKind::kAuto:
      return "auto";
    case CheckpointKind::kManual:
      return "manual";
    case CheckpointKind::kSafety:
      return "safety";
  }
  return "auto";
}

Result<std::optional<uint64_t>> LimitOf(const Args& args) {
  auto given = args.value("--number");
  if (!given) return std::optional<uint64_t>();
  uint64_t value = 0;
  const char* last = given->data() + given->size();
  auto [end, problem] = std::from_chars(given->data(), last, value);
  if (problem != std::errc() || end != last || value == 0)
    return Error(Errc::kInvalid, StrCat("-n wants a number from 1 on, not '",
                                        EscapeForDisplay(*given), "'"));
  return std::optional(value);
}

std::string LocalMinute(int64_t ms) {
  time_t seconds = static_cast<time_t>(ms / 1000);
  tm local{};
  localtime_r(&seconds, &local);
  char when[32];
  std::strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
  return when;
}

const std::string& CheckpointTitle(const Checkpoint& checkpoint) {
  return checkpoint.name ? *checkpoint.name : checkpoint.description;
}

std::string ChangedText(uint64_t changed, uint64_t directories) {
  directories = std::min(directories, changed);
  const uint64_t files = changed - directories;
  std::string text;
  if (files > 0 || directories == 0) text = CountText(files, "file");
  if (directories > 0)
    text += StrCat(files > 0 ? " and " : "", std::to_string(directories),
                   directories == 1 ? " directory" : " directories");
  return text + " changed";
}

std::string ChangedBriefly(uint64_t changed, uint64_t directories) {
  return directories < changed ? ChangedText(changed - directories, 0)
                               : ChangedText(changed, directories);
}

std::string ChangedText(const Checkpoint& c) {
  return ChangedText(c.added + c.modified + c.deleted, c.changed_dirs);
}

std::string CheckpointLine(const CatalogEntry& entry, size_t width) {
  const Checkpoint& c = entry.checkpoint;
  std::string line =
      StrCat(c.id.text().substr(0, 7), "  ", LocalMinute(c.made_ms), "  ");
  const size_t used = ColumnsOf(line);
  return line + Fit(EscapeText(CheckpointTitle(c)), width > used ? width - used : 0);
}

}  // namespace belay
