#include "agent/transcript.h"

#include <algorithm>
#include <cstring>

#include "agent/dialect_internal.h"
#include "agent/transcript_internal.h"
#include "base/fast_hash.h"
#include "base/mutant.h"
#include "base/sha256.h"

namespace belay {

// --- builder -------------------------------------------------------------------------

std::optional<uint64_t> TranscriptBuilder::AddPrompt(TranscriptPrompt prompt) {
  constexpr size_t kShort = 100;
  if (out.prompts.size() == kMostPrompts) {
    ++out.prompts_left_out;
    return std::nullopt;
  }
  const size_t limit = text_left_ < prompt.text.size() ? kShort : kMaxPrompt;
  prompt.text.resize(CutText(prompt.text, limit).size());
  text_left_ -= std::min(text_left_, prompt.text.size());
  prompt.index = out.prompts.size();
  out.prompts.push_back(std::move(prompt));
  return out.prompts.back().index;
}

void TranscriptBuilder::AddMessage(TranscriptMessage message, uint64_t tag) {
  if (messages_.size() == kMostMessages) {
    messages_.pop_front();
    ++out.messages_left_out;
  }
  messages_.emplace_back(std::move(message), tag);
}

void TranscriptBuilder::ForEachMessage(
    const std::function<void(TranscriptMessage&, uint64_t)>& visit) {
  for (auto& [message, tag] : messages_) visit(message, tag);
}

void TranscriptBuilder::Finish() {
  out.messages.reserve(messages_.size());
  for (auto& [message, tag] : messages_) {
    if (message.prompt && out.prompts[*message.prompt].dead) message.dead = true;
    out.messages.push_back(std::move(message));
  }
  messages_.clear();
}

// --- tree ----------------------------------------------------------------------------

void RecordTree::Add(std::string_view id, std::string_view parent) {
  const auto hash = [](std::string_view text) {
    return text.empty() ? 0 : FastHash(AsBytes(text), 1) | 1;
  };
  nodes_.push_back({.id = hash(id), .parent = hash(parent)});
}

// Always one before it in the file, so that there is no circle. One whose parent is
// not there (a line that was passed over) follows what was written before it.
std::vector<uint64_t> RecordTree::Parents() const {
  std::vector<std::pair<uint64_t, uint64_t>> by_id;
  by_id.reserve(nodes_.size());
  for (uint64_t i = 0; i < nodes_.size(); ++i) by_id.emplace_back(nodes_[i].id, i);
  std::sort(by_id.begin(), by_id.end());
  std::vector<uint64_t> parents(nodes_.size(), kNone);
  for (uint64_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i].parent == 0) continue;
    auto found =
        std::lower_bound(by_id.begin(), by_id.end(), std::pair(nodes_[i].parent, i));
    const bool known = found != by_id.begin() && (--found)->first == nodes_[i].parent;
    parents[i] = known ? found->second : i - 1;
  }
  return parents;
}

void RecordTree::Settle(TranscriptBuilder& builder) {
  if (nodes_.empty()) return;
  const std::vector<uint64_t> parents = Parents();
  if (!BELAY_MUTANT("dead-branches-live"))
    for (TranscriptPrompt& prompt : builder.out.prompts) prompt.dead = true;
  for (uint64_t i = newest(); i != kNone; i = parents[i])
    if (nodes_[i].prompt != kNone) builder.out.prompts[nodes_[i].prompt].dead = false;
  for (uint64_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].prompt == kNone && parents[i] != kNone)
      nodes_[i].prompt = nodes_[parents[i]].prompt;
  builder.ForEachMessage([this](TranscriptMessage& message, uint64_t tag) {
    if (tag < nodes_.size() && nodes_[tag].prompt != kNone)
      message.prompt = nodes_[tag].prompt;
  });
}

// --- texts ---------------------------------------------------------------------------

std::string ContentText(const std::optional<Json>& content, size_t limit) {
  if (!content) return {};
  if (content->is_string()) return *content->Text(limit);
  std::string all;
  if (!content->is_array()) return all;
  for (JsonParts parts(*content); parts.Next() && all.size() < limit;) {
    const std::optional<Json> text = parts.value().Get("text");
    if (!text || !text->is_string()) continue;
    all += (all.empty() ? "" : "\n") + *text->Text(limit);
  }
  all.resize(CutText(all, limit).size());
  return all;
}

bool HasPart(const std::optional<Json>& content, std::string_view member) {
  if (!content || !content->is_array()) return false;
  for (JsonParts parts(*content); parts.Next();)
    if (parts.value().Get(member)) return true;
  return false;
}

bool HasPartOfType(const std::optional<Json>& content, std::string_view type) {
  if (!content || !content->is_array()) return false;
  for (JsonParts parts(*content); parts.Next();) {
    const std::optional<Json> found = parts.value().Get("type");
    if (found && found->TextIs(type)) return true;
  }
  return false;
}

std::string RecordFingerprint(const Json& record) {
  return Sha256::Of(AsBytes(record.raw())).hex().substr(0, 16);
}

