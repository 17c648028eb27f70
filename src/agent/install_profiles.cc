#include <algorithm>
#include <utility>

#include "agent/install_profiles_internal.h"
#include "base/escape.h"
#include "base/mutant.h"

namespace belay {

namespace {

// A minute in each agent's unit. What is waited for is `deadline_ms`, two seconds as it
// comes, and never more than LongestWaitMs(); the rest is for a machine that is busy.
constexpr int64_t kSeconds = 60, kMillis = 60'000;

constexpr HookEventSpec kClaudeHooks[] = {
    {"SessionStart", false, kSeconds},      {"UserPromptSubmit", false, kSeconds},
    {"PreToolUse", true, kSeconds},         {"PostToolUse", true, kSeconds},
    {"PostToolUseFailure", true, kSeconds}, {"Stop", false, kSeconds},
    {"SubagentStop", false, kSeconds},      {"PreCompact", false, kSeconds},
    {"SessionEnd", false, kSeconds}};
// Codex cuts what two of them may take to three seconds, and warns when asked for more.
constexpr HookEventSpec kCodexHooks[] = {
    {"SessionStart", false, kSeconds}, {"UserPromptSubmit", false, kSeconds},
    {"PreToolUse", true, kSeconds},    {"PostToolUse", true, kSeconds},
    {"Stop", false, kSeconds},         {"SubagentStop", false, kSeconds},
    {"PreCompact", false, kSeconds},   {"Interrupt", false, 3},
    {"SessionEnd", false, 3}};
// Not PreCompress: it comes before every request to the model.
constexpr HookEventSpec kGeminiHooks[] = {
    {"SessionStart", false, kMillis}, {"BeforeAgent", false, kMillis},
    {"BeforeTool", true, kMillis},    {"AfterTool", true, kMillis},
    {"AfterAgent", false, kMillis},   {"SessionEnd", false, kMillis}};
constexpr HookEventSpec kReasonixHooks[] = {
    {"SessionStart", false, kMillis}, {"UserPromptSubmit", false, kMillis},
    {"PreToolUse", true, kMillis},    {"PostToolUse", true, kMillis},
    {"Stop", false, kMillis},         {"SubagentStop", false, kMillis},
    {"PreCompact", false, kMillis},   {"SessionEnd", false, kMillis}};
constexpr HookEventSpec kCopilotHooks[] = {
    {"sessionStart", false, kSeconds},      {"userPromptSubmitted", false, kSeconds},
    {"preToolUse", true, kSeconds},         {"postToolUse", true, kSeconds},
    {"postToolUseFailure", true, kSeconds}, {"agentStop", false, kSeconds},
    {"subagentStop", false, kSeconds},      {"preCompact", false, kSeconds},
    {"sessionEnd", false, kSeconds}};
// Versions differ in what else there is, and take a name they do not know for a
// mistake.
constexpr HookEventSpec kCrushHooks[] = {{"PreToolUse", true, kSeconds}};
constexpr HookEventSpec kClineHooks[] = {
    {"TaskStart"},  {"TaskResume"},     {"TaskCancel"},  {"TaskComplete"},
    {"TaskError"},  {"PreToolUse"},     {"PostToolUse"}, {"UserPromptSubmit"},
    {"PreCompact"}, {"SessionShutdown"}};

constexpr AgentProfile kProfiles[] = {
    {.agent = AgentKind::kClaude,
     .program = "claude",
     .title = "Claude Code",
     .shape = HookShape::kGrouped,
     .events = kClaudeHooks,
     .matcher = "*",
     .typed = true,
     .has_commands = true},
    {.agent = AgentKind::kCodex,
     .program = "codex",
     .title = "Codex",
     .shape = HookShape::kGrouped,
     .events = kCodexHooks,
     .typed = true},
    {.agent = AgentKind::kOpencode,
     .program = "opencode",
     .title = "opencode",
     .shape = HookShape::kPlugin,
     .events = {},
     .has_commands = true},
    {.agent = AgentKind::kGemini,
     .program = "gemini",
     .title = "Gemini CLI",
     .shape = HookShape::kGrouped,
     .events = kGeminiHooks,
     .label_key = "name",
     .matcher = "*",
     .typed = true,
     .has_commands = true,
     .guarded = true},
    {.agent = AgentKind::kQwen,
     .program = "qwen",
     .title = "Qwen Code",
     .shape = HookShape::kGrouped,
     .events = kClaudeHooks,
     .label_key = "name",
     .matcher = "*",
     .typed = true,
     .has_commands = true},
    {.agent = AgentKind::kCopilot,
     .program = "copilot",
     .title = "Copilot CLI",
     .shape = HookShape::kFlat,
     .events = kCopilotHooks,
     .command_key = "bash",
     .timeout_key = "timeoutSec",
     .typed = true,
     .event_argument = true,
     .file_version = 1,
     .guarded = true},
    {.agent = AgentKind::kReasonix,
     .program = "reasonix",
     .title = "Reasonix",
     .shape = HookShape::kFlat,
     .events = kReasonixHooks,
     .label_key = "description"},
    {.agent = AgentKind::kCline,
     .program = "cline",
     .title = "Cline",
     .shape = HookShape::kScripts,
     .events = kClineHooks,
     .event_argument = true},
    {.agent = AgentKind::kCrush,
     .program = "crush",
     .title = "Crush",
     .shape = HookShape::kFlat,
     .events = kCrushHooks,
     .label_key = "name"},
};

// `text` as any POSIX shell reads it back as one word.
std::string Quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

constexpr std::string_view kRunners[] = {"exec", "command", "env",    "nice", "nohup",
                                         "time", "timeout", "setsid", "if",   "then",
                                         "else", "do",      "!",      "{"};

// The words of each command that a shell would run, quotes taken away; what it would
// put in their places is not looked at, nor is what output goes to.
std::vector<std::vector<std::string>> CommandsIn(std::string_view text) {
  std::vector<std::vector<std::string>> out(1);
  bool in_word = false, is_target = false;
  auto end_word = [&] {
    if (in_word && std::exchange(is_target, false)) out.back().pop_back();
    in_word = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\t') {
      end_word();
      continue;
    }
    if (std::string_view(";&|()\n\r").find(c) != std::string_view::npos) {
      end_word();
      out.emplace_back();
      continue;
    }
    if (c == '<' || c == '>') {
      // 2>file, >>file, >&2: the number is no word of the command.
      if (in_word &&
          out.back().back().find_first_not_of("0123456789") == std::string::npos)
        out.back().pop_back();
      else
        end_word();
      in_word = false;
      is_target = true;
      if (i + 1 < text.size() && (text[i + 1] == '&' || text[i + 1] == '|')) ++i;
      continue;
    }
    if (!in_word) out.back().emplace_back();
    in_word = true;
    if (c == '\'' || c == '"') {
      const size_t end = std::min(text.find(c, i + 1), text.size());
      out.back().back() += text.substr(i + 1, end - i - 1);
      i = end;
    } else if (c != '\\') {
      out.back().back() += c;
    } else if (++i < text.size()) {
      out.back().back() += text[i];
    }
  }
  end_word();
  return out;
}

// NAME=value before a command.
bool IsAssignment(std::string_view word) {
  const size_t at = word.find('=');
  return at != std::string_view::npos && at > 0 &&
         word.substr(0, at).find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
             std::string_view::npos;
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool Exists(Fs& fs, const AbsPath& dir, std::string_view name) {
  auto opened = fs.OpenDir(dir);
  return opened.ok() && fs.StatAt(*opened, Name::Literal(name)).ok();
}

AbsPath Below(const AbsPath& dir, std::string_view path) {
  return dir.Join(RelPath::Literal(path));
}

}  // namespace

const AgentProfile& ProfileOf(AgentKind agent) {
  for (const AgentProfile& profile : kProfiles)
    if (profile.agent == agent) return profile;
  BELAY_CHECK(CanInstall(agent));
  return kProfiles[0];
}

std::string HookCommand(const AgentProfile& profile, const AbsPath& program,
                        std::string_view event) {
  std::string out = Quoted(program.bytes()) + " hook ";
  out += AgentName(profile.agent);
  if (profile.event_argument) out.append(" ").append(event);
  return out;
}

// [ ! -x /usr/bin/belay ] || /usr/bin/belay hook gemini
constexpr std::string_view kGuard = "[ ! -x ", kGuarded = " ] || ";

std::string HookLine(const AgentProfile& profile, const AbsPath& program,
                     std::string_view event) {
  std::string command = HookCommand(profile, program, event);
  if (!profile.guarded || BELAY_MUTANT("hooks-without-their-program-fail"))
    return command;
  return std::string(kGuard) + Quoted(program.bytes()) + std::string(kGuarded) +
         command;
}

std::vector<std::string> PlainWords(std::string_view command) {
  std::vector<std::string> words;
  bool in_word = false;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' || c == '\t') {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == '\'' || c == '"') {
      const size_t end = command.find(c, i + 1);
      if (end == std::string_view::npos) return {};
      const std::string_view body = command.substr(i + 1, end - i - 1);
      if (c == '"' && body.find_first_of("$`\\") != std::string_view::npos) return {};
      words.back() += body;
      i = end;
    } else if (c == '\\') {
      if (++i == command.size() || command[i] == '\n') return {};
      words.back() += command[i];
    } else if (std::string_view("$`;|&<>()*?[]#~{}!\n\r").find(c) !=
               std::string_view::npos) {
      return {};
    } else {
      words.back() += c;
    }
  }
  return words;
}

