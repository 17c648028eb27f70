#include "agent/event_roots.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "agent/recorder.h"
#include "base/mutant.h"
#include "base/sha256.h"
#include "core/live.h"
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

void SetLine(Store& store, const Name& name, std::vector<std::string> lines,
             const std::string& beginning, const std::string& value) {
  std::erase_if(lines, [&](const std::string& l) { return l.starts_with(beginning); });
  lines.push_back(beginning + value);
  size_t bytes = 0, kept = 0;
  for (auto line = lines.rbegin(); line != lines.rend() && kept < kMaxLines; ++line) {
    bytes += line->size() + 1;
    if (bytes >= kMaxFile) break;
    ++kept;
  }
  lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(kept));
  Save(store, name, lines);
}

// What the file says of a session.
struct Places {
  std::string home = {};  // "-": not known
  std::vector<std::string> others = {};

  static Places In(const std::vector<std::string>& lines, const std::string& session) {
    Places out;
    std::string line = LineOf(lines, KeyOf(session) + " ").value_or("");
    for (std::string_view left = line; !left.empty();) {
      const size_t end = std::min(left.find(' '), left.size());
      if (out.home.empty())
        out.home = left.substr(0, end);
      else
        out.others.emplace_back(left.substr(0, end));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
    return out;
  }
  bool Has(const std::string& id) const {
    return home == id || std::ranges::find(others, id) != others.end();
  }
  bool HasHome() const { return !home.empty() && home != "-"; }
  void Add(const std::string& id) {
    constexpr size_t kMostOthers = 64;
    if (home == id) return;
    std::erase(others, id);
    if (others.size() >= kMostOthers) others.erase(others.begin());
    others.push_back(id);
  }
  std::string Text() const {
    std::string out = home.empty() ? "-" : home;
    for (const std::string& id : others) out += " " + id;
    return out;
  }
};

std::vector<Root> OthersOf(std::span<const RootEntry> roots, const Places& places,
                           std::span<const Root> here) {
  std::vector<Root> out;
  for (const RootEntry& entry : roots) {
    const RootId& id = entry.root.id;
    const bool is_here =
        std::ranges::any_of(here, [&](const Root& r) { return r.id == id; });
    if (!is_here && !entry.root.off && places.Has(id.text()) &&
        !BELAY_MUTANT("prompts-are-heard-in-one-place"))
      out.push_back(entry.root);
  }
  return out;
}

std::optional<AbsPath> RealDir(Fs& fs, std::string_view text) {
  auto path = AbsPath::Parse(text);
  if (!path.ok()) return std::nullopt;
  auto real = fs.RealPath(*path);
  // One that is gone may be the root that was deleted.
  return real.ok() ? *real : *path;
}

}  // namespace

void TakePlace(HookEvent& event, const std::optional<AbsPath>& here) {
  if (!event.cwd.empty() && event.cwd.front() != '/') {
    auto full = here ? AbsPath::Resolve(*here, event.cwd)
                     : Result<AbsPath>(Error(Errc::kNotFound, ""));
    event.cwd = full.ok() ? full->bytes() : std::string();
  }
  if (!event.cwd.empty() || !event.workspaces.empty() || !here ||
      event.agent == AgentKind::kHermes ||
      (event.agent == AgentKind::kGeneric && BELAY_MUTANT("hosts-say-where-they-are")))
    return;
  event.cwd = here->bytes();
  event.cwd_is_hooks = true;
}

void LeavePlace(Store& store, std::span<const RootEntry> roots, HookEvent& event) {
  if (event.agent != AgentKind::kGeneric || !event.cwd_is_hooks ||
      event.session.empty() || event.kind == EventKind::kSessionStart ||
      BELAY_MUTANT("hosts-are-where-their-hooks-run"))
    return;
  const Places places = Places::In(Lines(store, SessionsName()), event.session);
  for (const RootEntry& entry : roots) {
    if (entry.root.id.text() != places.home) continue;
    const Live live = Live::Load(store, entry.root.id);
    const LiveSession* known = live.Find(event.session);
    if (known == nullptr || known->cwd != event.cwd) event.cwd.clear();
  }
}

