#pragma once

// The store as a command opens it: where the environment says, as the user we are.

#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "cli/context.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

struct OpenedStore {
  RealClock clock;
  RealRandom random;
  AbsPath dir;
  StoreOptions options;
  std::unique_ptr<Store> store;
};

// Everything but the store itself: for repair, which opens it another way.
Result<std::unique_ptr<OpenedStore>> PrepareStore(CommandContext& ctx);
// kNotFound when there is none and `mode` is not kWrite; kRefused when something else
// is in its place, or the way to it leads nowhere.
Result<std::unique_ptr<OpenedStore>> OpenStore(CommandContext& ctx, Store::Mode mode);

// Reports the failure of a command on the store, with what to do about it where the
// failure itself does not say. `failures`: as of Terminal::Fail.
ExitCode FailOnStore(CommandContext& ctx, Error error, std::string_view failures = {});

// What the modes of the store's files let others do, in words; empty: nothing. Before
// it is opened, which makes its directory private.
std::optional<std::string> LooseModes(CommandContext& ctx);

// "14 KiB", "1.2 GiB": at most four characters and a unit.
std::string SizeText(uint64_t bytes);
// "1 file", "14 files".
std::string CountText(uint64_t count, std::string_view noun);

}  // namespace belay
