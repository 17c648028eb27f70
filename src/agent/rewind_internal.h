#pragma once

// What a rewind and a summary share: who a session is, and how a fork becomes a plan.

#include "agent/conversation.h"
#include "core/chat.h"
#include "restore/chat_plan.h"

namespace belay {

struct AboutSession {
  std::string agent;
  AgentKind kind = AgentKind::kGeneric;
  std::string cwd;
};
// kNotFound when nothing is known of it.
Result<AboutSession> LookUp(Catalog& catalog, const std::string& session);

Error NoTurn(const std::string& session, uint64_t turn);
// Null when there is none of that number.
const TurnOf* FindTurn(const std::vector<TurnOf>& turns, uint64_t number);

// What is known of the turns of a session, for its transcript to be read by `here`, the
// root that it is asked for: all but those that a summary stands for there.
Status KnowTurns(Catalog& catalog, const std::string& session, const AbsPath& here,
                 ConversationPoint& point);
// kRefused where several turns of the session have that number, and none of them was
// said in `here`: which one is meant nobody can tell.
Status CheckOneTurn(Catalog& catalog, const std::string& session, uint64_t number,
                    std::string_view here);

// kNotFound, with whom to ask, where a summary stands for the turn in the conversation
// of `session`: it is not there to be taken back.
Status CheckSaid(Catalog& catalog, const std::string& session, const TurnRecord& turn);

// The files of a fork, as restore/ takes them.
Status TakeFiles(Fs& fs, const ConversationFork& fork, ChatPlan& chat);

}  // namespace belay
