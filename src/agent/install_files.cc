// The files that are wholly ours: the command /rollback, opencode's plugin, Cline's
// programs.

#include "agent/dialects.h"
#include "agent/install_profiles_internal.h"
#include "agent/jsonc.h"

namespace belay {

namespace {

constexpr std::string_view kAbout = "Take the project back to an earlier state (Belay)";
constexpr std::string_view kShow = kSlashAnswerEnd;

// "/usr/bin/belay __slash gemini": HookCommand quotes as it must be.
std::string SlashCommand(const AgentProfile& profile, const AbsPath& program) {
  std::string out = HookCommand(profile, program, "");
  const size_t at = out.rfind(" hook ");
  return out.replace(at, 6, " __slash ");
}

std::string Marker(AgentKind agent) {
  std::string out = "Written by belay install ";
  out += AgentName(agent);
  return out;
}

// For """...""" of TOML.
std::string TomlEscaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string CommandFile(const AgentProfile& profile, const AbsPath& program) {
  const std::string run = SlashCommand(profile, program);
  std::string out;
  auto add = [&](std::initializer_list<std::string_view> parts) {
    for (std::string_view part : parts) out += part;
    out += '\n';
  };
  if (profile.agent == AgentKind::kGemini) {
    add({"# ", Marker(profile.agent), "; belay uninstall gemini takes it away."});
    add({"description = \"", kAbout, "\""});
    add({"prompt = \"\"\""});
    add({"!{", TomlEscaped(run), " {{args}}}"});
    add({});
    add({kShow});
    add({"\"\"\""});
    return out;
  }
  add({"---"});
  add({"description: ", kAbout});
  // Without it the model would be told of the command, and could run it.
  if (profile.agent != AgentKind::kOpencode) add({"disable-model-invocation: true"});
  if (profile.agent == AgentKind::kClaude) {
    add({"argument-hint: \"[N [yes]]\""});
    add({"allowed-tools: Bash(", run, ":*)"});
  }
  add({"---"});
  if (profile.agent == AgentKind::kQwen)
    add({"!{", run, " {{args}}}"});
  else
    add({"!`", run, " $ARGUMENTS`"});
  add({});
  add({kShow});
  return out;
}

std::vector<AbsPath> ScriptNames(const AbsPath& dir, std::string_view event) {
  std::vector<AbsPath> out;
  for (std::string_view ending : {"", ".sh", ".bash"})
    out.push_back(dir.Join(Name::Literal(std::string(event) + std::string(ending))));
  return out;
}

std::string ScriptFile(const AgentProfile& profile, const AbsPath& program,
                       std::string_view event) {
  std::string out = "#!/bin/sh\n# " + Marker(profile.agent) +
                    "; belay uninstall cline takes it away.\nexec ";
  out += HookCommand(profile, program, event);
  return out + "\n";
}

// What it sends: dialect_opencode.cc.
std::string PluginFile(const AbsPath& program) {
  std::string out = "// " + Marker(AgentKind::kOpencode) +
                    "; belay uninstall opencode takes it away.\n";
  out += R"(//
// Tells Belay what happens, so that it can take the project back. Whatever goes wrong
// in here is passed over. Only with `strict = true` in Belay's settings does a tool not
// run whose checkpoint could not be made.
import { spawnSync } from "node:child_process"

const program = )";
  out += JsonQuoted(program.bytes());
  out += R"(
const timeout = 60000

// Subagents are sessions of their own.
const parents = new Map()

// The reason why a tool must not run, or nothing.
function tell(event, sessionID, place, fields) {
  try {
    const run = spawnSync(program, ["hook", "opencode", event], {
      input: JSON.stringify({ sessionID, parentID: parents.get(sessionID), ...place, ...fields }),
      stdio: ["pipe", "ignore", "pipe"],
      timeout,
      killSignal: "SIGKILL",
    })
    if (run.status === 2) return String(run.stderr || "Belay could not make a checkpoint")
  } catch {}
}

function texts(parts) {
  if (!Array.isArray(parts)) return undefined
  return parts.filter((part) => part?.type === "text")
    .map(({ type, text, synthetic }) => ({ type, text, synthetic }))
}

// What was asked before in a session that this is the first word of: a fork has a copy
// of it under other ids, and names nobody.
const heard = new Set()
async function earlier(client, sessionID, message) {
  if (!sessionID || heard.has(sessionID)) return undefined
  heard.add(sessionID)
  try {
    const { data } = await client.session.messages({ path: { id: sessionID } })
    const asked = data.filter(({ info }) => info.role === "user" && info.id !== message)
      .map(({ info, parts }) => ({ id: info.id, text: texts(parts).filter((part) => !part.synthetic)
        .map((part) => part.text).join("\n").slice(0, 4000) }))
      .filter(({ text }) => text)
    return asked.length > 0 && asked.length <= 1000 ? asked : undefined
  } catch {}
}

const events = ["session.created", "session.idle", "session.error", "session.compacted", "session.deleted"]

export const Belay = async ({ client, directory, worktree }) => {
  const place = { directory, worktree }
  return {
    event: async ({ event }) => {
      const about = event?.properties
      const session = about?.sessionID ?? about?.info?.id
      if (!events.includes(event?.type)) return
      // Messages have parents too, which are messages.
      if (session && about?.info?.parentID) parents.set(session, about.info.parentID)
      tell(event.type, session, place, event.type === "session.created" ? { source: "startup" } : {})
      if (event.type === "session.deleted") parents.delete(session)
    },
    "chat.message": async (input, output) => {
      tell("chat.message", input?.sessionID, place, {
        agent: input?.agent,
        message: { id: output?.message?.id },
        parts: texts(output?.parts),
        earlier: await earlier(client, input?.sessionID, output?.message?.id),
      })
    },
    "command.execute.before": async (input) => {
      tell("command.execute.before", input?.sessionID, place, {
        command: input?.command,
        arguments: input?.arguments,
      })
    },
    "tool.execute.before": async (input, output) => {
      const reason = tell("tool.execute.before", input?.sessionID, place, {
        tool: input?.tool,
        callID: input?.callID,
        args: output?.args,
      })
      if (reason) throw new Error(reason)
    },
    "tool.execute.after": async (input, output) => {
      tell("tool.execute.after", input?.sessionID, place, {
        tool: input?.tool,
        callID: input?.callID,
        args: input?.args,
        metadata: { exit: output?.metadata?.exit, error: output?.metadata?.error },
      })
    },
  }
}
)";
  return out;
}

