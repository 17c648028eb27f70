#pragma once

// What a state is made of: trees, states, nodes, chunk lists, and how they are encoded.
//
// Decoders are strict: one value has one encoding, every byte is accounted for, and a
// tree that breaks a rule is refused whole (kCorrupt), so that nothing read from a
// store can name a path outside its root. Layout: docs/format.md, "Packs".

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/path.h"
#include "base/result.h"
#include "base/sha256.h"

namespace belay {

enum class ObjectType : uint8_t {
  kBlob = 1,
  kChunks = 2,
  kTree = 3,
  kState = 4,
  kNode = 5,
  kLog = 64,
};

// "blob", "tree" ...; "type 9" for one we do not know.
std::string ObjectTypeName(ObjectType type);

struct ObjectKey {
  ObjectType type = ObjectType::kBlob;
  ObjectId id;
  auto operator<=>(const ObjectKey&) const = default;
};

inline constexpr size_t kMaxBlob = size_t{1} << 20;  // longer content is chunked
inline constexpr uint32_t kMaxObject = uint32_t{1}
                                       << 30;  // decoded bytes of any object

// --- tree
// ------------------------------------------------------------------------------

enum class EntryKind : uint8_t { kFile = 1, kSymlink = 2, kDirectory = 3 };

struct TreeEntry {
  std::string name;
  EntryKind kind = EntryKind::kFile;
  uint32_t mode = 0;  // 07777
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;   // files
  ObjectId id;         // files: content id; directories: tree id
  std::string target;  // symlinks
  ObjectId xattrs;     // blob of encoded attributes, zero = none
  bool operator==(const TreeEntry&) const = default;
};

struct Tree {
  std::vector<TreeEntry> entries;  // strictly rising by name bytes
  bool operator==(const Tree&) const = default;
};

// Names that git or another file system would take for `.git`: any letter case,
// trailing dots and spaces, `.git::$DATA`, `git~1`, and with invisible code points
// inside.
bool IsGitAlias(std::string_view name);

// kInvalid when an entry breaks a rule or the names do not rise.
Result<Bytes> EncodeTree(const Tree& tree);
Result<Tree> DecodeTree(ByteSpan bytes);

// --- state, node, chunks
// ---------------------------------------------------------------

struct State {
  ObjectId tree;
  ObjectId git;    // node, zero = none
  ObjectId rules;  // node, zero = none
  bool operator==(const State&) const = default;
};
Bytes EncodeState(const State& state);
Result<State> DecodeState(ByteSpan bytes);

// Tagged values: tags rise, a repeated tag is a list. Unknown tags are kept.
class Fields {
 public:
  struct Field {
    uint64_t tag;
    Bytes value;
    bool operator==(const Field&) const = default;
  };

  void Add(uint64_t tag, ByteSpan value);
  void Add(uint64_t tag, std::string_view value) { Add(tag, AsBytes(value)); }
  void AddNumber(uint64_t tag, uint64_t value);
  void AddNested(uint64_t tag, const Fields& value);

  bool has(uint64_t tag) const { return Find(tag) != nullptr; }
  std::optional<std::string> Text(uint64_t tag) const;
  std::optional<uint64_t> Number(
      uint64_t tag) const;                        // absent or not a varint: nullopt
  std::vector<ByteSpan> All(uint64_t tag) const;  // views into this object
  const std::vector<Field>& items() const { return items_; }
  bool operator==(const Fields&) const = default;

  void Encode(ByteWriter& out) const;
  // Reads to the end of `in`.
  static Result<Fields> Decode(ByteReader& in);

 private:
  const Field* Find(uint64_t tag) const;
  std::vector<Field> items_;  // sorted by tag, insertion order within one
};

struct Node {
  std::vector<ObjectKey> refs;
  Fields fields;
  bool operator==(const Node&) const = default;
};
Bytes EncodeNode(const Node& node);
Result<Node> DecodeNode(ByteSpan bytes);

struct Chunk {
  ObjectId id;
  uint32_t length = 0;
  bool operator==(const Chunk&) const = default;
};
struct ChunkList {
  uint64_t total = 0;
  std::vector<Chunk> chunks;
  bool operator==(const ChunkList&) const = default;
};
Bytes EncodeChunks(const ChunkList& list);
Result<ChunkList> DecodeChunks(ByteSpan bytes);

// The objects that an object of this type and encoding refers to. `kNone` types: empty.
// A content id is reported as a blob key; the store finds it as blob or chunks.
Result<std::vector<ObjectKey>> ReferencesOf(ObjectType type, ByteSpan bytes);

}  // namespace belay

template <>
struct std::hash<belay::ObjectKey> {
  size_t operator()(const belay::ObjectKey& key) const noexcept {
    return std::hash<belay::Hash256>()(key.id) ^ static_cast<size_t>(key.type);
  }
};
