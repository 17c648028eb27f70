#pragma once

// The program without main(): reads the environment, finds the command in the table,
// parses its words, runs it. Every file is reached through `fs`, so that a test can run
// a whole command over a FaultFs.

#include "base/fs.h"

namespace belay {

int RunCli(Fs& fs, int argc, char** argv);

}  // namespace belay
