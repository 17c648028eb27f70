#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "base/json.h"
#include "base/real_fs.h"
#include "cli/run.h"
#include "cli/terminal.h"

int main(int argc, char** argv) {
  belay::HoldStandardDescriptors();
#ifdef M_MMAP_THRESHOLD
  // Large pieces go back to the system when they are freed. Left alone, glibc keeps all
  // that are smaller than the largest so far: 15 MB of 165 after 500,000 files.
  mallopt(M_MMAP_THRESHOLD, 2 << 20);
#endif
  // Writes then fail with EPIPE and EFBIG, which are handled where they happen.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  try {
    belay::RealFs fs;
    return belay::RunCli(fs, argc, argv);
  } catch (const std::exception& problem) {
    // Out of memory, a system that gives no random numbers, or a bug. A journal makes
    // this no worse than a kill.
    const bool no_memory = dynamic_cast<const std::bad_alloc*>(&problem) != nullptr;
    const bool of_system =
        no_memory || dynamic_cast<const std::system_error*>(&problem) != nullptr;
    const std::string what = no_memory ? "not enough memory" : problem.what();
    const std::string hint =
        no_memory ? "a limit may be set: ulimit -v; nothing that was stored is lost"
                  : "";
    std::string text = of_system ? "belay: " : "belay: internal error: ";
    text += what;
    text += '\n';
    if (!hint.empty()) text += hint + '\n';
    [[maybe_unused]] ssize_t ignored = write(2, text.data(), text.size());
    for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
      if (std::string_view(argv[i]) != "--json") continue;
      std::string json =
          R"({"error":{"code":"internal","message":"internal error","hint":""}})";
      if (of_system) {
        belay::JsonWriter writer;
        writer.BeginObject().Key("error").BeginObject();
        writer.Key("code").String("io").Key("message").String(what);
        writer.Key("hint").String(hint).EndObject().EndObject();
        json = writer.Take();
      }
      json += '\n';
      ignored = write(1, json.data(), json.size());
      break;
    }
    return 1;
  }
}
