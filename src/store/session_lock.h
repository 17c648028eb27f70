#pragma once

// A byte of the file `lock` for each session: what is still being recorded of it behind
// the reply of a hook, for whoever needs all of it to wait for.
//
// Exclusive while the start of a session is recorded, so that its first turn comes
// after it and knows what it grew out of, and while a prompt is, so that its calls come
// after that; shared while messages of it are kept.
// Released by the kernel when the holder dies: nothing is left behind. It comes before
// the root's byte and all locks of the store; whoever waits for it holds none of them.
// Two sessions that share a byte wait for each other, and nothing worse. Whoever
// registers a root holds one, too, under a name that is made of its path, `belay
// repair` one of its own.

#include <string_view>

#include "store/store.h"

namespace belay {

// kBusy when it was not to be had within `wait_ms`. Nobody needs it so much that an
// agent should fail for it.
Result<HeldLock> LockSession(Store& store, std::string_view session, LockMode mode,
                             int64_t wait_ms);

}  // namespace belay
