#include "cli/agents_view.h"

#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/nearest.h"
#include "cli/checkpoint_json.h"
#include "cli/open_root.h"
#include "cli/text.h"
#include "git/repository.h"

namespace belay {

namespace {

Result<std::optional<AbsPath>> Moved(const Environment& env, const std::string& value) {
  if (value.empty()) return std::optional<AbsPath>();
  BELAY_TRY(AbsPath path, env.Resolve(value));
  return std::optional<AbsPath>(std::move(path));
}

// By the name it has in PATH where that leads to it: an update may move the file, and
// leaves the name.
Result<AbsPath> ProgramForHooks(CommandContext& ctx) {
  BELAY_TRY(AbsPath program, ctx.env.ProgramFile());
  if (auto named = FindInPath(ctx.fs, ctx.env.exec_path, "belay")) {
    auto real = ctx.fs.RealPath(*named);
    if (real.ok() && *real == program) program = *named;
  }
  const std::string& bytes = program.bytes();
  const bool plain =
      IsValidUtf8(bytes) && std::none_of(bytes.begin(), bytes.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
      });
  if (!plain || bytes.find_first_of("`{}") != std::string::npos)
    return Error(Errc::kRefused,
                 StrCat("no settings can name this program: ", EscapeForDisplay(bytes)))
        .WithHint("move it to a directory with a plain name");
  return program;
}

Result<AbsPath> FindProject(CommandContext& ctx, const AbsPath& home) {
  BELAY_TRY(AbsPath dir, NamedDir(ctx));
  auto root = LookUpRoot(ctx, dir);
  if (root.ok() && *root && (*root)->is_protected) {
    dir = (*root)->root;
  } else if (!ctx.args.has("--root")) {
    auto repository = FindWorkTree(ctx.fs, dir, ctx.env.git);
    if (repository.ok() && *repository) dir = (*repository)->work_tree;
  }
  auto real = ctx.fs.RealPath(dir);
  if (!real.ok()) return std::move(real).error();
  if (real->is_root() || *real == home)
    return Error(Errc::kRefused,
                 StrCat(EscapeForDisplay(real->bytes()), " is not a project"))
        .WithHint("leave --project out to connect an agent for all you do");
  return *real;
}

void OptionalPath(JsonWriter& json, std::string_view key,
                  const std::optional<AbsPath>& path) {
  json.Key(key);
  if (path)
    json.PathValue(path->bytes());
  else
    json.Null();
}

void WriteHooks(JsonWriter& json, const HooksAt& hooks) {
  json.Key("file").PathValue(hooks.file.bytes());
  json.Key("hooks").String(HooksWord(hooks));
  json.Key("registered").Uint(hooks.registered);
  json.Key("wanted").Uint(hooks.wanted);
  json.Key("missing").BeginArray();
  for (const std::string& event : hooks.missing) json.String(event);
  json.EndArray();
  json.Key("outdated").Bool(hooks.outdated);
  json.Key("trusted");
  if (hooks.trusted)
    json.Bool(*hooks.trusted);
  else
    json.Null();
  json.Key("trouble");
  if (hooks.trouble)
    json.String(hooks.trouble->what);
  else
    json.Null();
}

void Judge(std::string_view agent, bool project, const HooksAt& hooks,
           AgentFindings& out) {
  const std::string name = StrCat(agent, project ? " (this project)" : "");
  const std::string again =
      StrCat("belay install ", agent, project ? " --project" : "");
  if (hooks.trouble) {
    out.notes.push_back(StrCat(name, ": ", hooks.trouble->what));
    return;
  }
  if (hooks.registered == 0) return;
  for (const std::string& program : hooks.dead)
    out.problems.push_back(StrCat(name, ": its hooks run ", EscapeForDisplay(program),
                                  ", which is not there: ", again));
  if (!hooks.missing.empty())
    out.notes.push_back(StrCat(name, ": only ", std::to_string(hooks.registered),
                               " of ", std::to_string(hooks.wanted),
                               " hooks are registered: ", again));
  else if (hooks.outdated && hooks.dead.empty())
    out.notes.push_back(
        StrCat(name, ": its hooks are not as this version has them: ", again));
  if (hooks.trusted && !*hooks.trusted)
    out.notes.push_back(StrCat(name,
                               ": its hooks are not trusted, so they do not run: enter "
                               "/hooks in codex, or: ",
                               again, " --trust"));
}

}  // namespace

