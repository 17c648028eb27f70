#include <algorithm>
#include <charconv>

#include "agent/install_hooks_internal.h"
#include "base/escape.h"
#include "base/mutant.h"

namespace belay {

namespace {

using Id = Jsonc::Id;
using Kind = Jsonc::Kind;
constexpr Id kNone = Jsonc::kNone;

// An entry of ours: the object with the command, and in grouped settings the group that
// holds it.
struct Entry {
  Id id = kNone, list = kNone, group = kNone;
  size_t group_index = 0, index = 0;
  std::string command = {}, program = {};
  bool changed = false;  // somebody made more of it
};

class HookSettings {
 public:
  HookSettings(Jsonc doc, const AgentProfile& profile, const HookPrograms& programs)
      : doc_(std::move(doc)), profile_(profile), programs_(programs) {}

  Jsonc& doc() { return doc_; }

  // The object of all hooks; kNone when there is none.
  Result<Id> Hooks() const {
    if (doc_.root() == kNone) return kNone;
    if (doc_.kind(doc_.root()) != Kind::kObject)
      return Wrong(doc_.root(), "settings must be an object, { ... }");
    BELAY_TRY(Id hooks, doc_.Member(doc_.root(), "hooks"));
    if (hooks != kNone && doc_.kind(hooks) != Kind::kObject)
      return Wrong(hooks, "\"hooks\" must be an object, { ... }");
    return hooks;
  }

  // The list of one event; kNone when there is none.
  Result<Id> List(std::string_view event) const {
    BELAY_TRY(Id hooks, Hooks());
    if (hooks == kNone) return kNone;
    BELAY_TRY(Id list, doc_.Member(hooks, event));
    if (list != kNone && doc_.kind(list) != Kind::kArray)
      return Wrong(list, JsonQuoted(event) + " must be a list, [ ... ]");
    return list;
  }

  // Entries of ours in a list, as we write them. What has another shape is somebody
  // else's.
  Result<std::vector<Entry>> Ours(Id list) const {
    BELAY_TRY(auto out, OursAndChanged(list));
    std::erase_if(out, [](const Entry& entry) { return entry.changed; });
    return out;
  }
  // And those that somebody made more of.
  Result<std::vector<Entry>> OursAndChanged(Id list) const {
    std::vector<Entry> out;
    if (list == kNone || doc_.kind(list) != Kind::kArray) return out;
    const std::vector<Id> items = doc_.Children(list);
    for (size_t i = 0; i < items.size(); ++i) {
      if (doc_.kind(items[i]) != Kind::kObject) continue;
      if (profile_.shape == HookShape::kFlat) {
        BELAY_OK(AddIfOurs({.id = items[i], .list = list, .index = i}, out));
        continue;
      }
      BELAY_TRY(Id inner, doc_.Member(items[i], "hooks"));
      if (inner == kNone || doc_.kind(inner) != Kind::kArray) continue;
      const std::vector<Id> below = doc_.Children(inner);
      for (size_t k = 0; k < below.size(); ++k)
        if (doc_.kind(below[k]) == Kind::kObject)
          BELAY_OK(AddIfOurs({.id = below[k],
                              .list = inner,
                              .group = items[i],
                              .group_index = i,
                              .index = k},
                             out));
    }
    return out;
  }

  Status Merge() {
    if (doc_.root() == kNone) {
      JsonDraft root = JsonDraft::Object({});
      if (profile_.file_version != 0)
        root.members.emplace_back("version", JsonDraft::Int(profile_.file_version));
      BELAY_TRY(doc_, doc_.SetRoot(root));
    }
    BELAY_OK(CheckVersion());
    BELAY_TRY(Id hooks, Hooks());
    if (hooks == kNone) {
      BELAY_TRY(doc_, doc_.Append(doc_.root(), "hooks", JsonDraft::Object({})));
    }
    for (const HookEventSpec& event : profile_.events) BELAY_OK(MergeEvent(event));
    // What an earlier version asked for and this one does not.
    return RemoveAll(nullptr, /*unwanted_only=*/true);
  }

