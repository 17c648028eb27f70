#include "agent/transcript_lines.h"

#include <algorithm>
#include <cstring>

#include "agent/transcript.h"

namespace belay {

Result<bool> TranscriptLines::Fill() {
  const size_t want = std::min<uint64_t>(chunk_.size(), size_ - read_);
  if (want == 0) return false;
  BELAY_TRY(const size_t got, fs_.Read(file_, read_, std::span(chunk_).first(want)));
  rest_ = AsText(ByteSpan(chunk_).subspan(0, got));
  read_ += got;
  return got > 0;
}

Result<bool> TranscriptLines::Next(Line& line) {
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
      line.end = read_ - rest_.size();
      return true;
    }
  }
  line.whole = false;
  line.text = long_;
  line.end = read_;
  return any;
}

}  // namespace belay
