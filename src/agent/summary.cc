#include "agent/summary.h"

#include "agent/dialect_internal.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/mutant.h"

namespace belay {
namespace {

// Of very many turns these are told: the first, and the newest.
constexpr size_t kFirstTurns = 50, kTurns = 450;
// Of each turn.
constexpr size_t kTextKept = 2000, kFilesKept = 40, kCommandsKept = 20;
constexpr size_t kCommandShown = 200;
constexpr size_t kAnswerOfATool = 16 << 10;

std::string Shortened(std::string_view text, size_t limit) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
  if (text.size() <= limit) return std::string(text);
  return std::string(CutText(text, limit)) + " ...";
}

std::string List(const std::vector<std::string>& items, uint64_t more,
                 std::string_view between) {
  std::string out;
  for (const std::string& item : items)
    out += (out.empty() ? "" : std::string(between)) + item;
  if (more > 0) out += std::string(between) + "and " + std::to_string(more) + " more";
  return out;
}

}  // namespace

SummaryDigest::Turn& SummaryDigest::Now() {
  if (turns_.empty()) turns_.emplace_back();
  return turns_.back();
}

void SummaryDigest::BeginTurn(std::optional<uint64_t> turn) {
  if (turns_.size() == kTurns) {
    turns_.erase(turns_.begin() + kFirstTurns);
    ++turns_left_out_;
  }
  turns_.push_back({.number = turn});
}

void SummaryDigest::Keep(std::string line) {
  bytes_ += line.size();
  messages_.push_back(std::move(line));
  while (bytes_ > kMostMessageBytes && !BELAY_MUTANT("summary-of-any-length")) {
    bytes_ -= messages_.front().size();
    messages_.pop_front();
    ++left_out_;
  }
}

void SummaryDigest::Words(bool by_user, std::string text) {
  Turn& turn = Now();
  if (!by_user)
    turn.answer = Shortened(text, kTextKept);
  else if (turn.prompt.empty())
    turn.prompt = Shortened(text, kTextKept);
  if (!keep_) return;
  JsonWriter json;
  json.BeginObject().Key("role").String(by_user ? "user" : "assistant");
  if (turn.number) json.Key("turn").Uint(*turn.number);
  json.Key("text").String(text).EndObject();
  Keep(json.Take() + "\n");
}

void SummaryDigest::Call(const std::string& tool, const Json& input) {
  Turn& turn = Now();
  const CallIsAbout about = WhatCallIsAbout(tool, input);
  for (const std::string& file : about.files) {
    std::string shown = ShownPath(file, cwd_);
    if (!turn.known_files.insert(shown).second) continue;
    if (turn.files.size() < kFilesKept) {
      turn.files.push_back(std::move(shown));
    } else {
      turn.known_files.erase(shown);
      ++turn.more_files;
    }
  }
  if (!about.command.empty()) {
    if (turn.commands.size() < kCommandsKept)
      turn.commands.push_back(Shortened(OneLine(about.command), kCommandShown));
    else
      ++turn.more_commands;
  }
  if (!keep_) return;
  JsonWriter json;
  json.BeginObject().Key("role").String("assistant");
  if (turn.number) json.Key("turn").Uint(*turn.number);
  json.Key("tool").String(tool);
  json.Key("input");
  if (input.raw().size() <= kAnswerOfATool)
    json.Raw(input.Compact());
  else
    json.String(CutText(input.raw(), kAnswerOfATool));
  json.EndObject();
  Keep(json.Take() + "\n");
}

void SummaryDigest::Answer(std::string text) {
  if (!keep_) return;
  const Turn& turn = Now();
  JsonWriter json;
  json.BeginObject().Key("role").String("tool");
  if (turn.number) json.Key("turn").Uint(*turn.number);
  json.Key("text").String(CutText(text, kAnswerOfATool)).EndObject();
  Keep(json.Take() + "\n");
}

