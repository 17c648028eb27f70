#include "git/index_entries.h"

#include <algorithm>

#include "base/mutant.h"
#include "git/split_index_internal.h"

namespace belay {

namespace git_internal {

void DescribeEntry(std::string_view name, uint32_t mode, ByteSpan object,
                   unsigned stage, uint8_t flags, Bytes& out) {
  out.clear();
  ByteWriter write(out);
  write.Sized(name);
  write.U32(mode);
  write.Raw(object);
  write.U8(static_cast<uint8_t>(stage | flags));
}

}  // namespace git_internal

Result<IndexEntries> ReadWholeIndex(ByteSpan index, GitHash hash,
                                    std::vector<NamedEntry>* named,
                                    const ReadShared& shared) {
  std::vector<NamedEntry> own, base;
  // The entries of most are not needed twice.
  BELAY_TRY(IndexEntries out, ReadIndexEntries(index, hash, named));
  if (!out.split || BELAY_MUTANT("git-split-by-its-bytes")) return out;
  if (named != nullptr) {
    own = std::move(*named);
    named->clear();
  } else {
    BELAY_TRY([[maybe_unused]] IndexEntries again, ReadIndexEntries(index, hash, &own));
  }
  bool fits = true;
  if (!out.shared.empty()) {
    auto bytes = shared(out.shared);
    auto read = bytes.ok() ? ReadIndexEntries(*bytes, hash, &base)
                           : Result<IndexEntries>(bytes.error());
    fits = read.ok() && !read->split;
  }
  auto raw = [](const std::vector<NamedEntry>& entries) {
    std::vector<git_internal::RawEntry> all;
    for (const NamedEntry& entry : entries)
      all.push_back({entry.path, entry.mode, entry.stage, entry.object, entry.flags});
    return all;
  };
  Result<std::vector<git_internal::RawEntry>> merged =
      fits ? git_internal::MergeSplit({{}, out.deleted, out.replaced}, raw(base),
                                      raw(own))
           : Error(Errc::kCorrupt, "is split, and its parts do not fit");
  if (!merged.ok()) {
    AddShared(out, std::move(base), own);
    if (named != nullptr) *named = std::move(own);
    return out;
  }
  Sha256 sha;
  Bytes one, object(GitHashSize(hash));
  for (git_internal::RawEntry& entry : *merged) {
    if (!FromHex(entry.tree, object))
      return Error(Errc::kCorrupt, "has a malformed object");
    git_internal::DescribeEntry(entry.name, entry.mode, object, entry.stage,
                                entry.flags, one);
    sha.Update(one);
    if (named != nullptr)
      named->push_back({std::move(entry.name), std::move(entry.tree), entry.mode,
                        entry.stage, (entry.flags & 16) != 0, entry.flags});
  }
  out.count = merged->size();
  out.digest = sha.Finish();
  return out;
}

Hash256 DigestOfDamagedIndex(ByteSpan index) {
  Sha256 sha;
  sha.Update(AsBytes("belay damaged index"));
  sha.Update(index);
  return sha.Finish();
}

void AddShared(const IndexEntries& own, std::vector<NamedEntry> base,
               std::vector<NamedEntry>& named) {
  auto next = named.begin();
  for (const uint32_t position : own.replaced) {
    next = std::find_if(next, named.end(),
                        [](const NamedEntry& entry) { return entry.path.empty(); });
    if (next == named.end() || position >= base.size()) break;
    next->path = base[position].path;
  }
  named.insert(named.end(), std::make_move_iterator(base.begin()),
               std::make_move_iterator(base.end()));
}

}  // namespace belay
