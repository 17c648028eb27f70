// Bundles made to do harm, by hand, one row each: refused with the reason, nothing is
// written, and neither memory nor time is spent on what they claim.

#include <malloc.h>

#include <ctime>
#include <fstream>
#include <iostream>

#include "store/chunker.h"
#include "support/bundle_forge.h"
#include "support/bundle_world.h"

namespace belay::test {
namespace {

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

Node GoodRules() {
  Node node;
  node.fields.AddNumber(4, 0);
  node.fields.AddNumber(5, 100);
  for (uint64_t tag : {6, 7, 8}) node.fields.AddNumber(tag, 0);
  return node;
}
Fields Nested(std::initializer_list<std::pair<uint64_t, std::string>> values) {
  Fields fields;
  for (const auto& [tag, value] : values) fields.Add(tag, value);
  return fields;
}
Bytes RawChunks(uint64_t total, const std::vector<Chunk>& chunks) {
  return EncodeChunks({.total = total, .chunks = chunks});
}
void Rehash(Bytes& file) {
  const size_t end = file.size() - kBundleTrailerSize;
  auto trailer = *DecodeBundleTrailer(ByteSpan(file).subspan(end));
  Sha256 whole;
  whole.Update(ByteSpan(file).first(end + kBundleHashAt));
  trailer.hash = whole.Finish();
  const auto encoded = Encode(trailer);
  std::copy(encoded.begin(), encoded.end(), file.begin() + static_cast<ptrdiff_t>(end));
}
void SetHeader(Bytes& file, size_t at, uint32_t value) {
  StoreU32(&file[at], value);
  StoreU64(&file[56], Check64(ByteSpan(file).first(56)));
  Rehash(file);
}
std::string Zeros(size_t length) { return std::string(length, '\0'); }

struct Row {
  const char* name;
  std::function<void(Parts&)> make;
  const char* says;  // a part of the reason
};

const Row kRows[] = {
    // --- the file
    {"an empty file", [](Parts& p) { p.bytes = [](Bytes& b) { b.clear(); }; },
     "no bundle"},
    {"the first bytes only",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { b.resize(8); };
     },
     "ends early"},
    {"another kind of file",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { b[0] = std::byte{'b'}; };
     },
     "no bundle"},
    {"a newer version",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { SetHeader(b, 8, 2); };
     },
     "newer Belay"},
    {"a version that never was",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { SetHeader(b, 8, 0); };
     },
     "makes no sense"},
    {"unknown flags",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { SetHeader(b, 12, 1); };
     },
     "makes no sense"},
    {"something where nothing should be",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { SetHeader(b, 40, 1); };
     },
     "makes no sense"},
    {"a header that is not checked",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { b[60] ^= std::byte{1}; };
     },
     "header is damaged"},
    {"no trailer",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { b.resize(b.size() - kBundleTrailerSize); };
     },
     "end is damaged"},
    {"two trailers",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) {
         const Bytes end(b.end() - kBundleTrailerSize, b.end());
         b.insert(b.end(), end.begin(), end.end());
       };
     },
     "not as long"},
    {"bytes behind the end",
     [](Parts& p) {
       p.Good();
       p.bytes = [](Bytes& b) { b.push_back(std::byte{}); };
     },
     "end is damaged"},
    {"a length that is too long",
     [](Parts& p) {
       p.Good();
       p.trailer = [](BundleTrailer& t) { ++t.length; };
     },
     "not as long"},
    {"one object more than there is",
     [](Parts& p) {
       p.Good();
       p.trailer = [](BundleTrailer& t) { ++t.objects; };
     },
     "does not hold what it says"},
    {"one checkpoint less than there is",
     [](Parts& p) {
       p.Good();
       p.trailer = [](BundleTrailer& t) { --t.checkpoints; };
     },
     "does not hold what it says"},
    {"one byte more than there is",
     [](Parts& p) {
       p.Good();
       p.trailer = [](BundleTrailer& t) { ++t.raw_bytes; };
     },
     "does not hold what it says"},
    {"a claim of 2^63 objects",
     [](Parts& p) {
       p.Good();
       p.trailer = [](BundleTrailer& t) { t.objects = uint64_t{1} << 63; };
     },
     "claims to hold more"},
    {"a claim of 2^63 checkpoints",
     [](Parts& p) {
       p.Good();
       p.trailer = [](BundleTrailer& t) { t.checkpoints = uint64_t{1} << 63; };
     },
     "claims to hold more"},
    {"a claim of 2^63 bytes",
     [](Parts& p) {
       p.Good();
       p.trailer = [](BundleTrailer& t) { t.raw_bytes = uint64_t{1} << 63; };
     },
     "claims to hold more"},
    {"a hash of something else",
     [](Parts& p) {
       p.Good();
       p.trailer = [](BundleTrailer& t) { t.hash = Sha256::Of(AsBytes("x")); };
     },
     "hash does not match"},
    {"nothing at all", [](Parts&) {}, "no checkpoint"},
    {"objects without a checkpoint", [](Parts& p) { p.State(p.Tree({})); },
     "no checkpoint"},

    // --- records
    {"type 0",
     [](Parts& p) {
       p.Hello();
       p.last().header.type = ObjectType{0};
     },
     "type that a bundle does not hold"},
    {"type 6",
     [](Parts& p) {
       p.Hello();
       p.last().header.type = ObjectType{6};
     },
     "type that a bundle does not hold"},
    {"type 255",
     [](Parts& p) {
       p.Hello();
       p.last().header.type = ObjectType{255};
     },
     "type that a bundle does not hold"},
    {"a delta",
     [](Parts& p) {
       p.Blob(Zeros(4000));
       p.last().header.codec = CodecId::kDelta;
       p.last().header.chain = 1;
     },
     "a lie"},
    {"an unknown compression",
     [](Parts& p) {
       p.Hello();
       p.last().header.codec = CodecId{3};
     },
     "a lie"},
    {"stored bytes that go on behind the end",
     [](Parts& p) {
       p.Hello();
       p.last().header.stored_length = p.last().header.raw_length = 500'000;
     },
     "cut short"},
    {"a length that is not that of the bytes",
     [](Parts& p) {
       p.Hello();
       p.last().header.raw_length = 6;
     },
     "a lie"},
    {"a blob above 1 MiB",
     [](Parts& p) {
       p.Blob(Zeros(4000));
       p.last().header.raw_length = kMaxBlob + 1;
     },
     "header is damaged"},
    {"a tree above 96 MiB",
     [](Parts& p) {
       p.Put(ObjectType::kTree, AsBytes(Zeros(4000)));
       p.last().header.raw_length = (96u << 20) + 1;
     },
     "too large"},
    {"a node above 8 MiB",
     [](Parts& p) {
       p.Put(ObjectType::kNode, AsBytes(Zeros(4000)));
       p.last().header.raw_length = (8u << 20) + 1;
     },
     "too large"},
    {"a state of 98 bytes",
     [](Parts& p) { p.Put(ObjectType::kState, AsBytes(Zeros(98))); }, "too large"},
    {"a log record above 4 MiB",
     [](Parts& p) {
       p.Put(ObjectType::kLog, AsBytes(Zeros(4000)));
       p.last().header.raw_length = (4u << 20) + 1;
     },
     "too large"},
    {"a frame that says another length than the record",
     [](Parts& p) {
       p.Blob(Zeros(4000));
       p.last().header.raw_length = 4001;
     },
     "a lie"},
    {"a frame that unfolds to more than it says",
     [](Parts& p) {
       // The frame of a megabyte, with the content size of a smaller one written over.
       p.Blob(Zeros(1 << 20));
       Bytes& frame = p.last().stored;
       const Bytes large = frame;
       p.records.pop_back();
       p.Blob(Zeros(1 << 16));
       Bytes& small = p.last().stored;
       // Magic and header of the small one, blocks of the large one.
       Bytes mixed(small.begin(), small.begin() + 9);
       mixed.insert(mixed.end(), large.begin() + 9, large.end());
       small = mixed;
       p.last().header.stored_length = static_cast<uint32_t>(mixed.size());
     },
     ""},
    {"a frame of a gigabyte as a blob",
     [](Parts& p) {
       p.Blob(Zeros(1 << 20));
       // Single segment, 8 byte content size: 2^30.
       const unsigned char head[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0,    0, 0,
                                     0x40, 0,    0,    0,    0,    0x01, 0, 0};
       p.last().stored.assign(reinterpret_cast<const std::byte*>(head),
                              reinterpret_cast<const std::byte*>(head) + sizeof head);
       p.last().header.stored_length = sizeof head;
     },
     "a lie"},
    {"compressed to more than it was",
     [](Parts& p) {
       p.Hello();
       p.last().header.codec = CodecId::kZstd;
     },
     "a lie"},
    {"bytes that are no frame",
     [](Parts& p) {
       p.Blob(Zeros(4000));
       p.last().stored.assign(40, std::byte{7});
       p.last().header.stored_length = 40;
     },
     "a lie"},
    {"a record header that is not checked",
     [](Parts& p) {
       p.Good();
       auto& r = p.records[0];
       auto head = Encode(r.header);
       head[5] ^= std::byte{1};
       r.bytes.assign(head.begin(), head.end());
       r.bytes.insert(r.bytes.end(), r.stored.begin(), r.stored.end());
     },
     "header is damaged"},
    {"half a record header at the end",
     [](Parts& p) {
       p.Good();
       p.records.emplace_back();
       p.records.back().header.type = ObjectType::kLog;
       p.records.back().bytes = Bytes(20);
     },
     "cut short"},
    // Kills the mutant bundle-trusts-ids.
    {"the id of something else",
     [](Parts& p) {
       const ObjectId id =
           p.PutAs(ObjectType::kBlob, Sha256::Of(AsBytes("hello")), AsBytes("evil!"));
       p.Around({p.File("f", id, 5)});
     },
     "hash does not match"},
    {"the same blob twice",
     [](Parts& p) {
       p.Hello();
       p.Good();
     },
     "there twice"},
    {"an object behind the records",
     [](Parts& p) {
       p.Good();
       p.Blob("late");
     },
     "behind the records"},
    {"a blob that nothing refers to",
     [](Parts& p) {
       p.Blob("stray");
       p.Good();
     },
     "nothing refers to"},
    {"a tree that nothing refers to",
     [](Parts& p) {
       p.Tree({});
       p.Good();
     },
     "nothing refers to"},
    {"a state without a checkpoint",
     [](Parts& p) {
       p.State(p.Tree({}));
       p.Good();
     },
     "nothing refers to"},

    // --- trees: the ways out of a root
    {"..", [](Parts& p) { p.Named(".."); }, "no name"},
    {".", [](Parts& p) { p.Named("."); }, "no name"},
    {"a/b", [](Parts& p) { p.Named("a/b"); }, "no name"},
    {"../up", [](Parts& p) { p.Named("../up"); }, "no name"},
    {"/etc/passwd", [](Parts& p) { p.Named("/etc/passwd"); }, "no name"},
    {"an empty name", [](Parts& p) { p.Named(""); }, "no name"},
    {"a NUL in a name", [](Parts& p) { p.Named(std::string("a\0b", 3)); }, "no name"},
    {"a name of 256 bytes", [](Parts& p) { p.Named(std::string(256, 'n')); },
     "no name"},
    {".git", [](Parts& p) { p.Named(".git"); }, ".git"},
    {".GiT", [](Parts& p) { p.Named(".GiT"); }, ".git"},
    {".git with a blank", [](Parts& p) { p.Named(".git "); }, ".git"},
    {"git~1", [](Parts& p) { p.Named("git~1"); }, ".git"},
    {".git::$INDEX_ALLOCATION", [](Parts& p) { p.Named(".git::$INDEX_ALLOCATION"); },
     ".git"},
    {".git with an invisible letter", [](Parts& p) { p.Named(".g\xe2\x80\x8cit"); },
     ".git"},
    {"a directory called .git",
     [](Parts& p) { p.Around({p.Dir(".git", p.Tree({}))}, 0, 0); }, ".git"},
    {"names that fall",
     [](Parts& p) {
       const ObjectId id = p.Hello();
       p.Around({p.File("b", id, 5), p.File("a", id, 5)}, 2, 10);
     },
     "do not rise"},
    {"a name twice",
     [](Parts& p) {
       const ObjectId id = p.Hello();
       p.Around({p.File("a", id, 5), p.File("a", id, 5)}, 2, 10);
     },
     "do not rise"},
    {"a file and a link of one name",
     [](Parts& p) {
       const ObjectId id = p.Hello();
       p.Around({p.Link("a", "/etc"), p.File("a", id, 5)}, 2, 5);
     },
     "do not rise"},
    {"an unknown kind",
     [](Parts& p) {
       TreeEntry e = p.File("f", p.Hello(), 5);
       e.kind = EntryKind{4};
       p.Around({e});
     },
     "unknown kind"},
    {"a mode beyond 07777",
     [](Parts& p) {
       TreeEntry e = p.File("f", p.Hello(), 5);
       e.mode = 0100644;
       p.Around({e});
     },
     "out of range"},
    {"nobody's uid",
     [](Parts& p) {
       TreeEntry e = p.File("f", p.Hello(), 5);
       e.uid = UINT32_MAX;
       p.Around({e});
     },
     "out of range"},
    {"a link to nowhere at all", [](Parts& p) { p.Around({p.Link("l", "")}, 1, 0); },
     "symlink target"},
    {"a link with a NUL",
     [](Parts& p) { p.Around({p.Link("l", std::string("a\0b", 3))}, 1, 0); },
     "symlink target"},
    {"a link that is too long",
     [](Parts& p) { p.Around({p.Link("l", std::string(4096, 't'))}, 1, 0); },
     "symlink target"},
    {"bytes behind a tree",
     [](Parts& p) {
       Bytes raw = p.RawTree({});
       raw.push_back(std::byte{1});
       p.Around(p.Put(ObjectType::kTree, raw), 0, 0);
     },
     "after the end"},
    {"a tree of another version",
     [](Parts& p) {
       Bytes raw = p.RawTree({});
       raw[0] = std::byte{2};
       p.Around(p.Put(ObjectType::kTree, raw), 0, 0);
     },
     "unknown version"},
    {"a tree that claims 500,000 entries",
     [](Parts& p) {
       Bytes raw;
       ByteWriter w(raw);
       w.U8(1);
       w.Varint(500'000);
       p.Around(p.Put(ObjectType::kTree, raw), 0, 0);
     },
     "impossible entry count"},
    {"a tree that claims 2^60 entries",
     [](Parts& p) {
       Bytes raw;
       ByteWriter w(raw);
       w.U8(1);
       w.Varint(uint64_t{1} << 60);
       p.Around(p.Put(ObjectType::kTree, raw), 0, 0);
     },
     "too many entries"},
    {"a count that is not in its shortest form",
     [](Parts& p) {
       p.Around(p.Put(ObjectType::kTree, AsBytes(std::string_view("\1\x80\0", 3))), 0,
                0);
     },
     "tree"},
    {"a file without content",
     [](Parts& p) { p.Around({p.File("f", Sha256::Of(AsBytes("gone")), 4)}, 1, 4); },
     "missing"},
    {"a directory that is not there",
     [](Parts& p) { p.Around({p.Dir("d", Sha256::Of(AsBytes("gone")))}, 0, 0); },
     "missing"},
    {"a directory that comes later",
     [](Parts& p) {
       const Bytes later = p.RawTree({p.Link("l", "t")});
       const ObjectId above = p.Tree({p.Dir("d", Sha256::Of(later))});
       p.Put(ObjectType::kTree, later);
       p.Around(above, 1, 0);
     },
     "missing"},
    {"a directory that is a file",
     [](Parts& p) { p.Around({p.Dir("d", p.Hello())}, 0, 0); }, "missing"},
    {"a file that is a directory",
     [](Parts& p) { p.Around({p.File("f", p.Tree({}), 2)}, 1, 2); }, "missing"},
    {"a file of no content id",
     [](Parts& p) { p.Around({p.File("f", ObjectId(), 0)}, 1, 0); }, "without content"},
    // Kills the mutant bundle-trusts-sizes.
    {"a size that is a lie",
     [](Parts& p) { p.Around({p.File("f", p.Hello(), 1u << 30)}, 1, 1u << 30); },
     "size of a file is a lie"},
    {"attributes that are not there",
     [](Parts& p) {
       TreeEntry e = p.File("f", p.Hello(), 5);
       e.xattrs = Sha256::Of(AsBytes("gone"));
       p.Around({e});
     },
     "attributes are missing"},
    {"attributes that make no sense",
     [](Parts& p) {
       TreeEntry e = p.File("f", p.Hello(), 5);
       e.xattrs = p.Blob("nonsense");
       p.Around({e});
     },
     "make no sense"},
    {"an attribute of the system",
     [](Parts& p) {
       Bytes raw;
       ByteWriter w(raw);
       w.Varint(1);
       w.Sized("security.selinux");
       w.Sized("x");
       TreeEntry e = p.File("f", p.Hello(), 5);
       e.xattrs = p.Put(ObjectType::kBlob, raw);
       p.Around({e});
     },
     "make no sense"},
    {"2^64 attributes",
     [](Parts& p) {
       Bytes raw;
       ByteWriter(raw).Varint(UINT64_MAX);
       TreeEntry e = p.File("f", p.Hello(), 5);
       e.xattrs = p.Put(ObjectType::kBlob, raw);
       p.Around({e});
     },
     "make no sense"},
    // Kills the mutant bundle-tree-bomb.
    {"a tree that unfolds to 2^40 paths",
     [](Parts& p) {
       ObjectId id = p.Tree({p.Link("l", "t")});
       for (int i = 0; i < 40; ++i) id = p.Tree({p.Dir("a", id), p.Dir("b", id)});
       p.Around(id, uint64_t{1} << 40, 0);
     },
     "unfolds to more"},
    {"a tree that unfolds to 2^70 paths",
     [](Parts& p) {
       ObjectId id = p.Tree({p.Link("l", "t")});
       for (int i = 0; i < 70; ++i) id = p.Tree({p.Dir("a", id), p.Dir("b", id)});
       p.Around(id, 0, 0);
     },
     "unfolds to more"},
    {"a path that is too long",
     [](Parts& p) {
       ObjectId id = p.Tree({});
       for (int i = 0; i < 4200; ++i) id = p.Tree({p.Dir(std::string(255, 'd'), id)});
       p.Around(id, 0, 0);
     },
     "too long"},

    // --- chunks
    {"a chunk that is not there",
     [](Parts& p) {
       const ObjectId gone = Sha256::Of(AsBytes("gone"));
       std::vector<Chunk> chunks(5, {gone, 500'000});
       const ObjectId id =
           p.PutAs(ObjectType::kChunks, gone, RawChunks(2'500'000, chunks));
       p.Around({p.File("f", id, 2'500'000)}, 1, 2'500'000);
     },
     "chunk is missing"},
    {"a chunk of another length",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       std::vector<Chunk> chunks(5, {blob, 500'001});
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("x")),
                                   RawChunks(2'500'005, chunks));
       p.Around({p.File("f", id, 2'500'005)}, 1, 2'500'005);
     },
     "length is a lie"},
    // Kills the mutant bundle-trusts-chunks.
    {"chunks of another content",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       std::vector<Chunk> chunks(5, {blob, 500'000});
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("other")),
                                   RawChunks(2'500'000, chunks));
       p.Around({p.File("f", id, 2'500'000)}, 1, 2'500'000);
     },
     "hash does not match"},
    {"chunks of what needs none",
     [](Parts& p) {
       const ObjectId blob = p.Blob("hello");
       const ObjectId id =
           p.PutAs(ObjectType::kChunks, blob, RawChunks(5, {{blob, 5}}));
       p.Around({p.File("f", id, 5)});
     },
     "needs none"},
    {"a chunk that is too long",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(600'000));
       const ObjectId id =
           p.PutAs(ObjectType::kChunks, blob,
                   RawChunks(1'200'000, {{blob, 600'000}, {blob, 600'000}}));
       p.Around({p.File("f", id, 1'200'000)}, 1, 1'200'000);
     },
     "length that cannot be"},
    {"chunks that do not add up",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       std::vector<Chunk> chunks(5, {blob, 500'000});
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("x")),
                                   RawChunks(uint64_t{1} << 50, chunks));
       p.Around({p.File("f", id, uint64_t{1} << 50)}, 1, uint64_t{1} << 50);
     },
     "do not add up"},
    {"a list of chunks that is not checked",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       Bytes raw = RawChunks(2'500'000, std::vector<Chunk>(5, {blob, 500'000}));
       raw.back() ^= std::byte{1};
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("x")), raw);
       p.Around({p.File("f", id, 2'500'000)}, 1, 2'500'000);
     },
     "check does not match"},
    {"half a megabyte, 100,000 times",
     [](Parts& p) {
       const ObjectId blob = p.Blob(Zeros(500'000));
       std::vector<Chunk> chunks(100'000, {blob, 500'000});
       const ObjectId id = p.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes("x")),
                                   RawChunks(50'000'000'000, chunks));
       p.Around({p.File("f", id, 50'000'000'000)}, 1, 50'000'000'000);
     },
     "claims to hold more"},

    // --- nodes and states
    {"a node that refers to nothing that is there",
     [](Parts& p) {
       Node node = GoodRules();
       node.refs.push_back({ObjectType::kBlob, Sha256::Of(AsBytes("gone"))});
       p.Rules(node);
     },
     "missing"},
    {"a node that refers to a tree",
     [](Parts& p) {
       Node node = GoodRules();
       node.refs.push_back({ObjectType::kTree, p.Tree({})});
       p.Rules(node);
     },
     "may not"},
    {"a node that refers to an unknown type",
     [](Parts& p) {
       Node node = GoodRules();
       node.refs.push_back({ObjectType{9}, p.Hello()});
       p.Rules(node);
     },
     "may not"},
    {"a node that claims 2^60 references",
     [](Parts& p) {
       Bytes raw;
       ByteWriter w(raw);
       w.U8(1);
       w.Varint(uint64_t{1} << 60);
       const ObjectId rules = p.Put(ObjectType::kNode, raw);
       p.Log(p.CheckpointRecord(p.State(p.Tree({}), rules), 0, 0));
     },
     "impossible count"},
    {"a node of another version",
     [](Parts& p) {
       Bytes raw = EncodeNode(GoodRules());
       raw[0] = std::byte{2};
       const ObjectId rules = p.Put(ObjectType::kNode, raw);
       p.Log(p.CheckpointRecord(p.State(p.Tree({}), rules), 0, 0));
     },
     "unknown version"},
    {"fields whose tags fall",
     [](Parts& p) {
       const ObjectId rules =
           p.Put(ObjectType::kNode, AsBytes(std::string_view("\1\0\2\0\1\0", 6)));
       p.Log(p.CheckpointRecord(p.State(p.Tree({}), rules), 0, 0));
     },
     "do not rise"},
    {"rules that say nothing", [](Parts& p) { p.Rules(Node()); }, "makes no sense"},
    {"rules that leave out ../x",
     [](Parts& p) {
       Node node = GoodRules();
       Fields skipped = Nested({{1, "../x"}});
       skipped.AddNumber(2, 10);
       node.fields.AddNested(11, skipped);
       p.Rules(node);
     },
     "makes no sense"},
    {"rules about a root at /abs",
     [](Parts& p) {
       Node node = GoodRules();
       node.fields.Add(12, std::string_view("/abs"));
       p.Rules(node);
     },
     "makes no sense"},
    {"rules whose file is not kept",
     [](Parts& p) {
       Node node = GoodRules();
       const ObjectId file = p.Blob("*.o\n");
       node.fields.AddNested(
           10, Nested({{1, "a/.gitignore"}, {2, std::string(AsText(file.span()))}}));
       p.Rules(node);
     },
     "does not keep"},
    {"rules that name a megabyte 200 times",
     [](Parts& p) {
       Node node = GoodRules();
       const ObjectId file = p.Blob(Zeros(1 << 20));
       node.refs.push_back({ObjectType::kBlob, file});
       for (int i = 0; i < 200; ++i)
         node.fields.AddNested(10, Nested({{1, "d" + std::to_string(i)},
                                           {2, std::string(AsText(file.span()))}}));
       p.Rules(node);
     },
     "too long"},
    {"a state whose tree is not there",
     [](Parts& p) {
       p.Log(p.CheckpointRecord(p.State(Sha256::Of(AsBytes("gone"))), 0, 0));
     },
     "tree is missing"},
    {"a state without a tree",
     [](Parts& p) { p.Log(p.CheckpointRecord(p.State(ObjectId()), 0, 0)); }, "no tree"},
    {"a state whose rules are not there",
     [](Parts& p) {
       p.Log(
           p.CheckpointRecord(p.State(p.Tree({}), Sha256::Of(AsBytes("gone"))), 0, 0));
     },
     "record of it is missing"},
    {"a state whose git record is a tree",
     [](Parts& p) {
       const ObjectId tree = p.Tree({});
       p.Log(p.CheckpointRecord(p.State(tree, {}, tree), 0, 0));
     },
     "record of it is missing"},
    {"a state that is cut short",
     [](Parts& p) {
       Bytes raw = EncodeState({.tree = p.Tree({}), .git = {}, .rules = {}});
       raw.pop_back();
       p.Log(p.CheckpointRecord(p.Put(ObjectType::kState, raw), 0, 0));
     },
     "wrong length"},

    // --- checkpoints
    {"a sequence number of its own",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.seq = 1;
       p.Log(r);
     },
     "place of its own"},
    {"a root of its own",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.root.bytes[0] = std::byte{1};
       p.Log(r);
     },
     "place of its own"},
    {"no id",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.id = RecordId();
       p.Log(r);
     },
     "place of its own"},
    {"no state",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.refs.clear();
       p.Log(r);
     },
     "something else than a state"},
    {"two states",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.refs.push_back(r.refs[0]);
       p.Log(r);
     },
     "something else than a state"},
    {"a state that is not there",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.refs[0].id = Sha256::Of(AsBytes("gone"));
       p.Log(r);
     },
     "state is missing"},
    {"made before 1970",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.made_ms = -1;
       p.Log(r);
     },
     "time that cannot be"},
    {"made in a million years",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.made_ms = INT64_MAX;
       p.Log(r);
     },
     "time that cannot be"},
    {"called latest",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.name = "latest";
       p.Log(ToRecord(c));
     },
     "meaning of their own"},
    {"called 17",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.name = "17";
       p.Log(ToRecord(c));
     },
     "digits alone"},
    {"an unknown kind of checkpoint",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.kind = CheckpointKind{9};
       p.Log(ToRecord(c));
     },
     "unknown kind"},
    {"from nowhere",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.meta.clear();
       p.Log(ToRecord(c));
     },
     "where it comes from"},
    {"the number of where it comes from is a word",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.meta["origin.seq"] = "12x";
       p.Log(ToRecord(c));
     },
     "where it comes from"},
    {"more files than it has",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.files = 2;
       p.Log(ToRecord(c));
     },
     "size it claims is a lie"},
    {"more bytes than it has",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       c.bytes = UINT64_MAX;
       p.Log(ToRecord(c));
     },
     "size it claims is a lie"},
    {"a thousand and one meta",
     [](Parts& p) {
       Checkpoint c = Must(ToCheckpoint(p.Whole()));
       for (int i = 0; i < 1001; ++i) c.meta[std::to_string(i)] = "";
       p.Log(ToRecord(c));
     },
     "too much meta"},
    {"the same checkpoint twice",
     [](Parts& p) {
       const LogRecord r = p.Whole();
       p.Log(r);
       p.Log(r);
     },
     "there twice"},
    {"a record that is cut short",
     [](Parts& p) {
       Bytes raw = EncodeLogRecord(p.Whole());
       raw.resize(60);
       p.Put(ObjectType::kLog, raw);
     },
     "record"},
    {"a record that claims 2^60 references",
     [](Parts& p) {
       LogRecord r = p.Whole();
       r.refs.clear();
       r.fields = {};
       Bytes raw = EncodeLogRecord(r);
       raw.pop_back();
       ByteWriter(raw).Varint(uint64_t{1} << 60);
       p.Put(ObjectType::kLog, raw);
     },
     "impossible reference count"},
    {"a root record",
     [](Parts& p) {
       p.Good();
       p.Log(ToRecord(Root{.id = {}, .path = "/"}, RecordId(), 0));
     },
     "kind of record"},
    {"an operation",
     [](Parts& p) {
       p.Good();
       LogRecord r;
       r.kind = RecordKind::kOperation;
       p.Log(r);
     },
     "kind of record"},
    {"a drop of what is here",
     [](Parts& p) {
       p.Good();
       p.Log(MakeDrop(RecordId(), 0, {RecordId()}));
     },
     "kind of record"},
    {"a purge of what is here",
     [](Parts& p) {
       p.Good();
       p.Log(MakePurge(RecordId(), 0, {}, "mine"));
     },
     "kind of record"},

    // --- annotations
    {"an annotation before any checkpoint",
     [](Parts& p) {
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       p.Log(r);
     },
     "about nothing here"},
    {"an annotation of something else",
     [](Parts& p) {
       p.Good();
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, RecordId().span());
       r.fields.AddNumber(4, 1);
       p.Log(r);
     },
     "about nothing here"},
    {"two annotations",
     [](Parts& p) {
       const LogRecord c = p.Whole();
       p.Log(c);
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, c.id.span());
       r.fields.AddNumber(4, 1);
       p.Log(r);
       p.Log(r);
     },
     "about nothing here"},
    {"an annotation that says nothing",
     [](Parts& p) {
       const LogRecord c = p.Whole();
       p.Log(c);
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, c.id.span());
       p.Log(r);
     },
     "says nothing"},
    {"an annotation with a name",
     [](Parts& p) {
       const LogRecord c = p.Whole();
       p.Log(c);
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, c.id.span());
       r.fields.Add(2, std::string_view("latest"));
       p.Log(r);
     },
     "cannot be"},
    {"an annotation that keeps something alive",
     [](Parts& p) {
       const LogRecord c = p.Whole();
       p.Log(c);
       LogRecord r;
       r.kind = RecordKind::kAnnotation;
       r.fields.Add(1, c.id.span());
       r.fields.AddNumber(4, 1);
       r.refs = c.refs;
       p.Log(r);
     },
     "about nothing here"},
};

