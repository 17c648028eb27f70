#pragma once

// Bundles that somebody made to do harm, one a row: how each is made, and what is said
// when it is refused.

#include <span>

#include "store/chunker.h"
#include "support/bundle_forge.h"
#include "support/bundle_world.h"

namespace belay::test {

using Entries = std::vector<TreeEntry>;

// What is right, for a row to spoil a part of it.
struct Parts : BundleForge {
  // All of a bundle around this tree.
  void Around(const ObjectId& tree, uint64_t files = 1, uint64_t size = 5) {
    Log(CheckpointRecord(State(tree), files, size));
  }
  void Around(const Entries& entries, uint64_t files = 1, uint64_t size = 5) {
    Around(Tree(entries), files, size);
  }
  ObjectId Hello() { return Blob("hello"); }
  // A bundle with nothing wrong, up to the checkpoint's record.
  LogRecord Whole() {
    const ObjectId state = State(Tree({File("f", Hello(), 5)}));
    return CheckpointRecord(state, 1, 5);
  }
  void Good() { Log(Whole()); }
  // One entry of that name, legal or not.
  void Named(std::string name) { Around({File(std::move(name), Hello(), 5)}); }
  void Rules(const Node& node) {
    const ObjectId rules = Put(ObjectType::kNode, EncodeNode(node));
    Log(CheckpointRecord(State(Tree({}), rules), 0, 0));
  }
};

inline Node GoodRules() {
  Node node;
  node.fields.AddNumber(4, 0);
  node.fields.AddNumber(5, 100);
  for (uint64_t tag : {6, 7, 8}) node.fields.AddNumber(tag, 0);
  return node;
}
inline Fields Nested(std::initializer_list<std::pair<uint64_t, std::string>> values) {
  Fields fields;
  for (const auto& [tag, value] : values) fields.Add(tag, value);
  return fields;
}
inline Bytes RawChunks(uint64_t total, const std::vector<Chunk>& chunks) {
  return EncodeChunks({.total = total, .chunks = chunks});
}
inline void Rehash(Bytes& file) {
  const size_t end = file.size() - kBundleTrailerSize;
  auto trailer = *DecodeBundleTrailer(ByteSpan(file).subspan(end));
  Sha256 whole;
  whole.Update(ByteSpan(file).first(end + kBundleHashAt));
  trailer.hash = whole.Finish();
  const auto encoded = Encode(trailer);
  std::copy(encoded.begin(), encoded.end(), file.begin() + static_cast<ptrdiff_t>(end));
}
inline void SetHeader(Bytes& file, size_t at, uint32_t value) {
  StoreU32(&file[at], value);
  StoreU64(&file[56], Check64(ByteSpan(file).first(56)));
  Rehash(file);
}
inline std::string Zeros(size_t length) { return std::string(length, '\0'); }

struct Row {
  const char* name;
  std::function<void(Parts&)> make;
  const char* says;  // a part of the reason
};

// Files, records and trees.
std::span<const Row> RowsOfTrees();
// Chunks, nodes, states, checkpoints and annotations.
std::span<const Row> RowsOfStates();

}  // namespace belay::test
