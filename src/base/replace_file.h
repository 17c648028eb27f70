#pragma once

// ReplaceFile (base/fs.h) for a file that is to have more than content and mode.

#include <functional>

#include "base/fs.h"

namespace belay {

// `prepare` gives the new file what else it is to have (owner, attributes) before
// anybody can see it. Its failure leaves the old one.
Status ReplaceFile(Fs& fs, const Fd& dir, const Name& name, ByteSpan bytes,
                   uint32_t mode, const std::function<Status(const Fd&)>& prepare);

}  // namespace belay
