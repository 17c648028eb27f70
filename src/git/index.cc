#include "git/index.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/escape.h"
#include "base/mutant.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "git/files_internal.h"
#include "git/index_entries.h"
#include "git/index_stat.h"
#include "git/split_index_internal.h"

namespace belay {

namespace {

using git_internal::LinkExtension;
using git_internal::OpenFile;

constexpr size_t kHeader = 12;          // "DIRC", version, number of entries
constexpr size_t kStatFields = 40;      // of an entry, before its object id
constexpr size_t kModeOffset = 24;      // within them
constexpr size_t kNameMask = 0xFFF;     // of the flags; this long or longer
constexpr uint32_t kExtended = 0x4000;  // two more bytes of flags follow
constexpr size_t kLongestName = size_t{1} << 20;
constexpr size_t kLongestLink = size_t{64} << 20;
constexpr size_t kLongestTreeHead = 64;  // before the object, of "TREE"
constexpr size_t kMemoryStep = size_t{64} << 10;
constexpr uint32_t kAssumeValid = 0x8000;
constexpr uint32_t kSkipWorkTree = 0x4000, kIntentToAdd = 0x2000;  // of the two more

uint16_t Be16(const std::byte* at) {
  return static_cast<uint16_t>(static_cast<unsigned>(at[0]) << 8 |
                               static_cast<unsigned>(at[1]));
}
uint32_t Be32(const std::byte* at) {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return __builtin_bswap32(value);
}

Error Corrupt(std::string what) { return Error(Errc::kCorrupt, std::move(what)); }

// The bytes of an index file but for its trailer, in order, hashed on the way.
class IndexStream {
 public:
  // `file` outlives this.
  IndexStream(Fs& fs, const Fd& file, uint64_t size, const ReadIndexOptions& options)
      : fs_(&fs), file_(&file), kind_(options.hash), size_(size) {
    buffer_.resize(std::max<size_t>(options.buffer, 64));
  }

  // Of one that is read from its start on.
  IndexStream(const IndexSource& source, uint64_t size, const ReadIndexOptions& options)
      : source_(&source), kind_(options.hash), size_(size) {
    buffer_.resize(std::max<size_t>(options.buffer, 64));
  }

  // Of one that is in memory already, and outlives this.
  IndexStream(ByteSpan bytes, GitHash kind)
      : kind_(kind), size_(bytes.size()), whole_(bytes) {}

  Status Begin() {
    size_t trailer = GitHashSize(kind_);
    if (size_ < kHeader + trailer) return Corrupt("is too short for an index");
    body_ = size_ - trailer;
    trailer_.resize(trailer);
    if (source_ != nullptr) {  // comes last
      hashed_ = true;
      return Ok();
    }
    if (fs_ != nullptr) {
      BELAY_OK(ReadExact(*fs_, *file_, body_, trailer_));
    } else {
      std::ranges::copy(whole_.subspan(body_), trailer_.begin());
    }
    hashed_ = HasChecksum();
    return Ok();
  }

  const std::byte* data() const { return buffer_.data() + pos_; }
  size_t available() const { return end_ - pos_; }
  void Advance(size_t count) { pos_ += count; }
  uint64_t left() const { return body_ - read_ + available(); }  // of the body

  // Makes `count` bytes available, or all that are left when those are fewer.
  Status Want(size_t count) {
    if (available() >= count || read_ == body_) [[likely]]
      return Ok();
    return Refill(count);
  }
  Status Need(size_t count) {
    BELAY_OK(Want(count));
    if (available() < count) return Corrupt("ends in the middle of an entry");
    return Ok();
  }
  Status Skip(uint64_t count) {
    if (count > left()) return Corrupt("has an extension that is longer than the file");
    while (count > 0) {
      if (available() == 0) BELAY_OK(Refill(1));
      size_t step = static_cast<size_t>(std::min<uint64_t>(count, available()));
      Advance(step);
      count -= step;
    }
    return Ok();
  }

  // All was read; is it what git wrote?
  Status CheckTrailer() {
    if (source_ != nullptr) {
      BELAY_OK(ReadOn(trailer_));
      hashed_ = HasChecksum();
    }
    if (!hashed_ || BELAY_MUTANT("git-index-skip-checksum")) return Ok();
    bool same = kind_ == GitHash::kSha1
                    ? std::ranges::equal(sha1_.Finish(), trailer_)
                    : std::ranges::equal(sha256_.Finish().bytes, trailer_);
    if (!same) return Corrupt("has a wrong checksum");
    return Ok();
  }
  const Bytes& trailer() const { return trailer_; }

