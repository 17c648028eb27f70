#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/mutant.h"
#include "scan/scan_internal.h"

namespace belay {

namespace {

// What a thread reads at once, while it walks.
constexpr size_t kAtOnceFiles = 32;
constexpr uint64_t kAtOnceBytes = uint64_t{512} << 10;
constexpr int kReadTries = 3;
constexpr size_t kReadAtOnce = kMaxBlob;

// An error of the store must not be taken for one of the file that was being read.
Error OfTheStore(Error error) {
  error.sys = 0;
  return error;
}

// What was read is what `stat`, from before, says; looked at at `now`.
void Settle(CacheEntry& e, const FileStat& stat, uint64_t print, int64_t now) {
  e.print = print;
  e.mode = static_cast<uint16_t>(stat.mode);
  e.uid = stat.uid;
  e.gid = stat.gid;
  e.why = Skip::kNone;
  e.flags &= static_cast<uint8_t>(~CacheEntry::kRacy);
  if (IsRacy(stat, now)) e.flags |= CacheEntry::kRacy;
}

}  // namespace

// A few changed files of a known directory are read while it is open: both threads are
// at work then, and it need not be opened again. More wait until all is known.
Status Scan::CaptureAtOnce(Worker& worker, const Fd& dir, size_t first,
                           uint64_t bytes) {
  const size_t files = worker.captures.size() - std::min(first, worker.captures.size());
  if (files == 0 || worker.read_files + files > kAtOnceFiles ||
      worker.read_bytes + bytes > kAtOnceBytes)
    return Ok();
  worker.read_files += files;
  worker.read_bytes += bytes;
  for (size_t i = first; i < worker.captures.size(); ++i) {
    Capture& capture = worker.captures[i];
    capture.done = true;
    if (!capture.gone) BELAY_OK(CaptureOne(dir, capture, worker.buffer));
  }
  return Ok();
}

Status Scan::CaptureAll() {
  if (captures_.empty()) return Ok();
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  size_t left = 0;
  for (const Capture& capture : captures_) left += capture.done ? 0 : 1;
  const bool many = left > 64 || (left > 1 && total_bytes_ > (uint64_t{1} << 20));
  for (size_t i = 1; many && i < workers_.size(); ++i)
    threads.emplace_back([this, &next] { CaptureLoop(next); });
  if (left > 0) CaptureLoop(next);
  for (std::thread& thread : threads) thread.join();
  if (failed_) return std::move(*failed_);
  summary_.read_files = done_files_;
  summary_.read_bytes = done_bytes_;

  // Strings of a draft are shared by its entries: they are set here, by one thread.
  std::vector<Node*> thinned;
  for (Capture& capture : captures_) {
    DirDraft& draft = DraftOf(*capture.node);
    CacheEntry& e = draft.entries[capture.entry];
    draft.SetAux(e, capture.aux ? *capture.aux : std::string_view());
    if (capture.gone) {
      e.kind = CacheKind::kNone;
      e.why = Skip::kNone;
      draft.head.flags |= BlockHead::kRacy;
      thinned.push_back(capture.node);
    }
  }
  std::sort(thinned.begin(), thinned.end());
  thinned.erase(std::unique(thinned.begin(), thinned.end()), thinned.end());
  for (Node* node : thinned) {
    // Children know their place in the list of entries.
    std::vector<CacheEntry>& entries = node->draft->entries;
    std::vector<size_t> place(entries.size());
    size_t kept = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      place[i] = kept;
      if (entries[i].kind == CacheKind::kNone && entries[i].why == Skip::kNone)
        continue;
      entries[kept++] = entries[i];
    }
    entries.resize(kept);
    for (Node* child : node->children) child->entry = place[child->entry];
  }
  captures_ = std::vector<Capture>();
  return Ok();
}

