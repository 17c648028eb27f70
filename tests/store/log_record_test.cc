#include "store/log_record.h"

#include <gtest/gtest.h>

namespace belay::test {
namespace {

ObjectId Id(uint8_t n) {
  ObjectId id;
  id.bytes[0] = static_cast<std::byte>(n);
  return id;
}
template <class T>
T Short(uint8_t n) {
  T id;
  id.bytes[15] = static_cast<std::byte>(n);
  return id;
}

LogRecord SomeRecord() {
  LogRecord r;
  r.kind = RecordKind::kOperation;
  r.seq = 0x0102030405060708;
  r.id = Short<RecordId>(1);
  r.root = Short<RootId>(2);
  r.made_ms = -5;
  r.refs = {{ObjectType::kState, Id(1)}, {static_cast<ObjectType>(200), Id(2)}};
  r.fields.Add(1, "rollback");
  r.fields.Add(2, "x");
  r.fields.Add(2, "y");
  r.fields.Add(1000, "a tag nobody knows");
  return r;
}

TEST(LogRecord, ComesBackAsItWasWithWhatItDoesNotKnow) {
  LogRecord r = SomeRecord();
  r.kind = static_cast<RecordKind>(40000);
  auto decoded = DecodeLogRecord(EncodeLogRecord(r));
  ASSERT_TRUE(decoded.ok()) << decoded.error().what;
  EXPECT_EQ(*decoded, r);
  EXPECT_EQ(EncodeLogRecord(*decoded), EncodeLogRecord(r));
}

TEST(LogRecord, HasTheBytesTheFormatSays) {
  LogRecord r;
  r.kind = RecordKind::kDrop;
  r.seq = 258;
  r.id = Short<RecordId>(7);
  r.made_ms = -1;
  r.fields.Add(1, "ab");
  EXPECT_EQ(ToHex(EncodeLogRecord(r)),
            "01"
            "0700"
            "0201000000000000"
            "00000000000000000000000000000007"
            "00000000000000000000000000000000"
            "ffffffffffffffff"
            "00"
            "01"
            "02"
            "6162");
}

TEST(LogRecord, CutShortIsRefusedOrAnotherWholeRecord) {
  // Fields run to the end, so a cut between two of them is a record without the last;
  // the hash it is stored under tells. Everywhere else a cut is refused.
  const Bytes encoded = EncodeLogRecord(SomeRecord());
  size_t accepted = 0;
  for (size_t length = 0; length < encoded.size(); ++length) {
    auto decoded = DecodeLogRecord(ByteSpan(encoded).first(length));
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
      continue;
    }
    ++accepted;
    EXPECT_EQ(EncodeLogRecord(*decoded).size(), length);
  }
  EXPECT_EQ(accepted, SomeRecord().fields.items().size());
}

struct Row {
  const char* why;
  std::function<void(Bytes&)> change;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.why; }
constexpr size_t kRefCount = 1 + 2 + 8 + 16 + 16 + 8;

class RefusedRecord : public ::testing::TestWithParam<Row> {};
TEST_P(RefusedRecord, IsCorrupt) {
  Bytes encoded = EncodeLogRecord(SomeRecord());
  GetParam().change(encoded);
  auto decoded = DecodeLogRecord(encoded);
  ASSERT_FALSE(decoded.ok()) << GetParam().why;
  EXPECT_EQ(decoded.error().code, Errc::kCorrupt);
}
INSTANTIATE_TEST_SUITE_P(
    LogRecord, RefusedRecord,
    ::testing::Values(
        Row{"nothing", [](Bytes& b) { b.clear(); }},
        Row{"version 0", [](Bytes& b) { b[0] = std::byte{0}; }},
        Row{"version 2", [](Bytes& b) { b[0] = std::byte{2}; }},
        Row{"no reference count", [](Bytes& b) { b.resize(kRefCount); }},
        Row{"impossible reference count",
            [](Bytes& b) { b[kRefCount] = std::byte{100}; }},
        Row{"reference count not in shortest form",
            [](Bytes& b) {
              b[kRefCount] = std::byte{0x80};
              b.insert(b.begin() + kRefCount + 1, std::byte{0});
            }},
        Row{"one more byte at the end", [](Bytes& b) { b.push_back(std::byte{1}); }},
        Row{"a tag that falls",
            [](Bytes& b) { ByteWriter(b).Varint(999), ByteWriter(b).Sized("x"); }},
        Row{"a value longer than what is left",
            [](Bytes& b) { ByteWriter(b).Varint(2000), ByteWriter(b).Varint(5); }}),
    [](const auto& row) { return "Row" + std::to_string(row.index); });

Checkpoint FullCheckpoint() {
  Checkpoint c;
  c.id = Short<RecordId>(1);
  c.seq = 7;
  c.root = Short<RootId>(2);
  c.made_ms = 1'800'000'000'123;
  c.state = Id(1);
  c.kind = CheckpointKind::kSafety;
  c.name = "";
  c.note = "a note\nwith two lines";
  c.description = "before rollback";
  c.session = "s", c.agent = "a", c.subagent = "sub", c.prompt = "p";
  c.message_id = "m", c.tool_name = "Edit", c.tool_use_id = "t";
  c.turn = 0, c.message_index = 12;
  c.files = 1, c.bytes = 2, c.added = 3, c.modified = 4, c.deleted = 5;
  c.stored_bytes = 6, c.took_us = UINT64_MAX;
  c.partial = true;
  c.meta = {{"", "empty key"}, {"k", ""}, {"z", std::string("\0\xff", 2)}};
  c.more_refs = {{ObjectType::kBlob, Id(9)}};
  return c;
}

TEST(Checkpoint, ComesBackAsItWas) {
  auto record = DecodeLogRecord(EncodeLogRecord(ToRecord(FullCheckpoint())));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(*ToCheckpoint(*record), FullCheckpoint());
  Checkpoint bare;
  bare.id = Short<RecordId>(1);
  bare.state = Id(1);
  auto again = DecodeLogRecord(EncodeLogRecord(ToRecord(bare)));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*ToCheckpoint(*again), bare);
}

