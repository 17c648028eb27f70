#include <signal.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <string_view>

#include "base/real_fs.h"
#include "cli/run.h"
#include "cli/terminal.h"

int main(int argc, char** argv) {
  belay::HoldStandardDescriptors();
  // Writes then fail with EPIPE and EFBIG, which are handled where they happen.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  try {
    belay::RealFs fs;
    return belay::RunCli(fs, argc, argv);
  } catch (const std::exception& problem) {
    // Out of memory, or a bug. A journal makes this no worse than a kill.
    std::string text = std::string("belay: internal error: ") + problem.what() + "\n";
    [[maybe_unused]] ssize_t ignored = write(2, text.data(), text.size());
    for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
      if (std::string_view(argv[i]) != "--json") continue;
      constexpr std::string_view kJson =
          R"({"error":{"code":"internal","message":"internal error","hint":""}})"
          "\n";
      ignored = write(1, kJson.data(), kJson.size());
      break;
    }
    return 1;
  }
}
