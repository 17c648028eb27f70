#pragma once

// TranscriptLines: the lines of a transcript, one at a time, no more than one of them
// in memory.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fs.h"
#include "core/transcripts.h"

namespace belay {

class TranscriptLines {
 public:
  // Reads `size` bytes at most: what is written behind them meanwhile is not seen.
  // Without `lines` the whole file is one.
  TranscriptLines(Fs& fs, const Fd& file, bool lines = true, uint64_t size = UINT64_MAX)
      : fs_(fs), file_(file), lines_(lines), size_(size), chunk_(256 << 10) {}

  struct Line {
    std::string_view text;  // without the newline; until the next call
    uint64_t offset = 0;
    uint64_t end = 0;       // behind its newline
    bool whole = true;      // ends with a newline
    bool too_long = false;  // more than kLongestLine; then `text` is empty
  };
  // False at the end of the file.
  Result<bool> Next(Line& line);
  uint64_t size() const { return read_; }

 private:
  Result<bool> Fill();  // false at the end

  Fs& fs_;
  const Fd& file_;
  const bool lines_;
  const uint64_t size_;
  Bytes chunk_;
  std::string_view rest_;  // of the chunk
  uint64_t read_ = 0;      // bytes of the file that went through the chunk
  std::string long_;       // a line that is more than the rest of one chunk
};

}  // namespace belay
