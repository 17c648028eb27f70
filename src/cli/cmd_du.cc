#include "base/escape.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "store/usage.h"

namespace belay {

namespace {

// Of a root or a session.
template <class Usage>
void WriteSums(std::string_view key, const std::string& name, const Usage& of,
               JsonWriter& json) {
  json.BeginObject();
  json.Key(key).PathValue(name);
  json.Key("checkpoints").Uint(of.checkpoints);
  json.Key("unique").Uint(of.unique);
  json.Key("shared").Uint(of.shared);
  json.Key("reclaimable").Uint(of.reclaimable);
  json.EndObject();
}

void WriteJson(const StoreUsage& usage, const AbsPath& dir, JsonWriter& json) {
  json.BeginObject();
  json.Key("store").PathValue(dir.bytes());
  json.Key("allocated").Uint(usage.allocated);
  json.Key("packs").Uint(usage.packs);
  json.Key("indexes").Uint(usage.indexes);
  json.Key("catalog").Uint(usage.catalog);
  json.Key("aside").Uint(usage.aside);
  json.Key("aside_paths").BeginArray();
  for (const std::string& path : usage.aside_paths) json.PathValue(path);
  json.EndArray();
  json.Key("other").Uint(usage.other);
  json.Key("wanted").Uint(usage.wanted);
  json.Key("reclaimable").Uint(usage.reclaimable);
  json.Key("overhead").Uint(usage.overhead);
  json.Key("complete").Bool(usage.damage.empty());
  json.Key("by_type").BeginObject();
  for (const auto& [type, bytes] : usage.by_type) json.Key(type).Uint(bytes);
  json.EndObject();
  json.Key("roots").BeginArray();
  for (const RootUsage& root : usage.roots) WriteSums("root", root.path, root, json);
  json.EndArray();
  json.Key("sessions").BeginArray();
  for (const SessionUsage& session : usage.sessions)
    WriteSums("session", session.session, session, json);
  json.EndArray().EndObject();
}

std::string Line(uint64_t bytes, std::string_view what) {
  std::string size = SizeText(bytes);
  return StrCat(std::string(size.size() < 10 ? 10 - size.size() : 0, ' '), size, "  ",
                what, "\n");
}

template <class Usage>
void ShowSums(Terminal& term, const std::string& name, const Usage& of) {
  term.Out(StrCat(name, ": ", CountText(of.checkpoints, "checkpoint"), "\n"));
  term.Out(Line(of.unique, "only here"));
  term.Out(Line(of.shared, "shared with others"));
  if (of.reclaimable > 0)
    term.Out(Line(of.reclaimable, "no longer needed: belay gc --everything"));
}

}  // namespace

ExitCode CmdDu(CommandContext& ctx) {
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  StoreUsage usage;
  ExitCode code = ExitCode::kOk;
  if (opened.ok()) {
    auto measured = MeasureUsage(*(*opened)->store);
    if (!measured.ok()) return FailOnStore(ctx, measured.error());
    usage = std::move(*measured);
    for (const std::string& d : usage.damage)
      ctx.term.Warn(
          StrCat("the store is damaged: ", d, "; run: belay verify --read-data"));
    if (!usage.damage.empty()) code = ExitCode::kDamaged;
  } else if (opened.error().code != Errc::kNotFound) {
    return FailOnStore(ctx, opened.error());
  }
  if (ctx.args.has("--root")) {
    auto root = FindRoot(ctx);
    if (!root.ok()) return ctx.term.Fail(root.error());
    if (!root->is_protected)
      return ctx.term.Fail(Error(
          Errc::kNotFound,
          StrCat("not a protected directory: ", EscapeForDisplay(root->root.bytes()))));
    std::erase_if(usage.roots,
                  [&](const RootUsage& one) { return one.path != root->root.bytes(); });
  }
  auto dir = ctx.env.StoreDir();
  if (!dir.ok()) return ctx.term.Fail(dir.error());
  if (ctx.term.json()) {
    JsonWriter json;
    WriteJson(usage, *dir, json);
    ctx.term.OutJson(json);
    return code;
  }
  Terminal& term = ctx.term;
  if (!opened.ok()) {
    term.Out(StrCat("nothing stored yet at ", EscapeForDisplay(dir->bytes()), "\n"));
    return ExitCode::kOk;
  }
  term.Out(
      Line(usage.allocated, StrCat("on disk at ", EscapeForDisplay(dir->bytes()))));
  term.Out(Line(usage.packs, "packs"));
  term.Out(Line(usage.indexes + usage.catalog + usage.other, "indexes and catalogue"));
  if (!usage.aside_paths.empty()) {
    term.Out(Line(usage.aside, StrCat("put aside by repair, ",
                                      CountText(usage.aside_paths.size(), "file"),
                                      "; delete what you do not need:")));
    for (const std::string& path : usage.aside_paths)
      term.Out(StrCat("              ", EscapeForDisplay(dir->bytes()), "/",
                      EscapeForDisplay(path), "\n"));
  }
  // What is not wanted cannot be known while something is damaged, and gc refuses.
  if (usage.damage.empty())
    term.Out(Line(usage.reclaimable,
                  usage.reclaimable > 0
                      ? "of the packs could be given back: belay gc --everything"
                      : "of the packs could be given back"));
  for (const RootUsage& root : usage.roots)
    ShowSums(term,
             root.path.empty() ? StrCat("root ", root.root.text().substr(0, 7))
                               : EscapeForDisplay(root.path),
             root);
  if (!ctx.args.has("--sessions")) return code;
  for (const SessionUsage& session : usage.sessions)
    ShowSums(term, StrCat("session ", EscapeText(session.session)), session);
  return code;
}

}  // namespace belay
