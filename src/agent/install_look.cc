// What is connected: for `belay install --list` and `belay doctor`.

#include <algorithm>
#include <charconv>

#include "agent/install.h"
#include "agent/install_hooks_internal.h"
#include "agent/install_off_internal.h"
#include "agent/install_record_internal.h"
#include "agent/install_target_internal.h"
#include "agent/install_trust_internal.h"
#include "base/escape.h"

namespace belay {

namespace {

// `cache/agents.seen` of the store: a hint, a line an agent, "claude 1700000000000".
constexpr size_t kMaxSeen = size_t{64} << 10;

std::optional<int64_t> LastEvent(Fs& fs, const AbsPath& store, AgentKind agent) {
  auto dir = fs.OpenDir(store.Join(RelPath::Literal("cache")));
  if (!dir.ok()) return std::nullopt;
  auto bytes = ReadSmallFile(fs, *dir, Name::Literal("agents.seen"), kMaxSeen);
  if (!bytes.ok()) return std::nullopt;
  std::string_view text = AsText(*bytes);
  std::optional<int64_t> newest;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || line.substr(0, blank) != AgentName(agent))
      continue;
    line.remove_prefix(blank + 1);
    int64_t ms = 0;
    auto [stop, problem] = std::from_chars(line.data(), line.data() + line.size(), ms);
    if (problem == std::errc() && stop != line.data() && ms > 0)
      newest = std::max(newest.value_or(0), ms);
  }
  return newest;
}

bool ProgramIsThere(Fs& fs, const std::string& program) {
  // One without a path is looked for by the agent's shell, where we cannot look.
  if (!program.starts_with('/')) return true;
  auto path = AbsPath::Resolve(AbsPath::Literal("/"), program);
  return path.ok() && fs.RealPath(*path).ok();
}

void NoteProgram(Fs& fs, const std::string& program, HooksAt& out) {
  if (ProgramIsThere(fs, program)) return;
  if (std::find(out.dead.begin(), out.dead.end(), program) == out.dead.end())
    out.dead.push_back(program);
}

Status LookAtSettings(Fs& fs, const InstallPlaces& places, const AgentProfile& profile,
                      const AgentPlaces& at, HooksAt& out) {
  // Who cannot be told apart by them is by their names.
  auto records = InstallRecords::Load(fs, places.store);
  const HookPrograms programs{
      .now = places.program,
      .earlier = records.ok() ? records->programs() : std::vector<std::string>()};
  BELAY_TRY(InstallTarget target,
            LookAtTarget(fs, places, at.hooks, places.project.has_value()));
  BELAY_TRY(Jsonc doc, Jsonc::Parse(target.text.value_or(""), target.shown()));
  BELAY_TRY(auto hooks, FindHooks(doc, profile, programs));
  for (const HookEventSpec& event : profile.events) {
    auto found = std::find_if(
        hooks.begin(), hooks.end(),
        [&](const RegisteredHook& hook) { return hook.event == event.name; });
    if (found == hooks.end()) {
      out.missing.emplace_back(event.name);
      continue;
    }
    ++out.registered;
    out.outdated = out.outdated || !found->right;
    NoteProgram(fs, found->program, out);
  }
  if (!at.trust || hooks.empty()) return Ok();
  BELAY_TRY(InstallTarget trust, LookAtTarget(fs, places, *at.trust, false));
  const auto stamps = TrustStampsOf(hooks, at.hooks);
  if (stamps.empty()) return Ok();
  BELAY_TRY(size_t count, CountTrusted(trust.text.value_or(""), trust.shown(), stamps));
  out.trusted = count == stamps.size();
  return Ok();
}

Status LookAtFiles(Fs& fs, const InstallPlaces& places, const AgentProfile& profile,
                   const std::vector<AbsPath>& paths, std::string_view event,
                   const std::string& content, HooksAt& out) {
  for (const AbsPath& path : paths) {
    auto target = LookAtTarget(fs, places, path, places.project.has_value());
    if (!target.ok() && paths.size() == 1) return std::move(target).error();
    if (!target.ok() || !target->text || !LooksLikeOurs(profile, *target->text))
      continue;
    ++out.registered;
    out.outdated = out.outdated || *target->text != content;
    if (auto program = ProgramOfFile(*target->text)) NoteProgram(fs, *program, out);
    return Ok();
  }
  out.missing.emplace_back(event);
  return Ok();
}

HooksAt LookAtLevel(Fs& fs, const InstallPlaces& places, const AgentProfile& profile) {
  auto at = PlacesOf(fs, profile, places);
  HooksAt out{.file = at.ok() ? at->hooks : places.home};
  Status looked = Ok();
  if (!at.ok()) {
    looked = at.error();
  } else if (profile.shape == HookShape::kScripts) {
    out.wanted = profile.events.size();
    for (const HookEventSpec& event : profile.events)
      if (looked.ok())
        looked = LookAtFiles(fs, places, profile, ScriptNames(at->hooks, event.name),
                             event.name,
                             ScriptFile(profile, places.program, event.name), out);
  } else if (profile.shape == HookShape::kPlugin) {
    out.wanted = 1;
    looked = LookAtFiles(fs, places, profile, {at->hooks}, "plugin",
                         PluginFile(places.program), out);
  } else {
    out.wanted = profile.events.size();
    looked = LookAtSettings(fs, places, profile, *at, out);
  }
  if (!looked.ok()) out.trouble = looked.error();
  return out;
}

}  // namespace

AgentStatus LookAtAgent(Fs& fs, const InstallPlaces& places, AgentKind agent,
                        std::string_view path) {
  const AgentProfile& profile = ProfileOf(agent);
  InstallPlaces user = places;
  user.project.reset();
  AgentStatus out{.agent = agent,
                  .title = profile.title,
                  .program = ProgramOfAgent(fs, agent, path),
                  .user = LookAtLevel(fs, user, profile)};
  if (places.project) out.project = LookAtLevel(fs, places, profile);
  out.off = FindHooksOff(fs, places, profile);
  out.last_event_ms = LastEvent(fs, places.store, agent);
  return out;
}

std::string HooksOffText(const HooksOff& off) {
  return "hooks are switched off in " + EscapeForDisplay(off.file.bytes()) + " (" +
         off.key + ")";
}

std::optional<AbsPath> ProgramOfAgent(Fs& fs, AgentKind agent, std::string_view path) {
  return FindInPath(fs, path, ProfileOf(agent).program);
}

std::optional<AbsPath> FindInPath(Fs& fs, std::string_view path,
                                  std::string_view name) {
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (!part.starts_with('/')) continue;
    auto dir = AbsPath::Resolve(AbsPath::Literal("/"), part);
    if (!dir.ok()) continue;
    const AbsPath found = dir->Join(Name::Literal(name));
    auto real = fs.RealPath(found);
    if (!real.ok() || real->is_root()) continue;
    auto above = fs.OpenDir(real->parent());
    if (!above.ok()) continue;
    auto stat = fs.StatAt(
        *above, RelPath::Literal(std::string_view(real->bytes()).substr(1)).basename());
    if (stat.ok() && stat->type == FileType::kRegular && (stat->mode & 0111) != 0)
      return found;
  }
  return std::nullopt;
}

}  // namespace belay
