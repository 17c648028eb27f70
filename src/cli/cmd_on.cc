#include <algorithm>
#include <optional>

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "core/place.h"
#include "core/roots.h"
#include "store/heads.h"

namespace belay {

namespace {

// There is something in its place, and nothing of anybody's: others may have used what
// we made.
bool IsEmptyStore(CommandContext& ctx, const AbsPath& dir) {
  auto there = ctx.fs.OpenDir(dir);
  auto names = there.ok() ? ctx.fs.List(*there) : there.error();
  if (!names.ok() || names->empty()) return false;
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (!opened.ok()) return opened.error().code == Errc::kNotFound;
  auto heads = Heads::Read(*(*opened)->store);
  return heads.ok() && heads->roots().empty();
}

// What was recorded here has to go first; --yes is offered where no person had a part
// in it.
std::string ToGoOnHere(Catalog& catalog, const AbsPath& here, const AbsPath& from,
                       const std::string& word) {
  bool by_itself = false;
  auto known = FindRootAt(catalog, here);
  if (known.ok() && *known)
    if (auto rows = catalog.Outline((*known)->root.id); rows.ok())
      by_itself = std::ranges::all_of(*rows, [](const CheckpointRow& row) {
        return row.kind == CheckpointKind::kAuto && !row.pinned;
      });
  const std::string then =
      StrCat("belay on", word, " --moved-from ", ShellWord(from.bytes()));
  if (!by_itself)
    return StrCat("if that history may go: belay off --forget", word, "; then: ", then);
  return StrCat(
      "all of that was recorded by itself; if it may go: belay off --forget "
      "--yes",
      word, " && ", then);
}

}  // namespace

ExitCode CmdOn(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  std::optional<std::string_view> named =
      words.empty() ? ctx.args.value("--root") : std::optional(words[0]);
  auto resolved = ctx.env.Resolve(named.value_or("."));
  if (!resolved.ok()) return ctx.term.Fail(resolved.error());
  auto real = ctx.fs.RealPath(*resolved);
  if (!real.ok()) {
    Error error = real.error();
    if (error.code == Errc::kNotFound && error.hint.empty())
      error.hint = "name a directory that is there, or make it first";
    return ctx.term.Fail(error);
  }
  auto dir = ctx.fs.OpenDir(*real);
  if (!dir.ok()) return ctx.term.Fail(dir.error());
  auto stat = ctx.fs.Stat(*dir);
  if (!stat.ok()) return ctx.term.Fail(stat.error());

  std::optional<AbsPath> moved_from;
  if (auto old = ctx.args.value("--moved-from")) {
    auto path = ctx.env.Resolve(*old);
    if (!path.ok()) return ctx.term.Fail(path.error());
    moved_from = std::move(*path);
  }
  auto prepared = PrepareStore(ctx);
  if (!prepared.ok()) return ctx.term.Fail(prepared.error());
  auto store_dir = ctx.fs.RealPath((*prepared)->dir);
  auto home = ctx.env.HomeDir();
  Status place = CheckPlace(
      ctx.fs, *real, *dir, store_dir.ok() ? *store_dir : (*prepared)->dir,
      home.ok() ? std::optional(*home) : std::nullopt, ctx.args.has("--force"));
  if (!place.ok()) return ctx.term.Fail(place.error());

  // One that is there and cannot be opened is not empty.
  const Errc before = [&] {
    auto opened = OpenStore(ctx, Store::Mode::kRead);
    return opened.ok() ? Errc::kExists : opened.error().code;
  }();
  // What was begun of a store stays: somebody else may be waiting for its lock.
  auto fail = [&](Error error) {
    if (before == Errc::kNotFound && IsEmptyStore(ctx, (*prepared)->dir))
      error.what += StrCat(" (an empty store was left in ",
                           EscapeForDisplay((*prepared)->dir.bytes()), ")");
    return FailOnStore(ctx, std::move(error));
  };
  auto opened = OpenStore(ctx, Store::Mode::kWrite);
  if (!opened.ok()) return fail(opened.error());
  Store& store = *(*opened)->store;
  auto catalog = Catalog::Open(store);
  if (!catalog.ok()) return fail(catalog.error());
  std::optional<std::string> looks_like;
  if (!moved_from) {
    auto moved = FindMoved(**catalog, ctx.fs, *stat);
    auto here = FindRootAt(**catalog, *real);
    if (moved.ok() && *moved && here.ok() && !*here) {
      looks_like = (*moved)->root.path;
      ctx.term.Warn(StrCat("this looks like ", EscapeForDisplay(*looks_like),
                           ", which is gone; to go on with its history: belay on",
                           DirWord(ctx, real->bytes()), " --moved-from ",
                           ShellWord(*looks_like)));
    }
  }
  auto done = RegisterRoot(store, **catalog, *real, *stat, moved_from);
  if (!done.ok()) {
    Error error = done.error();
    // Offers that can be pasted, wherever one is.
    const std::string word = DirWord(ctx, real->bytes());
    if (error.code == Errc::kExists && moved_from)
      error.hint = ToGoOnHere(**catalog, *real, *moved_from, word);
    else if (moved_from && error.code == Errc::kRefused)
      error.hint = StrCat("protect it with a history of its own: belay on", word);
    return fail(std::move(error));
  }
  ctx.term.WorkIsDone();
  // Under its own path by now: what was interrupted there, or where it was moved from,
  // is ended first.
  catalog->reset();  // of a store that may be opened anew
  auto recovered = RecoverFirst(ctx, *opened, done->root, 10'000);
  if (!recovered.ok()) return ctx.term.Fail(recovered.error());
  const bool waits = *recovered && (*recovered)->how == Recovered::How::kWaiting;
  if (*recovered) ctx.term.Warn((*recovered)->text);
  const ExitCode code = waits ? ExitCode::kProblem : ExitCode::kOk;
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("root").PathValue(done->root.path);
    json.Key("id").String(done->root.id.text());
    json.Key("protected").Bool(true);
    json.Key("new").Bool(done->is_new);
    json.Key("looks_like");
    if (looks_like)
      json.PathValue(*looks_like);
    else
      json.Null();
    json.Key("moved_along").BeginArray();
    for (const Registered::Moved& inner : done->moved_along) {
      json.BeginObject();
      json.Key("from").PathValue(inner.from);
      json.Key("to").PathValue(inner.to);
      json.EndObject();
    }
    json.EndArray();
    json.Key("recovered");
    if (*recovered)
      json.String((*recovered)->text);
    else
      json.Null();
    json.EndObject();
    ctx.term.OutJson(json);
    return code;
  }
  ctx.term.Out(StrCat(ctx.term.Paint(Style::kGreen, "protected"), ": ",
                      EscapeForDisplay(done->root.path), "\n"));
  if (moved_from && !done->was_on)
    ctx.term.Say(StrCat("Its history from ", EscapeForDisplay(moved_from->bytes()),
                        " goes on here."));
  else if (done->was_on)
    ctx.term.Say("It was protected already.");
  else
    ctx.term.Say(StrCat("Keep the present state with: belay checkpoint",
                        DirWord(ctx, done->root.path).empty() ? "" : " --root",
                        DirWord(ctx, done->root.path)));
  for (const Registered::Moved& inner : done->moved_along)
    ctx.term.Say(StrCat("So does that of ", EscapeForDisplay(inner.from), ", at ",
                        EscapeForDisplay(inner.to), "."));
  return code;
}

}  // namespace belay
