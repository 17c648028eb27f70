#include "diff/diff_json.h"

#include <cstdio>

namespace belay {

namespace {

void WriteSide(const std::optional<TreeEntry>& entry, bool secret, JsonWriter& json) {
  if (!entry) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("kind").String(entry->kind == EntryKind::kFile      ? "file"
                          : entry->kind == EntryKind::kSymlink ? "symlink"
                                                               : "directory");
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", entry->mode);
  json.Key("mode").String(mode);
  json.Key("uid").Uint(entry->uid);
  json.Key("gid").Uint(entry->gid);
  if (entry->kind == EntryKind::kFile) {
    json.Key("size").Uint(entry->size);
    json.Key("hash").String(entry->id.hex());
  }
  if (entry->kind == EntryKind::kSymlink) {
    if (secret)
      json.Key("hash").String(Sha256::Of(AsBytes(entry->target)).hex());
    else
      json.Key("target").PathValue(entry->target);
  }
  if (!entry->xattrs.is_zero()) json.Key("xattrs").String(entry->xattrs.hex());
  json.EndObject();
}

}  // namespace

void DiffJson::Write(const PathDiff& diff, const FileDiff& file, JsonWriter& json) {
  json.BeginObject();
  json.Key("path").PathValue(diff.path);
  json.Key("old_path");
  if (diff.old_path.empty())
    json.Null();
  else
    json.PathValue(diff.old_path);
  json.Key("status").String(DiffStatusName(diff.status));
  if (diff.status == DiffStatus::kUnknown) json.Key("why").String(diff.why);
  if (diff.status == DiffStatus::kRenamed) json.Key("similarity").Uint(diff.similarity);
  json.Key("old");
  WriteSide(diff.before, diff.secret, json);
  json.Key("new");
  WriteSide(diff.after, diff.secret, json);
  json.Key("secret").Bool(diff.secret);
  if (detail_ != DiffDetail::kNames) {
    const bool text = file.shape == FileDiff::Shape::kText && !file.trouble;
    json.Key("binary").Bool(file.shape == FileDiff::Shape::kBinary);
    json.Key("too_large").Bool(file.shape == FileDiff::Shape::kTooLarge);
    if (file.trouble) {
      json.Key("trouble").BeginObject();
      json.Key("code").String(ErrcName(file.trouble->code));
      json.Key("message").String(file.trouble->what);
      json.EndObject();
    }
    const bool lines = text && diff.status != DiffStatus::kTypeChanged;
    const LineCounts counts = CountsOf(file.edits);
    json.Key("added");
    if (lines)
      json.Uint(counts.added);
    else
      json.Null();
    json.Key("deleted");
    if (lines)
      json.Uint(counts.deleted);
    else
      json.Null();
    if (detail_ == DiffDetail::kHunks) {
      json.Key("hunks");
      if (lines)
        Hunks(file, json);
      else
        json.Null();
    }
  }
  json.EndObject();
}

void DiffJson::Hunks(const FileDiff& file, JsonWriter& json) {
  const std::string_view a = file.old_text(), b = file.new_text();
  const std::vector<Hunk> hunks = HunksOf(a, b, file.edits);
  uint64_t bytes = 0;
  for (const Hunk& hunk : hunks) {
    bytes += hunk.a.length;
    for (const LineEdit& edit : hunk.edits) bytes += edit.b.length;
  }
  if (bytes > budget_) {
    json.Null();
    return;
  }
  budget_ -= bytes;
  json.BeginArray();
  for (const Hunk& hunk : hunks) {
    json.BeginObject();
    json.Key("old_start").Uint(hunk.a.line + (hunk.a.count > 0 ? 1 : 0));
    json.Key("old_lines").Uint(hunk.a.count);
    json.Key("new_start").Uint(hunk.b.line + (hunk.b.count > 0 ? 1 : 0));
    json.Key("new_lines").Uint(hunk.b.count);
    json.Key("heading").PathValue(HunkHeading(a, hunk));
    json.Key("lines").BeginArray();
    ForEachLine(a, b, hunk, [&](char op, std::string_view line) {
      const bool ends = line.ends_with('\n');
      json.BeginObject();
      json.Key("op").String(std::string_view(&op, 1));
      json.Key("text").PathValue(ends ? line.substr(0, line.size() - 1) : line);
      if (!ends) json.Key("no_newline").Bool(true);
      json.EndObject();
    });
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace belay
