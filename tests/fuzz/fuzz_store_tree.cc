// Trees, states, nodes, chunk lists, log records: any bytes are refused or round-trip.

#include "store/log_record.h"
#include "store/object.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace belay;
  ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  auto same = [&](const Bytes& again) {
    BELAY_CHECK(again.size() == bytes.size() &&
                std::equal(again.begin(), again.end(), bytes.begin()));
  };
  if (auto tree = DecodeTree(bytes); tree.ok()) {
    auto again = EncodeTree(*tree);
    BELAY_CHECK(again.ok());
    same(*again);
    for (const TreeEntry& e : tree->entries)
      BELAY_CHECK(IsValidName(e.name) && !IsGitAlias(e.name));
  }
  if (auto state = DecodeState(bytes); state.ok()) same(EncodeState(*state));
  if (auto node = DecodeNode(bytes); node.ok()) same(EncodeNode(*node));
  if (auto chunks = DecodeChunks(bytes); chunks.ok()) same(EncodeChunks(*chunks));
  if (auto record = DecodeLogRecord(bytes); record.ok()) {
    same(EncodeLogRecord(*record));
    (void)ToCheckpoint(*record);
    (void)ToRoot(*record);
    (void)DroppedBy(*record);
    (void)PurgedBy(*record);
    (void)AnnotationTarget(*record);
  }
  for (ObjectType type : {ObjectType::kTree, ObjectType::kState, ObjectType::kNode,
                          ObjectType::kChunks, ObjectType::kBlob})
    (void)ReferencesOf(type, bytes);
  return 0;
}
