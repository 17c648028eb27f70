#include "scan/sink.h"

#include "base/sha256.h"

namespace belay {

Result<ObjectId> HashSink::PutContent(ByteSpan content) { return Sha256::Of(content); }

Result<ObjectId> HashSink::PutStream(const BatchWriter::Source& source) {
  Sha256 hash;
  Bytes buffer(size_t{1} << 18);
  for (;;) {
    BELAY_TRY(size_t got, source(buffer));
    if (got == 0) return hash.Finish();
    hash.Update(ByteSpan(buffer).first(got));
  }
}

Result<ObjectId> HashSink::PutTree(const Tree& tree) {
  BELAY_TRY(Bytes encoding, EncodeTree(tree));
  return Sha256::Of(encoding);
}

}  // namespace belay
