#include "git/tracked_paths.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/escape.h"
#include "base/mutant.h"

namespace belay {

namespace {

unsigned char Fold(char c) {
  auto u = static_cast<unsigned char>(c);
  return u >= 'A' && u <= 'Z' ? static_cast<unsigned char>(u + ('a' - 'A')) : u;
}

int CompareBytes(std::string_view a, std::string_view b) {
  return a.compare(b);  // char_traits<char> compares as unsigned
}

int CompareFolded(std::string_view a, std::string_view b) {
  size_t common = std::min(a.size(), b.size());
  for (size_t i = 0; i < common; ++i) {
    int difference = int{Fold(a[i])} - int{Fold(b[i])};
    if (difference != 0) return difference;
  }
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

// Compares a name in two parts with a whole one.
template <class Compare>
int CompareParts(std::string_view dir, std::string_view leaf, std::string_view name,
                 Compare compare) {
  if (name.size() < dir.size())
    return compare(dir.substr(0, name.size()), name) < 0 ? -1 : 1;
  if (int head = compare(dir, name.substr(0, dir.size())); head != 0) return head;
  return compare(leaf, name.substr(dir.size()));
}

// The first i below `count` that is not `less`.
template <class Less>
uint32_t FirstNot(size_t count, Less less) {
  size_t low = 0;
  for (size_t high = count; low < high;) {
    size_t middle = low + (high - low) / 2;
    if (less(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<uint32_t>(low);
}

Error BadEntry(std::string_view name, std::string_view why) {
  std::string text = "entry '";
  text += EscapeForDisplay(name.substr(0, 200));
  text += "' ";
  text += why;
  return Error(Errc::kCorrupt, std::move(text));
}

constexpr uint32_t kTypeMask = 0170000;

uint8_t KindOf(uint32_t mode) {
  switch (mode & kTypeMask) {
    case 0100000:
      return TrackedPaths::kFile;
    case 0120000:
      return TrackedPaths::kSymlink;
    case 0160000:
      return TrackedPaths::kGitlink;
    case 0040000:
      return TrackedPaths::kSparseDirectory;
    default:
      return 0;
  }
}

}  // namespace

size_t TrackedPaths::RunOf(size_t i) const {
  return FirstNot(runs_.size(), [&](size_t run) { return runs_[run].first <= i; }) - 1;
}

uint32_t TrackedPaths::LowerBound(std::string_view key) const {
  const auto before = [&](size_t i, size_t run) {
    const Parts parts = At(i, run);
    return CompareParts(parts.dir, parts.leaf, key, CompareBytes) < 0;
  };
  // The last run that begins before it has the name, or the next one begins with it.
  const size_t after =
      FirstNot(runs_.size(), [&](size_t run) { return before(runs_[run].first, run); });
  if (after == 0) return 0;
  const size_t first = runs_[after - 1].first;
  const size_t end = after < runs_.size() ? runs_[after].first : size();
  return static_cast<uint32_t>(first + FirstNot(end - first, [&](size_t i) {
                                 return before(first + i, after - 1);
                               }));
}

uint32_t TrackedPaths::LowerBoundFolded(std::string_view key) const {
  return FirstNot(size(), [&](size_t i) {
    const Parts parts = At(folded_[i], RunOf(folded_[i]));
    return CompareParts(parts.dir, parts.leaf, key, CompareFolded) < 0;
  });
}

uint8_t TrackedPaths::Find(std::string_view path) const {
  if (!folds_case_) {
    const uint32_t at = LowerBound(path);
    return at < size() && name(at) == path ? kinds_[at] : uint8_t{0};
  }
  uint8_t kinds = 0;
  for (uint32_t at = LowerBoundFolded(path);
       at < size() && CompareFolded(name(folded_[at]), path) == 0; ++at)
    kinds |= kinds_[folded_[at]];
  return kinds;
}

bool TrackedPaths::HasBelow(std::string_view dir) const {
  if (dir.empty()) return !empty();
  if (!folds_case_) return !Below(dir).empty();
  const std::string top = std::string(dir) + "/";
  const uint32_t at = LowerBoundFolded(top);
  return at < size() &&
         CompareFolded(std::string_view(name(folded_[at])).substr(0, top.size()),
                       top) == 0;
}

TrackedPaths::Range TrackedPaths::Below(std::string_view dir) const {
  if (dir.empty()) return {0, static_cast<uint32_t>(size())};
  const std::string top(dir);
  return {LowerBound(top + '/'), LowerBound(top + static_cast<char>('/' + 1))};
}

void TrackedPaths::FoldCase() {
  folds_case_ = true;
  folded_.resize(size());
  std::iota(folded_.begin(), folded_.end(), 0U);
  std::vector<uint32_t> runs;  // of each name
  runs.reserve(size());
  for (size_t run = 0; run < runs_.size(); ++run)
    runs.resize(run + 1 < runs_.size() ? runs_[run + 1].first : size(),
                static_cast<uint32_t>(run));
  std::string whole;
  std::sort(folded_.begin(), folded_.end(), [&](uint32_t a, uint32_t b) {
    const Parts left = At(a, runs[a]), right = At(b, runs[b]);
    if (runs[a] == runs[b]) return CompareFolded(left.leaf, right.leaf) < 0;
    whole.assign(right.dir).append(right.leaf);
    return CompareParts(left.dir, left.leaf, whole, CompareFolded) < 0;
  });
}

Hash256 TrackedPaths::names_digest() const {
  constexpr size_t kPiece = size_t{64} << 10;
  Sha256 hasher;
  std::string names;  // each followed by a NUL
  for (size_t run = 0, i = 0; run < runs_.size(); ++run) {
    const size_t end = run + 1 < runs_.size() ? runs_[run + 1].first : size();
    for (; i < end; ++i) {
      const Parts parts = At(i, run);
      names.append(parts.dir).append(parts.leaf).push_back('\0');
      if (names.size() < kPiece) continue;
      hasher.Update(AsBytes(names));
      names.clear();
    }
  }
  hasher.Update(AsBytes(names));
  // A NUL ends each name and none is empty, so an empty one ends the list.
  Bytes gitlinks(1);
  ByteWriter writer(gitlinks);
  for (size_t i = 0; i < size() && !BELAY_MUTANT("git-digest-names-alone"); ++i)
    if ((kinds_[i] & kGitlink) != 0) {
      writer.U32(static_cast<uint32_t>(i));
      writer.U8((kinds_[i] & (kFile | kSymlink)) != 0 ? 1 : 0);
    }
  hasher.Update(gitlinks);
  return hasher.Finish();
}

size_t TrackedPaths::memory() const {
  return dirs_.size() + leaves_.size() + kinds_.size() + runs_.size() * sizeof(Run) +
         (starts_.size() + folded_.size()) * sizeof(uint32_t);
}

// --- TrackedPathsBuilder -------------------------------------------------------------

void TrackedPathsBuilder::Reserve(size_t names) {
  paths_.starts_.reserve(names + 1);
  paths_.kinds_.reserve(names);
}

Status TrackedPathsBuilder::Add(std::string_view name, uint32_t mode, unsigned stage) {
  uint8_t kind = KindOf(mode);
  if (kind == 0) return BadEntry(name, "is of no kind that git knows");
  if (!paths_.empty() && last_ == name && last_stage_ != 0 && stage > last_stage_) {
    paths_.kinds_.back() |= kind;
  } else {
    BELAY_OK(AddKinds(name, kind));
  }
  last_stage_ = stage;
  return Ok();
}

Status TrackedPathsBuilder::AddKinds(std::string_view name, uint8_t kinds) {
  if (name.empty()) return BadEntry(name, "has no name");
  if (name.find('\0') != std::string_view::npos)
    return BadEntry(name, "has a NUL in its name");
  if (!paths_.empty()) {
    int order = CompareBytes(last_, name);
    if (order > 0) return BadEntry(name, "is out of order");
    if (order == 0) return BadEntry(name, "is there twice");
  }
  if (paths_.dirs_.size() + paths_.leaves_.size() + name.size() >=
      std::numeric_limits<uint32_t>::max())
    return Error(Errc::kUnsupported, "more than 4 GiB of names");
  const size_t leaf = name.rfind('/') + 1;  // npos + 1 is 0
  std::vector<TrackedPaths::Run>& runs = paths_.runs_;
  if (runs.empty() || BELAY_MUTANT("git-tracked-runs-apart") ||
      name.substr(0, leaf) != std::string_view(paths_.dirs_)
                                  .substr(runs.back().dir, runs.back().dir_size)) {
    runs.push_back({.first = static_cast<uint32_t>(paths_.size()),
                    .dir = static_cast<uint32_t>(paths_.dirs_.size()),
                    .dir_size = static_cast<uint32_t>(leaf)});
    paths_.dirs_.append(name.substr(0, leaf));
  }
  paths_.leaves_.append(name.substr(leaf));
  paths_.starts_.push_back(static_cast<uint32_t>(paths_.leaves_.size()));
  paths_.kinds_.push_back(kinds);
  last_ = name;
  last_stage_ = 0;
  return Ok();
}

TrackedPaths TrackedPathsBuilder::Finish() {
  last_.clear();
  return std::exchange(paths_, TrackedPaths());
}

}  // namespace belay
