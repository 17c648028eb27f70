#include <algorithm>
#include <future>

#include "base/subprocess.h"
#include "cli/agents_view.h"
#include "cli/checkpoint_json.h"
#include "cli/commands.h"
#include "cli/open_store.h"
#include "cli/text.h"
#include "diff/hunks.h"
#include "diff/patch.h"

namespace belay {

namespace {

using FileVerb = FileChange::What;
using Part = FileChange::Part;

// --- what would change, as `diff -u` has it ------------------------------------------

std::string UnifiedDiff(const FileChange& change) {
  const std::string a = change.before.value_or(""), b = change.after.value_or("");
  const std::string name = QuoteForPatch(change.path.bytes());
  std::string out = StrCat("--- ", change.before ? name : "/dev/null", "\n+++ ",
                           change.after ? name : "/dev/null", "\n");
  const std::vector<LineEdit> edits = DiffLines(a, b);
  for (const Hunk& hunk : HunksOf(a, b, edits)) {
    out += HunkRange(hunk) + "\n";
    ForEachLine(a, b, hunk, [&](char op, std::string_view line) {
      out += op;
      out += line;
      if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
    });
  }
  return out;
}

// For a terminal: settings may hold anything.
void ShowDiff(Terminal& term, const std::string& diff) {
  if (!term.out_is_terminal()) return term.Out(diff);
  for (size_t at = 0; at < diff.size();) {
    const size_t end = diff.find('\n', at);
    std::string_view line = std::string_view(diff).substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const Style style = line.starts_with('+')   ? Style::kGreen
                        : line.starts_with('-') ? Style::kRed
                                                : Style::kPlain;
    std::string shown;
    for (size_t begin = 0; begin <= line.size();) {  // tabs are indentation here
      const size_t tab = std::min(line.find('\t', begin), line.size());
      shown += Scrub(line.substr(begin, tab - begin));
      if (tab < line.size()) shown += '\t';
      begin = tab + 1;
    }
    term.Out(StrCat(term.Paint(style, shown), "\n"));
  }
}

// --- what was done -------------------------------------------------------------------

std::string_view ActionWord(FileVerb what) {
  switch (what) {
    case FileVerb::kNothing:
      return "none";
    case FileVerb::kCreate:
      return "create";
    case FileVerb::kChange:
      return "change";
    case FileVerb::kRemove:
      return "remove";
  }
  return "none";
}

std::string_view PartWord(Part part) {
  return part == Part::kHooks ? "hooks" : part == Part::kCommand ? "command" : "trust";
}

struct Installed {
  AgentPlan plan;
  std::optional<AbsPath> program;
};

void WriteInstalled(JsonWriter& json, const Installed& outcome, bool dry_run) {
  json.BeginObject();
  json.Key("agent").String(AgentName(outcome.plan.agent));
  json.Key("found");
  if (outcome.program)
    json.PathValue(outcome.program->bytes());
  else
    json.Null();
  json.Key("files").BeginArray();
  for (const FileChange& change : outcome.plan.files) {
    json.BeginObject();
    json.Key("path").PathValue(change.path.bytes());
    json.Key("part").String(PartWord(change.part));
    json.Key("action").String(ActionWord(change.what));
    if (dry_run && change.what != FileVerb::kNothing)
      json.Key("diff").String(UnifiedDiff(change));
    json.EndObject();
  }
  json.EndArray();
  json.Key("refused").BeginArray();
  for (const Error& error : outcome.plan.refused) {
    json.BeginObject();
    json.Key("code").String(ErrcName(error.code));
    json.Key("message").String(error.what);
    json.Key("hint").String(error.hint);
    json.EndObject();
  }
  json.EndArray();
  json.Key("notes").BeginArray();
  for (const std::string& note : outcome.plan.notes) json.String(note);
  json.EndArray();
  json.EndObject();
}

void SayWhatHappened(CommandContext& ctx, const Installed& outcome, bool install) {
  const std::string_view name = AgentName(outcome.plan.agent);
  const bool changed = outcome.plan.changes();
  if (outcome.plan.refused.empty() || changed)
    ctx.term.Say(StrCat(name, ": ", outcome.plan.refused.empty() ? "" : "in part ",
                        install ? (changed ? "connected" : "is connected already")
                                : (changed ? "disconnected" : "is not connected")));
  for (const FileChange& change : outcome.plan.files) {
    if (change.what == FileVerb::kNothing) continue;
    ctx.term.Say(StrCat("  ",
                        change.what == FileVerb::kCreate   ? "made "
                        : change.what == FileVerb::kChange ? "changed "
                                                           : "removed ",
                        EscapeForDisplay(change.path.bytes())));
  }
}

// What is refused is refused of one file; others may have been changed.
std::string HintOf(const Error& error, const AgentPlan& plan) {
  constexpr std::string_view kAll = "nothing was changed";
  std::string hint = error.hint;
  if (const size_t at = hint.find(kAll); at != std::string::npos && plan.changes())
    hint.replace(at, kAll.size(), "it stays as it is");
  return hint.empty() ? hint : StrCat("; ", hint);
}

ExitCode Report(CommandContext& ctx, const std::vector<Installed>& outcomes,
                bool install) {
  const bool dry_run = ctx.args.has("--dry-run");
  const Error* first = nullptr;
  bool any = false;
  for (const Installed& outcome : outcomes) {
    if (first == nullptr && !outcome.plan.refused.empty())
      first = &outcome.plan.refused[0];
    any = any || outcome.plan.refused.empty() || outcome.plan.changes();
  }
  if (!any && outcomes.size() == 1 && outcomes[0].plan.refused.size() == 1)
    return ctx.term.Fail(*first);
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject().Key("dry_run").Bool(dry_run).Key("agents").BeginArray();
    for (const Installed& outcome : outcomes) WriteInstalled(json, outcome, dry_run);
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
  }
  for (const Installed& outcome : outcomes) {
    if (dry_run && !ctx.term.json()) {
      for (const FileChange& change : outcome.plan.files)
        if (change.what != FileVerb::kNothing) ShowDiff(ctx.term, UnifiedDiff(change));
      if (!outcome.plan.changes() && outcome.plan.refused.empty())
        ctx.term.Note(StrCat(AgentName(outcome.plan.agent), ": nothing to change"));
    } else if (!ctx.term.json()) {
      SayWhatHappened(ctx, outcome, install);
    }
    for (const Error& error : outcome.plan.refused)
      ctx.term.Warn(StrCat(AgentName(outcome.plan.agent), ": ", error.what,
                           HintOf(error, outcome.plan)));
    for (const std::string& note : outcome.plan.notes)
      ctx.term.Note(StrCat(AgentName(outcome.plan.agent), ": ", note));
  }
  return first == nullptr ? ExitCode::kOk : ExitCodeFor(first->code);
}

// Whoever connects an agent wants to know that a directory must be protected, too.
void SayWhereItCounts(CommandContext& ctx, const InstallPlaces& places) {
  if (ctx.args.has("--dry-run") || ctx.term.json()) return;
  auto file = ctx.env.UserSettingsFile();
  if (!file.ok()) return;
  auto settings = LoadSettings(ctx.fs, *file, places.project);
  if (settings.ok() && !settings->auto_protect)
    ctx.term.Note(
        "Hooks record in protected directories only: belay on DIR, or for every "
        "project an agent works in: belay config auto true");
}

void NoteShared(const InstallPlaces& places, AgentPlan& plan) {
  if (!places.project) return;
  for (const FileChange& change : plan.files)
    if (change.what == FileVerb::kCreate || change.what == FileVerb::kChange) {
      plan.notes.push_back(
          "what was written holds a path of this machine: keep it out of commits");
      return;
    }
}

// --- the list ------------------------------------------------------------------------

// "codex-cli 0.166.0" -> "0.166.0"
std::string VersionIn(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9') continue;
    size_t end = at;
    bool dot = false;
    while (end < text.size() &&
           ((text[end] >= '0' && text[end] <= '9') || text[end] == '.' ||
            text[end] == '-' || (text[end] >= 'a' && text[end] <= 'z'))) {
      dot = dot || text[end] == '.';
      ++end;
    }
    if (dot) return std::string(text.substr(at, std::min<size_t>(end - at, 40)));
    at = end;
  }
  return {};
}

