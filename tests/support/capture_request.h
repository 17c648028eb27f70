#pragma once

// What a checkpoint in a RestoreWorld is asked for with, to be completed by tests that
// want a session, a prompt, a kind.

#include "support/restore_world.h"

namespace belay::test {

inline CaptureRequest CaptureRequestIn(RestoreWorld& world, const Root& root) {
  CaptureRequest request;
  request.root = root;
  request.settings = &world.settings;
  request.git.user.no_system = true;
  request.threads = 1;
  return request;
}

}  // namespace belay::test
