#pragma once

// Json: a value of a JSON document that somebody else wrote, read where it lies.
//
// Guarantees
//   * Parse() reads every byte once and refuses (kInvalid) what is not one JSON value:
//     cut off, not UTF-8, nested deeper than kMaxDepth. Nothing of it can crash, hang
//     or take memory: a value is a piece of the text, and nothing is copied before
//     somebody asks for it.
//   * Lenient where agents are sloppy: of members with the same name the first counts,
//     half a surrogate pair (a text cut inside an emoji) becomes U+FFFD.
//   * The same answer on every processor.
//
// A Json points into the text it was parsed from, which must outlive it.
//
// Why it is our own and not simdjson, which the tests compare it with:
// docs/decisions/0016.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belay {

class Json {
 public:
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  static constexpr size_t kMaxDepth = 64;

  Json() = default;  // null
  static Result<Json> Parse(std::string_view text);

  Kind kind() const { return kind_; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_string() const { return kind_ == Kind::kString; }
  // The text of the value as it was written.
  std::string_view raw() const { return raw_; }

  // What the value is, or nothing when it is of another kind.
  std::optional<bool> Bool() const;
  std::optional<double> Number() const;
  std::optional<uint64_t> Uint() const;  // only what is written as 0, 1, 2, ...
  // A string's text. Of more than `limit` bytes only the beginning, cut between two
  // characters.
  std::optional<std::string> Text(size_t limit = SIZE_MAX) const;
  bool TextIs(std::string_view text) const;

  // The first member of that name; null when it is there as null. Each call reads the
  // object from its beginning: JsonFields is for many questions.
  std::optional<Json> Get(std::string_view name) const;
  template <class... Names>
  std::optional<Json> Get(std::string_view name, std::string_view next,
                          Names... names) const {
    const std::optional<Json> member = Get(name);
    return member ? member->Get(next, names...) : std::nullopt;
  }

  // The value without the white space between its parts: what two writers of the same
  // value agree on.
  std::string Compact() const;

  // The parts of an array or an object, in their order:
  //   for (JsonParts parts(value); parts.Next();) Use(parts.name(), parts.value());
  friend class JsonParts;

 private:
  Json(Kind kind, std::string_view raw) : kind_(kind), raw_(raw) {}
  Kind kind_ = Kind::kNull;
  std::string_view raw_ = "null";
};

class JsonParts {
 public:
  explicit JsonParts(const Json& whole);
  bool Next();
  bool NameIs(std::string_view name) const;
  std::string name(size_t limit = SIZE_MAX) const;  // of an object's member
  const Json& value() const { return value_; }

 private:
  std::string_view rest_;  // behind the last part
  bool named_ = false;
  std::string_view name_;  // as written, with its quotes
  Json value_;
};

// The members of an object, found once. Of an object with very many, those past the
// first thousand are looked for as Json::Get does.
class JsonFields {
 public:
  JsonFields() = default;
  explicit JsonFields(const Json& object);  // of what is none: none
  std::optional<Json> Get(std::string_view name) const;
  const Json& whole() const { return whole_; }

 private:
  struct Field {
    std::string name;
    Json value;
  };
  Json whole_;
  std::vector<Field> fields_;
  bool more_ = false;
};

// `text` cut to at most `limit` bytes, between two characters when it is UTF-8.
std::string_view CutText(std::string_view text, size_t limit);

// Of fields that need not be there.
inline bool Is(const std::optional<Json>& value, std::string_view text) {
  return value && value->TextIs(text);
}
inline bool IsTrue(const std::optional<Json>& value) {
  return value && value->Bool().value_or(false);
}

}  // namespace belay