std::string AskVersion(const AbsPath& program, const Environment& env) {
  auto ran = RunProcess(
      {.program = program,
       .arguments = {"--version"},
       .environment = {StrCat("PATH=", env.exec_path), StrCat("HOME=", env.home),
                       "NO_COLOR=1", "LC_ALL=C.UTF-8"},
       .timeout_ms = 2000,
       .output_cap = 64u << 10});
  if (!ran.ok() || !ran->ok()) return {};
  return VersionIn(ran->output);
}

std::string HooksText(const AgentStatus& status) {
  std::string out(HooksWord(status.user));
  if (status.user.trouble) out = "unreadable";
  if (status.user.trusted && !*status.user.trusted) out += ", not trusted";
  if (status.project && status.project->registered > 0)
    out += StrCat("; ", HooksWord(*status.project), " here");
  if (status.off && IsConnected(status)) out += ", off";
  return out;
}

ExitCode List(CommandContext& ctx) {
  auto agents = AgentsNamed(ctx.args.positional());
  if (!agents.ok()) return ctx.term.FailUsage(agents.error().what, agents.error().hint);
  auto places = FindInstallPlaces(ctx, false);
  if (!places.ok()) return ctx.term.Fail(places.error());
  // Of the project we are in, if it is one.
  if (auto here = FindInstallPlaces(ctx, true); here.ok()) places = here;
  std::vector<SeenAgent> seen;
  std::vector<std::future<std::string>> versions;
  for (AgentKind agent : *agents) {
    seen.push_back({LookAtAgent(ctx.fs, *places, agent, ctx.env.exec_path)});
    auto ask = [&env = ctx.env, program = seen.back().status.program] {
      return program ? AskVersion(*program, env) : std::string();
    };
    versions.push_back(std::async(std::launch::async, ask));
  }
  for (size_t i = 0; i < seen.size(); ++i) seen[i].version = versions[i].get();
  // Then hooks do nothing that anybody sees.
  if (auto trouble = TroubleOfOwnSettings(ctx)) ctx.term.Warn(*trouble);
  if (ctx.term.json()) {
    JsonWriter json;
    json.BeginObject().Key("agents").BeginArray();
    for (const SeenAgent& agent : seen) WriteAgentJson(json, agent);
    json.EndArray().EndObject();
    ctx.term.OutJson(json);
    return ExitCode::kOk;
  }
  ctx.term.Out(
      StrCat(ctx.term.Paint(Style::kBold, StrCat(Pad("agent", 11), Pad("found", 13),
                                                 Pad("hooks", 24), "last event")),
             "\n"));
  for (const SeenAgent& agent : seen) {
    const AgentStatus& status = agent.status;
    std::string found = !status.program         ? "no"
                        : agent.version.empty() ? "yes"
                                                : agent.version;
    ctx.term.Out(StrCat(
        Pad(AgentName(status.agent), 11), Pad(Scrub(found), 13),
        Pad(HooksText(status), 24),
        status.last_event_ms ? LocalMinute(*status.last_event_ms) : std::string("-"),
        "\n"));
    if (!ctx.term.verbose()) continue;
    if (status.program)
      ctx.term.Out(StrCat("    ", EscapeForDisplay(status.program->bytes()), "\n"));
    ctx.term.Out(StrCat("    ", EscapeForDisplay(status.user.file.bytes()), "\n"));
    if (status.project)
      ctx.term.Out(
          StrCat("    ", EscapeForDisplay(status.project->file.bytes()), "\n"));
  }
  for (const SeenAgent& agent : seen) {
    const AgentFindings findings = JudgeAgent(agent.status);
    for (const std::string& problem : findings.problems) ctx.term.Note(problem);
    for (const std::string& note : findings.notes) ctx.term.Note(note);
  }
  return ExitCode::kOk;
}

