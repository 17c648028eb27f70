#pragma once

// What is kept of conversations besides checkpoints, and where a conversation can be
// read.
//
// `transcripts = "keep"`: the files in which agents keep conversations are copied
// (core/transcripts.h) when a turn, a subagent or a session ends, when a session begins
// or is about to be shortened. "anchors": ids and prompts are all that is kept of them,
// "off": not even those.

#include <optional>
#include <string>
#include <vector>

#include "agent/event.h"
#include "core/settings.h"
#include "core/transcripts.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

// Whether there is anything to do after the event.
bool HasAftermath(const HookEvent& event, const Settings& settings);
// What nobody has to wait for: a subagent that nothing was recorded of yet, and copies.
// A transcript that is not there is no failure.
struct Aftermath {
  uint64_t copies = 0;         // that are new
  bool session_ended = false;  // for the first time since it was last at work
  std::vector<Error> failed;   // each said in words
};
Aftermath AfterEvent(Store& store, const Root& root, const Settings& settings,
                     const HookEvent& event);

// A session's conversation, wherever it still is.
struct ConversationPlace {
  AgentKind agent = AgentKind::kGeneric;
  AbsPath path;                                // where the agent keeps it, or kept it
  std::optional<WrittenTranscript> copy = {};  // it is gone from there
  const AbsPath& file() const { return copy ? copy->path() : path; }
};
// The newest transcript of the session itself. kNotFound, with a hint, when there is
// neither a file nor a copy. The store must outlive it.
Result<ConversationPlace> FindConversation(Store& store, Catalog& catalog,
                                           const std::string& session);
// The same of the file that the session was kept in there.
Result<ConversationPlace> FindConversationAt(Store& store, Catalog& catalog,
                                             const std::string& session,
                                             const std::string& path);
// Of a place whose file is not what is read: "is gone", "is empty", "is a directory",
// "cannot be read (Permission denied)".
std::string WhatIsAt(Fs& fs, const AbsPath& path);
// Whether what was said in the session is to be had without those that it grew out of:
// there is a file or a copy, which does not refer to another session's for what came
// before.
Result<bool> HasConversation(Store& store, Catalog& catalog,
                             const std::string& session);

}  // namespace belay
