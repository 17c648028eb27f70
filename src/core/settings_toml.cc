// The only file that sees toml++: it is header-only and takes seconds to compile.
//
// toml++ 3.3 asserts on some malformed text instead of reporting it ("[*" is enough),
// and in a build with NDEBUG goes on into undefined behaviour. Its assertions therefore
// stay on and throw; everything it throws ends in FlattenToml as a plain error. Nor
// does it bear every letter outside of quotes (U+023F, U+03FB), and what is outside is
// for malformed text its own opinion: it is never shown one (AsciiToml).
#undef NDEBUG
#include <charconv>
#include <cstdio>
#include <exception>
#include <map>
#include <set>

namespace belay {
namespace {
struct TomlAssertion : std::exception {
  const char* what() const noexcept override { return "malformed text"; }
};
[[noreturn]] void ThrowTomlAssertion() { throw TomlAssertion(); }
}  // namespace
}  // namespace belay

#define TOML_ASSERT(expression) \
  (static_cast<bool>(expression) ? void() : ::belay::ThrowTomlAssertion())
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

#include "base/bytes.h"
#include "base/escape.h"
#include "core/settings_internal.h"

namespace belay {

namespace {

// "Z0y", or the first like it that the text does not have. Found in one pass, lest a
// text that has thousands of them take minutes. No mark begins within another, so that
// none comes about where one meets the text.
std::string FreeMark(std::string_view text) {
  std::set<uint64_t> taken;
  for (size_t at = text.find('Z'); at != text.npos; at = text.find('Z', at + 1)) {
    uint64_t number = 0;
    const char* const text_end = text.data() + text.size();
    auto [end, error] = std::from_chars(text.data() + at + 1, text_end, number);
    if (error == std::errc() && end != text_end && *end == 'y') taken.insert(number);
  }
  uint64_t free = 0;
  while (taken.contains(free)) ++free;
  return "Z" + std::to_string(free) + "y";
}

// Valid UTF-8 as ASCII, with the same lines: each other byte is a mark that the text
// does not have, and two digits.
class AsciiToml {
 public:
  explicit AsciiToml(std::string_view original) : mark_(FreeMark(original)) {
    if (original.starts_with("\xef\xbb\xbf")) original.remove_prefix(3);
    for (char c : original) {
      if (static_cast<unsigned char>(c) < 0x80)
        text_ += c;
      else
        text_ += mark_ + ToHex(AsBytes({&c, 1}));
    }
  }

  std::string_view text() const { return text_; }

  // The way back. What has a mark by escapes and was none of ours stays as it is,
  // unless it reads as text: that its author could have written, too.
  std::string Original(std::string_view part) const {
    std::string out;
    for (size_t at = 0; at < part.size();) {
      std::byte byte{};
      if (part.substr(at).starts_with(mark_) &&
          FromHex(part.substr(at + mark_.size(), 2), {&byte, 1})) {
        out += static_cast<char>(byte);
        at += mark_.size() + 2;
      } else {
        out += part[at++];
      }
    }
    return IsValidUtf8(out) ? out : std::string(part);
  }

 private:
  const std::string mark_;
  std::string text_;
};

TomlValue Convert(const toml::node& node, const AsciiToml& ascii) {
  TomlValue value;
  if (const auto* boolean = node.as_boolean()) {
    value.type = TomlValue::Type::kBool;
    value.boolean = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    value.type = TomlValue::Type::kInt;
    value.integer = integer->get();
  } else if (const auto* text = node.as_string()) {
    value.type = TomlValue::Type::kString;
    value.text = ascii.Original(text->get());
  } else if (const auto* number = node.as_floating_point()) {
    char shown[40];  // for messages alone: no setting takes one
    std::snprintf(shown, sizeof shown, "%.15g", number->get());
    value.text = shown;
  } else if (const auto* array = node.as_array()) {
    value.type = TomlValue::Type::kArray;
    for (const toml::node& item : *array) value.items.push_back(Convert(item, ascii));
  }
  return value;
}

void Flatten(const toml::table& table, const AsciiToml& ascii,
             std::vector<std::string>& path, std::vector<TomlEntry>& out) {
  for (const auto& [key, node] : table) {
    path.push_back(ascii.Original(key.str()));
    if (const toml::table* below = node.as_table()) {
      Flatten(*below, ascii, path, out);
    } else {
      out.push_back({path, key.source().begin.line, Convert(node, ascii)});
    }
    path.pop_back();
  }
}

Error Malformed(std::string_view name, size_t line, std::string_view why) {
  std::string what(name);
  what += ':';
  what += std::to_string(line);
  what += ": not valid TOML: ";
  what += EscapeForDisplay(why.substr(0, 300));
  return Error(Errc::kInvalid, std::move(what));
}

}  // namespace

Result<std::vector<TomlEntry>> FlattenToml(std::string_view text,
                                           std::string_view name) {
  // First, so that the parser below never meets what it cannot bear.
  auto statements = ScanToml(text, name);
  if (!statements.ok()) return std::move(statements).error();

  std::vector<TomlEntry> entries;
  const AsciiToml ascii(text);
  try {
    toml::table table = toml::parse(ascii.text());
    std::vector<std::string> path;
    Flatten(table, ascii, path, entries);
    // The parser takes a key in plain letters and the same one in escapes for two.
    std::map<std::vector<std::string_view>, size_t> lines;
    for (const TomlEntry& entry : entries) {
      auto [first, fresh] =
          lines.try_emplace({entry.path.begin(), entry.path.end()}, entry.line);
      if (!fresh)
        return Malformed(name, std::max(first->second, entry.line),
                         "the key is there twice");
    }
  } catch (const toml::parse_error& error) {
    // Its own words garble a key that has escapes.
    if (error.description().find("cannot redefine existing") != std::string_view::npos)
      return Malformed(name, error.source().begin.line, "the key is there twice");
    return Malformed(name, error.source().begin.line,
                     ascii.Original(error.description()));
  } catch (const TomlAssertion& error) {
    return Malformed(name, 1, error.what());
  }
  return entries;
}

}  // namespace belay
