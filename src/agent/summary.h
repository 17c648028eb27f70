#pragma once

// A summary of a part of a conversation: made of what was said there, or by a command
// of the user's (`hooks.summarize`) that gets the messages and answers it.
//
// Guarantees
//   * Bounded: of very many turns the first and the newest are told; the messages a
//     command gets are the newest that fit kMostMessageBytes, and it is told how many
//     were left out; a summary of ours is at most kLongestExtract.
//   * The command: as agent/user_hooks.h says. One that fails, is late or says nothing
//     makes no summary, whatever it printed.

#include <deque>
#include <optional>
#include <set>
#include <string>

#include "agent/said.h"
#include "agent/user_hooks.h"

namespace belay {

inline constexpr size_t kLongestExtract = 32 << 10, kLongestSummary = 256 << 10;
inline constexpr size_t kMostMessageBytes = 16 << 20;
inline constexpr int64_t kSummaryTimeoutMs = 300'000;

// What was said in a part, as it is read.
class SummaryDigest final : public SaidListener {
 public:
  // `cwd`: paths are told from there on. Messages are kept only for a command.
  SummaryDigest(std::string cwd, bool keep_messages)
      : cwd_(std::move(cwd)), keep_(keep_messages) {}

  void BeginTurn(std::optional<uint64_t> turn);
  void Words(bool by_user, std::string text) override;
  void Call(const std::string& tool, const Json& input) override;
  void Answer(std::string text) override;

  // What the turns asked, changed, ran and answered.
  std::string Extract() const;
  // A line of JSON for each message.
  const std::deque<std::string>& messages() const { return messages_; }
  uint64_t messages_left_out() const { return left_out_; }

 private:
  struct Turn {
    std::optional<uint64_t> number = {};
    std::string prompt = {}, answer = {};
    std::vector<std::string> files = {}, commands = {};
    std::set<std::string> known_files = {};
    uint64_t more_files = 0, more_commands = 0;
  };
  Turn& Now();
  std::string Text(size_t limit, size_t leave_out) const;
  static std::string TextOf(const Turn& turn, size_t limit);
  void Keep(std::string line);

  const std::string cwd_;
  const bool keep_;
  std::deque<Turn> turns_;
  uint64_t turns_left_out_ = 0;  // behind the first kFirstTurns
  std::deque<std::string> messages_;
  size_t bytes_ = 0;
  uint64_t left_out_ = 0;
};

// What is told to the command besides the messages.
struct SummaryAbout {
  std::string session, agent, root;
  std::optional<uint64_t> first_turn, last_turn;
};
// The summary that the command answers. kRefused: it failed, was late, or said nothing
// that can be used; the error says which.
Result<std::string> SummaryByCommand(Fs& fs, UserHookPlace place, const Argv& command,
                                     const SummaryAbout& about,
                                     const SummaryDigest& digest);

// "turn 3", "turns 2 to 4"
std::string TurnsText(std::optional<uint64_t> first, std::optional<uint64_t> last);
// As it stands in the conversation: who it is by, then the summary; and what the agent
// is taken to have answered.
std::string SummaryMessage(std::string_view turns, std::string_view summary);
std::string_view SummaryAnswer();

}  // namespace belay