std::string SummaryDigest::TextOf(const Turn& turn, size_t limit) {
  std::string out;
  const std::string name =
      turn.number ? "Turn " + std::to_string(*turn.number) : "A turn";
  if (!turn.prompt.empty())
    out += name + ", the user asked:\n" + Shortened(turn.prompt, limit) + "\n";
  else
    out += name + ":\n";
  if (!turn.files.empty())
    out +=
        "Files changed: " + Shortened(List(turn.files, turn.more_files, ", "), limit) +
        "\n";
  if (!turn.commands.empty())
    out += "Commands run: " +
           Shortened(List(turn.commands, turn.more_commands, "; "), limit) + "\n";
  if (!turn.answer.empty())
    out += "The answer at the end:\n" + Shortened(turn.answer, limit) + "\n";
  return out;
}

std::string SummaryDigest::Text(size_t limit, size_t leave_out) const {
  std::string out;
  uint64_t left_out = leave_out;
  for (size_t i = 0; i < turns_.size(); ++i) {
    if (i == kFirstTurns) left_out += turns_left_out_;
    if (i < leave_out) continue;
    if (left_out > 0) {
      out += "(" + std::to_string(left_out) + " turns are left out here.)\n\n";
      left_out = 0;
    }
    out += TextOf(turns_[i], limit) + "\n";
  }
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string SummaryDigest::Extract() const {
  std::string out;
  for (const size_t limit : {kTextKept, size_t{1000}, size_t{400}, size_t{150}}) {
    out = Text(limit, 0);
    if (out.size() <= kLongestExtract) return out;
  }
  // The newest matter most.
  for (size_t leave = 1; leave < turns_.size(); ++leave) {
    out = Text(150, leave);
    if (out.size() <= kLongestExtract) return out;
  }
  return std::string(CutText(out, kLongestExtract));
}

Result<std::string> SummaryByCommand(Fs& fs, UserHookPlace place, const Argv& command,
                                     const SummaryAbout& about,
                                     const SummaryDigest& digest) {
  JsonWriter json;
  json.BeginObject();
  json.Key("hook").String("summarize");
  json.Key("session").PathValue(about.session);
  json.Key("agent").PathValue(about.agent);
  json.Key("root").PathValue(about.root);
  json.Key("first_turn").Uint(about.first_turn);
  json.Key("last_turn").Uint(about.last_turn);
  json.Key("messages").Uint(digest.messages().size());
  json.Key("messages_left_out").Uint(digest.messages_left_out());
  json.EndObject();
  std::string input = json.Take() + "\n";
  for (const std::string& line : digest.messages()) input += line;
  place.output_kept = kLongestSummary;
  const std::vector<UserHookRun> runs =
      RunUserHooks(fs, place, "summarize", {command}, input, WhenOneFails::kStop);
  const UserHookRun& run = runs.at(0);
  auto refuse = [&](const std::string& what) {
    return Error(Errc::kRefused,
                 "hooks.summarize: " + EscapeText(run.program) + " " + EscapeText(what))
        .WithHint("nothing was changed");
  };
  if (!run.ok() && !BELAY_MUTANT("any-summary-will-do")) return refuse(run.trouble);
  if (!IsValidUtf8(run.output) || run.output.find('\0') != std::string::npos)
    return refuse("answered what is no text");
  std::string summary = Shortened(run.output, kLongestSummary);
  if (summary.empty()) return refuse("answered nothing");
  return summary;
}

std::string TurnsText(std::optional<uint64_t> first, std::optional<uint64_t> last) {
  if (!first || !last) return "a part";
  if (*first == *last) return "turn " + std::to_string(*first);
  return "turns " + std::to_string(*first) + " to " + std::to_string(*last);
}

std::string SummaryMessage(std::string_view turns, std::string_view summary) {
  return "[This stands for " + std::string(turns) +
         " of our conversation, which a summary replaced (belay summarize). The files "
         "are as they were left.]\n\n" +
         std::string(summary);
}

std::string_view SummaryAnswer() { return "I go on from this summary."; }

}  // namespace belay
