#include "core/failures.h"

#include <charconv>

#include "base/escape.h"
#include "base/mutant.h"
#include "scan/stat_cache.h"
#include "store/store_files.h"

namespace belay {

namespace {

constexpr size_t kMaxFile = 64 << 10, kKept = 32 << 10, kMaxMessage = 500;

const Name& FileName() {
  static const Name name = Name::Literal("failures");
  return name;
}

std::optional<std::string_view> Word(std::string_view& line) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos || blank == 0) return std::nullopt;
  std::string_view word = line.substr(0, blank);
  line.remove_prefix(blank + 1);
  return word;
}

std::optional<Failure> Parse(std::string_view line) {
  Failure out;
  auto at = Word(line), root = Word(line), what = Word(line), code = Word(line);
  if (!at || !root || !what || !code) return std::nullopt;
  auto [end, problem] = std::from_chars(at->data(), at->data() + at->size(), out.at_ms);
  auto id = Id128::FromText(*root);
  if (problem != std::errc() || end != at->data() + at->size() || !id)
    return std::nullopt;
  out.root = RootId(*id);
  out.what = *what;
  out.code = *code;
  out.message = line;
  return out;
}

}  // namespace

bool IsFailure(Errc code) {
  switch (code) {
    case Errc::kIo:
    case Errc::kNoSpace:
    case Errc::kCorrupt:
    case Errc::kConflict:
    case Errc::kBusy:
      return true;
    default:
      return false;
  }
}

namespace {

// In a store of a newer format nothing is changed, not even this.
bool IsOfNewerFormat(Fs& fs, const Fd& store_dir) {
  auto bytes = ReadSmallFile(fs, store_dir, ManifestName(), size_t{16} << 20);
  if (!bytes.ok()) return false;
  auto manifest = DecodeManifest(*bytes);
  return !manifest.ok() && manifest.error().code == Errc::kUnsupported;
}

void Append(Fs& fs, const Fd& store_dir, Clock& clock, const RootId& root,
            std::string_view what, const Error& error) {
  if (IsOfNewerFormat(fs, store_dir)) return;
  auto dir = fs.Open(store_dir, StatCache::DirName(), OpenMode::Directory());
  // Before the first checkpoint; of a directory that is no store nothing is made one.
  if (!dir.ok() && dir.error().code == Errc::kNotFound &&
      fs.StatAt(store_dir, ManifestName()).ok() &&
      !BELAY_MUTANT("failures-wait-for-a-checkpoint")) {
    (void)fs.MakeDir(store_dir, StatCache::DirName(), 0700);
    dir = fs.Open(store_dir, StatCache::DirName(), OpenMode::Directory());
  }
  if (!dir.ok()) return;
  std::string line = std::to_string(clock.WallMillis());
  (line += ' ') += root.text();
  (line += ' ') += what;
  (line += ' ') += ErrcName(error.code);
  (line += ' ') += EscapeForDisplay(error.what.substr(0, kMaxMessage));
  line += '\n';
  auto old = ReadSmallFile(fs, *dir, FileName(), 2 * kMaxFile);
  if (old.ok() && old->size() + line.size() > kMaxFile) {
    std::string kept(AsText(*old).substr(old->size() - std::min(old->size(), kKept)));
    kept.erase(0, kept.find('\n') + 1);
    (void)ReplaceFile(fs, *dir, FileName(), AsBytes(kept + line));
    return;
  }
  auto file = fs.Open(*dir, FileName(), OpenMode::OpenOrCreate());
  if (!file.ok()) return;
  (void)WriteFull(fs, *file, old.ok() ? old->size() : 0, AsBytes(line));
}

}  // namespace

void NoteFailure(Store& store, const RootId& root, std::string_view what,
                 const Error& error) {
  if (IsFailure(error.code)) CountFailure(store, root, what, error);
}

void CountFailure(Store& store, const RootId& root, std::string_view what,
                  const Error& error) {
  Append(store.fs(), store.dir(), store.clock(), root, what, error);
}

void CountFailure(Fs& fs, const AbsPath& store_dir, Clock& clock, std::string_view what,
                  const Error& error) {
  if (auto dir = fs.OpenDir(store_dir); dir.ok())
    Append(fs, *dir, clock, {}, what, error);
}

namespace {

std::vector<Failure> ReadBelow(Fs& fs, const Fd& store_dir,
                               const std::optional<RootId>& root) {
  std::vector<Failure> out;
  auto dir = fs.Open(store_dir, StatCache::DirName(), OpenMode::Directory());
  if (!dir.ok()) return out;
  auto bytes = ReadSmallFile(fs, *dir, FileName(), 2 * kMaxFile);
  if (!bytes.ok()) return out;
  std::string_view rest = AsText(*bytes);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    auto failure = Parse(rest.substr(0, end));
    if (failure && (!root || failure->root == *root)) out.push_back(*failure);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

}  // namespace

std::vector<Failure> ReadFailures(Store& store, const std::optional<RootId>& root) {
  return ReadBelow(store.fs(), store.dir(), root);
}

std::vector<Failure> ReadFailures(Fs& fs, const AbsPath& store_dir) {
  auto dir = fs.OpenDir(store_dir);
  return dir.ok() ? ReadBelow(fs, *dir, std::nullopt) : std::vector<Failure>();
}

}  // namespace belay
