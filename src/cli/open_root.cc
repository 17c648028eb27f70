#include "cli/open_root.h"

#include <unistd.h>

#include <algorithm>

#include "base/escape.h"
#include "base/subprocess.h"
#include "cli/text.h"
#include "core/chat.h"
#include "core/lineage.h"
#include "core/live.h"
#include "core/roots.h"
#include "core/sessions.h"
#include "core/upkeep.h"
#include "restore/fork_note.h"
#include "restore/journal.h"
#include "restore/rollback.h"
#include "store/heads.h"

namespace belay {

std::function<void(const std::string&)> SayWaiting(Terminal& term) {
  return [&term](const std::string& who) {
    term.Note(StrCat("waiting for ", who, ", which is at work on this directory"));
  };
}

Result<std::optional<Recovered>> RecoverFirst(CommandContext& ctx,
                                              std::unique_ptr<OpenedStore>& opened,
                                              const Root& root, int64_t wait_ms) {
  auto pending = JournalFile::Exists(*opened->store, root.id);
  if (pending.ok() && !*pending) {
    if (!LoadForkNote(*opened->store, root.id)) return std::optional<Recovered>();
    BELAY_TRY(opened, OpenStore(ctx, Store::Mode::kWriteExisting));
    auto said = SettleForkNote(*opened->store, root.id);
    if (!said) return std::optional<Recovered>();
    return std::optional(
        Recovered{.how = Recovered::How::kDropped, .text = std::move(*said)});
  }
  BELAY_TRY(opened, OpenStore(ctx, Store::Mode::kWriteExisting));
  RollbackRequest request;
  request.root = root;
  request.pid = getpid();
  request.lock_wait_ms = wait_ms;
  request.waiting = SayWaiting(ctx.term);
  return Recover(*opened->store, request);
}

Result<std::vector<std::string>> SelectedPaths(CommandContext& ctx,
                                               const AbsPath& root) {
  std::vector<std::string> out;
  for (std::string_view given : ctx.args.rest()) {
    BELAY_TRY(auto below, FindBelow(ctx, root, given));
    if (!below)
      return Error(Errc::kInvalid, StrCat(EscapeForDisplay(given), " is not in ",
                                          EscapeForDisplay(root.bytes())));
    out.push_back(below->path);
  }
  return out;
}

void StartUpkeepIfDue(Store& store, const Checkpoint& made) {
  // A failure to start it is no failure of the checkpoint; the next one tries again.
  if (UpkeepIsDue(store, made.seq)) (void)StartSelfDetached({"prune", "--background"});
}

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

std::optional<LeftOutTree> LeftOutHere(CommandContext& ctx, Store& store,
                                       std::span<const RootEntry> roots,
                                       const Root& root, const AbsPath& dir) {
  if (root.off || root.path == dir.bytes()) return std::nullopt;
  auto path = AbsPath::Parse(root.path);
  auto file = ctx.env.UserSettingsFile();
  if (!path.ok() || !file.ok()) return std::nullopt;
  auto settings = LoadSettings(ctx.fs, *file, *path);
  // What cannot be found out is no reason to stop anybody.
  auto found =
      FindLeftOutTree(store, roots, root, settings.ok() ? *settings : Settings(),
                      GitPlacesOf(ctx.env), dir);
  return found.ok() ? std::move(*found) : std::nullopt;
}

std::string LeftOutText(const LeftOutTree& tree, const Root& root) {
  return StrCat(
      EscapeForDisplay(tree.dir.bytes()), " is a git work tree of its own, which ",
      EscapeForDisplay(root.path), " leaves out",
      tree.rule.empty() ? "" : StrCat(" (", EscapeForDisplay(tree.rule), ")"));
}

namespace {

// Whoever stands there might take the checkpoints around it for its own.
void SayLeftOut(CommandContext& ctx, Store& store, std::span<const RootEntry> roots,
                const Root& root, const AbsPath& dir) {
  if (auto tree = LeftOutHere(ctx, store, roots, root, dir))
    ctx.term.Warn(StrCat("this place is not covered: ", LeftOutText(*tree, root),
                         "; protect it with: belay on",
                         DirWord(ctx, tree->dir.bytes())));
}

}  // namespace

Result<OpenedRoot> OpenRootFast(CommandContext& ctx, WhenBusy busy) {
  BELAY_TRY(AbsPath dir, NamedDir(ctx));
  auto opened = OpenStore(ctx, Store::Mode::kWriteExisting);
  if (opened.ok()) {
    auto heads = Heads::Read(*(*opened)->store);
    auto root = heads.ok() ? FindRootFor(heads->roots(), dir) : std::nullopt;
    if (root && !root->root.off) {
      SayLeftOut(ctx, *(*opened)->store, heads->roots(), root->root, dir);
      const bool wait = busy == WhenBusy::kWait;
      auto recovered = RecoverFirst(ctx, *opened, root->root, wait ? 10'000 : 0);
      if (!recovered.ok() && (wait || recovered.error().code != Errc::kBusy))
        return std::move(recovered).error();
      if (recovered.ok() && *recovered && (*recovered)->busy && wait)
        return std::move(*(*recovered)->busy);
      if (recovered.ok() && *recovered) ctx.term.Warn((*recovered)->text);
      OpenedRoot out{
          .opened = std::move(*opened), .catalog = {}, .root = root->root, .path = dir};
      BELAY_TRY(out.path, AbsPath::Parse(root->root.path));
      BELAY_TRY(out.catalog, Catalog::Open(out.store()));
      return out;
    }
  }
  return OpenRoot(ctx, NeedsRoot::kProtected);  // says why not, in words
}

namespace {

Result<AbsPath> Typed(CommandContext& ctx, const AbsPath& root,
                      std::string_view given) {
  if (given.empty()) return Error(Errc::kInvalid, "an empty path names nothing");
  const auto& cwd = ctx.env.cwd;
  return AbsPath::Resolve(cwd && cwd->IsWithin(root) ? *cwd : root, given);
}

std::optional<PathBelow> AsTyped(const std::optional<std::string>& below,
                                 std::string_view given) {
  if (!below) return std::nullopt;
  return PathBelow{.path = *below,
                   .as_directory = given.ends_with('/') || given == "." ||
                                   given == ".." || given.ends_with("/.") ||
                                   given.ends_with("/..")};
}

}  // namespace

Result<std::optional<PathBelow>> FindBelow(CommandContext& ctx, const AbsPath& root,
                                           std::string_view given) {
  BELAY_TRY(AbsPath path, Typed(ctx, root, given));
  if (auto below = AsTyped(path.Below(root), given)) return below;
  return AsTyped(RealPathBelow(ctx.fs, root, path), given);
}

const LiveSession* WhoAsks(const Live& live, std::string_view asked_by) {
  if (asked_by.starts_with("session:")) return live.Find(asked_by.substr(8));
  if (!asked_by.starts_with("agent:")) return nullptr;
  const LiveSession* last = nullptr;
  for (const LiveSession& one : live.sessions())
    if (one.agent == asked_by.substr(6) && one.recorded &&
        (last == nullptr || one.seen_ms > last->seen_ms))
      last = &one;
  return last;
}

Result<std::optional<std::string>> SessionAtWork(CommandContext& ctx,
                                                 OpenedRoot& root) {
  const Live live = Live::Load(root.store(), root.root.id);
  if (const LiveSession* asks = WhoAsks(live, ctx.env.asked_by)) {
    BELAY_TRY(std::string session, WhoseSubagent(*root.catalog, asks->id));
    return std::optional(std::move(session));
  }
  return ActiveSession(*root.catalog, root.root.id, &live);
}

Result<FoundRef> FindCheckpoint(CommandContext& ctx, OpenedRoot& root,
                                std::string_view ref) {
  RefContext context{.root = root.root.id, .now_ms = root.opened->clock.WallMillis()};
  if (auto session = ctx.args.value("--session")) context.session = *session;
  if (ref.starts_with("turn:") || ref.starts_with("tool:")) {
    BELAY_TRY(context.active, SessionAtWork(ctx, root));
  }
  auto found = ResolveRef(*root.catalog, context, ref);
  if (!found.ok() && found.error().code == Errc::kNotFound) {
    // It may have been in what was lost.
    BELAY_TRY(auto damage, SeenDamage(root.store(), *root.catalog));
    if (damage) {
      damage->what += StrCat("; ", found.error().what);
      return std::move(*damage);
    }
  }
  if (found.ok() && !found->note.empty()) ctx.term.Warn(found->note);
  return found;
}

Result<OpenedRoot> OpenRoot(CommandContext& ctx, NeedsRoot needs) {
  BELAY_TRY(AbsPath dir, NamedDir(ctx));
  return OpenRootAt(ctx, needs, std::move(dir));
}

Result<OpenedRoot> OpenRootOfSession(CommandContext& ctx, NeedsRoot needs,
                                     std::string_view session) {
  auto here = OpenRoot(ctx, needs);
  if (here.ok() || here.error().code != Errc::kRefused || ctx.args.value("--root"))
    return here;
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (!opened.ok()) return here;
  BELAY_TRY(auto catalog, Catalog::Open(*(*opened)->store));
  BELAY_TRY(const std::string id, FindSession(*catalog, session));
  BELAY_TRY(const auto sessions, ListSessions(*catalog, std::nullopt));
  auto known = std::ranges::find(sessions, id, &SessionSummary::id);
  // A fork that nobody went on with yet is where it was forked.
  for (size_t left = sessions.size();
       known != sessions.end() && known->roots.empty() && known->parent && left > 0;
       --left)
    known = std::ranges::find(sessions, *known->parent, &SessionSummary::id);
  if (known == sessions.end() || known->roots.empty()) return here;
  if (known->roots.size() > 1)
    return Error(Errc::kRefused, StrCat("session ", EscapeText(id),
                                        " worked in several protected directories"))
        .WithHint(StrCat("name one of them: --root ", ShellWord(known->roots[0])));
  BELAY_TRY(AbsPath dir, AbsPath::Parse(known->roots[0]));
  catalog.reset();
  opened->reset();
  return OpenRootAt(ctx, needs, std::move(dir));
}

Result<OpenedRoot> OpenRootAt(CommandContext& ctx, NeedsRoot needs, AbsPath dir) {
  auto not_protected = [&] {
    return Error(Errc::kRefused,
                 StrCat(EscapeForDisplay(dir.bytes()), " is not protected"))
        .WithHint(StrCat("protect it with: belay on", DirWord(ctx, dir.bytes())));
  };
  // A store without a single root is not made on the way to saying so.
  auto opened =
      OpenStore(ctx, needs == NeedsRoot::kKnown ? Store::Mode::kRead
                                                : Store::Mode::kWriteExisting);
  if (!opened.ok()) {
    if (opened.error().code == Errc::kNotFound) return not_protected();
    return std::move(opened).error();
  }
  OpenedRoot out{.opened = std::move(*opened), .catalog = {}, .root = {}, .path = dir};
  BELAY_TRY(out.catalog, Catalog::Open(out.store()));
  BELAY_TRY(std::vector<RootEntry> roots, out.catalog->Roots());
  auto root = FindRootFor(roots, dir);
  if (root && (needs != NeedsRoot::kProtected || !root->root.off)) {
    SayLeftOut(ctx, out.store(), roots, root->root, dir);
    out.root = root->root;
    BELAY_TRY(out.path, AbsPath::Parse(root->root.path));
    const Store* before = out.opened->store.get();
    // Who only looks is not kept from it, and does not wait for who is at work.
    const bool looks = needs == NeedsRoot::kKnown;
    auto recovered = RecoverFirst(ctx, out.opened, out.root, looks ? 0 : 10'000);
    if (!recovered.ok() && !looks) return std::move(recovered).error();
    if (recovered.ok() && *recovered && (*recovered)->busy && !looks)
      return std::move(*(*recovered)->busy);
    if (!recovered.ok() && recovered.error().code == Errc::kBusy)
      ctx.term.Warn(recovered.error().what);
    else if (!recovered.ok())
      ctx.term.Warn(
          StrCat("an interrupted rollback may wait: ", recovered.error().what));
    else if (*recovered)
      ctx.term.Warn((*recovered)->text);
    if (out.opened->store.get() != before) {
      BELAY_TRY(out.catalog, Catalog::Open(out.store()));
    }
    if (needs == NeedsRoot::kKnown) {
      // What is whole can be looked at; but what is missing must not look as if it had
      // never been.
      BELAY_TRY(auto damage, SeenDamage(out.store(), *out.catalog));
      if (damage) ctx.term.Warn(StrCat(damage->what, "; run: belay verify"));
    }
    return out;
  }
  // A store that lost a pack must not look like one that never had anything.
  BELAY_TRY(auto damage, SeenDamage(out.store(), *out.catalog));
  if (damage) return std::move(*damage);
  if (auto fd = ctx.fs.OpenDir(dir); fd.ok()) {
    auto stat = ctx.fs.Stat(*fd);
    if (stat.ok()) {
      BELAY_TRY(auto moved, FindMoved(*out.catalog, ctx.fs, *stat));
      if (moved)
        return Error(Errc::kRefused,
                     StrCat(EscapeForDisplay(dir.bytes()),
                            " is not protected, but looks like ",
                            EscapeForDisplay(moved->root.path), ", which is gone"))
            .WithHint(StrCat("go on with its history: belay on",
                             DirWord(ctx, dir.bytes()), " --moved-from ",
                             ShellWord(moved->root.path)));
    }
  }
  return not_protected();
}

}  // namespace belay
