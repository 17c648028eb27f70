#include "store/object.h"

#include <gtest/gtest.h>

#include "store/chunker.h"

namespace belay::test {
namespace {

ObjectId ObjectOf(uint8_t n) {
  ObjectId id;
  id.bytes[0] = static_cast<std::byte>(n);
  return id;
}

TreeEntry File(std::string name, uint64_t size = 3) {
  TreeEntry e;
  e.name = std::move(name);
  e.mode = 0644;
  e.uid = 1000;
  e.gid = 100;
  e.size = size;
  e.id = ObjectOf(1);
  return e;
}
TreeEntry Link(std::string name, std::string target) {
  TreeEntry e;
  e.name = std::move(name);
  e.kind = EntryKind::kSymlink;
  e.mode = 0777;
  e.target = std::move(target);
  return e;
}
TreeEntry Dir(std::string name) {
  TreeEntry e;
  e.name = std::move(name);
  e.kind = EntryKind::kDirectory;
  e.mode = 0755;
  e.id = ObjectOf(2);
  return e;
}

// --- trees that are fine -------------------------------------------------------------

TEST(Tree, ComesBackAsItWas) {
  Tree tree;
  tree.entries = {Dir("A"), File("a"), Link("b", "../elsewhere"),
                  File("c", uint64_t{1} << 40)};
  tree.entries[0].xattrs = ObjectOf(9);
  tree.entries[3].mode = 07777;
  tree.entries[3].uid = 0xfffffffe;
  auto encoded = EncodeTree(tree);
  ASSERT_TRUE(encoded.ok());
  auto decoded = DecodeTree(*encoded);
  ASSERT_TRUE(decoded.ok()) << decoded.error().what;
  EXPECT_EQ(*decoded, tree);
  EXPECT_EQ(*EncodeTree(*decoded), *encoded);
}

TEST(Tree, EmptyIsTwoBytes) {
  auto encoded = EncodeTree({});
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(ToHex(*encoded), "0100");
  EXPECT_TRUE(DecodeTree(*encoded).ok());
}

TEST(Tree, HasTheBytesTheFormatSays) {
  Tree tree;
  tree.entries = {File("a", 5)};
  tree.entries[0].uid = 1000;
  tree.entries[0].gid = 300;
  EXPECT_EQ(ToHex(*EncodeTree(tree)),
            "01"
            "01"
            "0161"
            "01"
            "00"
            "a403"
            "e807"
            "ac02"
            "05"
            "0100000000000000000000000000000000000000000000000000000000000000");
}

TEST(Tree, CutShortAnywhereIsRefused) {
  Tree tree;
  tree.entries = {Dir("A"), File("a"), Link("b", "x")};
  tree.entries[0].xattrs = ObjectOf(9);
  Bytes encoded = *EncodeTree(tree);
  for (size_t length = 0; length < encoded.size(); ++length)
    EXPECT_FALSE(DecodeTree(ByteSpan(encoded).first(length)).ok()) << length;
}

TEST(Tree, OneValueHasOneEncoding) {
  // Whatever decodes after a bit was flipped encodes to exactly those bytes again.
  Tree tree;
  tree.entries = {Dir("A"), File("a", 300), Link("b", "target")};
  Bytes encoded = *EncodeTree(tree);
  int accepted = 0;
  for (size_t at = 0; at < encoded.size(); ++at)
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes flipped = encoded;
      flipped[at] ^= static_cast<std::byte>(1u << bit);
      auto decoded = DecodeTree(flipped);
      if (!decoded.ok()) continue;
      ++accepted;
      auto again = EncodeTree(*decoded);
      ASSERT_TRUE(again.ok()) << at << " bit " << bit << ": " << again.error().what;
      EXPECT_EQ(*again, flipped) << at << " bit " << bit;
    }
  EXPECT_GT(accepted, 0);
}

// --- names ---------------------------------------------------------------------------

struct NameRow {
  const char* why;
  std::string name;
};
void PrintTo(const NameRow& row, std::ostream* out) { *out << row.why; }
std::string NameOfRow(const ::testing::TestParamInfo<NameRow>& info) {
  return "Row" + std::to_string(info.index);
}

// Bytes of a tree with one file called `name`, as a forger would write them.
Bytes ForgeTree(std::string_view name) {
  Bytes out;
  ByteWriter w(out);
  w.U8(1);
  w.Varint(1);
  w.Sized(name);
  w.U8(1);
  w.U8(0);
  w.Varint(0644);
  w.Varint(0);
  w.Varint(0);
  w.Varint(1);
  w.Raw(ObjectOf(1).span());
  return out;
}

class RefusedName : public ::testing::TestWithParam<NameRow> {};
TEST_P(RefusedName, NeitherWrittenNorRead) {
  const std::string& name = GetParam().name;
  Tree tree;
  tree.entries = {File(name)};
  auto encoded = EncodeTree(tree);
  ASSERT_FALSE(encoded.ok()) << GetParam().why;
  EXPECT_EQ(encoded.error().code, Errc::kInvalid);
  auto decoded = DecodeTree(ForgeTree(name));
  ASSERT_FALSE(decoded.ok()) << GetParam().why;
  EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
}
using std::string_literals::operator""s;
INSTANTIATE_TEST_SUITE_P(
    Tree, RefusedName,
    ::testing::Values(
        NameRow{"empty", ""}, NameRow{"dot", "."}, NameRow{"dot dot", ".."},
        NameRow{"slash", "/"}, NameRow{"slash inside", "a/b"},
        NameRow{"slash first", "/a"}, NameRow{"slash last", "a/"},
        NameRow{"way out", "../a"}, NameRow{"way out inside", "a/../../b"},
        NameRow{"NUL", "\0"s}, NameRow{"NUL inside", "a\0b"s},
        NameRow{"NUL last", "a\0"s}, NameRow{"256 bytes", std::string(256, 'a')},
        NameRow{".git", ".git"}, NameRow{"upper case", ".GIT"},
        NameRow{"mixed case", ".gIt"}, NameRow{"one trailing dot", ".git."},
        NameRow{"trailing dots", ".git..."}, NameRow{"one trailing space", ".git "},
        NameRow{"trailing dots and spaces", ".git . ."},
        NameRow{"NTFS stream", ".git::$INDEX_ALLOCATION"},
        NameRow{"NTFS named stream", ".git:x:$DATA"}, NameRow{"colon", ".git:"},
        NameRow{"short name", "git~1"}, NameRow{"short name, upper case", "GIT~1"},
        NameRow{"short name, trailing dot", "git~1."},
        NameRow{"short name, trailing space", "Git~1 "},
        NameRow{"short name with stream", "git~1:a"},
        NameRow{"ZWNJ inside", ".g\u200cit"}, NameRow{"ZWJ first", "\u200d.git"},
        NameRow{"LRM last", ".git\u200e"}, NameRow{"RLM", ".gi\u200ft"},
        NameRow{"LRE", ".g\u202ait"}, NameRow{"RLO", "\u202e.git"},
        NameRow{"PDF", ".git\u202c"}, NameRow{"ISS", ".g\u206ait"},
        NameRow{"NODS", ".git\u206f"}, NameRow{"BOM", "\ufeff.git"},
        NameRow{"BOM in upper case", ".\ufeffGIT"},
        NameRow{"all of it", "\u200c.\u200dG\ufeffI\u202aT . "}),
    NameOfRow);

class AcceptedName : public ::testing::TestWithParam<NameRow> {};
TEST_P(AcceptedName, WrittenAndRead) {
  Tree tree;
  tree.entries = {File(GetParam().name)};
  auto encoded = EncodeTree(tree);
  ASSERT_TRUE(encoded.ok()) << GetParam().why << ": " << encoded.error().what;
  auto decoded = DecodeTree(*encoded);
  ASSERT_TRUE(decoded.ok()) << GetParam().why;
  EXPECT_EQ(decoded->entries[0].name, GetParam().name);
}
INSTANTIATE_TEST_SUITE_P(
    Tree, AcceptedName,
    ::testing::Values(
        NameRow{"255 bytes", std::string(255, 'a')}, NameRow{"three dots", "..."},
        NameRow{"gitignore", ".gitignore"}, NameRow{"gitmodules", ".gitmodules"},
        NameRow{"git without dot", "git"}, NameRow{"two dots", "..git"},
        NameRow{"space first", " .git"}, NameRow{"another short name", "git~2"},
        NameRow{"longer short name", "git~10"}, NameRow{"newline", "a\nb"},
        NameRow{"escape", "\x1b[2J"}, NameRow{"backslash", "a\\b"},
        NameRow{"backslash way out", "..\\a"}, NameRow{"not UTF-8", "\xff\xfe"},
        NameRow{"cut UTF-8 after .git", ".git\xe2\x80"}, NameRow{"NFC", "caf\u00e9"},
        NameRow{"only invisible", "\u200c"}, NameRow{"dash", "-rf"},
        NameRow{"colon first", ":a"}, NameRow{"tilde", "~"},
        NameRow{"fullwidth", "．git"}),
    NameOfRow);

// --- encodings that are refused ------------------------------------------------------

struct BytesRow {
  const char* why;
  std::function<void(ByteWriter&)> write;
};
void PrintTo(const BytesRow& row, std::ostream* out) { *out << row.why; }
std::string NameOfBytesRow(const ::testing::TestParamInfo<BytesRow>& info) {
  return "Row" + std::to_string(info.index);
}
Bytes Written(const BytesRow& row) {
  Bytes out;
  ByteWriter w(out);
  row.write(w);
  return out;
}

void Head(ByteWriter& w, uint64_t count) {
  w.U8(1);
  w.Varint(count);
}
void FileEntry(ByteWriter& w, std::string_view name, uint8_t kind = 1,
               uint8_t flags = 0, uint64_t mode = 0644, uint64_t uid = 0,
               uint64_t gid = 0) {
  w.Sized(name);
  w.U8(kind);
  w.U8(flags);
  w.Varint(mode);
  w.Varint(uid);
  w.Varint(gid);
  if (kind == 1) w.Varint(1);
  if (kind == 2)
    w.Sized("target");
  else
    w.Raw(ObjectOf(1).span());
}

class RefusedTree : public ::testing::TestWithParam<BytesRow> {};
TEST_P(RefusedTree, IsCorrupt) {
  auto decoded = DecodeTree(Written(GetParam()));
  ASSERT_FALSE(decoded.ok()) << GetParam().why;
  EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
}
INSTANTIATE_TEST_SUITE_P(Tree, RefusedTree,
                         ::testing::Values(BytesRow{"nothing", [](ByteWriter&) {}},
                                           BytesRow{"version 0",
                                                    [](ByteWriter& w) {
                                                      w.U8(0), w.Varint(0);
                                                    }},
                                           BytesRow{"version 2",
                                                    [](ByteWriter& w) {
                                                      w.U8(2), w.Varint(0);
                                                    }},
                                           BytesRow{"no count",
                                                    [](ByteWriter& w) { w.U8(1); }},
                                           BytesRow{"count of one, no entry",
                                                    [](ByteWriter& w) { Head(w, 1); }},
                                           BytesRow{"count beyond memory",
                                                    [](ByteWriter& w) {
                                                      Head(w, UINT64_MAX),
                                                          FileEntry(w, "a");
                                                    }},
                                           BytesRow{"count one too many",
                                                    [](ByteWriter& w) {
                                                      Head(w, 2), FileEntry(w, "a");
                                                    }},
                                           BytesRow{"count one too few",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), FileEntry(w, "a"),
                                                          FileEntry(w, "b");
                                                    }},
                                           BytesRow{"count not in shortest form",
                                                    [](ByteWriter& w) {
                                                      w.U8(1), w.U8(0x81), w.U8(0x00),
                                                          FileEntry(w, "a");
                                                    }},
                                           BytesRow{"count over 64 bits",
                                                    [](ByteWriter& w) {
                                                      w.U8(1);
                                                      for (int i = 0; i < 9; ++i)
                                                        w.U8(0xff);
                                                      w.U8(0x02);
                                                    }},
                                           BytesRow{"one byte behind the end",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), FileEntry(w, "a"),
                                                          w.U8(0);
                                                    }},
                                           BytesRow{"unsorted",
                                                    [](ByteWriter& w) {
                                                      Head(w, 2), FileEntry(w, "b"),
                                                          FileEntry(w, "a");
                                                    }},
                                           BytesRow{"the same name twice",
                                                    [](ByteWriter& w) {
                                                      Head(w, 2), FileEntry(w, "a"),
                                                          FileEntry(w, "a");
                                                    }},
                                           BytesRow{
                                               "a file and a directory of one name",
                                               [](ByteWriter& w) {
                                                 Head(w, 2), FileEntry(w, "a"),
                                                     FileEntry(w, "a", 3);
                                               }},
                                           BytesRow{"git's order instead of bytes",
                                                    [](ByteWriter& w) {
                                                      Head(w, 2), FileEntry(w, "a.b"),
                                                          FileEntry(w, "a", 3);
                                                    }},
                                           BytesRow{"kind 0",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), FileEntry(w, "a", 0);
                                                    }},
                                           BytesRow{"kind 4",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), FileEntry(w, "a", 4);
                                                    }},
                                           BytesRow{"kind 255",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1),
                                                          FileEntry(w, "a", 255);
                                                    }},
                                           BytesRow{"unknown flag",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1),
                                                          FileEntry(w, "a", 1, 2);
                                                    }},
                                           BytesRow{"attributes announced and absent",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1),
                                                          FileEntry(w, "a", 1, 1);
                                                    }},
                                           BytesRow{"attributes of zero",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1),
                                                          FileEntry(w, "a", 1, 1),
                                                          w.Zeros(32);
                                                    }},
                                           BytesRow{"mode 010000",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), FileEntry(w, "a", 1,
                                                                            0, 010000);
                                                    }},
                                           BytesRow{
                                               "mode of a regular file with its type",
                                               [](ByteWriter& w) {
                                                 Head(w, 1),
                                                     FileEntry(w, "a", 1, 0, 0100644);
                                               }},
                                           BytesRow{"mode over 32 bits",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1),
                                                          FileEntry(
                                                              w, "a", 1, 0,
                                                              (uint64_t{1} << 32) +
                                                                  0644);
                                                    }},
                                           BytesRow{"uid -1",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1),
                                                          FileEntry(w, "a", 1, 0, 0644,
                                                                    0xffffffff);
                                                    }},
                                           BytesRow{"gid -1",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1),
                                                          FileEntry(w, "a", 1, 0, 0644,
                                                                    0, 0xffffffff);
                                                    }},
                                           BytesRow{"uid over 32 bits",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1),
                                                          FileEntry(w, "a", 1, 0, 0644,
                                                                    uint64_t{1} << 32);
                                                    }},
                                           BytesRow{"name longer than what is there",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), w.Varint(200),
                                                          w.Zeros(40);
                                                    }},
                                           BytesRow{"file without content id",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), w.Sized("a"), w.U8(1),
                                                          w.U8(0), w.Varint(0644);
                                                      w.Varint(0), w.Varint(0),
                                                          w.Varint(0), w.Zeros(32);
                                                    }},
                                           BytesRow{"directory without tree id",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), w.Sized("a"), w.U8(3),
                                                          w.U8(0), w.Varint(0755);
                                                      w.Varint(0), w.Varint(0),
                                                          w.Zeros(32);
                                                    }},
                                           BytesRow{"symlink to nothing",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), w.Sized("a"), w.U8(2),
                                                          w.U8(0), w.Varint(0777);
                                                      w.Varint(0), w.Varint(0),
                                                          w.Sized("");
                                                    }},
                                           BytesRow{"symlink with NUL",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), w.Sized("a"), w.U8(2),
                                                          w.U8(0), w.Varint(0777);
                                                      w.Varint(0), w.Varint(0),
                                                          w.Sized("a\0b"s);
                                                    }},
                                           BytesRow{"symlink of 4096 bytes",
                                                    [](ByteWriter& w) {
                                                      Head(w, 1), w.Sized("a"), w.U8(2),
                                                          w.U8(0), w.Varint(0777);
                                                      w.Varint(0), w.Varint(0),
                                                          w.Sized(
                                                              std::string(4096, 'x'));
                                                    }}),
                         NameOfBytesRow);

