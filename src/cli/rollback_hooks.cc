#include "cli/rollback_hooks.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "cli/rollback_view.h"
#include "cli/text.h"

namespace belay {

UserHookPlace RollbackHooks::Place() const {
  return {.directory = root_.path,
          .environment = ctx_.env.all,
          .exec_path = ctx_.env.exec_path};
}

std::string RollbackHooks::Input(std::string_view hook, const Outcome* outcome,
                                 const std::optional<RecordId>& target) const {
  JsonWriter json;
  json.BeginObject();
  json.Key("hook").String(hook);
  json.Key("command").String(command_);
  json.Key("root").PathValue(root_.root.path);
  json.Key(hook == "before_rollback" ? "plan" : "result");
  if (outcome != nullptr)
    WriteOutcome(*outcome, target, json);
  else
    json.Null();
  json.EndObject();
  return json.Take() + "\n";
}

Status RollbackHooks::Before(const Outcome* plan,
                             const std::optional<RecordId>& target) {
  // Whichever hook it is of: it was asked for one thing, and one that is run by a
  // rollback would run itself.
  const std::string inside = StrCat(kUserHookVariable, "=");
  if (!BELAY_MUTANT("hooks-roll-back") &&
      std::ranges::any_of(ctx_.env.all, [&](const std::string& variable) {
        return variable.starts_with(inside);
      }))
    return Error(Errc::kRefused, "a command that belay runs may not roll back")
        .WithHint("nothing was changed");
  if (!wants_before()) return Ok();
  std::vector<UserHookRun> runs =
      RunUserHooks(ctx_.fs, Place(), "before_rollback", settings_.before_rollback,
                   Input("before_rollback", plan, target), WhenOneFails::kStop);
  runs_.insert(runs_.end(), runs.begin(), runs.end());
  for (const UserHookRun& run : runs) {
    if (!run.output.empty())
      ctx_.term.Detail(StrCat(EscapeText(run.program), ": ", EscapeText(run.output)));
    if (run.ok()) continue;
    return Error(Errc::kRefused,
                 StrCat("hooks.before_rollback stopped it: ", EscapeText(run.program),
                        " ", EscapeText(run.trouble)))
        .WithHint("nothing was changed");
  }
  return Ok();
}

bool RollbackHooks::After(const Outcome& done, const std::optional<RecordId>& target) {
  if (!done.operation || settings_.after_rollback.empty()) return true;
  std::vector<UserHookRun> runs =
      RunUserHooks(ctx_.fs, Place(), "after_rollback", settings_.after_rollback,
                   Input("after_rollback", &done, target), WhenOneFails::kGoOn);
  runs_.insert(runs_.end(), runs.begin(), runs.end());
  bool fine = true;
  for (const UserHookRun& run : runs) {
    if (!run.output.empty())
      ctx_.term.Detail(StrCat(EscapeText(run.program), ": ", EscapeText(run.output)));
    if (run.ok()) continue;
    fine = false;
    ctx_.term.Warn(StrCat("the ", command_, " is done, but hooks.after_rollback: ",
                          EscapeText(run.program), " ", EscapeText(run.trouble)));
  }
  return fine;
}

void WriteHooks(const std::vector<UserHookRun>& runs, JsonWriter& json) {
  json.Key("hooks").BeginArray();
  for (const UserHookRun& run : runs) {
    json.BeginObject();
    json.Key("hook").String(run.hook);
    json.Key("program").PathValue(run.program);
    json.Key("exit");
    if (run.exit >= 0)
      json.Int(run.exit);
    else
      json.Null();
    json.Key("timed_out").Bool(run.timed_out);
    json.Key("output").PathValue(run.output);
    json.Key("trouble");
    if (run.ok())
      json.Null();
    else
      json.PathValue(run.trouble);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace belay
