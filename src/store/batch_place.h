#pragma once

// A batch and where it is: what StillHas() (store/inventory.h) asks for.

#include <cstdint>

#include "base/ids.h"
#include "base/sha256.h"

namespace belay {

struct BatchPlace {
  PackId pack;
  uint64_t offset = 0;
  Hash256 body_hash;
};

}  // namespace belay