// How much more memory than now `work` takes at its peak; what was freed before counts.
long ExtraKilobytes(const std::function<void()>& work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins here
  auto read = [](std::string_view field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with(field)) return std::atol(line.c_str() + field.size());
    return 0L;
  };
  const long before = read("VmRSS:");
  work();
  return read("VmHWM:") - before;
}

TEST(HostileBundle, WhatTheRowsAreMadeOfIsTaken) {
  Parts parts;
  parts.Good();
  const Bytes bytes = parts.Build();
  Machine machine(3);
  const ImportReport report = Must(machine.Import(bytes));
  EXPECT_EQ(report.imported, 1u);
  EXPECT_EQ(machine.Holds(report.checkpoints[0].checkpoint),
            (std::map<std::string, std::string>{{"f", "hello"}}));
  // With rules too, and content that somebody cut in another way than we do.
  Parts more;
  const std::string large = Noise(9, 1'200'000);
  std::vector<Chunk> chunks;
  for (size_t at = 0; at < large.size(); at += 400'000)
    chunks.push_back({more.Blob(large.substr(at, 400'000)), 400'000});
  const ObjectId id = more.PutAs(ObjectType::kChunks, Sha256::Of(AsBytes(large)),
                                 RawChunks(1'200'000, chunks));
  const ObjectId tree = more.Tree({more.File("big", id, 1'200'000)});
  const ObjectId rules = more.Put(ObjectType::kNode, EncodeNode(GoodRules()));
  LogRecord record = more.CheckpointRecord(more.State(tree, rules), 1, 1'200'000);
  record.id.bytes[1] = std::byte{1};
  more.Log(record);
  const ImportReport second = Must(machine.Import(more.Build()));
  EXPECT_EQ(machine.Holds(second.checkpoints[0].checkpoint).at("big"), large);
}

TEST(HostileBundle, EveryRowIsRefusedForItsReason) {
  Machine machine(3);
  (void)machine.Checkpoints();
  const std::string before = machine.StoreText();
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Parts parts;
    row.make(parts);
    const Bytes bytes = parts.Build();
    auto source = BundleInMemory(bytes);
    auto reader = BundleReader::Open(*source);
    if (reader.ok()) {
      ADD_FAILURE() << "was taken";
      continue;
    }
    EXPECT_THAT(reader.error().what, ::testing::HasSubstr(row.says));
    EXPECT_FALSE(machine.Import(bytes).ok());
  }
  EXPECT_EQ(machine.StoreText(), before);
  EXPECT_GE(std::size(kRows), 60u);
  std::cout << std::size(kRows) << " hostile bundles refused\n";
}

// What claims much is refused by what it claims: no row may take memory or time.
TEST(HostileBundle, NoRowTakesMuchMemoryOrTime) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own memory counts";
#endif
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Parts parts;
    row.make(parts);
    const Bytes bytes = parts.Build();
    const std::clock_t start = std::clock();  // of this process, not of the wall
    EXPECT_LT(ExtraKilobytes([&] {
                auto source = BundleInMemory(bytes);
                EXPECT_FALSE(BundleReader::Open(*source).ok());
              }),
              160 << 10);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 2.0);
  }
}

