#include <cstdio>

#include "base/escape.h"
#include "cli/anchoring.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/open_store.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "core/failures.h"
#include "core/refs.h"

namespace belay {

namespace {

Result<std::map<std::string, std::string>> ParseMeta(const Args& args) {
  std::map<std::string, std::string> meta;
  for (std::string_view given : args.values("--meta")) {
    size_t equals = given.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return Error(Errc::kInvalid, StrCat("--meta wants KEY=VALUE, not \"",
                                          EscapeForDisplay(given), "\""));
    meta[std::string(given.substr(0, equals))] = given.substr(equals + 1);
  }
  return meta;
}

std::optional<std::string> Text(const Args& args, std::string_view flag) {
  auto value = args.value(flag);
  return value ? std::optional<std::string>(*value) : std::nullopt;
}

// What was left out, in few words: the full list is in `belay show`.
std::string SkippedText(const std::vector<SkippedPath>& skipped) {
  const std::string begin =
      StrCat("  ", CountText(skipped.size(), "path"), " left out: ");
  const std::string end =
      StrCat(" (", SkipName(skipped[0].why), ")", skipped.size() > 1 ? ", ..." : "");
  return StrCat(
      begin,
      FitPath(EscapeForDisplay(skipped[0].path), kColumns - begin.size() - end.size()),
      end);
}

std::string ChangingText(const std::vector<SkippedPath>& changing) {
  const std::string begin = StrCat("  ", CountText(changing.size(), "file"),
                                   " changed while being read, kept as last read: ");
  const std::string end = changing.size() > 1 ? ", ..." : "";
  return StrCat(
      begin,
      FitPath(EscapeForDisplay(changing[0].path), kColumns - begin.size() - end.size()),
      end);
}

std::string UnreadText(const std::vector<SkippedPath>& unread) {
  const std::string begin = "  extended attributes could not be read: ";
  const std::string end =
      unread.size() > 1 ? StrCat(" and ", std::to_string(unread.size() - 1), " more")
                        : "";
  return StrCat(
      begin,
      FitPath(EscapeForDisplay(unread[0].path), kColumns - begin.size() - end.size()),
      end);
}

// What it says of a new checkpoint.
void Report(CommandContext& ctx, const Root& root, const Captured& made) {
  const Checkpoint& c = made.checkpoint;
  if (ctx.term.json()) {
    JsonWriter json;
    WriteCheckpoint({.checkpoint = c, .pinned = false, .health = {}}, 1, root.path,
                    {made.tree, made.skipped, &made.git}, json);
    ctx.term.OutJson(json);
    return;
  }
  if (ctx.term.quiet()) {
    ctx.term.Out(StrCat(c.id.text(), "\n"));
    return;
  }
  ctx.term.Out(StrCat(Fit(StrCat("kept ", c.id.text().substr(0, 7), "  ",
                                 EscapeText(CheckpointTitle(c))),
                          kColumns),
                      "\n"));
  ctx.term.Say(StrCat("  ", CountText(c.files, "file"), ", ", SizeText(c.bytes), "; ",
                      ChangedText(c), "; ", Milliseconds(c.took_us)));
  std::vector<SkippedPath> left_out, changing, unread;
  for (const SkippedPath& path : made.skipped)
    (path.why == Skip::kChanging       ? changing
     : path.why == Skip::kNoAttributes ? unread
                                       : left_out)
        .push_back(path);
  if (!left_out.empty()) ctx.term.Say(SkippedText(left_out));
  if (!changing.empty()) ctx.term.Say(ChangingText(changing));
  if (!unread.empty()) ctx.term.Say(UnreadText(unread));
}

}  // namespace

ExitCode CmdCheckpoint(CommandContext& ctx) {
  CaptureRequest request;
  request.name = Text(ctx.args, "--name");
  if (request.name) {
    Status fine = CheckNewName(*request.name);
    if (!fine.ok()) return ctx.term.FailUsage(fine.error().what, fine.error().hint);
  }
  request.note = Text(ctx.args, "--note");
  request.session = Text(ctx.args, "--session");
  request.message_id = Text(ctx.args, "--message");
  request.of_active_session = true;
  auto meta = ParseMeta(ctx.args);
  if (!meta.ok()) return ctx.term.FailUsage(meta.error().what);
  request.meta = std::move(*meta);

  auto root = OpenRootFast(ctx);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  Status there = CheckRootIsThere(ctx, root->path);
  if (!there.ok()) {
    Error error = there.error();
    auto last = root->catalog->LastCheckpoint(root->root.id);
    if (last.ok() && !*last) error.hint = WithoutHistory(root->path);
    return ctx.term.Fail(error);
  }
  auto settings = LoadSettingsFor(ctx, root->path);
  if (!settings.ok()) return ctx.term.Fail(settings.error());
  if (!settings->enabled) return ctx.term.Fail(SwitchedOff(*settings));
  request.root = root->root;
  request.settings = &*settings;
  request.git = GitPlacesOf(ctx.env);
  Progress progress(ctx.term, root->opened->clock, "reading");
  request.progress = [&](const ScanProgress& p) {
    if (p.step == ScanProgress::Step::kCapture)
      progress.Update(p.bytes, p.total_bytes);
    else
      progress.Count(p.files, "files");
  };
  auto made = CaptureCheckpoint(root->store(), request);
  progress.Done();
  if (!made.ok()) {
    NoteFailure(root->store(), root->root.id, "checkpoint", made.error());
    return FailOnStore(ctx, made.error());
  }
  ctx.term.WorkIsDone();
  for (const std::string& warning : made->warnings) ctx.term.Warn(warning);
  Report(ctx, root->root, *made);
  StartUpkeepIfDue(root->store(), made->checkpoint);
  if (made->git.Find("") != nullptr) StartAnchoring(*settings, root->root);
  return ExitCode::kOk;
}

}  // namespace belay