  Status RemoveAll(const Jsonc* before, bool unwanted_only) {
    BELAY_TRY(Id hooks, Hooks());
    if (hooks == kNone) return Ok();
    std::vector<std::string> events;
    for (Id id : doc_.Children(hooks)) events.push_back(doc_.Key(id));
    bool any = false;
    for (const std::string& event : events) {
      if (unwanted_only && IsWanted(event)) continue;
      BELAY_TRY(bool removed, RemoveEvent(event, before));
      any = any || removed;
    }
    if (unwanted_only || !any) return Ok();
    BELAY_TRY(hooks, Hooks());
    if (doc_.IsEmpty(hooks) && doc_.IsBlank(hooks) && !Had(before, {})) {
      BELAY_TRY(doc_, doc_.Remove(hooks));
    }
    return Ok();
  }

  // Whether an entry is as it should be for that event; else the first thing to do.
  Result<bool> IsRight(const Entry& entry, const HookEventSpec& event) const {
    BELAY_TRY(bool matches, MatcherIsRight(entry, event));
    if (!matches || entry.command != HookLine(profile_, programs_.now, event.name))
      return false;
    BELAY_TRY(Id timeout, doc_.Member(entry.id, profile_.timeout_key));
    if (timeout == kNone || doc_.Text(timeout) != std::to_string(event.timeout))
      return false;
    if (!profile_.typed) return true;
    BELAY_TRY(Id type, doc_.Member(entry.id, "type"));
    return type != kNone && doc_.StringOf(type) == "command";
  }

  Result<std::optional<std::string>> MatcherOf(const Entry& entry) const {
    const Id holder = entry.group != kNone ? entry.group : entry.id;
    BELAY_TRY(Id matcher, doc_.Member(holder, MatcherKey()));
    if (matcher == kNone) return std::optional<std::string>();
    return doc_.StringOf(matcher);
  }

 private:
  std::string_view MatcherKey() const {
    return profile_.agent == AgentKind::kReasonix ? "match" : "matcher";
  }
  Error Wrong(Id id, std::string_view problem) const {
    return doc_.At(id, problem).WithHint("put it right; nothing was changed");
  }
  bool IsWanted(std::string_view event) const {
    return std::any_of(profile_.events.begin(), profile_.events.end(),
                       [&](const HookEventSpec& spec) { return spec.name == event; });
  }

  Status CheckVersion() const {
    if (profile_.file_version == 0 || doc_.root() == kNone ||
        doc_.kind(doc_.root()) != Kind::kObject)
      return Ok();
    BELAY_TRY(Id version, doc_.Member(doc_.root(), "version"));
    if (version != kNone && doc_.Text(version) != std::to_string(profile_.file_version))
      return Wrong(version, "a version of hooks that is not known: " +
                                EscapeForDisplay(doc_.Text(version).substr(0, 40)));
    return Ok();
  }

  Status AddIfOurs(Entry entry, std::vector<Entry>& out) const {
    BELAY_TRY(Id command, doc_.Member(entry.id, profile_.command_key));
    if (command == kNone) return Ok();
    auto text = doc_.StringOf(command);
    if (!text) return Ok();
    auto program = ProgramOfHook(*text, profile_.agent, programs_);
    if (BELAY_MUTANT("install-owns-everything") && !program) program = *text;
    if (!program && !BELAY_MUTANT("install-beside-a-changed-hook")) {
      program = ProgramInCommand(*text, profile_.agent, programs_);
      entry.changed = program.has_value();
    }
    if (!program) return Ok();
    entry.command = std::move(*text);
    entry.program = std::move(*program);
    out.push_back(std::move(entry));
    return Ok();
  }