TEST(Tree, AcceptsTheLongestSymlink) {
  Tree tree;
  tree.entries = {Link("a", std::string(4095, 'x'))};
  auto encoded = EncodeTree(tree);
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(*DecodeTree(*encoded), tree);
}

// --- state, node, chunks -------------------------------------------------------------

TEST(State, ComesBackAsItWas) {
  State state{ObjectOf(1), ObjectOf(2), ObjectOf(3)};
  EXPECT_EQ(*DecodeState(EncodeState(state)), state);
  EXPECT_EQ(EncodeState(state).size(), 97u);
  State bare{ObjectOf(1), {}, {}};
  EXPECT_EQ(*DecodeState(EncodeState(bare)), bare);
}

class RefusedState : public ::testing::TestWithParam<BytesRow> {};
TEST_P(RefusedState, IsCorrupt) {
  auto decoded = DecodeState(Written(GetParam()));
  ASSERT_FALSE(decoded.ok()) << GetParam().why;
  EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
}
void ThreeIds(ByteWriter& w) {
  for (uint8_t i = 1; i <= 3; ++i) w.Raw(ObjectOf(i).span());
}
INSTANTIATE_TEST_SUITE_P(
    State, RefusedState,
    ::testing::Values(
        BytesRow{"nothing", [](ByteWriter&) {}},
        BytesRow{"version 0", [](ByteWriter& w) { w.U8(0), ThreeIds(w); }},
        BytesRow{"version 2", [](ByteWriter& w) { w.U8(2), ThreeIds(w); }},
        BytesRow{"one byte short", [](ByteWriter& w) { w.U8(1), w.Zeros(95); }},
        BytesRow{"one byte behind the end",
                 [](ByteWriter& w) { w.U8(1), ThreeIds(w), w.U8(0); }},
        BytesRow{"no tree", [](ByteWriter& w) { w.U8(1), w.Zeros(96); }}),
    NameOfBytesRow);

