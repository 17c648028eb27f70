#include "git/state_files.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/escape.h"
#include "base/mutant.h"
#include "base/sha1.h"
#include "git/files_internal.h"

namespace belay {

namespace {

constexpr size_t kMaxRefsFile = size_t{64} << 20;
constexpr size_t kMaxRefBytes = 4096;
constexpr size_t kMaxStateFiles = 200'000;  // of all that is looked at
constexpr int kMaxStateDepth = 64;
constexpr std::string_view kDamagedRef = "!";  // and its bytes in hex

// What lies in the git directory of a work tree and tells where its work stands.
constexpr std::string_view kOwnFiles[] = {"AUTO_MERGE",
                                          "BISECT_ANCESTORS_OK",
                                          "BISECT_EXPECTED_REV",
                                          "BISECT_FIRST_PARENT",
                                          "BISECT_HEAD",
                                          "BISECT_LOG",
                                          "BISECT_NAMES",
                                          "BISECT_RUN",
                                          "BISECT_START",
                                          "BISECT_TERMS",
                                          "CHERRY_PICK_HEAD",
                                          "HEAD",
                                          "MERGE_AUTOSTASH",
                                          "MERGE_HEAD",
                                          "MERGE_MODE",
                                          "MERGE_MSG",
                                          "MERGE_RR",
                                          "ORIG_HEAD",
                                          "REBASE_HEAD",
                                          "REVERT_HEAD",
                                          "SQUASH_MSG",
                                          "config.worktree"};
constexpr std::string_view kOwnDirs[] = {"rebase-apply", "rebase-merge", "sequencer"};
// Refs that belong to one work tree alone.
constexpr std::string_view kOwnRefs[] = {"refs/bisect", "refs/rewritten",
                                         "refs/worktree"};

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool IsKeptRef(std::string_view name) {
  return name.starts_with("refs/heads/") || name.starts_with("refs/tags/") ||
         name == "refs/stash";
}

bool IsSharedIndex(std::string_view name) {
  return name.starts_with("sharedindex.") && !name.ends_with(".lock");
}

class Looking {
 public:
  Looking(Fs& fs, bool (*is_racy)(const FileStat&, int64_t), int64_t now_ns)
      : fs_(fs), is_racy_(is_racy), now_ns_(now_ns) {}

  void Trouble(std::string_view name, std::string_view what) {
    if (out.trouble.empty())
      out.trouble = EscapeForDisplay(name) + " " + std::string(what);
  }

  // Notes one that was seen.
  void Note(std::string_view name, const FileStat& stat) {
    Bytes bytes;
    ByteWriter write(bytes);
    write.Sized(name);
    for (uint64_t value :
         {stat.dev, stat.ino, stat.size, static_cast<uint64_t>(stat.mtime_ns),
          static_cast<uint64_t>(stat.ctime_ns)})
      write.U64(value);
    write.U32(stat.mode);
    sha_.Update(bytes);
    out.newest_ns = std::max({out.newest_ns, stat.mtime_ns, stat.ctime_ns});
    out.racy = out.racy || is_racy_(stat, now_ns_);
  }

  // Nothing when it is not there or is no file.
  Result<std::optional<GitFile>> File(const Fd& dir, std::string_view name,
                                      const std::string& shown) {
    BELAY_TRY(Name leaf, Name::Parse(name));
    auto stat = fs_.StatAt(dir, leaf);
    if (!stat.ok()) {
      if (stat.error().code == Errc::kNotFound) return std::optional<GitFile>();
      return std::move(stat).error();
    }
    Note(shown, *stat);
    if (stat->type != FileType::kRegular) {
      Trouble(shown, "is " + std::string(FileTypeName(stat->type)));
      return std::optional<GitFile>();
    }
    return std::optional(GitFile{shown, *stat});
  }