  JsonDraft NewEntry(const HookEventSpec& event) const {
    JsonDraft entry = JsonDraft::Object({});
    auto add = [&](std::string_view key, JsonDraft value) {
      entry.members.emplace_back(std::string(key), std::move(value));
    };
    const bool named = !profile_.label_key.empty();
    if (named && profile_.label_key == "name") add("name", JsonDraft::String("belay"));
    if (profile_.typed) add("type", JsonDraft::String("command"));
    add(profile_.command_key,
        JsonDraft::String(HookLine(profile_, programs_.now, event.name)));
    add(profile_.timeout_key, JsonDraft::Int(event.timeout));
    if (named && profile_.label_key != "name")
      add(profile_.label_key, JsonDraft::String("belay"));
    if (profile_.shape == HookShape::kFlat) return entry;
    JsonDraft group = JsonDraft::Object({});
    if (event.matched && !profile_.matcher.empty())
      group.members.emplace_back("matcher", JsonDraft::String(profile_.matcher));
    group.members.emplace_back("hooks", JsonDraft::Array({std::move(entry)}));
    return group;
  }

  // Every way to say "all tools".
  Result<bool> MatcherIsRight(const Entry& entry, const HookEventSpec& event) const {
    if (!event.matched) return true;
    BELAY_TRY(auto matcher, MatcherOf(entry));
    return !matcher || matcher->empty() || *matcher == "*" || *matcher == ".*";
  }

  Status MergeEvent(const HookEventSpec& event) {
    // Each round does one thing; there are never more than a few per entry.
    for (;;) {
      BELAY_TRY(Id list, List(event.name));
      if (list == kNone) {
        BELAY_TRY(Id hooks, Hooks());
        BELAY_TRY(doc_,
                  doc_.Append(hooks, event.name, JsonDraft::Array({NewEntry(event)})));
        return Ok();
      }
      BELAY_TRY(auto ours, Ours(list));
      if (ours.empty()) {
        // Beside one that tells us already, each event would be told twice.
        BELAY_TRY(auto changed, OursAndChanged(list));
        if (!changed.empty()) return Ok();
        BELAY_TRY(doc_, doc_.Append(list, NewEntry(event)));
        return Ok();
      }
      if (ours.size() > 1) {
        BELAY_OK(RemoveEntry(ours.back()));
        continue;
      }
      BELAY_TRY(bool right, IsRight(ours[0], event));
      if (right) return Ok();
      BELAY_OK(Improve(ours[0], event));
    }
  }

  // One step of putting an entry right.
  Status Improve(const Entry& entry, const HookEventSpec& event) {
    BELAY_TRY(bool matches, MatcherIsRight(entry, event));
    if (!matches) {
      // The matcher of a group that others are in is theirs.
      if (entry.group != kNone && doc_.Children(entry.list).size() > 1)
        return RemoveEntry(entry);
      const Id holder = entry.group != kNone ? entry.group : entry.id;
      BELAY_TRY(Id matcher, doc_.Member(holder, MatcherKey()));
      BELAY_TRY(doc_, profile_.matcher.empty()
                          ? doc_.Remove(matcher)
                          : doc_.Replace(matcher, JsonDraft::String(profile_.matcher)));
      return Ok();
    }
    const std::string command = HookLine(profile_, programs_.now, event.name);
    if (entry.command != command)
      return Set(entry.id, profile_.command_key, JsonDraft::String(command));
    BELAY_TRY(Id timeout, doc_.Member(entry.id, profile_.timeout_key));
    if (timeout == kNone || doc_.Text(timeout) != std::to_string(event.timeout))
      return Set(entry.id, profile_.timeout_key, JsonDraft::Int(event.timeout));
    return Set(entry.id, "type", JsonDraft::String("command"));
  }

  Status Set(Id object, std::string_view key, const JsonDraft& value) {
    BELAY_TRY(Id member, doc_.Member(object, key));
    BELAY_TRY(doc_, member == kNone ? doc_.Append(object, key, value)
                                    : doc_.Replace(member, value));
    return Ok();
  }

