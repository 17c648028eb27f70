#pragma once

// Taking a conversation back: what a session's agent needs for it, found in the log and
// made ready, for restore/ to do together with the files or alone.
//
// Guarantees
//   * Nothing is written, and the agent's own file only read. (MakeNativeFork alone
//     makes something, by the agent's program, and says what.)
//   * Of agents whose conversation cannot be taken back from outside: kUnsupported,
//     with what to do.
//   * A host that keeps the conversation itself is told by the event log what to take
//     back (docs/conversation.md).

#include <optional>
#include <string>
#include <vector>

#include "agent/aftermath.h"
#include "agent/conversation.h"
#include "agent/native_fork.h"
#include "core/chat.h"
#include "restore/chat_plan.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// What programs of agents are found by, and started with.
struct AgentPrograms {
  std::string exec_path;
  std::vector<std::string> environment;  // "NAME=value"
};

// Who has such a program make a copy, and what is needed for that.
struct ForkMaker {
  Store& store;
  RootId root;        // that it is for
  AbsPath store_dir;  // where the store is
  AgentPrograms programs;
  int64_t pid = 0;               // of who is at work
  int64_t timeout_ms = 120'000;  // each time that a program is run
};

struct RewindRequest {
  std::string session;
  std::optional<uint64_t> turn = {};        // before this prompt ...
  std::optional<std::string> message = {};  // ... or this message
  const Settings* settings = nullptr;
  AbsPath root;  // where the agent is taken to have worked when nobody said
};

struct RewindPlan {
  AgentKind agent = AgentKind::kGeneric;
  ChatPlan chat;
  std::string prompt;  // that was taken back, all that is known of it
  // The message that was named, when more had to go: it is among calls and their
  // answers.
  std::optional<std::string> among_calls = {};
  // ... or behind thoughts, which a conversation cannot end with.
  std::optional<std::string> behind_thoughts = {};
  // The agent's own program makes the fork: opencode before `message`, Codex after
  // `last_turn`, of the session, or where it only inherited the turn that goes, of the
  // one that it grew out of, which has the same up to there. Codex also has files in
  // `chat`, for where its program cannot.
  struct Native {
    std::string session;
    std::string message = {}, last_turn = {};
    // Of Codex: what was said in the session before the file at `place`.
    std::vector<TranscriptPrompt> older = {};
    // opencode: the turn was said in this other directory, which was forked since. Its
    // fork would stay there (agent/opencode_copy.h). All paths of that.
    std::vector<AbsPath> from = {};
    std::optional<AbsPath> to = {};
  };
  std::optional<Native> native = {};
  std::optional<ConversationPlace> place = {};  // holds what is read of it
};
// kNotFound when there is no such turn or message.
Result<RewindPlan> PlanRewind(Store& store, Catalog& catalog,
                              const RewindRequest& request);

// kUnsupported, with what to do, where the session is of an agent whose conversation
// cannot be taken back from outside.
Status CheckRewind(Catalog& catalog, const std::string& session);

// The turn whose prompt, and all after it, a rollback to `target` takes back; nothing
// when nothing was said since. Of a checkpoint that a prompt or one of its calls made:
// that prompt, and so of one by hand while the turn was at work; of any other, and of
// one by the last call of a turn that is over, after which nothing changed: the first
// one after it.
Result<std::optional<uint64_t>> TurnToTakeBack(Store& store, Catalog& catalog,
                                               const std::string& session,
                                               const Checkpoint& target);

// A program of an agent's, as a shell would find it.
std::optional<AbsPath> FindProgram(const std::string& name, const std::string& path);

// Makes the fork where the agent's own program does. What that says, when Codex could
// not and its files are used instead.
Result<std::optional<std::string>> MakeNativeFork(const ForkMaker& maker,
                                                  RewindPlan& plan);

}  // namespace belay