TEST(Node, ComesBackAsItWas) {
  Node node;
  node.refs = {{ObjectType::kBlob, ObjectOf(1)},
               {static_cast<ObjectType>(77), ObjectOf(2)}};
  node.fields.Add(3, "text");
  node.fields.AddNumber(1, 300);
  node.fields.Add(3, "a list");
  Fields inner;
  inner.Add(1, "k");
  node.fields.AddNested(9, inner);
  auto decoded = DecodeNode(EncodeNode(node));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, node);
  EXPECT_EQ(decoded->fields.Number(1), 300u);
  EXPECT_EQ(decoded->fields.Text(3), "text");
  EXPECT_EQ(decoded->fields.All(3).size(), 2u);
  EXPECT_FALSE(decoded->fields.has(2));
  EXPECT_EQ(*ReferencesOf(ObjectType::kNode, EncodeNode(node)), node.refs);
}

TEST(Node, ANumberThatIsNoneIsAbsent) {
  Fields fields;
  fields.Add(1, "\x80");
  fields.Add(2, "\x01\x01");
  fields.Add(3, "");
  EXPECT_EQ(fields.Number(1), std::nullopt);
  EXPECT_EQ(fields.Number(2), std::nullopt);
  EXPECT_EQ(fields.Number(3), std::nullopt);
  EXPECT_EQ(fields.Number(4), std::nullopt);
}

