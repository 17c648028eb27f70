#pragma once

// The commands of this version, one file each: cmd_<name>.cc.

#include "cli/context.h"

namespace belay {

ExitCode CmdAnchor(CommandContext& ctx);
ExitCode CmdCat(CommandContext& ctx);
ExitCode CmdCheckpoint(CommandContext& ctx);
ExitCode CmdCompletions(CommandContext& ctx);
ExitCode CmdConfig(CommandContext& ctx);
ExitCode CmdDelete(CommandContext& ctx);
ExitCode CmdDemo(CommandContext& ctx);
ExitCode CmdDiff(CommandContext& ctx);
ExitCode CmdDoctor(CommandContext& ctx);
ExitCode CmdDu(CommandContext& ctx);
ExitCode CmdEvents(CommandContext& ctx);
ExitCode CmdExport(CommandContext& ctx);
ExitCode CmdFork(CommandContext& ctx);
ExitCode CmdGc(CommandContext& ctx);
ExitCode CmdPrune(CommandContext& ctx);
ExitCode CmdPurge(CommandContext& ctx);
ExitCode CmdHook(CommandContext& ctx);
ExitCode CmdHelp(CommandContext& ctx);
ExitCode CmdImport(CommandContext& ctx);
ExitCode CmdInstall(CommandContext& ctx);
ExitCode CmdList(CommandContext& ctx);
ExitCode CmdLog(CommandContext& ctx);
ExitCode CmdLs(CommandContext& ctx);
ExitCode CmdMan(CommandContext& ctx);
ExitCode CmdNote(CommandContext& ctx);
ExitCode CmdOff(CommandContext& ctx);
ExitCode CmdOn(CommandContext& ctx);
ExitCode CmdPin(CommandContext& ctx);
ExitCode CmdRedo(CommandContext& ctx);
ExitCode CmdResume(CommandContext& ctx);
ExitCode CmdRewind(CommandContext& ctx);
ExitCode CmdSummarize(CommandContext& ctx);
ExitCode CmdRepair(CommandContext& ctx);
ExitCode CmdRollback(CommandContext& ctx);
ExitCode CmdRoots(CommandContext& ctx);
ExitCode CmdRun(CommandContext& ctx);
ExitCode CmdSearch(CommandContext& ctx);
ExitCode CmdSessions(CommandContext& ctx);
ExitCode CmdShow(CommandContext& ctx);
ExitCode CmdSlash(CommandContext& ctx);
ExitCode CmdStats(CommandContext& ctx);
ExitCode CmdStatus(CommandContext& ctx);
ExitCode CmdUndo(CommandContext& ctx);
ExitCode CmdUninstall(CommandContext& ctx);
ExitCode CmdUnpin(CommandContext& ctx);
ExitCode CmdVerify(CommandContext& ctx);
ExitCode CmdWhy(CommandContext& ctx);

}  // namespace belay
