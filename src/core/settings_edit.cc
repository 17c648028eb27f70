#include <algorithm>

#include "base/escape.h"
#include "core/settings_internal.h"

namespace belay {

namespace {

using Path = std::vector<std::string>;

Error Refuse(std::string_view file, std::string_view key, std::string_view why) {
  std::string what(file);
  what += ": ";
  what += EscapeForDisplay(key);
  what += ' ';
  what += why;
  return Error(Errc::kRefused, std::move(what)).WithHint("edit the file by hand");
}

// Reads what a person typed into the value a file would hold. Lists may be written as
// in the file; a single word is a list of one.
Result<TomlValue> ReadTyped(std::string_view value, bool list) {
  TomlValue out;
  if (list && value.starts_with('[')) {
    BELAY_TRY(std::vector<TomlEntry> entries,
              FlattenToml("v = " + std::string(value), "value"));
    if (entries.size() != 1 || entries[0].path != Path{"v"})
      return Error(Errc::kInvalid, "must be a list of strings");
    return std::move(entries[0].value);
  }
  if (!IsValidUtf8(value)) return Error(Errc::kInvalid, "must be valid UTF-8");
  out.type = TomlValue::Type::kString;
  out.text = value;
  if (list) {
    TomlValue one;
    one.type = TomlValue::Type::kArray;
    one.items.push_back(std::move(out));
    return one;
  }
  return out;
}

Result<TomlValue> ReadTyped(std::string_view value, const SettingInfo& info) {
  using Type = TomlValue::Type;
  TomlValue out;
  if (std::holds_alternative<bool Settings::*>(info.field)) {
    if (value == "true" || value == "false") {
      out.type = Type::kBool;
      out.boolean = value == "true";
    }
    return out;
  }
  if (std::holds_alternative<int64_t Settings::*>(info.field)) {
    bool digits = !value.empty() && value.size() <= 18 &&
                  value.find_first_not_of("0123456789") == std::string_view::npos;
    if (digits) {
      out.type = Type::kInt;
      for (char c : value) out.integer = out.integer * 10 + (c - '0');
    }
    return out;
  }
  bool list =
      std::holds_alternative<std::vector<std::string> Settings::*>(info.field) ||
      std::holds_alternative<std::vector<Argv> Settings::*>(info.field);
  return ReadTyped(value, list);
}

std::string Literal(const TomlValue& value) {
  switch (value.type) {
    case TomlValue::Type::kBool:
      return value.boolean ? "true" : "false";
    case TomlValue::Type::kInt:
      return std::to_string(value.integer);
    case TomlValue::Type::kString:
      return TomlString(value.text);
    case TomlValue::Type::kArray: {
      std::string out = "[";
      for (const TomlValue& item : value.items) {
        if (out.size() > 1) out += ", ";
        out += Literal(item);
      }
      return out + "]";
    }
    case TomlValue::Type::kOther:
      break;
  }
  return "\"\"";
}

// The offset behind the line that holds `offset`, its line end included.
size_t AfterLine(std::string_view text, size_t offset) {
  size_t end = text.find('\n', offset);
  return end == std::string_view::npos ? text.size() : end + 1;
}

// The offset of the comment lines that stand directly above the line of `offset`.
size_t AboveComments(std::string_view text, size_t offset) {
  size_t start = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
  while (start > 0) {
    size_t above = start == 1 ? 0 : text.rfind('\n', start - 2) + 1;
    size_t first = text.find_first_not_of(" \t", above);
    if (first == std::string_view::npos || text[first] != '#') break;
    start = above;
  }
  return start;
}

std::string KeyLiteral(const Path& path, size_t from) {
  std::string out;
  for (size_t i = from; i < path.size(); ++i) {
    if (i > from) out += '.';
    out += TomlKeyPart(path[i]);
  }
  return out;
}

struct Edit {
  size_t begin = 0;
  size_t end = 0;
  std::string text;
};

Result<Edit> PlanEdit(std::string_view text, std::string_view file,
                      std::string_view key, const Path& path,
                      const std::string& literal) {
  BELAY_TRY(std::vector<TomlStatement> statements, ScanToml(text, file));
  std::string_view line_end =
      text.find("\r\n") == std::string_view::npos ? "\n" : "\r\n";
  Path parent(path.begin(), path.end() - 1);

  Path section;            // of the header we are under
  bool plain_root = true;  // no header seen so far
  bool section_known = true;
  const TomlStatement* first_header = nullptr;
  const TomlStatement* last_of_root = nullptr;
  const TomlStatement* last_of_parent = nullptr;
  for (const TomlStatement& statement : statements) {
    if (statement.header) {
      if (first_header == nullptr) first_header = &statement;
      plain_root = false;
      section_known = statement.path.has_value() && !statement.array_header;
      section = section_known ? *statement.path : Path();
    } else if (section_known && statement.path && statement.value_begin > 0) {
      Path full = section;
      full.insert(full.end(), statement.path->begin(), statement.path->end());
      if (full == path) {
        if (statement.comment_in_value)
          return Refuse(file, key, "has comments inside its value");
        return Edit{statement.value_begin, statement.end, literal};
      }
    }
    if (plain_root) last_of_root = &statement;
    if (section_known && !plain_root && section == parent) last_of_parent = &statement;
  }

  Edit edit;
  bool in_section = last_of_parent != nullptr;
  const TomlStatement* after = in_section ? last_of_parent : last_of_root;
  if (after != nullptr) {
    edit.begin = AfterLine(text, after->end);
  } else {
    edit.begin = first_header != nullptr ? AboveComments(text, first_header->begin)
                                         : text.size();
  }
  edit.end = edit.begin;
  if (edit.begin > 0 && text[edit.begin - 1] != '\n') edit.text += line_end;
  edit.text += KeyLiteral(path, in_section ? parent.size() : 0);
  edit.text += " = ";
  edit.text += literal;
  edit.text += line_end;
  // A root key in front of a section gets a line of air.
  if (after == nullptr && first_header != nullptr) edit.text += line_end;
  return edit;
}

// The entries without `path`, in a fixed order.
std::vector<TomlEntry> Others(std::vector<TomlEntry> entries, const Path& path) {
  std::erase_if(entries, [&](const TomlEntry& entry) { return entry.path == path; });
  std::sort(entries.begin(), entries.end(),
            [](const TomlEntry& a, const TomlEntry& b) { return a.path < b.path; });
  return entries;
}

bool SameExcept(const std::vector<TomlEntry>& before,
                const std::vector<TomlEntry>& after, const Path& path,
                const TomlValue& value) {
  auto held = std::find_if(after.begin(), after.end(),
                           [&](const TomlEntry& entry) { return entry.path == path; });
  if (held == after.end() || held->value != value) return false;
  auto a = Others(before, path);
  auto b = Others(after, path);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TomlEntry& x, const TomlEntry& y) {
                      return x.path == y.path && x.value == y.value;
                    });
}

}  // namespace