Result<InstallPlaces> FindInstallPlaces(CommandContext& ctx, bool project) {
  const Environment& env = ctx.env;
  BELAY_TRY(AbsPath program, ProgramForHooks(ctx));
  BELAY_TRY(AbsPath home, env.HomeDir());
  BELAY_TRY(AbsPath config_home, env.ConfigHome());
  BELAY_TRY(AbsPath store, env.StoreDir());
  InstallPlaces out{.program = std::move(program),
                    .home = home,
                    .config_home = std::move(config_home),
                    .store = std::move(store),
                    .uid = geteuid()};
  BELAY_TRY(out.claude_config_dir, Moved(env, env.claude_config_dir));
  BELAY_TRY(out.codex_home, Moved(env, env.codex_home));
  // Codex names its files by the real path of what CODEX_HOME says.
  if (out.codex_home)
    if (auto real = ctx.fs.RealPath(*out.codex_home); real.ok()) out.codex_home = *real;
  BELAY_TRY(out.copilot_home, Moved(env, env.copilot_home));
  if (project) {
    BELAY_TRY(out.project, FindProject(ctx, home));
  }
  return out;
}

Result<std::vector<AgentKind>> AgentsNamed(const std::vector<std::string_view>& words) {
  std::vector<AgentKind> out;
  std::vector<std::string_view> known;
  for (AgentKind agent : kAllAgents)
    if (CanInstall(agent)) known.push_back(AgentName(agent));
  for (std::string_view word : words) {
    auto agent = AgentNamed(word);
    if (!agent || !CanInstall(*agent)) {
      const std::string_view nearest = NearestWord(word, known);
      std::string all;
      for (std::string_view name : known) all += StrCat(all.empty() ? "" : " ", name);
      return Error(Errc::kInvalid, StrCat(EscapeForDisplay(word.substr(0, 100)),
                                          " is not an agent that Belay knows"))
          .WithHint(nearest.empty() ? StrCat("known are: ", all)
                                    : StrCat("did you mean ", nearest, "?"));
    }
    if (std::find(out.begin(), out.end(), *agent) == out.end()) out.push_back(*agent);
  }
  if (words.empty())
    for (std::string_view name : known) out.push_back(*AgentNamed(name));
  return out;
}

std::string_view HooksWord(const HooksAt& hooks) {
  return hooks.registered == 0              ? "none"
         : hooks.registered == hooks.wanted ? "all"
                                            : "some";
}

bool IsConnected(const AgentStatus& status) {
  return status.user.registered > 0 ||
         (status.project && status.project->registered > 0);
}

std::string AgentLine(const AgentStatus& status) {
  std::string out = StrCat(AgentName(status.agent), ": ");
  if (!IsConnected(status))
    return StrCat(out, "found, not connected: belay install ", AgentName(status.agent));
  const HooksAt& hooks = status.user.registered > 0 ? status.user : *status.project;
  out += hooks.registered == hooks.wanted ? "connected" : "partly connected";
  if (&hooks != &status.user) out += " for this project";
  if (hooks.trusted && !*hooks.trusted) out += ", not trusted";
  if (status.off) out += ", hooks switched off";
  if (!status.program) out += ", not found in PATH";
  out += status.last_event_ms
             ? StrCat("; last event ", LocalMinute(*status.last_event_ms))
             : std::string("; no event yet");
  return out;
}

void WriteAgentJson(JsonWriter& json, const SeenAgent& agent) {
  const AgentStatus& status = agent.status;
  json.BeginObject();
  json.Key("agent").String(AgentName(status.agent));
  json.Key("title").String(status.title);
  OptionalPath(json, "found", status.program);
  json.Key("version");
  if (agent.version.empty())
    json.Null();
  else
    json.String(agent.version);
  WriteHooks(json, status.user);
  json.Key("project");
  if (status.project) {
    json.BeginObject();
    WriteHooks(json, *status.project);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("switched_off");
  if (status.off) {
    json.BeginObject();
    json.Key("file").PathValue(status.off->file.bytes());
    json.Key("key").String(status.off->key);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("last_event");
  if (status.last_event_ms)
    json.String(FormatUtcMillis(*status.last_event_ms));
  else
    json.Null();
  json.EndObject();
}

AgentFindings JudgeAgent(const AgentStatus& status) {
  AgentFindings out;
  Judge(AgentName(status.agent), false, status.user, out);
  if (status.project) Judge(AgentName(status.agent), true, *status.project, out);
  if (status.off && IsConnected(status))
    out.notes.push_back(StrCat(AgentName(status.agent), ": ", HooksOffText(*status.off),
                               ": nothing is recorded"));
  return out;
}

}  // namespace belay