class RefusedNode : public ::testing::TestWithParam<BytesRow> {};
TEST_P(RefusedNode, IsCorrupt) {
  auto decoded = DecodeNode(Written(GetParam()));
  ASSERT_FALSE(decoded.ok()) << GetParam().why;
  EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
}
INSTANTIATE_TEST_SUITE_P(
    Node, RefusedNode,
    ::testing::Values(
        BytesRow{"nothing", [](ByteWriter&) {}},
        BytesRow{"version 2", [](ByteWriter& w) { Head(w, 0), w.U8(2); }},
        BytesRow{"impossible count", [](ByteWriter& w) { Head(w, 1 << 30); }},
        BytesRow{"count beyond what is there",
                 [](ByteWriter& w) { Head(w, 2), w.U8(1), w.Raw(ObjectOf(1).span()); }},
        BytesRow{"tags that fall",
                 [](ByteWriter& w) {
                   Head(w, 0), w.Varint(2), w.Sized("a"), w.Varint(1), w.Sized("b");
                 }},
        BytesRow{"a tag without value", [](ByteWriter& w) { Head(w, 0), w.Varint(2); }},
        BytesRow{"a value cut short",
                 [](ByteWriter& w) { Head(w, 0), w.Varint(2), w.Varint(9), w.U8(1); }},
        BytesRow{"a tag not in shortest form",
                 [](ByteWriter& w) { Head(w, 0), w.U8(0x82), w.U8(0), w.Sized("a"); }},
        BytesRow{"a length not in shortest form",
                 [](ByteWriter& w) {
                   Head(w, 0), w.Varint(1), w.U8(0x81), w.U8(0), w.U8(1);
                 }}),
    NameOfBytesRow);

