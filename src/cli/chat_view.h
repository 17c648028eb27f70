#pragma once

// What rollback, rewind, undo, redo and resume say of conversations.

#include <optional>
#include <string>
#include <vector>

#include "agent/rewind.h"
#include "cli/context.h"
#include "restore/rollback.h"

namespace belay {

// "chat" of the command-line contract, the value alone: null where there is none.
void WriteChat(const std::optional<ChatRecord>& chat, bool dry_run, JsonWriter& json);
// The same of an undo: the session itself goes on again, or what another rewind left.
void WriteUndoneChat(const std::optional<ChatRecord>& chat,
                     const std::optional<StandingRewind>& stands, JsonWriter& json);
// "code", "chat" or "both".
std::string_view ScopeName(const std::optional<ChatRecord>& chat);

// "claude --resume 7c3e...", as a shell takes it; from elsewhere "cd DIR && ..." before
// it. Empty: nobody but a host goes on with it.
std::string ResumeText(const Resumption& resumption, const std::optional<AbsPath>& cwd);

// "rewind of 5 messages of session 7c3e...", "summary of turns 2 to 4 of session ..."
std::string ChatTitle(const ChatRecord& chat);
// "5 messages of session 7c3e..., from turn 2 on"
std::string TakenText(const ChatRecord& chat);
// What was done, how to go on, and the prompt that was taken back.
void SayChat(CommandContext& ctx, const ChatRecord& chat, const std::string& prompt);
// The same of an undo, or (not `undone`) a redo.
void SayChatAgain(CommandContext& ctx, const ChatRecord& chat, bool undone,
                  const std::optional<StandingRewind>& stands);

// Lines stay lines: it is there to be copied and edited.
std::string ShownText(const std::string& words);
// "turn:3" as a number. kInvalid, with a hint, for anything else.
Result<uint64_t> TurnNumber(std::string_view text);

// Programs as this process would find and start them.
AgentPrograms ProgramsOf(const Environment& env);

}  // namespace belay
