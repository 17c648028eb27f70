#pragma once

// The conversation part of rollback and rewind.

#include <optional>

#include "agent/fork_chat.h"
#include "agent/rewind.h"
#include "cli/context.h"
#include "cli/open_root.h"

namespace belay {

// What a rollback to `target` takes back of a conversation: that of --session, of the
// session that is at work here when the checkpoint is part of its history, else of the
// checkpoint's own. Nothing when nothing was said since.
Result<std::optional<RewindPlan>> PlanChatOf(CommandContext& ctx, OpenedRoot& root,
                                             const Settings& settings,
                                             const Checkpoint& target);

// What is to be said when the agent's own file is not what is read.
std::optional<std::string> FromACopy(Fs& fs, const RewindPlan& plan);

// kRefused where what goes on cannot be where the agent looks: a preview promises
// nothing that is refused then.
Status CheckChatPlace(OpenedRoot& root, const RewindPlan& plan);

// The warning where a fork is cut before the first message.
inline constexpr std::string_view kNothingGoesAlong =
    "no conversation goes along: nothing was said before that checkpoint";

// What goes along with a fork of the directory at `target`, to `dir`. Nothing when the
// checkpoint belongs to no conversation, and when none of it can go along, which is one
// of the warnings.
std::optional<ForkChat> PlanChatAlong(CommandContext& ctx, OpenedRoot& root,
                                      const Checkpoint& target, const AbsPath& dir,
                                      std::vector<std::string>& warnings);

// Does it, the conversation alone, and says so.
ExitCode TakeChatBack(CommandContext& ctx, OpenedRoot& root, const Settings& settings,
                      const std::optional<Checkpoint>& target, RewindPlan& plan,
                      bool dry);

// The fork of those agents that make it themselves, right before it is needed. What has
// to be said of it is added to the warnings.
Status MakeForkFirst(CommandContext& ctx, OpenedRoot& root, RewindPlan& plan,
                     std::vector<std::string>& warnings);
// Then one of these: until then a note says that there is one.
void ForkIsUsed(OpenedRoot& root, const RewindPlan& plan);
void ForkIsNotUsed(CommandContext& ctx, OpenedRoot& root, const RewindPlan& plan);

// The session with this id, or the only one that begins so. What is another directory's
// is asked for there: not found.
Result<std::string> FindSessionHere(OpenedRoot& root, std::string_view text);

}  // namespace belay