  // All files beneath the directory `name` of `dir`, by their names from there on.
  Status Below(const Fd& dir, std::string_view name, const std::string& shown,
               std::vector<GitFile>& into, int depth = 0) {
    BELAY_TRY(Name leaf, Name::Parse(name));
    auto opened = fs_.Open(dir, leaf, OpenMode::Directory());
    if (!opened.ok()) {
      if (opened.error().code == Errc::kNotFound) return Ok();
      if (opened.error().sys == ENOTDIR || opened.error().sys == ELOOP) {
        Trouble(shown, "is no directory");
        return Ok();
      }
      return std::move(opened).error();
    }
    BELAY_TRY(auto names, fs_.List(*opened));
    std::ranges::sort(names, {}, &DirEntry::name);
    for (const DirEntry& entry : names) {
      const std::string below = shown + "/" + entry.name;
      if (entry.name.ends_with(".lock")) continue;  // somebody's who is at work
      if (++seen_ > kMaxStateFiles) {
        Trouble(shown, "holds more files than Belay looks at");
        return Ok();
      }
      BELAY_TRY(Name child, Name::Parse(entry.name));
      auto stat = fs_.StatAt(*opened, child);
      if (!stat.ok()) {
        if (stat.error().code == Errc::kNotFound) continue;
        return std::move(stat).error();
      }
      if (stat->type == FileType::kDirectory) {
        if (depth >= kMaxStateDepth) {
          Trouble(below, "lies deeper than Belay looks");
          continue;
        }
        BELAY_OK(Below(*opened, entry.name, below, into, depth + 1));
        continue;
      }
      Note(below, *stat);
      if (stat->type != FileType::kRegular) {
        Trouble(below, "is " + std::string(FileTypeName(stat->type)));
        continue;
      }
      into.push_back({below, *stat});
    }
    return Ok();
  }

  GitLook Finish() {
    std::ranges::sort(out.own, {}, &GitFile::name);
    std::ranges::sort(out.loose, {}, &GitFile::name);
    out.print = sha_.Finish();
    return std::move(out);
  }

  GitLook out;