TEST(Chunks, ComesBackAsItWas) {
  ChunkList list;
  list.chunks = {{ObjectOf(1), 1},
                 {ObjectOf(2), static_cast<uint32_t>(kMaxChunk)},
                 {ObjectOf(1), 7}};
  list.total = 8 + kMaxChunk;
  Bytes encoded = EncodeChunks(list);
  EXPECT_EQ(*DecodeChunks(encoded), list);
  auto refs = ReferencesOf(ObjectType::kChunks, encoded);
  ASSERT_TRUE(refs.ok());
  EXPECT_EQ(refs->size(), 3u);
  EXPECT_EQ(refs->at(1), (ObjectKey{ObjectType::kBlob, ObjectOf(2)}));
}

TEST(Chunks, AnyFlippedBitAndAnyCutIsRefused) {
  ChunkList list;
  list.chunks = {{ObjectOf(1), 1000}, {ObjectOf(2), 2000}};
  list.total = 3000;
  const Bytes encoded = EncodeChunks(list);
  for (size_t at = 0; at < encoded.size(); ++at) {
    EXPECT_FALSE(DecodeChunks(ByteSpan(encoded).first(at)).ok()) << at;
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes flipped = encoded;
      flipped[at] ^= static_cast<std::byte>(1u << bit);
      EXPECT_FALSE(DecodeChunks(flipped).ok()) << at << " bit " << bit;
    }
  }
}