// --- both commands -------------------------------------------------------------------

Result<AgentPlan> PlanAndApply(CommandContext& ctx, const InstallPlaces& places,
                               AgentKind agent, bool install) {
  RealClock clock;
  // Somebody may change a file between the look and the writing: then it is looked at
  // again.
  for (int left = 3;; --left) {
    AgentPlan plan = install
                         ? PlanInstall(ctx.fs, places, agent, ctx.args.has("--trust"))
                         : PlanUninstall(ctx.fs, places, agent);
    if (ctx.args.has("--dry-run") || (install && !plan.changes())) return plan;
    if (install) {
      // FileVerb files were before is kept in the store, which is made first.
      BELAY_TRY(auto opened, OpenStore(ctx, Store::Mode::kWrite));
      BELAY_OK(ApplyInstall(ctx.fs, clock, places, plan));
    } else {
      BELAY_OK(ApplyUninstall(ctx.fs, clock, places, plan));
    }
    if (plan.changes()) ctx.term.WorkIsDone();
    const bool raced =
        std::any_of(plan.refused.begin(), plan.refused.end(),
                    [](const Error& error) { return error.code == Errc::kConflict; });
    if (!raced || left == 0) return plan;
  }
}

ExitCode ForEachAgent(CommandContext& ctx, bool install) {
  if (ctx.args.positional().empty())
    return ctx.term.FailUsage("which agent?", "belay install --list shows them");
  auto agents = AgentsNamed(ctx.args.positional());
  if (!agents.ok()) return ctx.term.FailUsage(agents.error().what, agents.error().hint);
  auto places = FindInstallPlaces(ctx, ctx.args.has("--project"));
  if (!places.ok()) return ctx.term.Fail(places.error());
  places->follow_links = ctx.args.has("--follow-links");
  std::vector<Installed> outcomes;
  bool changed = false;
  for (AgentKind agent : *agents) {
    auto plan = PlanAndApply(ctx, *places, agent, install);
    if (!plan.ok()) return FailOnStore(ctx, plan.error());
    Installed outcome{.plan = std::move(*plan),
                      .program = ProgramOfAgent(ctx.fs, agent, ctx.env.exec_path)};
    if (install) {
      NoteShared(*places, outcome.plan);
      if (ctx.args.has("--trust") && agent != AgentKind::kCodex)
        outcome.plan.notes.push_back("runs hooks without being told to trust them");
      if (!outcome.program && !outcome.plan.files.empty())
        ctx.term.Warn(
            StrCat(AgentName(agent), " is not found in PATH",
                   ctx.args.has("--dry-run") ? "" : "; it is set up all the same"));
    }
    changed = changed || outcome.plan.changes();
    outcomes.push_back(std::move(outcome));
  }
  const ExitCode code = Report(ctx, outcomes, install);
  if (install && changed) SayWhereItCounts(ctx, *places);
  return code;
}

}  // namespace

ExitCode CmdInstall(CommandContext& ctx) {
  if (!ctx.args.has("--list")) return ForEachAgent(ctx, true);
  for (std::string_view flag : {"--project", "--dry-run", "--trust", "--follow-links"})
    if (ctx.args.has(flag))
      return ctx.term.FailUsage(StrCat("--list and ", flag, " do not go together"));
  return List(ctx);
}

ExitCode CmdUninstall(CommandContext& ctx) { return ForEachAgent(ctx, false); }

}  // namespace belay