namespace {

// What is behind a guard for the same program; else all of it.
std::string_view Unguarded(std::string_view command) {
  if (!command.starts_with(kGuard)) return command;
  // A path may hold anything.
  for (size_t at = 0; (at = command.find(kGuarded, at)) != command.npos; ++at) {
    const auto guard = PlainWords(command.substr(kGuard.size(), at - kGuard.size()));
    const auto words = PlainWords(command.substr(at + kGuarded.size()));
    if (guard.size() == 1 && !words.empty() && words[0] == guard[0])
      return command.substr(at + kGuarded.size());
  }
  return command;
}

}  // namespace

bool HookPrograms::Has(std::string_view program) const {
  return BaseName(program) == "belay" || program == now.bytes() ||
         std::find(earlier.begin(), earlier.end(), program) != earlier.end();
}

std::optional<std::string> ProgramOfHook(std::string_view command, AgentKind agent,
                                         const HookPrograms& programs) {
  if (ProfileOf(agent).guarded) command = Unguarded(command);
  const std::vector<std::string> words = PlainWords(command);
  if (words.size() < 2 || words.size() > 4 || words[1] != "hook") return std::nullopt;
  if (!programs.Has(words[0])) return std::nullopt;
  if (words.size() > 2 && words[2] != AgentName(agent)) return std::nullopt;
  return words[0];
}

