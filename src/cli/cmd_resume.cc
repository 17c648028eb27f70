#include <unistd.h>

#include <cstdlib>

#include "agent/resume.h"
#include "agent/rewind.h"
#include "base/escape.h"
#include "base/subprocess.h"
#include "cli/chat_view.h"
#include "cli/commands.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "core/chat.h"

namespace belay {

ExitCode CmdResume(CommandContext& ctx) {
  if (ctx.args.positional()[0].empty())
    return ctx.term.FailUsage("no session is named", "see them with: belay sessions");
  auto opened = OpenStore(ctx, Store::Mode::kRead);
  if (!opened.ok()) {
    if (opened.error().code != Errc::kNotFound) return FailOnStore(ctx, opened.error());
    return ctx.term.Fail(Error(Errc::kRefused, "nothing was ever protected here")
                             .WithHint("protect a directory with: belay on"));
  }
  auto catalog = Catalog::Open(*(*opened)->store);
  if (!catalog.ok()) return FailOnStore(ctx, catalog.error());
  // A rollback that was interrupted decides which session it is.
  if (auto roots = (*catalog)->Roots(); roots.ok()) {
    const Store* before = (*opened)->store.get();
    for (const RootEntry& root : *roots) {
      auto recovered = RecoverFirst(ctx, *opened, root.root, 0);
      if (recovered.ok() && *recovered) ctx.term.Warn((*recovered)->text);
    }
    if ((*opened)->store.get() != before) {
      catalog = Catalog::Open(*(*opened)->store);
      if (!catalog.ok()) return FailOnStore(ctx, catalog.error());
    }
  }
  auto session = FindSession(**catalog, ctx.args.positional()[0]);
  if (!session.ok()) return ctx.term.Fail(session.error());
  auto plan = PlanResume(**catalog, *session);
  if (!plan.ok()) return ctx.term.Fail(plan.error());
  if (Status there = CheckResumable((*opened)->store->fs(), **catalog, *plan);
      !there.ok())
    return ctx.term.Fail(there.error());
  std::vector<std::string> words = plan->command;
  for (std::string_view word : ctx.args.rest()) words.emplace_back(word);
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject();
    json.Key("session").PathValue(*session);
    json.Key("goes_on");
    if (plan->anew)
      json.Null();
    else
      json.PathValue(plan->session);
    json.Key("agent").String(AgentName(plan->agent));
    json.Key("command").BeginArray();
    for (const std::string& word : words) json.PathValue(word);
    json.EndArray();
    json.Key("cwd");
    if (plan->cwd.empty())
      json.Null();
    else
      json.PathValue(plan->cwd);
    json.EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  Resumption shown = *plan;
  shown.command = words;
  const std::string text = ResumeText(shown, ctx.env.cwd);
  if (ctx.args.has("--dry-run")) {
    if (auto cwd = AbsPath::Parse(plan->cwd); cwd.ok() && !ctx.fs.OpenDir(*cwd).ok())
      ctx.term.Warn(StrCat("the directory it worked in cannot be entered: ",
                           EscapeForDisplay(plan->cwd)));
    ctx.term.Out(text + "\n");
    return ExitCode::kOk;
  }
  if (plan->session != *session && !plan->anew)
    ctx.term.Note(StrCat("session ", EscapeText(*session), " goes on as ",
                         EscapeText(plan->session)));
  // The store is let go before somebody works for hours.
  catalog->reset();
  opened->reset();
  if (!plan->cwd.empty() && chdir(plan->cwd.c_str()) != 0) {
    shown.cwd.clear();
    return ctx.term.Fail(
        Error(Errc::kRefused, StrCat("the directory it worked in cannot be entered: ",
                                     EscapeForDisplay(plan->cwd)))
            .WithHint(StrCat("from elsewhere: ", ResumeText(shown, ctx.env.cwd))));
  }
  // As a shell's cd does: opencode believes it rather than where it is.
  if (!plan->cwd.empty()) setenv("PWD", plan->cwd.c_str(), 1);
  auto code = RunAttached(words, false);
  if (!code.ok()) {
    Error error = std::move(code).error();
    if (error.hint.empty()) error.hint = StrCat("it would be run as: ", text);
    return ctx.term.Fail(error);
  }
  return static_cast<ExitCode>(*code);
}

}  // namespace belay