std::string Excerpt(std::string_view text) { return OneLine(text); }

// --- lines ---------------------------------------------------------------------------

namespace {

// Hands out the lines of a file, one at a time, and holds no more than one. Without
// `lines` the whole file is one.
class LineReader {
 public:
  LineReader(Fs& fs, const Fd& file, bool lines)
      : fs_(fs), file_(file), lines_(lines), chunk_(256 << 10) {}

  struct Line {
    std::string_view text;  // until the next call
    uint64_t offset = 0;
    bool whole = true;      // ends with a newline
    bool too_long = false;  // then `text` is empty
  };
  // False at the end of the file.
  Result<bool> Next(Line& line);
  uint64_t size() const { return read_; }

 private:
  Result<bool> Fill();  // false at the end

  Fs& fs_;
  const Fd& file_;
  const bool lines_;
  Bytes chunk_;
  std::string_view rest_;  // of the chunk
  uint64_t read_ = 0;      // bytes of the file that went through the chunk
  std::string long_;       // a line that is more than the rest of one chunk
};

Result<bool> LineReader::Fill() {
  BELAY_TRY(const size_t got, fs_.Read(file_, read_, chunk_));
  rest_ = AsText(ByteSpan(chunk_).subspan(0, got));
  read_ += got;
  return got > 0;
}

Result<bool> LineReader::Next(Line& line) {
  line = {.text = {}, .offset = read_ - rest_.size()};
  long_.clear();
  bool any = false;
  while (true) {
    if (rest_.empty()) {
      BELAY_TRY(const bool more, Fill());
      if (!more) break;
    }
    any = true;
    const void* end = lines_ ? std::memchr(rest_.data(), '\n', rest_.size()) : nullptr;
    const size_t length =
        end == nullptr
            ? rest_.size()
            : static_cast<size_t>(static_cast<const char*>(end) - rest_.data());
    const std::string_view piece = rest_.substr(0, length);
    rest_.remove_prefix(std::min(length + 1, rest_.size()));
    if (long_.size() + piece.size() > kLongestLine) line.too_long = true;
    if (line.too_long)
      long_.clear();
    else if (end == nullptr || !long_.empty())
      long_ += piece;
    else
      line.text = piece;
    if (end != nullptr) {
      if (!long_.empty()) line.text = long_;
      return true;
    }
  }
  line.whole = false;
  line.text = long_;
  return any;
}

std::unique_ptr<TranscriptFormat> FormatOf(AgentKind agent,
                                           TranscriptBuilder& builder) {
  switch (agent) {
    case AgentKind::kClaude:
      return MakeClaudeFormat(builder);
    case AgentKind::kQwen:
      return MakeQwenFormat(builder);
    case AgentKind::kCodex:
      return MakeCodexFormat(builder);
    case AgentKind::kGemini:
      return MakeGeminiFormat(builder);
    case AgentKind::kCopilot:
      return MakeCopilotFormat(builder);
    case AgentKind::kCline:
      return MakeClineFormat(builder);
    default:
      return nullptr;
  }
}

Result<Fd> OpenTranscript(Fs& fs, const AbsPath& path) {
  BELAY_TRY(const AbsPath real, fs.RealPath(path));
  if (real.is_root()) return Error(Errc::kInvalid, "a transcript is no directory");
  BELAY_TRY(Fd dir, fs.OpenDir(real.parent()));
  BELAY_TRY(
      const Name name,
      Name::Parse(std::string_view(real.bytes()).substr(real.bytes().rfind('/') + 1)));
  BELAY_TRY(Fd file, fs.Open(dir, name, OpenMode::Read()));
  BELAY_TRY(const FileStat stat, fs.Stat(file));
  if (stat.type != FileType::kRegular)
    return Error(Errc::kInvalid,
                 "a transcript is " + std::string(FileTypeName(stat.type)));
  return file;
}

}  // namespace

Result<Transcript> ReadTranscript(Fs& fs, AgentKind agent, const AbsPath& path) {
  TranscriptBuilder builder;
  const std::unique_ptr<TranscriptFormat> format = FormatOf(agent, builder);
  if (format == nullptr)
    return Error(Errc::kUnsupported, std::string(AgentName(agent)) +
                                         " keeps no transcript that can be read");
  BELAY_TRY(const Fd file, OpenTranscript(fs, path));
  LineReader reader(fs, file, agent != AgentKind::kCline);
  Transcript& out = builder.out;
  for (LineReader::Line line;;) {
    BELAY_TRY(const bool more, reader.Next(line));
    if (!more) break;
    const uint64_t number = out.lines++;
    if (line.too_long) {
      ++out.too_long;
      continue;
    }
    if (line.text.find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
    const Result<Json> json = Json::Parse(line.text);
    if (json.ok())
      format->Take({*json, line.text, line.offset, number});
    else if (!line.whole)
      out.torn = true;
    else
      ++out.broken;
  }
  out.size = reader.size();
  format->Finish();
  builder.Finish();
  return std::move(out);
}

}  // namespace belay