void Scan::CaptureLoop(std::atomic<size_t>& next) {
  constexpr size_t kAtOnce = 16;
  Bytes buffer;
  Fd dir;
  const Node* opened = nullptr;
  const bool main_thread = std::this_thread::get_id() == main_thread_;
  for (;;) {
    const size_t begin = next.fetch_add(kAtOnce);
    if (begin >= captures_.size() || stop_) return;
    const size_t end = std::min(begin + kAtOnce, captures_.size());
    for (size_t i = begin; i < end && !stop_; ++i) {
      Capture& capture = captures_[i];
      if (capture.gone || capture.done) continue;
      if (opened != capture.node) {
        opened = nullptr;
        if (capture.node == root_) {
          auto again = fs_.Duplicate(root_fd_);
          if (!again.ok()) return Fail(std::move(again).error());
          dir = std::move(*again);
        } else {
          auto there = OpenByPath(*capture.node, {.access = OpenMode::Access::kPath});
          if (!there.ok()) {
            if (!IsAboutTheFile(there.error())) return Fail(std::move(there).error());
            LeaveOut(capture, there.error());
            continue;
          }
          if (IsMoved(*capture.node) && IsReleased()) {
            LeaveOut(capture.node->draft->entries[capture.entry], Skip::kChangedLate);
            continue;
          }
          dir = std::move(*there);
        }
        opened = capture.node;
      }
      Status done = CaptureOne(dir, capture, buffer);
      if (!done.ok()) return Fail(std::move(done).error());
    }
    if (main_thread) Report(ScanProgress::Step::kCapture);
  }
}

void Scan::LeaveOut(CacheEntry& e, Skip why) {
  e.kind = CacheKind::kNone;
  e.why = why;
  e.flags |= CacheEntry::kRacy;
}

// It vanished, became something else since it was looked at, or cannot be read.
void Scan::LeaveOut(Capture& capture, const Error& error) {
  CacheEntry& e = capture.node->draft->entries[capture.entry];
  const bool gone = IsGone(error);
  if (!gone && error.sys != ELOOP && error.sys != EINVAL)
    LeaveOut(e, Skip::kUnreadable);
  else if (IsReleased())
    LeaveOut(e, Skip::kChangedLate);
  else if (gone)
    capture.gone = true;
  else
    LeaveOut(e, Skip::kReplaced);
}

Status Scan::CaptureOne(const Fd& dir, Capture& capture, Bytes& buffer) {
  // The draft was made when the capture was queued, except for entries of the cache.
  CacheEntry& e = capture.node->draft->entries[capture.entry];
  for (int tries = 1;; ++tries) {
    bool again = false;
    Status done = e.kind == CacheKind::kSymlink
                      ? CaptureLink(dir, capture, again)
                      : CaptureFile(dir, capture, buffer, again);
    if (!done.ok()) {
      if (!IsAboutTheFile(done.error())) return done;
      LeaveOut(capture, done.error());
      return Ok();
    }
    if (!again) {
      done_files_.fetch_add(1, std::memory_order_relaxed);
      return Ok();
    }
    if (tries < kReadTries) continue;
    // What was read last is kept, and said to be of an uncertain moment.
    e.flags |= CacheEntry::kRacy;
    e.why = Skip::kChanging;
    return Ok();
  }
}

// At or after the release, less the tick of a kernel's clock.
bool Scan::IsSinceRelease(int64_t time_ns) const {
  constexpr int64_t kTick = 10'000'000;
  if (request_.released_ns == nullptr) return false;
  const int64_t released = request_.released_ns->load(std::memory_order_acquire);
  return released != 0 && time_ns >= released - kTick;
}

bool Scan::IsLate(const FileStat& stat) {
  if (!IsSinceRelease(stat.ctime_ns)) return false;
  if (BELAY_MUTANT("late-changes-count")) return false;
  late_ = true;
  return true;
}

// Another scan that came first may have put it into the cache.
bool Scan::IsKnownLate(const FileStat& stat) {
  return !BELAY_MUTANT("known-is-never-late") && IsLate(stat);
}