 private:
  Fs& fs_;
  bool (*is_racy_)(const FileStat&, int64_t);
  int64_t now_ns_;
  Sha256 sha_;
  size_t seen_ = 0;
};

// A file two levels down, "logs/refs/stash" and the like; nothing when a directory on
// the way is not there.
Result<Fd> OpenDirs(Fs& fs, const Fd& from, std::string_view path) {
  return fs.OpenBeneath(from, RelPath::Literal(path), OpenMode::Directory());
}

bool IsGone(const Error& error) {
  return error.code == Errc::kNotFound || error.sys == ENOTDIR || error.sys == ELOOP;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' ||
                           text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

Result<GitLook> LookAtGit(Fs& fs, const GitRepository& repository,
                          bool (*is_racy)(const FileStat&, int64_t now_ns),
                          int64_t now_ns) {
  Looking look(fs, is_racy, now_ns);
  BELAY_TRY(Fd own, fs.OpenDir(repository.git_dir));
  BELAY_TRY(Fd common, fs.OpenDir(repository.common_dir));
  BELAY_TRY(auto names, fs.List(own));
  std::ranges::sort(names, {}, &DirEntry::name);
  for (const DirEntry& entry : names) {
    if (entry.name == "index") {
      BELAY_TRY(look.out.index, look.File(own, entry.name, entry.name));
    } else if (IsOneOf(entry.name, kOwnFiles) || IsSharedIndex(entry.name)) {
      BELAY_TRY(auto file, look.File(own, entry.name, entry.name));
      if (file) look.out.own.push_back(std::move(*file));
    } else if (IsOneOf(entry.name, kOwnDirs)) {
      BELAY_OK(look.Below(own, entry.name, entry.name, look.out.own));
    }
  }
  if (auto info = OpenDirs(fs, own, "info"); info.ok()) {
    BELAY_TRY(auto file, look.File(*info, "sparse-checkout", "info/sparse-checkout"));
    if (file) look.out.own.push_back(std::move(*file));
  } else if (!IsGone(info.error())) {
    return std::move(info).error();
  }
  if (auto refs = OpenDirs(fs, own, "refs"); refs.ok()) {
    for (std::string_view dir : kOwnRefs)
      BELAY_OK(look.Below(*refs, dir.substr(5), std::string(dir), look.out.own));
  } else if (!IsGone(refs.error())) {
    return std::move(refs).error();
  }
  BELAY_TRY(Fd refs, OpenDirs(fs, common, "refs"));
  BELAY_OK(look.Below(refs, "heads", "refs/heads", look.out.loose));
  BELAY_OK(look.Below(refs, "tags", "refs/tags", look.out.loose));
  BELAY_TRY(auto stash, look.File(refs, "stash", "refs/stash"));
  if (stash) look.out.loose.push_back(std::move(*stash));
  BELAY_TRY(look.out.packed, look.File(common, "packed-refs", "packed-refs"));
  if (auto logs = OpenDirs(fs, common, "logs/refs"); logs.ok()) {
    BELAY_TRY(look.out.stash_log, look.File(*logs, "stash", "logs/refs/stash"));
  } else if (!IsGone(logs.error())) {
    return std::move(logs).error();
  }
  auto reftable = fs.StatAt(common, Name::Literal("reftable"));
  if (reftable.ok() && reftable->type == FileType::kDirectory)
    look.out.trouble =
        "this repository keeps its refs as a reftable, which Belay does "
        "not read";
  return look.Finish();
}

Result<Bytes> ReadGitFile(Fs& fs, const AbsPath& dir, std::string_view name,
                          size_t limit) {
  BELAY_TRY(Fd opened, fs.OpenDir(dir));
  BELAY_TRY(RelPath path, RelPath::Parse(name));
  BELAY_TRY(Fd file, fs.OpenBeneath(opened, path, OpenMode::Read()));
  BELAY_TRY(FileStat stat, fs.Stat(file));
  if (stat.type != FileType::kRegular)
    return Error(Errc::kConflict, EscapeForDisplay(name) + " is no file any more");
  if (stat.size > limit)
    return Error(Errc::kInvalid, EscapeForDisplay(name) + " is larger than " +
                                     std::to_string(limit) + " bytes");
  Bytes bytes(static_cast<size_t>(stat.size));
  BELAY_TRY(size_t got, ReadFull(fs, file, 0, bytes));
  bytes.resize(got);
  return bytes;
}

bool IsGitStateFile(std::string_view name) {
  auto below = [&](std::string_view dir) {
    return name.size() > dir.size() + 1 && name.starts_with(dir) &&
           name[dir.size()] == '/';
  };
  return IsOneOf(name, kOwnFiles) || name == "info/sparse-checkout" ||
         (IsSharedIndex(name) && name.find('/') == std::string_view::npos) ||
         std::ranges::any_of(kOwnDirs, below) || std::ranges::any_of(kOwnRefs, below);
}

bool IsGitHex(std::string_view text, GitHash hash) {
  return text.size() == 2 * GitHashSize(hash) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsGitRefName(std::string_view name) {
  if (!name.starts_with("refs/") || name.ends_with('/') || name.ends_with('.') ||
      name.size() > kMaxRefBytes || !RelPath::Parse(name).ok())
    return false;
  if (name.find("..") != std::string_view::npos ||
      name.find("@{") != std::string_view::npos)
    return false;
  for (const char c : name)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F || c == '~' || c == '^' ||
        c == ':' || c == '?' || c == '*' || c == '[' || c == '\\')
      return false;
  for (std::string_view rest = name; !rest.empty();) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.starts_with('.') || part.ends_with(".lock")) return false;
    rest = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  }
  return true;
}

Result<GitHead> ParseGitHead(std::string_view text, GitHash hash) {
  text = Trimmed(text);
  GitHead head;
  if (text.starts_with("ref:")) {
    const size_t start = text.find_first_not_of(" \t", 4);
    if (start != std::string_view::npos) head.ref = text.substr(start);
    if (!IsGitRefName(head.ref)) return Error(Errc::kCorrupt, "HEAD names no branch");
    return head;
  }
  head.commit = text;
  if (!IsGitHex(head.commit, hash)) return Error(Errc::kCorrupt, "HEAD is damaged");
  return head;
}

Result<GitRefs> ReadGitRefs(Fs& fs, const GitRepository& repository,
                            const GitLook& look) {
  GitRefs refs;
  if (look.packed) {
    BELAY_TRY(Bytes bytes,
              ReadGitFile(fs, repository.common_dir, "packed-refs", kMaxRefsFile));
    std::string_view rest = AsText(bytes);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = Trimmed(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.empty() || line[0] == '#' || line[0] == '^') continue;
      const size_t space = line.find(' ');
      if (space == std::string_view::npos) continue;
      const std::string_view name = line.substr(space + 1);
      if (!IsKeptRef(name) || !IsGitRefName(name)) continue;
      if (IsGitHex(line.substr(0, space), repository.hash))
        refs[std::string(name)] = line.substr(0, space);
    }
  }
  for (const GitFile& file : look.loose) {
    if (!IsGitRefName(file.name)) continue;
    auto bytes = ReadGitFile(fs, repository.common_dir, file.name, kMaxRefBytes);
    if (!bytes.ok()) {
      if (bytes.error().code == Errc::kNotFound) continue;  // packed meanwhile, or gone
      return std::move(bytes).error();
    }
    const std::string_view value = Trimmed(AsText(*bytes));
    if (IsGitHex(value, repository.hash) ||
        (value.starts_with("ref: ") && IsGitRefName(value.substr(5))))
      refs[file.name] = value;
    else if (!BELAY_MUTANT("git-forgets-damaged-refs"))
      refs[file.name] = DamagedGitRef(*bytes);
  }
  return refs;
}

