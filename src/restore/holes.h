#pragma once

// Holes: a long run of zeros in a file that is made anew is not written, and takes no
// room on the disk. What a tree remembers of a file is its bytes, not which of them
// were holes: a sparse file comes back sparse, and so does one that was full of zeros.
//
// Threads: one.

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/fs.h"

namespace belay {

inline constexpr uint64_t kHole = uint64_t{64} << 10;

// Content in pieces, as it comes, becomes data and runs of zeros. Runs are told of once
// they are over: a short one as zeros, a long one as a hole. Data of one piece that has
// no hole in it stays in one.
class ZeroRuns {
 public:
  virtual ~ZeroRuns() = default;
  Status Add(ByteSpan piece) {
    size_t from = 0;  // not given on yet
    for (size_t at = 0; at < piece.size();) {
      const ByteSpan part = piece.subspan(
          at, std::min(piece.size() - at,
                       static_cast<size_t>(kPart - (offset_ + at) % kPart)));
      if (IsZero(part)) {
        run_ += part.size();
      } else if (run_ > 0) {
        const size_t here = static_cast<size_t>(std::min<uint64_t>(run_, at));
        if (run_ >= kHole) {
          BELAY_OK(GiveOn(piece, from, at - here));
          BELAY_OK(Hole(run_));
          from = at;
        } else if (here < run_) {
          BELAY_OK(Zeros(offset_ - (run_ - here), run_ - here));
        }
        run_ = 0;
      }
      at += part.size();
    }
    const size_t here = static_cast<size_t>(std::min<uint64_t>(run_, piece.size()));
    BELAY_OK(GiveOn(piece, from, piece.size() - here));
    offset_ += piece.size();
    return Ok();
  }
  Status Finish() {
    const uint64_t run = run_;
    run_ = 0;
    if (run >= kHole) return Hole(run);
    return run == 0 ? Ok() : Zeros(offset_ - run, run);
  }

 protected:
  virtual Status Data(uint64_t offset, ByteSpan bytes) = 0;
  virtual Status Zeros(uint64_t offset, uint64_t count) = 0;
  virtual Status Hole(uint64_t count) = 0;
  uint64_t offset() const { return offset_; }

 private:
  static constexpr uint64_t kPart = 4096;
  static bool IsZero(ByteSpan bytes) {
    return std::all_of(bytes.begin(), bytes.end(),
                       [](std::byte b) { return b == std::byte{0}; });
  }
  Status GiveOn(ByteSpan piece, size_t from, size_t to) {
    return from >= to ? Ok() : Data(offset_ + from, piece.subspan(from, to - from));
  }

  uint64_t offset_ = 0;  // of the next piece
  uint64_t run_ = 0;     // zeros right before it
};

// How many bytes a hole saves at least: its ends share blocks of the disk with data.
class HoleCounter : public ZeroRuns {
 public:
  uint64_t total() const { return total_; }

 private:
  Status Data(uint64_t, ByteSpan) override { return Ok(); }
  Status Zeros(uint64_t, uint64_t) override { return Ok(); }
  Status Hole(uint64_t count) override {
    total_ += count - 2 * 4096;
    return Ok();
  }
  uint64_t total_ = 0;
};

// Writes a file that is empty.
class SparseWriter : public ZeroRuns {
 public:
  SparseWriter(Fs& fs, const Fd& file) : fs_(fs), file_(file) {}
  // All was added.
  Status Close() {
    BELAY_OK(Finish());
    return end_ == offset() ? Ok() : fs_.Truncate(file_, offset());
  }

 private:
  Status Data(uint64_t at, ByteSpan bytes) override {
    end_ = at + bytes.size();
    return WriteFull(fs_, file_, at, bytes);
  }
  Status Zeros(uint64_t at, uint64_t count) override {
    static constexpr std::array<std::byte, kHole> kZeros{};
    return Data(at, ByteSpan(kZeros).first(static_cast<size_t>(count)));
  }
  Status Hole(uint64_t) override { return Ok(); }

  Fs& fs_;
  const Fd& file_;
  uint64_t end_ = 0;  // of what was written
};

}  // namespace belay