std::optional<std::string> ProgramOfFile(std::string_view content) {
  constexpr std::string_view kExec = "\nexec ", kConst = "\nconst program = ";
  auto line = [&](std::string_view begin) -> std::optional<std::string_view> {
    const size_t at = content.find(begin);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = content.substr(at + begin.size());
    return rest.substr(0, rest.find('\n'));
  };
  // Whatever it is called: the file says that it is ours.
  auto first_word = [&](std::string_view run) -> std::optional<std::string> {
    const std::vector<std::string> words = PlainWords(run);
    return words.empty() ? std::nullopt : std::optional(words[0]);
  };
  if (auto run = line(kExec)) return first_word(*run);
  for (std::string_view begin : {"\n!`", "\n!{"})
    if (auto run = line(begin)) {
      const size_t end = run->find(" __slash ");
      if (end == std::string_view::npos) return std::nullopt;
      return first_word(run->substr(0, end));
    }
  if (auto text = line(kConst)) {
    auto value = Jsonc::Parse(std::string(*text), "");
    if (value.ok() && value->root() != Jsonc::kNone)
      return value->StringOf(value->root());
  }
  return std::nullopt;
}

bool LooksLikeOurs(const AgentProfile& profile, std::string_view content) {
  std::string slash = " __slash ";
  slash += AgentName(profile.agent);
  return content.find(Marker(profile.agent)) != std::string_view::npos ||
         content.find(slash) != std::string_view::npos;
}

}  // namespace belay