// With a check that matches: these are refused for what they say.
class RefusedChunks : public ::testing::TestWithParam<BytesRow> {};
TEST_P(RefusedChunks, IsCorrupt) {
  Bytes encoded = Written(GetParam());
  ByteWriter(encoded).U64(Check64(encoded));
  auto decoded = DecodeChunks(encoded);
  ASSERT_FALSE(decoded.ok()) << GetParam().why;
  EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
}
void OneChunk(ByteWriter& w, uint64_t length) {
  w.Raw(ObjectOf(1).span());
  w.Varint(length);
}
INSTANTIATE_TEST_SUITE_P(
    Chunks, RefusedChunks,
    ::testing::Values(
        BytesRow{"nothing", [](ByteWriter&) {}},
        BytesRow{
            "version 0",
            [](ByteWriter& w) { w.U8(0), w.Varint(1), w.Varint(1), OneChunk(w, 1); }},
        BytesRow{
            "version 2",
            [](ByteWriter& w) { w.U8(2), w.Varint(1), w.Varint(1), OneChunk(w, 1); }},
        BytesRow{
            "a chunk of nothing",
            [](ByteWriter& w) { w.U8(1), w.Varint(0), w.Varint(1), OneChunk(w, 0); }},
        BytesRow{"a chunk over 512 KiB",
                 [](ByteWriter& w) {
                   w.U8(1), w.Varint(kMaxChunk + 1), w.Varint(1);
                   OneChunk(w, kMaxChunk + 1);
                 }},
        BytesRow{"a length over 32 bits",
                 [](ByteWriter& w) {
                   w.U8(1), w.Varint((uint64_t{1} << 32) + 1), w.Varint(1);
                   OneChunk(w, (uint64_t{1} << 32) + 1);
                 }},
        BytesRow{
            "a total that is too much",
            [](ByteWriter& w) { w.U8(1), w.Varint(2), w.Varint(1), OneChunk(w, 1); }},
        BytesRow{
            "a total that is too little",
            [](ByteWriter& w) { w.U8(1), w.Varint(0), w.Varint(1), OneChunk(w, 1); }},
        BytesRow{"impossible count",
                 [](ByteWriter& w) {
                   w.U8(1), w.Varint(1), w.Varint(UINT64_MAX), OneChunk(w, 1);
                 }},
        BytesRow{"count one too few",
                 [](ByteWriter& w) {
                   w.U8(1), w.Varint(2), w.Varint(1), OneChunk(w, 1), OneChunk(w, 1);
                 }},
        BytesRow{"length not in shortest form",
                 [](ByteWriter& w) {
                   w.U8(1), w.Varint(1), w.Varint(1), w.Raw(ObjectOf(1).span());
                   w.U8(0x81), w.U8(0);
                 }},
        BytesRow{"a byte before the check",
                 [](ByteWriter& w) {
                   w.U8(1), w.Varint(1), w.Varint(1), OneChunk(w, 1), w.U8(0);
                 }}),
    NameOfBytesRow);

