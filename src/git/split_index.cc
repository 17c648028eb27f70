#include <algorithm>

#include "base/mutant.h"
#include "git/split_index_internal.h"

namespace belay::git_internal {

namespace {

Error Corrupt(const char* what) { return Error(Errc::kCorrupt, what); }

class BigEndian {
 public:
  explicit BigEndian(ByteSpan in) : in_(in) {}
  bool Has(uint64_t count) const { return count <= in_.size(); }
  bool empty() const { return in_.empty(); }
  uint64_t Take(size_t count) {  // the caller has asked Has
    uint64_t value = 0;
    for (std::byte b : in_.first(count)) value = value << 8 | static_cast<uint64_t>(b);
    in_ = in_.subspan(count);
    return value;
  }

 private:
  ByteSpan in_;
};

// An EWAH bitmap: words that say how many equal and how many literal words follow.
Result<std::vector<uint32_t>> TakeBitmap(BigEndian& in) {
  const Error kBad = Corrupt("has a malformed bitmap");
  if (!in.Has(8)) return kBad;
  uint64_t bits = in.Take(4);
  uint64_t words = in.Take(4);
  if (bits > kMaxSplitEntries || !in.Has(words * 8 + 4)) return kBad;
  std::vector<uint32_t> set;
  uint64_t at = 0;
  while (words > 0) {
    uint64_t marker = in.Take(8);
    --words;
    bool value = (marker & 1) != 0;
    uint64_t run = marker >> 1 & 0xFFFFFFFF;
    uint64_t literals = marker >> 33;
    if (literals > words) return kBad;
    // The last word may reach beyond the bits; nothing else may.
    if (at + (run + literals) * 64 > bits + 63) return kBad;
    uint64_t end = at + run * 64;
    if (value)
      for (uint64_t bit = at; bit < std::min(end, bits); ++bit)
        set.push_back(static_cast<uint32_t>(bit));
    at = end;
    for (; literals > 0; --literals, --words, at += 64) {
      uint64_t word = in.Take(8);
      for (int i = 0; i < 64; ++i) {
        if ((word >> i & 1) == 0) continue;
        if (at + static_cast<uint64_t>(i) >= bits) return kBad;
        set.push_back(static_cast<uint32_t>(at) + static_cast<uint32_t>(i));
      }
    }
  }
  in.Take(4);  // where the last marker is; for writers
  return set;
}

}  // namespace

Result<LinkExtension> ParseLink(ByteSpan bytes, size_t hash_size) {
  if (bytes.size() < hash_size)
    return Corrupt("has a malformed link to its shared part");
  LinkExtension link;
  ByteSpan base = bytes.first(hash_size);
  bool none = std::all_of(base.begin(), base.end(),
                          [](std::byte b) { return b == std::byte{0}; });
  if (!none) link.base = ToHex(base);
  if (bytes.size() == hash_size) return link;
  BigEndian in(bytes.subspan(hash_size));
  BELAY_TRY(link.deleted, TakeBitmap(in));
  BELAY_TRY(link.replaced, TakeBitmap(in));
  if (!in.empty()) return Corrupt("has a malformed link to its shared part");
  return link;
}

Result<std::vector<RawEntry>> MergeSplit(const LinkExtension& link,
                                         std::vector<RawEntry> base,
                                         std::vector<RawEntry> own) {
  // The nameless entries come first, one for each replaced entry, in its order.
  size_t next = 0;
  for (uint32_t position : link.replaced) {
    if (position >= base.size() || next >= own.size() || !own[next].name.empty())
      return Corrupt("is split, and its parts do not fit");
    base[position].mode = own[next].mode;
    base[position].stage = own[next].stage;
    base[position].tree = std::move(own[next].tree);
    base[position].flags = own[next].flags;
    ++next;
  }
  for (uint32_t position : link.deleted) {
    if (position >= base.size()) return Corrupt("is split, and its parts do not fit");
    if (!BELAY_MUTANT("git-split-keep-deleted")) base[position].name.clear();
  }
  auto before = [](const RawEntry& a, const RawEntry& b) {
    int order = a.name.compare(b.name);
    return order != 0 ? order < 0 : a.stage < b.stage;
  };
  std::erase_if(base, [](const RawEntry& entry) { return entry.name.empty(); });
  auto first_new = own.begin() + static_cast<std::ptrdiff_t>(next);
  for (auto it = first_new; it != own.end(); ++it)
    if (it->name.empty()) return Corrupt("is split, and its parts do not fit");
  // What is new takes the place of an equal name and stage, as git's own merge does; a
  // merged entry takes the place of all stages, and a stage that of a merged one.
  std::stable_sort(first_new, own.end(), before);
  std::vector<RawEntry> merged;
  merged.reserve(base.size() + own.size() - next);
  std::erase_if(base, [&](const RawEntry& entry) {
    auto same = std::lower_bound(
        first_new, own.end(), entry.name,
        [](const RawEntry& a, const std::string& name) { return a.name < name; });
    for (; same != own.end() && same->name == entry.name; ++same)
      if (same->stage == entry.stage || same->stage == 0 || entry.stage == 0)
        return true;
    return false;
  });
  std::merge(std::make_move_iterator(base.begin()), std::make_move_iterator(base.end()),
             std::make_move_iterator(first_new), std::make_move_iterator(own.end()),
             std::back_inserter(merged), before);
  return merged;
}

}  // namespace belay::git_internal
