#include "base/escape.h"
#include "base/mutant.h"
#include "cli/anchoring.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/roots.h"
#include "restore/journal.h"

namespace belay {

namespace {

struct Target {
  std::unique_ptr<OpenedStore> opened;
  std::unique_ptr<Catalog> catalog;
  Root root;
};

// Without DIR the root around the current directory; a DIR has to be one itself, so
// that nobody switches off more than was named.
Result<Target> FindTarget(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  const bool forget = ctx.args.has("--forget");
  if (words.empty()) {
    BELAY_TRY(OpenedRoot found,
              OpenRoot(ctx, forget ? NeedsRoot::kRecorded : NeedsRoot::kProtected));
    return Target{std::move(found.opened), std::move(found.catalog), found.root};
  }
  BELAY_TRY(AbsPath dir, ctx.env.Resolve(words[0]));
  if (auto real = ctx.fs.RealPath(dir); real.ok()) dir = std::move(*real);
  auto not_protected = [&](std::string hint) {
    return Error(Errc::kRefused,
                 StrCat(EscapeForDisplay(dir.bytes()), " is not protected"))
        .WithHint(std::move(hint));
  };
  auto opened = OpenStore(ctx, Store::Mode::kWriteExisting);
  if (!opened.ok()) {
    if (opened.error().code == Errc::kNotFound) return not_protected("");
    return std::move(opened).error();
  }
  Target target{std::move(*opened), {}, {}};
  BELAY_TRY(target.catalog, Catalog::Open(*target.opened->store));
  BELAY_TRY(auto at, FindRootAt(*target.catalog, dir));
  if (at && (forget || !at->root.off)) {
    target.root = at->root;
    // What an interrupted rollback needs must not go, nor half of it be all there is.
    BELAY_TRY(auto recovered, RecoverFirst(ctx, target.opened, target.root));
    if (recovered) ctx.term.Warn(recovered->text);
    BELAY_TRY(bool waits, JournalFile::Exists(*target.opened->store, target.root.id));
    if (waits)
      return Error(Errc::kRefused,
                   StrCat("a rollback of ", EscapeForDisplay(target.root.path),
                          " was interrupted and cannot be finished yet"))
          .WithHint(StrCat("see: belay status --root ", ShellWord(target.root.path)));
    BELAY_TRY(target.catalog, Catalog::Open(*target.opened->store));
    return target;
  }
  if (at)
    return not_protected(StrCat("its history can be deleted with: belay off --forget",
                                DirWord(ctx, dir.bytes())));
  BELAY_TRY(auto around, FindRootFor(*target.catalog, dir));
  return not_protected(
      around && !around->root.off
          ? StrCat("it is a part of ", EscapeForDisplay(around->root.path))
          : "see `belay roots` for what is");
}

}  // namespace

ExitCode CmdOff(CommandContext& ctx) {
  auto target = FindTarget(ctx);
  if (!target.ok()) return FailOnStore(ctx, target.error());
  Store& store = *target->opened->store;
  const std::string shown = EscapeForDisplay(target->root.path);
  const bool forget = ctx.args.has("--forget");
  uint64_t forgotten = 0;
  if (forget) {
    auto count = target->catalog->Count(target->root.id);
    if (!count.ok()) return ctx.term.Fail(count.error());
    const std::string what = StrCat("Delete all ", CountText(*count, "checkpoint"),
                                    " of ", shown, "? This cannot be undone.");
    if (!ctx.args.has("--yes") && !BELAY_MUTANT("forget-without-asking")) {
      if (!ctx.term.CanAsk())
        return ctx.term.Fail(
            Error(Errc::kRefused,
                  StrCat("--forget deletes ", CountText(*count, "checkpoint"), " of ",
                         shown, " for good, and nobody can be asked here"))
                .WithHint(StrCat("if that is what you want: belay off --forget --yes",
                                 DirWord(ctx, target->root.path))));
      if (!ctx.term.Confirm(what))
        return ctx.term.Fail(Error(Errc::kRefused, "nothing was deleted"));
    }
    auto done = ForgetRoot(store, *target->catalog, target->root);
    if (!done.ok()) return FailOnStore(ctx, done.error());
    forgotten = *done;
    (void)DropAnchors(ctx, store, *target->catalog, {target->root.path});
  } else {
    Status done = SwitchOff(store, target->root);
    if (!done.ok()) return FailOnStore(ctx, done.error());
  }
  ctx.term.WorkIsDone();
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("root").PathValue(target->root.path);
    json.Key("id").String(target->root.id.text());
    json.Key("protected").Bool(false);
    json.Key("forgotten");
    if (forget)
      json.Uint(forgotten);
    else
      json.Null();
    json.EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  ctx.term.Out(
      StrCat(ctx.term.Paint(Style::kYellow, "not protected"), ": ", shown, "\n"));
  ctx.term.Say(forget ? StrCat(CountText(forgotten, "checkpoint"),
                               " deleted; the space comes back with: belay gc")
                      : StrCat("Its history is kept. Protect it again with: belay on",
                               DirWord(ctx, target->root.path)));
  return ExitCode::kOk;
}

}  // namespace belay
