#pragma once

// JsonWriter builds one JSON document in memory, in the order it is told.
//
// The result is always valid UTF-8 and valid JSON: bytes of a String() that are not
// UTF-8 become U+FFFD, a number that JSON cannot hold becomes null, and a misuse (a
// value where a key belongs) is our bug and stops the program. There is no parser here:
// Belay reads no JSON through this file.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay {

class JsonWriter {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);

  JsonWriter& String(std::string_view text);
  // A path or any other name that is bytes: as text when it is valid UTF-8, otherwise
  // {"bytes":"base64"}, so that no two paths look the same and none is lost.
  JsonWriter& PathValue(std::string_view bytes);
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  JsonWriter& Uint(const std::optional<uint64_t>& value);  // null when there is none
  JsonWriter& Double(double value);  // shortest form that reads back as the same number
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Raw(std::string_view json);  // a value that another writer made

  // The document; everything that was begun must have been ended.
  std::string Take();

 private:
  void BeforeValue();
  void AppendQuoted(std::string_view text);

  struct Level {
    bool object = false;
    bool empty = true;
    bool key_written = false;
  };
  std::string out_;
  std::vector<Level> levels_;
  bool done_ = false;
};

// RFC 4648, with padding.
std::string Base64(std::string_view bytes);

}  // namespace belay
