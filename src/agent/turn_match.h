#pragma once

// Which prompt of a transcript began which turn of the log.
//
// By the id that the agent's hooks and its file share. A turn that has one and a prompt
// that has another are two, whatever their words. Where one of them has none (Gemini
// and Copilot CLI tell none; what Claude Code's own fork copied has none) words count,
// and the order: turns and prompts are laid side by side so that as many as can be are
// pairs, in the order of both. A pair is one only when no other way to have as many is
// without it: a turn that is not written down yet is never an earlier one of the same
// words.
//
// The time of a question that words decide is turns times prompts; memory is one row.

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/conversation.h"
#include "agent/transcript.h"

namespace belay {

// Only its beginning was recorded: it is as long as one can be.
bool IsPromptCutInLog(std::string_view prompt);

class TurnMatch {
 public:
  // Both are to outlive it.
  TurnMatch(const Transcript& transcript, const ConversationPoint& point);

  // kNotFound when the turn has no prompt there, or nobody can tell which.
  Result<const TranscriptPrompt*> Find(const TurnRecord& turn) const;
  // The turn that the prompt began, as far as it was recorded and can be told.
  std::optional<uint64_t> TurnOf(const TranscriptPrompt& prompt) const;
  // The nearest prompts on either side that began a turn; 0: none.
  uint64_t TurnBefore(const TranscriptPrompt& prompt) const;
  uint64_t TurnBehind(const TranscriptPrompt& prompt) const;

 private:
  bool IsPair(size_t turn, size_t prompt) const;
  const TranscriptPrompt* ById(const std::string& id) const;
  // The one that is a pair with `one` however they are laid; `maybe`: with one of them
  // it may be.
  template <class Pair>
  static std::optional<size_t> Only(size_t one, size_t ones, size_t others,
                                    const Pair& is_pair, bool& maybe);

  const Transcript& transcript_;
  const ConversationPoint& point_;
  // Equal texts have equal numbers; 0 is none.
  std::vector<size_t> prompt_words_;
  std::vector<std::vector<size_t>> turn_words_;
  std::unordered_set<std::string> told_;  // ids of turns
};

}  // namespace belay
