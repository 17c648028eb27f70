#pragma once

// A pack under the name of another file of the store: two of them were exchanged, or
// one was put back in the wrong place. What can be made anew is thrown away without a
// thought; a pack in its place must not be.

#include <optional>
#include <string>
#include <vector>

#include "base/fs.h"
#include "store/pack_format.h"

namespace belay {

// Whether these are the first bytes of a pack, of whatever version.
bool BeginsAsPack(ByteSpan bytes);
// What catalog/changes would have to say for it to be one: it never gets there.
uint64_t PackAsNumber();

// Asked before `name` is removed, cut off or replaced: what begins as a pack does gets
// another name (MoveAside()), durably. True: it did, and the name is free.
Result<bool> KeepPack(Fs& fs, const Fd& dir, const Name& name);

// A pack that lies where files lie that are none.
struct StrayPack {
  const char* in = "";  // the directory in the store; empty: the store's own
  std::string name;
  std::optional<PackHeader> header;  // when that can be read
  std::string shown() const { return *in == '\0' ? name : in + ("/" + name); }
};
std::vector<StrayPack> StrayPacks(Fs& fs, const Fd& home);

}  // namespace belay