std::optional<AbsPath> PlaceOf(Fs& fs, const HookEvent& event) {
  for (const std::string& workspace : event.workspaces)
    if (auto dir = RealDir(fs, workspace)) return dir;
  return event.cwd.empty() ? std::nullopt : RealDir(fs, event.cwd);
}

EventRoots RootsOf(Store& store, std::span<const RootEntry> roots,
                   const HookEvent& event) {
  EventRoots found;
  std::vector<Root>& out = found.here;
  auto add = [&](const std::optional<RootEntry>& entry) {
    if (!entry || entry->root.off) return;
    for (const Root& known : out)
      if (known.id == entry->root.id) return;
    out.push_back(entry->root);
  };
  auto at = [&](const std::optional<AbsPath>& path) -> std::optional<RootEntry> {
    return path ? FindRootFor(roots, *path) : std::nullopt;
  };
  Places places;
  const bool remembered =
      !event.session.empty() && event.kind != EventKind::kSessionStart;
  if (remembered) {
    places = Places::In(Lines(store, SessionsName()), event.session);
    found.homeless = !places.HasHome();
    for (const RootEntry& entry : roots)
      if (entry.root.id.text() == places.home) add(entry);
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
  if (!remembered) return found;
  if (!call && event.kind != EventKind::kCompact && event.kind != EventKind::kOther)
    found.elsewhere = OthersOf(roots, places, out);
  else if (call && roots.size() > 1)
    found.news = std::ranges::any_of(
        out, [&](const Root& root) { return !places.Has(root.id.text()); });
  return found;
}

std::vector<Root> OtherRootsOf(Store& store, std::span<const RootEntry> roots,
                               const std::string& session, std::span<const Root> here) {
  if (roots.size() < 2 || session.empty()) return {};
  return OthersOf(roots, Places::In(Lines(store, SessionsName()), session), here);
}

void RememberSessionRoot(Store& store, const std::string& session, const RootId& root) {
  std::vector<std::string> lines = Lines(store, SessionsName());
  Places places = Places::In(lines, session);
  if (places.home == root.text()) return;
  const std::string before = std::exchange(places.home, root.text());
  std::erase(places.others, places.home);
  if (!before.empty() && before != "-") places.Add(before);
  SetLine(store, SessionsName(), std::move(lines), KeyOf(session) + " ", places.Text());
}

void RememberFirstRoot(Store& store, const std::string& session, const RootId& root) {
  std::vector<std::string> lines = Lines(store, SessionsName());
  Places places = Places::In(lines, session);
  if (places.HasHome() || BELAY_MUTANT("who-begins-at-home-has-no-turns")) return;
  places.home = root.text();
  std::erase(places.others, places.home);
  SetLine(store, SessionsName(), std::move(lines), KeyOf(session) + " ", places.Text());
}

void RememberCallsIn(Store& store, const std::string& session,
                     std::span<const Root> roots) {
  std::vector<std::string> lines = Lines(store, SessionsName());
  Places places = Places::In(lines, session);
  for (const Root& root : roots) places.Add(root.id.text());
  SetLine(store, SessionsName(), std::move(lines), KeyOf(session) + " ", places.Text());
}

void RememberAgent(Store& store, AgentKind agent) {
  const std::string beginning = std::string(AgentName(agent)) + " ";
  const int64_t now = store.clock().WallMillis();
  // Not at every call: replacing a file is a tenth of what an agent waits for beyond
  // the checkpoint itself.
  std::vector<std::string> lines = Lines(store, SeenName());
  if (auto seen = LineOf(lines, beginning)) {
    int64_t then = 0;
    const auto [end, error] =
        std::from_chars(seen->data(), seen->data() + seen->size(), then);
    if (error == std::errc() && end == seen->data() + seen->size() && then <= now &&
        now - then < kSeenMs)
      return;
  }
  SetLine(store, SeenName(), std::move(lines), beginning, std::to_string(now));
}

}  // namespace belay
