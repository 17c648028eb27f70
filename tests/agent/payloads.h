#pragma once

// Payloads of real runs, tests/agent/data/<agent>.txt: "@ name" and, in the next line,
// what the hook got on its standard input.

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "agent/dialects.h"

namespace belay::test {

inline std::string DataDir() {
  return std::string(std::getenv("BELAY_SOURCE_DIR")) + "/tests/agent/data/";
}

// By name; empty when the file is missing.
inline std::map<std::string, std::string> LoadPayloads(AgentKind agent) {
  std::map<std::string, std::string> payloads;
  std::ifstream file(DataDir() + std::string(AgentName(agent)) + ".txt");
  for (std::string line, name; std::getline(file, line);) {
    if (line.starts_with("# ")) continue;
    if (line.starts_with("@ "))
      name = line.substr(2);
    else
      payloads[name] = line;
  }
  return payloads;
}

// What the person said in the recorded stories.
inline constexpr const char* kOne = "turn 1: create new.txt and edit a.txt";
inline constexpr const char* kTwo = "turn 2: clean up with the shell";
inline constexpr const char* kThree = "turn 3: edit b.txt again";

}  // namespace belay::test
