// Transcripts of any bytes: what is told of them holds, and a copy that ends where a
// turn begins, cut by PlanCut or by hand, has no more than the prompts before it.

#include <algorithm>

#include "agent/transcript.h"
#include "agent/transcript_cut.h"
#include "agent/transcript_lines.h"
#include "base/mem_fs.h"

namespace {

using namespace belay;

Transcript Read(AgentKind agent, std::string_view text) {
  MemFs fs;
  auto root = fs.OpenDir(AbsPath::Literal("/"));
  BELAY_CHECK(root.ok());
  auto file = fs.Open(*root, Name::Literal("t"), OpenMode::CreateNew());
  BELAY_CHECK(file.ok() && WriteFull(fs, *file, 0, AsBytes(text)).ok());
  auto read = ReadTranscript(fs, agent, AbsPath::Literal("/t"));
  BELAY_CHECK(read.ok());
  return std::move(*read);
}

std::string Cut(AgentKind agent, std::string_view text, const Transcript& transcript,
                const TranscriptPrompt& prompt) {
  MemFs fs;
  auto root = fs.OpenDir(AbsPath::Literal("/"));
  auto file = fs.Open(*root, Name::Literal("t"), OpenMode::CreateNew());
  BELAY_CHECK(file.ok() && WriteFull(fs, *file, 0, AsBytes(text)).ok());
  auto open = OpenTranscript(fs, AbsPath::Literal("/t"));
  BELAY_CHECK(open.ok());
  auto cut = PlanCut(fs, agent, *open, transcript, Before(prompt));
  BELAY_CHECK(cut.ok());
  std::string out;
  BELAY_CHECK(CopyCut(fs, *open, *cut,
                      {{.from = transcript.session, .to = "new"},
                       {.kind = TranscriptSwap::Kind::kPath, .from = "/a", .to = "/b"}},
                      [&out](ByteSpan bytes) {
                        out += AsText(bytes);
                        return Ok();
                      })
                  .ok());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  static constexpr AgentKind kAgents[] = {AgentKind::kClaude,  AgentKind::kCodex,
                                          AgentKind::kGemini,  AgentKind::kQwen,
                                          AgentKind::kCopilot, AgentKind::kCline};
  const AgentKind agent = kAgents[data[0] % std::size(kAgents)];
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const Transcript transcript = Read(agent, text);
  BELAY_CHECK(transcript.size == text.size());
  BELAY_CHECK(transcript.broken + transcript.too_long <= transcript.lines);
  uint64_t before = 0;
  size_t looked = 0;
  for (const TranscriptPrompt& prompt : transcript.prompts) {
    BELAY_CHECK(prompt.index ==
                static_cast<uint64_t>(&prompt - transcript.prompts.data()));
    BELAY_CHECK(prompt.offset < text.size() && prompt.turn_offset <= prompt.offset);
    BELAY_CHECK(prompt.offset >= before && !prompt.anchor.empty());
    BELAY_CHECK(prompt.text.size() <= kMaxPrompt);
    before = prompt.offset;
    if (agent == AgentKind::kCline) continue;
    BELAY_CHECK(prompt.turn_offset == 0 || text[prompt.turn_offset - 1] == '\n');
    if (++looked > 3) continue;
    const Transcript cut = Read(agent, text.substr(0, prompt.turn_offset));
    BELAY_CHECK(!cut.torn && cut.prompts.size() <= prompt.index);
    const Transcript copy = Read(agent, Cut(agent, text, transcript, prompt));
    BELAY_CHECK(!copy.torn);
    // A list of Gemini's may put what is new before what was said earlier: there the
    // order of the conversation counts, not that of the file.
    if (agent == AgentKind::kGemini)
      BELAY_CHECK(std::ranges::find(copy.prompts, prompt.anchor,
                                    &TranscriptPrompt::anchor) == copy.prompts.end());
    else
      BELAY_CHECK(copy.prompts.size() <= prompt.index);
  }
  for (const TranscriptMessage& message : transcript.messages) {
    BELAY_CHECK(message.offset < text.size() && message.text.size() <= kMaxWhat);
    BELAY_CHECK(!message.prompt || *message.prompt < transcript.prompts.size());
    if (message.prompt && transcript.prompts[*message.prompt].dead)
      BELAY_CHECK(message.dead);
  }
  return 0;
}
