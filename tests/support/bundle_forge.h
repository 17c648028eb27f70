#pragma once

// BundleForge makes bundles by hand, record by record, right or wrong: every hash and
// count is made right at the end unless a test asks for another.

#include <functional>
#include <string>
#include <vector>

#include "bundle/format.h"
#include "store/codec.h"
#include "store/pack_format.h"

namespace belay::test {

class BundleForge {
 public:
  struct Record {
    RecordHeader header;
    Bytes stored;
    Bytes bytes = {};  // instead of header and stored, when not empty
  };
  std::vector<Record> records;
  std::function<void(BundleTrailer&)> trailer = {};  // the last word about it
  std::function<void(Bytes&)> bytes = {};            // and about the file

  // --- objects; what they give back is the id
  ObjectId Put(ObjectType type, ByteSpan raw) {
    return PutAs(type, Sha256::Of(raw), raw);
  }
  ObjectId PutAs(ObjectType type, const ObjectId& id, ByteSpan raw) {
    Codec codec;
    Record record;
    record.header.type = type;
    record.header.id = id;
    record.header.codec = codec.Encode(raw, record.stored);
    record.header.raw_length = static_cast<uint32_t>(raw.size());
    record.header.stored_length = static_cast<uint32_t>(record.stored.size());
    records.push_back(std::move(record));
    return id;
  }
  ObjectId Blob(std::string_view text) { return Put(ObjectType::kBlob, AsBytes(text)); }
  ObjectId Tree(const std::vector<TreeEntry>& entries) {
    return Put(ObjectType::kTree, RawTree(entries));
  }
  ObjectId State(const ObjectId& tree, const ObjectId& rules = {},
                 const ObjectId& git = {}) {
    return Put(ObjectType::kState,
               EncodeState({.tree = tree, .git = git, .rules = rules}));
  }
  void Log(const LogRecord& record) { Put(ObjectType::kLog, EncodeLogRecord(record)); }
  Record& last() { return records.back(); }

  // A tree as it is given, whatever rule it breaks.
  static Bytes RawTree(const std::vector<TreeEntry>& entries) {
    Bytes out;
    ByteWriter w(out);
    w.U8(1);
    w.Varint(entries.size());
    for (const TreeEntry& e : entries) {
      w.Sized(e.name);
      w.U8(static_cast<uint8_t>(e.kind));
      w.U8(e.xattrs.is_zero() ? 0 : 1);
      w.Varint(e.mode);
      w.Varint(e.uid);
      w.Varint(e.gid);
      if (e.kind == EntryKind::kSymlink) {
        w.Sized(e.target);
      } else {
        if (e.kind != EntryKind::kDirectory) w.Varint(e.size);
        w.Raw(e.id.span());
      }
      if (!e.xattrs.is_zero()) w.Raw(e.xattrs.span());
    }
    return out;
  }
  static TreeEntry File(std::string name, const ObjectId& id, uint64_t size) {
    TreeEntry entry;
    entry.name = std::move(name);
    entry.mode = 0644;
    entry.size = size;
    entry.id = id;
    return entry;
  }
  static TreeEntry Dir(std::string name, const ObjectId& id) {
    TreeEntry entry;
    entry.name = std::move(name);
    entry.kind = EntryKind::kDirectory;
    entry.mode = 0755;
    entry.id = id;
    return entry;
  }
  static TreeEntry Link(std::string name, std::string target) {
    TreeEntry entry;
    entry.name = std::move(name);
    entry.kind = EntryKind::kSymlink;
    entry.mode = 0777;
    entry.target = std::move(target);
    return entry;
  }
  static LogRecord CheckpointRecord(const ObjectId& state, uint64_t files,
                                    uint64_t size) {
    Checkpoint c;
    c.id.bytes[0] = std::byte{7};
    c.made_ms = 1'800'000'000'000;
    c.state = state;
    c.kind = CheckpointKind::kManual;
    c.name = "forged";
    c.files = files;
    c.bytes = size;
    c.meta = {{"origin.store", "x"}, {"origin.seq", "3"}, {"origin.path", "/p"}};
    return ToRecord(c);
  }

  Bytes Build() const {
    Bytes out;
    ByteWriter w(out);
    w.Raw(EncodeBundleHeader());
    BundleTrailer end;
    for (const Record& record : records) {
      end.raw_bytes += record.header.raw_length;
      if (record.header.type != ObjectType::kLog)
        ++end.objects;
      else if (record.stored.size() > 3 && IsCheckpoint(record))
        ++end.checkpoints;
      if (!record.bytes.empty()) {
        w.Raw(record.bytes);
        continue;
      }
      w.Raw(Encode(record.header));
      w.Raw(record.stored);
    }
    end.length = out.size() + kBundleTrailerSize;
    Seal(out, end);
    if (bytes) bytes(out);
    return out;
  }
  // Appends the trailer, with the right hash.
  void Seal(Bytes& out, BundleTrailer end) const {
    const bool lies = bool{trailer};
    if (lies) trailer(end);
    auto encoded = Encode(end);
    Sha256 whole;
    whole.Update(out);
    whole.Update(ByteSpan(encoded).first(kBundleHashAt));
    if (end.hash.is_zero()) end.hash = whole.Finish();
    encoded = Encode(end);
    out.insert(out.end(), encoded.begin(), encoded.end());
  }

 private:
  static bool IsCheckpoint(const Record& record) {
    Codec codec;
    auto raw =
        codec.Decode(record.header.codec, record.stored, record.header.raw_length);
    return raw.ok() && raw->size() > 3 && (*raw)[1] == std::byte{2} &&
           (*raw)[2] == std::byte{0};
  }
};

}  // namespace belay::test