  // With its group, when that holds nothing else.
  Status RemoveEntry(const Entry& entry) {
    const bool alone = doc_.Children(entry.list).size() == 1 ||
                       BELAY_MUTANT("uninstall-takes-foreign");
    BELAY_TRY(doc_,
              doc_.Remove(entry.group != kNone && alone ? entry.group : entry.id));
    return Ok();
  }

  Result<bool> RemoveEvent(const std::string& event, const Jsonc* before) {
    BELAY_TRY(Id hooks, Hooks());
    BELAY_TRY(Id list, doc_.Member(hooks, event));
    bool any = false;
    for (;;) {
      BELAY_TRY(auto ours, Ours(list));
      if (ours.empty()) break;
      any = true;
      BELAY_OK(RemoveEntry(ours.back()));
      BELAY_TRY(hooks, Hooks());
      BELAY_TRY(list, doc_.Member(hooks, event));
    }
    if (any && doc_.IsEmpty(list) && doc_.IsBlank(list) && !Had(before, event)) {
      BELAY_TRY(doc_, doc_.Remove(list));
    }
    return any;
  }

  // Whether the file had the list of an event, or of none: the object of hooks.
  bool Had(const Jsonc* before, const std::string& event) const {
    if (before == nullptr) return false;
    HookSettings old(*before, profile_, programs_);
    auto hooks = old.Hooks();
    if (!hooks.ok() || *hooks == kNone) return false;
    if (event.empty()) return true;
    auto list = old.doc_.Member(*hooks, event);
    return list.ok() && *list != kNone;
  }

  Jsonc doc_;
  const AgentProfile& profile_;
  const HookPrograms& programs_;
};

}  // namespace

Result<Jsonc> MergeHooks(Jsonc doc, const AgentProfile& profile,
                         const HookPrograms& programs) {
  HookSettings settings(std::move(doc), profile, programs);
  BELAY_OK(settings.Merge());
  return std::move(settings.doc());
}

Result<Jsonc> RemoveHooks(Jsonc doc, const AgentProfile& profile,
                          const HookPrograms& programs, const Jsonc* before) {
  HookSettings settings(std::move(doc), profile, programs);
  BELAY_OK(settings.RemoveAll(before, /*unwanted_only=*/false));
  return std::move(settings.doc());
}

bool IsBareSettings(const Jsonc& doc, const AgentProfile& profile) {
  if (doc.root() == kNone) return true;
  if (doc.kind(doc.root()) != Kind::kObject) return false;
  if (doc.IsEmpty(doc.root())) return doc.IsBlank(doc.root());
  const std::vector<Id> members = doc.Children(doc.root());
  return profile.file_version != 0 && members.size() == 1 &&
         doc.Key(members[0]) == "version";
}

Result<std::vector<RegisteredHook>> FindHooks(const Jsonc& doc,
                                              const AgentProfile& profile,
                                              const HookPrograms& programs) {
  const HookSettings settings(doc, profile, programs);
  std::vector<RegisteredHook> out;
  for (const HookEventSpec& event : profile.events) {
    BELAY_TRY(Id list, settings.List(event.name));
    BELAY_TRY(auto ours, settings.OursAndChanged(list));
    for (const Entry& entry : ours) {
      RegisteredHook hook{.event = std::string(event.name),
                          .program = entry.program,
                          .command = entry.command,
                          .group = entry.group_index,
                          .position = entry.index,
                          .changed = entry.changed};
      BELAY_TRY(hook.matcher, settings.MatcherOf(entry));
      BELAY_TRY(Id timeout, doc.Member(entry.id, profile.timeout_key));
      if (timeout != kNone) {
        int64_t value = 0;
        const std::string_view text = doc.Text(timeout);
        auto [end, problem] =
            std::from_chars(text.data(), text.data() + text.size(), value);
        if (problem == std::errc() && end == text.data() + text.size())
          hook.timeout = value;
      }
      BELAY_TRY(bool right, settings.IsRight(entry, event));
      hook.right = right || entry.changed;
      out.push_back(std::move(hook));
    }
  }
  return out;
}

}  // namespace belay
