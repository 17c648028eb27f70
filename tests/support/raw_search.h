#pragma once

// Looks for bytes in every file of a store, whatever the store says it holds: as they
// are, in every zstd frame that begins anywhere, and in every record of every pack,
// deltas put together. What it finds is really there; what it does not find is in no
// form that anybody without the erased bytes could read.

#include <zstd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/fs.h"
#include "store/pack_file.h"

namespace belay::test {

class RawSearch {
 public:
  RawSearch(Fs& fs, std::vector<std::string> needles)
      : fs_(fs), needles_(std::move(needles)) {}

  // "packs/x.pack (frame)" for every place.
  Result<std::vector<std::string>> In(const Fd& dir) {
    found_.clear();
    BELAY_OK(Walk(dir, ""));
    return found_;
  }

 private:
  bool Has(std::string_view text) const {
    for (const std::string& needle : needles_)
      if (text.find(needle) != std::string_view::npos) return true;
    return false;
  }

  Status Walk(const Fd& dir, const std::string& at) {
    BELAY_TRY(auto entries, fs_.List(dir));
    for (const DirEntry& entry : entries) {
      const Name name = Name::Literal(entry.name);
      const std::string path = at.empty() ? entry.name : at + "/" + entry.name;
      if (Has(path)) found_.push_back(path + " (its name)");
      BELAY_TRY(FileStat stat, fs_.StatAt(dir, name));
      if (stat.type == FileType::kDirectory) {
        BELAY_TRY(Fd below, fs_.Open(dir, name, OpenMode::Directory()));
        BELAY_OK(Walk(below, path));
      } else if (stat.type == FileType::kRegular) {
        BELAY_OK(LookInto(dir, name, path));
      }
    }
    return Ok();
  }

  Status LookInto(const Fd& dir, const Name& name, const std::string& path) {
    BELAY_TRY(Bytes bytes, ReadSmallFile(fs_, dir, name, size_t{1} << 30));
    const std::string_view text = AsText(bytes);
    if (Has(text)) found_.push_back(path + " (raw)");
    constexpr std::string_view kFrame = "\x28\xb5\x2f\xfd";
    for (size_t at = 0; (at = text.find(kFrame, at)) != std::string_view::npos; ++at)
      if (Has(Unpacked(text.substr(at)))) found_.push_back(path + " (frame)");
    if (path.find(".pack") == std::string::npos ||
        bytes.size() < kPackHeaderSize + kBatchHeaderSize)
      return Ok();
    // The ids of the header are what the file itself says.
    const PackId pack(Id128::FromSpan(ByteSpan(bytes).subspan(16, 16)));
    const StoreId store(Id128::FromSpan(ByteSpan(bytes).subspan(32, 16)));
    if (name.bytes() != PackFile::FileName(pack).bytes()) return Ok();
    auto file = PackFile::Open(fs_, dir, pack, store, OpenMode::Read());
    if (!file.ok()) return Ok();
    BELAY_TRY(auto records, file->ReadableRecords(kPackHeaderSize, bytes.size()));
    for (const RecordAt& record : records)
      if (auto plain = file->ReadRecord(record); plain.ok() && Has(AsText(*plain)))
        found_.push_back(path + " (record)");
    return Ok();
  }

  // As much of a frame as can be had.
  static std::string Unpacked(std::string_view from) {
    std::string all;
    ZSTD_DStream* stream = ZSTD_createDStream();
    ZSTD_inBuffer in{from.data(), from.size(), 0};
    std::string piece(size_t{1} << 17, '\0');
    for (;;) {
      ZSTD_outBuffer out{piece.data(), piece.size(), 0};
      const size_t before = in.pos;
      const size_t left = ZSTD_decompressStream(stream, &out, &in);
      all.append(piece, 0, out.pos);
      if (ZSTD_isError(left) || left == 0 || (out.pos == 0 && in.pos == before)) break;
    }
    ZSTD_freeDStream(stream);
    return all;
  }

  Fs& fs_;
  const std::vector<std::string> needles_;
  std::vector<std::string> found_;
};

// Pieces of `secret`: a part of it is as bad as all of it.
inline std::vector<std::string> PiecesOf(std::string_view secret, size_t length = 16) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at + length <= secret.size(); at += 1 + secret.size() / 8)
    pieces.emplace_back(secret.substr(at, length));
  return pieces;
}

}  // namespace belay::test
