#pragma once

// Texts made from the command table, all within 80 columns.

#include <string>

#include "cli/command_table.h"

namespace belay {

std::string OverviewHelp();                           // belay --help
std::string CommandHelp(const CommandSpec& command);  // belay COMMAND --help

std::string OverviewManPage();                           // belay.1, as roff
std::string CommandManPage(const CommandSpec& command);  // belay-COMMAND.1

// The script for "bash", "zsh" or "fish". Only what this version can do is offered.
std::string CompletionScript(std::string_view shell);

// "-m, --name NAME"
std::string FlagLabel(const FlagSpec& flag);

}  // namespace belay
