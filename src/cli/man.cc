#include "belay_version.h"
#include "cli/help.h"
#include "cli/text.h"
#include "core/settings_table.h"

namespace belay {

namespace {

// Text for roff: a dash that can be copied, no request at the start of a line.
std::string Roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '^':
        out += "\\(ha";
        break;
      default:
        out += c;
    }
  }
  if (out.starts_with('.')) out.insert(0, "\\&");
  return out;
}

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  return out;
}

// No date: the same sources make the same page.
std::string Title(std::string_view name) {
  return StrCat(".TH \"", Roff(Upper(name)), "\" 1 \"\" \"Belay ", kBelayVersion,
                "\" \"Belay\"\n");
}

void AddManFlags(std::span<const FlagSpec> flags, std::string& out) {
  for (const FlagSpec& flag : flags) {
    out += ".TP\n";
    if (flag.letter != 0) {
      out += "\\fB\\-";
      out += flag.letter;
      out += "\\fR, ";
    }
    out += StrCat("\\fB", Roff(flag.name), "\\fR");
    if (!flag.value.empty()) out += StrCat(" \\fI", Roff(flag.value), "\\fR");
    out += StrCat("\n", Roff(flag.help));
    if (flag.repeatable) out += "; may be given more than once";
    if (!flag.available) out += "; not in this version yet";
    out += ".\n";
  }
}

// A full stop, where the text does not end as a sentence already.
std::string Sentence(std::string_view text) {
  bool ended = text.ends_with('?') || text.ends_with('!') || text.ends_with('.');
  return StrCat(Roff(text), ended ? "\n" : ".\n");
}

void AddExamples(std::span<const Example> examples, std::string& out) {
  out += ".SH EXAMPLES\n";
  for (const Example& example : examples)
    out +=
        StrCat(".TP\n\\fB", Roff(example.command), "\\fR\n", Sentence(example.about));
}

void AddExitStatus(std::string& out) {
  out +=
      ".SH \"EXIT STATUS\"\n"
      ".TP\n0\nDone.\n"
      ".TP\n1\nRefused, or a problem was found.\n"
      ".TP\n2\nWrong usage, or not in this version yet.\n"
      ".TP\n3\nThe store is damaged.\n"
      ".TP\n4\nBusy.\n"
      ".TP\n5\nOut of space.\n";
}

}  // namespace

std::string OverviewManPage() {
  std::string out = Title("belay");
  out +=
      ".SH NAME\nbelay \\- take a project back to any state a coding agent left it in\n"
      ".SH SYNOPSIS\n.B belay\n.I COMMAND\n[\\fIARGUMENTS\\fR] [\\fIFLAGS\\fR]\n"
      ".SH DESCRIPTION\n"
      "Belay records the states that coding agents leave a directory in, by edit tool "
      "or "
      "by shell, in git or not, and takes the directory back to any of them.\n";
  for (const CommandGroup& group : CommandGroups()) {
    out += StrCat(".SS \"", Roff(group.title), "\"\n");
    for (const CommandSpec& command : group.commands) {
      if (command.hidden) continue;
      out += StrCat(".TP\n\\fBbelay\\-", Roff(command.name), "\\fR(1)\n");
      out += command.available()
                 ? Sentence(command.summary)
                 : StrCat(Roff(command.summary), "; not in this version yet.\n");
    }
  }
  out += ".SH OPTIONS\nWith every command:\n";
  AddManFlags(GlobalFlags(), out);
  out +=
      ".SH SETTINGS\n"
      "Read from \\fI$XDG_CONFIG_HOME/belay/config.toml\\fR, and from "
      "\\fI.belay.toml\\fR in the protected directory over it. Keys marked * are read "
      "from your own file only.\n";
  Settings defaults;
  for (const SettingInfo& info : SettingTable()) {
    std::string value = SettingText(defaults, info);
    out += StrCat(".TP\n\\fB", Roff(info.key), "\\fR", info.user_only ? " *" : "", "\n",
                  Roff(info.help));
    if (!info.choices.empty()) out += StrCat(" (", Roff(info.choices), ")");
    out += StrCat(". Default: ", Roff(value), "\n");
  }
  out +=
      ".TP\n\\fBtools.\\fINAME\\fR\nfalse: no checkpoints for that tool of an agent. "
      "Default: true\n";
  out +=
      ".SH ENVIRONMENT\n"
      ".TP\n.B BELAY_HOME\nwhere the store is, from / on. Default: "
      "\\fI$XDG_DATA_HOME/belay\\fR, or \\fI\\(ti/.local/share/belay\\fR\n"
      ".TP\n.B BELAY_CONFIG\nyour settings file, from / on.\n"
      ".TP\n.B NO_COLOR\nno colours, when it is set.\n";
  AddExitStatus(out);
  out +=
      ".SH EXAMPLES\n"
      ".TP\n\\fBbelay status\\fR\nIs this directory protected?\n"
      ".TP\n\\fBbelay help config\\fR\nAll about one command.\n";
  return out;
}

std::string CommandManPage(const CommandSpec& command) {
  std::string name = StrCat("belay-", command.name);
  std::string out = Title(name);
  out += StrCat(".SH NAME\n", Roff(name), " \\- ", Roff(command.summary), "\n");
  out += ".SH SYNOPSIS\n";
  for (std::string_view usage : command.usage) {
    if (usage != command.usage.front()) out += ".br\n";
    out += StrCat("\\fBbelay\\fR ", Roff(usage), "\n");
  }
  out += ".SH DESCRIPTION\n";
  if (!command.available()) out += "Not in this version yet.\n.PP\n";
  std::string_view about = command.about;
  while (!about.empty()) {
    size_t end = about.find("\n\n");
    out += StrCat(Roff(about.substr(0, end)), "\n");
    about = end == std::string_view::npos ? std::string_view() : about.substr(end + 2);
    if (!about.empty()) out += ".PP\n";
  }
  out += ".SH OPTIONS\n";
  AddManFlags(command.flags, out);
  AddManFlags(GlobalFlags(), out);
  AddExitStatus(out);
  AddExamples(command.examples, out);
  out += ".SH \"SEE ALSO\"\n.BR belay (1)\n";
  return out;
}

}  // namespace belay