std::optional<std::string> ProgramInCommand(std::string_view command, AgentKind agent,
                                            const HookPrograms& programs) {
  for (const std::vector<std::string>& words : CommandsIn(command)) {
    size_t at = 0;
    while (at < words.size() && IsAssignment(words[at])) ++at;
    if (at == words.size()) continue;
    const std::string_view first = BaseName(words[at]);
    // Behind one of these words another program is named somewhere.
    const bool runs_another = std::find(std::begin(kRunners), std::end(kRunners),
                                        first) != std::end(kRunners);
    for (size_t i = at; i + 2 < words.size(); ++i) {
      if (i > at && !runs_another) break;
      if (words[i + 1] == "hook" && words[i + 2] == AgentName(agent) &&
          programs.Has(words[i]))
        return words[i];
    }
    // sh -c 'belay hook claude; date'
    if ((first == "sh" || first == "bash") && at + 2 < words.size() &&
        words[at + 1].starts_with('-') && words[at + 1].ends_with('c') &&
        words[at + 2].size() < command.size())
      if (auto inner = ProgramInCommand(words[at + 2], agent, programs)) return inner;
  }
  return std::nullopt;
}

Result<AgentPlaces> PlacesOf(Fs& fs, const AgentProfile& profile,
                             const InstallPlaces& places) {
  const bool project = places.project.has_value();
  const AbsPath& base = project ? *places.project : places.home;
  auto at = [&](const AbsPath& dir, std::string_view hooks) {
    return AgentPlaces{.hooks = Below(dir, hooks)};
  };
  AgentPlaces out = at(base, "x");
  switch (profile.agent) {
    case AgentKind::kClaude: {
      const AbsPath dir =
          project ? Below(base, ".claude")
                  : places.claude_config_dir.value_or(Below(base, ".claude"));
      // Of a project the file that is not shared: a path of this machine is nobody
      // else's.
      out = at(dir, project ? "settings.local.json" : "settings.json");
      out.command = Below(dir, "commands/rollback.md");
      return out;
    }
    case AgentKind::kCodex: {
      const AbsPath home = places.codex_home.value_or(Below(places.home, ".codex"));
      out = at(project ? Below(base, ".codex") : home, "hooks.json");
      out.trust = Below(home, "config.toml");
      return out;
    }
    case AgentKind::kOpencode: {
      const AbsPath dir =
          project ? Below(base, ".opencode") : Below(places.config_home, "opencode");
      out = at(dir, "plugins/belay.js");
      out.command = Below(dir, "commands/rollback.md");
      return out;
    }
    case AgentKind::kGemini:
      out = at(Below(base, ".gemini"), "settings.json");
      out.command = Below(base, ".gemini/commands/rollback.toml");
      return out;
    case AgentKind::kQwen:
      out = at(Below(base, ".qwen"), "settings.json");
      out.command = Below(base, ".qwen/commands/rollback.md");
      return out;
    case AgentKind::kCopilot:
      return at(project ? Below(base, ".github")
                        : places.copilot_home.value_or(Below(base, ".copilot")),
                "hooks/belay.json");
    case AgentKind::kReasonix:
      return at(Below(base, ".reasonix"), "settings.json");
    case AgentKind::kCline:
      // Of a project it also looks into .clinerules/hooks, but that may be a file.
      return at(base, ".cline/hooks");
    case AgentKind::kCrush:
      if (!project) return at(places.config_home, "crush/crush.json");
      return at(base, !Exists(fs, base, ".crush.json") && Exists(fs, base, "crush.json")
                          ? "crush.json"
                          : ".crush.json");
    case AgentKind::kGoose:
    case AgentKind::kHermes:
    case AgentKind::kGeneric:
      break;
  }
  return Error(Errc::kInvalid, "not an agent that can be set up");
}

}  // namespace belay
