#pragma once

// RunningProcess: another program that is talked to while it runs, for more bytes than
// memory should hold. What RunProcess guarantees about the program, its environment and
// its end holds here too (base/subprocess.h).
//
// Nothing waits for ever: when neither side could go on for `timeout_ms` of the
// options, it is kBusy. What it says on its standard error is taken in all along, up to
// the cap, so that it cannot get stuck on that.
//
// Threads: one at a time.

#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/subprocess.h"

namespace belay {

class RunningProcess {
 public:
  // `input` of the options is not used.
  static Result<std::unique_ptr<RunningProcess>> Start(const ProcessOptions& options);
  // Killed, if it still runs.
  ~RunningProcess();
  RunningProcess(const RunningProcess&) = delete;
  RunningProcess& operator=(const RunningProcess&) = delete;

  // All of it. kIo when the program takes no more: Finish() says why.
  // What it puts out meanwhile is held, up to 64 KiB; whoever writes without reading
  // must know that there is no more.
  Status Write(ByteSpan bytes);
  // As much as is there, up to all of `out`; 0 at the end of its output.
  Result<size_t> Read(std::span<std::byte> out);
  // No more input; what is left of its output is taken in (`output`), and its end
  // waited for.
  Result<ProcessResult> Finish();

 private:
  struct Parts;
  explicit RunningProcess(std::unique_ptr<Parts> parts);
  // Waits until one of the pipes can be used, and takes in what is said.
  Status Wait(bool write, bool read);
  std::unique_ptr<Parts> parts_;
};

}  // namespace belay