 private:
  // index.skipHash: git has left the checksum out.
  bool HasChecksum() const {
    return std::ranges::any_of(trailer_, [](std::byte b) { return b != std::byte{0}; });
  }

  Status ReadOn(std::span<std::byte> out) {
    while (!out.empty()) {
      BELAY_TRY(const size_t got, (*source_)(out));
      if (got == 0) return Corrupt("is shorter than it was");
      out = out.subspan(got);
    }
    return Ok();
  }

  Status Refill(size_t count) {
    if (available() > 0) std::memmove(buffer_.data(), data(), available());
    end_ = available();
    pos_ = 0;
    if (count > buffer_.size()) buffer_.resize(std::max(count, kMemoryStep));
    size_t step =
        static_cast<size_t>(std::min<uint64_t>(buffer_.size() - end_, body_ - read_));
    std::span<std::byte> fresh = std::span(buffer_).subspan(end_, step);
    if (source_ != nullptr) {
      BELAY_OK(ReadOn(fresh));
    } else if (fs_ != nullptr) {
      BELAY_OK(ReadExact(*fs_, *file_, read_, fresh));
    } else {
      std::ranges::copy(whole_.subspan(read_, step), fresh.begin());
    }
    if (hashed_) {
      if (kind_ == GitHash::kSha1) {
        sha1_.Update(fresh);
      } else {
        sha256_.Update(fresh);
      }
    }
    end_ += step;
    read_ += step;
    return Ok();
  }

  Fs* fs_ = nullptr;
  const Fd* file_ = nullptr;
  const IndexSource* source_ = nullptr;
  GitHash kind_;
  uint64_t size_;
  ByteSpan whole_;     // in place of a file
  uint64_t body_ = 0;  // where the trailer begins
  uint64_t read_ = 0;
  Bytes buffer_;
  size_t pos_ = 0;
  size_t end_ = 0;
  Bytes trailer_;
  bool hashed_ = false;
  Sha1 sha1_;
  Sha256 sha256_;
};

struct Entry {
  std::string_view name;  // these two live until the call returns
  ByteSpan object;
  const std::byte* stat;  // kStatFields of them
  uint32_t mode;
  unsigned stage;
  uint32_t flags;  // those of the entry, and above them the two more bytes
};

struct Extensions {
  std::optional<LinkExtension> link;
  std::string unknown;  // a required one that we do not know
  // Of "TREE", as far as it tells of the whole: how many entries the tree stands for.
  std::optional<uint64_t> tree_entries;
  std::string tree;  // hex
};

// Calls `add(entry)` for each entry.
template <class Add>
class IndexParser {
 public:
  IndexParser(IndexStream& in, GitHash hash, Add add)
      : in_(in), hash_(hash), fixed_(kStatFields + GitHashSize(hash) + 2), add_(add) {}

  // `reserve(entries)` is called once the number of entries is known.
  template <class Reserve>
  Status Run(Extensions& extensions, Reserve reserve) {
    BELAY_OK(in_.Begin());
    BELAY_OK(in_.Need(kHeader));
    if (std::memcmp(in_.data(), "DIRC", 4) != 0) return Corrupt("is not a git index");
    uint32_t version = Be32(in_.data() + 4);
    uint32_t count = Be32(in_.data() + 8);
    in_.Advance(kHeader);
    if (version < 2 || version > 4)
      return Error(Errc::kUnsupported, "is an index of version " +
                                           std::to_string(version) +
                                           "; Belay reads versions 2 to 4");
    if (count > in_.left() / fixed_)
      return Corrupt("is too short for the entries it announces");
    reserve(count);
    if (version == 4) {
      for (uint32_t i = 0; i < count; ++i) BELAY_OK(Compressed());
    } else {
      for (uint32_t i = 0; i < count; ++i) BELAY_OK(Plain());
    }
    while (in_.left() > 0) BELAY_OK(Extension(extensions));
    return in_.CheckTrailer();
  }

 private:
  struct Head {
    uint32_t mode;
    unsigned stage;
    size_t name_length;  // kNameMask: look for its end
    size_t size;         // of what was before the name
    uint32_t flags;
  };

