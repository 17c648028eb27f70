#include "cli/help.h"
#include "cli/text.h"
#include "core/settings_table.h"

namespace belay {

namespace {

std::string Words(std::string_view choices) {
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
    return Words(command.args[0].name);
  return {};
}

bool TakesFiles(std::string_view placeholder) {
  return placeholder == "DIR" || placeholder == "FILE" || placeholder == "PATH" ||
         placeholder == "OLD";
}

std::string Bash() {
  std::string out =
      "# bash completion for belay; written by `belay completions bash`\n"
      "_belay() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command= i words= flags=\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      --root) i=$((i + 1)) ;;\n"
      "      -*) ;;\n"
      "      *) command=${COMP_WORDS[i]}; break ;;\n"
      "    esac\n"
      "  done\n"
      "  case $command:$prev in\n"
      "    *:--root) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n";
  ForEachCommand([&](const CommandSpec& command) {
    ForEachFlag(command, [&](const FlagSpec& flag) {
      if (flag.value.empty()) return;
      std::string how = IsChoice(flag.value) ? StrCat("-W '", Words(flag.value), "'")
                        : TakesFiles(flag.value) ? "-f"
                                                 : "-W ''";
      out += StrCat("    ", command.name, ":", flag.name, ") COMPREPLY=($(compgen ",
                    how, " -- \"$cur\")); return ;;\n");
    });
  });
  out +=
      "  esac\n"
      "  case $command in\n";
  out += StrCat("    '') words='", CommandNames(), "'; flags='--version' ;;\n");
  ForEachCommand([&](const CommandSpec& command) {
    out += StrCat("    ", command.name, ") words='", ArgumentWords(command),
                  "'; flags='", FlagNames(command.flags), "' ;;\n");
  });
  out += StrCat(
      "  esac\n"
      "  if [[ $cur == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags ",
      FlagNames(GlobalFlags()),
      "\" -- \"$cur\"))\n"
      "  elif [[ $words ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "  else\n"
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
    value = IsChoice(flag.value) ? StrCat(":value:(", Words(flag.value), ")")
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
      "  _arguments -C '--version[show the version]' '1:command:->command' "
      "'*::argument:->argument'\n"
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
      out += StrCat(" \\\n        '1:argument:(", words, ")'");
    } else if (!command.args.empty() || !command.rest.empty()) {
      out += " \\\n        '*:argument:_files'";
    }
    out += " ;;\n";
  });
  out +=
      "      esac ;;\n"
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
    if (IsChoice(flag.value)) out += StrCat(" -a ", Quote(Words(flag.value)));
  }
  return out + StrCat(" -d ", Quote(flag.help, "\\"), "\n");
}

std::string Fish() {
  std::string out =
      "# fish completion for belay; written by `belay completions fish`\n"
      "complete -c belay -n __fish_use_subcommand -f\n"
      "complete -c belay -n __fish_use_subcommand -l version -d 'show the version'\n";
  for (const FlagSpec& flag : GlobalFlags()) out += FishFlag("", flag);
  ForEachCommand([&](const CommandSpec& command) {
    out += StrCat("complete -c belay -n __fish_use_subcommand -a ", command.name,
                  " -d ", Quote(command.summary, "\\"), "\n");
    std::string condition =
        StrCat(" -n '__fish_seen_subcommand_from ", command.name, "'");
    ForEachFlag(command,
                [&](const FlagSpec& flag) { out += FishFlag(condition, flag); });
    std::string words = ArgumentWords(command);
    if (!words.empty())
      out += StrCat("complete -c belay", condition, " -f -a ", Quote(words), "\n");
  });
  return out;
}

}  // namespace

std::string CompletionScript(std::string_view shell) {
  if (shell == "bash") return Bash();
  return shell == "zsh" ? Zsh() : Fish();
}

}  // namespace belay
