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

// Compares `name` with `dir` followed by `next`, which is '/' or the byte after it.
template <class Compare>
int CompareWithDirectory(std::string_view name, std::string_view dir, char next,
                         Compare compare) {
  if (int head = compare(name.substr(0, dir.size()), dir); head != 0) return head;
  if (name.size() == dir.size()) return -1;
  int difference = int{static_cast<unsigned char>(name[dir.size()])} -
                   int{static_cast<unsigned char>(next)};
  if (difference != 0) return difference;
  return name.size() == dir.size() + 1 ? 0 : 1;
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

uint8_t TrackedPaths::Find(std::string_view path) const {
  if (!folds_case_) {
    uint32_t at =
        FirstNot(size(), [&](size_t i) { return CompareBytes(name(i), path) < 0; });
    return at < size() && name(at) == path ? kinds_[at] : uint8_t{0};
  }
  uint32_t at = FirstNot(
      size(), [&](size_t i) { return CompareFolded(name(folded_[i]), path) < 0; });
  uint8_t kinds = 0;
  for (; at < size() && CompareFolded(name(folded_[at]), path) == 0; ++at)
    kinds |= kinds_[folded_[at]];
  return kinds;
}

bool TrackedPaths::HasBelow(std::string_view dir) const {
  if (dir.empty()) return !empty();
  if (!folds_case_) return !Below(dir).empty();
  uint32_t at = FirstNot(size(), [&](size_t i) {
    return CompareWithDirectory(name(folded_[i]), dir, '/', CompareFolded) < 0;
  });
  return at < size() &&
         CompareWithDirectory(name(folded_[at]), dir, static_cast<char>('/' + 1),
                              CompareFolded) < 0;
}

TrackedPaths::Range TrackedPaths::Below(std::string_view dir) const {
  if (dir.empty()) return {0, static_cast<uint32_t>(size())};
  auto first = [&](char next) {
    return FirstNot(size(), [&](size_t i) {
      return CompareWithDirectory(name(i), dir, next, CompareBytes) < 0;
    });
  };
  return {first('/'), first(static_cast<char>('/' + 1))};
}

void TrackedPaths::FoldCase() {
  folds_case_ = true;
  folded_.resize(size());
  std::iota(folded_.begin(), folded_.end(), 0U);
  std::sort(folded_.begin(), folded_.end(), [this](uint32_t a, uint32_t b) {
    return CompareFolded(name(a), name(b)) < 0;
  });
}

Hash256 TrackedPaths::names_digest() const {
  Sha256 hasher;
  hasher.Update(AsBytes(names_));
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
  return names_.size() + kinds_.size() +
         (starts_.size() + folded_.size()) * sizeof(uint32_t);
}

// --- TrackedPathsBuilder -------------------------------------------------------------

void TrackedPathsBuilder::Reserve(size_t names, size_t bytes) {
  paths_.starts_.reserve(names + 1);
  paths_.kinds_.reserve(names);
  paths_.names_.reserve(bytes);
}

std::string_view TrackedPathsBuilder::last() const {
  return paths_.empty() ? std::string_view() : paths_.name(paths_.size() - 1);
}

Status TrackedPathsBuilder::Add(std::string_view name, uint32_t mode, unsigned stage) {
  uint8_t kind = KindOf(mode);
  if (kind == 0) return BadEntry(name, "is of no kind that git knows");
  if (!paths_.empty() && last() == name && last_stage_ != 0 && stage > last_stage_) {
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
    int order = CompareBytes(last(), name);
    if (order > 0) return BadEntry(name, "is out of order");
    if (order == 0) return BadEntry(name, "is there twice");
  }
  if (paths_.names_.size() + name.size() >= std::numeric_limits<uint32_t>::max())
    return Error(Errc::kUnsupported, "more than 4 GiB of names");
  paths_.names_.append(name);
  paths_.names_.push_back('\0');
  paths_.starts_.push_back(static_cast<uint32_t>(paths_.names_.size()));
  paths_.kinds_.push_back(kinds);
  last_stage_ = 0;
  return Ok();
}

TrackedPaths TrackedPathsBuilder::Finish() {
  return std::exchange(paths_, TrackedPaths());
}

}  // namespace belay
