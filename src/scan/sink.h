#pragma once

// Where a scan puts content and trees: a batch of the store, or nowhere when only the
// ids are wanted.
//
// Threads: every method from any thread at once.

#include <functional>

#include "base/bytes.h"
#include "base/result.h"
#include "store/batch_writer.h"
#include "store/object.h"

namespace belay {

class ScanSink {
 public:
  virtual ~ScanSink() = default;
  virtual Result<ObjectId> PutContent(ByteSpan content) = 0;
  virtual Result<ObjectId> PutStream(const BatchWriter::Source& source) = 0;
  virtual Result<ObjectId> PutTree(const Tree& tree) = 0;
  // The same with what it was before, zero or empty when that is not known. A hint: who
  // stores may store only what differs.
  virtual Result<ObjectId> PutChanged(ByteSpan content, const ObjectId& before) {
    (void)before;
    return PutContent(content);
  }
  virtual Result<ObjectId> PutChangedTree(const Tree& tree, const Tree& before) {
    (void)before;
    return PutTree(tree);
  }
  // The same with encodings; `before` is asked when it is of use, and gives nothing
  // when that is not known. Of a large directory there is then no Tree in memory.
  virtual Result<ObjectId> PutEncodedTree(Bytes encoding,
                                          const std::function<Bytes()>& before) {
    (void)before;
    BELAY_TRY(Tree tree, DecodeTree(encoding));
    return PutTree(tree);
  }
  // Content with this id need not be put again.
  virtual Result<bool> HasContent(const ObjectId& id) = 0;
};

class BatchSink final : public ScanSink {
 public:
  explicit BatchSink(BatchWriter& writer) : writer_(writer) {}
  Result<ObjectId> PutContent(ByteSpan content) override {
    return writer_.PutContent(content);
  }
  Result<ObjectId> PutStream(const BatchWriter::Source& source) override {
    return writer_.PutStream(source);
  }
  Result<ObjectId> PutTree(const Tree& tree) override { return writer_.PutTree(tree); }
  Result<ObjectId> PutChanged(ByteSpan content, const ObjectId& before) override {
    return writer_.PutContent(content, before);
  }
  Result<ObjectId> PutChangedTree(const Tree& tree, const Tree& before) override {
    return writer_.PutTree(tree, before);
  }
  Result<ObjectId> PutEncodedTree(Bytes encoding,
                                  const std::function<Bytes()>& before) override {
    return writer_.PutEncodedTree(std::move(encoding), before);
  }
  Result<bool> HasContent(const ObjectId& id) override {
    return writer_.HasContent(id);
  }

 private:
  BatchWriter& writer_;
};

// Computes ids and keeps nothing.
class HashSink final : public ScanSink {
 public:
  Result<ObjectId> PutContent(ByteSpan content) override;
  Result<ObjectId> PutStream(const BatchWriter::Source& source) override;
  Result<ObjectId> PutTree(const Tree& tree) override;
  Result<ObjectId> PutEncodedTree(Bytes encoding,
                                  const std::function<Bytes()>&) override {
    return PutContent(encoding);
  }
  Result<bool> HasContent(const ObjectId&) override { return true; }
};

}  // namespace belay
