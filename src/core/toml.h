#pragma once

// TOML as flat entries, and TOML as lines: to read settings, and to change one line of
// them and nothing else.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belay {

struct TomlValue {
  enum class Type { kBool, kInt, kString, kArray, kOther };
  // kOther: a float (`text` is how to show it), a date, a table in an array
  Type type = Type::kOther;
  bool boolean = false;
  int64_t integer = 0;
  std::string text;
  std::vector<TomlValue> items;

  bool operator==(const TomlValue&) const = default;
};

struct TomlEntry {
  std::vector<std::string> path;
  size_t line = 0;
  TomlValue value;
};

// Every value of the file, tables flattened, in no order. Errors name file and line.
Result<std::vector<TomlEntry>> FlattenToml(std::string_view text,
                                           std::string_view name);

// One header or one `key = value` of the text, by byte offsets.
struct TomlStatement {
  size_t begin = 0;
  size_t end = 0;  // behind its last byte; a comment and the line end come after
  bool header = false;
  bool array_header = false;                     // [[...]]
  std::optional<std::vector<std::string>> path;  // absent: keys we do not unpick
  size_t value_begin = 0;                        // of a key: its value
  bool comment_in_value = false;
};

// Splits without judging: what is not TOML is left to the parser. Refuses what would
// cost the parser its stack: toml++ 3.3 builds a table per part of a dotted key and
// frees them by recursion, with no limit (a 1 MiB line of "a.a.a" is 500,000 frames).
Result<std::vector<TomlStatement>> ScanToml(std::string_view text,
                                            std::string_view name);

// A string, or a key part, as TOML wants it.
std::string TomlString(std::string_view text);
std::string TomlKeyPart(std::string_view part);

}  // namespace belay