  Status ReadHead(Head& head) {
    // One call makes nearly every entry available whole.
    BELAY_OK(in_.Want(fixed_ + 2 + kNameMask + 8));
    if (in_.available() < fixed_) return Corrupt("ends in the middle of an entry");
    const std::byte* at = in_.data();
    uint32_t flags = Be16(at + fixed_ - 2);
    head.mode = Be32(at + kModeOffset);
    head.stage = flags >> 12 & 3;
    head.name_length = flags & kNameMask;
    head.size = fixed_ + ((flags & kExtended) != 0 ? 2 : 0);
    head.flags = flags;
    if ((flags & kExtended) != 0) {
      if (in_.available() < head.size) return Corrupt("ends in the middle of an entry");
      head.flags |= static_cast<uint32_t>(Be16(at + fixed_)) << 16;
    }
    return Ok();
  }

  // The offset of the NUL that ends the name at offset `from`; at least `least` bytes
  // further.
  Result<size_t> FindEnd(size_t from, size_t least) {
    for (size_t window = from + least + kNameMask + 8;; window *= 2) {
      BELAY_OK(in_.Want(window));
      size_t start = std::min(from + least, in_.available());
      const void* nul = std::memchr(in_.data() + start, 0, in_.available() - start);
      if (nul != nullptr)
        return static_cast<size_t>(static_cast<const std::byte*>(nul) - in_.data());
      if (in_.available() < window) return Corrupt("ends in the middle of a name");
      if (window > kLongestName) return Corrupt("has a name longer than 1 MiB");
    }
  }

  std::string_view TextAt(size_t from, size_t to) const {
    return {reinterpret_cast<const char*>(in_.data()) + from, to - from};
  }

  // Of the entry that begins here.
  ByteSpan Object() const { return {in_.data() + kStatFields, GitHashSize(hash_)}; }

  Status Plain() {
    Head head{};
    BELAY_OK(ReadHead(head));
    size_t end = head.size + head.name_length;
    if (head.name_length == kNameMask) {
      BELAY_TRY(end, FindEnd(head.size, kNameMask));
    }
    size_t whole = (end + 8) & ~size_t{7};  // with one to eight NULs
    if (in_.available() < whole) BELAY_OK(in_.Need(whole));
    if (in_.data()[end] != std::byte{0}) return Corrupt("has a name without an end");
    BELAY_OK(add_(Entry{TextAt(head.size, end), Object(), in_.data(), head.mode,
                        head.stage, head.flags}));
    in_.Advance(whole);
    return Ok();
  }

  // Version 4: how many bytes of the name before go, then what follows, then a NUL.
  Status Compressed() {
    Head head{};
    BELAY_OK(ReadHead(head));
    size_t at = head.size;
    uint64_t strip = 0;
    for (int length = 0;; ++length) {
      if (at >= in_.available()) return Corrupt("ends in the middle of an entry");
      if (length == 9) return Corrupt("has a malformed name");
      auto byte = static_cast<uint64_t>(in_.data()[at++]);
      strip = strip << 7 | (byte & 0x7F);
      if ((byte & 0x80) == 0) break;
      ++strip;  // git's varint: each length begins where the one before ended
    }
    if (strip > name_.size()) return Corrupt("has a malformed name");
    BELAY_TRY(size_t end, FindEnd(at, 0));
    name_.resize(name_.size() - static_cast<size_t>(strip));
    name_.append(TextAt(at, end));
    if (name_.size() > kLongestName) return Corrupt("has a name longer than 1 MiB");
    if (std::min(name_.size(), kNameMask) != head.name_length)
      return Corrupt("has a name of another length than it says");
    BELAY_OK(
        add_(Entry{name_, Object(), in_.data(), head.mode, head.stage, head.flags}));
    in_.Advance(end + 1);
    return Ok();
  }

  Status Extension(Extensions& extensions) {
    if (in_.left() < 8) return Corrupt("has bytes after its entries");
    BELAY_OK(in_.Need(8));
    std::string signature(TextAt(0, 4));
    uint32_t size = Be32(in_.data() + 4);
    in_.Advance(8);
    if (signature == "link") {
      if (size > kLongestLink || size > in_.left())
        return Corrupt("has an extension that is longer than the file");
      BELAY_OK(in_.Need(size));
      BELAY_TRY(extensions.link, git_internal::ParseLink(ByteSpan(in_.data(), size),
                                                         GitHashSize(hash_)));
      in_.Advance(size);
      return Ok();
    }
    if (signature == "TREE") {
      // Where it ends is for Skip() to judge.
      const size_t longest = kLongestTreeHead + GitHashSize(hash_);
      BELAY_OK(in_.Want(longest));
      ParseTree(TextAt(0, std::min({longest, size_t{size}, in_.available()})),
                extensions);
      return in_.Skip(size);
    }
    // A capital first letter means that a reader may pass it by. "sdir" only announces
    // the sparse directories, which the entries tell us themselves.
    bool optional = signature[0] >= 'A' && signature[0] <= 'Z';
    if (!optional && signature != "sdir") extensions.unknown = signature;
    return in_.Skip(size);
  }

