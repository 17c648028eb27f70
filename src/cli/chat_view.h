#pragma once

// What rollback, rewind, undo, redo and resume say of conversations.

#include <optional>
#include <string>
#include <vector>

#include "agent/resume.h"
#include "agent/rewind.h"
#include "cli/context.h"
#include "restore/rollback.h"

namespace belay {

// "chat" of the command-line contract, the value alone: null where there is none.
void WriteChat(const std::optional<ChatRecord>& chat, bool dry_run, JsonWriter& json);
// The same of an undo or redo: what goes on now may be what another rewind left.
void WriteChatAgain(const ChatRecord& chat, const ChatStanding& stands,
                    JsonWriter& json);
// "code", "chat" or "both".
std::string_view ScopeName(const std::optional<ChatRecord>& chat);

// "claude --resume 7c3e...", as a shell takes it; from elsewhere "cd DIR && ..." before
// it. Empty: nobody but a host goes on with it.
std::string ResumeText(const Resumption& resumption, const std::optional<AbsPath>& cwd);

// "rewind of 5 messages of session 7c3e...", "summary of turns 2 to 4 of session ..."
// `brief`: "rewind to turn 2 (5 messages) of session 7c3e1a20"
std::string ChatTitle(const ChatRecord& chat, bool brief = false);
// "5 messages of session 7c3e..., from turn 2 on"
std::string TakenText(const ChatRecord& chat);
// Nothing would be, or is, left of it: the agent begins anew.
bool NothingIsLeft(const RewindPlan& plan);
// "belay resume 7c3e...", also for an id that begins with a dash.
std::string BelayResume(const std::string& session);
// What was done, how to go on, and the prompt that was taken back.
void SayChat(CommandContext& ctx, const ChatRecord& chat, const std::string& prompt);
// The same of an undo or redo.
void SayChatAgain(CommandContext& ctx, const ChatRecord& chat,
                  const ChatStanding& stands);

// Lines stay lines: it is there to be copied and edited.
std::string ShownText(const std::string& words);

// Programs as this process would find and start them.
AgentPrograms ProgramsOf(const Environment& env);

}  // namespace belay
