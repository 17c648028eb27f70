#pragma once

// Calls and their answers. A cut never comes between them: the end moves to before the
// message that made the call, and of calls that were made together to before all of
// them. A call that was never answered at all (the agent was killed in it) is not what
// the cut makes of it: when something was said since, the agent has gone on from there,
// and it stays with all that came since. When nothing was, nobody can go on from there,
// and the end moves.
//
// Memory: of calls that are open, and of what was made and said behind them.
//
// And thoughts: nobody can go on from those of a message alone, so that a copy does not
// end with them. Memory: of each change between thoughts and what is none.

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "agent/transcript_internal.h"
#include "base/mutant.h"

namespace belay {

class OpenCalls {
 public:
  // What is at `cut` or later is told only so that answers find their calls.
  explicit OpenCalls(uint64_t cut) : cut_(cut) {}

  // By a message that begins at `offset` and belongs to that prompt; `id` as the
  // agent's answer has it, if any.
  void Called(uint64_t offset, uint64_t id_hash, uint64_t prompt = 0) {
    const bool kept = offset < cut_;
    open_[id_hash].push_back(kept ? calls_.size() : kBehind);
    if (kept) calls_.push_back({.offset = offset, .prompt = prompt});
  }
  // The newest call of that id: ids that are used again name calls of long ago, too.
  void Answered(uint64_t offset, uint64_t id_hash, uint64_t prompt = 0) {
    const auto found = open_.find(id_hash);
    if (found == open_.end()) return;
    const size_t call = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) open_.erase(found);
    if (call == kBehind) return;
    calls_[call].answer = offset;
    calls_[call].answer_prompt = prompt;
    // What was answered before anything else was asked moves no end.
    while (!calls_.empty() && calls_.back().answer < cut_ &&
           calls_.back().answer_prompt == calls_.back().prompt)
      calls_.pop_back();
    if (calls_.empty()) said_.clear();
  }
  // By anybody, in a message that begins there: words, another call, not an answer.
  void Said(uint64_t offset, uint64_t prompt = 0) {
    if (offset >= cut_ || calls_.empty()) return;
    // The first that was said behind a call is enough of each turn.
    if (!said_.empty() && said_.back().prompt == prompt &&
        said_.back().offset > calls_.back().offset)
      return;
    said_.push_back({.offset = offset, .prompt = prompt});
  }
  // Calls without an id are answered in their turn.
  void TurnBegins() { open_.erase(HashOf("")); }

  // `kept` says of a prompt whether what belongs to it is in the copy.
  template <class Kept>
  uint64_t EndOr(uint64_t end, const Kept& kept) const {
    if (BELAY_MUTANT("cut-between-call-and-answer")) return end;
    size_t said = said_.size();  // what was said last, of what stays
    for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
      if (call->offset >= end || !kept(call->prompt)) continue;
      // An answer in a branch that was left is none.
      const bool never =
          call->answer == kNever || (call->answer < cut_ && !kept(call->answer_prompt));
      if (!never && call->answer < end) continue;
      while (said > 0 &&
             (said_[said - 1].offset >= end || !kept(said_[said - 1].prompt)))
        --said;
      const bool gone_on = said > 0 && said_[said - 1].offset > call->offset &&
                           !BELAY_MUTANT("cut-drops-what-came-behind-a-dead-call");
      if (!never || !gone_on) end = call->offset;
    }
    return end;
  }

 private:
  static constexpr size_t kBehind = SIZE_MAX;
  static constexpr uint64_t kNever = UINT64_MAX;
  struct Call {
    uint64_t offset = 0, prompt = 0, answer = kNever, answer_prompt = 0;
  };
  struct What {
    uint64_t offset = 0, prompt = 0;
  };

  const uint64_t cut_;
  std::vector<Call> calls_;  // in their order, and of each id which are open
  std::unordered_map<uint64_t, std::vector<size_t>> open_;
  std::vector<What> said_;
};

class LastThoughts {
 public:
  explicit LastThoughts(uint64_t cut) : cut_(cut) {}

  // What a record of the conversation has: nothing but thoughts, or anything else.
  void Thought(uint64_t offset, uint64_t prompt = 0) { Take(offset, prompt, true); }
  void Said(uint64_t offset, uint64_t prompt = 0) { Take(offset, prompt, false); }

  template <class Kept>
  uint64_t EndOr(uint64_t end, const Kept& kept) const {
    if (BELAY_MUTANT("a-copy-ends-with-thoughts")) return end;
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      if (run->offset >= end || !kept(run->prompt)) continue;
      if (!run->thoughts) break;
      end = run->offset;
    }
    return end;
  }

 private:
  struct Run {
    uint64_t offset = 0, prompt = 0;  // of its first record
    bool thoughts = false;
  };
  void Take(uint64_t offset, uint64_t prompt, bool thoughts) {
    if (offset >= cut_) return;
    if (!runs_.empty() && runs_.back().prompt == prompt &&
        runs_.back().thoughts == thoughts)
      return;
    runs_.push_back({.offset = offset, .prompt = prompt, .thoughts = thoughts});
  }

  const uint64_t cut_;
  std::vector<Run> runs_;
};

// Where a copy ends that was to end at `end`, so that neither holds.
struct CopyEnd {
  uint64_t end = 0;
  bool of_calls = false;  // moved by calls, if at all; else by thoughts alone
};
template <class Kept>
CopyEnd EndOfCopy(uint64_t end, const OpenCalls& calls, const LastThoughts* thoughts,
                  const Kept& kept) {
  CopyEnd out{.end = end};
  for (bool moved = true; moved;) {
    const uint64_t before = out.end;
    out.end = calls.EndOr(before, kept);
    out.of_calls = out.of_calls || out.end < before;
    if (thoughts != nullptr) out.end = thoughts->EndOr(out.end, kept);
    moved = out.end < before;
  }
  return out;
}

}  // namespace belay
