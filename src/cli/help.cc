#include "cli/help.h"

#include "cli/text.h"

namespace belay {

namespace {

constexpr size_t kWidth = 79;
constexpr size_t kLabel = 26;  // where the help of a flag starts

void AddFlags(std::span<const FlagSpec> flags, std::string& out) {
  for (const FlagSpec& flag : flags) {
    std::string label = "  " + FlagLabel(flag);
    if (label.size() + 2 > kLabel) {
      out += label + "\n" + std::string(kLabel, ' ');
    } else {
      out += Pad(label, kLabel);
    }
    std::string help(flag.help);
    if (flag.repeatable) help += " (may be given more than once)";
    if (!flag.available) help += " (not in this version yet)";
    out += Wrap(help, kLabel, kLabel, kWidth) + "\n";
  }
}

void AddUsage(const CommandSpec& command, std::string& out) {
  std::string_view lead = "Usage: ";
  for (std::string_view usage : command.usage) {
    size_t indent = 7 + 6 + command.name.size() + 1;
    out += StrCat(lead, Wrap(StrCat("belay ", usage), 7, indent, kWidth), "\n");
    lead = "       ";
  }
}

void AddParagraphs(std::string_view text, std::string& out) {
  while (!text.empty()) {
    size_t end = text.find("\n\n");
    out += StrCat("\n", Wrap(text.substr(0, end), 0, 0, kWidth), "\n");
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 2);
  }
}

}  // namespace

std::string FlagLabel(const FlagSpec& flag) {
  std::string label =
      flag.letter == 0 ? "" : StrCat("-", std::string(1, flag.letter), ", ");
  label += flag.name;
  if (!flag.value.empty()) label += StrCat(" ", flag.value);
  return label;
}

std::string OverviewHelp() {
  std::string out =
      "Belay takes a project back to any state a coding agent left it in.\n\n"
      "Usage: belay COMMAND [ARGUMENTS] [FLAGS]\n";
  std::string later;
  for (const CommandGroup& group : CommandGroups()) {
    bool titled = false;
    for (const CommandSpec& command : group.commands) {
      if (command.hidden) continue;
      if (!command.available()) {
        later += StrCat(later.empty() ? "" : ", ", command.name);
        continue;
      }
      if (!titled) out += StrCat("\n", group.title, "\n");
      titled = true;
      out += StrCat("  ", Pad(command.name, 14), command.summary, "\n");
    }
  }
  out += "\nWith every command\n";
  AddFlags(GlobalFlags(), out);
  if (!later.empty())
    out += StrCat("\nNot in this version yet\n  ", Wrap(later, 2, 2, kWidth), "\n");
  out +=
      "\nExample:\n"
      "  belay status          is this directory protected?\n"
      "  belay help config     all about one command\n";
  return out;
}

std::string CommandHelp(const CommandSpec& command) {
  std::string out = StrCat("belay ", command.name, " - ", command.summary, "\n");
  if (!command.available()) out += "(not in this version yet)\n";
  out += "\n";
  AddUsage(command, out);
  AddParagraphs(command.about, out);
  if (!command.flags.empty()) {
    out += "\nFlags:\n";
    AddFlags(command.flags, out);
  }
  out += "\nWith every command:\n";
  AddFlags(GlobalFlags(), out);
  out += command.examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const Example& example : command.examples)
    out += StrCat("  ", example.command, "\n      ", example.about, "\n");
  return out;
}

}  // namespace belay
