// Lists of changes and journals: any bytes are refused, or say nothing that could lead
// out of a root; what is taken encodes to the same again.

#include "restore/journal.h"

namespace belay {
namespace {

void CheckPaths(const std::vector<PathChange>& changes) {
  const std::string* last = nullptr;
  for (const PathChange& change : changes) {
    BELAY_CHECK(change.before || change.after);
    if (change.path.empty()) {  // the root itself, once, first
      BELAY_CHECK(last == nullptr);
      for (const auto* side : {&change.before, &change.after})
        BELAY_CHECK(!*side || (*side)->kind == EntryKind::kDirectory);
      last = &change.path;
      continue;
    }
    auto path = RelPath::Parse(change.path);
    BELAY_CHECK(path.ok());
    for (std::string_view name : path->Components()) BELAY_CHECK(!IsGitAlias(name));
    BELAY_CHECK(last == nullptr || *last < change.path);
    last = &change.path;
  }
}

}  // namespace
}  // namespace belay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belay;
  ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  if (auto node = DecodeNode(bytes); node.ok()) {
    if (auto changes = DecodeChanges(*node); changes.ok()) {
      CheckPaths(*changes);
      auto again = DecodeChanges(EncodeChanges(*changes));
      BELAY_CHECK(again.ok() && *again == *changes);
    }
  }
  // The hash at the end would keep everything out: make it right.
  Bytes journal = ToBytes("BELAYJN1");
  journal.insert(journal.end(), bytes.begin(), bytes.end());
  const Hash256 hash = Sha256::Of(journal);
  journal.insert(journal.end(), hash.bytes.begin(), hash.bytes.end());
  if (auto decoded = DecodeJournal(journal); decoded.ok()) {
    CheckPaths(decoded->changes);
    BELAY_CHECK(IsStageName(decoded->stage));
    for (const Plan::Locked& locked : decoded->locked)
      BELAY_CHECK(locked.mode <= 07777 &&
                  (locked.path.empty() || RelPath::Parse(locked.path).ok()));
    BELAY_CHECK(DecodeJournal(EncodeJournal(*decoded)).ok());
  }
  return 0;
}
