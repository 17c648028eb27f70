#include "restore/running.h"

#include <algorithm>

#include "base/escape.h"
#include "base/mutant.h"
#include "core/live.h"

namespace belay {

namespace {

constexpr int64_t kMinuteMs = 60'000;

bool IsRunning(const Live& live, const LiveSession& session, int64_t now_ms) {
  if (!session.in_turn) return false;
  // The prompt that asks for this.
  if (session.prompt.starts_with("/rollback")) return false;
  const bool at_work = std::ranges::any_of(live.calls(), [&](const LiveCall& call) {
    return !call.background && call.author.session == session.id;
  });
  if (BELAY_MUTANT("turns-run-for-ever")) return true;
  return now_ms - session.seen_ms <= (at_work ? kCallQuietMs : kTurnQuietMs);
}

std::string Ago(int64_t ms) {
  const int64_t minutes = std::max<int64_t>(ms, 0) / kMinuteMs;
  if (minutes == 0) return "a moment ago";
  return minutes == 1 ? "a minute ago" : std::to_string(minutes) + " minutes ago";
}

// The beginning of its first line, cut at a character.
std::string Briefly(std::string_view prompt) {
  constexpr size_t kShown = 60;
  prompt.remove_prefix(std::min(prompt.find_first_not_of(" \t\r\n"), prompt.size()));
  prompt = prompt.substr(0, prompt.find_first_of("\r\n"));
  if (prompt.size() <= kShown) return EscapeText(prompt);
  size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(prompt[end]) & 0xC0) == 0x80) --end;
  return EscapeText(prompt.substr(0, end)) + "...";
}

}  // namespace

std::optional<SessionActivity> ActivityOf(Store& store, const RootId& root,
                                          const std::string& session) {
  const Live live = Live::Load(store, root);
  const LiveSession* known = live.Find(session);
  if (known == nullptr) return std::nullopt;
  return SessionActivity{.in_turn = IsRunning(live, *known, store.clock().WallMillis()),
                         .turn = known->turn,
                         .ended = known->ended,
                         .seen_ms = known->seen_ms};
}

std::vector<std::string> RunningTurns(Store& store, const RootId& root,
                                      const AskedBy& asked) {
  const Live live = Live::Load(store, root);
  const int64_t now_ms = store.clock().WallMillis();
  // Of an agent that does not say which session asks, the one that was heard of last.
  const LiveSession* waits = asked.session.empty() ? nullptr : live.Find(asked.session);
  for (const LiveSession& session : live.sessions())
    if (asked.session.empty() && !asked.agent.empty() && session.agent == asked.agent &&
        (waits == nullptr || waits->seen_ms < session.seen_ms))
      waits = &session;
  std::vector<std::string> out;
  for (const LiveSession& session : live.sessions()) {
    if (!IsRunning(live, session, now_ms)) continue;
    if (&session == waits && !BELAY_MUTANT("who-asks-is-running")) continue;
    const std::string prompt = Briefly(session.prompt);
    out.push_back((session.agent.empty() ? "an agent" : EscapeText(session.agent)) +
                  " is in a turn here" + (prompt.empty() ? "" : " ('" + prompt + "')") +
                  ", last heard of " + Ago(now_ms - session.seen_ms) +
                  ": what it goes on to write is not taken back");
  }
  return out;
}

}  // namespace belay
