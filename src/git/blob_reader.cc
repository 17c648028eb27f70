#include "git/blob_reader.h"

#include <algorithm>
#include <charconv>

#include "base/escape.h"

namespace belay {

namespace {
const std::vector<std::string> kCommand = {"cat-file", "--batch"};
constexpr size_t kBuffer = 64 * 1024;
// So many questions are on their way at most: they fit into a pipe, so that asking
// never waits for an answer to be read.
constexpr size_t kAhead = 256;
}  // namespace

Result<std::unique_ptr<BlobReader>> BlobReader::Start(GitRunner& git,
                                                      std::vector<std::string> ids) {
  const size_t count = ids.size();
  return Start(git, count, [ids = std::move(ids)](size_t at) { return ids[at]; });
}

Result<std::unique_ptr<BlobReader>> BlobReader::Start(GitRunner& git, size_t count,
                                                      IdAt id) {
  std::unique_ptr<BlobReader> out(new BlobReader(git, count, std::move(id)));
  if (count == 0) return out;
  BELAY_TRY(out->process_, git.Start(kCommand));
  return out;
}

Error BlobReader::Broken() {
  auto ended = process_->Finish();
  if (ended.ok())
    if (Status judged = git_.Judge(kCommand, *ended); !judged.ok())
      return std::move(judged).error();
  return Error(Errc::kCorrupt, "git gave an answer of an unknown form");
}

Status BlobReader::Ask() {
  std::string lines;
  for (; asked_ < count_ && asked_ < next_ + kAhead; ++asked_)
    lines += id_(asked_) + "\n";
  if (lines.empty()) return Ok();
  Status written = process_->Write(AsBytes(lines));
  if (!written.ok() && written.error().code == Errc::kIo) return Broken();
  return written;
}

Status BlobReader::Fill() {
  buffer_.resize(kBuffer);
  at_ = 0;
  auto got = process_->Read(buffer_);
  buffer_.resize(got.ok() ? *got : 0);
  if (!got.ok()) return std::move(got).error();
  return *got == 0 ? Status(Broken()) : Ok();
}

Result<std::optional<uint64_t>> BlobReader::Next() {
  BELAY_CHECK(next_ < count_);
  while (left_ > 0) {
    if (at_ == buffer_.size()) BELAY_OK(Fill());
    const auto part =
        static_cast<size_t>(std::min<uint64_t>(left_, buffer_.size() - at_));
    at_ += part;
    left_ -= part;
  }
  if (next_ + kAhead / 2 >= asked_) BELAY_OK(Ask());
  std::string line;
  for (bool skip = open_;;) {
    if (at_ == buffer_.size()) BELAY_OK(Fill());
    const auto c = static_cast<char>(buffer_[at_++]);
    if (skip) {
      if (c != '\n') return Broken();
      skip = false;
      continue;
    }
    if (c == '\n') break;
    line += c;
    if (line.size() > 200) return Broken();
  }
  open_ = false;
  const std::string id = id_(next_++);
  if (line == id + " missing") return std::optional<uint64_t>();
  const std::string head = id + " blob ";
  uint64_t size = 0;
  const char* end = line.data() + line.size();
  if (!line.starts_with(head)) return Broken();
  auto [stop, problem] = std::from_chars(line.data() + head.size(), end, size);
  if (problem != std::errc() || stop != end) return Broken();
  left_ = size;
  open_ = true;
  return std::optional(size);
}

Result<size_t> BlobReader::Read(std::span<std::byte> out) {
  if (left_ == 0 || out.empty()) return size_t{0};
  if (at_ == buffer_.size()) BELAY_OK(Fill());
  const size_t part = static_cast<size_t>(
      std::min<uint64_t>({left_, buffer_.size() - at_, out.size()}));
  std::copy_n(buffer_.begin() + static_cast<ptrdiff_t>(at_), part, out.begin());
  at_ += part;
  left_ -= part;
  return part;
}

}  // namespace belay