Result<std::string> SetInText(std::string_view text, std::string_view file_name,
                              std::string_view key, std::string_view value,
                              bool for_project) {
  std::string shown = EscapeForDisplay(key.substr(0, 200));
  Path path;
  TomlValue wanted;
  if (std::string_view tool = ToolNameOfKey(key); !tool.empty()) {
    if (!IsValidUtf8(tool))
      return Error(Errc::kInvalid, shown + " must be valid UTF-8");
    if (value != "true" && value != "false")
      return Error(Errc::kInvalid, shown + " must be true or false");
    path = {"tools", std::string(tool)};
    wanted.type = TomlValue::Type::kBool;
    wanted.boolean = value == "true";
  } else {
    const SettingInfo* info = FindSetting(key);
    if (info == nullptr) {
      Error error(Errc::kNotFound, shown + " is not a setting");
      if (auto nearest = NearestSetting(key); !nearest.empty())
        error.hint = "did you mean " + nearest + "?";
      return error;
    }
    if (for_project && info->user_only)
      return Error(Errc::kRefused,
                   shown + " can be set in your own settings file only");
    if (for_project && !info->user_only_choice.empty() &&
        value == info->user_only_choice)
      return Error(Errc::kRefused, shown + " can be \"" + std::string(value) +
                                       "\" in your own settings file only");
    auto typed = ReadTyped(value, *info);
    Settings scratch;
    Status fits = typed.ok() ? AssignSetting(*info, *typed, false, scratch)
                             : Status(typed.error());
    if (!fits.ok()) return Error(Errc::kInvalid, shown + " " + fits.error().what);
    wanted = std::move(typed).value();
    size_t dot = key.find('.');
    path.emplace_back(key.substr(0, dot));
    if (dot != std::string_view::npos) path.emplace_back(key.substr(dot + 1));
  }

  BELAY_TRY(std::vector<TomlEntry> before, FlattenToml(text, file_name));
  BELAY_TRY(Edit edit, PlanEdit(text, file_name, key, path, Literal(wanted)));
  std::string changed(text.substr(0, edit.begin));
  changed += edit.text;
  changed += text.substr(edit.end);

  // The proof: the parser finds the new value, and every other one as it was.
  auto after = FlattenToml(changed, file_name);
  if (!after.ok() || !SameExcept(before, *after, path, wanted))
    return Refuse(file_name, key, "cannot be set without touching other lines");
  return changed;
}

}  // namespace belay
