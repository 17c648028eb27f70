#include "cli/open_store.h"

#include <unistd.h>

#include <cstdio>

namespace belay {

Result<std::unique_ptr<OpenedStore>> PrepareStore(CommandContext& ctx) {
  BELAY_TRY(AbsPath dir, ctx.env.StoreDir());
  auto opened = std::make_unique<OpenedStore>(
      OpenedStore{.clock = {}, .random = {}, .dir = dir, .options = {}, .store = {}});
  opened->options.uid = geteuid();
  return opened;
}

Result<std::unique_ptr<OpenedStore>> OpenStore(CommandContext& ctx, Store::Mode mode) {
  BELAY_TRY(auto opened, PrepareStore(ctx));
  BELAY_TRY(opened->store, Store::Open(ctx.fs, opened->clock, opened->random,
                                       opened->dir, opened->options, mode));
  return opened;
}

std::string SizeText(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s",
                value, kUnits[unit]);
  return text;
}

std::string CountText(uint64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + " " + std::string(noun);
  if (count != 1) text += 's';
  return text;
}

}  // namespace belay
