// The only file that sees toml++: it is header-only and takes seconds to compile.
//
// toml++ 3.3 asserts on some malformed text instead of reporting it ("[*" is enough),
// and in a build with NDEBUG goes on into undefined behaviour. Its assertions therefore
// stay on and throw; everything it throws ends in FlattenToml as a plain error.
#undef NDEBUG
#include <cstdio>
#include <exception>

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

#include "base/escape.h"
#include "core/settings_internal.h"

namespace belay {

namespace {

TomlValue Convert(const toml::node& node) {
  TomlValue value;
  if (const auto* boolean = node.as_boolean()) {
    value.type = TomlValue::Type::kBool;
    value.boolean = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    value.type = TomlValue::Type::kInt;
    value.integer = integer->get();
  } else if (const auto* text = node.as_string()) {
    value.type = TomlValue::Type::kString;
    value.text = text->get();
  } else if (const auto* number = node.as_floating_point()) {
    char shown[40];  // for messages alone: no setting takes one
    std::snprintf(shown, sizeof shown, "%.15g", number->get());
    value.text = shown;
  } else if (const auto* array = node.as_array()) {
    value.type = TomlValue::Type::kArray;
    for (const toml::node& item : *array) value.items.push_back(Convert(item));
  }
  return value;
}

void Flatten(const toml::table& table, std::vector<std::string>& path,
             std::vector<TomlEntry>& out) {
  for (const auto& [key, node] : table) {
    path.emplace_back(key.str());
    if (const toml::table* below = node.as_table()) {
      Flatten(*below, path, out);
    } else {
      out.push_back({path, key.source().begin.line, Convert(node)});
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
  try {
    toml::table table = toml::parse(text);
    std::vector<std::string> path;
    Flatten(table, path, entries);
  } catch (const toml::parse_error& error) {
    return Malformed(name, error.source().begin.line, error.description());
  } catch (const TomlAssertion& error) {
    return Malformed(name, 1, error.what());
  }
  return entries;
}

}  // namespace belay
