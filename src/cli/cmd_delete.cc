#include "base/escape.h"
#include "base/mutant.h"
#include "cli/anchoring.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "core/annotate.h"

namespace belay {

ExitCode CmdDelete(CommandContext& ctx) {
  auto root = OpenRoot(ctx, NeedsRoot::kRecorded);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  // All of them first: a number means what the list shows now.
  std::vector<FoundRef> found;
  std::vector<RecordId> ids;
  for (std::string_view ref : ctx.args.positional()) {
    auto one = FindCheckpoint(ctx, *root, ref);
    if (!one.ok()) return ctx.term.Fail(one.error());
    const Checkpoint& c = one->entry.checkpoint;
    if (std::find(ids.begin(), ids.end(), c.id) != ids.end()) continue;
    if (one->entry.pinned) {
      const std::string id = c.id.text().substr(0, 7);
      return ctx.term.Fail(
          Error(Errc::kRefused, StrCat(id, " '", EscapeText(CheckpointTitle(c)),
                                       "' is pinned; nothing was deleted"))
              .WithHint(StrCat("release it first: belay unpin ", id)));
    }
    ids.push_back(c.id);
    found.push_back(std::move(*one));
  }
  auto operations = ListOperations(*root->catalog, root->root.id);
  if (!operations.ok()) return ctx.term.Fail(operations.error());
  bool of_undo = false;
  for (const FoundRef& one : found)
    for (const Operation& o : *operations)
      of_undo |= o.safety == one.entry.checkpoint.id;

  if (!ctx.args.has("--yes") && !BELAY_MUTANT("delete-without-asking")) {
    if (!ctx.term.json())
      for (const FoundRef& one : found)
        ctx.term.Out(StrCat(std::to_string(one.number), ". ",
                            CheckpointLine(one.entry, 70), "\n"));
    if (of_undo)
      ctx.term.Note(
          "A safety checkpoint is among them. `belay undo` works without it.");
    if (!ctx.term.CanAsk() || ctx.term.json())
      return ctx.term.Fail(
          Error(Errc::kRefused,
                StrCat("this deletes ", CountText(found.size(), "checkpoint"),
                       " for good, and nobody can be asked here"))
              .WithHint("give --yes if that is what you want"));
    if (!ctx.term.Confirm(StrCat("Delete ",
                                 found.size() == 1
                                     ? std::string("this checkpoint")
                                     : CountText(found.size(), "checkpoint"),
                                 "? This cannot be undone.")))
      return ctx.term.Fail(Error(Errc::kRefused, "nothing was deleted"));
  }
  auto done = DeleteCheckpoints(root->store(), *root->catalog, root->root, ids);
  if (!done.ok()) return FailOnStore(ctx, done.error());
  ctx.term.WorkIsDone();
  (void)DropAnchors(ctx, root->store(), *root->catalog);
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("root").PathValue(root->root.path);
    json.Key("operation").String(done->operation.text());
    json.Key("deleted").BeginArray();
    StateFacts facts(root->store());
    for (size_t i = 0; i < done->checkpoints.size(); ++i) {
      const StateParts state = facts.Of(done->checkpoints[i].checkpoint.state);
      WriteCheckpoint(done->checkpoints[i], found[i].number, root->root.path, state,
                      json);
    }
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  for (const CatalogEntry& entry : done->checkpoints)
    ctx.term.Out(StrCat("deleted ", CheckpointLine(entry, 72), "\n"));
  ctx.term.Say(
      "The space comes back by itself, or with: belay gc. So that it is in no file any "
      "more: belay gc --everything");
  return ExitCode::kOk;
}

}  // namespace belay
