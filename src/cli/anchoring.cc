#include "cli/anchoring.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/subprocess.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/rollback_view.h"
#include "cli/text.h"
#include "commits/anchors.h"

namespace belay {

void StartAnchoring(const Settings& settings, const Root& root) {
  // A failure to start it is no failure of the checkpoint; the next one tries again.
  if (settings.git_refs)
    (void)StartSelfDetached({"__anchor", "--background", "--root", root.path});
}

bool DropAnchors(CommandContext& ctx, Store& store, Catalog& catalog,
                 const std::vector<std::string>& also) {
  const AnchorReport report =
      DropStaleAnchors(store, catalog, GitPlacesOf(ctx.env), also);
  if (!report.removed.empty())
    ctx.term.Note(StrCat(CountText(report.removed.size(), "ref"),
                         " of git went with it; what only they held goes with git's "
                         "next gc, or at once: git gc --prune=now"));
  for (const std::string& failed : report.failed)
    ctx.term.Warn(StrCat("refs of it (refs/belay/checkpoints/) are still there, ",
                         failed, "; the next belay gc tries again"));
  return report.failed.empty();
}

ExitCode CmdAnchor(CommandContext& ctx) {
  const bool background = ctx.args.has("--background");
  if (background) setpriority(PRIO_PROCESS, 0, 15);
  auto root = OpenRoot(ctx, NeedsRoot::kRecorded);
  if (!root.ok()) return FailOnStore(ctx, root.error());
  auto settings = LoadSettingsFor(ctx, root->path);
  if (!settings.ok()) return ctx.term.Fail(settings.error());
  if (!settings->git_refs)
    return ctx.term.Fail(Error(Errc::kRefused, "git.refs is off")
                             .WithHint("switch it on: belay config git.refs true"));
  if (background) (void)!chdir("/");  // in nobody's way who wants to unmount
  // Told to end, it ends with what it is at: git would leave a crash report behind.
  StopOnSignal stop;
  auto report = AnchorCheckpoints(root->store(), *root->catalog, root->root, *settings,
                                  GitPlacesOf(ctx.env));
  if (!report.ok()) return FailOnStore(ctx, report.error());
  ctx.term.WorkIsDone();
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    for (const auto& [key, list] :
         std::initializer_list<std::pair<const char*, const std::vector<std::string>*>>{
             {"made", &report->made},
             {"removed", &report->removed},
             {"failed", &report->failed}}) {
      json.Key(key).BeginArray();
      for (const std::string& text : *list) json.PathValue(text);
      json.EndArray();
    }
    json.EndObject();
    ctx.term.OutJson(json);
  } else {
    for (const std::string& ref : report->made) ctx.term.Out(StrCat(ref, "\n"));
  }
  for (const std::string& failed : report->failed) ctx.term.Warn(failed);
  return report->failed.empty() ? ExitCode::kOk : ExitCode::kProblem;
}

}  // namespace belay
