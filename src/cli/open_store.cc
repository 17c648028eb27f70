#include "cli/open_store.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "store/private.h"

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
  auto store = Store::Open(ctx.fs, opened->clock, opened->random, opened->dir,
                           opened->options, mode);
  // "Not protected" would be no answer where the store's disk is not mounted.
  if (!store.ok() && store.error().code == Errc::kNotFound)
    BELAY_OK(Store::CheckPlace(ctx.fs, opened->dir));
  BELAY_TRY(opened->store, std::move(store));
  return opened;
}

std::optional<std::string> LooseModes(CommandContext& ctx) {
  auto at = PrepareStore(ctx);
  if (!at.ok()) return std::nullopt;
  auto dir = ctx.fs.OpenDir((*at)->dir);
  if (!dir.ok() || !ctx.fs.StatAt(*dir, Name::Literal("manifest")).ok())
    return std::nullopt;
  auto open = OpenToOthers(ctx.fs, *dir, /*put_right=*/false);
  if (!open.ok() || open->empty()) return std::nullopt;
  std::string text = open->front();
  if (open->size() > 1) text += " and " + std::to_string(open->size() - 1) + " more";
  return "by their modes other users may read or write " + text +
         ": belay repair makes all of it private";
}

ExitCode FailOnStore(CommandContext& ctx, Error error, std::string_view failures) {
  if (error.hint.empty()) {
    if (IsUnreadable(error))
      error.hint =
          "the disk reports errors (see dmesg): copy the store to another one soon; "
          "belay verify --read-data names what is hit";
    else if (error.sys == EROFS)
      error.hint = "the disk is read-only; verify, du and status work as they are";
    else if (error.sys == EFBIG)
      error.hint =
          "this process may not write files that long: see ulimit -f, or the disk's "
          "own limit";
    else if (error.code == Errc::kNoSpace)
      error.hint = "make room on the disk, or move the store: BELAY_HOME";
    else if (error.sys == EACCES || error.sys == EPERM)
      error.hint = "see who owns it and who may read and write it: ls -ld";
    else if (error.code == Errc::kCorrupt)
      error.hint = "see what is hit: belay verify --read-data";
  }
  return ctx.term.Fail(error, failures);
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
