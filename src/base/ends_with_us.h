#pragma once

// Process groups that end when we are told to.
//
// A child in a group of its own hears nothing of a Ctrl-C, nor of a signal that
// somebody sends to us. While groups are enlisted, SIGINT, SIGTERM and SIGHUP kill them
// all before they end us; where a signal is handled or ignored already, that stays as
// it is.
//
// Threads: any. Without allocation or locks in the handler.

#include <signal.h>
#include <sys/types.h>

namespace belay {

// The signals wait, for this thread, until the group that is being made is enlisted.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals();

 private:
  sigset_t before_;
};

// Of each Enlist there is one Delist. More groups at once than there is room for are
// not killed.
void Enlist(pid_t group);
// Before the last process of the group is waited for: after that the number may be
// somebody else's.
void Delist(pid_t group);

}  // namespace belay
