#include <algorithm>
#include <vector>

#include "cli/help.h"
#include "cli/text.h"
#include "core/settings_table.h"

namespace belay {

namespace {

std::string ChoiceWords(std::string_view choices) {
  std::string out(choices);
  for (char& c : out)
    if (c == '|') c = ' ';
  return out;
}

template <class Do>
void ForEachCommand(Do&& work) {
  for (const CommandGroup& group : CommandGroups())
    for (const CommandSpec& command : group.commands)
      if (!command.hidden && command.available()) work(command);
}
template <class Do>
void ForEachFlag(const CommandSpec& command, Do&& work) {
  for (const FlagSpec& flag : command.flags)
    if (flag.available) work(flag);
}

std::string CommandNames() {
  std::string out;
  ForEachCommand([&](const CommandSpec& command) {
    out += StrCat(out.empty() ? "" : " ", command.name);
  });
  return out;
}

std::string SettingKeys() {
  std::string out;
  for (const SettingInfo& info : SettingTable())
    out += StrCat(out.empty() ? "" : " ", info.key);
  return out;
}

std::string FlagNames(std::span<const FlagSpec> flags) {
  std::string out;
  for (const FlagSpec& flag : flags) {
    if (!flag.available) continue;
    out += StrCat(out.empty() ? "" : " ", flag.name);
    if (flag.letter != 0) out += StrCat(" -", std::string(1, flag.letter));
  }
  return out;
}

// The words an argument can be, or empty for a file name.
std::string ArgumentWords(const CommandSpec& command) {
  if (command.name == "config") return SettingKeys();
  if (command.name == "help") return CommandNames();
  if (!command.args.empty() && IsChoice(command.args[0].name))
    return ChoiceWords(command.args[0].name);
  return {};
}

bool TakesFiles(std::string_view placeholder) {
  return placeholder == "DIR" || placeholder == "FILE" || placeholder == "PATH" ||
         placeholder == "OLD";
}

// Something that is no flag may be a file here.
bool ArgumentsAreFiles(const CommandSpec& command) {
  for (const PositionalSpec& arg : command.args)
    if (TakesFiles(arg.name)) return true;
  return !command.rest.empty();
}

// How many arguments come before the first that may be a file: checkpoints, mostly.
size_t ArgumentsBeforeFiles(const CommandSpec& command) {
  size_t count = 0;
  for (const PositionalSpec& arg : command.args) {
    if (TakesFiles(arg.name)) break;
    ++count;
  }
  return count;
}

// The words hold for every argument, not for the first alone.
bool WordsRepeat(const CommandSpec& command) {
  return !command.args.empty() && command.args[0].many;
}

// Every flag that takes the next word, of whatever command.
std::vector<std::string> ValueFlags() {
  std::vector<std::string> out;
  auto add = [&](const FlagSpec& flag) {
    if (flag.value.empty()) return;
    std::vector<std::string> names = {std::string(flag.name)};
    if (flag.letter != 0) names.push_back(StrCat("-", std::string(1, flag.letter)));
    for (std::string& name : names)
      if (std::find(out.begin(), out.end(), name) == out.end())
        out.push_back(std::move(name));
  };
  for (const FlagSpec& flag : GlobalFlags()) add(flag);
  ForEachCommand([&](const CommandSpec& command) { ForEachFlag(command, add); });
  return out;
}

std::string Join(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += StrCat(out.empty() ? "" : between, word);
  return out;
}

// What a setting can be set to, where that is one of a few words.
std::string SettingValues(const SettingInfo& info) {
  if (!info.choices.empty()) return ChoiceWords(info.choices);
  return std::holds_alternative<bool Settings::*>(info.field) ? "true false" : "";
}

std::string Bash() {
  std::string out = StrCat(
      "# bash completion for belay; written by `belay completions bash`\n"
      "_belay() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command= first= i count=0 words= flags= files= again= paths=\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      ",
      Join(ValueFlags(), "|"),
      ") i=$((i + 1)) ;;\n"
      "      --) paths=1 ;;\n"
      "      -*) ;;\n"
      "      *)\n"
      "        if [[ ! $command ]]; then command=${COMP_WORDS[i]}\n"
      "        else [[ $first ]] || first=${COMP_WORDS[i]}; count=$((count + 1)); fi "
      ";;\n"
      "    esac\n"
      "  done\n"
      "  case $command:$prev in\n"
      "    *:--root) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n");
  ForEachCommand([&](const CommandSpec& command) {
    ForEachFlag(command, [&](const FlagSpec& flag) {
      if (flag.value.empty()) return;
      std::string how = IsChoice(flag.value)
                            ? StrCat("-W '", ChoiceWords(flag.value), "'")
                        : TakesFiles(flag.value) ? "-f"
                                                 : "-W ''";
      out += StrCat("    ", command.name, ":", flag.name);
      if (flag.letter != 0)
        out += StrCat("|", command.name, ":-", std::string(1, flag.letter));
      out += StrCat(") COMPREPLY=($(compgen ", how, " -- \"$cur\")); return ;;\n");
    });
  });
  out +=
      "  esac\n"
      "  case $command in\n";
  out += StrCat("    '') words='", CommandNames(), "' ;;\n");
  ForEachCommand([&](const CommandSpec& command) {
    out += StrCat("    ", command.name, ") words='", ArgumentWords(command),
                  "' flags='", FlagNames(command.flags), "'");
    if (ArgumentsAreFiles(command))
      out += StrCat(" files=", std::to_string(ArgumentsBeforeFiles(command)));
    if (WordsRepeat(command)) out += " again=1";
    out += " ;;\n";
  });
  out +=
      "  esac\n"
      "  ((count > 0)) && [[ ! $again ]] && words=\n"
      "  case $command:$count:$first in\n";
  for (const SettingInfo& info : SettingTable())
    if (std::string values = SettingValues(info); !values.empty())
      out += StrCat("    config:1:", info.key, ") words='", values, "' ;;\n");
  out += StrCat(
      "  esac\n"
      "  if [[ $cur == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags ",
      FlagNames(GlobalFlags()),
      "\" -- \"$cur\"))\n"
      "  elif [[ $words ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "  elif [[ $files ]] && ((paths || count >= files)); then\n"
      "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _belay belay\n");
  return out;
}

// Inside single quotes; `also` are characters the place gives a meaning of their own.
std::string Quote(std::string_view text, std::string_view also = {}) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (also.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  out += '\'';
  return out;
}

std::string ZshFlag(const FlagSpec& flag) {
  constexpr std::string_view kSpecial = "[]:\\";
  std::string value;
  if (!flag.value.empty()) {
    std::string_view how = TakesFiles(flag.value) ? "_files" : "";
    value = IsChoice(flag.value) ? StrCat(":value:(", ChoiceWords(flag.value), ")")
                                 : StrCat(":", flag.value, ":", how);
  }
  std::string help = Quote(flag.help, kSpecial);
  help = help.substr(1, help.size() - 2);
  std::string_view again = flag.repeatable ? "*" : "";
  std::string out = StrCat(" \\\n        '", again, flag.name,
                           flag.value.empty() ? "" : "=", "[", help, "]", value, "'");
  if (flag.letter != 0)
    out += StrCat(" \\\n        '", again, "-", std::string(1, flag.letter), "[", help,
                  "]", value, "'");
  return out;
}

std::string Zsh() {
  std::string out =
      "#compdef belay\n"
      "# zsh completion for belay; written by `belay completions zsh`\n"
      "_belay() {\n"
      "  local -a commands\n"
      "  local curcontext=$curcontext context state state_descr line\n"
      "  local -A opt_args\n"
      "  commands=(\n";
  ForEachCommand([&](const CommandSpec& command) {
    out += StrCat("    ", Quote(StrCat(command.name, ":", command.summary)), "\n");
  });
  out +=
      "  )\n"
      "  _arguments -C '1:command:->command' '*::argument:->argument'";
  for (const FlagSpec& flag : GlobalFlags()) out += ZshFlag(flag);
  out +=
      "\n"
      "  case $state in\n"
      "    command) _describe command commands ;;\n"
      "    argument)\n"
      "      case $line[1] in\n";
  ForEachCommand([&](const CommandSpec& command) {
    out += StrCat("      ", command.name, ") _arguments");
    ForEachFlag(command, [&](const FlagSpec& flag) { out += ZshFlag(flag); });
    for (const FlagSpec& flag : GlobalFlags()) out += ZshFlag(flag);
    std::string words = ArgumentWords(command);
    if (!words.empty()) {
      std::string_view place = WordsRepeat(command) ? "*" : "1";
      out += StrCat(" \\\n        '", place, ":argument:(", words, ")'");
      if (command.name == "config") out += " \\\n        '2:value:_belay_values'";
    } else if (ArgumentsAreFiles(command)) {
      for (size_t i = 1; i <= ArgumentsBeforeFiles(command); ++i)
        out += StrCat(" \\\n        '", std::to_string(i), "::checkpoint: '");
      out += " \\\n        '*:argument:_files'";
    }
    out += " ;;\n";
  });
  out +=
      "      esac ;;\n"
      "  esac\n"
      "}\n"
      "_belay_values() {\n"
      "  case ${${(@)words[2,-1]:#-*}[1]} in\n";
  for (const SettingInfo& info : SettingTable())
    if (std::string values = SettingValues(info); !values.empty())
      out += StrCat("    ", info.key, ") compadd ", values, " ;;\n");
  out +=
      "  esac\n"
      "}\n"
      // Both ways of use: autoloaded from $fpath, and sourced.
      "if [ \"$funcstack[1]\" = _belay ]; then _belay \"$@\"; else compdef _belay "
      "belay; "
      "fi\n";
  return out;
}

std::string FishFlag(std::string_view condition, const FlagSpec& flag) {
  std::string out = StrCat("complete -c belay", condition, " -l ", flag.name.substr(2));
  if (flag.letter != 0) out += StrCat(" -s ", std::string(1, flag.letter));
  if (!flag.value.empty()) {
    out += TakesFiles(flag.value) ? " -r -F" : " -x";
    if (IsChoice(flag.value)) out += StrCat(" -a ", Quote(ChoiceWords(flag.value)));
  }
  return out + StrCat(" -d ", Quote(flag.help, "\\"), "\n");
}

std::string Fish() {
  std::string out = StrCat(
      "# fish completion for belay; written by `belay completions fish`\n"
      "# __belay_at COMMAND [COUNT [FIRST]]: the command on the line is COMMAND, '' "
      "for\n"
      "# none yet; COUNT arguments are there already, and the first is FIRST.\n"
      "function __belay_at\n"
      "  set -l tokens (commandline -opc)\n"
      "  set -l words\n"
      "  set -l skip 0\n"
      "  for token in $tokens[2..-1]\n"
      "    if test $skip = 1\n"
      "      set skip 0\n"
      "      continue\n"
      "    end\n"
      "    switch $token\n"
      "      case ",
      Join(ValueFlags(), " "),
      "\n"
      "        set skip 1\n"
      "      case '-*'\n"
      "      case '*'\n"
      "        set -a words $token\n"
      "    end\n"
      "  end\n"
      "  if test -z \"$argv[1]\"\n"
      "    test (count $words) -eq 0\n"
      "    return\n"
      "  end\n"
      "  test \"$words[1]\" = \"$argv[1]\"; or return\n"
      "  set -q argv[2]; or return 0\n"
      "  test (count $words) -eq (math 1 + $argv[2]); or return\n"
      "  set -q argv[3]; or return 0\n"
      "  test \"$words[2]\" = \"$argv[3]\"\n"
      "end\n"
      "# __belay_from COMMAND COUNT: the same, with COUNT arguments or more, or a --.\n"
      "function __belay_from\n"
      "  __belay_at $argv[1]; or return\n"
      "  contains -- -- (commandline -opc); and return\n"
      "  for less in (seq 0 (math $argv[2] - 1))\n"
      "    __belay_at $argv[1] $less; and return 1\n"
      "  end\n"
      "  return 0\n"
      "end\n"
      "complete -c belay -f\n");
  for (const FlagSpec& flag : GlobalFlags()) out += FishFlag("", flag);
  ForEachCommand([&](const CommandSpec& command) {
    out += StrCat("complete -c belay -n \"__belay_at ''\" -a ", command.name, " -d ",
                  Quote(command.summary, "\\"), "\n");
    std::string condition = StrCat(" -n '__belay_at ", command.name, "'");
    ForEachFlag(command,
                [&](const FlagSpec& flag) { out += FishFlag(condition, flag); });
    std::string words = ArgumentWords(command);
    std::string_view count = WordsRepeat(command) ? "" : " 0";
    if (!words.empty())
      out += StrCat("complete -c belay -n '__belay_at ", command.name, count, "' -a ",
                    Quote(words), "\n");
    else if (ArgumentsAreFiles(command))
      out += StrCat("complete -c belay -n '__belay_from ", command.name, " ",
                    std::to_string(ArgumentsBeforeFiles(command)), "' -F\n");
  });
  for (const SettingInfo& info : SettingTable())
    if (std::string values = SettingValues(info); !values.empty())
      out += StrCat("complete -c belay -n '__belay_at config 1 ", info.key, "' -a ",
                    Quote(values), "\n");
  return out;
}

}  // namespace

std::string CompletionScript(std::string_view shell) {
  if (shell == "bash") return Bash();
  return shell == "zsh" ? Zsh() : Fish();
}

}  // namespace belay
