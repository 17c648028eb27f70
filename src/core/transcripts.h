#pragma once

// Copies of transcripts: the file in which an agent keeps a conversation, as it was
// when somebody last looked. Agents delete them (Gemini CLI those that were resumed),
// and then the copy is all there is.
//
// Guarantees
//   * The file is only read: a regular one, as the path leads to it (symlinks are
//     followed: people link their homes), up to the length it had when it was opened.
//   * What it grew by is read, and little else: a copy is a list of pieces that are cut
//     where the content says so, and of one that was only appended to the last piece is
//     cut anew. That it was only appended to is concluded from device and inode, a
//     length that is not less, and its first and last piece, which are read again. So
//     that an edit in between is noticed some time, all of it is read again when it is
//     twice as long; up to kAlwaysWhole every time.
//   * What a file held before it became another (shorter, replaced, edited) is kept
//     beside it, kMostBefore of them.
//   * One batch: the new copy, and the drop of the one it replaces.
//   * Two who keep the same one at once: one does.
//
// Layout: docs/format.md, "Transcript" and log record 10.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/settings.h"
#include "store/catalog.h"
#include "store/store.h"

namespace belay {

inline constexpr uint64_t kAlwaysWhole = uint64_t{4} << 20;
inline constexpr size_t kMostBefore = 8;

struct TranscriptCopy {
  RecordId id;
  uint64_t seq = 0;
  RootId root;
  int64_t kept_ms = 0;
  TranscriptRecord record;
  bool latest = true;  // of its path; otherwise what that held before
};
// Newest first. Of all sessions when none is named.
Result<std::vector<TranscriptCopy>> ListTranscripts(
    Catalog& catalog, const std::optional<std::string>& session);

struct KeepRequest {
  std::string session;
  std::optional<std::string> agent = {}, subagent = {};
  AbsPath path = AbsPath::Literal("/");
  RootId root;
  const Settings* settings = nullptr;
  // Lines are added to it, and nothing else is done. Otherwise it is written anew each
  // time, and what it was before is kept only of one that became shorter.
  bool appended = true;
  bool is_json = true;  // what does not begin like JSON is no transcript
  int64_t lock_wait_ms = 10'000;
};
struct KeptNow {
  bool published = false;  // false: nothing was new
  bool grew = false;       // it went on where the copy ended
  uint64_t bytes = 0;      // of the copy
  uint64_t read = 0;       // bytes of the file that were looked at
};
// kNotFound: there is no such file (any more); what was kept stays. kInvalid: it is no
// transcript. kNoSpace: the store is full.
Result<KeptNow> KeepTranscript(Store& store, const KeepRequest& request);

// What there is no file of: lines that somebody told, at the end of the copy without a
// path. Told again with nothing in between (a hook that runs twice) they are there
// once. kInvalid: it would be longer than max_file_size. kNoSpace: the store is full.
struct AppendRequest {
  std::string session;
  std::optional<std::string> agent = {};
  RootId root;
  const Settings* settings = nullptr;
  int64_t lock_wait_ms = 10'000;
};
Result<KeptNow> AppendTranscript(Store& store, const AppendRequest& request,
                                 std::string_view lines);

// The bytes of a copy. Any part of it, in any order; going on is quick.
class KeptTranscript {
 public:
  // The store must outlive it. kPurged, kCorrupt when it is not all there.
  static Result<KeptTranscript> Open(Store& store, const TranscriptCopy& copy);

  uint64_t size() const { return size_; }
  // As Fs::Read: 0 is the end.
  Result<size_t> Read(uint64_t offset, std::span<std::byte> out);

 private:
  explicit KeptTranscript(Store& store) : store_(&store) {}
  struct Piece {
    uint64_t offset = 0;
    ObjectId id;
  };
  Store* store_;
  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
  std::optional<size_t> loaded_;
  Bytes bytes_;
};
// All of it, in order.
Status ReadTranscriptCopy(Store& store, const TranscriptCopy& copy,
                          const std::function<Status(ByteSpan)>& sink);

// A copy as a file, for who needs one: in the store, mode 0600, and gone with this.
class WrittenTranscript {
 public:
  static Result<WrittenTranscript> Write(Store& store, const TranscriptCopy& copy);
  WrittenTranscript(WrittenTranscript&& other) noexcept;
  WrittenTranscript& operator=(WrittenTranscript&& other) noexcept;
  ~WrittenTranscript();
  const AbsPath& path() const { return path_; }

 private:
  WrittenTranscript(Store& store, AbsPath path)
      : store_(&store), path_(std::move(path)) {}
  Store* store_;  // null: another one has it now
  AbsPath path_;
};
// Those that somebody who was killed left behind. What is just being read by others
// goes too.
void RemoveWrittenTranscripts(Store& store);

// A regular file to be read; symlinks are followed. kInvalid for anything else.
Result<Fd> OpenTranscript(Fs& fs, const AbsPath& path);

// Copies that retention lets go: of sessions that have no checkpoint left, nor has one
// that grew out of them, and of which nothing was heard for so long; with `for_space`
// also of those that have.
Result<std::vector<TranscriptCopy>> PrunableTranscripts(Catalog& catalog, int64_t days,
                                                        int64_t now_ms, bool for_space);
// One batch.
Status DropTranscripts(Store& store, std::span<const TranscriptCopy> copies);

}  // namespace belay
