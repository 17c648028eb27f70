#include "base/escape.h"
#include "base/mutant.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "core/purged.h"
#include "core/state_view.h"

namespace belay {

namespace {

constexpr uint64_t kMaxJson = uint64_t{256} << 20;  // of content in one JSON document

// A secret by the state's own rules, or by today's: a pattern that somebody added since
// is meant for what is stored already, too.
Result<bool> IsSecret(CommandContext& ctx, OpenedRoot& root, const StateView& view,
                      const RelPath& path) {
  RuleLists lists;
  lists.secret_patterns = Settings::DefaultSecretPatterns();
  if (IsSecretPath(view.rules ? view.rules->lists : lists, path)) return true;
  const Settings settings = LoadSettingsToRescue(ctx, root.path).settings;
  lists.secret_patterns = settings.secret_patterns;
  return IsSecretPath(lists, path);
}

// The symlink among the directories of `path` that the checkpoint has, or "".
std::string LinkAbove(OpenedRoot& root, const ObjectId& tree, const RelPath& path) {
  const std::vector<std::string_view> names = path.Components();
  std::string at;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    at += StrCat(at.empty() ? "" : "/", names[i]);
    auto above = RelPath::Parse(at);
    if (!above.ok()) return {};
    auto entry = FindInTree(tree, *above, TreesOf(root.store()));
    if (!entry.ok() || !*entry) return {};
    if ((*entry)->kind == EntryKind::kSymlink) return at;
  }
  return {};
}

ExitCode ShowJson(CommandContext& ctx, OpenedRoot& root, const std::string& path,
                  const TreeEntry& entry) {
  std::string content = entry.target;
  if (entry.kind == EntryKind::kFile) {
    auto bytes = root.store().ReadContentBytes(entry.id, kMaxJson);
    if (!bytes.ok()) return FailOnStore(ctx, bytes.error());
    content = AsText(*bytes);
  }
  JsonWriter json;
  json.BeginObject();
  json.Key("path").PathValue(path);
  json.Key("kind").String(entry.kind == EntryKind::kFile ? "file" : "symlink");
  json.Key("size").Uint(content.size());
  json.Key("content").PathValue(content);
  json.EndObject();
  ctx.term.OutJson(json);
  return ExitCode::kOk;
}

}  // namespace

ExitCode CmdCat(CommandContext& ctx) {
  const auto& words = ctx.args.positional();
  auto root = OpenRoot(ctx, NeedsRoot::kKnown);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  auto below = FindBelow(ctx, root->path, words[1]);
  if (!below.ok()) return ctx.term.Fail(below.error());
  const std::string typed = EscapeForDisplay(words[1]);
  if (!*below)
    return ctx.term.Fail(
        Error(Errc::kInvalid,
              StrCat(typed, " is outside ", EscapeForDisplay(root->root.path))));
  const std::string& path = (*below)->path;
  if (path.empty())
    return ctx.term.Fail(Error(Errc::kInvalid, StrCat(typed, " is a directory"))
                             .WithHint("`belay ls` lists what is in one"));
  auto found = FindCheckpoint(ctx, *root, words[0]);
  if (!found.ok()) return FailOnStore(ctx, found.error());
  const Checkpoint& c = found->entry.checkpoint;

  auto hold = root->store().HoldForReading();
  if (!hold.ok()) return FailOnStore(ctx, hold.error());
  auto view = LoadState(root->store(), c.state);
  if (!view.ok()) return FailOnStore(ctx, view.error());
  auto rel = RelPath::Parse(path);
  if (!rel.ok()) return ctx.term.Fail(rel.error());
  const std::string shown = EscapeForDisplay(path);
  auto entry = FindInTree(view->state.tree, *rel, TreesOf(root->store()));
  if (!entry.ok()) return FailOnStore(ctx, entry.error());
  if (!*entry) {
    Error none(Errc::kNotFound, StrCat("checkpoint ", c.id.text().substr(0, 7),
                                       " does not hold ", shown));
    for (const SkippedPath& skipped : view->Skipped())
      if (skipped.path == path && !IsHeld(skipped.why))
        none.hint = StrCat("it was left out then: ", SkipName(skipped.why));
    if (std::string link = LinkAbove(*root, view->state.tree, *rel); !link.empty())
      none.hint =
          StrCat("it lies beyond the symlink ", EscapeForDisplay(link),
                 ", which is kept as a link: what is beyond is not covered there");
    return ctx.term.Fail(none);
  }
  const TreeEntry& e = **entry;
  if (e.kind == EntryKind::kDirectory)
    return ctx.term.Fail(Error(Errc::kInvalid, StrCat(shown, " is a directory"))
                             .WithHint("`belay ls` lists what is in one"));
  if (e.kind == EntryKind::kFile) {
    auto purged = PurgedSet::Load(*root->catalog);
    if (!purged.ok()) return FailOnStore(ctx, purged.error());
    if (purged->Has(e.id, c.seq))
      return ctx.term.Fail(Error(Errc::kPurged, StrCat(shown, " was purged")));
  }
  if (!ctx.args.has("--reveal") && !BELAY_MUTANT("reveal-secrets")) {
    auto secret = IsSecret(ctx, *root, *view, *rel);
    if (!secret.ok()) return FailOnStore(ctx, secret.error());
    if (*secret)
      return ctx.term.Fail(Error(Errc::kRefused, StrCat(shown, " may hold a secret"))
                               .WithHint("give --reveal to see it all the same"));
  }
  if (ctx.term.json()) return ShowJson(ctx, *root, path, e);
  if (e.kind == EntryKind::kSymlink) {
    ctx.term.Out(e.target);
    return ExitCode::kOk;
  }
  Status read = root->store().ReadContent(e.id, [&](ByteSpan piece) -> Status {
    ctx.term.Out(AsText(piece));
    // Nobody reads it any more.
    if (ctx.term.out_failed()) return Error(Errc::kIo, "");
    return Ok();
  });
  if (!read.ok() && !ctx.term.out_failed()) {
    Error error = Context(read.error(), shown);
    // The checkpoint needs it: a store without it is damaged.
    if (error.code == Errc::kNotFound) error.code = Errc::kCorrupt;
    return FailOnStore(ctx, error);
  }
  return ExitCode::kOk;
}

}  // namespace belay
