#include <algorithm>

#include "agent/install_trust_internal.h"
#include "base/mutant.h"
#include "base/sha256.h"
#include "core/toml.h"

namespace belay {

namespace {

using Path = std::vector<std::string>;

// "PreToolUse" -> "pre_tool_use"
std::string SnakeCase(std::string_view name) {
  std::string out;
  for (char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += '_';
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

// Codex's own: what is not said is ten minutes, and two events get three seconds.
int64_t EffectiveTimeout(const RegisteredHook& hook) {
  const int64_t asked = hook.timeout.value_or(600);
  const bool brief = hook.event == "SessionEnd" || hook.event == "Interrupt";
  return brief ? std::min<int64_t>(asked, 3) : asked;
}

Path StampPath(const TrustStamp& stamp) {
  return {"hooks", "state", stamp.key, "trusted_hash"};
}

const TomlEntry* FindEntry(const std::vector<TomlEntry>& entries, const Path& path) {
  for (const TomlEntry& entry : entries)
    if (entry.path == path) return &entry;
  return nullptr;
}

Error CannotStamp(std::string_view shown, std::string_view why) {
  std::string what(shown);
  what += ": ";
  what += why;
  return Error(Errc::kRefused, std::move(what))
      .WithHint("start codex and enter /hooks to trust them there");
}

// The table of one stamp, as statements of the text.
struct StampTable {
  const TomlStatement* header = nullptr;
  const TomlStatement* hash = nullptr;
  size_t others = 0;                    // keys besides
  const TomlStatement* next = nullptr;  // header behind
};

StampTable FindTable(const std::vector<TomlStatement>& statements,
                     const TrustStamp& stamp) {
  StampTable out;
  const Path header = {"hooks", "state", stamp.key};
  for (const TomlStatement& statement : statements) {
    if (statement.header) {
      if (out.header != nullptr && out.next == nullptr) out.next = &statement;
      if (!statement.array_header && statement.path == header) out.header = &statement;
    } else if (out.header != nullptr && out.next == nullptr) {
      if (statement.path == Path{"trusted_hash"})
        out.hash = &statement;
      else
        ++out.others;
    }
  }
  return out;
}

size_t LineEnd(std::string_view text, size_t at) {
  const size_t end = text.find('\n', at);
  return end == std::string_view::npos ? text.size() : end + 1;
}
size_t LineBegin(std::string_view text, size_t at) {
  const size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return before == std::string_view::npos ? 0 : before + 1;
}

// Nothing else may have come to mean something else.
Status CheckRest(const std::vector<TomlEntry>& before, std::string_view after,
                 std::string_view shown, const std::vector<TrustStamp>& stamps,
                 bool stamped) {
  auto now = FlattenToml(after, shown);
  if (!now.ok()) return CannotStamp(shown, "the stamps do not fit into this file");
  auto is_stamp = [&](const TomlEntry& entry) {
    return std::any_of(stamps.begin(), stamps.end(), [&](const TrustStamp& stamp) {
      return entry.path == StampPath(stamp);
    });
  };
  auto rest = [&](const std::vector<TomlEntry>& entries) {
    std::vector<std::pair<Path, TomlValue>> out;
    for (const TomlEntry& entry : entries)
      if (!is_stamp(entry)) out.emplace_back(entry.path, entry.value);
    std::sort(out.begin(), out.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return out;
  };
  if (rest(before) != rest(*now))
    return CannotStamp(shown, "the stamps do not fit into this file");
  if (!stamped) return Ok();
  for (const TrustStamp& stamp : stamps) {
    const TomlEntry* entry = FindEntry(*now, StampPath(stamp));
    if (entry == nullptr || entry->value.text != stamp.hash)
      return CannotStamp(shown, "the stamps do not fit into this file");
  }
  return Ok();
}

}  // namespace

std::string CodexHookHash(const RegisteredHook& hook) {
  // Compact JSON, names in order, as Codex writes it down to hash it.
  std::string json =
      "{\"event_name\":" + JsonQuoted(SnakeCase(hook.event)) +
      ",\"hooks\":[{\"async\":false,\"command\":" + JsonQuoted(hook.command) +
      ",\"timeout\":" + std::to_string(EffectiveTimeout(hook)) +
      ",\"type\":\"command\"}]";
  if (hook.matcher) json += ",\"matcher\":" + JsonQuoted(*hook.matcher);
  json += '}';
  return "sha256:" + Sha256::Of(AsBytes(json)).hex();
}

std::vector<TrustStamp> TrustStampsOf(const std::vector<RegisteredHook>& hooks,
                                      const AbsPath& file) {
  std::vector<TrustStamp> out;
  for (const RegisteredHook& hook : hooks) {
    // Whatever else such a command does, nobody asked us to let it.
    if (hook.changed && !BELAY_MUTANT("install-trusts-changed-hooks")) continue;
    out.push_back({file.bytes() + ":" + SnakeCase(hook.event) + ":" +
                       std::to_string(hook.group) + ":" + std::to_string(hook.position),
                   CodexHookHash(hook)});
  }
  return out;
}

Result<size_t> CountTrusted(std::string_view toml, std::string_view shown,
                            const std::vector<TrustStamp>& stamps) {
  BELAY_TRY(auto entries, FlattenToml(toml, shown));
  size_t count = 0;
  for (const TrustStamp& stamp : stamps) {
    const TomlEntry* entry = FindEntry(entries, StampPath(stamp));
    if (entry != nullptr && entry->value.text == stamp.hash) ++count;
  }
  return count;
}

Result<std::string> AddTrust(std::string_view toml, std::string_view shown,
                             const std::vector<TrustStamp>& stamps) {
  BELAY_TRY(auto entries, FlattenToml(toml, shown));
  const std::string newline =
      toml.find("\r\n") == std::string_view::npos ? "\n" : "\r\n";
  std::string text(toml);
  for (const TrustStamp& stamp : stamps) {
    const TomlEntry* entry = FindEntry(entries, StampPath(stamp));
    if (entry != nullptr && entry->value.text == stamp.hash) continue;
    BELAY_TRY(auto statements, ScanToml(text, shown));
    const StampTable table = FindTable(statements, stamp);
    const std::string hash = TomlString(stamp.hash);
    if (table.hash != nullptr) {
      text.replace(table.hash->value_begin, table.hash->end - table.hash->value_begin,
                   hash);
    } else if (entry != nullptr) {
      return CannotStamp(shown, "the stamps are written in a way that is not known");
    } else if (table.header != nullptr) {
      const size_t at = LineEnd(text, table.header->end);
      const bool open = at > 0 && text[at - 1] != '\n';
      text.insert(at, (open ? newline : "") + "trusted_hash = " + hash + newline);
    } else {
      if (!text.empty() && text.back() != '\n') text += newline;
      if (!text.empty()) text += newline;
      text += "[hooks.state." + TomlString(stamp.key) + "]" + newline +
              "trusted_hash = " + hash + newline;
    }
  }
  BELAY_OK(CheckRest(entries, text, shown, stamps, /*stamped=*/true));
  return text;
}

Result<std::string> RemoveTrust(std::string_view toml, std::string_view shown,
                                const std::vector<TrustStamp>& stamps) {
  BELAY_TRY(auto entries, FlattenToml(toml, shown));
  std::string text(toml);
  for (const TrustStamp& stamp : stamps) {
    const TomlEntry* entry = FindEntry(entries, StampPath(stamp));
    if (entry == nullptr || entry->value.text != stamp.hash) continue;
    BELAY_TRY(auto statements, ScanToml(text, shown));
    const StampTable table = FindTable(statements, stamp);
    if (table.hash == nullptr)
      return CannotStamp(shown, "the stamps are written in a way that is not known");
    size_t begin = LineBegin(text, table.hash->begin);
    const size_t end = LineEnd(text, table.hash->end);
    const std::string_view between =
        std::string_view(text).substr(table.header->end, begin - table.header->end);
    if (table.others == 0 && between.find('#') == std::string_view::npos) {
      begin = LineBegin(text, table.header->begin);
      // The empty line that AddTrust put before it.
      const size_t above = LineBegin(text, begin == 0 ? 0 : begin - 1);
      if (begin > 0 && text.substr(above, begin - above).find_first_not_of("\r\n") ==
                           std::string::npos)
        begin = above;
    }
    text.erase(begin, end - begin);
  }
  BELAY_OK(CheckRest(entries, text, shown, stamps, /*stamped=*/false));
  return text;
}

}  // namespace belay
