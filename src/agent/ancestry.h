#pragma once

// Who a session grew out of, when an agent forked it, resumed it under another id, or
// silently began another one.
//
// Told by the event itself (hosts and opencode name a parent), or read from the
// transcript, which such a session begins with a copy of (or, of Codex, only says how
// much of which other file it has; opencode's plugin lists the prompts): the newest
// prompt in it that was recorded as a turn of another session is where it left that
// one. Prompts are known by their anchors; where the hooks tell none (Gemini CLI,
// Copilot CLI) or the copy has others, by what was asked, all of it from the first turn
// on, and only when a single session fits. Nobody is guessed.
//
// What the transcript says is hostile: it names a session and a turn that the log has,
// or nothing.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/event.h"
#include "agent/transcript.h"
#include "core/settings.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

struct Ancestor {
  std::string session;
  uint64_t turns = 0;     // of it, up to this number, that belong to the new one
  bool subagent = false;  // it started the new one, and lent it nothing
  bool operator==(const Ancestor&) const = default;
};

// What the log has of a session.
struct KnownSession {
  bool known = false;
  bool has_parent = false;
  uint64_t turns = 0;      // the newest of its own
  uint64_t inherited = 0;  // turns of its parent
  std::optional<TurnRecord> newest = {};
  std::vector<std::string> subagents = {};
  std::string transcript = {};  // where its agent said last that it is
};
Result<KnownSession> LookUpSession(Store& store, const std::string& session);

// The session's turn that has this anchor; nothing when none was recorded.
Result<std::optional<TurnRecord>> LookUpTurn(Store& store, const std::string& session,
                                             const std::string& anchor);

struct AncestorSearch {
  std::optional<Ancestor> found = {};
  bool done = false;  // it need not be looked for again
};
// At the events that begin a session, a turn, or end one; never fails: what cannot be
// read tells nothing, and is tried again. A transcript above kSearchAtPrompt is not
// read while a prompt waits: the session's start or the turn's end does.
inline constexpr uint64_t kSearchAtPrompt = uint64_t{8} << 20;
AncestorSearch SearchAncestor(Store& store, const RootId& root,
                              const Settings& settings, const HookEvent& event);

// By the transcript alone: pure. `turns` and `sessions` are all there are, the newest
// first; `prompt` is the one that is just being submitted, if any.
struct PromptNow {
  std::string text = {};
  std::optional<std::string> anchor = {};
};
std::optional<Ancestor> MatchAncestor(const Transcript& transcript,
                                      const std::string& session,
                                      const std::string& agent,
                                      std::span<const TurnRecord> turns,
                                      std::span<const SessionRecord> sessions,
                                      const std::optional<PromptNow>& prompt);

}  // namespace belay
