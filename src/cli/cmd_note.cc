// note, pin and unpin: what somebody says about a checkpoint that is there already.

#include "base/escape.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "commits/anchors.h"
#include "core/annotate.h"

namespace belay {

namespace {

// Annotates the checkpoint of the first argument and says what is so now.
ExitCode Run(CommandContext& ctx, const Annotation& annotation, std::string_view done) {
  auto root = OpenRoot(ctx, NeedsRoot::kRecorded);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  auto found = FindCheckpoint(ctx, *root, ctx.args.positional()[0]);
  if (!found.ok()) return ctx.term.Fail(found.error());
  auto settings = LoadSettingsFor(ctx, root->path);
  if (!settings.ok()) return ctx.term.Fail(settings.error());
  AnnotationRoom room{*settings};
  auto after = Annotate(root->store(), found->entry, annotation, &room);
  if (!after.ok()) return FailOnStore(ctx, after.error());
  ctx.term.WorkIsDone();
  if (room.let_go > 0)
    ctx.term.Warn(StrCat(
        "the store was full: ", CountText(room.let_go, "old automatic checkpoint"),
        room.let_go == 1 ? " was let go" : " were let go"));
  const Checkpoint& c = after->checkpoint;
  if (ctx.term.json()) {
    StateFacts facts(root->store(),
                     AnchoredIn(ctx.fs, root->path, GitPlacesOf(ctx.env)));
    const StateParts state = facts.Of(c.state);
    auto taken_back = TakenBackBy(*root->catalog, root->root.id, c.seq);
    JsonWriter json;
    WriteCheckpoint(*after, found->number, root->root.path, state, json, {},
                    taken_back.ok() ? *taken_back : std::nullopt);
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  ctx.term.Say(StrCat(*after == found->entry ? "nothing new" : done, ": ",
                      CheckpointLine(*after, 60)));
  return ExitCode::kOk;
}

}  // namespace

ExitCode CmdNote(CommandContext& ctx) {
  Annotation annotation;
  const auto& words = ctx.args.positional();
  for (size_t i = 1; i < words.size(); ++i)
    annotation.note = StrCat(annotation.note.value_or(""), i > 1 ? " " : "", words[i]);
  if (auto name = ctx.args.value("--name")) {
    Status fine = CheckNewName(*name);
    if (!fine.ok()) return ctx.term.FailUsage(fine.error().what, fine.error().hint);
    annotation.name = std::string(*name);
  }
  if (ctx.args.has("--no-name")) {
    if (annotation.name) return ctx.term.FailUsage("--name and --no-name: one of them");
    annotation.name = "";
  }
  for (std::string_view given : ctx.args.values("--meta")) {
    const size_t equals = given.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return ctx.term.FailUsage(
          StrCat("--meta wants KEY=VALUE, not \"", EscapeForDisplay(given), "\""));
    auto& value = annotation.meta[std::string(given.substr(0, equals))];
    value.reset();
    if (equals + 1 < given.size()) value = std::string(given.substr(equals + 1));
  }
  if (annotation.empty())
    return ctx.term.FailUsage("needs TEXT, or --name, --no-name or --meta",
                              "an empty TEXT ('') takes the note away");
  const bool only_takes =
      annotation.note == "" && !annotation.name && annotation.meta.empty();
  return Run(ctx, annotation, only_takes ? "note taken away" : "noted");
}

ExitCode CmdPin(CommandContext& ctx) {
  Annotation annotation;
  annotation.pinned = true;
  return Run(ctx, annotation, "pinned");
}

ExitCode CmdUnpin(CommandContext& ctx) {
  Annotation annotation;
  annotation.pinned = false;
  return Run(ctx, annotation, "unpinned");
}

}  // namespace belay
