#pragma once

// Typed paths. Paths are bytes, not text: they become text only through
// EscapeForDisplay (base/escape.h). A raw std::string path does not cross a module
// boundary.
//
//   Name     one component: not empty, not "." or "..", no '/', no NUL, at most 255
//   bytes RelPath  one or more Names joined by single slashes; any length (over
//   PATH_MAX too) AbsPath  '/' or '/' followed by a RelPath: already lexically clean
//
// Parse() refuses what does not fit and never repairs: "a//b", "a/", "./a" and "a/../b"
// are errors, because two spellings of one path would be two keys.

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace belay {

class Name {
 public:
  static Result<Name> Parse(std::string_view bytes);
  // For names written in the source; a bad one is our bug.
  static Name Literal(std::string_view bytes);

  const std::string& bytes() const { return bytes_; }
  const char* c_str() const { return bytes_.c_str(); }
  auto operator<=>(const Name&) const = default;

 private:
  explicit Name(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes_;
};

// A borrowed Name, for loops over names that are kept elsewhere: a Name for each of a
// hundred thousand files would be a hundred thousand allocations.
class NameRef {
 public:
  NameRef(const Name& name) : bytes_(name.bytes()) {}  // NOLINT: a name is one
  // `bytes` is a valid name, with a NUL behind it, and outlives this.
  static NameRef Known(std::string_view bytes) { return NameRef(bytes); }

  std::string_view bytes() const { return bytes_; }
  const char* c_str() const { return bytes_.data(); }

 private:
  explicit NameRef(std::string_view bytes) : bytes_(bytes) {}
  std::string_view bytes_;
};

// True when `bytes` may stand as one component.
bool IsValidName(std::string_view bytes);

class RelPath {
 public:
  static Result<RelPath> Parse(std::string_view bytes);
  static RelPath Literal(std::string_view bytes);
  RelPath(Name name) : bytes_(name.bytes()) {}  // NOLINT: a name is a path

  const std::string& bytes() const { return bytes_; }
  const char* c_str() const { return bytes_.c_str(); }
  std::vector<std::string_view> Components() const;  // views into this path
  Name basename() const;
  RelPath Join(const RelPath& below) const;
  auto operator<=>(const RelPath&) const = default;

 private:
  explicit RelPath(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes_;
};

class AbsPath {
 public:
  static Result<AbsPath> Parse(std::string_view bytes);
  static AbsPath Literal(std::string_view bytes);
  // Makes `bytes` absolute against `base` and cleans ".", ".." and "//" lexically. For
  // what people type; `..` is resolved by text, so callers who care use Fs::RealPath.
  static Result<AbsPath> Resolve(const AbsPath& base, std::string_view bytes);

  const std::string& bytes() const { return bytes_; }
  const char* c_str() const { return bytes_.c_str(); }
  bool is_root() const { return bytes_ == "/"; }
  AbsPath parent() const;    // "/" is its own parent
  std::string name() const;  // the last piece; empty for "/"
  AbsPath Join(const RelPath& below) const;
  // `this` is `other` or lies beneath it.
  bool IsWithin(const AbsPath& other) const;
  // From `top` on, empty for `top` itself; nothing when it lies elsewhere. By text.
  std::optional<std::string> Below(const AbsPath& top) const;
  auto operator<=>(const AbsPath&) const = default;

 private:
  explicit AbsPath(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string bytes_;
};

}  // namespace belay
