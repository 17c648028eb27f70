#include "core/git_packed.h"

#include <algorithm>
#include <array>

#include "base/mutant.h"
#include "core/git_record.h"
#include "git/blob_reader.h"

namespace belay {

namespace {

constexpr size_t kPiece = size_t{64} << 10;
// "100644 blob <object>\t<path>\0", of which the path is passed over.
constexpr size_t kLongestHead = 16 + 64;

// Finds the objects in what `git ls-tree -r -z` says, whatever pieces it comes in.
template <class Each>
class TreeListing {
 public:
  TreeListing(GitHash hash, Each each) : length_(2 * GitHashSize(hash)), each_(each) {}

  Status Take(std::string_view text) {
    while (!text.empty()) {
      if (in_path_) {
        const size_t nul = text.find('\0');
        if (nul == text.npos) return Ok();
        text.remove_prefix(nul + 1);
        in_path_ = false;
        continue;
      }
      const size_t tab = std::min(text.find('\t'), text.size());
      head_ += text.substr(0, std::min(tab, kLongestHead + 1));
      text.remove_prefix(tab);
      if (head_.size() > kLongestHead) return Garbled();
      if (text.empty()) return Ok();
      const size_t object = head_.rfind(' ') + 1;  // npos + 1 is 0
      if (head_.size() - object != length_) return Garbled();
      BELAY_OK(each_(std::string_view(head_).substr(object)));
      head_.clear();
      in_path_ = true;
    }
    return Ok();
  }
  Status Finish() const {
    return head_.empty() && !in_path_ ? Ok() : Status(Garbled());
  }
  static Error Garbled() {
    return {Errc::kCorrupt, "git gave an answer of an unknown form"};
  }

 private:
  const size_t length_;
  Each each_;
  std::string head_;
  bool in_path_ = false;
};

}  // namespace

Status GitPacked::CheckTime() const {
  return git_.IsLate() ? Status(Error(Errc::kBusy, "git did not answer in time"))
                       : Ok();
}

Result<bool> GitPacked::IsTreeOf(const std::string& head, const std::string& tree) {
  if (tree.empty() || BELAY_MUTANT("git-tree-of-the-index-is-not-looked-at"))
    return false;
  BELAY_TRY(const std::string said,
            git_.Run({"rev-parse", "--verify", "--quiet", head + "^{tree}"}));
  return said == tree + "\n" || BELAY_MUTANT("git-any-tree-is-heads");
}

Status GitPacked::LeaveStaged(const std::string& head, const std::string& tree,
                              GitIds& ids) {
  BELAY_TRY(const bool none, IsTreeOf(head, tree));
  if (none) {
    ids.Clear();
    return Ok();
  }
  std::vector<bool> staged(ids.size(), true);
  Bytes raw(GitHashSize(hash_));
  TreeListing listing(hash_, [&](std::string_view hex) -> Status {
    if (!FromHex(hex, raw)) return Error(Errc::kCorrupt, "git named no object");
    if (const auto at = ids.Find(raw)) staged[*at] = false;
    return Ok();
  });
  // Of the trees that others build upon git would hold 96 MB, and of packs all that it
  // looked into.
  const std::vector<std::string> command = {"-c",      "core.deltaBaseCacheLimit=4m",
                                            "-c",      "core.packedGitWindowSize=1m",
                                            "-c",      "core.packedGitLimit=8m",
                                            "ls-tree", "-r",
                                            "-z",      "--full-tree",
                                            head};
  BELAY_TRY(auto running, git_.Start(command));
  Bytes piece(kPiece);
  for (;;) {
    BELAY_OK(CheckTime());
    BELAY_TRY(const size_t got, running->Read(piece));
    if (got == 0) break;
    BELAY_OK(listing.Take(AsText(ByteSpan(piece).first(got))));
  }
  BELAY_TRY(const ProcessResult ended, running->Finish());
  BELAY_OK(git_.Judge(command, ended));
  BELAY_OK(listing.Finish());
  ids.Keep(staged);
  return Ok();
}

Status GitPacked::Read(const GitIds& ids, size_t limit, const Keep& keep) {
  auto hex = [&](size_t at) { return ids.Hex(at); };
  BELAY_TRY(auto blobs, BlobReader::Start(git_, ids.size(), hex));
  for (size_t i = 0; i < ids.size(); ++i) {
    BELAY_OK(CheckTime());
    BELAY_TRY(const auto size, blobs->Next());
    if (!size || *size > limit) continue;
    Bytes content(static_cast<size_t>(*size));
    for (size_t at = 0; at < content.size();) {
      BELAY_TRY(const size_t got, blobs->Read(std::span(content).subspan(at)));
      at += got;
    }
    BELAY_OK(keep(hex(i), content));
  }
  return Ok();
}

}  // namespace belay
