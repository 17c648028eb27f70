#include "agent/event_roots.h"

#include <algorithm>
#include <charconv>

#include "agent/recorder.h"
#include "base/mutant.h"
#include "base/sha256.h"
#include "core/roots.h"
#include "scan/stat_cache.h"

namespace belay {

namespace {

constexpr size_t kMaxLines = 200, kMaxFile = 64 << 10;
constexpr int64_t kSeenMs = 10'000;

Name SessionsName() { return Name::Literal("sessions"); }
Name SeenName() { return Name::Literal("agents.seen"); }

std::string KeyOf(const std::string& session) {
  return Sha256::Of(AsBytes(session)).hex().substr(0, 32);
}

std::vector<std::string> Lines(Store& store, const Name& name) {
  auto dir = store.fs().Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return {};
  auto bytes = ReadSmallFile(store.fs(), *dir, name, kMaxFile);
  if (!bytes.ok()) return {};
  std::vector<std::string> out;
  std::string_view text = AsText(*bytes);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return out;
}

// Not flushed: a hint. Of two that write at once one counts.
void Save(Store& store, const Name& name, const std::vector<std::string>& lines) {
  Fs& fs = store.fs();
  // Of a new store: the first session of all is to be known, too.
  if (!BELAY_MUTANT("the-first-session-is-forgotten"))
    (void)fs.MakeDir(store.dir(), StatCache::DirName(), 0700);
  auto dir = fs.Open(store.dir(), StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return;
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const Name temporary = Name::Literal(std::string(name.bytes()) + ".tmp");
  auto file = fs.Open(*dir, temporary,
                      {.access = OpenMode::Access::kReadWrite,
                       .create = true,
                       .truncate = true,
                       .mode = 0600});
  if (!file.ok() || !WriteFull(fs, *file, 0, AsBytes(text)).ok()) return;
  (void)fs.Rename(*dir, temporary, *dir, name, RenameHow::kReplace);
}

// The last line that begins so, without that beginning.
std::optional<std::string> LineOf(const std::vector<std::string>& lines,
                                  const std::string& beginning) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (line->starts_with(beginning)) return line->substr(beginning.size());
  return std::nullopt;
}

void SetLine(Store& store, const Name& name, const std::string& beginning,
             const std::string& value) {
  std::vector<std::string> lines = Lines(store, name);
  std::erase_if(lines, [&](const std::string& l) { return l.starts_with(beginning); });
  lines.push_back(beginning + value);
  if (lines.size() > kMaxLines)
    lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(kMaxLines));
  Save(store, name, lines);
}

std::optional<AbsPath> RealDir(Fs& fs, std::string_view text) {
  auto path = AbsPath::Parse(text);
  if (!path.ok()) return std::nullopt;
  auto real = fs.RealPath(*path);
  // One that is gone may be the root that was deleted.
  return real.ok() ? *real : *path;
}

}  // namespace

std::optional<AbsPath> PlaceOf(Fs& fs, const HookEvent& event) {
  for (const std::string& workspace : event.workspaces)
    if (auto dir = RealDir(fs, workspace)) return dir;
  return event.cwd.empty() ? std::nullopt : RealDir(fs, event.cwd);
}

std::vector<Root> RootsOf(Store& store, std::span<const RootEntry> roots,
                          const HookEvent& event) {
  std::vector<Root> out;
  auto add = [&](const std::optional<RootEntry>& found) {
    if (!found || found->root.off) return;
    for (const Root& known : out)
      if (known.id == found->root.id) return;
    out.push_back(found->root);
  };
  auto at = [&](const std::optional<AbsPath>& path) -> std::optional<RootEntry> {
    return path ? FindRootFor(roots, *path) : std::nullopt;
  };
  if (!event.session.empty() && event.kind != EventKind::kSessionStart) {
    const auto id = LineOf(Lines(store, SessionsName()), KeyOf(event.session) + " ");
    for (const RootEntry& entry : roots)
      if (id && entry.root.id.text() == *id) add(entry);
  }
  for (const std::string& workspace : event.workspaces)
    if (out.empty()) add(at(RealDir(store.fs(), workspace)));
  const bool call =
      event.kind == EventKind::kToolBegin || event.kind == EventKind::kToolEnd;
  const auto cwd = event.cwd.empty() ? std::nullopt : RealDir(store.fs(), event.cwd);
  if (out.empty() || call) add(at(cwd));
  if (call && event.tool && cwd)
    for (const std::string& path : event.tool->paths)
      if (auto absolute = AbsPath::Resolve(*cwd, path); absolute.ok())
        add(FindRootFor(roots, *absolute));
  // What may write anything may write in protected directories below.
  if (call && event.tool && event.tool->reach == ToolReach::kWrites &&
      !BELAY_MUTANT("nested-roots-are-not-looked-at")) {
    const std::vector<Root> above = out;
    for (const Root& root : above)
      for (const RootEntry& entry : roots)
        if (entry.root.path.size() > root.path.size() &&
            entry.root.path.starts_with(root.path) &&
            (root.path == "/" || entry.root.path[root.path.size()] == '/'))
          add(entry);
  }
  return out;
}

void RememberSessionRoot(Store& store, const std::string& session, const RootId& root) {
  const std::string key = KeyOf(session) + " ";
  if (LineOf(Lines(store, SessionsName()), key) == root.text()) return;
  SetLine(store, SessionsName(), key, root.text());
}

void RememberAgent(Store& store, AgentKind agent) {
  const std::string beginning = std::string(AgentName(agent)) + " ";
  const int64_t now = store.clock().WallMillis();
  // Not at every call: replacing a file is a tenth of what an agent waits for beyond
  // the checkpoint itself.
  if (auto seen = LineOf(Lines(store, SeenName()), beginning)) {
    int64_t then = 0;
    const auto [end, error] =
        std::from_chars(seen->data(), seen->data() + seen->size(), then);
    if (error == std::errc() && end == seen->data() + seen->size() && then <= now &&
        now - then < kSeenMs)
      return;
  }
  SetLine(store, SeenName(), beginning, std::to_string(now));
}

}  // namespace belay
