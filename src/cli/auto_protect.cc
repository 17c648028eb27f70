#include "cli/auto_protect.h"

#include <algorithm>

#include "agent/event_roots.h"
#include "base/mutant.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "core/left_out_tree.h"
#include "core/moved_root.h"
#include "core/place.h"
#include "core/roots.h"
#include "core/settings_table.h"
#include "git/repository.h"

namespace belay {

namespace {

// If `dir` is one that somebody may have meant, and nobody switched it off. One that
// was renamed goes on with its history. `of`: only as that one.
Result<std::optional<Root>> Protect(CommandContext& ctx, const AbsPath& dir,
                                    const Root* of = nullptr) {
  std::optional<Root> none;
  BELAY_TRY(Fd fd, ctx.fs.OpenDir(dir));
  BELAY_TRY(auto prepared, PrepareStore(ctx));
  auto store_dir = ctx.fs.RealPath(prepared->dir);
  auto home = ctx.env.HomeDir();
  Status place_is_fine =
      CheckPlace(ctx.fs, dir, fd, store_dir.ok() ? *store_dir : prepared->dir,
                 home.ok() ? std::optional(*home) : std::nullopt, false);
  // Home, /proc and the like are no failure: nobody asked for them.
  if (!place_is_fine.ok() && place_is_fine.error().code == Errc::kRefused) return none;
  BELAY_OK(place_is_fine);
  BELAY_TRY(auto opened, OpenStore(ctx, Store::Mode::kWrite));
  BELAY_TRY(auto catalog, Catalog::Open(*opened->store));
  BELAY_TRY(auto known, FindRootAt(*catalog, dir));
  if (known && known->root.off) return none;
  BELAY_TRY(FileStat stat, ctx.fs.Stat(fd));
  std::optional<AbsPath> was;
  if (!known) {
    BELAY_TRY(was, MovedForCertain(*opened->store, *catalog, fd, stat));
  }
  const bool is_it = of == nullptr || (was && was->bytes() == of->path);
  Result<Registered> done = Error(Errc::kNotFound, "another directory");
  if (is_it) done = RegisterRoot(*opened->store, *catalog, dir, stat, was);
  if (done.ok()) return std::optional(std::move(done->root));
  // Of hooks that come at once another one was faster.
  BELAY_TRY(known, FindRootAt(*catalog, dir));
  if (known && !known->root.off && (of == nullptr || known->root.id == of->id))
    return std::optional(std::move(known->root));
  if (!is_it) return none;
  return std::move(done).error();
}

bool WasSwitchedOff(std::span<const RootEntry> roots, const AbsPath& dir) {
  return std::ranges::any_of(roots, [&](const RootEntry& entry) {
    return entry.root.off && entry.root.path == dir.bytes();
  });
}

bool IsMeant(const Settings& settings) {
  return settings.auto_protect && settings.enabled;
}

// Nobody can have meant it, whether somebody protected it or not.
bool IsRefused(CommandContext& ctx, const AbsPath& dir) {
  auto fd = ctx.fs.OpenDir(dir);
  auto prepared = PrepareStore(ctx);
  if (!fd.ok() || !prepared.ok()) return false;
  auto store_dir = ctx.fs.RealPath((*prepared)->dir);
  auto home = ctx.env.HomeDir();
  const Status fine =
      CheckPlace(ctx.fs, dir, *fd, store_dir.ok() ? *store_dir : (*prepared)->dir,
                 home.ok() ? std::optional(*home) : std::nullopt, false);
  return !fine.ok() && fine.error().code == Errc::kRefused;
}

// The git work trees of what an edit tool names, when it takes place at `place`, which
// nobody can have meant. What cannot be looked at is none.
std::vector<AbsPath> NamedTrees(CommandContext& ctx, const AbsPath& place,
                                const HookEvent& event) {
  constexpr size_t kMostAtOnce = 8;
  std::vector<AbsPath> out;
  if (!event.tool || event.tool->reach != ToolReach::kPaths || !IsRefused(ctx, place) ||
      BELAY_MUTANT("what-is-edited-from-home-is-nobodys"))
    return out;
  auto cwd = AbsPath::Parse(event.cwd);
  for (const std::string& named : event.tool->paths) {
    auto path = AbsPath::Resolve(cwd.ok() ? *cwd : place, named);
    if (!path.ok() || path->is_root()) continue;
    // A new file may come with its directories.
    AbsPath dir = path->parent();
    auto real = ctx.fs.RealPath(dir);
    while (!real.ok() && real.error().code == Errc::kNotFound && !dir.is_root()) {
      dir = dir.parent();
      real = ctx.fs.RealPath(dir);
    }
    if (!real.ok()) continue;
    auto tree = FindWorkTree(ctx.fs, *real, ctx.env.git);
    if (!tree.ok() || !*tree || out.size() == kMostAtOnce) continue;
    if (std::ranges::find(out, (*tree)->work_tree) == out.end())
      out.push_back((*tree)->work_tree);
  }
  return out;
}

// The places that an event names, real as far as they exist: those that are roots
// themselves are left out before anything is looked at.
std::vector<AbsPath> PlacesBelowRoots(Fs& fs, std::span<const RootEntry> roots,
                                      const HookEvent& event) {
  std::vector<AbsPath> out;
  auto is_root = [&](const AbsPath& path) {
    return std::ranges::any_of(roots, [&](const RootEntry& entry) {
      return !entry.root.off && entry.root.path == path.bytes();
    });
  };
  auto add = [&](const std::string& text) -> std::optional<AbsPath> {
    auto path = AbsPath::Parse(text);
    if (!path.ok()) return std::nullopt;
    if (is_root(*path)) return std::move(*path);
    auto real = fs.RealPath(*path);
    if (!real.ok()) return std::nullopt;
    if (!is_root(*real)) out.push_back(*real);
    return std::move(*real);
  };
  for (const std::string& workspace : event.workspaces) add(workspace);
  const auto cwd = event.cwd.empty() ? std::nullopt : add(event.cwd);
  if (!event.tool || event.tool->reach == ToolReach::kReads || !cwd) return out;
  for (const std::string& named : event.tool->paths)
    if (auto path = AbsPath::Resolve(*cwd, named); path.ok() && !path->is_root())
      if (AbsPath dir = path->parent(); !is_root(dir)) out.push_back(std::move(dir));
  return out;
}

}  // namespace

Result<std::vector<Root>> ProtectNew(CommandContext& ctx, const HookEvent& event) {
  std::vector<Root> none;
  auto place = PlaceOf(ctx.fs, event);
  if (!place) return none;
  BELAY_TRY(AbsPath user_file, ctx.env.UserSettingsFile());
  BELAY_TRY(Settings settings, LoadSettings(ctx.fs, user_file, std::nullopt));
  if (!IsMeant(settings)) return none;
  BELAY_TRY(auto tree, FindWorkTree(ctx.fs, *place, ctx.env.git));
  BELAY_TRY(auto root, Protect(ctx, tree ? tree->work_tree : *place));
  if (root) return std::vector<Root>{std::move(*root)};
  std::vector<Root> made;
  for (const AbsPath& named : NamedTrees(ctx, *place, event)) {
    BELAY_TRY(root, Protect(ctx, named));
    if (root) made.push_back(std::move(*root));
  }
  return made;
}

Result<bool> ProtectAway(CommandContext& ctx, std::span<const RootEntry> roots,
                         const Root& home, const HookEvent& event) {
  const auto place = PlaceOf(ctx.fs, event);
  if (event.kind == EventKind::kOther || !place || FindRootFor(roots, *place))
    return false;
  BELAY_TRY(AbsPath home_dir, AbsPath::Parse(home.path));
  const auto at_home = ctx.fs.OpenDir(home_dir);
  const bool gone = !at_home.ok() && at_home.error().code == Errc::kNotFound;
  if (!gone && (!event.tool || event.tool->reach == ToolReach::kReads)) return false;
  BELAY_TRY(AbsPath user_file, ctx.env.UserSettingsFile());
  BELAY_TRY(Settings settings, LoadSettings(ctx.fs, user_file, std::nullopt));
  if (!IsMeant(settings)) return false;
  for (AbsPath dir = *place; gone && !dir.is_root(); dir = dir.parent()) {
    auto fd = ctx.fs.OpenDir(dir);
    if (!fd.ok()) break;
    BELAY_TRY(FileStat stat, ctx.fs.Stat(*fd));
    if (stat.dev != home.dev || stat.ino != home.ino) continue;
    BELAY_TRY(auto moved, Protect(ctx, dir, &home));
    return moved.has_value();
  }
  if (!event.tool) return false;
  auto tree = FindWorkTree(ctx.fs, *place, ctx.env.git);
  if (tree.ok() && *tree) {
    if (home_dir.IsWithin((*tree)->work_tree)) return false;
    BELAY_TRY(auto made, Protect(ctx, (*tree)->work_tree));
    return made.has_value();
  }
  bool any = false;
  for (const AbsPath& named : NamedTrees(ctx, *place, event)) {
    const auto around = FindRootFor(roots, named);
    if (home_dir.IsWithin(named) || (around && !around->root.off)) continue;
    BELAY_TRY(auto made, Protect(ctx, named));
    any = any || made.has_value();
  }
  return any;
}

bool IsAutoMeant(CommandContext& ctx) {
  auto user_file = ctx.env.UserSettingsFile();
  if (!user_file.ok()) return false;
  auto settings = LoadSettings(ctx.fs, *user_file, std::nullopt);
  return settings.ok() && IsMeant(*settings);
}

Result<bool> ProtectLeftOut(CommandContext& ctx, Store& store,
                            std::span<const RootEntry> roots, const Root& first,
                            const Settings& settings, const HookEvent& event) {
  if (!IsMeant(settings) || event.kind == EventKind::kOther) return false;
  const std::vector<AbsPath> places = PlacesBelowRoots(ctx.fs, roots, event);
  std::optional<Settings> users;  // read where something is left out
  for (const AbsPath& place : places) {
    auto around = FindRootFor(roots, place);
    if (!around || around->root.off || around->root.path == place.bytes()) continue;
    Settings others;
    if (around->root.id != first.id) {
      BELAY_TRY(AbsPath top, AbsPath::Parse(around->root.path));
      BELAY_TRY(others, LoadSettingsFor(ctx, top));
    }
    const Settings& its = around->root.id == first.id ? settings : others;
    BELAY_TRY(auto found, FindLeftOutTree(store, roots, around->root, its,
                                          GitPlacesOf(ctx.env), place));
    if (!found || WasSwitchedOff(roots, found->dir)) continue;
    if (!users) {
      BELAY_TRY(AbsPath user_file, ctx.env.UserSettingsFile());
      BELAY_TRY(users, LoadSettings(ctx.fs, user_file, std::nullopt));
    }
    if (!IsMeant(*users)) return false;
    BELAY_TRY(auto made, Protect(ctx, found->dir));
    if (made) return true;
  }
  return false;
}

}  // namespace belay