  // The first record of the extension is about the whole index: an empty path, how many
  // entries it has (-1: git does not know the tree any more), how many directories, the
  // tree. Whatever is of another form says nothing.
  void ParseTree(std::string_view text, Extensions& extensions) const {
    extensions.tree_entries.reset();
    const size_t space = text.find(' '), line = text.find('\n');
    if (!text.starts_with('\0') || space == text.npos || line == text.npos ||
        space > line || text.size() - line - 1 < GitHashSize(hash_))
      return;
    uint64_t entries = 0;
    const char* end = text.data() + space;
    auto [stop, problem] = std::from_chars(text.data() + 1, end, entries);
    if (problem != std::errc() || stop != end) return;
    extensions.tree_entries = entries;
    extensions.tree = ToHex(AsBytes(text.substr(line + 1, GitHashSize(hash_))));
  }

  IndexStream& in_;
  GitHash hash_;
  size_t fixed_;
  Add add_;
  std::string name_;  // of version 4: the one before
};

// One file parsed; `add` and `reserve` as in IndexParser. The trailer goes to
// `trailer`.
template <class Add, class Reserve>
Status ParseFile(Fs& fs, const OpenFile& open, const ReadIndexOptions& options,
                 Extensions& extensions, Bytes* trailer, Add add, Reserve reserve) {
  IndexStream stream(fs, open.file, open.stat.size, options);
  IndexParser<Add> parser(stream, options.hash, add);
  BELAY_OK(parser.Run(extensions, reserve));
  if (trailer != nullptr) *trailer = stream.trailer();
  return Ok();
}

bool IsSparse(uint32_t mode) { return (mode & 0170000) == 0040000; }

Result<std::vector<git_internal::RawEntry>> ReadRaw(Fs& fs, const OpenFile& open,
                                                    const ReadIndexOptions& options,
                                                    Extensions& extensions,
                                                    Bytes* trailer) {
  std::vector<git_internal::RawEntry> entries;
  auto add = [&](const Entry& entry) -> Status {
    std::string tree = IsSparse(entry.mode) ? ToHex(entry.object) : std::string();
    entries.push_back(
        {std::string(entry.name), entry.mode, entry.stage, std::move(tree)});
    return Ok();
  };
  auto reserve = [&](size_t count) { entries.reserve(count); };
  BELAY_OK(ParseFile(fs, open, options, extensions, trailer, add, reserve));
  return entries;
}

Status ReadSplit(Fs& fs, const AbsPath& index, const OpenFile& open,
                 const ReadIndexOptions& options, GitIndex& out) {
  Extensions extensions;
  BELAY_TRY(auto own, ReadRaw(fs, open, options, extensions, nullptr));
  if (!extensions.link) return Corrupt("changed while it was read");
  const LinkExtension& link = *extensions.link;
  std::vector<git_internal::RawEntry> base;
  if (!link.base.empty()) {
    AbsPath shared = index.parent().Join(Name::Literal("sharedindex." + link.base));
    BELAY_TRY(OpenFile open_shared, git_internal::OpenRegular(fs, shared));
    Extensions of_shared;
    Bytes trailer;
    BELAY_TRY(base, ReadRaw(fs, open_shared, options, of_shared, &trailer));
    if (ToHex(trailer) != link.base)
      return Corrupt("is split, and its shared part is another file");
    if (!of_shared.unknown.empty())
      return Error(Errc::kUnsupported, "has a shared part of a newer git");
  }
  BELAY_TRY(auto merged,
            git_internal::MergeSplit(link, std::move(base), std::move(own)));
  TrackedPathsBuilder builder;
  for (const git_internal::RawEntry& entry : merged) {
    BELAY_OK(builder.Add(entry.name, entry.mode, entry.stage));
    if (IsSparse(entry.mode)) out.sparse.push_back({entry.name, entry.tree});
  }
  out.paths = builder.Finish();
  return Ok();
}

Result<GitIndex> ReadOpen(Fs& fs, const AbsPath& index, const OpenFile& open,
                          const ReadIndexOptions& options) {
  GitIndex out;
  out.stat = open.stat;
  TrackedPathsBuilder builder;
  std::optional<Error>
      refused;  // an entry; no error if the index turns out to be split
  Extensions extensions;
  auto add = [&](const Entry& entry) -> Status {
    if (refused) return Ok();
    Status added = builder.Add(entry.name, entry.mode, entry.stage);
    if (!added.ok()) refused = std::move(added).error();
    if (IsSparse(entry.mode))
      out.sparse.push_back({std::string(entry.name), ToHex(entry.object)});
    return Ok();
  };
  auto reserve = [&](size_t count) { builder.Reserve(count); };
  BELAY_OK(ParseFile(fs, open, options, extensions, nullptr, add, reserve));
  out.split = extensions.link.has_value();
  if (out.split) {
    out.sparse.clear();
    BELAY_OK(ReadSplit(fs, index, open, options, out));
  } else if (refused) {
    return std::move(*refused);
  } else {
    out.paths = builder.Finish();
  }
  out.unknown_extension = !extensions.unknown.empty();
  if (out.unknown_extension)
    out.needs_git = "the index has an extension '" +
                    EscapeForDisplay(extensions.unknown) + "' that Belay does not know";
  else if (!out.sparse.empty())
    out.needs_git = "the index is sparse";
  if (options.ignore_case) out.paths.FoldCase();
  return out;
}

}  // namespace

Result<GitIndex> ReadIndex(Fs& fs, const AbsPath& index,
                           const ReadIndexOptions& options) {
  constexpr int kTries = 4;
  for (int tries = 1;; ++tries) {
    auto open = git_internal::OpenRegular(fs, index);
    if (!open.ok()) {
      if (open.error().code != Errc::kNotFound) return std::move(open).error();
      GitIndex none;
      if (options.ignore_case) none.paths.FoldCase();
      return none;
    }
    Result<GitIndex> read = ReadOpen(fs, index, *open, options);
    // The index, or the shared part of it, was replaced between two of our calls.
    if (!read.ok() && read.error().code == Errc::kNotFound && tries < kTries) continue;
    if (!read.ok())
      return Context(std::move(read).error(),
                     "git index " + EscapeForDisplay(index.bytes()));
    return read;
  }
}

Result<std::vector<IndexStat>> ReadIndexStats(
    Fs& fs, const AbsPath& index, GitHash hash,
    const std::unordered_set<std::string>& wanted) {
  auto open = git_internal::OpenRegular(fs, index);
  std::vector<IndexStat> out;
  if (!open.ok()) {
    if (open.error().code == Errc::kNotFound) return out;
    return std::move(open).error();
  }
  bool sparse = false;
  auto add = [&](const Entry& entry) -> Status {
    sparse = sparse || IsSparse(entry.mode);
    if (entry.stage != 0) return Ok();
    std::string path(entry.name);
    if (!wanted.contains(path)) return Ok();
    out.push_back({.path = std::move(path),
                   .mtime_s = Be32(entry.stat + 8),
                   .mtime_ns = Be32(entry.stat + 12),
                   .size = Be32(entry.stat + 36)});
    return Ok();
  };
  Extensions extensions;
  BELAY_OK(
      ParseFile(fs, *open, {.hash = hash}, extensions, nullptr, add, [](size_t) {}));
  if (sparse || extensions.link || !extensions.unknown.empty())
    return Error(Errc::kUnsupported, "a split or sparse index");
  return out;
}

namespace {

// Its digest is that of its entries, or is left to who has its bytes.
Result<IndexEntries> VisitEntries(IndexStream& stream, GitHash hash,
                                  const VisitEntry& each) {
  IndexEntries out;
  Sha256 sha;
  Bytes one;
  bool committable = true;
  auto add = [&](const Entry& entry) -> Status {
    const uint32_t more = entry.flags >> 16;
    const auto flags = static_cast<uint8_t>(
        ((entry.flags & kAssumeValid) != 0 ? 4 : 0) |
        ((more & kSkipWorkTree) != 0 ? 8 : 0) | ((more & kIntentToAdd) != 0 ? 16 : 0));
    git_internal::DescribeEntry(entry.name, entry.mode, entry.object, entry.stage,
                                flags, one);
    sha.Update(one);
    ++out.count;
    committable = committable && entry.stage == 0 && (more & kIntentToAdd) == 0;
    if (each) each({entry.name, entry.object, entry.mode, entry.stage, flags});
    return Ok();
  };
  Extensions extensions;
  IndexParser<decltype(add)> parser(stream, hash, add);
  BELAY_OK(parser.Run(extensions, [](size_t) {}));
  out.split = extensions.link.has_value();
  out.by_bytes = out.split || !extensions.unknown.empty();
  if (!out.by_bytes) {
    out.digest = sha.Finish();
    // Git itself forgets the tree with each change; others may have been careless.
    if ((committable && extensions.tree_entries == out.count) ||
        BELAY_MUTANT("git-stale-tree-is-believed"))
      out.tree = std::move(extensions.tree);
  }
  if (!out.split) return out;
  if (!extensions.link->base.empty())
    out.shared = "sharedindex." + extensions.link->base;
  out.replaced = std::move(extensions.link->replaced);
  out.deleted = std::move(extensions.link->deleted);
  return out;
}

}  // namespace

Result<IndexEntries> VisitIndex(ByteSpan index, GitHash hash, const VisitEntry& each) {
  IndexStream stream(index, hash);
  return VisitEntries(stream, hash, each);
}

Result<IndexEntries> VisitIndex(const IndexSource& source, uint64_t size, GitHash hash,
                                const VisitEntry& each) {
  IndexStream stream(source, size, {.hash = hash});
  return VisitEntries(stream, hash, each);
}

Result<IndexEntries> ReadIndexEntries(ByteSpan index, GitHash hash,
                                      std::vector<NamedEntry>* named) {
  VisitEntry each;
  if (named != nullptr)
    each = [named](const MetEntry& met) {
      named->push_back({std::string(met.path), ToHex(met.object), met.mode, met.stage,
                        (met.flags & 16) != 0, met.flags});
    };
  BELAY_TRY(IndexEntries out, VisitIndex(index, hash, each));
  if (out.by_bytes) out.digest = Sha256::Of(index);
  return out;
}

Result<OpenIndex> OpenIndex::Open(Fs& fs, const AbsPath& git_dir,
                                  std::string_view name) {
  BELAY_TRY(Fd dir, fs.OpenDir(git_dir));
  BELAY_TRY(RelPath path, RelPath::Parse(name));
  BELAY_TRY(Fd file, fs.OpenBeneath(dir, path, OpenMode::Read()));
  BELAY_TRY(FileStat stat, fs.Stat(file));
  if (stat.type != FileType::kRegular)
    return Error(Errc::kConflict, EscapeForDisplay(name) + " is no file any more");
  return OpenIndex(fs, std::move(file), stat);
}

Result<IndexEntries> OpenIndex::Visit(GitHash hash, const VisitEntry& each) const {
  IndexStream stream(*fs_, file_, stat_.size, {.hash = hash});
  return VisitEntries(stream, hash, each);
}

Result<Bytes> OpenIndex::ReadAll(size_t limit) const {
  if (stat_.size > limit)
    return Error(Errc::kInvalid,
                 "an index is larger than " + std::to_string(limit) + " bytes");
  Bytes bytes(static_cast<size_t>(stat_.size));
  BELAY_TRY(const size_t got, ReadFull(*fs_, file_, 0, bytes));
  bytes.resize(got);
  return bytes;
}

Result<size_t> OpenIndex::Read(uint64_t at, std::span<std::byte> out) const {
  return fs_->Read(file_, at, out);
}

bool IsAsAdded(const IndexStat& remembered, const FileStat& stat) {
  constexpr int64_t kSecond = 1'000'000'000;
  // A git built without nanoseconds leaves zero.
  return remembered.size == static_cast<uint32_t>(stat.size) &&
         remembered.mtime_s == static_cast<uint32_t>(stat.mtime_ns / kSecond) &&
         (remembered.mtime_ns == 0 ||
          remembered.mtime_ns == static_cast<uint32_t>(stat.mtime_ns % kSecond));
}

Result<std::optional<FileStat>> StatIndex(Fs& fs, const AbsPath& index) {
  auto open = git_internal::OpenRegular(fs, index);
  if (open.ok()) return std::optional<FileStat>(open->stat);
  if (open.error().code == Errc::kNotFound) return std::optional<FileStat>();
  return std::move(open).error();
}

}  // namespace belay
