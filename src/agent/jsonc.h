#pragma once

// Jsonc: a settings file in JSON, with comments and trailing commas, that is changed as
// text.
//
// It is read into positions and nothing else; a change puts a piece of text in, or
// takes one out, and leaves every other byte where it was: order, comments,
// indentation, line endings, a byte order mark, bytes that are no UTF-8.
//
// Guarantees
//   * Parse refuses what is not JSON with comments, with file and line. Nesting is
//     bounded (kMaxDepth), and so is the size (kMaxText).
//   * What Append put in Remove takes out again, to the same bytes; only of a container
//     that held nothing but blanks the blanks are not known any more, and it becomes
//     `[]` or `{}`.
//   * A change gives a new document, which was parsed: text that does not read back is
//     never handed out.
//
// Own code: what reads hooks and transcripts (agent/json.h) knows no comments, and a
// document that is read and written again loses order, comments and style.
//
// Threads: any; a document does not change.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace belay {

// A value that is to be put into a file.
struct JsonDraft {
  enum class Kind : uint8_t { kString, kInt, kArray, kObject };
  Kind kind = Kind::kObject;
  std::string text = {};
  int64_t number = 0;
  std::vector<JsonDraft> items = {};
  std::vector<std::pair<std::string, JsonDraft>> members = {};

  static JsonDraft String(std::string_view text) {
    return {.kind = Kind::kString, .text = std::string(text)};
  }
  static JsonDraft Int(int64_t number) {
    return {.kind = Kind::kInt, .number = number};
  }
  static JsonDraft Array(std::vector<JsonDraft> items) {
    return {.kind = Kind::kArray, .items = std::move(items)};
  }
  static JsonDraft Object(std::vector<std::pair<std::string, JsonDraft>> members) {
    return {.kind = Kind::kObject, .members = std::move(members)};
  }
};

// A JSON string with its quotes; what is not UTF-8 becomes U+FFFD.
std::string JsonQuoted(std::string_view text);

class Jsonc {
 public:
  using Id = uint32_t;  // of a value; means nothing in another document
  static constexpr Id kNone = UINT32_MAX;
  static constexpr size_t kMaxText = size_t{8} << 20;
  static constexpr size_t kMaxDepth = 100;
  enum class Kind : uint8_t { kObject, kArray, kString, kNumber, kLiteral };

  // `shown` is what messages call the file. Text of nothing but blanks is a document
  // without a root.
  static Result<Jsonc> Parse(std::string text, std::string shown);

  const std::string& text() const { return text_; }
  const std::string& shown() const { return shown_; }
  Id root() const { return nodes_.empty() ? kNone : 0; }
  Kind kind(Id id) const { return nodes_[id].kind; }
  std::vector<Id> Children(Id container) const;
  bool IsEmpty(Id container) const { return nodes_[container].first == kNone; }
  // Nothing but blanks between its brackets.
  bool IsBlank(Id container) const;
  std::string Key(Id member) const;
  std::string_view Text(Id id) const;
  std::optional<std::string> StringOf(Id id) const;  // of a string alone
  size_t Line(Id id) const;                          // from 1
  // "file:line: problem", kInvalid.
  Error At(Id id, std::string_view problem) const;

  // The member of that name, or kNone. It is there twice: kInvalid, since programs
  // disagree about which one counts.
  Result<Id> Member(Id object, std::string_view key) const;

  // --- changes -----------------------------------------------------------------------
  // A new member at the end of an object, or element at the end of an array, in the
  // style of what is there.
  Result<Jsonc> Append(Id object, std::string_view key, const JsonDraft& value) const;
  Result<Jsonc> Append(Id array, const JsonDraft& value) const;
  // Of an object or array: with what is around it that is nobody else's, its comma and
  // the blanks before it. Comments stay.
  Result<Jsonc> Remove(Id child) const;
  Result<Jsonc> Replace(Id id, const JsonDraft& value) const;
  // Of a document without a root.
  Result<Jsonc> SetRoot(const JsonDraft& value) const;

 private:
  friend class JsoncParser;
  struct Node {
    Kind kind = Kind::kLiteral;
    size_t begin = 0, end = 0;          // of the value
    size_t key_begin = 0, key_end = 0;  // of a member's name, with its quotes
    size_t comma = std::string::npos;   // behind it
    Id parent = kNone, next = kNone, first = kNone, last = kNone;
    size_t start() const { return key_end != 0 ? key_begin : begin; }
  };
  struct Style {
    std::string newline, unit;
    bool tight = false;    // no blank behind a colon
    bool inlined = false;  // all of it on one line
  };

  Style StyleOf() const;
  std::string IndentAt(size_t offset) const;
  // Where the blanks before `offset` begin; those in a comment are its own.
  size_t BlanksBefore(size_t offset) const;
  bool EndsLineComment(size_t offset) const;
  Result<Jsonc> Reparsed(std::string text) const;
  Result<Jsonc> AppendText(Id container, const std::string* key,
                           const JsonDraft& value) const;

  // Behind the comments that follow on the same line; whether the last of them goes to
  // its end.
  struct CommentsEnd {
    size_t at = 0;
    bool any = false, to_line_end = false;
  };
  CommentsEnd BehindComments(size_t at) const;

  std::string text_, shown_;
  std::vector<Node> nodes_;
  std::vector<size_t>
      line_comments_;  // where those end that go to a line's end; rising
};

}  // namespace belay
