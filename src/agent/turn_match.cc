#include "agent/turn_match.h"

#include <algorithm>

#include "agent/transcript_internal.h"
#include "base/escape.h"
#include "base/mutant.h"

namespace belay {
namespace {

// As much of a prompt as the log keeps of it in any case, without the blanks around it.
std::string_view Words(std::string_view text) {
  constexpr size_t kKept = 4000;
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
  return CutText(text, kKept);
}

// Hooks tell it, too; what has none is called by its record.
bool HasOwnId(const TranscriptPrompt& prompt) { return prompt.anchor != prompt.record; }

// The most pairs of the first turns (rows) with the first prompts, row after row.
template <class Pair>
std::vector<uint32_t> MostPairs(size_t rows, size_t columns, const Pair& is_pair) {
  std::vector<uint32_t> row(columns + 1, 0);
  for (size_t i = 0; i < rows; ++i) {
    uint32_t across = 0;  // of the row before, one to the left
    for (size_t j = 0; j < columns; ++j) {
      const uint32_t above = row[j + 1];
      row[j + 1] = is_pair(i, j) ? across + 1 : std::max(above, row[j]);
      across = above;
    }
  }
  return row;
}

}  // namespace

bool IsPromptCutInLog(std::string_view prompt) {
  constexpr size_t kMostInLog = 4096, kCharacter = 3;  // one may be missing at its end
  return prompt.size() + kCharacter >= kMostInLog;
}

TurnMatch::TurnMatch(const Transcript& transcript, const ConversationPoint& point)
    : transcript_(transcript), point_(point) {
  std::unordered_map<std::string, size_t> numbers = {{"", 0}};
  auto number = [&](std::string_view words) {
    return numbers.try_emplace(std::string(words), numbers.size()).first->second;
  };
  for (const TranscriptPrompt& prompt : transcript.prompts)
    prompt_words_.push_back(number(Words(prompt.text)));
  for (size_t i = 0; i < point.turns.size(); ++i) {
    const TurnRecord& turn = point.turns[i];
    if (turn.anchor) told_.insert(*turn.anchor);
    std::vector<size_t>& words = turn_words_.emplace_back();
    words.push_back(number(Words(turn.prompt)));
    if (i >= point.read_in.size()) continue;
    for (const std::string& text : point.read_in[i]) {
      words.push_back(number(Words(text)));
      if (!IsPromptCutInLog(turn.prompt)) continue;
      // It goes on nobody knows how.
      for (size_t p = 0; p < transcript.prompts.size(); ++p)
        if (Words(transcript.prompts[p].text).starts_with(Words(text)))
          words.push_back(prompt_words_[p]);
    }
  }
}

bool TurnMatch::IsPair(size_t turn, size_t prompt) const {
  const std::optional<std::string>& id = point_.turns[turn].anchor;
  const TranscriptPrompt& p = transcript_.prompts[prompt];
  if (id && (*id == p.anchor || *id == p.record)) return true;
  const bool named = told_.contains(p.anchor) || told_.contains(p.record);
  if (named || (id && HasOwnId(p))) {
    if (!BELAY_MUTANT("words-count-beside-ids")) return false;
  }
  return prompt_words_[prompt] != 0 &&
         std::ranges::find(turn_words_[turn], prompt_words_[prompt]) !=
             turn_words_[turn].end();
}

const TranscriptPrompt* TurnMatch::ById(const std::string& id) const {
  const TranscriptPrompt* found = nullptr;
  for (const TranscriptPrompt& prompt : transcript_.prompts)
    if ((prompt.anchor == id || prompt.record == id) &&
        (found == nullptr || found->dead))
      found = &prompt;
  return found;
}

template <class Pair>
std::optional<size_t> TurnMatch::Only(size_t one, size_t ones, size_t others,
                                      const Pair& is_pair, bool& maybe) {
  // What is before it with what is before the other, and what is behind.
  const std::vector<uint32_t> before = MostPairs(one, others, is_pair);
  const std::vector<uint32_t> behind = MostPairs(
      ones - one - 1, others,
      [&](size_t i, size_t j) { return is_pair(ones - 1 - i, others - 1 - j); });
  uint32_t without = 0, most = 0;
  std::optional<size_t> found;
  bool several = false;
  for (size_t j = 0; j <= others; ++j)
    without = std::max(without, before[j] + behind[others - j]);
  for (size_t j = 0; j < others; ++j) {
    if (!is_pair(one, j)) continue;
    const uint32_t with = before[j] + 1 + behind[others - 1 - j];
    if (with < most) continue;
    several = with == most;
    most = with;
    found = j;
  }
  maybe = most >= std::max(without, uint32_t{1});
  if (most <= without || several) {
    if (!BELAY_MUTANT("the-last-of-the-same-words")) return std::nullopt;
  }
  return found;
}

Result<const TranscriptPrompt*> TurnMatch::Find(const TurnRecord& turn) const {
  if (turn.anchor)
    if (const TranscriptPrompt* found = ById(*turn.anchor)) return found;
  const std::string name = "turn " + std::to_string(turn.turn);
  // An image alone, or told by settings to keep neither: the log does not say.
  if (!turn.anchor && Words(turn.prompt).empty())
    return Error(Errc::kNotFound,
                 "nothing tells which message began " + name +
                     ": no id of it was told, and no words were recorded (the prompt "
                     "has none, or was recorded with transcripts = \"off\")")
        .WithHint(
            "name the message by the agent's own id: belay rewind SESSION --to ID");
  bool maybe = false;
  const auto at = std::ranges::find(point_.turns, turn);
  if (at != point_.turns.end()) {
    const auto found = Only(
        static_cast<size_t>(at - point_.turns.begin()), point_.turns.size(),
        transcript_.prompts.size(),
        [this](size_t one, size_t prompt) { return IsPair(one, prompt); }, maybe);
    if (found) return &transcript_.prompts[*found];
  }
  if (maybe)
    return Error(Errc::kNotFound, "which message began " + name +
                                      " is not certain: its words were said more than "
                                      "once, and not all that was said is known: " +
                                      EscapeForDisplay(Excerpt(turn.prompt)))
        .WithHint(
            "name the message by the agent's own id: belay rewind SESSION --to ID");
  return Error(Errc::kNotFound, "the conversation has no " + name + ": " +
                                    EscapeForDisplay(Excerpt(turn.prompt)))
      .WithHint(
          "the agent has not written it down: not yet, it was refused, or it is gone "
          "since");
}

std::optional<uint64_t> TurnMatch::TurnOf(const TranscriptPrompt& prompt) const {
  for (const TurnRecord& turn : point_.turns)
    if (turn.anchor && (*turn.anchor == prompt.anchor || *turn.anchor == prompt.record))
      return turn.turn;
  const auto at =
      std::ranges::find(transcript_.prompts, prompt.index, &TranscriptPrompt::index);
  if (at == transcript_.prompts.end()) return std::nullopt;
  const auto place = static_cast<size_t>(at - transcript_.prompts.begin());
  // Nobody has its words: most are that are asked about.
  bool maybe = false;
  for (size_t turn = 0; turn < point_.turns.size() && !maybe; ++turn)
    maybe = IsPair(turn, place);
  if (!maybe) return std::nullopt;
  const auto found = Only(
      place, transcript_.prompts.size(), point_.turns.size(),
      [this](size_t one, size_t turn) { return IsPair(turn, one); }, maybe);
  return found ? std::optional(point_.turns[*found].turn) : std::nullopt;
}

uint64_t TurnMatch::TurnBefore(const TranscriptPrompt& prompt) const {
  for (auto at = transcript_.prompts.rbegin(); at != transcript_.prompts.rend(); ++at)
    if (at->index < prompt.index)
      if (const auto turn = TurnOf(*at)) return *turn;
  return 0;
}

uint64_t TurnMatch::TurnBehind(const TranscriptPrompt& prompt) const {
  for (const TranscriptPrompt& one : transcript_.prompts)
    if (one.index > prompt.index)
      if (const auto turn = TurnOf(one)) return *turn;
  return 0;
}

}  // namespace belay