// A directory that was seen and is not there any more.
void Scan::SetGone(Node& node) {
  if (IsReleased())
    node.why = Skip::kChangedLate;
  else
    node.gone = true;
}

bool Scan::IsAlone() const {
  return request_.released_ns != nullptr &&
         request_.released_ns->load(std::memory_order_acquire) != 0;
}

// Nobody waits any longer. What is seen to vanish, which has no time to be asked,
// counts as gone since then.
bool Scan::IsReleased() {
  if (!IsAlone() || BELAY_MUTANT("late-removals-count")) return false;
  late_ = true;
  return true;
}

Status Scan::CaptureLink(const Fd& dir, Capture& capture, bool& again) {
  CacheEntry& e = capture.node->draft->entries[capture.entry];
  const NameRef name = NameRef::Known(capture.node->draft->view().NameOf(e));
  const int64_t now = Now();
  BELAY_TRY(FileStat before, fs_.StatAt(dir, name));
  if (before.type != FileType::kSymlink) return SysError(EINVAL, "readlink");
  if (IsLate(before)) {
    LeaveOut(e, Skip::kChangedLate);
    e.print = Fingerprint(before, key_);
    return Ok();
  }
  BELAY_TRY(std::string target, fs_.ReadLink(dir, name));
  BELAY_TRY(FileStat after, fs_.StatAt(dir, name));
  if (IsLate(after)) {
    LeaveOut(e, Skip::kChangedLate);
    e.print = Fingerprint(before, key_);
    return Ok();
  }
  again = Fingerprint(after, key_) != Fingerprint(before, key_);
  e.size = 0;
  e.id = Sha256::Of(AsBytes(target));  // of no use to the tree; says that it was read
  Settle(e, before, Fingerprint(before, key_), now);
  capture.aux = std::make_unique<std::string>(std::move(target));
  return Ok();
}

Status Scan::CaptureFile(const Fd& dir, Capture& capture, Bytes& buffer, bool& again) {
  CacheEntry& e = capture.node->draft->entries[capture.entry];
  const NameRef name = NameRef::Known(capture.node->draft->view().NameOf(e));
  const int64_t now = Now();
  BELAY_TRY(Fd file, fs_.Open(dir, name, OpenMode::Read()));
  BELAY_TRY(FileStat before, fs_.Stat(file));
  if (before.type != FileType::kRegular) return SysError(ELOOP, "open");
  auto left_out = [&](Skip why) {
    LeaveOut(e, why);
    e.print = Fingerprint(before, key_);
    return Ok();
  };
  if (IsLate(before)) return left_out(Skip::kChangedLate);
  if (before.size > request_.max_file_size) return left_out(Skip::kTooLarge);
  ObjectId id;
  uint64_t length = 0;
  if (before.size <= kReadAtOnce) {
    // One byte more than it should have: a file that grew is seen without a second
    // call.
    if (buffer.size() < before.size + 1)
      buffer.resize(std::max<size_t>(static_cast<size_t>(before.size) + 1, 1 << 16));
    BELAY_TRY(size_t got,
              fs_.Read(file, 0,
                       std::span(buffer).first(static_cast<size_t>(before.size) + 1)));
    length = got;
    if (got < before.size) {
      BELAY_TRY(size_t rest,
                ReadFull(fs_, file, got,
                         std::span(buffer).subspan(
                             got, static_cast<size_t>(before.size) - got + 1)));
      length += rest;
    }
    again = length != before.size;
    length = std::min<uint64_t>(length, before.size);
    // Until it is captured the entry has the id that the cache knew.
    auto put =
        sink_.PutChanged(ByteSpan(buffer).first(static_cast<size_t>(length)), e.id);
    if (!put.ok()) return OfTheStore(std::move(put).error());
    id = *put;
  } else {
    bool over = false;
    std::optional<Error> read_failed;
    auto put = sink_.PutStream([&](std::span<std::byte> out) -> Result<size_t> {
      auto got = fs_.Read(file, length, out);
      if (!got.ok()) {
        read_failed = got.error();
        return std::move(got).error();
      }
      length += *got;
      done_bytes_.fetch_add(*got, std::memory_order_relaxed);
      if (std::this_thread::get_id() == main_thread_)
        Report(ScanProgress::Step::kCapture);
      if (length > request_.max_file_size) {
        over = true;
        return size_t{0};
      }
      return *got;
    });
    if (over) return left_out(Skip::kTooLarge);
    if (read_failed) return std::move(*read_failed);
    if (!put.ok()) return OfTheStore(std::move(put).error());
    id = *put;
    again = length != before.size;
    done_bytes_.fetch_sub(length, std::memory_order_relaxed);
  }
  BELAY_TRY(std::string xattrs, CaptureXattrs(file));
  // 1. All of it was read. Nobody waits by now? Then a length that was seen may be of a
  //    truncation whose time stamp is still to come, however long it was looked at.
  // 2. That is over: whatever was read, its time is there.
  if (IsAlone() && !BELAY_MUTANT("lengths-come-with-their-times"))
    BELAY_OK(fs_.AwaitLength(file));
  BELAY_TRY(FileStat after, fs_.Stat(file));
  if (IsLate(after)) return left_out(Skip::kChangedLate);
  again = again || Fingerprint(after, key_) != Fingerprint(before, key_);
  if (BELAY_MUTANT("ignore-change-while-reading")) again = false;
  done_bytes_.fetch_add(length, std::memory_order_relaxed);
  capture.aux.reset();
  if (!xattrs.empty()) capture.aux = std::make_unique<std::string>(std::move(xattrs));
  e.id = id;
  e.size = length;
  Settle(e, before, Fingerprint(before, key_), now);
  return Ok();
}

