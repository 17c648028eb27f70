#include "cli/args.h"

#include "base/escape.h"
#include "base/nearest.h"
#include "cli/text.h"

namespace belay {

namespace {

Error Wrong(std::string what, std::string hint = {}) {
  return Error(Errc::kInvalid, std::move(what)).WithHint(std::move(hint));
}

std::string Shown(std::string_view word) {
  return EscapeForDisplay(word.substr(0, 100));
}

bool IsKnownFlag(const CommandSpec& command, std::string_view word) {
  if (word.starts_with("--"))
    return FindFlag(&command, word.substr(0, word.find('='))) != nullptr;
  return word.size() == 2 && word[0] == '-' && FindFlag(&command, word[1]) != nullptr;
}

Status CheckChoice(std::string_view what, std::string_view choices,
                   std::string_view given) {
  if (!IsChoice(choices)) return Ok();
  std::vector<std::string_view> known;
  for (std::string_view left = choices; !left.empty();) {
    size_t bar = left.find('|');
    if (left.substr(0, bar) == given) return Ok();
    known.push_back(left.substr(0, bar));
    left = bar == std::string_view::npos ? std::string_view() : left.substr(bar + 1);
  }
  const std::string_view nearest = NearestWord(given, known);
  return Wrong(StrCat(what, " must be one of ", choices, ", not '", Shown(given), "'"),
               nearest.empty() ? "" : StrCat("did you mean ", nearest, "?"));
}

Status CheckPositional(const CommandSpec& command,
                       const std::vector<std::string_view>& given) {
  size_t at = 0;
  for (const PositionalSpec& spec : command.args) {
    if (at >= given.size()) {
      if (!spec.optional) return Wrong(StrCat("needs ", spec.name));
      return Ok();
    }
    do {
      BELAY_OK(CheckChoice("the argument", spec.name, given[at]));
      ++at;
    } while (spec.many && at < given.size());
  }
  if (at < given.size()) {
    std::string hint;
    if (!command.rest.empty()) hint = StrCat("put ", command.rest, " behind `--`");
    return Wrong(StrCat("too many arguments: '", Shown(given[at]), "'"), hint);
  }
  return Ok();
}

}  // namespace

bool Args::has(std::string_view flag) const { return value(flag).has_value(); }

std::optional<std::string_view> Args::value(std::string_view flag) const {
  for (size_t i = given_.size(); i > 0; --i)
    if (given_[i - 1].flag->name == flag) return given_[i - 1].value;
  return std::nullopt;
}

std::vector<std::string_view> Args::values(std::string_view flag) const {
  std::vector<std::string_view> out;
  for (const Given& one : given_)
    if (one.flag->name == flag) out.push_back(one.value);
  return out;
}

Result<Args> ParseArgs(const CommandSpec& command,
                       std::span<const std::string_view> words) {
  Args args;
  size_t i = 0;
  // The value of a flag: what is attached to it, or the next word.
  auto take_value = [&](std::string_view flag) -> Result<std::string_view> {
    if (i >= words.size() || words[i] == "--" || IsKnownFlag(command, words[i]))
      return Wrong(StrCat(flag, " needs a value"));
    return words[i++];
  };
  auto add = [&](const FlagSpec& flag, std::string_view shown,
                 std::string_view value) -> Status {
    if (!flag.available)
      return Error(Errc::kUnsupported, StrCat("belay ", command.name, " ", shown));
    if (!flag.value.empty() && value.empty())
      return Wrong(StrCat(shown, " needs a value that is not empty"));
    BELAY_OK(CheckChoice(shown, flag.value, value));
    args.given_.push_back({&flag, value});
    return Ok();
  };

  while (i < words.size()) {
    std::string_view word = words[i++];
    if (word == "--") {
      // An id that begins with a dash; what the agent is given comes behind another.
      if (command.rest == "ARG" && args.positional_.empty() && i < words.size()) {
        args.positional_.push_back(words[i++]);
        if (i < words.size() && words[i] == "--") ++i;
      }
      auto& target = command.rest.empty() ? args.positional_ : args.rest_;
      target.insert(target.end(), words.begin() + static_cast<std::ptrdiff_t>(i),
                    words.end());
      break;
    }
    if (word.starts_with("--")) {
      size_t equals = word.find('=');
      std::string_view name = word.substr(0, equals);
      const FlagSpec* flag = FindFlag(&command, name);
      if (flag == nullptr) {
        std::string_view nearest = NearestFlag(&command, name);
        return Wrong(StrCat("unknown flag ", Shown(name)),
                     nearest.empty() ? "" : StrCat("did you mean ", nearest, "?"));
      }
      std::string_view value;
      if (equals != std::string_view::npos) {
        if (flag->value.empty()) return Wrong(StrCat(name, " takes no value"));
        value = word.substr(equals + 1);
      } else if (!flag->value.empty()) {
        BELAY_TRY(value, take_value(name));
      }
      BELAY_OK(add(*flag, name, value));
    } else if (word.size() > 1 && word[0] == '-') {
      // Letters may stand together; the first that wants a value takes the rest.
      for (size_t at = 1; at < word.size(); ++at) {
        const FlagSpec* flag = FindFlag(&command, word[at]);
        std::string shown = StrCat("-", Shown(word.substr(at, 1)));
        if (flag == nullptr) {
          return Wrong(StrCat("unknown flag ", shown),
                       "an argument that starts with a dash comes after `--`");
        }
        if (flag->value.empty()) {
          BELAY_OK(add(*flag, shown, {}));
          continue;
        }
        std::string_view value = word.substr(at + 1);
        if (value.empty()) {
          BELAY_TRY(value, take_value(shown));
        }
        BELAY_OK(add(*flag, shown, value));
        break;
      }
    } else {
      args.positional_.push_back(word);
    }
  }
  BELAY_OK(CheckPositional(command, args.positional_));
  if (command.rest == "COMMAND" && args.rest_.empty())
    return Wrong("needs a COMMAND behind `--`");
  return args;
}

bool MentionsFlag(std::span<const std::string_view> words, const FlagSpec& flag) {
  for (std::string_view word : words) {
    if (word == "--") return false;
    if (word == flag.name) return true;
    bool letters = word.size() > 1 && word[0] == '-' && word[1] != '-';
    if (!letters || flag.letter == 0) continue;
    // Letters may stand together. Behind one that only the command knows, the rest may
    // be its value.
    for (char letter : word.substr(1)) {
      if (letter == flag.letter) return true;
      const FlagSpec* other = FindFlag(nullptr, letter);
      if (other == nullptr || !other->value.empty()) break;
    }
  }
  return false;
}

}  // namespace belay
