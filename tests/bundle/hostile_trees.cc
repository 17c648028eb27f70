// Files, records and trees that are wrong.

#include "bundle/hostile_rows.h"

namespace belay::test {
namespace {

const Row kTreeRows[] = {
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

};

}  // namespace

std::span<const Row> RowsOfTrees() { return kTreeRows; }

}  // namespace belay::test
