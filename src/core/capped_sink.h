#pragma once

// CappedSink: a batch that stops in time. A first checkpoint may be larger than all
// that is allowed.
//
// Guarantees
//   * Nothing is put once the limits are reached; the batch is not to be published then
//     (Full() says so).
//   * What comes after that is only measured, so that whoever could make room knows
//     whether it would help: needed() is what all of it takes at least.
//
// Threads: every method from any thread at once.

#include <atomic>
#include <mutex>
#include <optional>

#include "core/space.h"
#include "scan/sink.h"
#include "store/codec.h"

namespace belay {

class CappedSink final : public ScanSink {
 public:
  // Without a `space` there is no limit.
  CappedSink(Store& store, const Settings& settings, BatchWriter& writer,
             std::optional<Space> space)
      : store_(store),
        settings_(settings),
        writer_(writer),
        inner_(writer),
        space_(std::move(space)) {}

  Result<ObjectId> PutContent(ByteSpan content) override;
  Result<ObjectId> PutStream(const BatchWriter::Source& source) override;
  Result<ObjectId> PutTree(const Tree& tree) override;
  Result<ObjectId> PutChanged(ByteSpan content, const ObjectId& before) override;
  Result<ObjectId> PutChangedTree(const Tree& tree, const Tree& before) override;
  Result<ObjectId> PutEncodedTree(Bytes encoding,
                                  const std::function<Bytes()>& before) override;
  Result<bool> HasContent(const ObjectId& id) override { return inner_.HasContent(id); }

  // Whether `more` besides what was put fits. kNoSpace when it does not.
  Status Check(uint64_t more = 0);
  // kNoSpace when something was not put.
  Status Full();
  uint64_t needed() const { return writer_.bytes_so_far() + measured_; }

 private:
  Result<ObjectId> Checked(Result<ObjectId> put);
  uint64_t Measure(ByteSpan content);
  // What is left of a stream of which `read` bytes were read and `put` put.
  Status MeasureRest(const BatchWriter::Source& source, uint64_t read, uint64_t put);

  Store& store_;
  const Settings& settings_;
  BatchWriter& writer_;
  BatchSink inner_;
  HashSink hash_;
  CodecPool codecs_;
  std::atomic<bool> full_{false};
  std::atomic<uint64_t> measured_{0};
  std::mutex mutex_;
  std::optional<Space> space_;  // guarded by mutex_, but for whether there is one
};

}  // namespace belay
