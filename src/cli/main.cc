#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "base/json.h"
#include "base/real_fs.h"
#include "cli/run.h"
#include "cli/terminal.h"

namespace {

// For whoever ends us where no exception can be caught: set once.
int arg_count = 0;
char** args = nullptr;
std::atomic<bool> no_memory{false};  // an allocation failed

constexpr std::string_view kNoMemory = "not enough memory";
constexpr std::string_view kLimits =
    "limits may be set: ulimit -v, ulimit -u; nothing that was stored is lost";

bool WantsJson() {
  for (int i = 1; i < arg_count && std::string_view(args[i]) != "--"; ++i)
    if (std::string_view(args[i]) == "--json") return true;
  return false;
}

// Any other code may stop the tool that an agent is about to use.
int FailedCode() {
  return arg_count > 1 && std::string_view(args[1]) == "hook" ? 0 : 1;
}

void Write(int to, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    [[maybe_unused]] ssize_t ignored = write(to, part.data(), part.size());
}

// Takes no memory. `what` needs no escapes.
void SayNoMemory(std::string_view what) {
  Write(2, {"belay: ", what, "\nhint: ", kLimits, "\n"});
  if (WantsJson())
    Write(1, {R"({"error":{"code":"io","message":")", what, R"(","hint":")", kLimits,
              "\"}}\n"});
}

int Fail(const std::exception& problem) {
  // Out of memory, a system that gives no random numbers, or a bug. A journal makes
  // this no worse than a kill.
  const auto* of_system = dynamic_cast<const std::system_error*>(&problem);
  if (dynamic_cast<const std::bad_alloc*>(&problem) != nullptr) {
    SayNoMemory(kNoMemory);
  } else if (of_system != nullptr &&
             of_system->code() == std::errc::resource_unavailable_try_again) {
    SayNoMemory("the system gives no more threads");
  } else {
    Write(2, {of_system != nullptr ? "belay: " : "belay: internal error: ",
              problem.what(), "\n"});
    if (!WantsJson()) return FailedCode();
    belay::JsonWriter writer;
    writer.BeginObject().Key("error").BeginObject();
    writer.Key("code").String(of_system != nullptr ? "io" : "internal");
    writer.Key("message").String(of_system != nullptr ? problem.what()
                                                      : "internal error");
    writer.Key("hint").String("").EndObject().EndObject();
    Write(1, {writer.Take(), "\n"});
  }
  return FailedCode();
}

// In another thread, or while one is at work: nobody catches that. It is no worse than
// a kill.
[[noreturn]] void EndAtOnce() {
  if (const auto current = std::current_exception(); current && !no_memory) {
    try {
      std::rethrow_exception(current);
    } catch (const std::exception& problem) {
      _exit(Fail(problem));
    } catch (...) {
    }
  }
  if (!no_memory && std::uncaught_exceptions() == 0) abort();  // a bug
  SayNoMemory(no_memory ? kNoMemory : "the system gives no more memory or threads");
  _exit(FailedCode());
}

}  // namespace

int main(int argc, char** argv) {
  arg_count = argc;
  args = argv;
  belay::HoldStandardDescriptors();
#ifdef M_MMAP_THRESHOLD
  // Large pieces go back to the system when they are freed. Left alone, glibc keeps all
  // that are smaller than the largest so far: 15 MB of 165 after 500,000 files.
  mallopt(M_MMAP_THRESHOLD, 2 << 20);
#endif
  // Writes then fail with EPIPE and EFBIG, which are handled where they happen.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  std::set_new_handler([] {
    no_memory = true;
    throw std::bad_alloc();
  });
  std::set_terminate(EndAtOnce);
  try {
    belay::RealFs fs;
    return belay::RunCli(fs, argc, argv);
  } catch (const std::exception& problem) {
    return Fail(problem);
  }
}