TEST(References, AreWhatTheObjectNames) {
  Tree tree;
  tree.entries = {Dir("A"), File("a"), Link("b", "x")};
  tree.entries[2].xattrs = ObjectOf(9);
  EXPECT_EQ(*ReferencesOf(ObjectType::kTree, *EncodeTree(tree)),
            (std::vector<ObjectKey>{{ObjectType::kTree, ObjectOf(2)},
                                    {ObjectType::kBlob, ObjectOf(1)},
                                    {ObjectType::kBlob, ObjectOf(9)}}));
  EXPECT_EQ(
      *ReferencesOf(ObjectType::kState, EncodeState({ObjectOf(1), ObjectOf(2), {}})),
      (std::vector<ObjectKey>{{ObjectType::kTree, ObjectOf(1)},
                              {ObjectType::kNode, ObjectOf(2)}}));
  EXPECT_TRUE(ReferencesOf(ObjectType::kBlob, AsBytes("x"))->empty());
  EXPECT_TRUE(ReferencesOf(static_cast<ObjectType>(77), AsBytes("x"))->empty());
  EXPECT_FALSE(ReferencesOf(ObjectType::kTree, AsBytes("x")).ok());
}

TEST(ObjectType, HasAName) {
  EXPECT_EQ(ObjectTypeName(ObjectType::kChunks), "chunks");
  EXPECT_EQ(ObjectTypeName(static_cast<ObjectType>(9)), "type 9");
}

}  // namespace
}  // namespace belay::test
