#include "store/object.h"

#include <algorithm>

#include "base/escape.h"
#include "store/chunker.h"
#include "store/tree_encoder.h"

namespace belay {

namespace {
constexpr uint8_t kObjectVersion = 1;
constexpr uint32_t kMaxOwner = 0xfffffffe;
constexpr size_t kMaxTarget = 4095;

Error Bad(std::string_view what, std::string_view why) {
  std::string text(what);
  text += ": ";
  text += why;
  return Error(Errc::kCorrupt, std::move(text));
}

// Why this entry may not be in a tree; empty when it may.
std::string_view EntryProblem(const TreeEntryView& e) {
  if (!IsValidName(e.name)) return "a name that is no name";
  if (IsGitAlias(e.name)) return "a name that stands for .git";
  if (e.mode > 07777) return "mode out of range";
  if (e.uid > kMaxOwner || e.gid > kMaxOwner) return "owner out of range";
  switch (e.kind) {
    case EntryKind::kFile:
    case EntryKind::kDirectory:
      if (e.id.is_zero()) return "an entry without content";
      return {};
    case EntryKind::kSymlink:
      if (e.target.empty() || e.target.size() > kMaxTarget ||
          e.target.find('\0') != std::string::npos)
        return "a symlink target that cannot be";
      return {};
  }
  return "an unknown kind of entry";
}
}  // namespace

std::string ObjectTypeName(ObjectType type) {
  switch (type) {
    case ObjectType::kBlob:
      return "blob";
    case ObjectType::kChunks:
      return "chunks";
    case ObjectType::kTree:
      return "tree";
    case ObjectType::kState:
      return "state";
    case ObjectType::kNode:
      return "node";
    case ObjectType::kLog:
      return "record";
  }
  return "type " + std::to_string(static_cast<unsigned>(type));
}

bool IsGitAlias(std::string_view name) {
  // Most names are told by their first byte: it stays, and stays the first.
  if (name.empty()) return false;
  if (const auto first = static_cast<unsigned char>(name[0]);
      first < 0x80 && first != '.' && first != 'g' && first != 'G')
    return false;
  // Invisible code points are dropped as HFS+ does, ASCII is folded; then what NTFS and
  // VFAT ignore at the end goes.
  std::string folded;
  for (std::string_view rest = name; !rest.empty();) {
    char32_t c = 0;
    size_t length = DecodeUtf8(rest, c);
    if (length == 0) {
      folded += rest[0];
      rest.remove_prefix(1);
      continue;
    }
    bool ignored = (c >= 0x200c && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
                   (c >= 0x206a && c <= 0x206f) || c == 0xfeff;
    if (!ignored) {
      if (length == 1)
        folded += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
      else
        folded += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  std::string_view core = folded;
  if (size_t colon = core.find(':'); colon != std::string_view::npos)
    core = core.substr(0, colon);
  while (!core.empty() && (core.back() == '.' || core.back() == ' '))
    core.remove_suffix(1);
  return core == ".git" || core == "git~1";
}

TreeEncoder::TreeEncoder(size_t count) : left_(count) {
  out_.reserve(count * 64 + 8);
  ByteWriter w(out_);
  w.U8(kObjectVersion);
  w.Varint(count);
}

Status TreeEncoder::Add(const TreeEntryView& e) {
  BELAY_CHECK(left_ > 0);
  --left_;
  std::string_view problem = EntryProblem(e);
  // No name is empty.
  if (problem.empty() && previous_ >= e.name) problem = "names that do not rise";
  if (!problem.empty())
    return Error(Errc::kInvalid, "tree: " + std::string(problem) + " '" +
                                     EscapeForDisplay(e.name) + "'");
  previous_ = e.name;
  ByteWriter w(out_);
  w.Sized(e.name);
  w.U8(static_cast<uint8_t>(e.kind));
  w.U8(e.xattrs.is_zero() ? 0 : 1);
  w.Varint(e.mode);
  w.Varint(e.uid);
  w.Varint(e.gid);
  switch (e.kind) {
    case EntryKind::kFile:
      w.Varint(e.size);
      w.Raw(e.id.span());
      break;
    case EntryKind::kSymlink:
      w.Sized(e.target);
      break;
    case EntryKind::kDirectory:
      w.Raw(e.id.span());
      break;
  }
  if (!e.xattrs.is_zero()) w.Raw(e.xattrs.span());
  return Ok();
}

Bytes TreeEncoder::Take() {
  BELAY_CHECK(left_ == 0);
  return std::move(out_);
}

Result<Bytes> EncodeTree(const Tree& tree) {
  TreeEncoder encoder(tree.entries.size());
  for (const TreeEntry& e : tree.entries) BELAY_OK(encoder.Add(TreeEntryView::Of(e)));
  return encoder.Take();
}

namespace {
ObjectId ReadId(ByteReader& r) {
  ByteSpan raw = r.Raw(32);
  return raw.size() == 32 ? Hash256::FromSpan(raw) : ObjectId{};
}
}  // namespace

Result<Tree> DecodeTree(ByteSpan bytes) {
  ByteReader r(bytes);
  if (r.U8() != kObjectVersion) return Bad("tree", "unknown version");
  uint64_t count = r.Varint();
  // The smallest entry takes 8 bytes: a count that cannot fit is a lie, not a
  // reserve().
  if (r.failed() || count > r.remaining() / 8)
    return Bad("tree", "impossible entry count");
  Tree tree;
  tree.entries.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    TreeEntry e;
    e.name = AsText(r.Sized());
    e.kind = static_cast<EntryKind>(r.U8());
    uint8_t flags = r.U8();
    uint64_t mode = r.Varint();
    uint64_t uid = r.Varint();
    uint64_t gid = r.Varint();
    if (r.failed() || flags > 1) return Bad("tree", "cut short or unknown flags");
    if (mode > 07777 || uid > kMaxOwner || gid > kMaxOwner)
      return Bad("tree", "mode or owner out of range");
    e.mode = static_cast<uint32_t>(mode);
    e.uid = static_cast<uint32_t>(uid);
    e.gid = static_cast<uint32_t>(gid);
    switch (e.kind) {
      case EntryKind::kFile:
        e.size = r.Varint();
        e.id = ReadId(r);
        break;
      case EntryKind::kSymlink:
        e.target = AsText(r.Sized());
        break;
      case EntryKind::kDirectory:
        e.id = ReadId(r);
        break;
      default:
        return Bad("tree", "an unknown kind of entry");
    }
    if (flags & 1) {
      e.xattrs = ReadId(r);
      if (e.xattrs.is_zero()) return Bad("tree", "attributes without content");
    }
    if (r.failed()) return Bad("tree", "cut short");
    if (auto problem = EntryProblem(TreeEntryView::Of(e)); !problem.empty())
      return Bad("tree", problem);
    if (!tree.entries.empty() && tree.entries.back().name >= e.name)
      return Bad("tree", "names that do not rise");
    tree.entries.push_back(std::move(e));
  }
  if (!r.done()) return Bad("tree", "bytes after the end");
  return tree;
}

Bytes EncodeState(const State& state) {
  Bytes out;
  ByteWriter w(out);
  w.U8(kObjectVersion);
  w.Raw(state.tree.span());
  w.Raw(state.git.span());
  w.Raw(state.rules.span());
  return out;
}

Result<State> DecodeState(ByteSpan bytes) {
  ByteReader r(bytes);
  if (r.U8() != kObjectVersion) return Bad("state", "unknown version");
  State state;
  state.tree = ReadId(r);
  state.git = ReadId(r);
  state.rules = ReadId(r);
  if (!r.done() || state.tree.is_zero()) return Bad("state", "wrong length or no tree");
  return state;
}

void Fields::Add(uint64_t tag, ByteSpan value) {
  auto at = std::upper_bound(items_.begin(), items_.end(), tag,
                             [](uint64_t t, const Field& f) { return t < f.tag; });
  items_.insert(at, Field{tag, Bytes(value.begin(), value.end())});
}
void Fields::AddNumber(uint64_t tag, uint64_t value) {
  Bytes raw;
  ByteWriter(raw).Varint(value);
  Add(tag, raw);
}
void Fields::AddNested(uint64_t tag, const Fields& value) {
  Bytes raw;
  ByteWriter w(raw);
  value.Encode(w);
  Add(tag, raw);
}
const Fields::Field* Fields::Find(uint64_t tag) const {
  auto at = std::lower_bound(items_.begin(), items_.end(), tag,
                             [](const Field& f, uint64_t t) { return f.tag < t; });
  return at != items_.end() && at->tag == tag ? &*at : nullptr;
}
std::optional<std::string> Fields::Text(uint64_t tag) const {
  const Field* f = Find(tag);
  if (!f) return std::nullopt;
  return std::string(AsText(f->value));
}
std::optional<uint64_t> Fields::Number(uint64_t tag) const {
  const Field* f = Find(tag);
  if (!f) return std::nullopt;
  ByteReader r(f->value);
  uint64_t value = r.Varint();
  if (!r.done()) return std::nullopt;
  return value;
}
std::vector<ByteSpan> Fields::All(uint64_t tag) const {
  std::vector<ByteSpan> out;
  for (const Field& f : items_)
    if (f.tag == tag) out.push_back(f.value);
  return out;
}
void Fields::Encode(ByteWriter& out) const {
  for (const Field& f : items_) {
    out.Varint(f.tag);
    out.Sized(f.value);
  }
}
Result<Fields> Fields::Decode(ByteReader& in) {
  Fields fields;
  while (!in.at_end() && !in.failed()) {
    uint64_t tag = in.Varint();
    ByteSpan value = in.Sized();
    if (in.failed()) break;
    if (!fields.items_.empty() && fields.items_.back().tag > tag)
      return Bad("fields", "tags that do not rise");
    fields.items_.push_back(Field{tag, Bytes(value.begin(), value.end())});
  }
  if (in.failed()) return Bad("fields", "cut short");
  return fields;
}

Bytes EncodeNode(const Node& node) {
  Bytes out;
  ByteWriter w(out);
  w.U8(kObjectVersion);
  w.Varint(node.refs.size());
  for (const ObjectKey& ref : node.refs) {
    w.U8(static_cast<uint8_t>(ref.type));
    w.Raw(ref.id.span());
  }
  node.fields.Encode(w);
  return out;
}

Result<Node> DecodeNode(ByteSpan bytes) {
  ByteReader r(bytes);
  if (r.U8() != kObjectVersion) return Bad("node", "unknown version");
  uint64_t count = r.Varint();
  if (r.failed() || count > r.remaining() / 33) return Bad("node", "impossible count");
  Node node;
  for (uint64_t i = 0; i < count; ++i) {
    ObjectType type = static_cast<ObjectType>(r.U8());
    node.refs.push_back({type, ReadId(r)});
  }
  if (r.failed()) return Bad("node", "cut short");
  BELAY_TRY(node.fields, Fields::Decode(r));
  return node;
}

Bytes EncodeChunks(const ChunkList& list) {
  Bytes out;
  ByteWriter w(out);
  w.U8(kObjectVersion);
  w.Varint(list.total);
  w.Varint(list.chunks.size());
  for (const Chunk& c : list.chunks) {
    w.Raw(c.id.span());
    w.Varint(c.length);
  }
  w.U64(Check64(out));
  return out;
}

Result<ChunkList> DecodeChunks(ByteSpan bytes) {
  if (bytes.size() < 8) return Bad("chunks", "cut short");
  ByteSpan content = bytes.first(bytes.size() - 8);
  if (LoadU64(bytes.data() + content.size()) != Check64(content))
    return Bad("chunks", "check does not match");
  ByteReader r(content);
  if (r.U8() != kObjectVersion) return Bad("chunks", "unknown version");
  ChunkList list;
  list.total = r.Varint();
  uint64_t count = r.Varint();
  if (r.failed() || count > r.remaining() / 33)
    return Bad("chunks", "impossible count");
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    ObjectId id = ReadId(r);
    uint64_t length = r.Varint();
    if (r.failed() || length == 0 || length > kMaxChunk)
      return Bad("chunks", "a chunk length that cannot be");
    sum += length;
    list.chunks.push_back({id, static_cast<uint32_t>(length)});
  }
  if (!r.done() || sum != list.total) return Bad("chunks", "lengths do not add up");
  return list;
}

Result<std::vector<ObjectKey>> ReferencesOf(ObjectType type, ByteSpan bytes) {
  std::vector<ObjectKey> refs;
  switch (type) {
    case ObjectType::kTree: {
      BELAY_TRY(Tree tree, DecodeTree(bytes));
      for (const TreeEntry& e : tree.entries) {
        if (e.kind == EntryKind::kFile) refs.push_back({ObjectType::kBlob, e.id});
        if (e.kind == EntryKind::kDirectory) refs.push_back({ObjectType::kTree, e.id});
        if (!e.xattrs.is_zero()) refs.push_back({ObjectType::kBlob, e.xattrs});
      }
      break;
    }
    case ObjectType::kState: {
      BELAY_TRY(State state, DecodeState(bytes));
      refs.push_back({ObjectType::kTree, state.tree});
      if (!state.git.is_zero()) refs.push_back({ObjectType::kNode, state.git});
      if (!state.rules.is_zero()) refs.push_back({ObjectType::kNode, state.rules});
      break;
    }
    case ObjectType::kNode: {
      BELAY_TRY(Node node, DecodeNode(bytes));
      refs = std::move(node.refs);
      break;
    }
    case ObjectType::kChunks: {
      BELAY_TRY(ChunkList list, DecodeChunks(bytes));
      for (const Chunk& c : list.chunks) refs.push_back({ObjectType::kBlob, c.id});
      break;
    }
    default:
      break;
  }
  return refs;
}

}  // namespace belay