// The most that one record can make of a few bytes: as many entries as a tree may have,
// as small as they can be.
TEST(HostileBundle, TheLargestTreeTakesBoundedMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own memory counts";
#endif
  Bytes bytes;
  {
    Parts parts;
    Entries links;
    for (uint64_t i = 0; i < kMaxBundleTreeEntries; ++i) {
      // Rising, four bytes.
      std::string name = "aaaa";
      for (uint64_t rest = i, at = 4; at-- > 0; rest /= 50)
        name[at] =
            static_cast<char>('a' + rest % 50 % 26 + (rest % 50 >= 26 ? 128 : 0));
      links.push_back(parts.Link(name, "t"));
    }
    std::sort(links.begin(), links.end(),
              [](const TreeEntry& a, const TreeEntry& b) { return a.name < b.name; });
    const uint64_t count = links.size();
    parts.Around(links, count, 0);
    bytes = parts.Build();
  }
  const long extra = ExtraKilobytes([&] {
    auto source = BundleInMemory(bytes);
    Must(BundleReader::Open(*source));
  });
  std::cout << "a bundle of " << bytes.size() << " bytes took " << extra << " KiB\n";
  EXPECT_GT(extra, 10 << 10);
  EXPECT_LT(extra, 400 << 10);
}

}  // namespace
}  // namespace belay::test