Result<std::string> Scan::CaptureXattrs(const Fd& file) {
  BELAY_TRY(std::vector<std::string> names, fs_.ListXattrs(file));
  std::erase_if(names, [](const std::string& n) { return !KeepsXattr(n); });
  if (names.empty()) return std::string();
  std::sort(names.begin(), names.end());
  std::vector<std::pair<std::string, Bytes>> all;
  for (std::string& name : names) {
    auto value = fs_.GetXattr(file, name);
    if (!value.ok()) {
      if (value.error().sys == ENODATA) continue;  // removed meanwhile: ctime tells
      return std::move(value).error();
    }
    all.push_back({std::move(name), std::move(*value)});
  }
  if (all.empty()) return std::string();
  auto put = sink_.PutContent(EncodeXattrs(all));
  if (!put.ok()) return OfTheStore(std::move(put).error());
  return std::string(IdText(*put));
}

bool KeepsXattr(std::string_view name) {
  return name.starts_with("user.") || name == "system.posix_acl_access" ||
         name == "system.posix_acl_default" || name == "security.capability" ||
         name.starts_with("trusted.");
}

Bytes EncodeXattrs(const std::vector<std::pair<std::string, Bytes>>& sorted) {
  Bytes out;
  ByteWriter writer(out);
  writer.Varint(sorted.size());
  for (const auto& [name, value] : sorted) {
    writer.Sized(name);
    writer.Sized(value);
  }
  return out;
}

Result<std::vector<std::pair<std::string, Bytes>>> DecodeXattrs(ByteSpan bytes) {
  ByteReader in(bytes);
  std::vector<std::pair<std::string, Bytes>> all;
  for (uint64_t left = in.Varint(); left > 0 && !in.failed(); --left) {
    std::string name(AsText(in.Sized()));
    ByteSpan value = in.Sized();
    if (in.failed() || (!all.empty() && all.back().first >= name) ||
        !KeepsXattr(name) || name.find('\0') != std::string::npos)
      return Error(Errc::kCorrupt, "extended attributes that make no sense");
    all.push_back({std::move(name), Bytes(value.begin(), value.end())});
  }
  if (!in.done() || all.empty())
    return Error(Errc::kCorrupt, "extended attributes that make no sense");
  return all;
}

}  // namespace belay