std::string DamagedGitRef(ByteSpan bytes) {
  return std::string(kDamagedRef) + ToHex(bytes);
}

std::optional<std::string> BytesOfDamagedGitRef(std::string_view value) {
  if (!value.starts_with(kDamagedRef)) return std::nullopt;
  value.remove_prefix(kDamagedRef.size());
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i + 1 < value.size(); i += 2)
    out += static_cast<char>(digit(value[i]) * 16 + digit(value[i + 1]));
  return out;
}

std::string RefsText(const GitRefs& refs) {
  std::string text;
  for (const auto& [name, value] : refs)
    // A value with a blank in it is "ref: NAME".
    text += (value.starts_with("ref: ") ? "@" + value.substr(5) : value) + " " + name +
            "\n";
  return text;
}

Result<GitRefs> ParseRefsText(std::string_view text) {
  GitRefs refs;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t space = text.find(' ');
    if (end == std::string_view::npos || space == std::string_view::npos || space > end)
      return Error(Errc::kCorrupt, "a list of refs is damaged");
    std::string value(text.substr(0, space));
    if (value.starts_with('@')) value = "ref: " + value.substr(1);
    const std::string name(text.substr(space + 1, end - space - 1));
    if (!IsGitRefName(name) || !IsKeptRef(name) ||
        (value.starts_with(kDamagedRef) &&
         (value.size() % 2 == 0 ||
          value.find_first_not_of("0123456789abcdef", 1) != std::string::npos)))
      return Error(Errc::kCorrupt, "a list of refs names what is none");
    refs[name] = std::move(value);
    text.remove_prefix(end + 1);
  }
  return refs;
}

std::string GitInProgress(const std::vector<std::string>& own_names) {
  auto has = [&](std::string_view name) {
    return std::ranges::find(own_names, name) != own_names.end();
  };
  auto below = [&](std::string_view dir) {
    return std::ranges::any_of(
        own_names, [&](const std::string& name) { return name.starts_with(dir); });
  };
  if (has("rebase-apply/applying")) return "am";
  if (below("rebase-merge/") || below("rebase-apply/")) return "rebase";
  if (has("MERGE_HEAD")) return "merge";
  if (has("CHERRY_PICK_HEAD")) return "cherry-pick";
  if (has("REVERT_HEAD")) return "revert";
  if (has("BISECT_LOG")) return "bisect";
  return below("sequencer/") ? "cherry-pick" : "";
}

// --- objects -------------------------------------------------------------------------

Result<LooseObjects> LooseObjects::Open(Fs& fs, const GitRepository& repository) {
  BELAY_TRY(Fd objects,
            fs.OpenDir(repository.common_dir.Join(RelPath::Literal("objects"))));
  return LooseObjects(fs, std::move(objects));
}

Result<bool> LooseObjects::Has(std::string_view hex) {
  if (fan_ != hex.substr(0, 2)) {
    BELAY_TRY(const Name name, Name::Parse(hex.substr(0, 2)));
    fan_.clear();
    names_.clear();
    auto dir = fs_->Open(objects_, name, OpenMode::Directory());
    if (dir.ok()) {
      BELAY_TRY(auto entries, fs_->List(*dir));
      for (DirEntry& entry : entries) names_.insert(std::move(entry.name));
    } else if (!IsGone(dir.error())) {
      return std::move(dir).error();
    }
    fan_ = name.bytes();
  }
  return !names_.empty() && names_.contains(std::string(hex.substr(2)));
}

