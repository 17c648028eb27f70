#include "cli/open_root.h"

#include "base/escape.h"
#include "cli/text.h"
#include "core/roots.h"
#include "store/heads.h"

namespace belay {

GitPlaces GitPlacesOf(const Environment& env) {
  return {.user = env.git, .ask = {.path = env.exec_path}};
}

Result<AbsPath> NamedDir(CommandContext& ctx) {
  std::optional<std::string_view> named = ctx.args.value("--root");
  BELAY_TRY(AbsPath dir, ctx.env.Resolve(named ? *named : "."));
  auto real = ctx.fs.RealPath(dir);
  if (real.ok()) return std::move(*real);
  // A root may be gone, and its history asked for all the same.
  if (real.error().code == Errc::kNotFound) return dir;
  return std::move(real).error();
}

Result<OpenedRoot> OpenRootFast(CommandContext& ctx) {
  BELAY_TRY(AbsPath dir, NamedDir(ctx));
  auto opened = OpenStore(ctx, Store::Mode::kWrite);
  if (opened.ok()) {
    auto heads = Heads::Read(*(*opened)->store);
    auto root = heads.ok() ? FindRootFor(heads->roots(), dir) : std::nullopt;
    if (root && !root->root.off) {
      OpenedRoot out{
          .opened = std::move(*opened), .catalog = {}, .root = root->root, .path = dir};
      BELAY_TRY(out.path, AbsPath::Parse(root->root.path));
      BELAY_TRY(out.catalog, Catalog::Open(out.store()));
      return out;
    }
  }
  return OpenRoot(ctx, NeedsRoot::kProtected);  // says why not, in words
}

Result<OpenedRoot> OpenRoot(CommandContext& ctx, NeedsRoot needs) {
  BELAY_TRY(AbsPath dir, NamedDir(ctx));
  auto not_protected = [&] {
    return Error(Errc::kRefused,
                 StrCat(EscapeForDisplay(dir.bytes()), " is not protected"))
        .WithHint("protect it with: belay on");
  };
  auto opened = OpenStore(
      ctx, needs == NeedsRoot::kProtected ? Store::Mode::kWrite : Store::Mode::kRead);
  if (!opened.ok()) {
    if (opened.error().code == Errc::kNotFound) return not_protected();
    return std::move(opened).error();
  }
  OpenedRoot out{.opened = std::move(*opened), .catalog = {}, .root = {}, .path = dir};
  BELAY_TRY(out.catalog, Catalog::Open(out.store()));
  BELAY_TRY(auto root, FindRootFor(*out.catalog, dir));
  if (root && (needs == NeedsRoot::kKnown || !root->root.off)) {
    out.root = root->root;
    BELAY_TRY(out.path, AbsPath::Parse(root->root.path));
    return out;
  }
  if (auto fd = ctx.fs.OpenDir(dir); fd.ok()) {
    auto stat = ctx.fs.Stat(*fd);
    if (stat.ok()) {
      BELAY_TRY(auto moved, FindMoved(*out.catalog, ctx.fs, *stat));
      if (moved)
        return Error(Errc::kRefused,
                     StrCat(EscapeForDisplay(dir.bytes()),
                            " is not protected, but looks like ",
                            EscapeForDisplay(moved->root.path), ", which is gone"))
            .WithHint(StrCat("go on with its history: belay on --moved-from ",
                             EscapeForDisplay(moved->root.path)));
    }
  }
  return not_protected();
}

}  // namespace belay