TEST(Checkpoint, RefusesARecordThatIsNone) {
  LogRecord r = ToRecord(FullCheckpoint());
  r.kind = RecordKind::kTurn;
  EXPECT_FALSE(ToCheckpoint(r).ok());
  r = ToRecord(FullCheckpoint());
  r.refs.clear();
  EXPECT_FALSE(ToCheckpoint(r).ok());
  r = ToRecord(FullCheckpoint());
  r.refs[0].type = ObjectType::kTree;
  EXPECT_FALSE(ToCheckpoint(r).ok());
  r = ToRecord(FullCheckpoint());
  Fields other;
  other.AddNumber(1, 3);
  r.fields = other;
  EXPECT_FALSE(ToCheckpoint(r).ok());
  Fields meta;
  meta.Add(21, "\x01\x05x");
  r.fields = meta;
  EXPECT_FALSE(ToCheckpoint(r).ok());
}

TEST(Root, ComesBackAsItWas) {
  Root root{Short<RootId>(3), "/home/u/caf\xc3\xa9\n"};
  LogRecord r = ToRecord(root, RecordId(root.id), 5);
  auto back = ToRoot(*DecodeLogRecord(EncodeLogRecord(r)));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->id, root.id);
  EXPECT_EQ(back->path, root.path);
  r.root = RootId();
  EXPECT_FALSE(ToRoot(r).ok());
  r.root = root.id;
  r.kind = RecordKind::kDrop;
  EXPECT_FALSE(ToRoot(r).ok());
}

TEST(Drop, NamesWhatItDropsAndNothingElse) {
  std::vector<RecordId> ids = {Short<RecordId>(9), Short<RecordId>(1)};
  LogRecord drop = MakeDrop(Short<RecordId>(5), 1, ids);
  EXPECT_EQ(DroppedBy(*DecodeLogRecord(EncodeLogRecord(drop))), ids);
  drop.fields.Add(1, "not an id");
  EXPECT_EQ(DroppedBy(drop), ids);
  drop.kind = RecordKind::kAnnotation;
  EXPECT_TRUE(DroppedBy(drop).empty());
}

TEST(Purge, NamesWhatItErasesAndNothingElse) {
  std::vector<ObjectKey> keys = {{ObjectType::kBlob, Id(1)},
                                 {ObjectType::kChunks, Id(2)}};
  LogRecord purge = MakePurge(Short<RecordId>(5), 1, keys, "a password");
  EXPECT_EQ(PurgedBy(*DecodeLogRecord(EncodeLogRecord(purge))), keys);
  purge.fields.Add(1, "short");
  EXPECT_EQ(PurgedBy(purge), keys);
  purge.kind = RecordKind::kDrop;
  EXPECT_TRUE(PurgedBy(purge).empty());
}

TEST(Purge, NamesTheChunksThatStay) {
  const std::vector<KeptChunks> kept = {{Id(1), {Id(3), Id(4)}}, {Id(2), {Id(5)}}};
  LogRecord purge = MakePurge(Short<RecordId>(5), 1, {}, "path", true, kept);
  EXPECT_EQ(KeptBy(*DecodeLogRecord(EncodeLogRecord(purge))), kept);
  EXPECT_TRUE(PurgedBy(purge).empty());
  purge.fields.Add(4, "not of whole ids");
  purge.fields.Add(4, "");
  EXPECT_EQ(KeptBy(purge), kept);
  purge.kind = RecordKind::kDrop;
  EXPECT_TRUE(KeptBy(purge).empty());
}

TEST(Annotation, IsAboutOneRecord) {
  LogRecord r;
  r.kind = RecordKind::kAnnotation;
  EXPECT_EQ(AnnotationTarget(r), std::nullopt);
  r.fields.Add(kAnnotationTarget, Short<RecordId>(4).span());
  EXPECT_EQ(AnnotationTarget(r), Short<RecordId>(4));
  r.fields.Add(kAnnotationTarget, Short<RecordId>(5).span());
  EXPECT_EQ(AnnotationTarget(r), std::nullopt);
  r.kind = RecordKind::kDrop;
  EXPECT_EQ(AnnotationTarget(r), std::nullopt);
}

}  // namespace
}  // namespace belay::test