namespace {

std::string HashHex(GitHash hash, ByteSpan header, ByteSpan content) {
  if (hash == GitHash::kSha1) {
    Sha1 sha;
    sha.Update(header);
    sha.Update(content);
    return ToHex(sha.Finish());
  }
  Sha256 sha;
  sha.Update(header);
  sha.Update(content);
  return ToHex(sha.Finish().span());
}

// All of a zlib stream, or nothing when it is damaged or longer than `limit`.
std::optional<Bytes> Inflate(ByteSpan in, size_t limit, bool* too_long = nullptr) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return std::nullopt;
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  Bytes out(std::min(limit, in.size() * 4 + 1024));
  size_t done = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    if (done == out.size()) {
      if (out.size() >= limit) {
        if (too_long != nullptr) *too_long = true;
        break;
      }
      out.resize(std::min(limit, out.size() * 2));
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(out.size() - done);
    code = inflate(&stream, Z_NO_FLUSH);
    const size_t made = out.size() - done - stream.avail_out;
    done += made;
    if (made == 0 && stream.avail_in == 0) break;
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END) return std::nullopt;
  out.resize(done);
  return out;
}

}  // namespace

Result<std::optional<Bytes>> ReadLooseBlob(Fs& fs, const GitRepository& repository,
                                           const std::string& hex, size_t limit) {
  if (!IsGitHex(hex, repository.hash)) return std::optional<Bytes>();
  auto packed = ReadGitFile(fs, repository.common_dir.Join(RelPath::Literal("objects")),
                            hex.substr(0, 2) + "/" + hex.substr(2), limit);
  if (!packed.ok()) {
    if (packed.error().code == Errc::kNotFound || packed.error().code == Errc::kInvalid)
      return std::optional<Bytes>();
    return std::move(packed).error();
  }
  std::optional<Bytes> whole = Inflate(*packed, limit + 64);
  if (!whole) return std::optional<Bytes>();
  const std::string_view text = AsText(*whole);
  const size_t nul = text.find('\0');
  if (!text.starts_with("blob ") || nul == std::string_view::npos || nul > 40)
    return std::optional<Bytes>();
  const ByteSpan all(*whole);
  if (HashHex(repository.hash, all.first(nul + 1), all.subspan(nul + 1)) != hex)
    return std::optional<Bytes>();
  whole->erase(whole->begin(), whole->begin() + static_cast<ptrdiff_t>(nul) + 1);
  return whole;
}

Result<bool> IsLooseObjectWhole(Fs& fs, const GitRepository& repository,
                                const std::string& hex) {
  constexpr size_t kMaxRead = size_t{256} << 20, kMaxInflated = size_t{1} << 30;
  auto packed = ReadGitFile(fs, repository.common_dir.Join(RelPath::Literal("objects")),
                            hex.substr(0, 2) + "/" + hex.substr(2), kMaxRead);
  if (!packed.ok()) {
    if (packed.error().code == Errc::kInvalid) return true;  // too long
    return std::move(packed).error();
  }
  bool too_long = false;
  std::optional<Bytes> whole = Inflate(*packed, kMaxInflated, &too_long);
  if (!whole) return too_long;
  return HashHex(repository.hash, *whole, {}) == hex;
}

Result<LooseObject> MakeLooseBlob(GitHash hash, ByteSpan content) {
  std::string header = "blob " + std::to_string(content.size());
  header.push_back('\0');
  LooseObject out;
  out.hex = HashHex(hash, AsBytes(header), content);
  Bytes whole = ToBytes(header);
  whole.insert(whole.end(), content.begin(), content.end());
  uLongf length = compressBound(whole.size());
  out.file.resize(length);
  if (compress2(reinterpret_cast<Bytef*>(out.file.data()), &length,
                reinterpret_cast<const Bytef*>(whole.data()), whole.size(), 1) != Z_OK)
    return Error(Errc::kIo, "an object could not be compressed");
  out.file.resize(length);
  return out;
}

}  // namespace belay
